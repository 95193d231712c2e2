//! Noise of n users together, and what it hides with the tables that are drawn from.

use super::{Change, NegativeBinomialDistribution, distribution::BITS, divergence::divergence, search};
use crate::{
    Error, Result,
    control::Control,
    exact::{
        Integer, Interval, Level, Natural, Rational,
        dyadic::Dyadic,
        rounding::{Direction, rational_from_f64, rational_to_f64},
    },
    sampler::NegativeBinomialTable,
};
use num_traits::{One, Signed};

/// The largest exponent of a level here.
const LARGEST_EPSILON: i64 = 64;
/// p and r are searched as multiples of 2^-P_PLACES and 2^-R_PLACES.
const P_PLACES: u32 = 32;
const R_PLACES: u32 = 20;
/// How often r is searched again when it was not enough.
const ATTEMPTS: u32 = 8;
/// How far below delta the search aims, relatively.
const MARGIN: f64 = 1e-5;

/// What a search makes small.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// The mean of all the noise.
    Mean,
    /// The T with `P[noise > T]` at most this.
    Quantile(f64),
}

/// The noise that a number of honest users add up to: each draws from a table next to NB(r / users, p).
#[derive(Debug)]
pub struct ShuffleNoise {
    distribution: NegativeBinomialDistribution,
    table: NegativeBinomialTable,
    users: u64,
    change: Change,
}

/// Refuses levels whose powers are too long to work with.
fn check_level(level: &Level) -> Result<()> {
    let large = level.exponent() > &Rational::from_integer(Integer::from(LARGEST_EPSILON))
        || level.ratio() > &Rational::from_integer(Integer::one() << 92_u32)
        || level.ratio() < &Rational::one();
    if large {
        return Err(Error::invalid("epsilon", format!("must be from 0 to {LARGEST_EPSILON} here")));
    }
    Ok(())
}

impl ShuffleNoise {
    /// The noise NB(r, p) of this many users together.
    ///
    /// # Errors
    /// As [`NegativeBinomialDistribution::new`] and [`NegativeBinomialTable::new`]; [`Error::InvalidArgument`] without users.
    pub fn new(r: &Rational, p: &Rational, users: u64, change: Change, control: &Control) -> Result<Self> {
        if users == 0 {
            return Err(Error::invalid("users", "must be at least 1"));
        }
        let distribution = NegativeBinomialDistribution::new(r, p, control)?;
        let share = r / Rational::from_integer(Integer::from(users));
        let table = NegativeBinomialTable::new(&share, p, control)?;
        Ok(Self { distribution, table, users, change })
    }

    /// Noise that is certified to hide a change at this level and delta, with about the least mean or quantile of
    /// the noise of `all` >= `users` users of whom `users` are counted on.
    ///
    /// # Errors
    /// As [`ShuffleNoise::new`]; [`Error::InvalidArgument`] for epsilon = 0, a delta outside (0, 1), and one that is
    /// too small for tables of 128 bits.
    pub fn calibrated(
        level: &Level,
        delta: &Rational,
        users: u64,
        all: u64,
        change: Change,
        goal: Goal,
        control: &Control,
    ) -> Result<Self> {
        check_level(level)?;
        let e = level.enclosure(BITS);
        if e.lower.to_rational() <= Rational::one() {
            return Err(Error::invalid("epsilon", "must be > 0 here"));
        }
        if !delta.is_positive() || delta >= &Rational::one() {
            return Err(Error::invalid("delta", "must be in (0, 1) here, ends excluded"));
        }
        let unreachable = || {
            Error::invalid(
                "epsilon, delta",
                "are too small here: the tables of noise have probabilities of 128 bits, and at most 2^20 values. \
                 Choose a larger delta or epsilon",
            )
        };
        let e = e.lower.to_f64(Direction::Nearest);
        let mut target = rational_to_f64(delta, Direction::Nearest) * (1.0 - MARGIN);
        let surplus = all as f64 / users as f64;
        let (mut r, rate) =
            search::best(e.ln(), e, target, change, goal, surplus, control)?.ok_or_else(unreachable)?;
        let rounded = |x: f64, places: u32| {
            let scaled = rational_from_f64(x) * (Integer::one() << places);
            Rational::new(scaled.ceil().to_integer(), Integer::one() << places)
        };
        let p = rounded((-rate).exp(), P_PLACES);
        for _ in 0..ATTEMPTS {
            let p_float = rational_to_f64(&p, Direction::Nearest);
            r = search::least_r(p_float, e, target, change, r, MARGIN).ok_or_else(unreachable)?;
            let noise = Self::new(&rounded(r, R_PLACES), &p, users, change, control)?;
            let excess = noise.delta(level, control)?.upper.to_rational() - delta;
            if !excess.is_positive() {
                return Ok(noise);
            }
            // What the tables add hardly depends on r.
            target = target * (1.0 - MARGIN) - 1.01 * rational_to_f64(&excess, Direction::Up);
            if target <= 0.0 {
                break;
            }
        }
        Err(unreachable())
    }

    /// The distribution that the shares would add up to with tables of infinite precision.
    pub fn distribution(&self) -> &NegativeBinomialDistribution {
        &self.distribution
    }

    /// What one user draws from.
    pub fn table(&self) -> &NegativeBinomialTable {
        &self.table
    }

    /// Encloses the least delta at this level for the sums of what is really drawn.
    ///
    /// # Guarantee
    /// A sum of n draws of tables is within n t of NB(r, p) in total variation, t the certified distance of one
    /// table, and c independent sums are within c n t. A divergence at E of two distributions changes by at most (1 + E) times
    /// the distance that both move by.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an epsilon above 64; [`Error::Canceled`].
    pub fn delta(&self, level: &Level, control: &Control) -> Result<Interval> {
        check_level(level)?;
        let ideal = divergence(&self.distribution, level, self.change, control)?;
        let distance = self.distance(self.users).times(&Interval::integer(self.change.counts()), BITS);
        let weight = level.enclosure(BITS).plus(&Interval::integer(1), BITS);
        let slack = distance.times(&weight, BITS).upper;
        let slack = Interval { lower: slack.negated(), upper: slack };
        let moved = ideal.plus(&slack, BITS);
        let zero = Dyadic::integer(Integer::ZERO);
        let lower = if moved.lower.sign().is_lt() { zero } else { moved.lower };
        Ok(Interval { lower, upper: moved.upper })
    }

    /// A T that the noise of `all` users together exceeds with probability at most beta, certified, and the least
    /// such T of the ideal distribution unless beta is at a tie; `None` when beta is too small to tell.
    ///
    /// # Errors
    /// As [`NegativeBinomialDistribution::new`].
    pub fn quantile(&self, beta: &Rational, all: u64, control: &Control) -> Result<Option<usize>> {
        let more = self.distance(all).upper.to_rational();
        if all == self.users {
            return Ok(self.distribution.quantile(beta, &more));
        }
        let ratio = Rational::new(Integer::from(all), Integer::from(self.users));
        let distribution = NegativeBinomialDistribution::new(
            &(self.distribution.r() * ratio),
            self.distribution.p(),
            control,
        )?;
        Ok(distribution.quantile(beta, &more))
    }

    /// A bound on the total variation distance of a sum of this many tables to the ideal distribution.
    fn distance(&self, users: u64) -> Interval {
        let units = self.table.remainder() * Natural::from(users);
        let mantissa = Integer::from(units);
        Interval { lower: Dyadic::integer(Integer::ZERO), upper: Dyadic { mantissa, exponent: -128 } }
    }
}
