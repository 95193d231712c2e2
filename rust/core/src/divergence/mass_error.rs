//! Verdicts about pmfs whose masses are stated with a declared relative error.

use crate::{
    Error, Result,
    exact::{
        Level, Rational,
        rounding::{Direction, rational_from_f64, rational_to_f64},
    },
};
use num_traits::{One, Zero};

/// A bound r < 1: every true mass p' of a stated mass p is from (1 - r) p to (1 + r) p.
///
/// # Formula
/// With s = (1 + r) / (1 - r) and the divergence H at E = e^epsilon: a term p' - E q' of true masses is at least
/// (1 - r) (p - E s q), and at most (1 + r) (p - E q / s). So (1 - r) H of the stated masses at the harder level E s is
/// at most H of the true ones at E, which is at most (1 + r) H of the stated ones at the easier level E / s. See
/// `docs/report-format.md`.
#[derive(Debug, Clone)]
pub struct MassError {
    /// 1 - r and 1 + r.
    factors: [Rational; 2],
}

/// What is known of the largest divergence of some pairs at a level.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Largest {
    /// It is at least this.
    pub lower: f64,
    /// It is at most this.
    pub upper: f64,
    /// Whether it exceeds delta.
    pub exceeds: bool,
}

/// What is known of the largest divergence of true masses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// Whether it is at most delta; `None` when that depends on which the true masses are.
    pub holds: Option<bool>,
    /// It is at least this.
    pub lower: f64,
    /// It is at most this.
    pub upper: f64,
}

impl MassError {
    /// From the bound.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless 0 <= r < 1.
    pub fn new(error: &Rational) -> Result<Self> {
        let one = Rational::one();
        if error < &Rational::zero() || error >= &one {
            return Err(Error::invalid("pmf_error", "must be in [0, 1)"));
        }
        Ok(Self { factors: [&one - error, one + error] })
    }

    /// The band of the divergences at `level`, from two searches among the stated pmfs: `largest` is told the level and
    /// the delta, the harder one first.
    ///
    /// # Errors
    /// Those of `largest`.
    pub fn band(
        &self,
        level: &Level,
        delta: &Rational,
        mut largest: impl FnMut(&Level, &Rational) -> Result<Largest>,
    ) -> Result<Band> {
        let [minus, plus] = &self.factors;
        let scaled =
            |up: &Rational, down: &Rational| Level::new(level.ratio() * up / down, level.exponent().clone());
        let least = largest(&scaled(plus, minus), &(delta / minus))?;
        let most = largest(&scaled(minus, plus), &(delta / plus))?;
        let holds = match (most.exceeds, least.exceeds) {
            (false, _) => Some(true),
            (true, true) => Some(false),
            (true, false) => None,
        };
        Ok(Band {
            holds,
            lower: rational_to_f64(&(rational_from_f64(least.lower) * minus), Direction::Down),
            upper: rational_to_f64(&(rational_from_f64(most.upper) * plus), Direction::Up),
        })
    }
}
