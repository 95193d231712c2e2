//! Randomized responses together: what the worst mechanisms of given privacy compose to.
//!
//! k randomized responses at e^epsilon = E, true answer against the other one: l lies among them have mass
//! C(k, l) E^(k-l) / (1 + E)^k, and under the other answer that of k - l lies. Every composition of k mechanisms that are
//! epsilon-DP is dominated by this pair (Kairouz, Oh, Viswanath 2015, Theorems 3.3 and 3.5; `docs/proofs/composition.md`).
//! Masses are integers over a common total, exact while that is cheap, and otherwise rounded so that the divergence of the
//! pair can only grow.

use crate::{
    Error, Result,
    control::Control,
    exact::{Integer, Rational, dyadic::Dyadic, ln::ln_bounds, rounding::rational_from_f64},
};
use num_bigint::{BigInt, BigUint};
use num_integer::Integer as _;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// The most responses, and the most combinations of lies in all groups but the longest.
const MOST_TERMS: u64 = 1 << 17;
/// Masses of up to so many bits, for each response, are exact.
const EXACT_BITS: u64 = 1 << 22;
/// The most bits of all masses.
const MOST_BITS: u64 = 1 << 29;
/// Bits of rounded masses.
const PLACES: u64 = 512;
/// Bits more that there must be room for, where as many would tell the ends of long lists from 0.
const LEAST_ROOM: u64 = 1 << 13;

/// Randomized responses at one level.
#[derive(Debug)]
pub struct Responses {
    /// E > 1.
    level: Rational,
    /// k >= 1.
    count: u64,
    /// At l the sum of the masses of 0 to l - 1 lies, in units of 1 / total: of the true answer, not below what it is.
    above: Vec<BigUint>,
    /// The same of the other answer, not above what it is.
    below: Vec<BigUint>,
    total: BigUint,
    exact: bool,
}

impl Responses {
    /// So many responses at E = `top` / `bottom`, in lowest terms.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless E > 1 and the count is at least 1; [`Error::TooLarge`] for more terms or longer ones
    /// than are added up; [`Error::Canceled`].
    pub fn new(top: &BigUint, bottom: &BigUint, count: &BigUint, control: &Control) -> Result<Self> {
        if bottom.is_zero() || top <= bottom {
            return Err(Error::invalid("level", "must be above 1"));
        }
        if count.is_zero() {
            return Err(Error::invalid("count", "must be at least 1"));
        }
        let bits = top.bits() + bottom.bits();
        let Some(k) = count.to_u64().filter(|&k| k <= MOST_TERMS && k.saturating_mul(bits) <= MOST_BITS)
        else {
            return Err(too_many(count));
        };
        let exact = (k * k).saturating_mul(bits) <= EXACT_BITS;
        let (upper, lower, total) = if exact {
            let masses = exact_masses(top, bottom, k, control)?;
            let total = (top + bottom).pow(u32::try_from(k).unwrap_or(u32::MAX));
            (masses.clone(), masses, total)
        } else {
            let room = (MOST_BITS / k).saturating_sub(bits + PLACES);
            let more = more_places(top, bottom, k);
            if more.min(LEAST_ROOM) > room || k * (bits + PLACES) > MOST_BITS {
                return Err(too_many(count));
            }
            let places = PLACES + more.min(room);
            let (upper, lower) = rounded_masses(top, bottom, k, places, control)?;
            (upper, lower, BigUint::one() << places)
        };
        let above = sums(upper.into_iter());
        let below = sums(lower.into_iter().rev());
        let level = Rational::new_raw(Integer::from(top.clone()), Integer::from(bottom.clone()));
        Ok(Self { level, count: k, above, below, total, exact })
    }

    /// Whether nothing was rounded.
    pub fn exact(&self) -> bool {
        self.exact
    }

    /// The least e^epsilon >= 1 at which the divergence is at most delta = `numerator` / `denominator`, exactly or rounded up,
    /// as a fraction that need not be in lowest terms.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a denominator of 0; [`Error::TooLarge`] where the masses that decide are too small to be
    /// told from 0; [`Error::Canceled`].
    pub fn least_multiplier(
        &self,
        numerator: &BigUint,
        denominator: &BigUint,
        control: &Control,
    ) -> Result<(BigUint, BigUint)> {
        if denominator.is_zero() {
            return Err(Error::invalid("delta", "must be a number"));
        }
        // The divergence is the largest of above(t) - e^epsilon below(t), so each t asks for its own least e^epsilon.
        let allowed = numerator * &self.total;
        let (mut top, mut bottom) = (BigUint::one(), BigUint::one());
        for (p, q) in self.above.iter().zip(&self.below) {
            control.check()?;
            let reached = p * denominator;
            if reached <= allowed {
                continue;
            }
            let (excess, divisor) = (reached - &allowed, q * denominator);
            if &excess * &bottom > &top * &divisor {
                if divisor.is_zero() {
                    return Err(too_many(&self.count.into()));
                }
                (top, bottom) = (excess, divisor);
            }
        }
        Ok((top, bottom))
    }
}

fn too_many(count: &BigUint) -> Error {
    Error::too_large(format!(
        "optimal composition of k={count} mechanisms at this epsilon has too many terms to add up (at most {MOST_TERMS}); \
         compose with zcdp_delta(k * pure_to_zcdp(epsilon), ...) or compose_advanced instead"
    ))
}

/// Bits to tell E^-k from 0. A proposal: any number is valid.
fn more_places(top: &BigUint, bottom: &BigUint, count: u64) -> u64 {
    let wanted = (1.5 * count as f64 * (logarithm(top) - logarithm(bottom))).ceil();
    if wanted < MOST_BITS as f64 { wanted.max(0.0) as u64 } else { MOST_BITS }
}

/// About ln x for any x >= 1.
fn logarithm(x: &BigUint) -> f64 {
    match x.to_f64() {
        Some(float) if float.is_finite() => float.ln(),
        _ => {
            let leading = (x >> (x.bits() - 64)).to_f64().unwrap_or(1.0);
            (leading / 2_f64.powi(64)).ln() + std::f64::consts::LN_2 * x.bits() as f64
        }
    }
}

/// C(k, l) a^(k-l) b^l for E = a / b and l = 0, ..., k; they sum to (a + b)^k.
fn exact_masses(top: &BigUint, bottom: &BigUint, count: u64, control: &Control) -> Result<Vec<BigUint>> {
    let mut mass = top.pow(u32::try_from(count).unwrap_or(u32::MAX));
    let mut masses = Vec::with_capacity(count as usize + 1);
    for lies in 0..count {
        control.check()?;
        // Exact: C(k, l+1) = C(k, l) (k - l) / (l + 1), and a^(k-l) has a factor a left.
        let next = &mass * (count - lies) * bottom / (top * (lies + 1));
        masses.push(mass);
        mass = next;
    }
    masses.push(mass);
    Ok(masses)
}

/// Masses in units of 2^-places, rounded up and rounded down.
fn rounded_masses(
    top: &BigUint,
    bottom: &BigUint,
    count: u64,
    places: u64,
    control: &Control,
) -> Result<(Vec<BigUint>, Vec<BigUint>)> {
    // Ratios of neighboring masses are simple, so they are taken outwards from the largest, relative to it, where every
    // rounding is one of a unit and none grows; then divided by their sum.
    let peak = (bottom * (count + 1) / (top + bottom)).to_usize().unwrap_or(0);
    let k = count as usize;
    let unit = BigUint::one() << places;
    let (mut upper, mut lower) = (vec![BigUint::zero(); k + 1], vec![BigUint::zero(); k + 1]);
    (upper[peak], lower[peak]) = (unit.clone(), unit);
    let mut step = |from: usize, to: usize, factor: &BigUint, divisor: &BigUint| {
        upper[to] = (&upper[from] * factor).div_ceil(divisor);
        lower[to] = &lower[from] * factor / divisor;
        control.check()
    };
    for lies in peak..k {
        step(lies, lies + 1, &(bottom * (k - lies)), &(top * (lies + 1)))?;
    }
    for lies in (1..=peak).rev() {
        step(lies, lies - 1, &(top * lies), &(bottom * (k - lies + 1)))?;
    }
    let (most, least): (BigUint, BigUint) = (upper.iter().sum(), lower.iter().sum());
    for mass in &mut upper {
        control.check()?;
        *mass = (&*mass << places).div_ceil(&least);
    }
    for mass in &mut lower {
        control.check()?;
        *mass = (&*mass << places) / &most;
    }
    Ok((upper, lower))
}

/// 0, the first, the first two together, and so on.
fn sums(masses: impl Iterator<Item = BigUint>) -> Vec<BigUint> {
    let mut sum = BigUint::zero();
    let mut found = vec![sum.clone()];
    found.extend(masses.map(|mass| {
        sum += mass;
        sum.clone()
    }));
    found
}

/// The hockey-stick divergence of all the responses together at e^epsilon = `top` / `bottom`, exactly or rounded up, as a
/// fraction that need not be in lowest terms.
///
/// # Errors
/// [`Error::InvalidArgument`] unless e^epsilon >= 1; [`Error::TooLarge`] for too many combinations of lies;
/// [`Error::Canceled`].
pub fn divergence(
    groups: &[&Responses],
    top: &BigUint,
    bottom: &BigUint,
    control: &Control,
) -> Result<(BigUint, BigUint)> {
    if bottom.is_zero() || top < bottom {
        return Err(Error::invalid("multiplier", "must be at least 1"));
    }
    let mut others = groups.to_vec();
    // Of equally long ones the last is walked by sums, as a stable order has it.
    others.sort_by_key(|group| group.count);
    let Some(longest) = others.pop() else {
        return Ok((BigUint::zero(), BigUint::one()));
    };
    check_combinations(groups, &others)?;
    let mut walk = Walk {
        goal: Span::of_logarithm(top, bottom),
        step: Span::of_logarithm_of(&longest.level),
        logs: others.iter().map(|group| Span::of_logarithm_of(&group.level)).collect(),
        others,
        longest,
        total: BigInt::zero(),
        control,
    };
    let goal = walk.goal.clone();
    walk.add(0, bottom, top, &goal)?;
    let scale = groups.iter().fold(bottom.clone(), |scale, group| scale * &group.total);
    let total = walk.total.to_biguint().unwrap_or_default();
    Ok(if total > scale { (BigUint::one(), BigUint::one()) } else { (total, scale) })
}

fn check_combinations(groups: &[&Responses], others: &[&Responses]) -> Result<()> {
    let combinations = others.iter().fold(BigUint::one(), |product, group| product * (group.count + 1));
    if combinations <= BigUint::from(MOST_TERMS) {
        return Ok(());
    }
    let counts: Vec<u64> = groups.iter().map(|group| group.count).collect();
    Err(Error::too_large(format!(
        "groups of {counts:?} mechanisms have {combinations} combinations (at most {MOST_TERMS}); account for them in zCDP, \
         or with fewer different epsilons"
    )))
}

/// A number between two floats, or sums of such.
#[derive(Debug, Clone)]
struct Span {
    low: Dyadic,
    high: Dyadic,
}

impl Span {
    /// Floats around ln x, for x >= 1.
    fn of_logarithm_of(x: &Rational) -> Self {
        let dyadic = |float: f64| {
            let exact = rational_from_f64(float);
            let exponent = 1 - exact.denom().bits().cast_signed();
            Dyadic { mantissa: exact.numer().clone(), exponent }
        };
        let (low, high) = ln_bounds(x);
        Self { low: dyadic(low), high: dyadic(high) }
    }

    fn of_logarithm(top: &BigUint, bottom: &BigUint) -> Self {
        Self::of_logarithm_of(&Rational::new_raw(top.clone().into(), bottom.clone().into()))
    }

    /// Less so many times a positive number.
    fn minus(&self, count: i64, other: &Self) -> Self {
        let (more, less) = if count > 0 { (&other.high, &other.low) } else { (&other.low, &other.high) };
        let count = Dyadic::integer(Integer::from(-count));
        Self { low: self.low.plus(&more.times(&count)), high: self.high.plus(&less.times(&count)) }
    }
}

/// The sum over all combinations of the positive part of P - multiplier Q. For a combination in all groups but the longest,
/// the positive terms are those with fewer lies in the longest than a threshold, so sums of its first masses suffice.
/// Enclosures of logarithms find the threshold; where they leave several, the largest sum is an upper bound.
struct Walk<'a> {
    goal: Span,
    step: Span,
    logs: Vec<Span>,
    others: Vec<&'a Responses>,
    longest: &'a Responses,
    total: BigInt,
    control: &'a Control,
}

impl Walk<'_> {
    /// Adds what all lies in the groups from `depth` on come to: p and q are the masses so far, `left` the loss that the
    /// rest must have.
    fn add(&mut self, depth: usize, p: &BigUint, q: &BigUint, left: &Span) -> Result<()> {
        self.control.check()?;
        let Some(&group) = self.others.get(depth) else {
            self.total += self.largest_sum(p, q, left);
            return Ok(());
        };
        for lied in 0..=group.count as usize {
            let truths = group.count.cast_signed() - 2 * lied as i64;
            let rest = left.minus(truths, &self.logs[depth]);
            let (above, below) = (&group.above, &group.below);
            let more_p = p * (&above[lied + 1] - &above[lied]);
            let more_q = q * (&below[lied + 1] - &below[lied]);
            self.add(depth + 1, &more_p, &more_q, &rest)?;
        }
        Ok(())
    }

    fn largest_sum(&self, p: &BigUint, q: &BigUint, left: &Span) -> BigInt {
        let (first, last) = threshold(self.longest.count, left, &self.step);
        let mut largest: Option<BigInt> = None;
        for t in first..=last {
            let sum = BigInt::from(p * &self.longest.above[t]) - BigInt::from(q * &self.longest.below[t]);
            if largest.as_ref().is_none_or(|found| sum > *found) {
                largest = Some(sum);
            }
        }
        largest.unwrap_or_default()
    }
}

/// Around the number of l in 0..=k with (k - 2l) ln E > x: l < (k - x / ln E) / 2.
fn threshold(count: u64, x: &Span, step: &Span) -> (usize, usize) {
    if step.low.mantissa.is_zero() {
        return (0, count as usize + 1);
    }
    let least = if x.low.mantissa.is_positive() { &step.high } else { &step.low };
    let most = if x.high.mantissa.is_positive() { &step.low } else { &step.high };
    (half_rest(count, &x.high, most), half_rest(count, &x.low, least))
}

/// The ceiling of (k - x / y) / 2, within 0..=k + 1.
fn half_rest(count: u64, x: &Dyadic, y: &Dyadic) -> usize {
    let exponent = x.exponent.min(y.exponent);
    let aligned = |x: &Dyadic| &x.mantissa << (x.exponent - exponent);
    let (x, y) = (aligned(x), aligned(y));
    let most = count as usize + 1;
    let found = (&y * count - x).div_ceil(&(y * 2));
    if found.is_negative() { 0 } else { found.to_usize().map_or(most, |found| found.min(most)) }
}

#[cfg(test)]
mod tests;
