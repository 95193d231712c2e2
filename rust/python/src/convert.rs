//! From Python's numbers to the core's, and back.

use crate::run::to_python;
use num_bigint::BigUint;
use num_rational::BigRational;
use num_traits::Signed;
use numpy::{Element, PyArray, PyArray1, PyArrayMethods, ndarray::Dimension};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyList,
};
use std::{ops::Deref, sync::Arc};
use userdp_core::{control::Control, exact::Level, memory, pmf::Pmf};

/// Weights read between two looks for Ctrl-C.
const CHECK_EVERY: usize = 1 << 14;

/// The level e^epsilon = ratio * e^exponent; its enclosures are computed once and kept.
#[pyclass(frozen, name = "Level", module = "userdp._core")]
pub(crate) struct PyLevel(Arc<Level>);

#[pymethods]
impl PyLevel {
    #[new]
    fn new(ratio: BigRational, exponent: BigRational) -> PyResult<Self> {
        if !ratio.is_positive() || exponent.is_negative() {
            return Err(PyValueError::new_err("a level needs ratio > 0 and exponent >= 0"));
        }
        Ok(Self(Arc::new(Level::new(ratio, exponent))))
    }

    /// A level of at most E^(1 / degree), for E >= 1: of one unit, where E is that of `degree` units.
    fn root_below(&self, degree: BigUint) -> PyResult<Self> {
        if degree == BigUint::ZERO {
            return Err(PyValueError::new_err("degree must be at least 1"));
        }
        Ok(Self(Arc::new(self.0.root_below(&degree))))
    }
}

/// A level as the functions of this module take it.
pub(crate) type LevelArgument<'py> = PyRef<'py, PyLevel>;

/// The core's level, shared.
pub(crate) fn level(argument: &LevelArgument<'_>) -> Arc<Level> {
    Arc::clone(&argument.0)
}

/// The entries of a contiguous array, copied: others may write to it while the interpreter lock is released.
pub(crate) fn copied<T: Element + Copy, D: Dimension>(
    argument: &'static str,
    array: &Bound<'_, PyArray<T, D>>,
) -> PyResult<Vec<T>> {
    let array = array.try_readonly()?;
    memory::copied(argument, array.as_slice()?).map_err(|error| to_python(&error))
}

/// The items of a list, or of anything else that has a length. A length is a claim, so that there must be room for it.
pub(crate) struct Items<T>(pub(crate) Vec<T>);

impl<T> Deref for Items<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'py, T: FromPyObjectOwned<'py>> FromPyObject<'_, 'py> for Items<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let len = object.len()?;
        let room = memory::limited("items of a list", len, "give fewer at a time");
        let mut items = room.map_err(|error| to_python(&error))?;
        for (index, item) in object.try_iter()?.take(len).enumerate() {
            if index % CHECK_EVERY == 0 {
                object.py().check_signals()?;
            }
            items.push(item?.extract::<T>().map_err(Into::into)?);
        }
        Ok(Self(items))
    }
}

/// A pmf as Python passes it: a contiguous native float64 vector, or (weights, total).
pub(crate) enum Masses {
    /// Float masses, copied.
    Floats(Vec<f64>),
    /// Integer weights and their total.
    Weights(Vec<BigUint>, BigUint),
}

impl<'py> FromPyObject<'_, 'py> for Masses {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // Long lists of pmfs and of weights take seconds to read: Ctrl-C must be able to end that.
        object.py().check_signals()?;
        if let Ok(array) = object.cast::<PyArray1<f64>>() {
            return Ok(Self::Floats(copied("masses", &array)?));
        }
        let expected = || PyTypeError::new_err("masses must be a float64 vector or (weights, total)");
        let (list, total) = object.extract::<(Bound<'py, PyList>, BigUint)>().map_err(|_| expected())?;
        let mut weights = memory::room("masses", list.len()).map_err(|error| to_python(&error))?;
        for (index, weight) in list.iter().enumerate() {
            if index % CHECK_EVERY == 0 {
                object.py().check_signals()?;
            }
            weights.push(weight.extract::<BigUint>().map_err(|_| expected())?);
        }
        Ok(Self::Weights(weights, total))
    }
}

impl Masses {
    /// Validates the masses, naming `argument` in errors.
    pub(crate) fn into_pmf(
        self,
        argument: &'static str,
        control: &Control,
    ) -> userdp_core::Result<Pmf<'static>> {
        match self {
            Self::Floats(masses) => Pmf::from_floats(masses, argument),
            Self::Weights(weights, total) => Pmf::from_weights(weights, total, argument, control),
        }
    }

    /// The number of outputs, counted several times when their weights are long.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Floats(masses) => masses.len(),
            Self::Weights(weights, total) => {
                weights.len().saturating_mul(1 + usize::try_from(total.bits() / 512).unwrap_or(usize::MAX))
            }
        }
    }
}
