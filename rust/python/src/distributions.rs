//! Exact distributions: coins, uniform integers, indices, counts and waiting times.

use crate::{
    convert::{Items, LevelArgument, level},
    run::{run, run_short},
    sampler::{PySource, draw_many},
};
use num_bigint::BigUint;
use num_rational::BigRational;
use numpy::PyArray1;
use pyo3::prelude::*;
use userdp_core::{
    Error,
    sampler::{
        Categorical, Coin, Geometric, NegativeBinomialTable, TwoSidedGeometric, Uniform, uniform::shifted,
    },
};

/// The steps of a draw that takes a logarithm of long integers, compared with one entry of a table.
const LOGARITHM_STEPS: usize = 1 << 12;

type Draws<'py> = PyResult<Bound<'py, PyArray1<i64>>>;

/// 1 with an exact probability, rational or a power of e.
#[pyclass(frozen, name = "Coin", module = "userdp._core")]
pub(crate) struct PyCoin(Coin);

#[pymethods]
impl PyCoin {
    /// The coin of a Fraction in [0, 1].
    #[staticmethod]
    fn rational(probability: BigRational) -> PyResult<Self> {
        run_short(|| Coin::rational(probability)).map(Self)
    }

    /// The coin of e^-x, for a Fraction x >= 0.
    #[staticmethod]
    fn exp_of_minus(x: BigRational) -> PyResult<Self> {
        run_short(|| Coin::exp_of_minus(x)).map(Self)
    }

    /// One toss.
    fn sample(&self, py: Python<'_>, source: &PySource) -> PyResult<u64> {
        source.draw(py, |source| self.0.draw(source))
    }

    /// Independent tosses, shape (size,).
    fn sample_many<'py>(&self, py: Python<'py>, source: &PySource, size: usize) -> Draws<'py> {
        draw_many(py, source, size, 1, |source, draws, control| self.0.draw_many(source, draws, control))
    }
}

/// The integers low, ..., low + count - 1 of 64 bits, all equally likely.
#[pyclass(frozen, name = "UniformInteger", module = "userdp._core")]
pub(crate) struct PyUniformInteger {
    low: i64,
    distribution: Uniform,
}

#[pymethods]
impl PyUniformInteger {
    #[new]
    fn new(low: i64, count: BigUint) -> PyResult<Self> {
        Ok(Self { low, distribution: run_short(|| Uniform::new(&count))? })
    }

    /// One draw.
    fn sample(&self, py: Python<'_>, source: &PySource) -> PyResult<i64> {
        source.draw(py, |source| self.distribution.draw(source).map(|value| shifted(self.low, value)))
    }

    /// Independent draws, shape (size,).
    fn sample_many<'py>(&self, py: Python<'py>, source: &PySource, size: usize) -> Draws<'py> {
        draw_many(py, source, size, 1, |source, draws, control| {
            self.distribution.draw_many(self.low, source, draws, control)
        })
    }
}

/// Indices with probabilities proportional to integers of total at most 2^128.
#[pyclass(frozen, name = "Categorical", module = "userdp._core")]
pub(crate) struct PyCategorical(Categorical);

#[pymethods]
impl PyCategorical {
    #[new]
    fn new(weights: Items<BigUint>) -> PyResult<Self> {
        run_short(|| Categorical::new(&weights)).map(Self)
    }

    /// One draw.
    fn sample(&self, py: Python<'_>, source: &PySource) -> PyResult<u64> {
        source.draw(py, |source| self.0.draw(source))
    }

    /// Independent draws, shape (size,).
    fn sample_many<'py>(&self, py: Python<'py>, source: &PySource, size: usize) -> Draws<'py> {
        draw_many(py, source, size, 1 + self.0.steps(), |source, draws, control| {
            self.0.draw_many(source, draws, control)
        })
    }
}

/// Negative binomial counts as integers over 2^128, with a certified distance to the ideal distribution.
#[pyclass(frozen, name = "NegativeBinomialTable", module = "userdp._core")]
pub(crate) struct PyNegativeBinomialTable(NegativeBinomialTable);

#[pymethods]
impl PyNegativeBinomialTable {
    #[new]
    fn new(py: Python<'_>, r: BigRational, p: BigRational) -> PyResult<Self> {
        run(py, None, |control| NegativeBinomialTable::new(&r, &p, control)).map(Self)
    }

    /// The numerators over 2^128 of 0, 1, ....
    #[getter]
    fn numerators(&self) -> Vec<BigUint> {
        self.0.numerators().to_vec()
    }

    /// The bound on the distance, times 2^128.
    #[getter]
    fn remainder(&self) -> BigUint {
        self.0.remainder().clone()
    }

    /// One draw.
    fn sample(&self, py: Python<'_>, source: &PySource) -> PyResult<u64> {
        source.draw(py, |source| self.0.table().draw(source))
    }

    /// Independent draws, shape (size,).
    fn sample_many<'py>(&self, py: Python<'py>, source: &PySource, size: usize) -> Draws<'py> {
        draw_many(py, source, size, self.0.numerators().len(), |source, draws, control| {
            self.0.table().draw_many(source, draws, control)
        })
    }
}

/// The number of failures before the first success.
#[pyclass(frozen, name = "Geometric", module = "userdp._core")]
pub(crate) struct PyGeometric(Geometric);

#[pymethods]
impl PyGeometric {
    #[new]
    fn new(p: BigRational) -> PyResult<Self> {
        run_short(|| Geometric::new(&p)).map(Self)
    }

    /// One draw.
    fn sample(&self, py: Python<'_>, source: &PySource) -> PyResult<i64> {
        source.draw(py, |source| self.0.draw(source))
    }

    /// Independent draws, shape (size,).
    fn sample_many<'py>(&self, py: Python<'py>, source: &PySource, size: usize) -> Draws<'py> {
        draw_many(py, source, size, LOGARITHM_STEPS, |source, draws, control| {
            self.0.draw_many(source, draws, control)
        })
    }
}

/// The discrete Laplace distribution on all integers: P[x] proportional to e^(-epsilon |x| / sensitivity).
#[pyclass(frozen, name = "TwoSidedGeometric", module = "userdp._core")]
pub(crate) struct PyTwoSidedGeometric(TwoSidedGeometric);

#[pymethods]
impl PyTwoSidedGeometric {
    #[new]
    fn new(epsilon: LevelArgument<'_>, sensitivity: BigRational) -> PyResult<Self> {
        let level = level(&epsilon);
        run_short(|| TwoSidedGeometric::new((*level).clone(), sensitivity, "scale")).map(Self)
    }

    /// Floats around P[x] for |x| = distance.
    fn probability(&self, distance: BigUint) -> PyResult<(f64, f64)> {
        run_short(|| Ok(self.0.probability(&distance)))
    }

    /// One draw.
    fn sample(&self, py: Python<'_>, source: &PySource) -> PyResult<i64> {
        source.draw(py, |source| self.0.draw(source))
    }

    /// Independent draws, shape (size,).
    fn sample_many<'py>(&self, py: Python<'py>, source: &PySource, size: usize) -> Draws<'py> {
        draw_many(py, source, size, LOGARITHM_STEPS, |source, draws, control| {
            self.0.draw_many(source, draws, control)
        })
    }
}

/// Independent uniform subsets of 0, ..., population - 1, each in increasing order, one after the other: shape
/// (number * size,).
#[pyfunction]
pub(crate) fn random_subsets<'py>(
    py: Python<'py>,
    source: &PySource,
    population: usize,
    size: usize,
    number: usize,
) -> Draws<'py> {
    let steps = LOGARITHM_STEPS;
    draw_many(py, source, number.saturating_mul(size), steps, |source, draws, control| {
        if size == 0 {
            return Ok(());
        }
        for subset in draws.chunks_mut(size) {
            control.advance(1)?;
            for (place, element) in subset.iter_mut().zip(source.subset(population, size, control)?) {
                *place = i64::try_from(element)
                    .map_err(|_| Error::invalid("population", "must be at most 2^63"))?;
            }
        }
        Ok(())
    })
}
