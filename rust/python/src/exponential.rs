//! The exponential mechanism on integer scores.

use crate::{
    convert::{LevelArgument, copied, level},
    run::{run, run_short},
    sampler::{PySource, draw_many},
};
use num_bigint::BigUint;
use num_rational::BigRational;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use userdp_core::{
    control::Control,
    ct::Secret,
    exact::rounding::{Direction, rational_to_f64},
    sampler::exponential::{Draws, Granularity, Rate, draw::check_candidates, numerators, permute_flip},
};

/// A public rate: what one unit of score is worth, and what draws at this rate promise.
#[pyclass(frozen, subclass, name = "Rate", module = "userdp._core")]
pub(crate) struct PyRate {
    /// Gaps beyond this one weigh the same.
    #[pyo3(get)]
    largest_gap: u64,
    bits_per_unit: BigRational,
    /// Takes longer than all else about a rate, and few ask for it.
    certified_epsilon: Box<dyn Fn() -> BigRational + Send + Sync>,
}

impl PyRate {
    /// What a class at a rate is made from, by `add_subclass`.
    pub(crate) fn new(
        largest_gap: u64,
        bits_per_unit: BigRational,
        certified_epsilon: impl Fn() -> BigRational + Send + Sync + 'static,
    ) -> PyClassInitializer<Self> {
        Self { largest_gap, bits_per_unit, certified_epsilon: Box::new(certified_epsilon) }.into()
    }
}

#[pymethods]
impl PyRate {
    /// Bits of weight that one unit of score is worth, as a Fraction.
    #[getter]
    fn bits_per_unit(&self) -> BigRational {
        self.bits_per_unit.clone()
    }

    /// A bound of the epsilon that draws deliver, as a Fraction.
    #[getter]
    fn certified_epsilon_exact(&self) -> BigRational {
        (self.certified_epsilon)()
    }

    /// The same, rounded up to a float.
    #[getter]
    fn certified_epsilon(&self) -> f64 {
        rational_to_f64(&(self.certified_epsilon)(), Direction::Up)
    }
}

/// The exponential mechanism at one public rate: lower scores are better, or higher ones where `maximize` is true.
#[pyclass(frozen, extends = PyRate, name = "ExponentialRate", module = "userdp._core")]
pub(crate) struct PyExponentialRate(Rate);

#[pymethods]
impl PyExponentialRate {
    /// The largest rate that is epsilon-DP when no score changes by more than the sensitivity.
    #[new]
    fn new(
        epsilon: LevelArgument<'_>,
        sensitivity: u64,
        monotone: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let level = level(&epsilon);
        let rate = run_short(|| Rate::new(&level, sensitivity, monotone))?;
        let base = PyRate::new(rate.largest_gap(), rate.bits_per_unit(), move || rate.certified_epsilon());
        Ok(base.add_subclass(Self(rate)))
    }

    /// One unit of score is worth multiplier 2^-(57 + shift) bits of weight.
    #[getter]
    fn multiplier(&self) -> u64 {
        self.0.multiplier()
    }

    #[getter]
    fn shift(&self) -> u32 {
        self.0.shift()
    }

    /// One draw. Constant time but for the conversion of the result.
    fn sample(
        &self,
        py: Python<'_>,
        scores: &Bound<'_, PyArray1<i64>>,
        source: &PySource,
        maximize: bool,
    ) -> PyResult<u64> {
        let bits = source.draw(py, |source| source.bits().map(Secret::new))?;
        // From here the scores are read where they are, so that the interpreter lock is kept: for about 0.15 s at most.
        let scores = scores.try_readonly()?;
        let scores = scores.as_slice()?;
        run_short(|| Ok(Draws::new(self.0, scores, maximize)?.value(*bits)))
    }

    /// Independent draws, shape (size,).
    fn sample_many<'py>(
        &self,
        py: Python<'py>,
        scores: &Bound<'py, PyArray1<i64>>,
        source: &PySource,
        size: usize,
        maximize: bool,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let scores = Secret::new(copied("scores", scores)?);
        draw_many(py, source, size, scores.len(), |source, draws, control| {
            Draws::new(self.0, &scores, maximize)?.draw_many(source, draws, control)
        })
    }

    /// How many of the 2^128 values of the random bits lead to each candidate. Not constant time.
    fn numerators(
        &self,
        py: Python<'_>,
        scores: &Bound<'_, PyArray1<i64>>,
        maximize: bool,
    ) -> PyResult<Vec<BigUint>> {
        let scores = oriented(scores, maximize)?;
        run(py, None, |_| {
            check_candidates(scores.len())?;
            Ok(numerators(&self.0.weights(&scores)))
        })
    }

    /// The integer weights of the candidates. Not constant time.
    fn weights(&self, scores: &Bound<'_, PyArray1<i64>>, maximize: bool) -> PyResult<Vec<u128>> {
        let scores = oriented(scores, maximize)?;
        run_short(|| {
            check_candidates(scores.len())?;
            Ok(self.0.weights(&scores))
        })
    }
}

/// Permute-and-flip at one public rate, that of the exponential mechanism.
#[pyclass(frozen, extends = PyRate, name = "PermuteAndFlipRate", module = "userdp._core")]
pub(crate) struct PyPermuteAndFlipRate(Rate);

#[pymethods]
impl PyPermuteAndFlipRate {
    /// The largest rate that is epsilon-DP when no score changes by more than the sensitivity.
    #[new]
    fn new(
        epsilon: LevelArgument<'_>,
        sensitivity: u64,
        monotone: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let level = level(&epsilon);
        let rate = run_short(|| Rate::new(&level, sensitivity, monotone))?;
        let base = PyRate::new(rate.largest_gap(), rate.bits_per_unit(), move || {
            permute_flip::certified_epsilon(&rate)
        });
        Ok(base.add_subclass(Self(rate)))
    }

    /// One draw. Constant time but for the conversion of the result.
    fn sample(
        &self,
        py: Python<'_>,
        scores: &Bound<'_, PyArray1<i64>>,
        source: &PySource,
        maximize: bool,
    ) -> PyResult<u64> {
        let candidates = scores.len()?;
        let mut stream = source.draw(py, |source| {
            check_candidates(candidates)?;
            source.stream(bytes_of(candidates, 1))
        })?;
        // From here the scores are read where they are, so that the interpreter lock is kept: for about 0.3 s at most.
        let scores = scores.try_readonly()?;
        let scores = scores.as_slice()?;
        run_short(|| {
            let mut draw = Secret::new([0]);
            permute_flip::Draws::new(self.0, scores, maximize, 1)?.draw_many(
                &mut stream,
                &mut *draw,
                &Control::new(),
            )?;
            Ok(draw[0].cast_unsigned())
        })
    }

    /// Independent draws, shape (size,).
    fn sample_many<'py>(
        &self,
        py: Python<'py>,
        scores: &Bound<'py, PyArray1<i64>>,
        source: &PySource,
        size: usize,
        maximize: bool,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let scores = Secret::new(copied("scores", scores)?);
        draw_many(py, source, size, scores.len(), |source, draws, control| {
            let mut choice = permute_flip::Draws::new(self.0, &scores, maximize, draws.len())?;
            choice.draw_many(&mut source.stream(bytes_of(scores.len(), size))?, draws, control)
        })
    }

    /// How many of the 2^(103 k + 128) values of the random bits lead to each of k candidates. Not constant time.
    fn numerators(
        &self,
        py: Python<'_>,
        scores: &Bound<'_, PyArray1<i64>>,
        maximize: bool,
    ) -> PyResult<Vec<BigUint>> {
        let scores = oriented(scores, maximize)?;
        run(py, None, |control| {
            check_candidates(scores.len())?;
            permute_flip::numerators(&self.0.weights(&scores), control)
        })
    }

    /// Floats at most and at least the probabilities. Not constant time.
    #[allow(clippy::type_complexity)] // the two vectors are the result
    fn bounds<'py>(
        &self,
        py: Python<'py>,
        scores: &Bound<'py, PyArray1<i64>>,
        maximize: bool,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
        let scores = oriented(scores, maximize)?;
        let (lower, upper) = run(py, None, |control| {
            check_candidates(scores.len())?;
            permute_flip::bounds(&self.0.weights(&scores), control)
        })?;
        Ok((lower.into_pyarray(py), upper.into_pyarray(py)))
    }
}

/// The random bytes of draws of permute-and-flip.
fn bytes_of(candidates: usize, draws: usize) -> u64 {
    permute_flip::bytes_of_draw(candidates) as u64 * draws as u64
}

/// Scores of which the lowest is the best: complements have the gaps of negatives, and never overflow.
fn oriented(scores: &Bound<'_, PyArray1<i64>>, maximize: bool) -> PyResult<Vec<i64>> {
    let mut scores = copied("scores", scores)?;
    scores.iter_mut().filter(|_| maximize).for_each(|score| *score = !*score);
    Ok(scores)
}

/// A public grid for scores: the integers, or the multiples of a power of two.
#[pyclass(frozen, name = "Granularity", module = "userdp._core")]
pub(crate) struct PyGranularity(Granularity);

#[pymethods]
impl PyGranularity {
    /// None refuses scores that are not integers; a power of two rounds them down.
    #[new]
    fn new(granularity: Option<BigRational>) -> PyResult<Self> {
        run_short(|| granularity.map_or_else(|| Ok(Granularity::integers()), |g| Granularity::floor_to(&g)))
            .map(Self)
    }

    /// What scores on the grid change by at most.
    fn sensitivity(&self, sensitivity: BigRational) -> PyResult<u64> {
        run_short(|| self.0.sensitivity(&sensitivity))
    }

    /// Float scores, or their negatives, on the grid. Not constant time.
    fn of_floats<'py>(
        &self,
        py: Python<'py>,
        scores: &Bound<'py, PyArray1<f64>>,
        negate: bool,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let scores = scores.try_readonly()?;
        let scores = scores.as_slice()?;
        Ok(run_short(|| self.0.of_floats(scores, negate))?.into_pyarray(py))
    }

    /// Integer scores, or their negatives, on the grid. Not constant time.
    fn of_integers<'py>(
        &self,
        py: Python<'py>,
        scores: &Bound<'py, PyArray1<i64>>,
        negate: bool,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let scores = scores.try_readonly()?;
        let scores = scores.as_slice()?;
        Ok(run_short(|| self.0.of_integers(scores, negate))?.into_pyarray(py))
    }
}
