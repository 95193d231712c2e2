//! The all-pairs search where its limits are: more near ties than are kept or compared, errors of masses that a level
//! multiplies beyond 1, totals above 1.
#![allow(clippy::unwrap_used)]

use num_traits::{One, Zero};
use std::{cmp::Ordering, sync::Arc};
use userdp_core::{
    control::Control,
    exact::{Level, Rational, rounding::rational_from_f64},
    family::{ExactRows, PmfMatrix, maximum, maximum_against, verdict},
    pmf::Pmf,
};

/// Rows of dyadic masses, as the floats they are.
fn dyadic(rows: &[Vec<i64>], bits: i32) -> Vec<f64> {
    rows.iter().flatten().map(|&units| units as f64 / 2.0_f64.powi(bits)).collect()
}

/// Exact rows that are not what their floats say, as far as the stated error allows.
struct Stated(Vec<[u64; 2]>);

impl ExactRows for Stated {
    fn pmf(&self, row: usize) -> Pmf<'static> {
        let weights: Vec<_> = self.0[row].iter().map(|&weight| num_bigint::BigUint::from(weight)).collect();
        let total = weights.iter().sum();
        Pmf::from_weights(weights, total, "pmfs", &Control::new()).unwrap()
    }
}

/// Floats of 2^-126 that stand for the mass 0: at E = 2^130 they hide a divergence of 1.
#[test]
fn levels_that_multiply_the_error_of_a_mass_beyond_1() {
    let control = Control::new();
    let tiny = 2.0_f64.powi(-126);
    let masses = [[tiny, 1.0].repeat(63), vec![1.0, tiny]].concat();
    let stated = [vec![[0, 1]; 63], vec![[1, 0]]].concat();
    let matrix = PmfMatrix::near(masses, 2, 1e-15, Arc::new(Stated(stated))).unwrap();
    let level = Level::rational(Rational::from_integer(num_bigint::BigInt::from(1) << 130));
    assert!(!verdict(&matrix, &level, &Rational::new(1.into(), 2.into()), &control).unwrap().holds);
    assert_eq!(maximum(&matrix, &level, &control).unwrap().unwrap().pair.lower, 1.0);
}

/// More near ties than are kept, the largest of which looks smallest in floats.
#[test]
fn pairs_that_are_too_many_to_keep_are_bounded() {
    let control = Control::new();
    let (rows, bits) = (400, 62);
    let spike = (1_i64 << (bits - 10)) * 614;
    let rest = (1 << bits) - spike - 399 * ((1 << 52) + 307);
    let units: Vec<Vec<i64>> = (0..rows)
        .map(|i| {
            // Sums in floats lose the excess of row 0 in every addition, and round the others' up.
            let excess = if i == 0 { 205 } else { 307 };
            let mut row = vec![(1 << 52) + excess; rows + 1];
            row[i] = spike + if i == 0 { 100 << 9 } else { 0 };
            // The same in every row, and so in no event.
            row[rows] = (rest >> 10) << 10;
            row
        })
        .collect();
    let matrix = PmfMatrix::from_floats(dyadic(&units, bits), rows + 1, &control).unwrap();
    let truth = units
        .iter()
        .flat_map(|p| {
            units.iter().map(move |q| p.iter().zip(q).map(|(p, q)| (p - 2 * q).max(0)).sum::<i64>())
        })
        .max()
        .unwrap();
    let truth = Rational::new(truth.into(), num_bigint::BigInt::from(1) << bits);
    let level = Level::rational(Rational::from_integer(2.into()));
    let found = maximum(&matrix, &level, &control).unwrap().unwrap();
    assert!(!found.compared);
    assert!(rational_from_f64(found.upper) >= truth, "{:?}", found.upper);
    assert!(rational_from_f64(found.pair.lower) <= truth);
    let below = &truth - Rational::new(1.into(), num_bigint::BigInt::from(1) << 70);
    for (delta, exceeds) in [(below, true), (truth, false)] {
        let (against, decided) = maximum_against(&matrix, &level, &delta, &control).unwrap().unwrap();
        assert_eq!(decided, exceeds);
        assert_eq!(against.pair.difference.compare(&level, &delta) == Ordering::Greater, exceeds);
        assert_eq!(verdict(&matrix, &level, &delta, &control).unwrap().holds, !exceeds);
    }
}

/// Hundreds of pairs within 2^-100 of each other: only some are compared exactly, yet the verdict is.
#[test]
fn a_verdict_on_near_ties_is_exact() {
    let control = Control::new();
    let mut masses = vec![1.0, 0.0, 0.0];
    masses.extend((1..300).flat_map(|row| [0.5, 0.5, f64::from(row) * 2.0_f64.powi(-110)]));
    let matrix = PmfMatrix::from_floats(masses, 3, &control).unwrap();
    let level = Level::from_epsilon(0.0);
    let half = Rational::new(1.into(), 2.into());
    let largest = &half + Rational::new(299.into(), num_bigint::BigInt::from(1) << 110);
    for (delta, exceeds) in [(half, true), (largest, false)] {
        let (found, decided) = maximum_against(&matrix, &level, &delta, &control).unwrap().unwrap();
        assert_eq!(decided, exceeds);
        assert_eq!(found.pair.difference.compare(&level, &delta) == Ordering::Greater, exceeds);
        let upper = rational_from_f64(found.upper);
        assert!(found.pair.difference.compare(&level, &upper) != Ordering::Greater);
    }
}

/// Float rows may sum to a little more than 1, and so may divergences.
#[test]
fn upper_bounds_hold_for_totals_above_1() {
    let control = Control::new();
    let matrix = PmfMatrix::from_floats(vec![1.0 + 5e-10, 0.0, 0.0, 1.0], 2, &control).unwrap();
    for delta in [Rational::zero(), Rational::new(1.into(), 2.into()), Rational::one()] {
        let decided = verdict(&matrix, &Level::from_epsilon(0.0), &delta, &control).unwrap();
        assert!(!decided.holds && decided.upper >= decided.pair.unwrap().lower);
    }
}

#[test]
fn errors_of_floats_are_checked() {
    for error in [0.0, -1.0, 0.5, f64::NAN] {
        assert!(PmfMatrix::near(vec![1.0, 0.0], 2, error, Arc::new(Stated(vec![[1, 0]]))).is_err());
    }
}
