//! The exponential mechanism's rate, weights and pmf against plain definitions in integers and rationals.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::One;
use proptest::prelude::*;
use std::{cmp::Ordering, sync::Arc};
use userdp_core::{
    control::Control,
    exact::{Level, exp::exp},
    family::scores::{Deletions, KindDeletions, Listed, TotalRows, exponential_matrix, exponential_pmf},
    sampler::exponential::{Rate, numerators},
    subsets::{CountVectors, Subsets},
};

fn level(numerator: i64, denominator: i64) -> Level {
    Level::new(BigRational::one(), BigRational::new(numerator.into(), denominator.into()))
}

/// Changes of scores between neighbors.
#[derive(Clone, Copy, PartialEq)]
enum Changes {
    Any,
    OneDirection,
}

/// Between neighboring score vectors (all changes within the sensitivity) every ratio is within e^epsilon.
fn is_private_for(
    changes: Changes,
    rate: &Rate,
    level: &Level,
    sensitivity: i64,
    outputs: u32,
    highest: i64,
) -> bool {
    let values = highest + 1;
    let vectors: Vec<Vec<i64>> = (0..values.pow(outputs))
        .map(|code| (0..outputs).map(|place| code / values.pow(place) % values).collect())
        .collect();
    let pmfs: Vec<_> = vectors.iter().map(|scores| exponential_pmf(rate, scores)).collect();
    for (x, p) in vectors.iter().zip(&pmfs) {
        for (y, q) in vectors.iter().zip(&pmfs) {
            let differences = || x.iter().zip(y).map(|(a, b)| a - b);
            if differences().any(|difference| difference.abs() > sensitivity)
                || changes == Changes::OneDirection && differences().any(|difference| difference < 0)
            {
                continue;
            }
            for i in 0..x.len() {
                let (here, there) = (p.mass(i), q.mass(i));
                if level.compare(&here, &there) == Ordering::Greater
                    || level.compare(&there, &here) == Ordering::Greater
                {
                    return false;
                }
            }
        }
    }
    true
}

fn is_private(rate: &Rate, level: &Level, sensitivity: i64, outputs: u32, highest: i64) -> bool {
    is_private_for(Changes::Any, rate, level, sensitivity, outputs, highest)
}

#[test]
fn monotone_changes_are_private_at_twice_the_rate_and_others_are_not() {
    for (epsilon, sensitivity) in [(1, 1), (1, 2), (5, 1)] {
        let level = level(epsilon, 1);
        let rate = Rate::new(&level, sensitivity, true).unwrap();
        let delta = sensitivity.cast_signed();
        assert!(is_private_for(Changes::OneDirection, &rate, &level, delta, 3, 5));
        assert!(!is_private_for(Changes::Any, &rate, &level, delta, 3, 5));
        let half_the_noise = Rate::new(&doubled(&level), sensitivity, true).unwrap();
        assert!(!is_private_for(Changes::OneDirection, &half_the_noise, &level, delta, 3, 5));
    }
}

#[test]
fn rates_of_64_bits_and_more_become_32() {
    let bits = |epsilon| {
        let rate = Rate::new(&Level::from_epsilon(epsilon), 1, true).unwrap();
        (rate.bits_per_unit() * BigInt::from(100)).to_integer()
    };
    assert_eq!(bits(22.5), BigInt::from(3246));
    assert_eq!(bits(30.0), BigInt::from(4328));
    assert_eq!(bits(44.3), BigInt::from(6391));
    assert_eq!(bits(44.4), BigInt::from(3199)); // a little below 32
    for epsilon in [44.3, 44.4, 87.0] {
        let level = Level::from_epsilon(epsilon);
        let rate = Rate::new(&level, 1, true).unwrap();
        assert!(is_private_for(Changes::OneDirection, &rate, &level, 1, 3, 4));
    }
}

#[test]
fn neighboring_totals_are_within_epsilon_and_half_the_noise_is_not() {
    for (numerator, denominator, sensitivity, highest) in
        [(1, 1, 1_i64, 5), (1, 10, 2, 6), (3, 1, 1, 4), (1, 1, 3, 7), (20, 1, 1, 5), (1, 1000, 1, 3)]
    {
        let level = level(numerator, denominator);
        let rate = Rate::new(&level, sensitivity.unsigned_abs(), false).unwrap();
        assert!(is_private(&rate, &level, sensitivity, 3, highest));
        let half_the_noise = Rate::new(&doubled(&level), sensitivity.unsigned_abs(), false).unwrap();
        assert!(!is_private(&half_the_noise, &level, sensitivity, 3, highest), "{numerator}/{denominator}");
    }
}

fn doubled(level: &Level) -> Level {
    Level::new(BigRational::one(), level.exponent() * BigInt::from(2))
}

#[test]
fn clamped_gaps_of_large_levels_are_within_epsilon() {
    for epsilon in [44, 60, 87] {
        let level = level(epsilon, 1);
        let rate = Rate::new(&level, 1, false).unwrap();
        assert!(rate.largest_gap() <= 2);
        assert!(is_private(&rate, &level, 1, 3, 4));
    }
}

#[test]
fn logarithmic_levels_are_rounded_down() {
    for (numerator, denominator) in [(2, 1), (3, 2), (1001, 1000), (8000, 1)] {
        let level = Level::rational(BigRational::new(BigInt::from(numerator), BigInt::from(denominator)));
        let rate = Rate::new(&level, 1, false).unwrap();
        assert!(is_private(&rate, &level, 1, 3, 3));
        assert!(!is_private(&Rate::new(&squared(&level), 1, false).unwrap(), &level, 1, 3, 3));
    }
}

fn squared(level: &Level) -> Level {
    Level::rational(level.ratio() * level.ratio())
}

#[test]
fn rates_out_of_range_are_refused() {
    for (numerator, denominator) in [(0, 1), (1, 1 << 36), (1, 1 << 35), (88, 1), (1000, 1)] {
        assert!(Rate::new(&level(numerator, denominator), 1, false).is_err());
    }
    assert!(Rate::new(&level(1, 1), 0, false).is_err());
    assert!(Rate::new(&level(1, 1), 1 << 62, false).is_err());
    assert!(Rate::new(&level(1, 1 << 34), 1, false).is_ok());
    assert!(Rate::new(&level(1, 1 << 34), (1 << 62) - 1, false).is_ok());
    assert!(Rate::new(&level(1, 1), (1 << 62) - 1, false).is_ok());
}

#[test]
fn one_candidate_is_certain() {
    let rate = Rate::new(&level(1, 1), 1, false).unwrap();
    assert_eq!(numerators(&rate.weights(&[i64::MIN])), [BigUint::one() << 128_u32]);
}

#[test]
fn the_whole_range_of_scores_is_taken() {
    let rate = Rate::new(&level(1, 1), 1, false).unwrap();
    let weights = rate.weights(&[i64::MIN, i64::MAX, 0]);
    assert_eq!(weights[1], rate.weight(rate.largest_gap()));
    assert_eq!(weights[1], weights[2]);
    assert_eq!(weights[0], rate.weight(0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn weights_are_near_powers_of_two(exponent in -20_i32..7, sensitivity in 1_u64..1000, part in 0.0..=1.0) {
        let level = Level::from_epsilon(2.0_f64.powi(exponent - 1) * (1.0 + part));
        let rate = Rate::new(&level, sensitivity, false).unwrap();
        let gap = (part * rate.largest_gap() as f64) as u64;
        prop_assume!(gap <= rate.largest_gap());
        // ln 2 to 60 digits, and e^(-x) by enclosures: 2^(-rho gap) = e^(-rho gap ln 2).
        let ten = BigInt::from(10).pow(60);
        let digits = "693147180559945309417232121458176568075500134360255254120680";
        let ln_two = BigRational::new(digits.parse().unwrap(), ten);
        let exponent = rate.bits_per_unit() * BigInt::from(gap) * ln_two;
        let ideal = exp(&-exponent, 120).lower.to_rational() * (BigInt::one() << 103_u32);
        let weight = BigRational::from_integer(BigInt::from(rate.weight(gap)));
        let ratio = weight / ideal;
        let distance = |bits: u32| BigRational::new(BigInt::one(), BigInt::one() << bits);
        prop_assert!(ratio <= BigRational::one() + distance(48));
        prop_assert!(ratio >= BigRational::one() - distance(37));
    }

    #[test]
    fn numerators_are_the_draws_that_lead_there(scores in prop::collection::vec(-40_i64..40, 1..12)) {
        let rate = Rate::new(&level(1, 2), 3, false).unwrap();
        let weights = rate.weights(&scores);
        let sum: BigUint = weights.iter().copied().map(BigUint::from).sum();
        let counts = numerators(&weights);
        prop_assert_eq!(counts.iter().sum::<BigUint>(), BigUint::one() << 128_u32);
        // The ends of every interval of u lead to its candidate.
        let drawn = |u: &BigUint| {
            let t: BigUint = (u * &sum) >> 128_u32;
            let mut cumulative = BigUint::ZERO;
            weights.iter().position(|&weight| { cumulative += weight; cumulative > t })
        };
        let mut start = BigUint::ZERO;
        for (index, count) in counts.iter().enumerate() {
            let end = &start + count;
            prop_assert_eq!(drawn(&start), Some(index));
            prop_assert_eq!(drawn(&(&end - 1_u32)), Some(index));
            start = end;
        }
    }

    #[test]
    fn deletions_give_the_pmfs_of_what_is_left(
        scores in prop::collection::vec(prop::collection::vec(-9_i64..10, 3), 1..8), part in 0.0..=1.0, epsilon in 1_i64..80,
    ) {
        let users = scores.len();
        let size = (part * users as f64) as usize;
        let rate = Rate::new(&level(epsilon, 4), 2, false).unwrap();
        let table: Vec<i64> = scores.concat();
        let subsets = Subsets::new(users, size).unwrap();
        let matrix = |totals: Arc<dyn TotalRows>| exponential_matrix(rate, totals, &Control::new()).unwrap();
        let by_subsets = matrix(Arc::new(Deletions::new(table.clone(), 3, size).unwrap()));
        prop_assert_eq!(by_subsets.rows() as u64, subsets.count());

        // Kinds of users: equal score vectors.
        let mut kinds = scores.clone();
        kinds.sort();
        kinds.dedup();
        let counts: Vec<u64> =
            kinds.iter().map(|kind| scores.iter().filter(|score| *score == kind).count() as u64).collect();
        let vectors = CountVectors::new(&counts, size as u64).unwrap();
        let listed: Vec<u16> =
            (0..vectors.count()).flat_map(|rank| vectors.unrank(rank)).map(|part| part as u16).collect();
        let by_kinds = matrix(Arc::new(KindDeletions::new(kinds.concat(), 3, &counts, listed).unwrap()));
        prop_assert_eq!(by_kinds.rows() as u64, vectors.count());

        for rank in 0..subsets.count() {
            let deleted = subsets.unrank(rank);
            let mut totals = [0_i64; 3];
            let mut vector = vec![0; kinds.len()];
            for (user, score) in scores.iter().enumerate() {
                if deleted.contains(&user) {
                    vector[kinds.iter().position(|kind| kind == score).unwrap()] += 1;
                } else {
                    totals.iter_mut().zip(score).for_each(|(total, score)| *total += score);
                }
            }
            let expected = exponential_pmf(&rate, &totals);
            let alone = matrix(Arc::new(Listed::new(totals.to_vec(), 3).unwrap()));
            let row = rank as usize;
            let kind_row = vectors.rank(&vector) as usize;
            for output in 0..3 {
                let mass = expected.mass(output).reduced();
                prop_assert_eq!(by_subsets.pmf(row).mass(output).reduced(), mass.clone());
                prop_assert_eq!(by_kinds.pmf(kind_row).mass(output).reduced(), mass.clone());
                prop_assert_eq!(alone.pmf(0).mass(output).reduced(), mass.clone());
                for (matrix, row) in [(&by_subsets, row), (&by_kinds, kind_row), (&alone, 0)] {
                    let float = BigRational::from_float(matrix.row(row)[output]).unwrap();
                    let allowed = &mass * BigRational::from_float(matrix.relative_error()).unwrap()
                        + BigRational::new(BigInt::one(), BigInt::one() << 126_u32);
                    let miss = if float > mass { float - &mass } else { &mass - float };
                    prop_assert!(miss <= allowed);
                }
            }
        }
    }
}
