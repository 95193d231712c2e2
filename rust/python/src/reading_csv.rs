//! Rows of CSV files, from their bytes.

use crate::{
    convert::Items,
    run::{locked, run},
};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*, pybacked::PyBackedBytes};
use std::sync::Mutex;
use userdp_core::reading::csv::{Dialect, Quote, Reader};

/// The bytes of the cells of one column, and where each begins.
type Texts<'py> = (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>);

/// Of rows: first line and number of cells; of lines that are none: the malformed and the long ones.
type Lines<'py> = [Bound<'py, PyArray1<u64>>; 4];

/// Columns, how many rows there are, lines left out as malformed and as too long, and the numbers of lines.
type Rows<'py> = (Vec<Texts<'py>>, usize, (u64, u64), Lines<'py>);

/// A CSV file that is read where it is, from its first row on.
#[pyclass(frozen, name = "CsvReader", module = "userdp._core")]
pub(crate) struct PyCsvReader {
    content: Py<PyArray1<u8>>,
    reader: Mutex<Reader>,
    separator: u8,
    names: Vec<Vec<u8>>,
}

#[pymethods]
impl PyCsvReader {
    /// Of a file with a row of names, or of one whose rows have `width` cells.
    #[new]
    #[pyo3(signature = (content, *, separator, quote, escape, missing, letters = None, width = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        content: Bound<'_, PyArray1<u8>>,
        separator: u8,
        quote: &str,
        escape: bool,
        missing: Items<PyBackedBytes>,
        letters: Option<Items<Option<PyBackedBytes>>>,
        width: Option<usize>,
    ) -> PyResult<Self> {
        let quote = match quote {
            "rfc" => Quote::Rfc,
            "line" => Quote::Line,
            "none" => Quote::None,
            _ => return Err(PyValueError::new_err("quote: must be rfc, line or none")),
        };
        let missing = missing.iter().map(|word| word.to_vec()).collect();
        let letters = letters.map(|all| all.iter().map(|one| one.as_ref().map(|one| one.to_vec())).collect());
        let bytes = content.try_readonly()?;
        let bytes = bytes.as_slice()?;
        let (reader, names) = run(py, None, |_| {
            let dialect = Dialect::new(separator, quote, escape, missing, letters)?;
            match width {
                None => Reader::with_names(dialect, bytes),
                Some(width) => Ok((Reader::without_names(dialect, width, bytes), Vec::new())),
            }
        })?;
        let separator = reader.separator();
        Ok(Self { content: content.unbind(), reader: Mutex::new(reader), separator, names })
    }

    /// The first row, if it is one of names.
    #[getter]
    fn names(&self) -> Vec<&[u8]> {
        self.names.iter().map(Vec::as_slice).collect()
    }

    /// The byte between cells, which the file may have said.
    #[getter]
    fn separator(&self) -> u8 {
        self.separator
    }

    /// How many bytes were visited up to now, each as often as it was.
    fn steps(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(locked(py, &self.reader)?.steps())
    }

    /// The next rows: the cells of some columns, how many rows there are (0 at the end), how many lines were left out as
    /// malformed and as too long, and if asked for the numbers of lines.
    #[pyo3(signature = (columns, rows, *, lines = false))]
    fn batch<'py>(
        &self,
        py: Python<'py>,
        columns: Items<usize>,
        rows: usize,
        lines: bool,
    ) -> PyResult<Rows<'py>> {
        let bytes = self.content.bind(py).try_readonly()?;
        let bytes = bytes.as_slice()?;
        let mut guard = locked(py, &self.reader)?;
        let reader = &mut *guard;
        let batch = run(py, None, |control| reader.batch(bytes, &columns, rows, lines, control))?;
        let texts = batch
            .columns
            .into_iter()
            .map(|texts| (texts.content.into_pyarray(py), texts.offsets.into_pyarray(py)))
            .collect();
        let found = batch.lines;
        let numbers =
            [found.rows, found.cells, found.malformed, found.long].map(|list| list.into_pyarray(py));
        Ok((texts, batch.rows, batch.left_out, numbers))
    }
}
