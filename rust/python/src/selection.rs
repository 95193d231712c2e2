//! The exponential mechanism on sums of scores, and the ways to delete users.

use crate::{
    convert::{Items, LevelArgument, copied, level},
    matrix::PyPmfMatrix,
    run::{run, run_short},
};
use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::One;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyUntypedArrayMethods, ndarray::Array2};
use pyo3::prelude::*;
use std::{ops::Range, sync::Arc};
use userdp_core::{
    Error, Result,
    control::Control,
    family::scores::{Deletions, KindDeletions, Listed, TotalRows, exponential_matrix},
    memory::room,
    sampler::exponential::{Rate, TOTAL_BITS, numerators},
    subsets::{CountVectors, DeletedSums, Subsets},
};

/// Entries of one listing.
const LARGEST_LIST: usize = 1 << 28;

/// The exponential mechanism on integer totals, lower is better, at one public rate.
#[pyclass(frozen, name = "ScoreSelection", module = "userdp._core")]
pub(crate) struct PyScoreSelection(Rate);

impl PyScoreSelection {
    fn matrix<T: TotalRows + 'static>(
        &self,
        py: Python<'_>,
        totals: impl FnOnce() -> Result<T> + Send,
    ) -> PyResult<PyPmfMatrix> {
        let matrix = run(py, None, |control| exponential_matrix(self.0, Arc::new(totals()?), control))?;
        Ok(PyPmfMatrix(Arc::new(matrix)))
    }
}

#[pymethods]
impl PyScoreSelection {
    /// The mechanism that is epsilon-DP when no total changes by more than the sensitivity.
    #[new]
    fn new(epsilon: LevelArgument<'_>, sensitivity: u64) -> PyResult<Self> {
        let level = level(&epsilon);
        run_short(|| Rate::new(&level, sensitivity, false)).map(Self)
    }

    /// Bits of weight that one unit of score is worth, as a Fraction.
    #[getter]
    fn bits_per_unit(&self) -> BigRational {
        self.0.bits_per_unit()
    }

    /// Gaps beyond this one weigh the same.
    #[getter]
    fn largest_gap(&self) -> u64 {
        self.0.largest_gap()
    }

    /// (weights, total) on a vector of totals.
    fn pmf(&self, totals: &Bound<'_, PyArray1<i64>>) -> PyResult<(Vec<BigUint>, BigUint)> {
        let totals = copied("totals", totals)?;
        run_short(|| {
            let outputs = totals.len();
            let listed = Listed::new(totals, outputs)?;
            let mut weights = Vec::new();
            listed.visit(0..1, &mut |totals| weights = numerators(&self.0.weights(totals)));
            Ok((weights, BigUint::one() << TOTAL_BITS))
        })
    }

    /// One pmf for each row of an array of totals of shape (N, k).
    fn matrix_of_totals(&self, py: Python<'_>, totals: &Bound<'_, PyArray2<i64>>) -> PyResult<PyPmfMatrix> {
        let (listed, outputs) = rows(totals)?;
        self.matrix(py, move || Listed::new(listed, outputs))
    }

    /// One pmf for each way to delete r of the n users with scores of shape (n, k), in colexicographic order.
    fn matrix_of_subsets(
        &self,
        py: Python<'_>,
        scores: &Bound<'_, PyArray2<i64>>,
        r: usize,
    ) -> PyResult<PyPmfMatrix> {
        let (scores, outputs) = rows(scores)?;
        self.matrix(py, move || Deletions::new(scores, outputs, r))
    }

    /// One pmf for each row of `deleted`, of shape (N, K): how many of the `counts` users of each kind are deleted.
    fn matrix_of_vectors(
        &self,
        py: Python<'_>,
        type_scores: &Bound<'_, PyArray2<i64>>,
        counts: Items<u64>,
        deleted: &Bound<'_, PyArray2<u16>>,
    ) -> PyResult<PyPmfMatrix> {
        let (scores, outputs) = rows(type_scores)?;
        let (deleted, kinds) = rows(deleted)?;
        self.matrix(py, move || {
            if kinds != counts.len() {
                let message = format!("has {kinds} columns for {} kinds of users", counts.len());
                return Err(Error::invalid("deleted", message));
            }
            KindDeletions::new(scores, outputs, &counts, deleted)
        })
    }
}

/// A C-contiguous matrix as its rows, one after the other, and their length.
fn rows<T: numpy::Element + Copy>(array: &Bound<'_, PyArray2<T>>) -> PyResult<(Vec<T>, usize)> {
    Ok((copied("a matrix", array)?, array.shape()[1]))
}

/// The number of subsets of size r of n users; None from 2^64 on.
#[pyfunction]
pub(crate) fn count_subsets(n: usize, r: usize) -> PyResult<Option<u64>> {
    none_if_too_large(run_short(|| Ok(Subsets::new(n, r).map(|subsets| subsets.count())))?)
}

/// The subsets of ranks start to stop in colexicographic order, as an array of shape (stop - start, r).
#[pyfunction]
pub(crate) fn subsets(
    py: Python<'_>,
    n: usize,
    r: usize,
    start: u64,
    stop: u64,
) -> PyResult<Bound<'_, PyArray2<u32>>> {
    let listed = run(py, None, |control| {
        let subsets = Subsets::new(n, r)?;
        check_ranks(start, stop, subsets.count())?;
        let step = |subset: &mut [usize]| subsets.step(subset).is_some();
        list(start..stop, r, subsets.unrank(start.min(subsets.count() - 1)), step, control)
    })?;
    Ok(listed.into_pyarray(py))
}

/// The number of vectors of the given sum within the counts; None from about 2^64 on.
#[pyfunction]
pub(crate) fn count_vectors_number(py: Python<'_>, counts: Items<u64>, total: u64) -> PyResult<Option<u64>> {
    none_if_too_large(run(
        py,
        None,
        |_| Ok(CountVectors::new(&counts, total).map(|vectors| vectors.count())),
    )?)
}

/// The vectors of ranks start to stop in colexicographic order, as an array of shape (stop - start, kinds).
#[pyfunction]
pub(crate) fn count_vectors(
    py: Python<'_>,
    counts: Items<u64>,
    total: u64,
    start: u64,
    stop: u64,
) -> PyResult<Bound<'_, PyArray2<u16>>> {
    let listed = run(py, None, |control| {
        let vectors = CountVectors::new(&counts, total)?;
        check_ranks(start, stop, vectors.count())?;
        let first = vectors.unrank(start.min(vectors.count() - 1));
        list(start..stop, counts.len(), first, |vector| vectors.step(vector), control)
    })?;
    Ok(listed.into_pyarray(py))
}

/// The sums of r deleted users that occur, above r times the smallest statistic, largest first.
#[pyfunction]
pub(crate) fn deleted_sums(
    py: Python<'_>,
    statistics: Items<BigInt>,
    counts: Items<u64>,
    r: u64,
) -> PyResult<Bound<'_, PyArray1<u64>>> {
    let sums = run(py, None, |control| DeletedSums::new(&statistics, &counts, r)?.sums(control))?;
    Ok(sums.into_pyarray(py))
}

/// How many users of each kind are deleted for one of these sums.
#[pyfunction]
pub(crate) fn deleted_parts(
    py: Python<'_>,
    statistics: Items<BigInt>,
    counts: Items<u64>,
    r: u64,
    sum: u64,
) -> PyResult<Vec<u64>> {
    run(py, None, |control| DeletedSums::new(&statistics, &counts, r)?.parts(sum, control))
}

fn none_if_too_large(count: Result<u64>) -> PyResult<Option<u64>> {
    match count {
        Err(Error::TooLarge { .. }) => Ok(None),
        other => run_short(|| other.map(Some)),
    }
}

fn check_ranks(start: u64, stop: u64, count: u64) -> Result<()> {
    if start <= stop && stop <= count {
        return Ok(());
    }
    Err(Error::invalid("start, stop", format!("must be a range within 0..{count}; got {start}..{stop}")))
}

/// Rows from `current` on, as narrow integers.
fn list<S: Copy, T: TryFrom<S> + Clone + Default>(
    ranks: Range<u64>,
    width: usize,
    mut current: Vec<S>,
    step: impl Fn(&mut [S]) -> bool,
    control: &Control,
) -> Result<Array2<T>> {
    let rows = usize::try_from(ranks.end - ranks.start).unwrap_or(usize::MAX);
    if rows.saturating_mul(width) > LARGEST_LIST {
        return Err(Error::too_large(format!("{rows} x {width} numbers are too many to list at a time")));
    }
    let mut listed = room("start, stop", rows * width)?;
    for row in 0..rows {
        if row % 1024 == 0 {
            control.check()?;
        }
        for &entry in &current {
            let narrow = T::try_from(entry)
                .map_err(|_| Error::too_large("more than 65535 deleted users of one kind are too many"))?;
            listed.push(narrow);
        }
        step(&mut current);
    }
    Array2::from_shape_vec((rows, width), listed).map_err(|error| Error::invalid("ranks", error.to_string()))
}
