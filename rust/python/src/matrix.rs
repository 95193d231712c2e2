//! Matrices of pmfs, kept in the core between calls.

use crate::{
    convert::{Items, Masses, copied},
    run::{run, run_short},
};
use numpy::{PyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::sync::Arc;
use userdp_core::{family::PmfMatrix, pmf::Pmf};

/// N pmfs over the same k outputs, validated once.
#[pyclass(frozen, name = "PmfMatrix", module = "userdp._core")]
pub(crate) struct PyPmfMatrix(pub(crate) Arc<PmfMatrix<'static>>);

#[pymethods]
impl PyPmfMatrix {
    /// From a C-contiguous float64 array of shape (N, k), taken as exact dyadic numbers.
    #[staticmethod]
    fn from_floats(py: Python<'_>, masses: &Bound<'_, PyArray2<f64>>) -> PyResult<Self> {
        let outputs = masses.shape()[1];
        let masses = copied("masses", masses)?;
        run(py, None, |control| PmfMatrix::from_floats(masses, outputs, control))
            .map(|matrix| Self(Arc::new(matrix)))
    }

    /// From a C-contiguous float64 array of shape (N, k), every row taken over its exact sum.
    #[staticmethod]
    fn from_normalized(py: Python<'_>, masses: &Bound<'_, PyArray2<f64>>) -> PyResult<Self> {
        let outputs = masses.shape()[1];
        let masses = copied("masses", masses)?;
        run(py, None, |control| PmfMatrix::normalized(masses, outputs, control))
            .map(|matrix| Self(Arc::new(matrix)))
    }

    /// From pmfs of one length, each a float64 vector or (weights, total).
    #[staticmethod]
    fn from_masses(py: Python<'_>, masses: Items<Masses>) -> PyResult<Self> {
        run(py, None, |control| {
            let pmfs = masses
                .0
                .into_iter()
                .enumerate()
                .map(|(row, masses)| masses.into_pmf("pmfs", control).map_err(|error| error.in_row(row)))
                .collect::<Result<Vec<Pmf<'static>>, _>>()?;
            PmfMatrix::from_pmfs(pmfs)
        })
        .map(|matrix| Self(Arc::new(matrix)))
    }

    /// (N, k)
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.rows(), self.0.outputs())
    }

    /// The exact masses of one row, as fractions in lowest terms.
    fn row(&self, row: usize) -> PyResult<Vec<num_rational::BigRational>> {
        run_short(|| {
            if row >= self.0.rows() {
                return Err(userdp_core::Error::invalid("row", format!("{row} is out of range")));
            }
            let pmf = self.0.pmf(row);
            Ok(pmf.outputs().map(|output| pmf.mass(output).reduced()).collect())
        })
    }
}
