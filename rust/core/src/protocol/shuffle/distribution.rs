//! Enclosures of the probabilities of NB(r, p), Y, and of its tails.

use crate::{
    Error, Result,
    control::Control,
    exact::{Integer, Interval, Rational, dyadic::Dyadic},
    sampler::{NegativeBinomialMasses, SIZE_LIMIT},
};
use num_traits::One;

/// Bits of all enclosures.
pub(super) const BITS: i64 = 256;
/// The tail is cut where it is below 2^-TAIL_BITS of P[Y = 0].
const TAIL_BITS: i64 = 80;
/// Entries between two looks at the control.
const CHECK_EVERY: u64 = 1 << 8;

/// `P[Y = k]` and `P[Y >= k]` of Y ~ NB(r, p) with r > 1, as far as they matter, and a bound on what follows.
///
/// # Guarantee
/// Let `g(k) = P[k + 1] / P[k]` = p (k + r) / (k + 1), which falls in k for r > 1. Where g(K) < 1, every later step is
/// below g(K) as well, so `P[Y >= K]` is between `P[K]` and `P[K] (1 + g(K) + g(K)^2 + ...)` = `P[K] / (1 - g(K))`.
/// Tails from smaller k on are that and sums of positive numbers: nothing cancels.
#[derive(Debug)]
pub struct NegativeBinomialDistribution {
    r: Rational,
    p: Rational,
    /// `P[Y = k]` for k = 0, ..., K - 1.
    masses: Vec<Interval>,
    /// `P[Y >= k]` for k = 0, ..., K.
    tails: Vec<Interval>,
}

/// The position of the leading bit.
fn size(x: &Dyadic) -> i64 {
    x.mantissa.bits().cast_signed() + x.exponent
}

impl NegativeBinomialDistribution {
    /// Encloses the distribution.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for r <= 1, where the likelihood ratio of a shift does not fall, and p outside
    /// (0, 1); [`Error::TooLarge`] for more than [`SIZE_LIMIT`] values; [`Error::Canceled`].
    pub fn new(r: &Rational, p: &Rational, control: &Control) -> Result<Self> {
        if r <= &Rational::one() {
            return Err(Error::invalid("r", "must be > 1 here"));
        }
        let mut next = NegativeBinomialMasses::new(r, p)?;
        let negligible = size(&next.mass().lower) - TAIL_BITS;
        let mut masses = Vec::new();
        let tail = loop {
            if next.k().is_multiple_of(CHECK_EVERY) {
                control.check()?;
            }
            if size(&next.mass().upper) < negligible && next.falls() {
                // 1 / (1 - g) = below / (below - above)
                let (above, below) = next.step();
                let sum = Dyadic::quotient(&below, &(&below - above), BITS, true);
                let upper = next.mass().upper.times(&sum).rounded(BITS, true);
                if size(&upper) < negligible {
                    break Interval { lower: next.mass().lower.clone(), upper };
                }
            }
            if next.k() == SIZE_LIMIT {
                return Err(Error::too_large(format!(
                    "the noise has more than {SIZE_LIMIT} values that matter; choose a larger epsilon or a smaller p"
                )));
            }
            masses.push(next.mass().clone());
            next.advance();
        };
        let mut tails = vec![tail];
        for (k, mass) in masses.iter().enumerate().rev() {
            tails.push(tails[masses.len() - 1 - k].plus(mass, BITS));
        }
        tails.reverse();
        Ok(Self { r: r.clone(), p: p.clone(), masses, tails })
    }

    /// The number of successes.
    pub fn r(&self) -> &Rational {
        &self.r
    }

    /// The probability of a failure.
    pub fn p(&self) -> &Rational {
        &self.p
    }

    /// K: the values 0, ..., K - 1 are known one by one.
    pub fn len(&self) -> usize {
        self.masses.len()
    }

    /// Never: the most probable value is always listed.
    pub fn is_empty(&self) -> bool {
        self.masses.is_empty()
    }

    /// `P[Y = k]` for k < K.
    pub fn mass(&self, k: usize) -> &Interval {
        &self.masses[k]
    }

    /// `P[Y >= k]`.
    pub fn tail(&self, k: usize) -> Interval {
        let last = &self.tails[self.masses.len()];
        self.tails
            .get(k)
            .cloned()
            .unwrap_or_else(|| Interval { lower: Dyadic::integer(Integer::ZERO), upper: last.upper.clone() })
    }

    /// The least k with `P[Y > k] + more <= beta` beyond doubt; `None` where the listed values do not tell.
    pub fn quantile(&self, beta: &Rational, more: &Rational) -> Option<usize> {
        let target = beta - more;
        (0..self.len()).find(|&k| self.tail(k + 1).upper.to_rational() <= target)
    }
}
