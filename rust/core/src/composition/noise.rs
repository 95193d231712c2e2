//! Continuous Gaussian noise at one level, and tails of the normal distribution: upper bounds of few bits, as tight as one likes.

use super::{
    gaussian::{distribution, pi},
    leaves::square_root,
};
use crate::{
    Error, Result,
    exact::{Integer, Interval, Level, Rational, dyadic::Dyadic, exp::exp, ln::ln},
};
use num_traits::{One, Signed, ToPrimitive, Zero};
use std::{cell::RefCell, cmp::Ordering, sync::OnceLock};

/// Bits of the constant that is kept.
const REMEMBERED: i64 = 512;
/// Significant bits of a bound.
const BITS: i64 = 160;
/// Bits of a loss that are computed at first.
const FIRST: i64 = 320;
/// Where x^2 is this, a tail e^(-x^2 / 2) / 2 is below 2^-462, and said to be that.
const FARTHEST_TAIL: u32 = 640;
const LEAST_TAIL: i64 = 462;
/// Of the level, in loss.
const MOST_LOSS: f64 = 1025.0;

/// Encloses 1 / sqrt(2 pi).
fn scale(bits: i64) -> Interval {
    static SHORT: OnceLock<Interval> = OnceLock::new();
    let compute = |bits| square_root(&pi(bits).times(&Interval::integer(2), bits), bits).reciprocal(bits);
    if bits <= REMEMBERED { SHORT.get_or_init(|| compute(REMEMBERED)).clone() } else { compute(bits) }
}

/// Encloses Phi(x). Fractions of powers of two are in lowest terms by shifts, where a greatest common divisor takes most of the time.
fn normal(x: &Dyadic, bits: i64) -> Interval {
    let lowest = |mantissa: &Integer, exponent: i64| {
        let zeros = mantissa.trailing_zeros().unwrap_or(0);
        let (mantissa, exponent) = (mantissa >> zeros, exponent + zeros.cast_signed());
        let places = exponent.unsigned_abs() as usize;
        if exponent >= 0 {
            Rational::from_integer(mantissa << places)
        } else {
            Rational::new_raw(mantissa, Integer::one() << places)
        }
    };
    let square = &x.mantissa * &x.mantissa;
    let density = exp(&lowest(&-&square, 2 * x.exponent - 1), bits).times(&scale(bits), bits);
    distribution(&lowest(&x.mantissa, x.exponent), &lowest(&square, 2 * x.exponent), &density, bits)
}

/// Encloses epsilon = ln E.
fn loss(level: &Level, bits: i64) -> Interval {
    let logarithm = if level.ratio().is_one() { Interval::integer(0) } else { ln(level.ratio(), bits) };
    logarithm.plus(&Interval::rational(level.exponent(), bits), bits)
}

/// How small values may get: those that are shown to be below 2^-`bits` are said to be that, and no others are finer resolved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Depth {
    bits: i64,
    /// Where x^2 is this, e^(-x^2 / 2) / 2 is below 2^-`bits`: above 2 ln 2 (bits - 1).
    farthest: f64,
}

/// As deep as a delta is ever asked for.
pub(crate) const DEEP: Depth = Depth { bits: 4096, farthest: 5700.0 };
/// As deep as parts of a delta matter.
pub(crate) const SHALLOW: Depth = Depth { bits: 384, farthest: 532.0 };

impl Depth {
    /// As deep as so many bits, from 1 to 4096.
    pub(crate) fn of(bits: i64) -> Self {
        if bits >= DEEP.bits {
            return DEEP;
        }
        let bits = bits.max(1);
        // 2 ln 2 is below 1.3863, and such products of floats are off by less than 1.
        Self { bits, farthest: 1.3863 * bits as f64 + 1.0 }
    }
}

/// A level E >= 1 of curves of Gaussian noise. Its logarithm is kept, as it takes most of the time.
#[derive(Debug)]
pub(crate) struct Point {
    level: Level,
    loss: RefCell<(i64, Interval)>,
}

impl Point {
    pub(crate) fn new(level: Level) -> Self {
        let loss = RefCell::new((FIRST, loss(&level, FIRST)));
        Self { level, loss }
    }

    /// Encloses ln E to so many bits, or more.
    fn loss(&self, bits: i64) -> Interval {
        let mut kept = self.loss.borrow_mut();
        if kept.0 < bits {
            *kept = (bits, loss(&self.level, bits));
        }
        kept.1.clone()
    }
}

fn power(exponent: i64) -> Dyadic {
    Dyadic { mantissa: Integer::one(), exponent }
}

/// The width of an interval over 2: by so much Phi rises over it at most, as its density is below 1/2.
fn rise(x: &Interval) -> Dyadic {
    let width = x.upper.plus(&x.lower.negated());
    Dyadic { exponent: width.exponent - 1, ..width }
}

/// At or above the delta of Gaussian noise at a level E = e^l >= 1: Phi(mu / 2 - l / mu) - E Phi(-mu / 2 - l / mu).
///
/// Balle and Wang (2018), Theorem 8. Above it by a part in 2^158 at most, where it is at least 2^-4096.
///
/// # Errors
/// Where `mu2` or the loss is negative, or the loss is above 1025.
pub fn gaussian_delta_above(mu2: &Rational, level: &Level) -> Result<Rational> {
    if mu2.is_negative() {
        return Err(Error::invalid("mu2", "must not be negative".to_owned()));
    }
    let point = Point::new(level.clone());
    let (least, most) = point.loss(64).to_f64_bounds();
    if most < 0.0 || least > MOST_LOSS {
        return Err(Error::invalid("level", format!("must be from 1 to e^{MOST_LOSS}")));
    }
    Ok(delta_above(mu2, &point, DEEP).to_rational())
}

/// The same for a point of at most e^1025.
///
/// # Numerics
/// The first argument is rounded up and the second one down, and so are the values of Phi and of E. `distribution` encloses Phi to
/// about 2^-bits, absolutely. Two terms of which the second is at most the first are as precise as their difference needs where bits
/// are those of a part of it, and of E, which multiplies the second; how many it has is guessed from e^(-x^2 / 2), and more are
/// taken until the enclosure is narrow.
pub(crate) fn delta_above(mu2: &Rational, point: &Point, depth: Depth) -> Dyadic {
    if !mu2.is_positive() {
        return Dyadic::integer(Integer::zero());
    }
    // The arguments of Phi times mu; 2^-depth is more than mu / sqrt(2 pi), which is more than the curve.
    let about = point.loss(64);
    let squared = |bits| Interval::rational(mu2, bits);
    let halved = |x: &Dyadic| Dyadic { exponent: x.exponent - 1, ..x.clone() };
    let half = |x: &Interval| Interval { lower: halved(&x.lower), upper: halved(&x.upper) };
    let middle = half(&squared(64)).minus(&about, 64);
    let (negative, positive) =
        (middle.upper.sign() == Ordering::Less, middle.lower.sign() == Ordering::Greater);
    let ratio = middle.times(&middle, 64).times(&squared(64).reciprocal(64), 64).to_f64_bounds().0;
    let magnitude = mu2.denom().bits().cast_signed() - mu2.numer().bits().cast_signed();
    if magnitude > 2 * depth.bits || (negative && ratio >= depth.farthest) {
        return power(-depth.bits);
    }
    if positive && ratio >= depth.farthest {
        return power(0);
    }
    let smaller = (magnitude + 1).max(0) / 2;
    let growth = (about.to_f64_bounds().1 * 1.5).ceil() as i64 + 8;
    let deep = if negative { (ratio * 0.73) as i64 } else { 0 };
    let mut wanted = 16 + smaller + deep;
    loop {
        let bits = wanted.min(depth.bits) + BITS + 16 + growth + smaller;
        let fine = bits + 64;
        let (loss, half) = (point.loss(fine), half(&squared(fine)));
        let inverse = square_root(&squared(fine), fine).reciprocal(fine);
        let first = half.minus(&loss, fine).times(&inverse, fine);
        let second = half.plus(&loss, fine).times(&inverse, fine).negated();
        let (above, below) = (normal(&first.upper, bits), normal(&second.lower, bits));
        let factor = point.level.enclosure(bits);
        let upper = above.upper.plus(&factor.lower.times(&below.lower).negated());
        let lower = above
            .lower
            .plus(&rise(&first).negated())
            .plus(&factor.upper.times(&below.upper.plus(&rise(&second))).negated());
        let width = upper.plus(&lower.negated()).times(&power(BITS));
        if width.compare(&upper) != Ordering::Greater || wanted >= depth.bits {
            let found = upper.rounded(BITS, true);
            return if found.compare(&power(0)) == Ordering::Greater { power(0) } else { found };
        }
        wanted += 64;
    }
}

/// At or above Phi(-x), by x^2: by a part in 2^150 or so, and 2^-462 where x^2 is 640 or more.
///
/// # Errors
/// Where the square is negative.
pub fn normal_tail_above(square: &Rational) -> Result<Rational> {
    if square.is_negative() {
        return Err(Error::invalid("square", "must not be negative".to_owned()));
    }
    if square >= &Rational::from_integer(FARTHEST_TAIL.into()) {
        return Ok(power(-LEAST_TAIL).to_rational());
    }
    // -log2 of e^(-x^2 / 2) / (sqrt(2 pi) (x + 1)) at most.
    let depth = (square * Rational::new(73.into(), 100.into())).to_integer().to_i64().unwrap_or(0) + 16;
    let bits = BITS + depth;
    let root = square_root(&Interval::rational(square, bits), bits);
    Ok(normal(&root.lower.negated(), bits).upper.rounded(BITS, true).to_rational())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rational(numerator: i64, denominator: i64) -> Rational {
        Rational::new(numerator.into(), denominator.into())
    }

    /// Phi(x) for x < 0 by midpoints and by trapezoids of the density: where it is convex one is below, and one above.
    fn by_sums(x: f64) -> (f64, f64) {
        let (steps, end) = (1 << 16, -x + 12.0);
        let step = (end + x) / f64::from(steps);
        let density = |y: f64| (-y * y / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let middle: f64 = (0..steps).map(|i| density(-x + (f64::from(i) + 0.5) * step)).sum();
        let inner: f64 = (1..steps).map(|i| density(-x + f64::from(i) * step)).sum();
        (middle * step, (inner + density(-x) / 2.0 + density(end) / 2.0) * step)
    }

    #[test]
    fn tails_are_between_sums_of_the_density() {
        for (numerator, denominator) in [(-1, 1), (-3, 2), (-5, 1), (-17, 3), (-12, 1)] {
            let x = rational(numerator, denominator);
            let found = normal_tail_above(&(&x * &x)).unwrap().to_f64().unwrap();
            let (below, above) = by_sums(x.to_f64().unwrap());
            assert!(
                below * (1.0 - 1e-10) <= found && found <= above * (1.0 + 1e-10),
                "{x}: {below} {found} {above}"
            );
        }
    }

    #[test]
    fn tails_fall_and_end_at_the_least() {
        let mut before = Rational::one();
        for tenth in 0..6_500 {
            let found = normal_tail_above(&rational(tenth, 10)).unwrap();
            assert!(found < before || tenth >= 6_400);
            before = found;
        }
        let middle = normal_tail_above(&Rational::zero()).unwrap() - rational(1, 2);
        assert!(!middle.is_negative() && middle < power(-150).to_rational());
        assert_eq!(before, power(-462).to_rational());
        assert!(normal_tail_above(&rational(6_399, 10)).unwrap() < before);
        assert!(normal_tail_above(&rational(-1, 9)).is_err());
    }

    /// At E = 1 it is erf(mu / sqrt(8)), which is above .39 mu for small mu.
    #[test]
    fn tiny_distances_are_resolved() {
        for (bits, depth) in [(500_usize, SHALLOW), (6_000, DEEP)] {
            let mu2 = Rational::new(Integer::one(), Integer::one() << bits);
            let found = delta_above(&mu2, &Point::new(Level::rational(Rational::one())), depth);
            let mu = power(-(i64::try_from(bits).unwrap()) / 2).to_rational();
            assert!(
                found.to_rational() >= &mu * rational(39, 100) && found.to_rational() <= mu * rational(2, 5)
            );
        }
    }

    /// For mu = 1 it is phi(x) (R(x) - R(x + 1)) with x = l - 1/2 and x / (x^2 + 1) < R(x) < 1 / x.
    #[test]
    fn values_just_above_the_least_are_resolved() {
        for (tenths, depth) in [(224_i64, SHALLOW), (229, DEEP), (500, DEEP), (750, DEEP)] {
            let x = f64::from(u32::try_from(tenths).unwrap()) / 10.0;
            let exponent = -x * x / 2.0 * std::f64::consts::LOG2_E - std::f64::consts::TAU.sqrt().log2();
            let below = exponent + (x / (x * x + 1.0) - 1.0 / (x + 1.0)).log2();
            let above = exponent + (1.0 / x - (x + 1.0) / ((x + 1.0) * (x + 1.0) + 1.0)).log2();
            let point = Point::new(Level::new(Rational::one(), rational(tenths + 5, 10)));
            let found = delta_above(&Rational::one(), &point, depth);
            let found = found.exponent as f64 + found.mantissa.to_f64().unwrap().log2();
            assert!(found >= below.max(-(depth.bits as f64)) - 1e-6, "{x}: {found} {below}");
            assert!(found <= above.max(-(depth.bits as f64)) + 1e-6, "{x}: {found} {above}");
        }
    }

    /// At E = 1 the curve is the total variation; at l = mu^2 / 2 the first argument is 0.
    #[test]
    fn curves_meet_closed_forms() {
        for (numerator, denominator) in [(1, 100), (1, 1), (9, 4), (30, 1)] {
            let mu2 = rational(numerator, denominator);
            let tail = normal_tail_above(&(&mu2 / Integer::from(4))).unwrap();
            let exact = Rational::one() - &tail * Integer::from(2);
            let found = gaussian_delta_above(&mu2, &Level::new(Rational::one(), Rational::zero())).unwrap();
            let off = power(-145).to_rational();
            assert!(found >= exact && found <= exact + &off);
            let level = Level::new(Rational::one(), &mu2 / Integer::from(2));
            let found = gaussian_delta_above(&mu2, &level).unwrap();
            let tail = normal_tail_above(&mu2).unwrap();
            let factor = exp(&(&mu2 / Integer::from(2)), 400);
            let half = rational(1, 2);
            assert!(found >= &half - factor.upper.to_rational() * &tail);
            assert!(found <= &half - factor.lower.to_rational() * tail + off);
        }
    }

    #[test]
    fn forms_of_a_level_agree_and_ends_are_said() {
        let (mu2, one) = (rational(1, 20), Rational::one());
        let ratio = Level::rational(rational(3, 1));
        let exponent = Level::new(one.clone(), ln(&rational(3, 1), 600).lower.to_rational());
        let (a, b) =
            (gaussian_delta_above(&mu2, &ratio).unwrap(), gaussian_delta_above(&mu2, &exponent).unwrap());
        assert!((&a - &b).abs() <= &a * power(-157).to_rational());
        let far = Level::new(one.clone(), rational(1000, 1));
        assert_eq!(gaussian_delta_above(&mu2, &far).unwrap(), power(-4096).to_rational());
        assert_eq!(gaussian_delta_above(&rational(10_000_000, 1), &far).unwrap(), one);
        assert!(gaussian_delta_above(&Rational::zero(), &far).unwrap().is_zero());
        assert!(gaussian_delta_above(&rational(-1, 2), &far).is_err());
        assert!(gaussian_delta_above(&mu2, &Level::new(one, rational(1026, 1))).is_err());
        assert!(gaussian_delta_above(&mu2, &Level::rational(rational(1, 2))).is_err());
    }
}
