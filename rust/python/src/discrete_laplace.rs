//! Discrete Laplace noise on values in a range.

use crate::{
    convert::{LevelArgument, copied, level},
    run::run,
    sampler::{PySource, draw_many},
};
use num_bigint::BigUint;
use num_rational::BigRational;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use userdp_core::{ct::Secret, sampler::DiscreteLaplaceTables};

/// Noise for values in low, ..., high, as two certified tables.
#[pyclass(frozen, name = "DiscreteLaplaceTables", module = "userdp._core")]
pub(crate) struct PyDiscreteLaplaceTables(DiscreteLaplaceTables);

#[pymethods]
impl PyDiscreteLaplaceTables {
    #[new]
    #[pyo3(signature = (level_per_unit, low, high, low_bits=None))]
    fn new(
        py: Python<'_>,
        level_per_unit: LevelArgument<'_>,
        low: i64,
        high: i64,
        low_bits: Option<u32>,
    ) -> PyResult<Self> {
        let level = level(&level_per_unit);
        run(py, None, |control| DiscreteLaplaceTables::with_low_bits(&level, low, high, low_bits, control))
            .map(Self)
    }

    /// The center Z, the high digits A, the rest T (over 2^127), the low digits B (over 2^128), and s.
    #[getter]
    fn digits(&self) -> (BigUint, Vec<BigUint>, BigUint, Vec<BigUint>, u32) {
        let digits = self.0.digits();
        (
            digits.center.clone(),
            digits.high.clone(),
            digits.rest.clone(),
            digits.low.clone(),
            digits.flat_bits,
        )
    }

    #[getter]
    fn bytes_per_draw(&self) -> usize {
        self.0.bytes_per_draw()
    }

    #[getter]
    fn steps_per_draw(&self) -> usize {
        self.0.steps_per_draw()
    }

    /// A bound of the ratio of the probabilities of an output for values a unit apart.
    #[getter]
    fn largest_ratio(&self, py: Python<'_>) -> PyResult<BigRational> {
        run(py, None, |_| Ok(self.0.largest_ratio()))
    }

    /// The numerators of low, ..., high for a value, over 2^bits, and bits.
    fn numerators(&self, py: Python<'_>, value: i64) -> PyResult<(Vec<BigUint>, u32)> {
        run(py, None, |control| self.0.distribution(value, control))
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
        draw_many(py, source, values.len(), self.0.steps_per_draw(), |source, releases, control| {
            releases.copy_from_slice(&values);
            self.0.release_many(source, releases, control)
        })
    }
}
