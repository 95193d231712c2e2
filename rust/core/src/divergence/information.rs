//! Maximum, total variation, chi-square, Kullback-Leibler and Rényi divergences.

use super::{breakpoints::max_ratio, hockey_stick::Difference};
use crate::{
    Result,
    control::Control,
    exact::{
        Integer, Interval, Level, Rational,
        dyadic::Dyadic,
        exp::exp_interval,
        ln::{ln, ln_nearest},
        rounding::{Direction, rational_to_f64},
    },
    pmf::Pmf,
};
use num_traits::{One, Zero};
use std::cmp::Ordering;

/// Enclosures are refined up to this many bits.
const MAXIMUM_BITS: i64 = 3 << 11;

/// `max ln(p/q)` over outputs with p > 0: the nearest float; infinite where q = 0 < p.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub fn max_divergence(p: &Pmf<'_>, q: &Pmf<'_>, control: &Control) -> Result<f64> {
    Ok(match max_ratio(p, q, control)? {
        None => f64::INFINITY,
        Some(ratio) if ratio.is_zero() => 0.0, // no mass at all cannot happen, but has no ratio
        Some(ratio) => ln_nearest(&ratio),
    })
}

/// `sum |p - q| / 2`: the nearest float.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub fn total_variation(p: &Pmf<'_>, q: &Pmf<'_>, control: &Control) -> Result<f64> {
    let level = Level::rational(Rational::one());
    let one_way = |p, q| {
        let difference = Difference::new(p, q, &level, control)?;
        Ok(difference.mass - difference.other)
    };
    let twice: Rational = one_way(p, q)? + one_way(q, p)?;
    Ok(rational_to_f64(&(twice / Integer::from(2)), Direction::Nearest))
}

/// `sum (p - q)^2 / q` over outputs with q > 0: the nearest float; infinite where q = 0 < p.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub fn chi2_divergence(p: &Pmf<'_>, q: &Pmf<'_>, control: &Control) -> Result<f64> {
    if p.outputs().any(|output| q.is_zero(output) && !p.is_zero(output)) {
        return Ok(f64::INFINITY);
    }
    if same(p, q, control)? {
        return Ok(0.0);
    }
    let both: Vec<usize> = p.outputs().filter(|&output| !q.is_zero(output)).collect();
    let quick = refine(192, |bits| {
        let mut sum = Interval::integer(0);
        for &output in &both {
            control.check()?;
            let (mass, other) = (p.mass(output), q.mass(output));
            let gap = Interval::rational(&(&mass - &other), bits);
            let inverse = Interval::rational(&other.recip(), bits);
            sum = sum.plus(&gap.times(&gap, bits).times(&inverse, bits), bits);
        }
        Ok(sum)
    })?;
    if let Ok(value) = quick {
        return Ok(value);
    }
    // A rational number, which may be a float or a midpoint exactly.
    let mut sum = Rational::zero();
    for &output in &both {
        control.check()?;
        let (mass, other) = (p.mass(output), q.mass(output));
        let gap = &mass - &other;
        sum += &gap * &gap / other;
    }
    Ok(rational_to_f64(&sum, Direction::Nearest))
}

fn same(p: &Pmf<'_>, q: &Pmf<'_>, control: &Control) -> Result<bool> {
    let floats = p.is_float() && q.is_float();
    for output in p.outputs() {
        control.check()?;
        let alike =
            p.approximate()[output] == q.approximate()[output] && p.is_zero(output) == q.is_zero(output);
        if !(alike && (floats || p.mass(output) == q.mass(output))) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Evaluates at growing precision until both ends round to one float, at most up to `limit` bits; the inner error is the
/// last enclosure, undecided.
fn refine(
    limit: i64,
    mut evaluate: impl FnMut(i64) -> Result<Interval>,
) -> Result<std::result::Result<f64, Interval>> {
    let mut bits = 96;
    loop {
        let enclosure = evaluate(bits)?;
        if let Some(value) = enclosure.nearest_f64() {
            return Ok(Ok(value));
        }
        if 2 * bits > limit {
            return Ok(Err(enclosure));
        }
        bits *= 2;
    }
}

/// As [`refine`] for numbers that are transcendental or zero. One that is undecided at the limit is zero if its
/// enclosure, narrower than any float by thousands of bits, contains zero; otherwise its upper end stands for it.
fn refine_or_zero(limit: i64, evaluate: impl FnMut(i64) -> Result<Interval>) -> Result<f64> {
    Ok(refine(limit, evaluate)?.unwrap_or_else(|undecided| {
        let around_zero =
            undecided.lower.sign() != Ordering::Greater && undecided.upper.sign() != Ordering::Less;
        if around_zero { 0.0 } else { undecided.upper.to_f64(Direction::Up) }
    }))
}

/// `sum p ln(p/q)` in nats: the nearest float; infinite where q = 0 < p.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub fn kl_divergence(p: &Pmf<'_>, q: &Pmf<'_>, control: &Control) -> Result<f64> {
    if same(p, q, control)? {
        return Ok(0.0);
    }
    let support: Vec<usize> = p.outputs().filter(|&output| !p.is_zero(output)).collect();
    if support.iter().any(|&output| q.is_zero(output)) {
        return Ok(f64::INFINITY);
    }
    refine_or_zero(MAXIMUM_BITS, |bits| {
        let mut sum = Interval::integer(0);
        for &output in &support {
            control.check()?;
            let mass = p.mass(output);
            let log = ln(&(&mass / q.mass(output)), bits);
            sum = sum.plus(&log.times(&Interval::rational(&mass, bits), bits), bits);
        }
        Ok(sum)
    })
}

/// `ln(sum p^a q^(1-a)) / (a - 1)` in nats for the order a > 0: the nearest float; a = 1 is Kullback-Leibler.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub fn renyi_divergence(p: &Pmf<'_>, q: &Pmf<'_>, order: &Rational, control: &Control) -> Result<f64> {
    if order.is_one() {
        return kl_divergence(p, q, control);
    }
    if same(p, q, control)? {
        return Ok(0.0);
    }
    let support: Vec<usize> = p.outputs().filter(|&output| !p.is_zero(output)).collect();
    if order > &Rational::one() && support.iter().any(|&output| q.is_zero(output)) {
        return Ok(f64::INFINITY);
    }
    let shared: Vec<usize> = support.into_iter().filter(|&output| !q.is_zero(output)).collect();
    if shared.is_empty() {
        return Ok(f64::INFINITY); // order below 1, disjoint supports
    }
    let rest = Rational::one() - order;
    let factor = (-&rest).recip();
    // The logarithm of the sum is (order - 1) times the result: an order near 1 needs that much more precision.
    // And a large order is a factor of all logarithms: their gaps, of which e^x is taken, lose as many bits.
    let lost = (order.numer().bits().cast_signed() - order.denom().bits().cast_signed()).max(0);
    let limit = MAXIMUM_BITS + factor.numer().bits().cast_signed();
    refine_or_zero(limit, |bits| {
        let bits = bits + lost;
        let factors = [Interval::rational(order, bits), Interval::rational(&rest, bits)];
        let mut logs = Vec::with_capacity(shared.len());
        for &output in &shared {
            control.check()?;
            let log_p = ln(&p.mass(output), bits).times(&factors[0], bits);
            let log_q = ln(&q.mass(output), bits).times(&factors[1], bits);
            logs.push(log_p.plus(&log_q, bits));
        }
        // With the largest term taken out, the sum lies between 1 (about) and the number of outputs.
        let largest = logs.iter().map(|log| &log.lower).max_by(|a, b| a.compare(b)).cloned();
        let largest =
            largest.map_or_else(|| Interval::integer(0), |end| Interval { lower: end.clone(), upper: end });
        let negligible = Dyadic { mantissa: 1.into(), exponent: -(bits + 64) };
        let threshold = Dyadic::integer((-(bits + 64)).into());
        let mut sum = Interval::integer(0);
        for log in &logs {
            control.check()?;
            let gap = log.minus(&largest, bits);
            let term = if gap.upper.compare(&threshold) == Ordering::Less {
                Interval { lower: Dyadic::integer(0.into()), upper: negligible.clone() } // e^x < 2^x here
            } else {
                exp_interval(&gap, bits)
            };
            sum = sum.plus(&term, bits);
        }
        let log = Interval {
            lower: ln(&sum.lower.to_rational(), bits).lower,
            upper: ln(&sum.upper.to_rational(), bits).upper,
        };
        Ok(log.plus(&largest, bits).times(&Interval::rational(&factor, bits), bits))
    })
}
