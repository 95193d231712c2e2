//! The worst of many listed pairs.

use crate::{
    convert::{Items, LevelArgument, Masses, level},
    divergence::{EpsilonParts, epsilon_parts},
    matrix::PyPmfMatrix,
    run::run,
};
use num_rational::BigRational;
use pyo3::{exceptions::PyValueError, prelude::*};
use std::{cmp::Ordering, sync::Arc};
use userdp_core::{
    control::Control,
    divergence::mass_error::MassError,
    family::{Arithmetic, Family, exhaustive_maximum, maximum_against, maximum_band, search::Pair, verdict},
    pmf::Pmf,
};

fn family(pmfs: Items<Masses>, control: &Control) -> userdp_core::Result<Family> {
    Family::new(
        pmfs.0
            .into_iter()
            .map(|masses| masses.into_pmf("pmfs", control))
            .collect::<Result<Vec<Pmf<'static>>, _>>()?,
    )
}

/// (i, j, event, lower, upper, divergence exceeds delta)
type WorstParts = (usize, usize, Vec<usize>, f64, f64, bool);

/// The worst ordered pair at a level; None for no pairs.
#[pyfunction]
#[pyo3(signature = (pmfs, pairs, epsilon, delta, progress=None))]
pub(crate) fn family_worst(
    py: Python<'_>,
    pmfs: Items<Masses>,
    pairs: Items<(usize, usize)>,
    epsilon: LevelArgument<'_>,
    delta: BigRational,
    progress: Option<Py<PyAny>>,
) -> PyResult<Option<WorstParts>> {
    let level = level(&epsilon);
    run(py, progress, |control| {
        let worst = family(pmfs, control)?.worst_divergence(&pairs, &level, &delta, control)?;
        Ok(worst.map(|worst| {
            let exceeds = worst.against_delta == Ordering::Greater;
            (worst.pair.0, worst.pair.1, worst.difference.event, worst.lower, worst.upper, exceeds)
        }))
    })
}

/// (holds or None, lower, upper): the worst of listed pairs of pmfs whose masses have a declared relative error.
#[pyfunction]
#[pyo3(signature = (pmfs, pairs, epsilon, delta, pmf_error, progress=None))]
pub(crate) fn family_band(
    py: Python<'_>,
    pmfs: Items<Masses>,
    pairs: Items<(usize, usize)>,
    epsilon: LevelArgument<'_>,
    delta: BigRational,
    pmf_error: BigRational,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Option<bool>, f64, f64)> {
    let level = level(&epsilon);
    run(py, progress, |control| {
        let error = MassError::new(&pmf_error)?;
        let band = family(pmfs, control)?.band(&pairs, &level, &delta, &error, control)?;
        Ok((band.holds, band.lower, band.upper))
    })
}

/// For every pair, whether its divergence exceeds delta in some direction.
#[pyfunction]
#[pyo3(signature = (pmfs, pairs, epsilon, delta, progress=None))]
pub(crate) fn family_exceeding(
    py: Python<'_>,
    pmfs: Items<Masses>,
    pairs: Items<(usize, usize)>,
    epsilon: LevelArgument<'_>,
    delta: BigRational,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<bool>> {
    let level = level(&epsilon);
    run(py, progress, |control| family(pmfs, control)?.exceeding(&pairs, &level, &delta, control))
}

/// Bounds on the smallest epsilon at which all pairs are within delta, and e^epsilon exactly.
#[pyfunction]
#[pyo3(signature = (pmfs, pairs, delta, progress=None))]
pub(crate) fn family_epsilon(
    py: Python<'_>,
    pmfs: Items<Masses>,
    pairs: Items<(usize, usize)>,
    delta: BigRational,
    progress: Option<Py<PyAny>>,
) -> PyResult<EpsilonParts> {
    run(py, progress, |control| {
        Ok(epsilon_parts(family(pmfs, control)?.exp_epsilon_at_delta(&pairs, &delta, control)?))
    })
}

/// Certified upper bounds of the divergences of all pairs, one for each level.
#[pyfunction]
#[pyo3(signature = (pmfs, pairs, epsilons, progress=None))]
pub(crate) fn family_profile(
    py: Python<'_>,
    pmfs: Items<Masses>,
    pairs: Items<(usize, usize)>,
    epsilons: Items<LevelArgument<'_>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<f64>> {
    let levels: Vec<_> = epsilons.iter().map(level).collect();
    run(py, progress, |control| family(pmfs, control)?.profile(&pairs, &levels, control))
}

/// (i, j, event)
type PairParts = (usize, usize, Vec<usize>);

fn parts(pair: Pair) -> PairParts {
    (pair.rows.0, pair.rows.1, pair.difference.event)
}

/// ((i, j, event), lower, upper, divergence exceeds delta, pairs evaluated)
type MaximumParts = (PairParts, f64, f64, bool, u64);

/// The largest divergence over all ordered pairs of rows; None for no rows.
#[pyfunction]
#[pyo3(signature = (matrix, epsilon, delta, progress=None))]
pub(crate) fn pairwise_maximum(
    py: Python<'_>,
    matrix: PyRef<'_, PyPmfMatrix>,
    epsilon: LevelArgument<'_>,
    delta: BigRational,
    progress: Option<Py<PyAny>>,
) -> PyResult<Option<MaximumParts>> {
    let (level, matrix) = (level(&epsilon), Arc::clone(&matrix.0));
    run(py, progress, |control| {
        Ok(maximum_against(&matrix, &level, &delta, control)?.map(|(found, exceeds)| {
            let lower = found.pair.lower;
            (parts(found.pair), lower, found.upper, exceeds, found.evaluated)
        }))
    })
}

/// (holds or None, lower, upper, pairs evaluated): all pairs of rows whose masses have a declared relative error.
#[pyfunction]
#[pyo3(signature = (matrix, epsilon, delta, pmf_error, progress=None))]
pub(crate) fn pairwise_band(
    py: Python<'_>,
    matrix: PyRef<'_, PyPmfMatrix>,
    epsilon: LevelArgument<'_>,
    delta: BigRational,
    pmf_error: BigRational,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Option<bool>, f64, f64, u64)> {
    let (level, matrix) = (level(&epsilon), Arc::clone(&matrix.0));
    run(py, progress, |control| {
        let error = MassError::new(&pmf_error)?;
        let (band, evaluated) = maximum_band(&matrix, &level, &delta, &error, control)?;
        Ok((band.holds, band.lower, band.upper, evaluated))
    })
}

/// (holds, lower, upper, (i, j, event) when it fails, pairs evaluated): whether all ordered pairs of rows are within delta.
#[pyfunction]
#[pyo3(signature = (matrix, epsilon, delta, progress=None))]
pub(crate) fn pairwise_verdict(
    py: Python<'_>,
    matrix: PyRef<'_, PyPmfMatrix>,
    epsilon: LevelArgument<'_>,
    delta: BigRational,
    progress: Option<Py<PyAny>>,
) -> PyResult<(bool, f64, f64, Option<PairParts>, u64)> {
    let (level, matrix) = (level(&epsilon), Arc::clone(&matrix.0));
    run(py, progress, |control| {
        let found = verdict(&matrix, &level, &delta, control)?;
        let lower = found.pair.as_ref().map_or(0.0, |pair| pair.lower);
        Ok((found.holds, lower, found.upper, found.pair.map(parts), found.evaluated))
    })
}

/// The largest t <= cap such that all rows at most t apart are within (epsilon, delta); None if not even equal rows are.
#[pyfunction]
pub(crate) fn largest_shift(
    py: Python<'_>,
    matrix: PyRef<'_, PyPmfMatrix>,
    epsilon: LevelArgument<'_>,
    delta: BigRational,
    cap: usize,
) -> PyResult<Option<usize>> {
    let (level, matrix) = (level(&epsilon), Arc::clone(&matrix.0));
    run(py, None, |control| userdp_core::family::largest_shift(&matrix, &level, &delta, cap, control))
}

/// (value, i, j): the largest divergence by evaluating every pair in "float64", "fixed32" or "fixed64"; for measurements.
#[pyfunction]
pub(crate) fn pairwise_exhaustive(
    py: Python<'_>,
    matrix: PyRef<'_, PyPmfMatrix>,
    epsilon: LevelArgument<'_>,
    arithmetic: &str,
) -> PyResult<(f64, usize, usize)> {
    let arithmetic = match arithmetic {
        "float64" => Arithmetic::Float64,
        "fixed32" => Arithmetic::Fixed32,
        "fixed64" => Arithmetic::Fixed64,
        other => return Err(PyValueError::new_err(format!("arithmetic: {other:?}"))),
    };
    let (level, matrix) = (level(&epsilon), Arc::clone(&matrix.0));
    let (value, (i, j)) = run(py, None, |control| exhaustive_maximum(&matrix, &level, arithmetic, control))?;
    Ok((value, i, j))
}
