//! Exact composition of releases.

use crate::{
    convert::{Items, LevelArgument, level},
    run::{run, run_short},
};
use num_bigint::BigUint;
use num_rational::BigRational;
use pyo3::{exceptions::PyValueError, prelude::*};
use std::sync::Arc;
use userdp_core::composition::{self, Composed, LargestLoss, Multiplier, Options, Release, Sampling};

/// One release, as what bounds its privacy loss.
#[pyclass(frozen, name = "Release", module = "userdp._core")]
pub(crate) struct PyRelease(Arc<Release>);

fn multiplier(level: &LevelArgument<'_>) -> Multiplier {
    let level = crate::convert::level(level);
    Multiplier { ratio: level.ratio().clone(), exponent: level.exponent().clone() }
}

#[pymethods]
impl PyRelease {
    /// Two distributions by their integer weights.
    #[staticmethod]
    fn from_weights(py: Python<'_>, p: Items<BigUint>, q: Items<BigUint>, limbs: usize) -> PyResult<Self> {
        run(py, None, |control| Release::from_weights(&p, &q, limbs, control)).map(Self::new)
    }

    /// All (epsilon, delta)-DP mechanisms.
    #[staticmethod]
    fn pure(py: Python<'_>, epsilon: LevelArgument<'_>, delta: BigRational, limbs: usize) -> PyResult<Self> {
        let epsilon = multiplier(&epsilon);
        run(py, None, |_| Release::pure(&epsilon, &delta, limbs)).map(Self::new)
    }

    /// Discrete Laplace noise.
    #[staticmethod]
    fn discrete_laplace(py: Python<'_>, rate: LevelArgument<'_>, shift: u32, limbs: usize) -> PyResult<Self> {
        let rate = multiplier(&rate);
        run(py, None, |control| Release::discrete_laplace(&rate, shift, limbs, control)).map(Self::new)
    }

    /// Discrete Gaussian noise.
    #[staticmethod]
    fn discrete_gaussian(
        py: Python<'_>,
        sigma_squared: BigRational,
        shift: u32,
        limbs: usize,
    ) -> PyResult<Self> {
        run(py, None, |control| Release::discrete_gaussian(&sigma_squared, shift, limbs, control))
            .map(Self::new)
    }

    /// All mechanisms of a bounded range.
    #[staticmethod]
    fn bounded_range(range: LevelArgument<'_>) -> PyResult<Self> {
        run_short(|| Release::bounded_range(&multiplier(&range))).map(Self::new)
    }

    /// Continuous Laplace noise, by sensitivity / scale.
    #[staticmethod]
    fn laplace(epsilon: LevelArgument<'_>) -> PyResult<Self> {
        run_short(|| Release::laplace(&multiplier(&epsilon))).map(Self::new)
    }

    /// The Gaussian mechanism with means mu apart, on all users or on a sample: the pair of removing one, of adding one, or
    /// of replacing one in a sample of a fixed size.
    #[staticmethod]
    #[pyo3(signature = (mu_squared, rate=None, addition=false, replacement=false))]
    fn gaussian(
        mu_squared: BigRational,
        rate: Option<BigRational>,
        addition: bool,
        replacement: bool,
    ) -> PyResult<Self> {
        let sampling = match rate {
            None => Sampling::None,
            Some(rate) if replacement => Sampling::Replacement(rate),
            Some(rate) if addition => Sampling::Addition(rate),
            Some(rate) => Sampling::Removal(rate),
        };
        run_short(|| Release::gaussian(mu_squared, sampling)).map(Self::new)
    }

    /// Integer weights at equally spaced losses, and at infinity.
    #[staticmethod]
    fn from_table(
        py: Python<'_>,
        weights: Items<BigUint>,
        infinity: BigUint,
        low: i64,
        step: BigRational,
        limbs: usize,
    ) -> PyResult<Self> {
        run(py, None, |control| Release::from_table(&weights, &infinity, low, &step, limbs, control))
            .map(Self::new)
    }
}

impl PyRelease {
    fn new(release: Release) -> Self {
        Self(Arc::new(release))
    }
}

/// Releases and how often each is made.
fn parts(releases: &[Py<PyRelease>], counts: &[u64]) -> PyResult<Vec<(Release, u64)>> {
    if releases.len() != counts.len() {
        return Err(PyValueError::new_err("counts must have an entry for each release"));
    }
    Ok(releases.iter().zip(counts).map(|(release, count)| ((*release.get().0).clone(), *count)).collect())
}

/// Floats at or below the sum of the largest losses, and at or above it; None where it is infinite.
#[pyfunction]
pub(crate) fn largest_loss(
    py: Python<'_>,
    releases: Items<Py<PyRelease>>,
    counts: Items<u64>,
) -> PyResult<Option<(f64, f64)>> {
    let parts = parts(&releases, &counts)?;
    let largest = run(py, None, |_| Ok(LargestLoss::of(&parts)))?;
    let bounds = largest.map(|largest| largest.sum.to_f64_bounds());
    Ok(bounds.map(|(low, high)| (low.max(0.0), high.max(0.0))))
}

/// Whether the sum of the largest losses is certainly at most a level.
#[pyfunction]
pub(crate) fn largest_loss_at_most(
    py: Python<'_>,
    releases: Items<Py<PyRelease>>,
    counts: Items<u64>,
    epsilon: LevelArgument<'_>,
) -> PyResult<bool> {
    let level = level(&epsilon);
    let parts = parts(&releases, &counts)?;
    run(py, None, |_| Ok(LargestLoss::of(&parts).is_some_and(|largest| largest.is_at_most(&level))))
}

/// A composition, to be asked for delta and epsilon.
#[pyclass(frozen, name = "Composed", module = "userdp._core")]
pub(crate) struct PyComposed(Composed);

#[pymethods]
impl PyComposed {
    /// Releases, each so many times.
    #[new]
    #[pyo3(signature = (releases, counts, *, limbs, resolution, cut, max_terms, reach, progress=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        releases: Items<Py<PyRelease>>,
        counts: Items<u64>,
        limbs: usize,
        resolution: BigRational,
        cut: BigUint,
        max_terms: usize,
        reach: f64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let parts = parts(&releases, &counts)?;
        let options = Options { limbs, resolution, cut, max_terms, reach };
        run(py, progress, |control| composition::compose(&parts, &options, control)).map(Self)
    }

    #[getter]
    fn terms(&self) -> usize {
        self.0.terms()
    }

    /// Whether nothing was moved, so that both bounds differ by rounding alone.
    #[getter]
    fn on_lattice(&self) -> bool {
        self.0.on_lattice()
    }

    /// How much of delta is due to rounding and cuts.
    #[getter]
    fn charge(&self) -> BigRational {
        self.0.charge()
    }

    /// Floats at or above all finite losses, integer masses there, and the mass at infinity in the same units.
    fn losses(&self, py: Python<'_>) -> PyResult<(Vec<f64>, Vec<BigUint>, BigUint)> {
        run(py, None, |_| Ok(self.0.losses()))
    }

    /// Fractions at or below delta, and at or above it.
    fn delta(&self, py: Python<'_>, epsilon: LevelArgument<'_>) -> PyResult<(BigRational, BigRational)> {
        let level = level(&epsilon);
        run(py, None, |_| Ok(self.0.delta(&level)))
    }

    /// Floats at or below epsilon, and at or above it.
    fn epsilon(&self, py: Python<'_>, delta: BigRational) -> PyResult<(f64, f64)> {
        run(py, None, |_| {
            let above = self.0.epsilon_above(&delta);
            Ok((self.0.epsilon_below(&delta, above), above))
        })
    }
}
