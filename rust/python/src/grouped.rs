//! The exponential mechanism on groups of neighboring candidates.

use crate::{
    convert::{LevelArgument, copied, level},
    exponential::PyRate,
    run::{run, run_short},
    sampler::{PySource, draw_many},
};
use num_bigint::BigUint;
use numpy::{PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use userdp_core::{
    control::Control,
    ct::Secret,
    sampler::exponential::{GroupedDraws, GroupedRate, Groups, grouped::draw::draw_bits},
};

/// Up to this many groups are read where they are for one draw, with the interpreter lock kept: for about 0.4 s at most.
const MOST_IN_PLACE: usize = 1 << 24;

type Starts<'a, 'py> = &'a Bound<'py, PyArray1<u64>>;
type Scores<'a, 'py> = &'a Bound<'py, PyArray1<i64>>;

/// Refuses starts and scores that are no groups. Constant time.
#[pyfunction]
pub(crate) fn check_groups(starts: Starts<'_, '_>, scores: Scores<'_, '_>, last: u64) -> PyResult<()> {
    let (starts, scores) = (starts.try_readonly()?, scores.try_readonly()?);
    let (starts, scores) = (starts.as_slice()?, scores.as_slice()?);
    run_short(|| Groups::new(starts, scores, last).map(|_| ()))
}

/// The exponential mechanism at one public rate on the points of a range, in groups of one score each: lower scores are
/// better. Group j is `starts[j]..=starts[j + 1] - 1`, and the last one ends at `last`; groups may be empty.
#[pyclass(frozen, extends = PyRate, name = "GroupedExponentialRate", module = "userdp._core")]
pub(crate) struct PyGroupedExponentialRate(GroupedRate);

#[pymethods]
impl PyGroupedExponentialRate {
    /// The largest rate that is epsilon-DP when no point's score changes by more than the sensitivity.
    #[new]
    fn new(
        epsilon: LevelArgument<'_>,
        sensitivity: u64,
        monotone: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let level = level(&epsilon);
        let rate = run_short(|| GroupedRate::new(&level, sensitivity, monotone))?;
        let base = PyRate::new(rate.largest_gap(), rate.bits_per_unit(), move || rate.certified_epsilon());
        Ok(base.add_subclass(Self(rate)))
    }

    /// One draw. Constant time but for the conversion of the result.
    fn sample(
        &self,
        py: Python<'_>,
        starts: Starts<'_, '_>,
        scores: Scores<'_, '_>,
        last: u64,
        source: &PySource,
    ) -> PyResult<u64> {
        let bits = source.draw(py, draw_bits)?;
        let point = |starts: &[u64], scores: &[i64], control: &Control| {
            GroupedDraws::new(self.0, Groups::new(starts, scores, last)?, control)?.value(&bits, control)
        };
        if starts.len() <= MOST_IN_PLACE {
            let (starts, scores) = (starts.try_readonly()?, scores.try_readonly()?);
            let (starts, scores) = (starts.as_slice()?, scores.as_slice()?);
            return run_short(|| point(starts, scores, &Control::new()));
        }
        // Other threads may write into arrays while the lock is given up.
        let (starts, scores) =
            (Secret::new(copied("starts", starts)?), Secret::new(copied("scores", scores)?));
        run(py, None, |control| point(&starts, &scores, control))
    }

    /// Independent draws, shape (size,).
    fn sample_many<'py>(
        &self,
        py: Python<'py>,
        starts: Starts<'_, 'py>,
        scores: Scores<'_, 'py>,
        last: u64,
        source: &PySource,
        size: usize,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let starts = Secret::new(copied("starts", starts)?);
        let scores = Secret::new(copied("scores", scores)?);
        draw_many(py, source, size, scores.len(), |source, draws, control| {
            let groups = Groups::new(&starts, &scores, last)?;
            GroupedDraws::new(self.0, groups, control)?.draw_many(source, draws, control)
        })
    }

    /// How many of the 2^384 values of the random bits lead to each point. Not constant time.
    fn numerators(
        &self,
        py: Python<'_>,
        starts: Starts<'_, '_>,
        scores: Scores<'_, '_>,
        last: u64,
    ) -> PyResult<Vec<BigUint>> {
        self.distribution(py, starts, scores, last, GroupedRate::numerators)
    }

    /// How many of the 2^384 values of the random bits lead into each group, 0 for an empty one. Not constant time.
    fn group_numerators(
        &self,
        py: Python<'_>,
        starts: Starts<'_, '_>,
        scores: Scores<'_, '_>,
        last: u64,
    ) -> PyResult<Vec<BigUint>> {
        self.distribution(py, starts, scores, last, GroupedRate::group_numerators)
    }
}

impl PyGroupedExponentialRate {
    fn distribution(
        &self,
        py: Python<'_>,
        starts: Starts<'_, '_>,
        scores: Scores<'_, '_>,
        last: u64,
        of: fn(&GroupedRate, &Groups<'_>, &Control) -> userdp_core::Result<Vec<BigUint>>,
    ) -> PyResult<Vec<BigUint>> {
        let starts = copied("starts", starts)?;
        let scores = copied("scores", scores)?;
        run(py, None, |control| of(&self.0, &Groups::new(&starts, &scores, last)?, control))
    }
}
