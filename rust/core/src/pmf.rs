//! Validated probability mass functions over a finite output space.

use crate::{
    Error, Result,
    control::Control,
    exact::{
        ExactSum, Natural, Rational,
        rounding::{Direction, quotient_to_f64, rational_from_f64},
    },
};
use num_traits::{One, Signed, Zero};
use std::{borrow::Cow, ops::Range};

/// Weights between two looks at the control.
const CHECK_EVERY: usize = 1 << 12;

/// The masses of a float pmf may miss a total of 1 by this much.
pub const FLOAT_TOTAL_TOLERANCE: f64 = 1e-9;

/// A probability mass function: non-empty, non-negative, of total 1.
///
/// Float masses are taken as the exact dyadic numbers they are (and may then miss 1 by
/// [`FLOAT_TOTAL_TOLERANCE`]); integer weights over their sum are exact.
#[derive(Debug, Clone)]
pub struct Pmf<'a> {
    /// The masses, or the floats nearest to them.
    approximate: Cow<'a, [f64]>,
    exact: Option<Weights>,
}

#[derive(Debug, Clone)]
struct Weights {
    weights: Vec<Natural>,
    total: Natural,
}

impl<'a> Pmf<'a> {
    /// Checks float masses and takes them as exact.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming `argument` for an empty slice, a mass that is NaN, infinite or negative, or
    /// a total that misses 1 by more than 1e-9 (decided exactly).
    pub fn from_floats(masses: impl Into<Cow<'a, [f64]>>, argument: &'static str) -> Result<Self> {
        Self::from_floats_within(masses, argument, FLOAT_TOTAL_TOLERANCE)
    }

    /// The same with a total that misses 1 by at most `tolerance` >= 1e-9.
    pub(crate) fn from_floats_within(
        masses: impl Into<Cow<'a, [f64]>>,
        argument: &'static str,
        tolerance: f64,
    ) -> Result<Self> {
        let approximate = masses.into();
        if approximate.is_empty() {
            return Err(Error::invalid(argument, "is empty; a pmf needs at least one mass"));
        }
        if is_clearly_a_pmf(&approximate) {
            return Ok(Self { approximate, exact: None });
        }
        let mut total = ExactSum::new();
        for (index, &mass) in approximate.iter().enumerate() {
            if !(mass.is_finite() && mass >= 0.0) {
                let message = format!("mass {mass:?} at index {index} is not a finite number >= 0");
                return Err(Error::invalid(argument, message));
            }
            total.add(mass);
        }
        let miss = (total.value() - Rational::one()).abs();
        if miss > rational_from_f64(tolerance) {
            let total = crate::exact::rounding::rational_to_f64(&total.value(), Direction::Nearest);
            let message = format!(
                "masses sum to {total:?}; floats must sum to 1 within 1e-9 (normalize them, or use exact_pmf)"
            );
            return Err(Error::invalid(argument, message));
        }
        Ok(Self { approximate, exact: None })
    }

    /// Wraps float masses that [`Pmf::from_floats`] would accept.
    pub fn from_checked_floats(masses: impl Into<Cow<'a, [f64]>>) -> Self {
        Self { approximate: masses.into(), exact: None }
    }

    /// Float masses that have been checked, over their exact sum.
    pub(crate) fn over_exact_sum(masses: &[f64]) -> Pmf<'static> {
        // Denominators are powers of two, so the largest is a multiple of all.
        let exact: Vec<Rational> = masses.iter().map(|&mass| rational_from_f64(mass)).collect();
        let scale = exact.iter().map(|mass| mass.denom().magnitude()).max().cloned().unwrap_or_default();
        let weights: Vec<Natural> =
            exact.iter().map(|mass| mass.numer().magnitude() * (&scale / mass.denom().magnitude())).collect();
        let total: Natural = weights.iter().sum();
        let approximate =
            weights.iter().map(|weight| quotient_to_f64(weight, &total, Direction::Nearest)).collect();
        Pmf { approximate: Cow::Owned(approximate), exact: Some(Weights { weights, total }) }
    }

    /// The masses `weights[i] / total`, exactly.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming `argument` for no weights, or when they do not sum to `total` > 0;
    /// [`Error::Canceled`].
    pub fn from_weights(
        weights: Vec<Natural>,
        total: Natural,
        argument: &'static str,
        control: &Control,
    ) -> Result<Pmf<'static>> {
        if weights.is_empty() {
            return Err(Error::invalid(argument, "is empty; a pmf needs at least one mass"));
        }
        let mut sum = Natural::zero();
        for block in weights.chunks(CHECK_EVERY) {
            control.check()?;
            sum += block.iter().sum::<Natural>();
        }
        if total.is_zero() || sum != total {
            let message = format!("exact masses must sum to exactly 1; they sum to {sum}/{total}");
            return Err(Error::invalid(argument, message));
        }
        let mut approximate = Vec::with_capacity(weights.len());
        for block in weights.chunks(CHECK_EVERY) {
            control.check()?;
            approximate
                .extend(block.iter().map(|weight| quotient_to_f64(weight, &total, Direction::Nearest)));
        }
        Ok(Pmf { approximate: Cow::Owned(approximate), exact: Some(Weights { weights, total }) })
    }

    /// The number of outputs.
    pub fn len(&self) -> usize {
        self.approximate.len()
    }

    /// Never true: a pmf has at least one mass.
    pub fn is_empty(&self) -> bool {
        self.approximate.is_empty()
    }

    /// The masses as floats: themselves, or the nearest ones.
    pub fn approximate(&self) -> &[f64] {
        &self.approximate
    }

    /// True when [`Pmf::approximate`] holds the masses themselves.
    pub fn is_float(&self) -> bool {
        self.exact.is_none()
    }

    /// The exact mass of one output, not necessarily in lowest terms: comparisons do without.
    pub fn mass(&self, index: usize) -> Rational {
        match &self.exact {
            None => rational_from_f64(self.approximate[index]),
            Some(Weights { weights, total }) => {
                Rational::new_raw(weights[index].clone().into(), total.clone().into())
            }
        }
    }

    /// True when the exact mass is zero (a tiny exact mass may have the float 0).
    pub fn is_zero(&self, index: usize) -> bool {
        match &self.exact {
            // By its bits: a processor set to treat subnormals as zero must not decide this.
            None => self.approximate[index].to_bits() << 1 == 0,
            Some(Weights { weights, .. }) => weights[index].is_zero(),
        }
    }

    /// The exact mass of an event, given as increasing indices; not necessarily in lowest terms.
    pub fn event_mass(&self, event: &[usize]) -> Rational {
        match &self.exact {
            None => {
                let mut sum = ExactSum::new();
                for &index in event {
                    sum.add(self.approximate[index]);
                }
                sum.value()
            }
            Some(Weights { weights, total }) => {
                let sum: Natural = event.iter().map(|&index| &weights[index]).sum();
                Rational::new_raw(sum.into(), total.clone().into())
            }
        }
    }

    /// All outputs, as indices.
    pub fn outputs(&self) -> Range<usize> {
        0..self.len()
    }
}

/// True for masses whose validity no rounding can change; false leaves the question to exact arithmetic.
fn is_clearly_a_pmf(masses: &[f64]) -> bool {
    const LANES: usize = 8;
    // Each lane adds a few million non-negative terms at most: an error below 2^22 u per unit of total, under 5e-10.
    if masses.len() > LANES << 21 {
        return false;
    }
    let (chunks, rest) = masses.as_chunks::<LANES>();
    let mut totals = [0.0; LANES];
    let mut negative = false;
    for chunk in chunks {
        for (total, &mass) in totals.iter_mut().zip(chunk) {
            *total += mass;
            negative |= mass < 0.0;
        }
    }
    negative |= rest.iter().any(|&mass| mass < 0.0);
    // NaN and infinities make the total fail the comparison.
    let total = totals.iter().sum::<f64>() + rest.iter().sum::<f64>();
    !negative && (total - 1.0).abs() <= FLOAT_TOTAL_TOLERANCE / 2.0
}

/// Checks that two pmfs have the same outputs.
///
/// # Errors
/// [`Error::InvalidArgument`] naming `q`.
pub fn check_same_outputs(p: &Pmf<'_>, q: &Pmf<'_>) -> Result<()> {
    if p.len() == q.len() {
        Ok(())
    } else {
        Err(Error::invalid("q", format!("has {} masses where p has {}; they must match", q.len(), p.len())))
    }
}
