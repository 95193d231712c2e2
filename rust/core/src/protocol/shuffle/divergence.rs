//! What NB(r, p) noise hides, certified: hockey-stick divergences of shifted counts.

use super::distribution::{BITS, NegativeBinomialDistribution};
use crate::{
    Error, Result,
    control::Control,
    exact::{Integer, Interval, Level, Rational, dyadic::Dyadic},
};
use num_traits::{One, Signed, ToPrimitive, Zero};
use std::cmp::Ordering;

/// Terms between two looks at the control.
const CHECK_EVERY: usize = 1 << 8;

/// e^epsilon is written out for less than this.
const LARGEST_EPSILON: u32 = 1 << 20;

/// How one replaced user changes the counts behind the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// One count moves by 1, up or down: Y against Y + 1.
    OneCount,
    /// One count moves up by 1 and another down: (Y1 + 1, Y2) against (Y1, Y2 + 1), Y1 and Y2 independent.
    TwoCounts,
}

impl Change {
    /// How many noisy counts change.
    pub fn counts(self) -> u32 {
        match self {
            Self::OneCount => 1,
            Self::TwoCounts => 2,
        }
    }
}

/// Encloses the hockey-stick divergence at E = e^epsilon of neighboring noisy counts, the larger of both directions.
///
/// # Guarantee
/// The best event is found by comparisons of rationals at `E_lo` <= E: the upper end bounds the divergence at `E_lo`,
/// which is at least that at E. The lower end is what that event gives at an upper bound of E. So no rounding of a
/// position makes the upper end too small.
///
/// # Errors
/// [`Error::InvalidArgument`] naming `epsilon` from 2^20 on; [`Error::Canceled`].
pub fn divergence(
    distribution: &NegativeBinomialDistribution,
    level: &Level,
    change: Change,
    control: &Control,
) -> Result<Interval> {
    if level.exponent() >= &Rational::from_integer(Integer::from(LARGEST_EPSILON)) {
        return Err(Error::invalid("epsilon", "must be below 2^20"));
    }
    let e = level.enclosure(BITS);
    let lowest = e.lower.to_rational().max(Rational::one());
    let e = Interval { lower: Dyadic::quotient(lowest.numer(), lowest.denom(), BITS, false), upper: e.upper };
    let found = match change {
        Change::OneCount => larger(down(distribution, &e, &lowest, control)?, up(distribution, &e, &lowest)),
        Change::TwoCounts => two_counts(distribution, &e, &lowest, control)?,
    };
    Ok(Interval { lower: at_least_zero(found.lower), upper: found.upper })
}

/// Y against Y + 1.
///
/// The ratio P[k] / P[k - 1] = p (k + r - 1) / k falls, so that the terms P[k] - E P[k - 1] are positive up to some k,
/// at k = 0 always, and not after it.
fn down(
    distribution: &NegativeBinomialDistribution,
    e: &Interval,
    lowest: &Rational,
    control: &Control,
) -> Result<Interval> {
    let mut sum = distribution.mass(0).clone();
    for k in 1..distribution.len() {
        if k.is_multiple_of(CHECK_EVERY) {
            control.check()?;
        }
        let count = Rational::from_integer(Integer::from(k));
        if distribution.p() * (&count + distribution.r() - Rational::one()) <= lowest * count {
            return Ok(sum);
        }
        sum = sum.plus(&gain(distribution.mass(k), distribution.mass(k - 1), e), BITS);
    }
    // Not reached: the ratio is below 1 <= E where the listed values end. If it were, this bounds the rest.
    Ok(sum.plus(&uncertain(distribution.tail(distribution.len())), BITS))
}

/// Y + 1 against Y: the event is k > E p (k + r - 1), a tail, and empty for E p >= 1.
fn up(distribution: &NegativeBinomialDistribution, e: &Interval, lowest: &Rational) -> Interval {
    let slope = Rational::one() - lowest * distribution.p();
    if !slope.is_positive() {
        return Interval::integer(0);
    }
    let first = first_above(
        &(lowest * distribution.p() * (distribution.r() - Rational::one()) / slope),
        distribution.len(),
    );
    match first {
        Some(first) => gain(&distribution.tail(first - 1), &distribution.tail(first), e),
        None => uncertain(distribution.tail(distribution.len() - 1)),
    }
}

/// (Y1 + 1, Y2) against (Y1, Y2 + 1); exchanging the two counts gives the other direction.
///
/// The probabilities of (a, b) are P[a - 1] P[b] and P[a] P[b - 1]. With g(k) = P[k] / P[k - 1] = p (k + r - 1) / k,
/// which falls from g(0) = infinity, (a, b) counts when g(b) > E g(a): p drops out. For b = 0 that is a >= 1. For
/// b >= 1 it is a > E b (r - 1) / (r - 1 - (E - 1) b), and nothing where that denominator is not positive. So the
/// divergence is P[0] + sum over b of P[b] P[Y >= a(b) - 1] - E P[b - 1] P[Y >= a(b)], with the least such a(b).
fn two_counts(
    distribution: &NegativeBinomialDistribution,
    e: &Interval,
    lowest: &Rational,
    control: &Control,
) -> Result<Interval> {
    let mut sum = distribution.mass(0).clone();
    let successes = distribution.r() - Rational::one();
    for b in 1..distribution.len() {
        if b.is_multiple_of(CHECK_EVERY) {
            control.check()?;
        }
        let count = Rational::from_integer(Integer::from(b));
        let room = &successes - (lowest - Rational::one()) * &count;
        if !room.is_positive() {
            return Ok(sum);
        }
        let Some(first) = first_above(&(lowest * count * &successes / room), distribution.len()) else {
            // a(b) never falls again: all that is left has Y1 and Y2 in their tails.
            let rest = distribution.tail(b).times(&distribution.tail(distribution.len() - 1), BITS);
            return Ok(sum.plus(&uncertain(rest), BITS));
        };
        let more = distribution.mass(b).times(&distribution.tail(first - 1), BITS);
        sum =
            sum.plus(&gain(&more, &distribution.mass(b - 1).times(&distribution.tail(first), BITS), e), BITS);
    }
    Ok(sum.plus(&uncertain(distribution.tail(distribution.len())), BITS))
}

/// more - E less.
fn gain(more: &Interval, less: &Interval, e: &Interval) -> Interval {
    more.minus(&less.times(e, BITS), BITS)
}

/// The least integer above x >= 0, if it is below the limit.
fn first_above(x: &Rational, limit: usize) -> Option<usize> {
    (x.floor().to_integer() + Integer::one()).to_usize().filter(|&first| first < limit)
}

/// Anything from 0 to the upper end.
fn uncertain(x: Interval) -> Interval {
    Interval { lower: Dyadic::integer(Integer::zero()), upper: x.upper }
}

fn at_least_zero(x: Dyadic) -> Dyadic {
    if x.sign() == Ordering::Less { Dyadic::integer(Integer::zero()) } else { x }
}

fn larger(a: Interval, b: Interval) -> Interval {
    let of = |a: Dyadic, b: Dyadic| if a.compare(&b) == Ordering::Less { b } else { a };
    Interval { lower: of(a.lower, b.lower), upper: of(a.upper, b.upper) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The larger of both directions is `down` wherever anybody has looked, so that `up` needs a test of its own.
    #[test]
    fn upward_shifts_are_those_of_all_counts() {
        let control = Control::new();
        let ratio = |a: i64, b: i64| Rational::new(Integer::from(a), Integer::from(b));
        for (r, p) in [(2, ratio(1, 10)), (5, ratio(1, 3)), (9, ratio(2, 5)), (30, ratio(1, 20))] {
            let distribution = NegativeBinomialDistribution::new(&ratio(r, 1), &p, &control).unwrap();
            for e in [ratio(1, 1), ratio(5, 4), ratio(2, 1), ratio(5, 1), ratio(21, 1)] {
                let mut exact = Rational::zero();
                let mut mass = num_traits::pow(Rational::one() - &p, usize::try_from(r).unwrap());
                for k in 0..120 {
                    let next = &mass * &p * ratio(k + r, k + 1);
                    exact += (&mass - &e * &next).max(Rational::zero());
                    mass = next;
                }
                let found = up(&distribution, &Interval::rational(&e, BITS), &e);
                assert!(exact <= found.upper.to_rational(), "{r} {p} {e}");
                assert!(found.lower.to_rational() <= &exact + ratio(1, 1 << 40), "{r} {p} {e}");
                assert_eq!(exact.is_zero(), found.upper.mantissa.is_zero(), "{r} {p} {e}");
            }
        }
    }
}
