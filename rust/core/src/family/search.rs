//! The largest divergence over all ordered pairs of pmfs, or the verdict whether it is at most delta.
//!
//! Paper: [GKKMMZ23, Definition 16].

use super::{
    brute,
    events::alternate,
    matrix::PmfMatrix,
    numerics::Numerics,
    problem::{Best, Goal, Problem},
    pure::exceeding_rows,
    separator,
    work::{Envelope, Work, distinct_rows},
};
use crate::{
    Error, Result,
    control::Control,
    divergence::{
        hockey_stick::Difference,
        mass_error::{Band, Largest, MassError},
    },
    exact::{
        Level, Rational,
        rounding::{Direction, rational_from_f64, rational_to_f64},
    },
    pmf::FLOAT_TOTAL_TOLERANCE,
};
use num_traits::Zero;
use rayon::prelude::*;
use std::cmp::Ordering;

/// Pairs up to which tiles evaluate everything at once.
const FEW_PAIRS: usize = 1 << 18;

/// Pairs up to which a level beyond float64 is searched in exact arithmetic.
const EXACT_PAIRS: usize = 1 << 20;

/// Starts and rows of the first alternation.
const FIRST_ALTERNATION: (usize, usize) = (24, 4096);

/// No divergence exceeds this: float masses may sum to a little more than 1.
const LARGEST_DIVERGENCE: f64 = 1.0 + 1.001 * FLOAT_TOTAL_TOLERANCE;

/// A pair with its divergence.
#[derive(Debug, Clone)]
pub struct Pair {
    /// (i, j): the divergence of row i from row j.
    pub rows: (usize, usize),
    /// The divergence, exactly, with its event.
    pub difference: Difference,
    /// Largest float at or below the divergence of this pair.
    pub lower: f64,
}

/// The largest divergence.
#[derive(Debug, Clone)]
pub struct Maximum {
    /// A pair that attains it, if `compared`.
    pub pair: Pair,
    /// No pair exceeds this float. Equal to the next float above `pair.lower`, or to it, if `compared`.
    pub upper: f64,
    /// False when so many pairs are within the floats' radius of the maximum that they were not all compared exactly.
    pub compared: bool,
    /// Pairs whose divergence was computed; all others were bounded.
    pub evaluated: u64,
}

/// The answer to "is every pair within delta?".
#[derive(Debug, Clone)]
pub struct Verdict {
    /// True when no ordered pair exceeds delta.
    pub holds: bool,
    /// A pair that exceeds delta, when one does.
    pub pair: Option<Pair>,
    /// No pair exceeds this float.
    pub upper: f64,
    /// Pairs whose divergence was computed; all others were bounded.
    pub evaluated: u64,
}

fn pair(problem: &Problem<'_>, rows: (u32, u32), difference: Difference) -> Pair {
    let lower = difference.to_f64(problem.level, Direction::Down);
    Pair { rows: (rows.0 as usize, rows.1 as usize), difference, lower }
}

/// The largest divergence at `level` over all ordered pairs of rows, with a pair that attains it; `None` for no rows.
///
/// A row is paired with itself too, which matters only for E < 1.
///
/// # Numerics
/// Float passes with proven radii discard pairs that cannot be largest; what is left is compared exactly.
///
/// # Errors
/// [`Error::TooLarge`] for too many pairs at a level beyond 2^400; [`Error::Canceled`].
pub fn maximum(matrix: &PmfMatrix<'_>, level: &Level, control: &Control) -> Result<Option<Maximum>> {
    if matrix.rows() == 0 {
        return Ok(None);
    }
    let Some(machine) = level.machine() else { return exact_maximum(matrix, level, control).map(Some) };
    let numerics = Numerics::new(machine, matrix.outputs(), matrix.relative_error());
    let problem = Problem::new(matrix, level, numerics, Goal::Maximum, control);
    let envelope = Envelope::of(matrix, control)?;
    if exceeding_rows(matrix, level, &numerics, &envelope, control)?.is_none() {
        let other = 1.min(matrix.rows() - 1);
        let difference = Difference::new(&matrix.pmf(0), &matrix.pmf(other), level, control)?;
        let pair = Pair { rows: (0, other), difference, lower: 0.0 };
        return Ok(Some(Maximum { pair, upper: 0.0, compared: true, evaluated: 0 }));
    }
    let ids = distinct_rows(matrix, control)?;
    run(&problem, &Work::new(matrix, ids, &envelope, &numerics, control)?)?;
    // What was discarded is at or below a number that some candidate is certified to reach.
    let Some(Best { candidate, difference, upper, compared }) = problem.best()? else {
        return exact_maximum(matrix, level, control).map(Some);
    };
    let pair = pair(&problem, candidate.pair, difference);
    Ok(Some(Maximum { pair, upper, compared, evaluated: problem.evaluated() }))
}

/// [`maximum`], and whether the largest divergence exceeds `delta`: decided, also where so many pairs nearly tie that
/// they were not all compared. The pair exceeds `delta` when one does.
///
/// # Errors
/// As [`maximum`].
pub fn maximum_against(
    matrix: &PmfMatrix<'_>,
    level: &Level,
    delta: &Rational,
    control: &Control,
) -> Result<Option<(Maximum, bool)>> {
    let Some(mut found) = maximum(matrix, level, control)? else { return Ok(None) };
    let exceeds = found.pair.difference.compare(level, delta) == Ordering::Greater;
    if exceeds || found.compared || &rational_from_f64(found.upper) <= delta {
        return Ok(Some((found, exceeds)));
    }
    let decided = verdict(matrix, level, delta, control)?;
    found.evaluated += decided.evaluated;
    found.upper = found.upper.min(decided.upper);
    // A pair above delta is larger than the one that is not.
    found.pair = decided.pair.unwrap_or(found.pair);
    Ok(Some((found, !decided.holds)))
}

/// What [`maximum_against`] would say of the true masses, which are within `error` of the stated ones, and how many
/// divergences were computed. Nothing is said of no rows: they have no divergence.
///
/// # Errors
/// As [`maximum`].
pub fn maximum_band(
    matrix: &PmfMatrix<'_>,
    level: &Level,
    delta: &Rational,
    error: &MassError,
    control: &Control,
) -> Result<(Band, u64)> {
    let mut evaluated = 0;
    let band = error.band(level, delta, |level, delta| {
        let Some((found, exceeds)) = maximum_against(matrix, level, delta, control)? else {
            return Ok(Largest::default());
        };
        evaluated += found.evaluated;
        Ok(Largest { lower: found.pair.lower, upper: found.upper, exceeds })
    })?;
    Ok((band, evaluated))
}

/// Decides whether every ordered pair of rows is within `delta` at `level`.
///
/// # Errors
/// [`Error::TooLarge`] for too many pairs at a level beyond 2^400; [`Error::Canceled`].
pub fn verdict(
    matrix: &PmfMatrix<'_>,
    level: &Level,
    delta: &Rational,
    control: &Control,
) -> Result<Verdict> {
    let nothing = Verdict { holds: true, pair: None, upper: 0.0, evaluated: 0 };
    if matrix.rows() == 0 {
        return Ok(nothing);
    }
    let Some(machine) = level.machine() else {
        let found = exact_maximum(matrix, level, control)?;
        let holds = found.pair.difference.compare(level, delta) != Ordering::Greater;
        return Ok(Verdict { holds, upper: found.upper, pair: Some(found.pair), evaluated: found.evaluated });
    };
    let numerics = Numerics::new(machine, matrix.outputs(), matrix.relative_error());
    let problem = Problem::new(matrix, level, numerics, Goal::verdict(delta), control);
    let envelope = Envelope::of(matrix, control)?;
    match exceeding_rows(matrix, level, &numerics, &envelope, control)? {
        None => return Ok(nothing),
        Some((i, j)) if delta.is_zero() => {
            let difference = Difference::new(&matrix.pmf(i), &matrix.pmf(j), level, control)?;
            let pair = Pair { rows: (i, j), lower: difference.to_f64(level, Direction::Down), difference };
            return Ok(Verdict { holds: false, pair: Some(pair), upper: LARGEST_DIVERGENCE, evaluated: 1 });
        }
        Some(_) => {}
    }
    let ids = distinct_rows(matrix, control)?;
    let work = Work::new(matrix, ids, &envelope, &numerics, control)?;
    if work.envelope_bound > problem.floor() {
        run(&problem, &work)?;
    }
    let found = problem.best()?.map(|best| pair(&problem, best.candidate.pair, best.difference));
    let bound = work.envelope_bound.min(LARGEST_DIVERGENCE);
    let upper = if found.is_none() { bound.min(rational_to_f64(delta, Direction::Up)) } else { bound };
    Ok(Verdict { holds: found.is_none(), pair: found, upper, evaluated: problem.evaluated() })
}

/// Runs the stages until the question is settled.
fn run(problem: &Problem<'_>, work: &Work<'_>) -> Result<()> {
    let rows = work.side.len();
    if rows.saturating_mul(rows) <= FEW_PAIRS {
        return brute::all_pairs(problem, &work.side, &work.side, work.width);
    }
    alternate(problem, &work.side, work.width, work.outputs, FIRST_ALTERNATION)?;
    if problem.stopped() { Ok(()) } else { separator::search(problem, work) }
}

/// Every pair in exact arithmetic.
fn exact_maximum(matrix: &PmfMatrix<'_>, level: &Level, control: &Control) -> Result<Maximum> {
    let rows = matrix.rows();
    if rows.saturating_mul(rows) > EXACT_PAIRS {
        return Err(Error::too_large(format!(
            "{rows} pmfs have {} ordered pairs, and at this epsilon each takes exact arithmetic (limit \
             {EXACT_PAIRS}). Cheaper: an epsilon between -277 and 277",
            rows as u128 * rows as u128
        )));
    }
    control.set_total(rows);
    let best = (0..rows)
        .into_par_iter()
        .map(|i| {
            let p = matrix.pmf(i);
            let mut best: Option<((usize, usize), Difference)> = None;
            for j in 0..rows {
                control.check()?;
                let difference = Difference::new(&p, &matrix.pmf(j), level, control)?;
                if best.as_ref().is_none_or(|(_, known)| difference.compare_with(level, known).is_gt()) {
                    best = Some(((i, j), difference));
                }
            }
            control.advance(1)?;
            Ok(best)
        })
        .try_reduce(
            || None,
            |a, b| {
                Ok(match (a, b) {
                    (Some(a), Some(b)) => Some(if b.1.compare_with(level, &a.1).is_gt() { b } else { a }),
                    (a, b) => a.or(b),
                })
            },
        )?;
    let Some((rows, difference)) = best else {
        return Err(Error::invalid("pmfs", "no rows"));
    };
    let upper = difference.to_f64(level, Direction::Up);
    let lower = difference.to_f64(level, Direction::Down);
    let evaluated = (matrix.rows() * matrix.rows()) as u64;
    Ok(Maximum { pair: Pair { rows, difference, lower }, upper, compared: true, evaluated })
}
