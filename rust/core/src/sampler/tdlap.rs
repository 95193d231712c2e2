//! Truncated discrete Laplace noise on {0, ..., 2 kappa}, as a certified table.
//!
//! Paper: [GKKMMZ23, Definition 8].

mod nearest;

use super::{
    SIZE_LIMIT, Table, check_parameters, delta_units, kappa, least::least_reaching,
    multiplier::LowerMultiplier,
};
use crate::{
    Error, Result,
    control::Control,
    exact::{Integer, Level, Natural, Rational, ln::ln, rounding::Direction, rounding::rational_to_f64},
};
use num_integer::Integer as _;
use num_traits::{One, ToPrimitive, Zero};

/// How the half-width kappa is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KappaRule {
    /// The paper's 1 + ceil(ln(1/delta) / epsilon).
    Paper,
    /// The least one whose table passes the certificate: both ends may weigh up to delta.
    Tight,
}

/// `a (E_lo - 1)` is at least this, so that all rounding together changes no entry by more than a part in 2^16.
const RESOLUTION: u32 = 1 << 16;

/// Integers N(0), ..., N(2 kappa) of sum 2^128, symmetric about kappa, with N(x) <= E N(x +- 1) and N(0) <= delta 2^128.
#[derive(Debug)]
pub struct TruncatedDiscreteLaplaceTable {
    /// N(kappa + j), for j = 0, ..., kappa.
    half: Vec<u128>,
    /// The same as one distribution on 0, ..., 2 kappa.
    table: Table,
}

impl TruncatedDiscreteLaplaceTable {
    /// Builds the table by a ladder of floors from the ends to the center, and certifies it.
    ///
    /// # Guarantee
    /// [`certify`] has passed.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for epsilon <= 0, delta outside (0, 1), and parameters that 2^128 cannot hold;
    /// [`Error::TooLarge`] for more than [`SIZE_LIMIT`] values on a side; [`Error::Canceled`].
    pub fn new(level: &Level, delta: &Rational, rule: KappaRule, control: &Control) -> Result<Self> {
        check_parameters(level, delta)?;
        match build(level, delta, rule, control)? {
            Some(half) => Self::of(&half),
            None => Err(nearest::refusal(level, delta, rule, control)?),
        }
    }

    /// The table of a certified half.
    fn of(half: &[Natural]) -> Result<Self> {
        let table = Table::new(half.iter().rev().chain(&half[1..]))?;
        // Certified: all entries are positive and sum to 2^128 together, so each one is below.
        let half = half.iter().filter_map(ToPrimitive::to_u128).collect();
        Ok(Self { half, table })
    }

    /// Half the width: the noise takes the values 0, ..., 2 kappa.
    pub fn kappa(&self) -> usize {
        self.half.len() - 1
    }

    /// The numerators N(0), ..., N(2 kappa) over 2^128.
    pub fn numerators(&self) -> impl Iterator<Item = u128> + '_ {
        self.half.iter().rev().chain(&self.half[1..]).copied()
    }

    /// The largest ratio of two neighboring probabilities, in either direction: at most e^epsilon.
    pub fn largest_ratio(&self) -> Rational {
        let product = |a: u128, b: u128| Natural::from(a) * b;
        let (mut numerator, mut denominator) = (1_u128, 1_u128);
        for pair in self.half.windows(2) {
            let (a, b) = (pair[0].max(pair[1]), pair[0].min(pair[1]));
            if product(a, denominator) > product(numerator, b) {
                (numerator, denominator) = (a, b);
            }
        }
        Rational::new(Integer::from(numerator), Integer::from(denominator))
    }

    /// The distribution on 0, ..., 2 kappa that is drawn from.
    pub fn table(&self) -> &Table {
        &self.table
    }
}

/// A certified half, or nothing when probabilities over 2^128 cannot hold the noise.
fn build(
    level: &Level,
    delta: &Rational,
    rule: KappaRule,
    control: &Control,
) -> Result<Option<Vec<Natural>>> {
    let lower = LowerMultiplier::new(level)?;
    let largest_end = delta_units(delta)?;
    let excess = lower.numerator() - (Natural::one() << 128_u32);
    if excess.is_zero() {
        return Ok(None);
    }
    let half = match rule {
        KappaRule::Paper => ladder(&lower, kappa(level, delta)?, control)?,
        KappaRule::Tight => tight_ladder(level, &lower, delta, &largest_end, control)?,
    };
    let Some(half) = half else { return Ok(None) };
    if !is_resolved(&half, &lower) {
        return Ok(None);
    }
    certify_with(&half, &lower, &largest_end)?;
    Ok(Some(half))
}

/// Whether the end entry is large enough for rounding.
fn is_resolved(half: &[Natural], lower: &LowerMultiplier) -> bool {
    let excess = lower.numerator() - (Natural::one() << 128_u32);
    half.last().is_some_and(|end| end * excess >= Natural::from(RESOLUTION) << 128_u32)
}

/// Checks what the privacy of the noise rests on, in integers: h(j) = N(kappa + j), j = 0, ..., kappa >= 1, are given.
///
/// # Guarantee
/// When it passes: all h are positive, h(0) + 2 (h(1) + ... + h(kappa)) = 2^128 (in integers of any size, so that no
/// sum wraps), h(j) <= E h(j+1) and h(j+1) <= E h(j), and h(kappa) <= delta 2^128.
///
/// # Errors
/// [`Error::InvalidArgument`] saying which premise fails.
pub fn certify(half: &[Natural], level: &Level, delta: &Rational) -> Result<()> {
    check_parameters(level, delta)?;
    certify_with(half, &LowerMultiplier::new(level)?, &delta_units(delta)?)
}

fn certify_with(half: &[Natural], lower: &LowerMultiplier, largest_end: &Natural) -> Result<()> {
    let refused =
        |premise: &str| Err(Error::invalid("epsilon, delta", format!("the table is refused: {premise}")));
    let [center, outer @ ..] = half else { return refused("it is empty") };
    let Some(end) = outer.last() else { return refused("it has a single value") };
    if half.iter().any(Zero::is_zero) {
        return refused("a probability is 0");
    }
    if center + 2_u32 * outer.iter().sum::<Natural>() != Natural::one() << 128_u32 {
        return refused("its probabilities do not sum to 1");
    }
    if half.windows(2).any(|pair| pair[0] > lower.times(&pair[1]) || pair[1] > lower.times(&pair[0])) {
        return refused("two neighboring probabilities differ by more than a factor e^epsilon");
    }
    if end > largest_end {
        return refused("its ends are more likely than delta");
    }
    Ok(())
}

/// The ladder up from the end entry a: a, floor(`E_lo` a), ... (kappa entries), and the center above them.
fn climb(lower: &LowerMultiplier, end: &Natural, kappa: u64) -> Vec<Natural> {
    let mut ladder = vec![end.clone()];
    for _ in 0..kappa {
        ladder.push(lower.times(&ladder[ladder.len() - 1]));
    }
    ladder
}

/// The total of the ladder from a with its own top as the center.
fn total(lower: &LowerMultiplier, end: &Natural, kappa: u64, control: &Control) -> Result<Natural> {
    control.check()?;
    let (mut entry, mut sum) = (end.clone(), Natural::ZERO);
    for _ in 0..kappa {
        sum += &entry;
        entry = lower.times(&entry);
    }
    Ok(2_u32 * sum + entry)
}

/// h(0), ..., h(kappa) with the least end entry whose ladder reaches a total of 2^128, the center taking what is left;
/// nothing when too little is left.
fn ladder(lower: &LowerMultiplier, kappa: u64, control: &Control) -> Result<Option<Vec<Natural>>> {
    if kappa > SIZE_LIMIT {
        return Err(Error::too_large(format!(
            "kappa is {kappa}, and tables have at most kappa = {SIZE_LIMIT}; choose a larger epsilon or delta"
        )));
    }
    let whole = Natural::one() << 128_u32;
    // With this end the kappa + 1 entries, which only grow, reach the total.
    let high = whole.div_ceil(&Natural::from(2 * kappa + 1));
    let end = least_reaching(&whole, high, |end| total(lower, end, kappa, control))?;
    let mut half = climb(lower, &end, kappa);
    half.reverse();
    let outer = 2_u32 * half[1..].iter().sum::<Natural>();
    if outer >= whole {
        return Ok(None);
    }
    half[0] = whole - outer;
    Ok(Some(half))
}

/// The ladder of the least kappa whose ends are within delta; nothing when one on the way cannot be held.
fn tight_ladder(
    level: &Level,
    lower: &LowerMultiplier,
    delta: &Rational,
    largest_end: &Natural,
    control: &Control,
) -> Result<Option<Vec<Natural>>> {
    let fits = |half: &[Natural]| half.last().is_some_and(|end| end <= largest_end);
    let mut kappa = tight_estimate(level, delta);
    let Some(mut half) = ladder(lower, kappa, control)? else { return Ok(None) };
    if !fits(&half) {
        while !fits(&half) {
            // Longer ladders have ends that are no larger.
            if !is_resolved(&half, lower) {
                return Ok(None);
            }
            kappa += 1;
            let Some(longer) = ladder(lower, kappa, control)? else { return Ok(None) };
            half = longer;
        }
        return Ok(Some(half));
    }
    while kappa > 1 {
        kappa -= 1;
        match ladder(lower, kappa, control)? {
            Some(shorter) if fits(&shorter) => half = shorter,
            _ => break,
        }
    }
    Ok(Some(half))
}

/// The least kappa >= 1 whose ideal ends are within delta, in floats: E^kappa >= 1 + tanh(epsilon / 2) (1 / delta - 1).
fn tight_estimate(level: &Level, delta: &Rational) -> u64 {
    let epsilon = epsilon_to_f64(level);
    let delta = rational_to_f64(delta, Direction::Nearest);
    let estimate = (((epsilon / 2.0).tanh() * (1.0 / delta - 1.0)).ln_1p() / epsilon).ceil();
    // The estimate only says where to begin.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let start = estimate.clamp(1.0, SIZE_LIMIT as f64 + 1.0) as u64;
    start
}

/// About ln E.
fn epsilon_to_f64(level: &Level) -> f64 {
    ln(level.ratio(), 64).to_f64_bounds().0 + rational_to_f64(level.exponent(), Direction::Nearest)
}
