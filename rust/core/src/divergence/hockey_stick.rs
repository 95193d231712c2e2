//! The hockey-stick divergence `d = sum over o of max(0, p_o - E q_o)`, E = e^epsilon.

use super::kernel::{Sums, sums};
use crate::{
    Result,
    control::Control,
    exact::{
        Level, Rational,
        level::MachineLevel,
        rounding::{Direction, rational_to_f64},
    },
    pmf::{FLOAT_TOTAL_TOLERANCE, Pmf},
};
use std::cmp::Ordering;

/// Outputs between two looks at the control: a few milliseconds when every one is decided exactly.
const CHECK_EVERY: usize = 1024;

/// Outputs up to which an event is found without a look at the control in between.
const QUICK_EVENT_OUTPUTS: usize = 1 << 12;

/// Half an ulp of 1: the unit of rounding.
const U: f64 = f64::EPSILON / 2.0;

/// The divergence as `high + low`, wrong by at most `radius`.
#[derive(Debug, Clone, Copy)]
struct Approximation {
    high: f64,
    low: f64,
    radius: f64,
}

fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

/// Dekker's exact product; the factors stay far from overflow here.
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let split = |x: f64| {
        let scaled = 134_217_729.0 * x; // 2^27 + 1
        let high = scaled - (scaled - x);
        (high, x - high)
    };
    let product = a * b;
    let ((a_high, a_low), (b_high, b_low)) = (split(a), split(b));
    (product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low))
}

/// The sum `a + b` rounded down or up to a float.
fn directed_sum(a: f64, b: f64, up: bool) -> f64 {
    let (sum, error) = two_sum(a, b);
    match (up, error.partial_cmp(&0.0)) {
        (false, Some(Ordering::Less)) => sum.next_down(),
        (true, Some(Ordering::Greater)) => sum.next_up(),
        _ => sum,
    }
}

impl Approximation {
    /// `rounded`: the kernel saw the floats nearest to the masses, not the masses.
    ///
    /// # Numerics
    /// `P(B) - (h + l)(q_high + q_low)` with exact leading parts; what is added in ordinary floats is at most
    /// `parts` and takes six roundings. An output on the wrong side adds at most 8u p + 2.1u p. Rounded masses
    /// change a term that is positive on either side by at most u p + u E q <= 2.1 u p.
    fn new(sums: &Sums, level: MachineLevel, outputs: usize, rounded: bool) -> Self {
        let (product, product_low) = two_product(level.high, sums.q_high);
        let (cross, cross_low) = (level.high * sums.q_low, level.low * sums.q_high);
        let (lead, lead_low) = two_sum(sums.p_high, -product);
        let rest = lead_low + ((sums.p_low - product_low) - (cross + cross_low));
        let (high, low) = two_sum(lead, rest);
        let parts = lead_low.abs() + sums.p_low.abs() + product_low.abs() + cross.abs() + cross_low.abs();
        let mut radius = sums.p_error
            + 1.001 * level.high * sums.q_error
            + 1.001 * 2.0_f64.powi(-104) * level.high * (sums.q_high + sums.q_low.abs())
            + (level.low * sums.q_low).abs()
            + 8.0 * U * parts
            + outputs as f64 * 2.0_f64.powi(-600);
        if sums.close {
            radius += 16.0 * U;
        }
        if rounded {
            radius += 4.0 * U;
        }
        Self { high, low, radius: radius * 1.001 }
    }

    /// The value of float masses; without a radius where it is 0 beyond doubt.
    ///
    /// # Numerics
    /// No output is in the kernel's event exactly when both parts of P(B) are 0: rounded sums of non-negative floats
    /// are 0 only if all of them are. Masses from 1e-250 on are then on the right side unless the kernel flagged one,
    /// since their products with E stay far from underflow, and masses of 0 always are.
    fn of_floats(sums: &Sums, level: MachineLevel, p: &[f64]) -> Self {
        let nothing = sums.p_high == 0.0
            && sums.p_low == 0.0
            && !sums.close
            && p.iter().all(|&mass| is_zero(mass) || mass >= 1e-250);
        if nothing {
            Self { high: 0.0, low: 0.0, radius: 0.0 }
        } else {
            Self::new(sums, level, p.len(), false)
        }
    }

    /// The divergence is 0, exactly.
    fn is_zero(&self) -> bool {
        self.radius == 0.0
    }

    /// The nearest float, if it is beyond doubt.
    fn nearest(&self) -> Option<f64> {
        if self.is_zero() {
            return Some(0.0);
        }
        let lowest = self.high + (self.low - self.radius).next_down();
        let highest = self.high + (self.low + self.radius).next_up();
        (lowest == highest && lowest > 0.0).then_some(highest)
    }

    fn side(&self) -> Side {
        if self.is_zero() {
            return Side { lower: 0.0, upper: 0.0 };
        }
        Side {
            lower: directed_sum(self.high, (self.low - self.radius).next_down(), false).max(0.0),
            upper: directed_sum(self.high, (self.low + self.radius).next_up(), true).max(0.0),
        }
    }

    /// Bounds of which no tighter ones are known; `None` where exact arithmetic may find some.
    fn tight_side(&self) -> Option<Side> {
        let side = self.side();
        (self.is_zero() || side.lower > 0.0 && side.upper <= side.lower.next_up()).then_some(side)
    }
}

/// Floats that enclose an exact number: `lower <= exact <= upper`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// At or below the exact number.
    pub lower: f64,
    /// At or above the exact number.
    pub upper: f64,
}

/// The divergence exactly, as `mass - E other` on the event where p exceeds E q.
#[derive(Debug, Clone)]
pub struct Difference {
    /// P(event).
    pub mass: Rational,
    /// Q(event).
    pub other: Rational,
    /// The outputs with `p > E q`, increasing.
    pub event: Vec<usize>,
}

impl Difference {
    /// Decides every output exactly.
    ///
    /// # Errors
    /// [`crate::Error::Canceled`].
    pub fn new(p: &Pmf<'_>, q: &Pmf<'_>, level: &Level, control: &Control) -> Result<Self> {
        let event = event(p, q, level, control)?;
        Ok(Self { mass: p.event_mass(&event), other: q.event_mass(&event), event })
    }

    /// The value as a correctly rounded float in the given direction.
    pub fn to_f64(&self, level: &Level, direction: Direction) -> f64 {
        level.difference_to_f64(&self.mass, &self.other, direction)
    }

    /// The tightest floats around it.
    pub fn bounds(&self, level: &Level) -> Side {
        Side { lower: self.to_f64(level, Direction::Down), upper: self.to_f64(level, Direction::Up) }
    }

    /// The exact comparison of the divergence with `delta`.
    pub fn compare(&self, level: &Level, delta: &Rational) -> Ordering {
        level.sign_of_difference(&(&self.mass - delta), &self.other)
    }

    /// The exact comparison with another divergence at the same level.
    pub fn compare_with(&self, level: &Level, other: &Self) -> Ordering {
        level.sign_of_difference(&(&self.mass - &other.mass), &(&self.other - &other.other))
    }
}

/// The outputs with `p > E q`, increasing; ties decided exactly.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub fn event(p: &Pmf<'_>, q: &Pmf<'_>, level: &Level, control: &Control) -> Result<Vec<usize>> {
    let machine = if q.is_float() { machine_for(q.approximate(), level) } else { level.machine() };
    let inside = |output: usize| {
        if p.is_zero(output) {
            return false;
        }
        if q.is_zero(output) {
            return true;
        }
        let (mass, other) = (p.approximate()[output], q.approximate()[output]);
        // Far from underflow, floats within a factor 1 +- 4u of the exact numbers decide unless they nearly tie.
        if let Some(level) = machine
            && mass >= 1e-250
            && other >= 1e-300
        {
            let scaled = level.high * other;
            if (mass - scaled).abs() > 16.0 * U * mass {
                return mass > scaled;
            }
        }
        level.compare(&p.mass(output), &q.mass(output)) == Ordering::Greater
    };
    let mut event = Vec::new();
    for output in p.outputs() {
        if output % CHECK_EVERY == 0 {
            control.check()?;
        }
        if inside(output) {
            event.push(output);
        }
    }
    Ok(event)
}

/// E for the float64 pass over float masses, or a smaller number at which the event is the same and Q of it is 0.
///
/// # Numerics
/// From E = 2^399 on and for masses of q that are 0 or at least 1e-119 > 2^-396, E q is 0 or above 8: the event is
/// {p > 0 = q} at all these E.
fn machine_for(q: &[f64], level: &Level) -> Option<MachineLevel> {
    level.machine().or_else(|| {
        let alike = level.is_beyond_machine() && q.iter().all(|&mass| is_zero(mass) || mass >= 1e-119);
        alike.then(|| MachineLevel::from_float(f64::from_bits((1023 + 399) << 52)))
    })
}

/// By its bits: a processor set to treat subnormals as zero must not decide this.
fn is_zero(mass: f64) -> bool {
    mass.to_bits() << 1 == 0
}

fn approximate(p: &Pmf<'_>, q: &Pmf<'_>, level: &Level) -> Option<Approximation> {
    if p.is_float() && q.is_float() {
        let machine = machine_for(q.approximate(), level)?;
        let sums = sums(p.approximate(), q.approximate(), machine);
        return Some(Approximation::of_floats(&sums, machine, p.approximate()));
    }
    let machine = level.machine()?;
    let sums = sums(p.approximate(), q.approximate(), machine);
    Some(Approximation::new(&sums, machine, p.len(), true))
}

/// Certified float bounds by one float64 pass; `None` when E is out of the pass's range.
pub(crate) fn quick_bounds(p: &Pmf<'_>, q: &Pmf<'_>, level: &Level) -> Option<Side> {
    approximate(p, q, level).map(|value| value.side())
}

/// The hockey-stick divergence of p from q: the float nearest to its exact value.
///
/// # Numerics
/// One pass in twice the working precision, with a proven radius; where that does not settle the rounding, exact
/// arithmetic does.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub fn hockey_stick(p: &Pmf<'_>, q: &Pmf<'_>, level: &Level, control: &Control) -> Result<f64> {
    let exactly_float = p.is_float() && q.is_float();
    let quick = if exactly_float { approximate(p, q, level).and_then(|value| value.nearest()) } else { None };
    match quick {
        Some(value) => Ok(value),
        None => Ok(Difference::new(p, q, level, control)?.to_f64(level, Direction::Nearest)),
    }
}

/// One pass that validates both pmfs as well; `None` when E is out of its range or anything is doubtful about them.
fn validated(p: &[f64], q: &[f64], level: &Level) -> Option<Approximation> {
    let machine = machine_for(q, level)?;
    if p.len() != q.len() {
        return None;
    }
    let sums = sums(p, q, machine);
    // NaN and infinities spoil the totals; the margin leaves borderline totals to the exact check.
    let plausible = |total: f64| (total - 1.0).abs() <= FLOAT_TOTAL_TOLERANCE / 2.0;
    let valid = !sums.negative && plausible(sums.p_total) && plausible(sums.q_total);
    valid.then(|| Approximation::of_floats(&sums, machine, p))
}

/// [`hockey_stick`] of float masses by one validating pass; `None` when that leaves a doubt, about the rounding or
/// about the masses.
pub fn quick_hockey_stick_of_floats(p: &[f64], q: &[f64], level: &Level) -> Option<f64> {
    validated(p, q, level)?.nearest()
}

/// [`hockey_stick_bounds`] of float masses by one validating pass; `None` when that leaves a doubt.
pub fn quick_hockey_stick_bounds_of_floats(p: &[f64], q: &[f64], level: &Level) -> Option<Side> {
    validated(p, q, level)?.tight_side()
}

/// Floats that enclose the exact divergence: the same float twice, or two adjacent ones.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub fn hockey_stick_bounds(p: &Pmf<'_>, q: &Pmf<'_>, level: &Level, control: &Control) -> Result<Side> {
    if let Some(side) = approximate(p, q, level).and_then(|value| value.tight_side()) {
        return Ok(side);
    }
    Ok(Difference::new(p, q, level, control)?.bounds(level))
}

/// What was decided about one pair at (epsilon, delta).
#[derive(Debug, Clone)]
pub struct Verdict {
    /// True when both directions are at most delta.
    pub holds: bool,
    /// Encloses the larger of the two divergences.
    pub worst: Side,
    /// For a failed verdict, the event on which the worse direction exceeds delta.
    pub event: Option<Vec<usize>>,
    /// For a failed verdict: the worse direction is q from p.
    pub reversed: bool,
    /// Exact arithmetic was needed.
    pub exact: bool,
}

struct Decision {
    within: bool,
    side: Side,
    exact: bool,
}

fn decide(p: &Pmf<'_>, q: &Pmf<'_>, level: &Level, delta: &Rational, control: &Control) -> Result<Decision> {
    if let Some(side) = quick_bounds(p, q, level) {
        if side.upper <= rational_to_f64(delta, Direction::Down) {
            return Ok(Decision { within: true, side, exact: false });
        }
        if side.lower > rational_to_f64(delta, Direction::Up) {
            return Ok(Decision { within: false, side, exact: false });
        }
    }
    let difference = Difference::new(p, q, level, control)?;
    let within = difference.compare(level, delta) != Ordering::Greater;
    Ok(Decision { within, side: difference.bounds(level), exact: true })
}

/// Decides whether both divergences are at most delta. Always decided.
///
/// # Errors
/// [`crate::Error::InvalidArgument`] for different lengths; [`crate::Error::Canceled`].
pub fn is_indistinguishable(
    p: &Pmf<'_>,
    q: &Pmf<'_>,
    level: &Level,
    delta: &Rational,
    control: &Control,
) -> Result<Verdict> {
    crate::pmf::check_same_outputs(p, q)?;
    let forward = decide(p, q, level, delta, control)?;
    let backward = decide(q, p, level, delta, control)?;
    verdict(p, q, level, &forward, &backward, control)
}

/// The verdict from both directions' decisions, with the event when it fails.
fn verdict(
    p: &Pmf<'_>,
    q: &Pmf<'_>,
    level: &Level,
    forward: &Decision,
    backward: &Decision,
    control: &Control,
) -> Result<Verdict> {
    let holds = forward.within && backward.within;
    // The worse direction; equal bounds keep the forward one.
    let reversed = !holds
        && match (forward.within, backward.within) {
            (true, _) => true,
            (_, true) => false,
            _ => backward.side.lower > forward.side.lower,
        };
    let event = match (holds, reversed) {
        (true, _) => None,
        (false, true) => Some(event(q, p, level, control)?),
        (false, false) => Some(event(p, q, level, control)?),
    };
    Ok(Verdict {
        holds,
        worst: Side {
            lower: forward.side.lower.max(backward.side.lower),
            upper: forward.side.upper.max(backward.side.upper),
        },
        event,
        reversed,
        exact: forward.exact || backward.exact,
    })
}

/// [`is_indistinguishable`] of float masses and a delta between two floats in [0, 1], when two validating passes decide
/// it; `None` otherwise, and for anything that is not a pmf.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub fn quick_verdict_of_floats(
    p: &[f64],
    q: &[f64],
    level: &Level,
    delta: [f64; 2],
    control: &Control,
) -> Result<Option<Verdict>> {
    let decided = |value: &Approximation| {
        let side = value.side();
        let within = side.upper <= delta[0];
        (within || side.lower > delta[1]).then_some(Decision { within, side, exact: false })
    };
    let directions = validated(p, q, level)
        .and_then(|value| decided(&value))
        .zip(validated(q, p, level).and_then(|value| decided(&value)));
    let Some((forward, backward)) = directions else { return Ok(None) };
    // A refuted claim needs its event, whose near ties are decided exactly: long ones are left to the general path.
    if !(forward.within && backward.within) && p.len() > QUICK_EVENT_OUTPUTS {
        return Ok(None);
    }
    let (p, q) = (Pmf::from_checked_floats(p), Pmf::from_checked_floats(q));
    verdict(&p, &q, level, &forward, &backward, control).map(Some)
}
