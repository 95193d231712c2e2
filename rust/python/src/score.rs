//! Scores of hypotheses on the rows of users, and what chooses between them.

use crate::{
    convert::copied,
    run::{run, run_short},
};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use userdp_core::score::{binomial, thresholds, thresholds::ThresholdSweep, users};

/// A vector.
type Vector<'py, T> = Bound<'py, PyArray1<T>>;

/// Starts and scores of groups.
type Groups<'py> = (Vector<'py, u64>, Vector<'py, i64>);

/// Rows of users by point; the threshold u in `0..=domain_size` predicts 1 above u.
#[pyclass(frozen, name = "ThresholdSweep", module = "userdp._core")]
pub(crate) struct PyThresholdSweep(ThresholdSweep);

#[pymethods]
impl PyThresholdSweep {
    /// Row j is point `points[j]` with label `labels[j]` of user `users[j]`; at most m rows for each user.
    #[new]
    fn new(
        py: Python<'_>,
        points: &Bound<'_, PyArray1<u64>>,
        labels: &Bound<'_, PyArray1<u8>>,
        users: &Bound<'_, PyArray1<u32>>,
        n_users: usize,
        m: u32,
        domain_size: u64,
    ) -> PyResult<Self> {
        let (points, labels, users) =
            (copied("points", points)?, copied("labels", labels)?, copied("users", users)?);
        run(py, None, |control| {
            ThresholdSweep::new(&points, &labels, &users, n_users, m, domain_size, control)
        })
        .map(Self)
    }

    #[getter]
    fn rows(&self) -> usize {
        self.0.rows()
    }

    /// The least score over all thresholds, for t = 0, ..., m - 1.
    fn minimal_errors<'py>(&self, py: Python<'py>) -> PyResult<Vector<'py, i64>> {
        Ok(run(py, None, |control| self.0.minimal_errors(control))?.into_pyarray(py))
    }

    /// Scores of all thresholds: rows + 1 groups, or `slots` if there are fewer.
    #[pyo3(signature = (t, slots=0))]
    fn groups<'py>(&self, py: Python<'py>, t: u32, slots: usize) -> PyResult<Groups<'py>> {
        let (starts, scores) = run(py, None, |control| self.0.groups(t, slots, control))?;
        Ok((starts.into_pyarray(py), scores.into_pyarray(py)))
    }

    /// The private median's scores of low..=high: 2 `n_users` + 1 groups.
    fn median_groups<'py>(&self, py: Python<'py>, low: u64, high: u64, s: u32) -> PyResult<Groups<'py>> {
        let (starts, scores) = run(py, None, |control| self.0.median_groups(low, high, s, control))?;
        Ok((starts.into_pyarray(py), scores.into_pyarray(py)))
    }
}

/// The least score of the groups that meet low..=high.
#[pyfunction]
pub(crate) fn range_minimum(
    starts: &Bound<'_, PyArray1<u64>>,
    scores: &Bound<'_, PyArray1<i64>>,
    low: u64,
    high: u64,
) -> PyResult<i64> {
    // Read where they are, under the interpreter lock: some milliseconds at most.
    let (starts, scores) = (starts.try_readonly()?, scores.try_readonly()?);
    let (starts, scores) = (starts.as_slice()?, scores.as_slice()?);
    run_short(|| thresholds::range_minimum(starts, scores, low, high))
}

/// (t, gap, Pr[Bin(m, p) > t]) for the best threshold t between Bin(m, p) and Bin(m, q).
#[pyfunction]
pub(crate) fn separating_threshold(py: Python<'_>, m: u64, p: f64, q: f64) -> PyResult<(u64, f64, f64)> {
    let found = run(py, None, |_| binomial::separating_threshold(m, p, q))?;
    Ok((found.threshold, found.gap, found.tail_p))
}

/// Pr[Bin(m, p) > t]
#[pyfunction]
pub(crate) fn binomial_tail(py: Python<'_>, m: u64, p: f64, t: u64) -> PyResult<f64> {
    run(py, None, |_| binomial::binomial_tail(m, p, t))
}

/// Each row's user, numbered in increasing order of ids, and the ids in that order.
#[pyfunction]
pub(crate) fn user_codes<'py>(
    py: Python<'py>,
    ids: &Bound<'py, PyArray1<i64>>,
) -> PyResult<(Vector<'py, u32>, Vector<'py, i64>)> {
    let ids = copied("ids", ids)?;
    let (codes, distinct) = run(py, None, |control| users::user_codes(&ids, control))?;
    Ok((codes.into_pyarray(py), distinct.into_pyarray(py)))
}

/// Which rows are among the first m of their user, and how many rows of each user are.
#[pyfunction]
pub(crate) fn first_rows<'py>(
    py: Python<'py>,
    codes: &Bound<'py, PyArray1<u32>>,
    n_users: usize,
    m: u32,
) -> PyResult<(Vector<'py, bool>, Vector<'py, u32>)> {
    let codes = copied("codes", codes)?;
    let (kept, sizes) = run(py, None, |control| users::first_rows(&codes, n_users, m, control))?;
    Ok((kept.into_pyarray(py), sizes.into_pyarray(py)))
}
