//! Verdicts with a declared relative error of masses, against fractions and against true masses within it.

#![allow(clippy::unwrap_used)]

use num_bigint::BigInt;
use num_traits::{One, Zero};
use proptest::prelude::*;
use userdp_core::{
    Error,
    control::Control,
    divergence::mass_error::{Band, Largest, MassError},
    exact::{
        Level, Natural, Rational,
        rounding::{Direction, rational_from_f64, rational_to_f64},
    },
    family::{Family, PmfMatrix, maximum_band},
    pmf::Pmf,
};

fn fraction(numerator: i64, denominator: i64) -> Rational {
    Rational::new(BigInt::from(numerator), BigInt::from(denominator))
}

fn pmfs(rows: &[[u32; 3]]) -> Vec<Pmf<'static>> {
    let control = Control::new();
    rows.iter()
        .map(|row| {
            let total = Natural::from(row.iter().sum::<u32>());
            let weights = row.iter().copied().map(Natural::from).collect();
            Pmf::from_weights(weights, total, "pmf", &control).unwrap()
        })
        .collect()
}

/// The largest of sum max(0, p - E q) over ordered pairs of rows, where masses of p count `up` times and of q `down` times.
fn largest(rows: &[[u32; 3]], e: &Rational, up: &Rational, down: &Rational, equal: bool) -> Rational {
    let mass =
        |row: &[u32; 3], output: usize| fraction(i64::from(row[output]), i64::from(row.iter().sum::<u32>()));
    let mut best = Rational::zero();
    for (i, p) in rows.iter().enumerate() {
        for (j, q) in rows.iter().enumerate() {
            if i == j && !equal {
                continue;
            }
            let terms = (0..3).map(|output| mass(p, output) * up - mass(q, output) * down * e);
            best = best.max(terms.filter(|term| term > &Rational::zero()).sum());
        }
    }
    best
}

/// The band in fractions: rows whose masses are all too large and all too small by the error, or the other way round.
fn expected(rows: &[[u32; 3]], e: &Rational, delta: &Rational, error: &Rational, equal: bool) -> Band {
    let (minus, plus) = (Rational::one() - error, Rational::one() + error);
    let (least, most) = (largest(rows, e, &minus, &plus, equal), largest(rows, e, &plus, &minus, equal));
    // The bounds are bounds of floats: down and up once among the stated masses, once after the scaling.
    let twice = |exact: &Rational, factor: &Rational, direction| {
        let stated = rational_from_f64(rational_to_f64(&(exact / factor), direction));
        rational_to_f64(&(stated * factor), direction)
    };
    Band {
        holds: if &most <= delta {
            Some(true)
        } else if &least > delta {
            Some(false)
        } else {
            None
        },
        lower: twice(&least, &minus, Direction::Down),
        upper: twice(&most, &plus, Direction::Up),
    }
}

fn listed(rows: &[[u32; 3]], e: &Rational, delta: &Rational, error: &Rational) -> Band {
    let pairs: Vec<(usize, usize)> =
        (0..rows.len()).flat_map(|i| (i..rows.len()).map(move |j| (i, j))).collect();
    let error = MassError::new(error).unwrap();
    let family = Family::new(pmfs(rows)).unwrap();
    family.band(&pairs, &Level::rational(e.clone()), delta, &error, &Control::new()).unwrap()
}

proptest! {
    #[test]
    fn bands_are_those_of_fractions(
        rows in prop::collection::vec([0_u32..9, 0_u32..9, 1_u32..9], 1..5),
        e in 8_i64..20,
        delta in 0_i64..=24,
        error in 0_i64..16,
        choice in 0_u8..3,
    ) {
        let (e, error) = (fraction(e, 8), fraction(error, 16));
        let (minus, plus) = (Rational::one() - &error, Rational::one() + &error);
        // Also at the ends of the band themselves.
        let delta = match choice {
            0 => fraction(delta, 24),
            1 => largest(&rows, &e, &minus, &plus, true),
            _ => largest(&rows, &e, &plus, &minus, true),
        };
        let wanted = expected(&rows, &e, &delta, &error, true);
        prop_assert_eq!(listed(&rows, &e, &delta, &error), wanted);
        let matrix = PmfMatrix::from_pmfs(pmfs(&rows)).unwrap();
        let bound = MassError::new(&error).unwrap();
        let (found, _) =
            maximum_band(&matrix, &Level::rational(e), &delta, &bound, &Control::new()).unwrap();
        prop_assert_eq!(found.holds, wanted.holds);
        // The search over all pairs may give bounds of several pairs; they enclose the same.
        prop_assert!(found.lower <= wanted.upper && wanted.lower <= found.upper);
        prop_assert!(found.upper >= wanted.upper && found.lower <= wanted.lower.next_up());
    }
}

#[test]
fn the_levels_the_deltas_and_the_roundings() {
    let error = MassError::new(&fraction(1, 3)).unwrap();
    let level = Level::new(fraction(5, 4), fraction(1, 7));
    let mut asked = Vec::new();
    let band = error
        .band(&level, &fraction(1, 10), |level, delta| {
            asked.push((level.ratio().clone(), level.exponent().clone(), delta.clone()));
            let first = asked.len() == 1;
            Ok(if first {
                Largest { lower: 0.1, upper: 0.9, exceeds: false }
            } else {
                Largest { lower: 0.0, upper: 0.7, exceeds: true }
            })
        })
        .unwrap();
    let seventh = fraction(1, 7);
    assert_eq!(
        asked,
        [(fraction(5, 2), seventh.clone(), fraction(3, 20)), (fraction(5, 8), seventh, fraction(3, 40)),]
    );
    let scaled = |x: f64, factor, direction| rational_to_f64(&(rational_from_f64(x) * factor), direction);
    assert_eq!(band.holds, None);
    assert_eq!(band.lower, scaled(0.1, fraction(2, 3), Direction::Down));
    assert_eq!(band.upper, scaled(0.7, fraction(4, 3), Direction::Up));
    assert!(rational_from_f64(band.lower) < rational_from_f64(0.1) * fraction(2, 3));
    assert!(rational_from_f64(band.upper) > rational_from_f64(0.7) * fraction(4, 3));
    let verdict = |least, most| {
        let mut exceeds = [most, least].to_vec();
        let answer =
            |_: &Level, _: &Rational| Ok(Largest { lower: 0.0, upper: 1.0, exceeds: exceeds.pop().unwrap() });
        error.band(&level, &fraction(1, 10), answer).unwrap().holds
    };
    assert_eq!(
        [verdict(false, false), verdict(false, true), verdict(true, true), verdict(true, false)],
        [Some(true), None, Some(false), Some(true)]
    );
}

#[test]
fn errors_from_zero_to_below_one() {
    for wrong in [fraction(-1, 100), fraction(1, 1), fraction(3, 2)] {
        let refused = MassError::new(&wrong).unwrap_err();
        assert_eq!(refused.to_string(), "pmf_error: must be in [0, 1)");
    }
    // No error: what is stated.
    let rows = [[1, 2, 3], [3, 2, 1]];
    let band = listed(&rows, &Rational::one(), &fraction(1, 3), &Rational::zero());
    assert_eq!((band.holds, band.lower.next_up()), (Some(true), band.upper));
    // An error near 1 leaves everything open.
    let near = Rational::one() - Rational::new(BigInt::from(1), BigInt::from(1) << 2000_usize);
    let band = listed(&rows, &Rational::one(), &fraction(1, 3), &near);
    assert_eq!((band.holds, band.lower), (None, 0.0));
    assert!(band.upper <= 2.0);
}

#[test]
fn nothing_to_compare_and_errors_of_the_search() {
    let error = MassError::new(&fraction(1, 2)).unwrap();
    let (level, delta, control) = (Level::rational(Rational::one()), fraction(0, 1), Control::new());
    let nothing = Band { holds: Some(true), lower: 0.0, upper: 0.0 };
    let family = Family::new(pmfs(&[[1, 2, 3]])).unwrap();
    assert_eq!(family.band(&[], &level, &delta, &error, &control).unwrap(), nothing);
    let empty = PmfMatrix::from_floats(Vec::new(), 3, &control).unwrap();
    assert_eq!(maximum_band(&empty, &level, &delta, &error, &control).unwrap(), (nothing, 0));
    assert!(matches!(
        family.band(&[(0, 1)], &level, &delta, &error, &control),
        Err(Error::InvalidArgument { argument: "pairs", .. })
    ));
    // A pmf beside itself may differ in truth.
    assert_eq!(family.band(&[(0, 0)], &level, &delta, &error, &control).unwrap().holds, None);
    control.cancel();
    assert!(family.band(&[(0, 0)], &level, &delta, &error, &control).unwrap_err().is_canceled());
}
