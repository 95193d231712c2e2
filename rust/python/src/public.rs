//! Public randomness, and draws that users share by it.

use crate::{
    convert::{Items, Masses},
    run::{run, run_short},
};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::{prelude::*, pybacked::PyBackedBytes};
use userdp_core::{
    Result,
    control::Control,
    correlated::{
        darts,
        race::{self, Weights},
    },
    public::PublicSeed,
};

/// Work on fewer items than this is shorter than handing it to another thread.
const SHORT: usize = 1 << 14;

/// Runs work on so many items where it is fastest.
fn run_on<T: Send>(
    py: Python<'_>,
    items: usize,
    work: impl FnOnce(&Control) -> Result<T> + Send,
) -> PyResult<T> {
    if items < SHORT { run_short(|| work(&Control::new())) } else { run(py, None, work) }
}

/// 32 public bytes that address public random bits.
#[pyclass(frozen, name = "PublicSeed", module = "userdp._core")]
pub(crate) struct PyPublicSeed(PublicSeed);

#[pymethods]
impl PyPublicSeed {
    #[new]
    fn new(bytes: [u8; 32]) -> Self {
        Self(PublicSeed::new(bytes))
    }

    /// The block of 32 bytes at an address.
    fn block(&self, label: &str, i: u64, j: u64) -> PyResult<[u8; 32]> {
        run_short(|| Ok(self.0.block(label, i, j)))
    }

    /// The keys -ln E of the race at an address, shape (count,).
    fn race_keys<'py>(
        &self,
        py: Python<'py>,
        label: &str,
        i: u64,
        count: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let keys = run_on(py, count, |control| race::keys(&self.0, label, i, count, control))?;
        Ok(keys.into_pyarray(py))
    }

    /// The winner of the race at an address, for weights or their logarithms; with items, by their bytes.
    fn race(
        &self,
        py: Python<'_>,
        label: &str,
        i: u64,
        weights: &Bound<'_, PyArray1<f64>>,
        logarithms: bool,
        items: Option<Items<PyBackedBytes>>,
    ) -> PyResult<usize> {
        // Read where they are, without a copy: the borrow lasts as long as the work.
        let weights = weights.try_readonly()?;
        let values = weights.as_slice()?;
        let weights = if logarithms { Weights::Logarithms(values) } else { Weights::Plain(values) };
        run_on(py, values.len(), |control| match items {
            None => race::winner(&self.0, label, i, weights, control),
            Some(items) => race::winner_of_items(&self.0, label, i, &items, weights, control),
        })
    }

    /// The item of the first of at most `most` darts below its weight, or None.
    fn darts(
        &self,
        py: Python<'_>,
        label: &str,
        i: u64,
        weights: Items<u64>,
        total: u64,
        most: Option<u64>,
    ) -> PyResult<Option<usize>> {
        run_on(py, weights.len(), |control| darts::winner(&self.0, label, i, &weights, total, most, control))
    }
}

/// Integers of sum `total` next to `total` times the masses.
#[pyfunction]
pub(crate) fn quantized_masses(py: Python<'_>, masses: Masses, total: u64) -> PyResult<Vec<u64>> {
    run_on(py, masses.size(), |control| {
        darts::quantized(&masses.into_pmf("weights", control)?, total, control)
    })
}
