//! Cells, their masses, the slope within them, and how far the noise is from the ideal distribution, from sigma^2.

use super::{DiscreteGaussian, Slope};
use crate::{
    Error, Result,
    exact::{
        Integer, Natural, Rational,
        exp::{exp, exp_floor},
        ln::ln,
        rounding::Direction,
        rounding::rational_to_f64,
    },
    sampler::Table,
};
use num_traits::{One, Signed, ToPrimitive, Zero};

/// sigma^2 is at least 1 / this: below, all noise is 0 but with a probability of 2^-71.
const LEAST_DENOMINATOR: i64 = 100;
/// sigma^2 is at most 2^this: noise below 2^60, which is added to 62 bits.
const MOST_BITS: u32 = 112;
/// The first magnitude L without mass has L^2 >= `REACH` sigma^2: e^(-L^2 / (2 sigma^2)) < 2^-100.
const REACH: i64 = 139;
/// As K > sigma / 2, or K = 1 > sigma / 2, this many cells are enough: (24 K)^2 >= 139 sigma^2.
const MOST_CELLS: u64 = 24;
/// Fraction bits of the ideal masses of cells.
const MASS_BITS: u32 = 192;
/// Fraction bits of the bound that is shown.
const SHOWN_BITS: u32 = 128;
/// The ideal masses are enclosed to this many bits.
const PRECISION: i64 = 256;

pub(super) fn build(sigma_squared: Rational) -> Result<DiscreteGaussian> {
    let least = Rational::new(Integer::one(), LEAST_DENOMINATOR.into());
    let most = Rational::from_integer(Integer::one() << MOST_BITS);
    if sigma_squared < least || sigma_squared > most {
        let shown = rational_to_f64(&sigma_squared, Direction::Nearest);
        return Err(Error::invalid(
            "sigma_squared",
            format!(
                "must be from 1/100 to 2^112 units of value squared (below, round the values to a finer public grid, \
                 and above to a coarser one); got {shown:e}"
            ),
        ));
    }
    let cell_bits = cell_bits(&sigma_squared);
    let ideal = ideal_masses(&sigma_squared, cell_bits);
    let total: Natural = ideal.iter().sum();
    let mut masses: Vec<Natural> = ideal.iter().map(|mass| (mass << 128_u32) / &total).collect();
    // What the floors left over.
    let rest = (Natural::one() << 128_u32) - masses.iter().sum::<Natural>();
    masses[0] += rest;
    let slope = slope(&sigma_squared, cell_bits);
    let distance = distance(&sigma_squared, cell_bits, &masses);
    let cells = Table::new(&masses)?;
    Ok(DiscreteGaussian { sigma_squared, masses, cells, distance, slope })
}

/// The cell K = 2^bits is the longest with K <= sigma, or 1.
fn cell_bits(sigma_squared: &Rational) -> u32 {
    // Half of floor(log2 sigma^2), for sigma^2 < 2^113.
    sigma_squared.floor().to_integer().bits().saturating_sub(1).to_u32().unwrap_or(0) / 2
}

/// floor(2^192 e^(-(k K)^2 / (2 sigma^2))) for the cells k with (k K)^2 < 139 sigma^2.
fn ideal_masses(sigma_squared: &Rational, cell_bits: u32) -> Vec<Natural> {
    let reach = sigma_squared * Integer::from(REACH);
    (0..MOST_CELLS)
        .map(|k| Rational::from_integer(Integer::from(k << cell_bits).pow(2)))
        .take_while(|square| square < &reach)
        .map(|square| exp_floor(&(-square / (sigma_squared * Integer::from(2))), MASS_BITS))
        .map(|mass| mass.magnitude().clone())
        .collect()
}

/// The largest numbers of 128 bits that do not exceed the ideal ones; nothing where cells have one magnitude.
fn slope(sigma_squared: &Rational, cell_bits: u32) -> Slope {
    if cell_bits == 0 {
        return Slope { cell_bits, rate: 0, places: 0 };
    }
    // 2^250 / (2 sigma^2 ln 2) from below, with 384 bits of ln 2.
    let ln_two = ln(&Rational::from_integer(2.into()), 384).upper.to_rational();
    let scaled = Rational::from_integer(Integer::one() << 249_u32) / (sigma_squared * ln_two);
    let scaled = scaled.to_integer();
    let places = scaled.bits().saturating_sub(128);
    let rate = (scaled >> places).to_u128().unwrap_or(0);
    Slope { cell_bits, rate, places: places.to_u32().unwrap_or(0) }
}

/// A bound of the total variation between the noise of these masses of cells and the ideal distribution on all integers.
///
/// With v(x) = e^(-x^2 / (2 sigma^2)) it is the sum of what is cut off, 2 v(L), of the relative error of acceptances,
/// 2^-100, and of four times the errors of the masses: `docs/proofs/discrete_gaussian.md`.
fn distance(sigma_squared: &Rational, cell_bits: u32, masses: &[Natural]) -> Rational {
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
