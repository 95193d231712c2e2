//! Noise and messages of protocols behind a shuffler.

use crate::{
    convert::{LevelArgument, level},
    run::run,
    sampler::PySource,
};
use num_bigint::BigUint;
use num_rational::BigRational;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use userdp_core::{
    Error,
    exact::{
        Interval,
        rounding::{Direction, rational_to_f64},
    },
    memory,
    protocol::shuffle::{self, Change, Goal, NegativeBinomialDistribution, ShuffleNoise},
};

type Enclosure = (BigRational, BigRational);
type Messages<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>);

fn change(two_counts: bool) -> Change {
    if two_counts { Change::TwoCounts } else { Change::OneCount }
}

fn ends(enclosure: &Interval) -> Enclosure {
    (enclosure.lower.to_rational(), enclosure.upper.to_rational())
}

/// Fractions around the divergence of neighboring counts with NB(r, p) noise.
#[pyfunction]
pub(crate) fn negative_binomial_divergence(
    py: Python<'_>,
    r: BigRational,
    p: BigRational,
    epsilon: LevelArgument<'_>,
    two_counts: bool,
) -> PyResult<Enclosure> {
    let level = level(&epsilon);
    run(py, None, |control| {
        let distribution = NegativeBinomialDistribution::new(&r, &p, control)?;
        shuffle::divergence(&distribution, &level, change(two_counts), control).map(|found| ends(&found))
    })
}

/// The noise that a number of honest users add up to.
#[pyclass(frozen, name = "ShuffleNoise", module = "userdp._core")]
pub(crate) struct PyShuffleNoise(ShuffleNoise);

#[pymethods]
impl PyShuffleNoise {
    #[new]
    fn new(py: Python<'_>, r: BigRational, p: BigRational, users: u64, two_counts: bool) -> PyResult<Self> {
        run(py, None, |control| ShuffleNoise::new(&r, &p, users, change(two_counts), control)).map(Self)
    }

    /// Noise that is certified for epsilon and delta, with a small mean, or a small quantile when there is a beta.
    #[staticmethod]
    fn calibrated(
        py: Python<'_>,
        epsilon: LevelArgument<'_>,
        delta: BigRational,
        users: u64,
        all_users: u64,
        two_counts: bool,
        beta: Option<BigRational>,
    ) -> PyResult<Self> {
        let level = level(&epsilon);
        let goal = beta.map_or(Goal::Mean, |beta| Goal::Quantile(rational_to_f64(&beta, Direction::Nearest)));
        run(py, None, |control| {
            ShuffleNoise::calibrated(&level, &delta, users, all_users, change(two_counts), goal, control)
        })
        .map(Self)
    }

    #[getter]
    fn r(&self) -> BigRational {
        self.0.distribution().r().clone()
    }

    #[getter]
    fn p(&self) -> BigRational {
        self.0.distribution().p().clone()
    }

    /// The numerators over 2^128 of what one user draws.
    #[getter]
    fn numerators(&self) -> Vec<BigUint> {
        self.0.table().numerators().to_vec()
    }

    /// Fractions around the least delta at this level, for what is drawn.
    fn delta(&self, py: Python<'_>, epsilon: LevelArgument<'_>) -> PyResult<Enclosure> {
        let level = level(&epsilon);
        run(py, None, |control| self.0.delta(&level, control).map(|found| ends(&found)))
    }

    /// A number that the noise of all users together exceeds with probability at most beta.
    fn quantile(&self, py: Python<'_>, beta: BigRational, all_users: u64) -> PyResult<Option<usize>> {
        run(py, None, |control| self.0.quantile(&beta, all_users, control))
    }

    /// The bucket of every message, user by user, and how many messages each user has.
    fn reports<'py>(
        &self,
        py: Python<'py>,
        items: PyReadonlyArray1<'_, i64>,
        buckets: u32,
        complement: bool,
        source: &PySource,
    ) -> PyResult<Messages<'py>> {
        let items = items.as_slice()?;
        let sent = run(py, None, |control| {
            source.with(|source| {
                shuffle::reports(self.0.table().table(), items, buckets, complement, source, control)
            })
        })?;
        Ok((sent.messages.into_pyarray(py), sent.counts.into_pyarray(py)))
    }
}

/// 0, ..., size - 1 in a uniformly random order.
#[pyfunction]
pub(crate) fn random_permutation<'py>(
    py: Python<'py>,
    source: &PySource,
    size: i64,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let order = run(py, None, |control| {
        let len = usize::try_from(size).map_err(|_| Error::invalid("size", "must be at least 0"))?;
        let mut order: Vec<i64> = memory::limited("size", len, "permute in parts")?;
        order.extend(0..size);
        source.with(|source| shuffle::permute(&mut order, source, control))?;
        Ok(order)
    })?;
    Ok(order.into_pyarray(py))
}
