//! Public randomness, and draws that users share by it.

use crate::run::{run, run_short};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use userdp_core::{correlated::race, public::PublicSeed};

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
        Ok(run(py, None, |control| race::keys(&self.0, label, i, count, control))?.into_pyarray(py))
    }
}
