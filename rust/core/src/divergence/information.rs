//! Maximum, total variation, chi-square, Kullback-Leibler and Rényi divergences.

use super::hockey_stick::Difference;
use crate::{
    Result,
    control::Control,
    exact::{
        Integer, Interval, Level, Rational,
        exp::exp_interval,
        ln::{ln, ln_nearest},
        rounding::{Direction, rational_to_f64},
    },
    pmf::Pmf,
};
use num_traits::One;
use std::cmp::Ordering;

/// Enclosures are refined up to this many bits; a value that is still undecided then is within 2^-4000 of a midpoint
/// between two floats (or of zero), and its upper end is returned.
const MAXIMUM_BITS: i64 = 1 << 12;

/// `max ln(p/q)` over outputs with p > 0: the nearest float; infinite where q = 0 < p.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn max_divergence(p: &Pmf<'_>, q: &Pmf<'_>, control: &Control) -> Result<f64> {
    if p.outputs().any(|output| q.is_zero(output) && !p.is_zero(output)) {
        return Ok(f64::INFINITY);
    }
    // Float ratios, good to a few units in the last place unless something underflows, leave few candidates.
    let ratio = |output: usize| {
        let (mass, other) = (p.approximate()[output], q.approximate()[output]);
        let reliable = mass > 1e-290 && other > 1e-290 && mass / other < 1e290;
        if reliable { mass / other } else { f64::NAN }
    };
    let support = || p.outputs().filter(|&output| !p.is_zero(output));
    let threshold = support().map(ratio).fold(0.0, f64::max) * (1.0 - 1e-14);
    let mut largest: Option<Rational> = None;
    for output in support().filter(|&output| ratio(output).partial_cmp(&threshold) != Some(Ordering::Less)) {
        control.check()?;
        let exact = p.mass(output) / q.mass(output);
        if largest.as_ref().is_none_or(|largest| &exact > largest) {
            largest = Some(exact);
        }
    }
    Ok(largest.map_or(0.0, |ratio| ln_nearest(&ratio)))
}

/// `sum |p - q| / 2`: the nearest float.
///
/// # Errors
/// [`crate::Error::Cancelled`].
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
/// [`crate::Error::Cancelled`].
pub fn chi2_divergence(p: &Pmf<'_>, q: &Pmf<'_>, control: &Control) -> Result<f64> {
    if p.outputs().any(|output| q.is_zero(output) && !p.is_zero(output)) {
        return Ok(f64::INFINITY);
    }
    if same(p, q) {
        return Ok(0.0);
    }
    let both: Vec<usize> = p.outputs().filter(|&output| !q.is_zero(output)).collect();
    refine(|bits| {
        let mut sum = Interval::integer(0);
        for &output in &both {
            control.check()?;
            let (mass, other) = (p.mass(output), q.mass(output));
            let gap = Interval::rational(&(&mass - &other), bits);
            let inverse = Interval::rational(&other.recip(), bits);
            sum = sum.plus(&gap.times(&gap, bits).times(&inverse, bits), bits);
        }
        Ok(sum)
    })
}

fn same(p: &Pmf<'_>, q: &Pmf<'_>) -> bool {
    p.outputs().all(|output| {
        p.approximate()[output] == q.approximate()[output]
            && ((p.is_float() && q.is_float()) || p.mass(output) == q.mass(output))
    })
}

fn refine(mut evaluate: impl FnMut(i64) -> Result<Interval>) -> Result<f64> {
    let mut bits = 96;
    loop {
        let enclosure = evaluate(bits)?;
        if let Some(value) = enclosure.nearest_f64() {
            return Ok(value);
        }
        if bits >= MAXIMUM_BITS {
            return Ok(enclosure.upper.to_f64(Direction::Up));
        }
        bits *= 2;
    }
}

/// `sum p ln(p/q)` in nats: the nearest float; infinite where q = 0 < p.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn kl_divergence(p: &Pmf<'_>, q: &Pmf<'_>, control: &Control) -> Result<f64> {
    if same(p, q) {
        return Ok(0.0);
    }
    let support: Vec<usize> = p.outputs().filter(|&output| !p.is_zero(output)).collect();
    if support.iter().any(|&output| q.is_zero(output)) {
        return Ok(f64::INFINITY);
    }
    refine(|bits| {
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
/// [`crate::Error::Cancelled`].
pub fn renyi_divergence(p: &Pmf<'_>, q: &Pmf<'_>, order: &Rational, control: &Control) -> Result<f64> {
    if order.is_one() {
        return kl_divergence(p, q, control);
    }
    if same(p, q) {
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
    refine(|bits| {
        let factors = [Interval::rational(order, bits), Interval::rational(&rest, bits)];
        let mut sum = Interval::integer(0);
        for &output in &shared {
            control.check()?;
            let log_p = ln(&p.mass(output), bits).times(&factors[0], bits);
            let log_q = ln(&q.mass(output), bits).times(&factors[1], bits);
            sum = sum.plus(&exp_interval(&log_p.plus(&log_q, bits), bits), bits);
        }
        let log = Interval {
            lower: ln(&sum.lower.to_rational(), bits).lower,
            upper: ln(&sum.upper.to_rational(), bits).upper,
        };
        Ok(log.times(&Interval::rational(&(-&rest).recip(), bits), bits))
    })
}
