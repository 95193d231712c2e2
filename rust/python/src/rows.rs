//! Which rows users have, and tables of numbers that are read where they are.

use crate::run::run;
use numpy::{Element, PyArray2, PyArrayMethods, PyReadonlyArray1, ndarray::ArrayView2};
use pyo3::{exceptions::PyTypeError, prelude::*};
use userdp_core::vectors::{means::Records, rows::RowsOfUsers};

/// Which rows each user has, from the user of every row.
#[pyclass(frozen, name = "RowsOfUsers", module = "userdp._core")]
pub(crate) struct PyRowsOfUsers(pub(crate) RowsOfUsers);

#[pymethods]
impl PyRowsOfUsers {
    #[new]
    fn new(py: Python<'_>, users: PyReadonlyArray1<'_, u32>, n_users: usize) -> PyResult<Self> {
        let codes = users.as_slice()?;
        run(py, None, |control| RowsOfUsers::new(codes, n_users, control)).map(Self)
    }
}

/// A number of a table, as the nearest float.
trait Number: Element + Copy + Sync {
    fn float(self) -> f64;
}

macro_rules! numbers {
    ($($type:ty: $x:ident => $float:expr),*) => {
        $(impl Number for $type {
            #[allow(clippy::cast_lossless)]
            fn float(self) -> f64 {
                let $x = self;
                $float
            }
        })*
    };
}
numbers!(f64: x => x, f32: x => f64::from(x), i64: x => x as f64, i32: x => f64::from(x), i16: x => f64::from(x),
    i8: x => f64::from(x), u64: x => x as f64, u32: x => f64::from(x), u16: x => f64::from(x), u8: x => f64::from(x),
    bool: x => f64::from(u8::from(x)));

/// A table that is read where it is, a row at a time.
struct Table<'a, T>(ArrayView2<'a, T>);

impl<T: Number> Records for Table<'_, T> {
    fn rows(&self) -> usize {
        self.0.nrows()
    }

    fn columns(&self) -> usize {
        self.0.ncols()
    }

    fn read(&self, row: usize, out: &mut [f64]) {
        let row = self.0.row(row);
        if let Some(row) = row.as_slice() {
            out.iter_mut().zip(row).for_each(|(x, number)| *x = number.float());
        } else {
            out.iter_mut().zip(row).for_each(|(x, number)| *x = number.float());
        }
    }
}

/// A table of any of the types of [`Number`].
pub(crate) struct Numbers(pub(crate) Py<PyAny>);

impl Numbers {
    /// Calls `work` with the table, which nobody may write to in the meantime.
    pub(crate) fn with<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&dyn Records) -> PyResult<R>,
    ) -> PyResult<R> {
        macro_rules! attempt {
            ($($type:ty),*) => {
                $(if let Ok(array) = self.0.bind(py).cast::<PyArray2<$type>>() {
                    let array = array.try_readonly()?;
                    return work(&Table(array.as_array()));
                })*
            };
        }
        attempt!(f64, f32, i64, i32, i16, i8, u64, u32, u16, u8, bool);
        Err(PyTypeError::new_err("X must be a matrix of real numbers in the machine's byte order"))
    }
}
