//! Random sources, and the certified tables of noise.

use crate::{
    convert::{Items, LevelArgument, level},
    run::{run, run_short},
};
use num_bigint::BigUint;
use num_rational::BigRational;
use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};
use userdp_core::{
    Error,
    control::Control,
    ct::{Secret, Zeroize},
    memory,
    rng::Source,
    sampler::{self, KappaRule, RefusalTable, TruncatedDiscreteLaplaceTable},
};

/// The most draws of one call: 1 GiB of them.
const DRAWS_LIMIT: usize = 1 << 27;
/// Up to this many steps of public size (draws times table entries, say), work is done on the calling thread.
const SHORT_WORK: usize = 1 << 20;

/// Random bits: the operating system's without a seed; a `ChaCha20` stream with one, for tests.
#[pyclass(frozen, name = "Source", module = "userdp._core")]
pub(crate) struct PySource(Mutex<Source>);

impl PySource {
    fn lock(&self) -> MutexGuard<'_, Source> {
        // A draw that panicked leaves a stream that is as random as before.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works with the random bits, in a thread that does not hold the interpreter lock.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Source) -> T) -> T {
        work(&mut self.lock())
    }

    /// Draws without the interpreter lock, which another holder of this source may be waiting for.
    pub(crate) fn draw<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Source) -> userdp_core::Result<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| run_short(|| work(&mut self.lock())))
    }
}

#[pymethods]
impl PySource {
    #[new]
    #[pyo3(signature = (seed=None))]
    fn new(seed: Option<BigUint>) -> PyResult<Self> {
        let source = seed.map_or_else(|| Ok(Source::system()), |seed| run_short(|| Source::seeded(&seed)));
        Ok(Self(Mutex::new(source?)))
    }

    /// These bytes, in order and once, for tests.
    #[staticmethod]
    fn listed(bytes: &[u8]) -> Self {
        Self(Mutex::new(Source::listed(bytes.to_vec())))
    }

    /// 128 random bits.
    fn bits(&self, py: Python<'_>) -> PyResult<BigUint> {
        self.draw(py, Source::bits).map(BigUint::from)
    }

    /// A uniform integer from 0 to bound - 1.
    fn below(&self, py: Python<'_>, bound: BigUint) -> PyResult<BigUint> {
        self.draw(py, |source| source.below(&bound))
    }

    /// A uniform index from 0 to bound - 1.
    fn index_below(&self, py: Python<'_>, bound: usize) -> PyResult<usize> {
        self.draw(py, |source| source.index_below(bound))
    }

    /// A uniform subset of 0, ..., population - 1, in increasing order.
    fn subset(&self, py: Python<'_>, population: usize, size: usize) -> PyResult<Vec<usize>> {
        self.draw(py, |source| source.subset(population, size, &Control::new()))
    }

    /// An index with probability exactly proportional to its weight.
    fn weighted(&self, py: Python<'_>, weights: Items<BigUint>) -> PyResult<usize> {
        self.draw(py, |source| source.weighted(&weights))
    }
}

/// 1 + min{c : E^c >= 1/delta}, exactly.
#[pyfunction]
pub(crate) fn kappa(py: Python<'_>, epsilon: LevelArgument<'_>, delta: BigRational) -> PyResult<u64> {
    let level = level(&epsilon);
    run(py, None, |_| sampler::kappa(&level, &delta))
}

/// Truncated discrete Laplace noise on 0, ..., 2 kappa, as certified integers over 2^128.
#[pyclass(frozen, name = "TruncatedDiscreteLaplaceTable", module = "userdp._core")]
pub(crate) struct PyTruncatedDiscreteLaplaceTable(TruncatedDiscreteLaplaceTable);

#[pymethods]
impl PyTruncatedDiscreteLaplaceTable {
    #[new]
    fn new(py: Python<'_>, epsilon: LevelArgument<'_>, delta: BigRational, tight: bool) -> PyResult<Self> {
        let level = level(&epsilon);
        let rule = if tight { KappaRule::Tight } else { KappaRule::Paper };
        run(py, None, |control| TruncatedDiscreteLaplaceTable::new(&level, &delta, rule, control)).map(Self)
    }

    #[getter]
    fn kappa(&self) -> usize {
        self.0.kappa()
    }

    /// The 2 kappa + 1 numerators over 2^128.
    #[getter]
    fn numerators(&self) -> Vec<BigUint> {
        self.0.numerators().map(BigUint::from).collect()
    }

    /// The largest ratio of two neighboring probabilities.
    #[getter]
    fn largest_ratio(&self, py: Python<'_>) -> PyResult<BigRational> {
        run(py, None, |_| Ok(self.0.largest_ratio()))
    }

    /// One draw.
    fn sample(&self, py: Python<'_>, source: &PySource) -> PyResult<u64> {
        source.draw(py, |source| self.0.table().draw(source))
    }

    /// Independent draws, shape (size,).
    fn sample_many<'py>(
        &self,
        py: Python<'py>,
        source: &PySource,
        size: usize,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        draw_many(py, source, size, 2 * self.0.kappa(), |source, draws, control| {
            self.0.table().draw_many(source, draws, control)
        })
    }
}

/// An array of independent draws, each of about `steps` steps, which `fill` writes.
pub(crate) fn draw_many<'py, T: Element + Zeroize + Default + Copy>(
    py: Python<'py>,
    source: &PySource,
    size: usize,
    steps: usize,
    fill: impl FnOnce(&mut Source, &mut [T], &Control) -> userdp_core::Result<()> + Send,
) -> PyResult<Bound<'py, PyArray1<T>>> {
    let work = |control: &Control| {
        if size > DRAWS_LIMIT {
            let message = format!("size is {size}, and one call draws at most {DRAWS_LIMIT}; draw in parts");
            return Err(Error::too_large(message));
        }
        // Draws that are not released are wiped.
        let mut draws = Secret::new(memory::zeros("size", size, "draw in parts")?);
        fill(&mut source.lock(), &mut draws, control)?;
        Ok(std::mem::take(&mut *draws))
    };
    let draws = if size.saturating_mul(steps) > SHORT_WORK {
        run(py, None, work)
    } else {
        py.detach(|| run_short(|| work(&Control::new())))
    };
    Ok(draws?.into_pyarray(py))
}

/// Probabilities of refusal q(0) = 0, ..., q(M) = 1, as certified integers over 2^128.
#[pyclass(frozen, name = "RefusalTable", module = "userdp._core")]
pub(crate) struct PyRefusalTable(RefusalTable);

#[pymethods]
impl PyRefusalTable {
    #[new]
    fn new(py: Python<'_>, epsilon: LevelArgument<'_>, delta: BigRational) -> PyResult<Self> {
        let level = level(&epsilon);
        run(py, None, |control| RefusalTable::new(&level, &delta, control)).map(Self)
    }

    /// M, the least size at which refusal is certain.
    #[getter]
    fn certain_size(&self) -> usize {
        self.0.certain_size()
    }

    /// 2 M - 2.
    #[getter]
    fn deletions(&self) -> usize {
        self.0.deletions()
    }

    /// The numerators q(0), ..., q(M) over 2^128.
    #[getter]
    fn numerators(&self) -> Vec<BigUint> {
        self.0.numerators().collect()
    }

    /// True with probability q(min(r, M)) / 2^128.
    fn refuses(&self, py: Python<'_>, r: usize, source: &PySource) -> PyResult<bool> {
        source.draw(py, |source| self.0.refuses(r, source))
    }
}
