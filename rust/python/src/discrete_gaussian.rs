//! Discrete Gaussian noise on integers.

use crate::{
    convert::copied,
    run::run,
    sampler::{PySource, draw_many},
};
use num_bigint::BigUint;
use num_rational::BigRational;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use userdp_core::{ct::Secret, sampler::DiscreteGaussian};

/// A trial costs about as much as this many comparisons.
const TRIAL_STEPS: usize = 1 << 7;

/// Noise with a distribution near e^(-x^2 / (2 `sigma_squared`)).
#[pyclass(frozen, name = "DiscreteGaussian", module = "userdp._core")]
pub(crate) struct PyDiscreteGaussian(DiscreteGaussian);

#[pymethods]
impl PyDiscreteGaussian {
    #[new]
    fn new(py: Python<'_>, sigma_squared: BigRational) -> PyResult<Self> {
        run(py, None, |_| DiscreteGaussian::new(sigma_squared)).map(Self)
    }

    /// A bound of the total variation between the noise and the ideal distribution.
    #[getter]
    fn distance(&self) -> BigRational {
        self.0.distance().clone()
    }

    /// The largest |x|.
    #[getter]
    fn support(&self) -> u64 {
        self.0.support()
    }

    /// The weights of |x| = 0, ..., support.
    fn weights(&self, py: Python<'_>) -> PyResult<Vec<BigUint>> {
        run(py, None, |control| self.0.weights(control))
    }

    /// One release. Secret: `value`.
    fn release(&self, py: Python<'_>, value: i64, source: &PySource) -> PyResult<i64> {
        source.draw(py, |source| self.0.release(source, value))
    }

    /// A release for each value, shape (size,). Secret: the values.
    fn release_many<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray1<'py, i64>,
        source: &PySource,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let values = Secret::new(copied("values", &values)?);
        draw_many(py, source, values.len(), TRIAL_STEPS, |source, releases, control| {
            releases.copy_from_slice(&values);
            self.0.release_many(source, releases, control)
        })
    }
}
