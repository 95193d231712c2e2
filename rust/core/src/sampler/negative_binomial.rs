//! Negative binomial counts with a real number of successes, as a table with a certified distance to the ideal distribution.
//!
//! Paper: [GKM21, Algorithm 7].

use super::{SIZE_LIMIT, Table};
use crate::{
    Error, Result,
    control::Control,
    exact::{Integer, Interval, Natural, Rational, dyadic::Dyadic, exp::exp_interval, ln::ln},
};
use num_traits::{One, Signed, Zero};

/// Bits of the enclosures of the ideal probabilities.
const BITS: i64 = 256;
/// Entries between two looks at the control.
const CHECK_EVERY: u64 = 1 << 8;

/// Enclosures of `P[0]`, `P[1]`, ... of NB(r, p), one after the other.
///
/// # Numerics
/// `P[0]` = e^(r ln(1 - p)) is enclosed; `P[k + 1] = P[k] p (k + r) / (k + 1)` is multiplied with outward rounding to
/// 256 bits, which costs a relative 2^-254 a step.
#[derive(Debug, Clone)]
pub struct NegativeBinomialMasses {
    r: Rational,
    p: Rational,
    k: u64,
    mass: Interval,
}

impl NegativeBinomialMasses {
    /// Starts at k = 0.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for r <= 0 and p outside (0, 1); [`Error::TooLarge`] for a mean above
    /// [`SIZE_LIMIT`].
    pub fn new(r: &Rational, p: &Rational) -> Result<Self> {
        if !r.is_positive() {
            return Err(Error::invalid("r", "must be > 0"));
        }
        if !p.is_positive() || p >= &Rational::one() {
            return Err(Error::invalid("p", "must be in (0, 1), ends excluded"));
        }
        let failure = Rational::one() - p;
        let mean = r * p / &failure;
        if mean > Rational::from_integer(Integer::from(SIZE_LIMIT)) {
            return Err(too_large());
        }
        // r |ln(1 - p)| is at most the mean.
        let exponent = ln(&failure, BITS + 32).times(&Interval::rational(r, BITS + 32), BITS + 32);
        let mass = exp_interval(&exponent, BITS + 8);
        Ok(Self { r: r.clone(), p: p.clone(), k: 0, mass })
    }

    /// The k that is enclosed now.
    pub fn k(&self) -> u64 {
        self.k
    }

    /// `P[k]`.
    pub fn mass(&self) -> &Interval {
        &self.mass
    }

    /// `P[k + 1] / P[k]` = p (k + r) / (k + 1) as two integers.
    pub fn step(&self) -> (Integer, Integer) {
        let above = (self.r.denom() * self.k + self.r.numer()) * self.p.numer();
        (above, self.r.denom() * self.p.denom() * (self.k + 1))
    }

    /// True when P falls from k on, at this and all later steps: p (k + r) < k + 1 holds for all larger k as well.
    pub fn falls(&self) -> bool {
        let (above, below) = self.step();
        above < below
    }

    /// Goes on to k + 1.
    pub fn advance(&mut self) {
        let (above, below) = self.step();
        let ratio = Interval {
            lower: Dyadic::quotient(&above, &below, BITS, false),
            upper: Dyadic::quotient(&above, &below, BITS, true),
        };
        self.mass = self.mass.times(&ratio, BITS);
        self.k += 1;
    }
}

/// Integers over 2^128 next to `P[k] = C(k + r - 1, k) (1 - p)^r p^k`, k = 0, 1, ....
///
/// # Guarantee
/// All entries but one are at most the ideal `P[k] 2^128`, and that one has in addition what the others lack to a total
/// of 2^128, the `remainder`. So only its probability can be above the ideal one, by at most remainder / 2^128: the
/// total variation distance to the ideal distribution, the sum of all such excesses, is at most that.
#[derive(Debug)]
pub struct NegativeBinomialTable {
    numerators: Vec<Natural>,
    remainder: Natural,
    table: Table,
}

impl NegativeBinomialTable {
    /// Floors of lower bounds of the ideal probabilities, up to the last that is not 0, and the remainder on the
    /// largest (the first of them).
    ///
    /// # Errors
    /// As [`NegativeBinomialMasses::new`]; [`Error::TooLarge`] for more than [`SIZE_LIMIT`] entries;
    /// [`Error::Canceled`].
    pub fn new(r: &Rational, p: &Rational, control: &Control) -> Result<Self> {
        let mut masses = NegativeBinomialMasses::new(r, p)?;
        let mut numerators = Vec::new();
        loop {
            if masses.k.is_multiple_of(CHECK_EVERY) {
                control.check()?;
            }
            let numerator = units(&masses.mass.lower);
            if numerator.is_zero() && masses.falls() {
                break;
            }
            if masses.k == SIZE_LIMIT {
                return Err(too_large());
            }
            numerators.push(numerator);
            masses.advance();
        }
        Self::completed(numerators)
    }

    /// The table of these floors with the remainder on the largest.
    fn completed(mut numerators: Vec<Natural>) -> Result<Self> {
        let remainder = (Natural::one() << 128_u32) - numerators.iter().sum::<Natural>();
        let largest = numerators.iter().max().cloned().unwrap_or_default();
        if let Some(entry) = numerators.iter_mut().find(|entry| **entry == largest) {
            *entry += &remainder;
        }
        let table = Table::new(&numerators)?;
        Ok(Self { numerators, remainder, table })
    }

    /// The numerators over 2^128 of 0, 1, ....
    pub fn numerators(&self) -> &[Natural] {
        &self.numerators
    }

    /// A certified bound on the total variation distance to the ideal distribution, times 2^128.
    pub fn remainder(&self) -> &Natural {
        &self.remainder
    }

    /// The distribution that is drawn from.
    pub fn table(&self) -> &Table {
        &self.table
    }
}

fn too_large() -> Error {
    Error::too_large(format!(
        "the table would have more than {SIZE_LIMIT} entries; choose a smaller r or p (the mean is r p / (1 - p)), or \
         add up shares of a smaller r"
    ))
}

/// floor(x 2^128) for x >= 0.
fn units(x: &Dyadic) -> Natural {
    let places = x.exponent + 128;
    let mantissa = x.mantissa.magnitude();
    if places >= 0 { mantissa << places.unsigned_abs() } else { mantissa >> places.unsigned_abs() }
}
