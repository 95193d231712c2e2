//! Tables of rows of users: codes of values, and bounded sums over users.

use crate::{
    convert::Items,
    run::{locked, run, run_short},
};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, ndarray::Array2,
};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    pybacked::PyBackedBytes,
    types::{PyBytes, PyTuple},
};
use std::{
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use userdp_core::{
    Result,
    control::Control,
    table::{
        choice::Rule,
        columns::Column,
        index::{Digester, TableIndex, Value},
        sums::{Batch, Bounds, Splits, TableSums},
        walk::{self, Reach},
    },
};

/// Fewer values than this are done before another thread has them.
const SHORT: usize = 1 << 14;

/// Called with (done, total), or nothing.
type Progress = Option<Py<PyAny>>;

/// Codes of keys, and for every column a sum for each of them.
type KeySums<'py> = (Bound<'py, PyArray1<u32>>, Vec<Bound<'py, PyArray1<i64>>>);

/// Runs work on so many values where it is fastest.
fn run_on<T: Send>(
    py: Python<'_>,
    values: usize,
    work: impl FnOnce(&Control) -> Result<T> + Send,
) -> PyResult<T> {
    if values < SHORT { run_short(|| work(&Control::new())) } else { run(py, None, work) }
}

/// Distinct values, integers and texts, by the codes 0, 1, ... in the order in which they first came.
#[pyclass(frozen, name = "TableIndex", module = "userdp._core")]
pub(crate) struct PyTableIndex {
    index: Mutex<TableIndex>,
    /// The number of values after the last call: told without the lock.
    len: AtomicUsize,
}

impl PyTableIndex {
    /// Codes of so many values.
    pub(crate) fn codes<'py>(
        &self,
        py: Python<'py>,
        values: usize,
        work: impl FnOnce(&mut TableIndex, &Control) -> Result<Vec<u32>> + Send,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let mut guard = locked(py, &self.index)?;
        let index = &mut *guard;
        let codes = run_on(py, values, |control| work(index, control));
        self.len.store(guard.len(), Ordering::Relaxed);
        Ok(codes?.into_pyarray(py))
    }
}

#[pymethods]
impl PyTableIndex {
    #[new]
    fn new() -> Self {
        Self { index: Mutex::new(TableIndex::new()), len: AtomicUsize::new(0) }
    }

    fn __len__(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// The codes of integers.
    fn integers<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let values = values.as_slice()?;
        self.codes(py, values.len(), |index, control| index.integers(values, control))
    }

    /// The codes of texts, given by their bytes.
    fn texts<'py>(
        &self,
        py: Python<'py>,
        values: Items<PyBackedBytes>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        self.codes(py, values.len(), |index, control| {
            index.texts(values.len(), |number| values[number].as_ref(), control)
        })
    }

    /// The codes of the texts that are the bytes offsets[i], ..., offsets[i + 1] - 1 of one array.
    fn packed_texts<'py>(
        &self,
        py: Python<'py>,
        content: PyReadonlyArray1<'py, u8>,
        offsets: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let (bytes, offsets) = (content.as_slice()?, offsets.as_slice()?);
        let len = i64::try_from(bytes.len())?;
        let inside = offsets.first().is_none_or(|&first| first >= 0)
            && offsets.last().is_none_or(|&last| last <= len)
            && offsets.is_sorted();
        if !inside {
            return Err(PyValueError::new_err(
                "offsets: must not decrease, and be from 0 to the length of content",
            ));
        }
        let place = |offset: i64| usize::try_from(offset).unwrap_or_default();
        let text =
            |number: usize| bytes.get(place(offsets[number])..place(offsets[number + 1])).unwrap_or_default();
        let len = offsets.len().saturating_sub(1);
        self.codes(py, len, |index, control| index.texts(len, text, control))
    }

    /// Of every code its value: an integer, or the bytes of a text.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let guard = locked(py, &self.index)?;
        (0..guard.len())
            .map(|code| match guard.value(code) {
                Value::Integer(value) => Ok(value.into_pyobject(py)?.into_any()),
                Value::Text(text) => Ok(PyBytes::new(py, text).into_any()),
            })
            .collect()
    }

    /// The rank of each code's value among all: integers by size, then texts by their bytes.
    fn ranks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let guard = locked(py, &self.index)?;
        let index = &*guard;
        Ok(run_on(py, index.len(), |_| index.ranks())?.into_pyarray(py))
    }

    /// The digests of all values by the first half of a key, shape (values, 2), in the order of codes.
    fn digests<'py>(&self, py: Python<'py>, key: [u8; 32]) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let guard = locked(py, &self.index)?;
        let index = &*guard;
        let digester = Digester::new(&key);
        let digests = run_on(py, index.len(), |control| index.digests(&digester, control))?;
        Ok(Array2::from(digests).into_pyarray(py))
    }
}

/// A column as Python gives it: its kind and its numbers.
struct ColumnArgument(Column);

impl<'py> FromPyObject<'_, 'py> for ColumnArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let tuple = object.cast::<PyTuple>()?;
        let kind = tuple.get_item(0)?.extract::<String>()?;
        // Of values: how many numbers there are, after which may come the value that says which rows count.
        let own = match kind.as_str() {
            "sum" | "weighted" => 5,
            "mean" => 4,
            _ => tuple.len(),
        };
        let of: Option<usize> = if tuple.len() > own { Some(tuple.get_item(own)?.extract()?) } else { None };
        let numbers = tuple.get_slice(1, own);
        Ok(Self(match (kind.as_str(), tuple.len()) {
            ("users", 1) => Column::Users,
            ("rows", 2) => Column::Rows { most: tuple.get_item(1)?.extract()? },
            ("weight", 2) => Column::Weight { weight: tuple.get_item(1)?.extract()? },
            ("sum", 5 | 6) => {
                let (value, low, high, shift) = numbers.extract()?;
                Column::Sum { value, of, low, high, shift }
            }
            ("mean", 4 | 5) => {
                let (value, steps, shift) = numbers.extract()?;
                Column::Mean { value, of, steps, shift }
            }
            ("weighted", 5 | 6) => {
                let (value, steps, most, shift) = numbers.extract()?;
                Column::Weighted { value, of, steps, most, shift }
            }
            _ => return Err(PyValueError::new_err("columns: there is no such kind with as many numbers")),
        }))
    }
}

/// Which keys a user keeps, as Python says it.
fn rule_of<'a>(
    rule: &str,
    users: &'a TableIndex,
    key_digests: Option<&'a [u64]>,
    prf_key: Option<&'a [u8; 32]>,
) -> PyResult<Rule<'a>> {
    match (rule, key_digests, prf_key) {
        ("first", ..) => Ok(Rule::First),
        ("random", Some(digests), Some(key)) => {
            let (key_digests, []) = digests.as_chunks() else {
                return Err(PyValueError::new_err("key_digests: must have two columns"));
            };
            Ok(Rule::Random { users, key_digests, key })
        }
        ("random", ..) => Err(PyValueError::new_err("rule: 'random' needs key_digests and prf_key")),
        _ => Err(PyValueError::new_err("rule: must be 'random' or 'first'")),
    }
}

/// Rows (user, key, integers), to be added up by user and key.
#[pyclass(frozen, name = "TableSums", module = "userdp._core")]
pub(crate) struct PyTableSums(Mutex<TableSums>);

#[pymethods]
impl PyTableSums {
    #[new]
    #[pyo3(signature = (n_values, *, memory = 1_073_741_824, directory = None))]
    fn new(n_values: usize, memory: usize, directory: Option<PathBuf>) -> PyResult<Self> {
        run_short(|| TableSums::new(n_values, memory, directory)).map(|sums| Self(Mutex::new(sums)))
    }

    /// Adds one row for each user.
    #[pyo3(signature = (users, keys, values))]
    fn add(
        &self,
        py: Python<'_>,
        users: PyReadonlyArray1<'_, u32>,
        keys: PyReadonlyArray1<'_, u32>,
        values: Items<Bound<'_, PyArray1<i64>>>,
    ) -> PyResult<()> {
        // Read where they are, without a copy: the borrows last as long as the work.
        let columns =
            values.iter().map(PyArrayMethods::try_readonly).collect::<std::result::Result<Vec<_>, _>>()?;
        let columns =
            columns.iter().map(|column| column.as_slice()).collect::<std::result::Result<Vec<_>, _>>()?;
        let batch = Batch { users: users.as_slice()?, keys: keys.as_slice()?, values: &columns };
        let mut guard = locked(py, &self.0)?;
        let sums = &mut *guard;
        // Never on this thread: rows are put into parts by all threads of the pool.
        run(py, None, |control| sums.add(batch, control))
    }

    /// For each key the sums over users of the integers of the users who keep it, and these keys in canonical order.
    #[pyo3(signature = (*, users, key_order, max_keys, rule, columns, key_digests = None, prf_key = None, progress = None))]
    #[allow(clippy::too_many_arguments)]
    fn bounded<'py>(
        &self,
        py: Python<'py>,
        users: PyRef<'py, PyTableIndex>,
        key_order: PyReadonlyArray1<'py, u32>,
        max_keys: Option<usize>,
        rule: &str,
        columns: Items<ColumnArgument>,
        key_digests: Option<PyReadonlyArray2<'py, u64>>,
        prf_key: Option<[u8; 32]>,
        progress: Progress,
    ) -> PyResult<KeySums<'py>> {
        let columns: Vec<Column> = columns.iter().map(|column| column.0).collect();
        let key_order = key_order.as_slice()?;
        let key_digests = key_digests.as_ref().map(|digests| digests.as_slice()).transpose()?;
        let index = locked(py, &users.index)?;
        let index = &*index;
        let rule = rule_of(rule, index, key_digests, prf_key.as_ref())?;
        let bounds = Bounds { users: index.len(), key_order, max_keys, rule, columns: &columns };
        let mut guard = locked(py, &self.0)?;
        let sums = &mut *guard;
        let sums = run(py, progress, |control| sums.bounded(&bounds, control))?;
        let columns = sums.columns.into_iter().map(|column| column.into_pyarray(py)).collect();
        Ok((sums.keys.into_pyarray(py), columns))
    }

    /// For each key what users raise it to one after the other, in an order that is drawn, and these keys in canonical order.
    #[pyo3(signature = (*, users, key_order, max_keys, key_digests, prf_key, length, cap, progress = None))]
    #[allow(clippy::too_many_arguments)]
    fn walked<'py>(
        &self,
        py: Python<'py>,
        users: PyRef<'py, PyTableIndex>,
        key_order: PyReadonlyArray1<'py, u32>,
        max_keys: usize,
        key_digests: PyReadonlyArray2<'py, u64>,
        prf_key: [u8; 32],
        length: u64,
        cap: i64,
        progress: Progress,
    ) -> PyResult<KeySums<'py>> {
        let key_order = key_order.as_slice()?;
        let (key_digests, []) = key_digests.as_slice()?.as_chunks() else {
            return Err(PyValueError::new_err("key_digests: must have two columns"));
        };
        let index = locked(py, &users.index)?;
        let rule = Rule::Random { users: &index, key_digests, key: &prf_key };
        let mut guard = locked(py, &self.0)?;
        let sums = &mut *guard;
        let sums = run(py, progress, |control| {
            sums.walked(key_order, max_keys, rule, Reach { length, cap }, control)
        })?;
        let columns = sums.columns.into_iter().map(|column| column.into_pyarray(py)).collect();
        Ok((sums.keys.into_pyarray(py), columns))
    }

    /// The weight of every user split over the bins of the user's rows, summed over users; and how many users have rows.
    #[pyo3(signature = (bins, weight, progress = None))]
    fn split<'py>(
        &self,
        py: Python<'py>,
        bins: usize,
        weight: u64,
        progress: Progress,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, u64)> {
        let mut guard = locked(py, &self.0)?;
        let sums = &mut *guard;
        let (split, users) = run(py, progress, |control| sums.split(bins, weight, control))?;
        Ok((split.into_pyarray(py), users))
    }

    /// The weight of every user in each kept key split over the bins of the user's rows there, summed over users: for
    /// every cell, a key and a bin, by its place.
    #[pyo3(signature = (*, users, key_order, max_keys, rule, cell_order, keys, inside, weight, key_digests = None, prf_key = None, progress = None))]
    #[allow(clippy::too_many_arguments)]
    fn split_by_key<'py>(
        &self,
        py: Python<'py>,
        users: PyRef<'py, PyTableIndex>,
        key_order: PyReadonlyArray1<'py, u32>,
        max_keys: Option<usize>,
        rule: &str,
        cell_order: PyReadonlyArray1<'py, u32>,
        keys: PyReadonlyArray1<'py, u32>,
        inside: PyReadonlyArray1<'py, bool>,
        weight: u64,
        key_digests: Option<PyReadonlyArray2<'py, u64>>,
        prf_key: Option<[u8; 32]>,
        progress: Progress,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let key_order = key_order.as_slice()?;
        let key_digests = key_digests.as_ref().map(|digests| digests.as_slice()).transpose()?;
        let index = locked(py, &users.index)?;
        let index = &*index;
        let rule = rule_of(rule, index, key_digests, prf_key.as_ref())?;
        let bounds = Bounds { users: index.len(), key_order, max_keys, rule, columns: &[] };
        let splits = Splits {
            cell_order: cell_order.as_slice()?,
            keys: keys.as_slice()?,
            inside: inside.as_slice()?,
            weight,
        };
        let mut guard = locked(py, &self.0)?;
        let sums = &mut *guard;
        let split = run(py, progress, |control| sums.split_by_key(&bounds, &splits, control))?;
        Ok(split.into_pyarray(py))
    }
}

/// What users raise the sums of keys to, in the order given: the keys of user i are keys[starts[i]], ...,
/// keys[starts[i + 1] - 1].
#[pyfunction]
#[pyo3(signature = (starts, keys, n_keys, *, length, cap))]
pub(crate) fn walked_sums<'py>(
    py: Python<'py>,
    starts: PyReadonlyArray1<'py, i64>,
    keys: PyReadonlyArray1<'py, u32>,
    n_keys: usize,
    length: u64,
    cap: i64,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (starts, keys) = (starts.as_slice()?, keys.as_slice()?);
    let inside = starts.first().is_none_or(|&first| first >= 0)
        && starts.last().is_none_or(|&last| usize::try_from(last).is_ok_and(|last| last <= keys.len()))
        && starts.is_sorted();
    if !inside {
        return Err(PyValueError::new_err("starts: must not decrease, and be from 0 to the number of keys"));
    }
    let place = |start: i64| usize::try_from(start).unwrap_or_default();
    let turns = || starts.windows(2).map(|ends| &keys[place(ends[0])..place(ends[1])]);
    let most = turns().map(<[u32]>::len).max().unwrap_or_default().max(1);
    let sums = run(py, None, |control| walk::walked(turns(), n_keys, most, Reach { length, cap }, control))?;
    Ok(sums.into_pyarray(py))
}
