//! A release that is known by its masses at equally spaced losses, as other accountants hold it.

use super::{
    LONGEST, Release, check_limbs,
    leaves::{Atom, Part, mass_bits},
    levels::{Levels, Multiplier},
};
use crate::{
    Error, Result,
    control::Control,
    exact::{Integer, Interval, Rational},
};
use num_bigint::BigUint;
use num_traits::{One, Signed, Zero};

/// The most masses.
const MOST: usize = 1 << 22;

impl Release {
    /// P's integer weights at the losses `low * step`, `(low + 1) * step` and so on, and at infinity.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there is no mass, or losses are beyond 2^20; [`Error::Canceled`].
    pub fn from_table(
        weights: &[BigUint],
        infinity: &BigUint,
        low: i64,
        step: &Rational,
        limbs: usize,
        control: &Control,
    ) -> Result<Self> {
        check_limbs(limbs)?;
        if weights.len() > MOST {
            return Err(Error::invalid(
                "weights",
                format!("has {}, where at most {MOST} are accepted", weights.len()),
            ));
        }
        let total = Integer::from(weights.iter().sum::<BigUint>() + infinity);
        if total.is_zero() {
            return Err(Error::invalid("weights", "has no mass"));
        }
        let last = i128::from(low) + weights.len() as i128;
        let furthest =
            Rational::from_integer(Integer::from(last.unsigned_abs().max(low.unsigned_abs().into())));
        let finest = Rational::new(Integer::one(), Integer::from(1_u64 << 48));
        if *step < finest || furthest * step > Rational::from_integer(Integer::from(LONGEST)) {
            return Err(Error::invalid("step", "must be at least 2^-48, with all losses within 2^20"));
        }
        debug_assert!(step.is_positive());
        let bits = mass_bits(limbs);
        let enclosed = |mass: &BigUint| {
            Interval::rational(&Rational::new(Integer::from(mass.clone()), total.clone()), bits)
        };
        let mut atoms = Vec::new();
        let mut indices = Vec::new();
        for (index, weight) in (0_i64..).zip(weights) {
            control.check()?;
            if weight.is_zero() {
                continue;
            }
            let multiplier = Multiplier::exponential(step * Integer::from(low + index));
            atoms.push(Atom { mass: enclosed(weight), multiplier });
            indices.push(index);
        }
        let offset = vec![(Multiplier::exponential(step * Integer::from(low)), 1)];
        let levels = Levels { step: Multiplier::exponential(step.clone()), offset };
        Ok(Self::Pair(Part { atoms, infinity: enclosed(infinity), lattice: Some((levels, indices)) }))
    }
}
