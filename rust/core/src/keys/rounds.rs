//! Set unions by weights: one round, and a second one that sees what the first one showed.
//!
//! A user has the length 1 in a round, spread over their keys. The part of it that is on keys which nobody else has says how
//! likely these are shown; the other part moves the sums of other keys. Old and new keys share one length, and the worst share is
//! searched. Proofs: `docs/proofs/set_union.md`.

use super::{
    chords::Chords,
    curve::{At, level_over},
    larger, one, rest, rounded,
    shares::{hidden, listed_singly},
    smaller, zero,
};
use crate::{
    Error, Result,
    composition::SHALLOW,
    control::Control,
    exact::{Integer, Rational, dyadic::Dyadic},
};
use num_traits::{One, Signed, Zero};
use std::cmp::Ordering;

/// Of shares, probabilities and levels, rounded against the claim.
pub(super) const BITS: i64 = 136;
/// By how much more than the largest value ranges of shares may have: a part of it in a thousand.
const TOLERANCE: u32 = 3;
const LOOKED_AT: usize = 8;
/// From the probability 2^-LARGE on it is counted that new keys are hidden on one side only.
const LARGE: u8 = 12;
/// The variance by which ideal discrete noise is smoothed from continuous noise, and the logarithm of how near that is.
const SMOOTHING: u32 = 4;
const SMOOTHED_WITHIN: usize = 112;
/// From this mu^2 on neighbors are told apart but for 2^-49, at any level at which distances leave a delta below 1.
const VAST: u32 = 1 << 9;

/// One round: users of length `weight` at most.
#[derive(Debug, Clone)]
pub struct RoundArguments {
    /// The parameter of the discrete Gaussian noise, above 4.
    pub sigma_squared: Rational,
    /// The length of a user's weights.
    pub weight: u64,
    /// How many keys a user has at most.
    pub max_keys: u64,
    /// Whether a user is replaced, and not added or removed.
    pub replace: bool,
    /// Whether users raise sums one after the other, so that the weights of one user differ.
    pub walk: bool,
    /// How much longer than the weight a difference may get by rounding.
    pub slack: u64,
    /// How many numbers differ between neighbors at most.
    pub moved: u64,
    /// How far a drawn number is from an ideal one, in total variation.
    pub distance: Rational,
    /// For each group of numbers of keys how likely one of them is shown that nobody else has, at most.
    pub shown: Vec<Rational>,
    /// With a walk, the same for each of the [`fine_groups`](super::fine_groups) but the last; otherwise none.
    pub between: Vec<Rational>,
}

/// One round, with the shares of a user's length that new keys may have.
#[derive(Debug)]
pub struct Round {
    replace: bool,
    single: bool,
    /// The squared length between neighbors in squared weights, with what rounding adds.
    length: Rational,
    /// The squared weight over the variance of the continuous noise.
    unit: Rational,
    /// In total variation, of all numbers that move and of smoothing.
    far: Rational,
    /// Shares of new keys, rising.
    mu2: Vec<Rational>,
    /// The least probability that none of them is shown, falling.
    hidden: Vec<Dyadic>,
}

impl Round {
    /// The round.
    ///
    /// # Errors
    /// Where an argument is out of range.
    pub fn new(arguments: &RoundArguments) -> Result<Self> {
        let RoundArguments { sigma_squared, weight, max_keys, replace, walk, slack, moved, distance, .. } =
            arguments;
        let four = Rational::from_integer(SMOOTHING.into());
        if *sigma_squared <= four {
            return Err(Error::invalid("sigma_squared", "must be above 4"));
        }
        if *weight == 0 {
            return Err(Error::invalid("weight", "must be at least 1"));
        }
        if distance.is_negative() {
            return Err(Error::invalid("distance", "must not be negative"));
        }
        let weight = Integer::from(*weight);
        // 2 a slack + slack^2 with a of at most sqrt(2) < 3 / 2 weights.
        let part = Rational::new(Integer::from(*slack), weight.clone());
        let longer = &part * Integer::from(3) + &part * &part;
        let length = longer + Integer::from(if *replace { 2 } else { 1 });
        let unit = Rational::from_integer(&weight * &weight) / (sigma_squared - four);
        let (shares, hidden) = hidden(*max_keys, *walk, &arguments.shown, &arguments.between)?;
        let mu2 = shares.iter().map(|share| (&length - share) * &unit).collect();
        let smoothed = Rational::new(Integer::one(), Integer::one() << SMOOTHED_WITHIN);
        let far = (distance + smoothed) * Integer::from(*moved);
        Ok(Self {
            replace: *replace,
            single: listed_singly(*max_keys, *walk),
            length,
            unit,
            far,
            mu2,
            hidden,
        })
    }

    /// mu^2 of the continuous noise where no key is new.
    pub fn mu2(&self) -> Rational {
        &self.length * &self.unit
    }

    /// The least probability that none of a user's new keys is shown.
    pub(super) fn least_hidden(&self) -> Dyadic {
        self.hidden.last().cloned().unwrap_or_else(zero)
    }

    /// At or above the sum of [P - E Q]_+ of all neighbors, in both orders.
    pub(super) fn curve(&self, level: &Dyadic, control: &Control) -> Result<Dyadic> {
        let least = self.least_hidden();
        if least.mantissa.is_zero() {
            return Ok(one());
        }
        // With "replace" the other side may have new keys of its own; they are counted as not taking of its length.
        let other = if self.replace { level.times(&least) } else { level.clone() };
        let whole = At::new(other.clone().rounded(BITS, false));
        // From the side without the user, and from the one with.
        let without = At::new(level.times(&least).rounded(BITS, false)).curve(&self.mu2(), SHALLOW);
        let with = self.largest(&mut |place, hidden| {
            control.check()?;
            Ok(match hidden {
                None => whole.curve(&self.mu2[place], SHALLOW),
                Some(hidden) => At::new(level_over(&other, hidden, BITS)).curve(&self.mu2[place], SHALLOW),
            })
        })?;
        Ok(smaller(larger(without, with), one()))
    }

    /// At or above the largest 1 - q + q kept(share, q) over all shares, whose new keys are hidden with q at least.
    ///
    /// What is kept falls as shares and q grow; without a q it is that of q = 1. Ranges of shares that have all of them are as long
    /// as their bounds are not much above values that are taken.
    fn largest(&self, kept: &mut dyn FnMut(usize, Option<&Dyadic>) -> Result<Dyadic>) -> Result<Dyadic> {
        let last = self.hidden.len() - 1;
        let mut known: Vec<Option<Dyadic>> = vec![None; last + 1];
        let mut value = |place: usize, kept: &mut dyn FnMut(usize, Option<&Dyadic>) -> Result<Dyadic>| {
            if known[place].is_none() {
                known[place] = Some(kept(place, None)?);
            }
            Ok::<Dyadic, Error>(known[place].clone().unwrap_or_else(one))
        };
        let together = |q: &Dyadic, value: &Dyadic| rest(q).plus(&q.times(value));
        let mut top = zero();
        for place in (0..=LOOKED_AT).map(|place| last * place / LOOKED_AT) {
            top = larger(top, together(&self.hidden[place], &value(place, kept)?));
        }
        let nearly = Dyadic { mantissa: (Integer::one() << LARGE) - 1, exponent: -i64::from(LARGE) };
        let (mut low, mut best) = (0, zero());
        while low <= last {
            let first = value(low, kept)?;
            top = larger(top, together(&self.hidden[low], &first));
            // 1 - top (1 + TOLERANCE / 1000) + first, times 1000; probabilities fall: the last place that is not below.
            let thousand = Dyadic::integer(Integer::from(1000));
            let above = top.times(&Dyadic::integer(Integer::from(1000 + TOLERANCE))).negated();
            let least = one().plus(&first).times(&thousand).plus(&above);
            let fits = |q: &Dyadic| q.times(&thousand).compare(&least) != Ordering::Less;
            let found = self.hidden.partition_point(fits).saturating_sub(1);
            let next = if self.single { low } else { low + 1 };
            let high = found.max(next).min(last);
            let q = &self.hidden[high];
            let kept_there = if q.compare(&nearly) == Ordering::Less {
                if q.mantissa.is_zero() { one() } else { kept(low, Some(q))? }
            } else {
                first
            };
            best = larger(best, together(q, &kept_there));
            if high == last {
                break;
            }
            low = if self.single { high + 1 } else { high };
        }
        Ok(best)
    }
}

/// Rounds one after the other: what a user does in one may depend on what was shown before.
#[derive(Debug)]
pub struct Rounds(Vec<Round>);

impl Rounds {
    /// One round, or two.
    ///
    /// # Errors
    /// For other numbers of them.
    pub fn new(rounds: Vec<Round>) -> Result<Self> {
        if !(1..=2).contains(&rounds.len()) {
            return Err(Error::invalid("rounds", "must be one or two"));
        }
        Ok(Self(rounds))
    }

    /// The least probability that no new key of a user is shown in any round.
    pub fn hidden(&self) -> Rational {
        self.0.iter().fold(one(), |whole, round| whole.times(&round.least_hidden())).to_rational()
    }

    /// mu^2 of each round.
    pub fn mu2(&self) -> Vec<Rational> {
        self.0.iter().map(Round::mu2).collect()
    }

    /// At or above the least delta at a level E, which is enclosed: it is at least 1.
    ///
    /// # Errors
    /// Where the level is below 1; [`Error::Canceled`].
    pub fn delta(&self, level: (&Rational, &Rational), control: &Control) -> Result<Rational> {
        let (low, high) = level;
        if *low < Rational::one() || high < low {
            return Err(Error::invalid("level", "must be at least 1"));
        }
        let far = self.0.iter().fold(Rational::zero(), |sum, round| sum + &round.far);
        let extra = (high + Integer::one()) * far;
        let vast = Rational::from_integer(VAST.into());
        // Then 1 is the answer, and the curves would take very long.
        if extra >= Rational::one() || self.0.iter().any(|round| round.mu2() >= vast) {
            return Ok(Rational::one());
        }
        let curve = self.curve(&rounded(low, BITS, false), control)?;
        Ok(rounded(&(curve.to_rational() + extra), BITS, true).to_rational().min(Rational::one()))
    }

    /// At or above the curve of all rounds.
    fn curve(&self, level: &Dyadic, control: &Control) -> Result<Dyadic> {
        let first = &self.0[0];
        let Some(second) = self.0.get(1) else { return first.curve(level, control) };
        let both = first.least_hidden().times(&second.least_hidden());
        if both.mantissa.is_zero() {
            return Ok(one());
        }
        // Of both sides of all neighbors, with new keys or without: the least level that may be left.
        let level = level.times(&first.least_hidden()).rounded(BITS, false);
        let mut chords = Chords::new(&first.mu2(), &second.mu2(), second, level, &rest(&both));
        first.largest(&mut |place, _| chords.kept(&first.mu2[place], control))
    }
}
