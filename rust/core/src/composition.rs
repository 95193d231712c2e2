//! Exact composition: what many releases on the same users cost together, from both sides.
//!
//! A release is a [`Part`]: a pair of distributions as P's masses at levels of e^loss. Parts are put on a grid of losses with
//! integer masses over 2^b, b = 120 or more (`leaves`), multiplied exactly (`ntt`) and rounded so that delta never falls
//! (`masses`); what all that may have cost is known, and bounds delta and epsilon from below, too (`curve`). The proofs are in
//! `docs/proofs/exact_composition.md`. Floats say where to look, with room on both sides; integers and enclosures decide.

// Indices, counts of bits and of words are far below 2^31; floats are cut to indices that are widened or checked afterwards.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod curve;
mod dominance;
#[cfg(test)]
mod drawn_weights;
mod fixed;
mod gaussian;
mod groups;
mod leaves;
mod levels;
mod masses;
mod noise;
mod ntt;
mod responses;
mod table;

pub use curve::Composed;
pub use dominance::pair_dominates;
pub use gaussian::Sampling;
pub use groups::{Weights, grouped_pair};
pub use leaves::{Atom, Part, mass_bits};
pub use levels::{Levels, Multiplier};
pub(crate) use noise::{DEEP, Depth, Point, SHALLOW, delta_above};
pub use noise::{gaussian_delta_above, normal_tail_above};
pub use responses::{Responses, divergence as divergence_of_responses};

use crate::{
    Error, Result,
    control::Control,
    exact::{Integer, Interval, Level, Rational, ln::ln},
};
use masses::{Masses, bits_of, product};
use num_bigint::BigUint;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// One release, by what bounds its privacy loss.
#[derive(Debug, Clone)]
pub enum Release {
    /// A pair with finitely many losses.
    Pair(Part),
    /// Every mechanism whose losses lie in an interval of this width, wherever it is: e^width.
    BoundedRange(Multiplier),
    /// Continuous Laplace noise, by e^(sensitivity / scale), its largest loss.
    Laplace(Multiplier),
    /// The Gaussian mechanism whose means are mu apart in units of its noise: mu^2, and on which users.
    Gaussian(Rational, Sampling),
}

/// How to compose.
#[derive(Debug, Clone)]
pub struct Options {
    /// Words of a mass: b = 64 limbs - 8.
    pub limbs: usize,
    /// The width of a cell of the grid, in loss. A rational number above 0.
    pub resolution: Rational,
    /// The most mass, in units of 2^-b, that a product may move from each of its ends.
    pub cut: BigUint,
    /// The most losses of a product.
    pub max_terms: usize,
    /// ln(1 / delta) for the least delta that will be asked.
    pub reach: f64,
}

/// The widest masses.
const MOST_LIMBS: usize = 18;

impl Release {
    /// P and Q by their integer weights.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where lengths differ, a total is 0, or `limbs` are out of range.
    pub fn from_weights(p: &[BigUint], q: &[BigUint], limbs: usize, control: &Control) -> Result<Self> {
        check_limbs(limbs)?;
        Part::from_weights(p, q, limbs, control).map(Self::Pair)
    }

    /// All (epsilon, delta)-DP mechanisms, by e^epsilon.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for arguments out of range.
    pub fn pure(epsilon: &Multiplier, delta: &Rational, limbs: usize) -> Result<Self> {
        check_limbs(limbs)?;
        check_multiplier("epsilon", epsilon)?;
        if delta.is_negative() || *delta >= Rational::one() {
            return Err(Error::invalid("delta", "must be in [0, 1)"));
        }
        Ok(Self::Pair(Part::pure(epsilon, delta, limbs)))
    }

    /// Discrete Laplace noise on values that are `shift` apart, by e^rate.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for arguments out of range; [`Error::Canceled`].
    pub fn discrete_laplace(rate: &Multiplier, shift: u32, limbs: usize, control: &Control) -> Result<Self> {
        check_limbs(limbs)?;
        check_multiplier("rate", rate)?;
        if *rate == Multiplier::rational(Rational::one()) {
            return Err(Error::invalid("rate", "must be above 0"));
        }
        check_shift(shift)?;
        let length = (rate.ratio.numer().bits() - 1).saturating_mul(u64::from(shift));
        if length > LONGEST || length.saturating_mul(u64::from(shift)) > ALL_POWERS {
            return Err(Error::invalid(
                "rate",
                format!("is too long for a shift of {shift}; give it in fewer digits"),
            ));
        }
        Part::discrete_laplace(rate, shift, limbs, control).map(Self::Pair)
    }

    /// Discrete Gaussian noise on values that are `shift` apart.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless sigma^2 is from 1/100 to 2^22 and the shift from 1 to 2^16; [`Error::Canceled`].
    pub fn discrete_gaussian(
        sigma_squared: &Rational,
        shift: u32,
        limbs: usize,
        control: &Control,
    ) -> Result<Self> {
        check_limbs(limbs)?;
        let most = Rational::from_integer(Integer::from(1 << 22));
        if *sigma_squared < Rational::new(1.into(), 100.into()) || *sigma_squared > most {
            return Err(Error::invalid("sigma_squared", "must be from 1/100 to 2^22"));
        }
        check_shift(shift)?;
        let variance = sigma_squared.to_f64().unwrap_or(f64::NAN);
        // e^(-R^2 / (2 sigma^2)) < 2^-(b + 40), where sigma^2 / R < 2^22 and a lattice has a mass of at least 1.
        let z = (2.0 * std::f64::consts::LN_2 * (bits_of(limbs) as f64 + 40.0)).sqrt();
        let reach = (z * variance.sqrt()).ceil() as u32 + 2;
        Part::discrete_gaussian(sigma_squared, shift, reach, limbs, control).map(Self::Pair)
    }

    /// All mechanisms of bounded range, by e^range.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a range below 2^-1000, or beyond 2^20.
    pub fn bounded_range(range: &Multiplier) -> Result<Self> {
        check_end("range", range)?;
        Ok(Self::BoundedRange(range.clone()))
    }

    /// Continuous Laplace noise, by e^(sensitivity / scale).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an epsilon below 2^-1000, or beyond 2^20.
    pub fn laplace(epsilon: &Multiplier) -> Result<Self> {
        check_end("epsilon", epsilon)?;
        Ok(Self::Laplace(epsilon.clone()))
    }

    /// Gaussian noise, by the square of the distance of means over the standard deviation, and on which users.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless it is from 2^-40 to 2^8, and the rate of a sample from 2^-30 to 1.
    pub fn gaussian(mu_squared: Rational, sampling: Sampling) -> Result<Self> {
        let power = |exponent: u32| Rational::from_integer(Integer::from(1_u64 << exponent));
        if mu_squared < power(40).recip() || mu_squared > power(8) {
            return Err(Error::invalid("mu_squared", "must be from 2^-40 to 2^8"));
        }
        if let Sampling::Removal(rate) | Sampling::Addition(rate) | Sampling::Replacement(rate) = &sampling
            && (*rate < power(30).recip() || *rate > Rational::one())
        {
            return Err(Error::invalid("rate", "must be from 2^-30 to 1"));
        }
        Ok(Self::Gaussian(mu_squared, sampling))
    }
}

/// Where losses end.
fn check_end(argument: &'static str, end: &Multiplier) -> Result<()> {
    check_multiplier(argument, end)?;
    let least = Rational::new(Integer::one(), Integer::one() << SMALLEST_END);
    let above = if end.exponent.is_zero() { &end.ratio - Rational::one() } else { end.exponent.clone() };
    if above < least {
        return Err(Error::invalid(argument, format!("must be at least 2^-{SMALLEST_END}")));
    }
    Ok(())
}

/// The longest powers of ratios, in bits.
const LONGEST: u64 = 1 << 20;
/// Losses from 2^-1000 on.
const SMALLEST_END: u32 = 1000;
/// All powers of a ratio, in bits.
const ALL_POWERS: u64 = 1 << 29;
/// The largest logarithm of an offset: exponents must be below 2^59.
const LARGEST: f64 = (1_u64 << 58) as f64;

fn check_limbs(limbs: usize) -> Result<()> {
    if (2..=MOST_LIMBS).contains(&limbs) {
        return Ok(());
    }
    Err(Error::invalid("limbs", format!("{limbs} is out of range; from 2 to {MOST_LIMBS} are accepted")))
}

fn check_shift(shift: u32) -> Result<()> {
    if (1..=1 << 16).contains(&shift) {
        return Ok(());
    }
    Err(Error::invalid("shift", format!("{shift} is out of range; from 1 to 65536 is accepted")))
}

/// Losses beyond 2^20 would need numbers of a million bits.
fn check_multiplier(argument: &'static str, multiplier: &Multiplier) -> Result<()> {
    let most = Rational::from_integer(Integer::from(LONGEST));
    let long = multiplier.ratio.numer().bits().max(multiplier.ratio.denom().bits()) > LONGEST;
    if long
        || multiplier.exponent > most
        || multiplier.exponent < Rational::zero()
        || multiplier.ratio < Rational::one()
    {
        return Err(Error::invalid(argument, "must be from 0 to 2^20"));
    }
    Ok(())
}

/// The composition of releases, each so many times.
///
/// Where there is one kind of release and its losses are a lattice, nothing is moved, and both bounds differ by the rounding
/// of masses alone.
///
/// # Errors
/// [`Error::InvalidArgument`]; [`Error::TooLarge`] where a product would have too many terms; [`Error::Canceled`].
pub fn compose(releases: &[(Release, u64)], options: &Options, control: &Control) -> Result<Composed> {
    if releases.is_empty() || releases.iter().any(|(_, count)| *count == 0) {
        return Err(Error::invalid("counts", "there must be at least one release, each at least once"));
    }
    check_limbs(options.limbs)?;
    if !(options.reach >= 0.0 && options.reach <= 1e4) {
        return Err(Error::invalid(
            "reach",
            format!("{} is out of range; from 0 to 10^4 is accepted", options.reach),
        ));
    }
    if releases.iter().any(|(_, count)| *count > 1 << 40) {
        return Err(Error::invalid("counts", "must be at most 2^40"));
    }
    let finest = Rational::new(1.into(), Integer::from(1_u64 << 48));
    if options.resolution < finest || options.resolution > Rational::one() {
        return Err(Error::invalid("resolution", "must be from 2^-48 to 1"));
    }
    if options.cut >= BigUint::one() << (bits_of(options.limbs) - 8) {
        return Err(Error::invalid("cut", "is too much"));
    }
    let squarings: u64 = releases.iter().map(|(_, count)| u64::from(count.ilog2()) + 1).sum();
    control.set_total(usize::try_from(squarings).unwrap_or(usize::MAX));
    let largest = LargestLoss::of(releases);
    if let [(Release::Pair(part), count)] = releases
        && let Some((levels, indices)) = &part.lattice
    {
        let leaf = part.on_lattice(indices, options.limbs, options.max_terms)?;
        let masses = product(vec![(leaf, *count)], &options.cut, options.max_terms, control)?;
        let offset = levels.offset.iter().map(|(factor, power)| (factor.clone(), power * count)).collect();
        let levels = Levels { step: levels.step.clone(), offset };
        let (least, most) = levels.ln(0, 64).to_f64_bounds();
        if least.abs().max(most.abs()) > LARGEST {
            return Err(Error::invalid("counts", "losses may be at most 2^58 together"));
        }
        return Composed::new(masses, levels, None, largest, options.reach, control);
    }
    let levels = Levels::multiples_of(Multiplier::exponential(options.resolution.clone()));
    let mut leaves: Vec<(Masses, u64)> = Vec::with_capacity(releases.len());
    let mut count_all = 0_u64;
    for (release, count) in releases {
        let leaf = match release {
            Release::Pair(part) => {
                part.on_grid(&levels, options.limbs, &options.cut, options.max_terms, control)?
            }
            Release::BoundedRange(range) => {
                leaves::by_root(range, leaves::range_curve, &levels, options, control)?
            }
            Release::Laplace(end) => leaves::by_root(end, leaves::laplace_curve, &levels, options, control)?,
            Release::Gaussian(mu_squared, sampling) => {
                gaussian::gaussian(mu_squared, sampling, &levels, options, control)?
            }
        };
        leaves.push((leaf, *count));
        count_all = count_all.saturating_add(*count);
    }
    let masses = product(leaves, &options.cut, options.max_terms, control)?;
    Composed::new(
        masses,
        levels,
        Some((count_all, options.resolution.clone())),
        largest,
        options.reach,
        control,
    )
}

/// The largest loss of a composition.
#[derive(Debug)]
pub struct LargestLoss {
    /// The sum, enclosed.
    pub sum: Interval,
    /// e^loss of each release, and how often it is made.
    factors: Vec<(Multiplier, u64)>,
}

impl LargestLoss {
    /// Of releases, where all losses are finite.
    pub fn of(releases: &[(Release, u64)]) -> Option<Self> {
        let mut sum = Interval::integer(0);
        let mut factors = Vec::with_capacity(releases.len());
        for (release, count) in releases {
            let largest = match release {
                Release::Pair(part) => part.largest_loss()?,
                Release::BoundedRange(end) | Release::Laplace(end) => end.clone(),
                Release::Gaussian(_, sampling) => gaussian::largest_loss(sampling)?,
            };
            sum = sum.plus(&largest.ln(96).times(&Interval::integer(*count), 192), 192);
            factors.push((largest, *count));
        }
        Some(Self { sum, factors })
    }

    /// Whether it is certainly at most a level. Equality is found where powers of ratios are not too long.
    pub fn is_at_most(&self, level: &Level) -> bool {
        let exponent = Interval::rational(level.exponent(), 192);
        let loss =
            if level.ratio().is_one() { exponent } else { ln(level.ratio(), 128).plus(&exponent, 192) };
        if loss.lower.compare(&self.sum.upper).is_ge() {
            return true;
        }
        let length = |(factor, count): &(Multiplier, u64)| {
            if factor.ratio.is_one() {
                return 0;
            }
            (factor.ratio.numer().bits() + factor.ratio.denom().bits()).saturating_mul(*count)
        };
        if loss.upper.compare(&self.sum.lower).is_lt()
            || self.factors.iter().map(length).sum::<u64>() > LONGEST
        {
            return false;
        }
        let one = Multiplier::rational(Rational::one());
        let whole =
            self.factors.iter().fold(one, |whole, (factor, count)| whole.times_power(factor, *count as i64));
        whole.exponent == *level.exponent() && whole.ratio <= *level.ratio()
    }
}
