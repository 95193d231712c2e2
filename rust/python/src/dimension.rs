//! Dimensions of 0/1 matrices, and the standard optimal algorithm on them.

use crate::{
    convert::Items,
    run::{locked, run, run_short},
};
use numpy::{PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::{prelude::*, types::PyBytes};
use std::sync::{Arc, Mutex, MutexGuard};
use userdp_core::{
    Error,
    control::Control,
    dimension::{self, Concepts, VersionSpaces},
};

/// A class of concepts given as a matrix, and what is known of its subsets so far.
#[pyclass(frozen, name = "VersionSpaces", module = "userdp._core")]
pub(crate) struct PyVersionSpaces {
    /// Never changes, so that nobody who asks about it waits for a search.
    concepts: Arc<Concepts>,
    spaces: Mutex<VersionSpaces>,
}

impl PyVersionSpaces {
    /// What is known, once no other call works on it: without the interpreter lock while waiting, and until Ctrl-C.
    fn spaces(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, VersionSpaces>> {
        // Proved bounds, each written at once: a panic elsewhere leaves none half written.
        locked(py, &self.spaces)
    }
}

/// Version spaces for which no thread is started.
const AT_ONCE: u64 = 64;

/// Asks `question(budget, control)`: on this thread when the answer is near, and otherwise as a long computation. What
/// the first attempt found out is kept.
fn ask<T: Send>(
    py: Python<'_>,
    mut question: impl FnMut(u64, &Control) -> userdp_core::Result<T> + Send,
) -> PyResult<T> {
    let quick = py.detach(|| {
        run_short(|| match question(AT_ONCE, &Control::new()) {
            Err(Error::TooLarge { .. }) => Ok(None),
            answer => answer.map(Some),
        })
    })?;
    match quick {
        Some(answer) => Ok(answer),
        None => run(py, None, |control| question(u64::MAX, control)),
    }
}

fn row<'py>(py: Python<'py>, labels: &[bool]) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = labels.iter().copied().map(u8::from).collect();
    PyBytes::new(py, &bytes)
}

#[pymethods]
impl PyVersionSpaces {
    /// From a C-contiguous uint8 array of shape (concepts, points) with entries 0 and 1.
    #[new]
    fn new(matrix: &Bound<'_, PyArray2<u8>>) -> PyResult<Self> {
        let columns = matrix.shape()[1];
        let entries = matrix.try_readonly()?;
        let entries = entries.as_slice()?;
        run_short(|| {
            let concepts = Arc::new(Concepts::new(entries, columns)?);
            Ok(Self { spaces: Mutex::new(VersionSpaces::new(Arc::clone(&concepts))), concepts })
        })
    }

    /// (distinct concepts, points that are neither constant nor repeat or negate another)
    #[getter]
    fn reduced_shape(&self) -> (usize, usize) {
        (self.concepts.concepts(), self.concepts.points())
    }

    /// How many columns are neither constant nor repeat another.
    #[getter]
    fn distinct_columns(&self) -> usize {
        self.concepts.distinct_columns().len()
    }

    /// The columns of a largest shattered set.
    #[pyo3(signature = (budget, progress=None))]
    fn shattered(&self, py: Python<'_>, budget: u64, progress: Option<Py<PyAny>>) -> PyResult<Vec<usize>> {
        run(py, progress, |control| dimension::shattered(&self.concepts, budget, control))
    }

    /// The most patterns on k points.
    #[pyo3(signature = (k, budget, progress=None))]
    fn growth(&self, py: Python<'_>, k: usize, budget: u64, progress: Option<Py<PyAny>>) -> PyResult<usize> {
        run(py, progress, |control| dimension::growth(&self.concepts, k, budget, control))
    }

    /// The Littlestone dimension.
    #[pyo3(signature = (budget, progress=None))]
    fn littlestone(&self, py: Python<'_>, budget: u64, progress: Option<Py<PyAny>>) -> PyResult<usize> {
        let spaces = &mut *self.spaces(py)?;
        run(py, progress, |control| spaces.littlestone(budget, control))
    }

    /// (columns at the inner nodes in heap order, rows at the leaves) of a deepest shattered tree.
    #[pyo3(signature = (budget, progress=None))]
    fn mistake_tree(
        &self,
        py: Python<'_>,
        budget: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Vec<usize>, Vec<usize>)> {
        let spaces = &mut *self.spaces(py)?;
        let tree = run(py, progress, |control| spaces.mistake_tree(budget, control))?;
        Ok((tree.points, tree.concepts))
    }

    /// (predictions at all columns, mistakes) of the standard optimal algorithm after a sample of (column, label).
    fn standard_optimal<'py>(
        &self,
        py: Python<'py>,
        sample: Items<(usize, bool)>,
    ) -> PyResult<(Bound<'py, PyBytes>, usize)> {
        let spaces = &mut *self.spaces(py)?;
        let prediction = ask(py, |budget, control| spaces.standard_optimal(&sample, budget, control))?;
        Ok((row(py, &prediction.labels), prediction.mistakes))
    }

    /// The predictions that the algorithm may end with on concepts that explain a sample.
    fn explanations<'py>(
        &self,
        py: Python<'py>,
        sample: Items<(usize, bool)>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let spaces = &mut *self.spaces(py)?;
        let rows = ask(py, |budget, control| spaces.explanations(&sample, budget, control))?;
        Ok(rows.iter().map(|labels| row(py, labels)).collect())
    }
}
