//! The smallest e^epsilon at which a pair is within delta, exactly.

use super::{
    hockey_stick::{Difference, quick_bounds},
    kernel::sums,
};
use crate::{
    Result,
    control::Control,
    exact::{
        Level, Rational,
        level::{MACHINE_LIMIT, MachineLevel},
        rounding::{Direction, rational_from_f64, rational_to_f64},
    },
    pmf::Pmf,
};
use num_traits::{One, Zero};
use std::cmp::Ordering;

/// The smallest `E >= 1` at which the divergence of p from q and that of q from p are both at most `delta`; `None`
/// when no finite E does (mass above delta where the other pmf has none).
///
/// # Errors
/// [`crate::Error::Canceled`].
pub fn exp_epsilon_at_delta(
    p: &Pmf<'_>,
    q: &Pmf<'_>,
    delta: &Rational,
    control: &Control,
) -> Result<Option<Rational>> {
    match one_direction(p, q, delta, Rational::one(), control)? {
        None => Ok(None),
        Some(forward) => one_direction(q, p, delta, forward, control),
    }
}

/// The smallest `E >= start` at which the divergence of p from q is at most `delta`.
///
/// # Method
/// h(E) = sum max(0, p - E q) is convex, non-increasing and linear between the ratios p/q. Newton's iteration
/// E' = (P(B) - delta) / Q(B) with B = {p > E q} never passes the root from the left and takes each linear piece at
/// most once, so it ends, at the exact root. A float iteration first finds the last piece; if that lands right of the
/// root, the first exact step (a tangent of a convex function) goes back to its left.
///
/// Ratios far apart make Newton's steps short beside them; after [`NEWTON_STEPS`] the breakpoints that are left are halved.
pub(crate) fn one_direction(
    p: &Pmf<'_>,
    q: &Pmf<'_>,
    delta: &Rational,
    start: Rational,
    control: &Control,
) -> Result<Option<Rational>> {
    if delta.is_zero() {
        return Ok(max_ratio(p, q, control)?.map(|ratio| ratio.max(start)));
    }
    let step = |at: &Rational| newton_step(p, q, &Level::rational(at.clone()), delta, control);
    let mut current = match step(&start)? {
        Step::Within => return Ok(Some(start)),
        Step::Never => return Ok(None),
        Step::To(next) => next,
    };
    // A guess serves as a place to go on from only when it lies to the left of the root.
    if let Some(guess) = float_root(p, q, delta, &current, control)?
        && let Step::To(next) = step(&guess)?
    {
        current = next;
    }
    for _ in 0..NEWTON_STEPS {
        match step(&current)? {
            Step::Within => return Ok(Some(current)),
            Step::Never => return Ok(None),
            Step::To(next) => current = next,
        }
    }
    // The root lies among the breakpoints above `current`: halve them, by one in the middle of the list at a time.
    let keep = |outputs: &[usize], at: &Rational, wanted: Ordering| {
        let level = Level::rational(at.clone());
        let mut kept = Vec::new();
        for (position, &output) in outputs.iter().enumerate() {
            if position % CHECK_EVERY == 0 {
                control.check()?;
            }
            if level.compare(&p.mass(output), &q.mass(output)) == wanted {
                kept.push(output);
            }
        }
        Ok(kept)
    };
    let ratios: Vec<usize> = p.outputs().filter(|&output| !p.is_zero(output) && !q.is_zero(output)).collect();
    let mut between = keep(&ratios, &current, Ordering::Greater)?;
    while let Some(&middle) = between.get(between.len() / 2) {
        let breakpoint = p.mass(middle) / q.mass(middle);
        match step(&breakpoint)? {
            Step::Within => between = keep(&between, &breakpoint, Ordering::Less)?,
            Step::Never => return Ok(None),
            Step::To(next) => {
                between = keep(&between, &next, Ordering::Greater)?;
                current = next;
            }
        }
    }
    // No breakpoint is left between here and the root: one step reaches it.
    Ok(match step(&current)? {
        Step::Within => Some(current),
        Step::Never => None,
        Step::To(root) => Some(root),
    })
}

/// Outputs between two looks at the control.
const CHECK_EVERY: usize = 1 << 10;

/// Exact Newton steps before the breakpoints are halved instead.
const NEWTON_STEPS: usize = 24;

/// The largest p/q over outputs with p > 0: zero without any, `None` where q = 0 < p.
pub(crate) fn max_ratio(p: &Pmf<'_>, q: &Pmf<'_>, control: &Control) -> Result<Option<Rational>> {
    if p.outputs().any(|output| q.is_zero(output) && !p.is_zero(output)) {
        return Ok(None);
    }
    let support = || p.outputs().filter(|&output| !p.is_zero(output));
    // Good float ratios leave few candidates; the others, NaN here, all are.
    let ratio = |output| reliable_ratio(p, q, output).unwrap_or(f64::NAN);
    let threshold = support().map(ratio).fold(0.0, f64::max) * (1.0 - 1e-14);
    let mut largest = Rational::zero();
    for output in support().filter(|&output| ratio(output).partial_cmp(&threshold) != Some(Ordering::Less)) {
        control.check()?;
        largest = largest.max(p.mass(output) / q.mass(output));
    }
    Ok(Some(largest))
}

/// p/q as a float within a few units in the last place, where nothing comes near under- or overflow.
fn reliable_ratio(p: &Pmf<'_>, q: &Pmf<'_>, output: usize) -> Option<f64> {
    let (mass, other) = (p.approximate()[output], q.approximate()[output]);
    (mass > 1e-290 && other > 1e-290).then(|| mass / other).filter(|ratio| (1e-290..1e290).contains(ratio))
}

enum Step {
    /// The divergence is at most delta here.
    Within,
    /// It is above, and so it is at every level: what remains has no slope.
    Never,
    /// It is above; Newton's next point.
    To(Rational),
}

fn newton_step(p: &Pmf<'_>, q: &Pmf<'_>, level: &Level, delta: &Rational, control: &Control) -> Result<Step> {
    if let Some(side) = quick_bounds(p, q, level)
        && side.upper <= rational_to_f64(delta, Direction::Down)
    {
        return Ok(Step::Within);
    }
    let difference = Difference::new(p, q, level, control)?;
    Ok(if difference.compare(level, delta) != Ordering::Greater {
        Step::Within
    } else if difference.other.is_zero() {
        Step::Never
    } else {
        Step::To((&difference.mass - delta) / &difference.other)
    })
}

/// A float slightly to the left of the root, by Newton's iteration on float bounds.
fn float_root(
    p: &Pmf<'_>,
    q: &Pmf<'_>,
    delta: &Rational,
    start: &Rational,
    control: &Control,
) -> Result<Option<Rational>> {
    let target = rational_to_f64(delta, Direction::Nearest);
    let mut current = rational_to_f64(start, Direction::Nearest);
    for _ in 0..200 {
        if !(1.0..=MACHINE_LIMIT).contains(&current) {
            return Ok(None);
        }
        control.check()?;
        let sums = sums(p.approximate(), q.approximate(), MachineLevel::from_float(current));
        let next = (sums.p_high + sums.p_low - target) / (sums.q_high + sums.q_low);
        if !next.is_finite() || next <= current * (1.0 + 1e-12) {
            break;
        }
        current = next;
    }
    let guess = current * (1.0 - 1e-11);
    Ok((guess.is_finite() && guess >= 1.0).then(|| rational_from_f64(guess)))
}
