//! Stable families of deletion sets.

use crate::{
    convert::{Items, LevelArgument, level},
    matrix::PyPmfMatrix,
    run::{run, run_short},
    sampler::PySource,
};
use num_bigint::BigUint;
use num_rational::BigRational;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::sync::Arc;
use userdp_core::{
    Error,
    control::Control,
    stability::{self, Mixture, StableFamily, WindowTotal},
};

/// Which deletion vectors are stable. Vectors list the users deleted of each type, in the order of `counts`.
#[pyclass(frozen, name = "StableFamily", module = "userdp._core")]
pub(crate) struct PyStableFamily(pub(crate) Arc<StableFamily>);

impl PyStableFamily {
    fn check_vector(&self, vector: &[usize], name: &'static str) -> userdp_core::Result<()> {
        let counts = self.0.counts_by_type();
        if vector.len() != counts.len() || vector.iter().zip(&counts).any(|(x, count)| x > count) {
            return Err(Error::invalid(
                name,
                format!("{vector:?} is not between 0 and the counts {counts:?}"),
            ));
        }
        Ok(())
    }

    fn deletion_vector(&self, vector: &[usize], name: &'static str) -> userdp_core::Result<Vec<u16>> {
        self.check_vector(vector, name)?;
        if vector.iter().sum::<usize>() != self.0.deletions() {
            let message = format!("{vector:?} does not sum to the {} deletions", self.0.deletions());
            return Err(Error::invalid(name, message));
        }
        vector.iter().map(|&x| u16::try_from(x).map_err(|_| Error::invalid(name, "is too large"))).collect()
    }
}

/// A float64 vector.
type Floats<'py> = Bound<'py, PyArray1<f64>>;

/// Integer weights and the total they are over.
type Weights = (Vec<BigUint>, BigUint);

#[pymethods]
impl PyStableFamily {
    /// Everything is stable at first.
    #[new]
    fn new(counts: Items<usize>, deletions: usize, limit: usize) -> PyResult<Self> {
        run_short(|| StableFamily::new(&counts, deletions, limit)).map(|family| Self(Arc::new(family)))
    }

    /// (N, K): deletion vectors and types
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.rows(), self.0.types())
    }

    /// All deletion vectors, shape (N, K).
    fn vectors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u16>>> {
        let rows = run(py, None, |control| self.0.vectors(control))?;
        rows.into_pyarray(py).reshape([self.0.rows(), self.0.types()])
    }

    /// Makes all that is below both deletion vectors unstable; False when it was.
    fn mark(&self, a: Items<usize>, b: Items<usize>) -> PyResult<bool> {
        run_short(|| Ok(self.0.mark(&self.deletion_vector(&a, "a")?, &self.deletion_vector(&b, "b")?)))
    }

    /// Marks pairs of rows of `vectors()`, given by index.
    fn mark_rows(&self, py: Python<'_>, rows_a: Items<usize>, rows_b: Items<usize>) -> PyResult<()> {
        if rows_a.len() != rows_b.len() {
            let message = format!("rows_b: has {} rows where rows_a has {}", rows_b.len(), rows_a.len());
            return Err(PyValueError::new_err(message));
        }
        run(py, None, |control| {
            let types = self.0.types();
            let vectors = self.0.vectors(control)?;
            let row = |index: usize| {
                let row = vectors.get(index.saturating_mul(types)..).and_then(|rest| rest.get(..types));
                row.ok_or_else(|| Error::invalid("rows", format!("row {index} is out of range")))
            };
            for (index, (&a, &b)) in rows_a.iter().zip(rows_b.iter()).enumerate() {
                if index % 64 == 0 {
                    control.check()?;
                }
                self.0.mark(row(a)?, row(b)?);
            }
            Ok(())
        })
    }

    /// Marks all pairs of rows that are not within (epsilon, delta); row i of the matrix belongs to row i of
    /// `vectors()`, and incompatible rows are far from everything.
    #[pyo3(signature = (matrix, epsilon, delta, incompatible, progress=None))]
    fn mark_bad_pairs(
        &self,
        py: Python<'_>,
        matrix: &PyPmfMatrix,
        epsilon: LevelArgument<'_>,
        delta: BigRational,
        incompatible: Items<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let level = level(&epsilon);
        run(py, progress, |control| self.0.mark_bad_pairs(&matrix.0, &level, &delta, &incompatible, control))
    }

    fn is_stable(&self, s: Items<usize>) -> PyResult<bool> {
        run_short(|| {
            self.check_vector(&s, "s")?;
            Ok(self.0.is_stable(&s))
        })
    }

    /// The size of the smallest stable set; None when it exceeds the limit.
    fn smallest_stable_size(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        run(py, None, |control| self.0.smallest_stable_size(control))
    }

    /// The number of stable sets of each size 0, ..., limit.
    #[pyo3(signature = (progress=None))]
    fn layer_sizes(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<Vec<BigUint>> {
        run(py, progress, |control| self.0.layer_sizes(control))
    }

    /// Deletion vectors of a uniform stable set of size r and of a uniform superset of the size of all deletions;
    /// `below(n)` draws a uniform integer from 0 to n - 1.
    fn sample(&self, r: usize, below: Py<PyAny>, py: Python<'_>) -> PyResult<(Vec<usize>, Vec<usize>)> {
        let mut failure = None;
        let outcome = run_short(|| {
            let mut draw = |bound: &BigUint| {
                let drawn = below.call1(py, (bound.clone(),)).and_then(|drawn| drawn.extract::<BigUint>(py));
                match drawn {
                    Ok(drawn) if drawn < *bound => Ok(drawn),
                    Ok(drawn) => Err(Error::invalid("below", format!("gave {drawn} for {bound}"))),
                    Err(error) => {
                        failure = Some(error);
                        Err(Error::Canceled)
                    }
                }
            };
            self.0.sample(r, &mut draw, &Control::new())
        });
        match failure {
            Some(error) => Err(error),
            None => outcome,
        }
    }

    /// Draws these, and an output with exactly its mass in the row of the superset; row i of the matrix belongs to
    /// row i of `vectors()`.
    fn draw(&self, py: Python<'_>, r: usize, matrix: &PyPmfMatrix, source: &PySource) -> PyResult<usize> {
        run(py, None, |control| source.with(|source| self.0.draw(r, &matrix.0, source, control)))
    }

    /// Integer weights of the deletion vectors over a total, for sizes of probability `mixture[r] / total`.
    fn exact_distribution(
        &self,
        py: Python<'_>,
        mixture: Items<BigUint>,
        total: BigUint,
    ) -> PyResult<Weights> {
        run(py, None, |control| self.0.exact_distribution(&Mixture::new(mixture.0, total)?, control))
    }

    /// The same as floats, and a bound on their relative error.
    #[pyo3(signature = (mixture, total, progress=None))]
    fn distribution<'py>(
        &self,
        py: Python<'py>,
        mixture: Items<BigUint>,
        total: BigUint,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Floats<'py>, f64)> {
        let distribution =
            run(py, progress, |control| self.0.distribution(&Mixture::new(mixture.0, total)?, control))?;
        Ok((distribution.masses.into_pyarray(py), distribution.relative_error))
    }

    /// Integer weights of the outputs over a total; row i of the matrix belongs to row i of `vectors()`.
    fn exact_output_distribution(
        &self,
        py: Python<'_>,
        mixture: Items<BigUint>,
        total: BigUint,
        matrix: &PyPmfMatrix,
    ) -> PyResult<Weights> {
        run(py, None, |control| {
            self.0.exact_output_distribution(&Mixture::new(mixture.0, total)?, &matrix.0, control)
        })
    }

    /// Floats below and above the probabilities of the outputs.
    #[pyo3(signature = (mixture, total, matrix, progress=None))]
    fn output_bounds<'py>(
        &self,
        py: Python<'py>,
        mixture: Items<BigUint>,
        total: BigUint,
        matrix: &PyPmfMatrix,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Floats<'py>, Floats<'py>)> {
        let (lower, upper) = run(py, progress, |control| {
            self.0.distribution(&Mixture::new(mixture.0, total)?, control)?.output_bounds(&matrix.0, control)
        })?;
        Ok((lower.into_pyarray(py), upper.into_pyarray(py)))
    }
}

/// (r*, start of the window) for sorted values; None when r* exceeds the limit.
#[pyfunction]
pub(crate) fn smallest_window(
    py: Python<'_>,
    values: Items<i64>,
    deletions: usize,
    distance: u64,
    limit: usize,
) -> PyResult<Option<(usize, usize)>> {
    run(py, None, |control| stability::smallest_window(&values, deletions, distance, limit, control))
}

/// (smallest total, step, integer weights, their total) of the users kept from a window of sorted values.
#[pyfunction]
pub(crate) fn window_total_weights(
    py: Python<'_>,
    values: Items<i64>,
    deletions: usize,
    start: usize,
    r: usize,
) -> PyResult<(i128, u64, Vec<BigUint>, BigUint)> {
    run(py, None, |control| {
        let distribution = WindowTotal::new(&values, deletions, start, r)?;
        let (weights, total) = distribution.exact(control)?;
        Ok((distribution.totals().first, distribution.totals().step, weights, total))
    })
}

/// (smallest total, step, float masses, bound on their relative error) of the same.
#[pyfunction]
pub(crate) fn window_total_distribution(
    py: Python<'_>,
    values: Items<i64>,
    deletions: usize,
    start: usize,
    r: usize,
) -> PyResult<(i128, u64, Floats<'_>, f64)> {
    let (totals, masses, error) = run(py, None, |control| {
        let distribution = WindowTotal::new(&values, deletions, start, r)?;
        let (masses, error) = distribution.floats(control)?;
        Ok((distribution.totals(), masses, error))
    })?;
    Ok((totals.first, totals.step, masses.into_pyarray(py), error))
}
