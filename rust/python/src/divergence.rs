//! Divergences of one pair.

use crate::{
    convert::{Items, LevelArgument, Masses, level},
    run::{run, run_short},
};
use num_rational::BigRational;
use num_traits::One;
use numpy::{PyArray1, PyArrayDescrMethods, PyArrayMethods, dtype};
use pyo3::{
    prelude::*,
    types::{PyFloat, PyInt},
};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use userdp_core::{
    control::Control,
    divergence::{
        self, Side, Verdict,
        hockey_stick::{
            quick_hockey_stick_bounds_of_floats, quick_hockey_stick_of_floats, quick_verdict_of_floats,
        },
        information,
    },
    exact::{Level, Rational, ln::ln_bounds, rounding::printed_decimal},
    pmf::{Pmf, check_same_outputs},
};

/// Comparisons of this many outputs, under 0.1 s when each is decided exactly, stay on the calling thread.
const SHORT_OUTPUTS: usize = 1 << 12;
/// And so do logarithms of this many masses.
const SHORT_LOGARITHMS: usize = 1 << 8;
/// But not at orders of more bits than this.
const SHORT_ORDER: u64 = 1 << 9;
/// The float pass alone is fast enough to stay on the calling thread up to here.
const SHORT_FLOAT_OUTPUTS: usize = 1 << 23;

/// The level of the decimal that a float epsilon prints as; the last one is kept, since users ask many questions at one epsilon.
fn level_of_float(epsilon: f64) -> Rc<Level> {
    thread_local! {
        static LAST: RefCell<Option<(u64, Rc<Level>)>> = const { RefCell::new(None) };
    }
    LAST.with_borrow_mut(|last| match last {
        Some((bits, level)) if *bits == epsilon.to_bits() => Rc::clone(level),
        _ => {
            let level = Rc::new(Level::new(Rational::one(), printed_decimal(epsilon)));
            *last = Some((epsilon.to_bits(), Rc::clone(&level)));
            level
        }
    })
}

/// A plain finite non-negative float, one of numpy's, or a small int.
fn plain_number(number: &Bound<'_, PyAny>) -> Option<f64> {
    let value = if let Ok(float) = number.cast_exact::<PyFloat>() {
        float.value()
    } else if let Ok(float) = number.cast::<PyFloat>() {
        // Other classes derived from float may mean something else.
        let numpy_float = dtype::<f64>(number.py()).typeobj();
        if !number.get_type().is(&numpy_float) {
            return None;
        }
        float.value()
    } else {
        f64::from(number.cast_exact::<PyInt>().ok()?.extract::<u32>().ok()?)
    };
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// Calls `evaluate` when p and q are plain contiguous float64 vectors of moderate length; None otherwise.
fn with_plain_floats<T>(
    p: &Bound<'_, PyAny>,
    q: &Bound<'_, PyAny>,
    evaluate: impl FnOnce(&[f64], &[f64]) -> userdp_core::Result<Option<T>>,
) -> PyResult<Option<T>> {
    let (Ok(p), Ok(q)) = (p.cast_exact::<PyArray1<f64>>(), q.cast_exact::<PyArray1<f64>>()) else {
        return Ok(None);
    };
    let (Ok(p), Ok(q)) = (p.try_readonly(), q.try_readonly()) else { return Ok(None) };
    let (Ok(p), Ok(q)) = (p.as_slice(), q.as_slice()) else { return Ok(None) };
    if p.len() > SHORT_FLOAT_OUTPUTS {
        return Ok(None);
    }
    run_short(|| evaluate(p, q))
}

/// The verdict when p and q are plain contiguous float64 vectors, epsilon and delta plain numbers, and float64 decides
/// it; None otherwise, or when anything is wrong with them.
#[pyfunction]
pub(crate) fn is_indistinguishable_float64(
    p: &Bound<'_, PyAny>,
    q: &Bound<'_, PyAny>,
    epsilon: &Bound<'_, PyAny>,
    delta: &Bound<'_, PyAny>,
) -> PyResult<Option<VerdictParts>> {
    let (Some(epsilon), Some(delta)) = (plain_number(epsilon), plain_number(delta)) else { return Ok(None) };
    if delta > 1.0 {
        return Ok(None);
    }
    let level = level_of_float(epsilon);
    // The decimal that delta prints as is within half a unit of it.
    let delta = if delta == 0.0 { [0.0; 2] } else { [delta.next_down(), delta.next_up()] };
    with_plain_floats(p, q, |p, q| {
        Ok(quick_verdict_of_floats(p, q, &level, delta, &Control::new())?.map(verdict_parts))
    })
}

/// The hockey-stick divergence when p and q are plain contiguous float64 vectors, epsilon a plain number, and one pass
/// settles the rounding; None otherwise, or when anything is wrong with them: the general path then takes over.
#[pyfunction]
pub(crate) fn hockey_stick_float64(
    p: &Bound<'_, PyAny>,
    q: &Bound<'_, PyAny>,
    epsilon: &Bound<'_, PyAny>,
) -> PyResult<Option<f64>> {
    let Some(epsilon) = plain_number(epsilon) else { return Ok(None) };
    let level = level_of_float(epsilon);
    with_plain_floats(p, q, |p, q| Ok(quick_hockey_stick_of_floats(p, q, &level)))
}

/// The bounds of [`hockey_stick_bounds`], as [`hockey_stick_float64`].
#[pyfunction]
pub(crate) fn hockey_stick_bounds_float64(
    p: &Bound<'_, PyAny>,
    q: &Bound<'_, PyAny>,
    epsilon: &Bound<'_, PyAny>,
) -> PyResult<Option<(f64, f64)>> {
    let Some(epsilon) = plain_number(epsilon) else { return Ok(None) };
    let level = level_of_float(epsilon);
    with_plain_floats(p, q, |p, q| Ok(quick_hockey_stick_bounds_of_floats(p, q, &level).map(tuple)))
}

/// Validates a pair and evaluates it, on the pool when that may take long.
fn with_pair<T: Send>(
    py: Python<'_>,
    p: Masses,
    q: Masses,
    limit: usize,
    evaluate: impl FnOnce(&Pmf<'_>, &Pmf<'_>, &Control) -> userdp_core::Result<T> + Send,
) -> PyResult<T> {
    let short = p.size().max(q.size()) <= limit;
    let work = |control: &Control| {
        let (p, q) = (p.into_pmf("p", control)?, q.into_pmf("q", control)?);
        check_same_outputs(&p, &q)?;
        evaluate(&p, &q, control)
    };
    if short { run_short(|| work(&Control::new())) } else { run(py, None, work) }
}

#[pyfunction]
pub(crate) fn hockey_stick(
    py: Python<'_>,
    p: Masses,
    q: Masses,
    epsilon: LevelArgument<'_>,
) -> PyResult<f64> {
    let level = level(&epsilon);
    with_pair(py, p, q, SHORT_OUTPUTS, |p, q, control| divergence::hockey_stick(p, q, &level, control))
}

fn tuple(side: Side) -> (f64, f64) {
    (side.lower, side.upper)
}

#[pyfunction]
pub(crate) fn hockey_stick_bounds(
    py: Python<'_>,
    p: Masses,
    q: Masses,
    epsilon: LevelArgument<'_>,
) -> PyResult<(f64, f64)> {
    let level = level(&epsilon);
    with_pair(py, p, q, SHORT_OUTPUTS, |p, q, control| {
        divergence::hockey_stick_bounds(p, q, &level, control).map(tuple)
    })
}

/// (holds, lower, upper, event or None, worse direction is q from p, decided exactly)
type VerdictParts = (bool, f64, f64, Option<Vec<usize>>, bool, bool);

fn verdict_parts(verdict: Verdict) -> VerdictParts {
    let (lower, upper) = tuple(verdict.worst);
    (verdict.holds, lower, upper, verdict.event, verdict.reversed, verdict.exact)
}

#[pyfunction]
pub(crate) fn is_indistinguishable(
    py: Python<'_>,
    p: Masses,
    q: Masses,
    epsilon: LevelArgument<'_>,
    delta: BigRational,
) -> PyResult<VerdictParts> {
    let level = level(&epsilon);
    with_pair(py, p, q, SHORT_OUTPUTS, |p, q, control| {
        divergence::is_indistinguishable(p, q, &level, &delta, control).map(verdict_parts)
    })
}

#[pyfunction]
pub(crate) fn privacy_profile(
    py: Python<'_>,
    p: Masses,
    q: Masses,
    epsilons: Items<LevelArgument<'_>>,
) -> PyResult<Vec<f64>> {
    let levels: Vec<Arc<Level>> = epsilons.iter().map(level).collect();
    run(py, None, |control| {
        let (p, q) = (p.into_pmf("p", control)?, q.into_pmf("q", control)?);
        check_same_outputs(&p, &q)?;
        control.set_total(levels.len());
        levels
            .iter()
            .map(|level| {
                control.advance(1)?;
                let forward = divergence::hockey_stick_bounds(&p, &q, level, control)?.upper;
                Ok(forward.max(divergence::hockey_stick_bounds(&q, &p, level, control)?.upper))
            })
            .collect()
    })
}

/// Bounds on epsilon, and e^epsilon exactly (None when infinite).
pub(crate) type EpsilonParts = (f64, f64, Option<BigRational>);

pub(crate) fn epsilon_parts(exp_epsilon: Option<BigRational>) -> EpsilonParts {
    let (lower, upper) = exp_epsilon.as_ref().map_or((f64::INFINITY, f64::INFINITY), ln_bounds);
    (lower, upper, exp_epsilon)
}

#[pyfunction]
pub(crate) fn epsilon_at_delta(
    py: Python<'_>,
    p: Masses,
    q: Masses,
    delta: BigRational,
) -> PyResult<EpsilonParts> {
    with_pair(py, p, q, SHORT_OUTPUTS, |p, q, control| {
        divergence::exp_epsilon_at_delta(p, q, &delta, control).map(epsilon_parts)
    })
}

#[pyfunction]
pub(crate) fn max_divergence(py: Python<'_>, p: Masses, q: Masses) -> PyResult<f64> {
    with_pair(py, p, q, SHORT_LOGARITHMS, information::max_divergence)
}

#[pyfunction]
pub(crate) fn total_variation(py: Python<'_>, p: Masses, q: Masses) -> PyResult<f64> {
    with_pair(py, p, q, SHORT_LOGARITHMS, information::total_variation)
}

#[pyfunction]
pub(crate) fn kl_divergence(py: Python<'_>, p: Masses, q: Masses) -> PyResult<f64> {
    with_pair(py, p, q, SHORT_LOGARITHMS, information::kl_divergence)
}

#[pyfunction]
pub(crate) fn chi2_divergence(py: Python<'_>, p: Masses, q: Masses) -> PyResult<f64> {
    with_pair(py, p, q, SHORT_LOGARITHMS, information::chi2_divergence)
}

#[pyfunction]
pub(crate) fn renyi_divergence(py: Python<'_>, p: Masses, q: Masses, order: BigRational) -> PyResult<f64> {
    let limit =
        if order.numer().bits().max(order.denom().bits()) > SHORT_ORDER { 0 } else { SHORT_LOGARITHMS };
    with_pair(py, p, q, limit, |p, q, control| information::renyi_divergence(p, q, &order, control))
}
