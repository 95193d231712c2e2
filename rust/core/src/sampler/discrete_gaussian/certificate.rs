//! How far the noise is from the ideal distribution.

use crate::exact::{Integer, Natural, Rational, exp::exp};
use num_traits::{One, Signed, Zero};

/// Fraction bits of the bound that is shown.
const SHOWN_BITS: u32 = 128;
/// The ideal masses are enclosed to this many bits.
const PRECISION: i64 = 256;

/// A bound of the total variation between the noise of these masses of cells and the ideal distribution on all integers.
///
/// With v(x) = e^(-x^2 / (2 sigma^2)) it is the sum of what is cut off, 2 v(L), of the relative error of acceptances,
/// 2^-100, and of four times the errors of the masses: `docs/proofs/discrete_gaussian.md`.
pub(super) fn distance(sigma_squared: &Rational, cell_bits: u32, masses: &[Natural]) -> Rational {
    let ideal = |k: usize| {
        let square = Rational::from_integer(Integer::from(k << cell_bits).pow(2));
        exp(&(-square / (sigma_squared * Integer::from(2))), PRECISION)
    };
    let enclosures: Vec<_> = (0..masses.len()).map(ideal).collect();
    // Any number near the sum of the ideal masses will do.
    let total: Rational = enclosures.iter().map(|mass| mass.lower.to_rational()).sum();
    let errors: Rational = masses
        .iter()
        .zip(&enclosures)
        .map(|(mass, ideal)| {
            let share = &total * Rational::new(mass.clone().into(), Integer::one() << 128_u32);
            let (low, high) = (ideal.lower.to_rational(), ideal.upper.to_rational());
            (&share - low).abs().max((share - high).abs())
        })
        .fold(Rational::zero(), |sum, error| sum + error);
    let cut_off = ideal(masses.len()).upper.to_rational();
    let acceptances = Rational::new(Integer::one(), Integer::one() << 100_u32);
    let bound = cut_off * Integer::from(2) + acceptances + errors * Integer::from(4);
    let unit = Integer::one() << SHOWN_BITS;
    Rational::new((bound * &unit).ceil().to_integer(), unit)
}
