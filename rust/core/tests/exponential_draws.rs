//! Draws of the exponential mechanism against the inverse of the distribution function, in both orders; the grid.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One, ToPrimitive};
use proptest::prelude::*;
use userdp_core::{
    Error,
    control::Control,
    exact::Level,
    rng::Source,
    sampler::exponential::{Draws, Granularity, MAX_CANDIDATES, Rate, draw::Order, numerators},
};

const ORDERS: [Order; 2] = [Order::Stored, Order::Blocked];

fn rate(epsilon: f64, sensitivity: u64) -> Rate {
    Rate::new(&Level::from_epsilon(epsilon), sensitivity, false).expect("valid input")
}

/// Where the share of each candidate of the 2^128 ends, from its exact numerators.
fn ends(rate: &Rate, scores: &[i64]) -> Vec<BigUint> {
    let mut sum = BigUint::ZERO;
    numerators(&rate.weights(scores))
        .into_iter()
        .map(|numerator| {
            sum += numerator;
            sum.clone()
        })
        .collect()
}

/// The slow twin: the first candidate whose share ends above the bits.
fn naive(ends: &[BigUint], bits: u128) -> u64 {
    ends.iter().position(|end| end > &BigUint::from(bits)).expect("valid input") as u64
}

/// Bits at the ends of some shares and next to them.
fn boundaries(ends: &[BigUint], places: impl IntoIterator<Item = usize>) -> Vec<u128> {
    let mut bits = vec![0, 1, u128::MAX];
    for place in places {
        if let Some(end) = ends[place].to_u128() {
            bits.extend([end - 1, end, end.saturating_add(1)]);
        }
    }
    bits
}

fn complements(scores: &[i64]) -> Vec<i64> {
    scores.iter().map(|&score| !score).collect()
}

/// All ways to draw give what the numerators say.
fn check(rate: Rate, scores: &[i64], bits: &[u128]) {
    let ends = ends(&rate, scores);
    let (reversed, bytes) =
        (complements(scores), bits.iter().flat_map(|bits| bits.to_le_bytes()).collect::<Vec<_>>());
    let expected: Vec<u64> = bits.iter().map(|&bits| naive(&ends, bits)).collect();
    for order in ORDERS {
        let draws = Draws::in_order(order, rate, scores, false).expect("valid input");
        let mirrored = Draws::in_order(order, rate, &reversed, true).expect("valid input");
        for (&bits, &expected) in bits.iter().zip(&expected) {
            assert_eq!(draws.value(bits), expected, "{order:?}, k = {}", scores.len());
            assert_eq!(mirrored.value(bits), expected);
        }
        let mut many = vec![0; bits.len()];
        draws.draw_many(&mut Source::listed(bytes.clone()), &mut many, &Control::new()).expect("valid input");
        assert!(many.iter().zip(&expected).all(|(&draw, &expected)| draw.cast_unsigned() == expected));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn draws_invert_the_distribution_function(
        scores in prop_oneof![
            prop::collection::vec(any::<i64>(), 1..40),
            prop::collection::vec(-30_i64..30, 1..40),
            prop::collection::vec(prop::sample::select(&[i64::MIN, -1, 0, 1, i64::MAX][..]), 1..40),
            prop::collection::vec(0_i64..200, 250..700),
        ],
        exponent in -30_i32..7, sensitivity in prop_oneof![1_u64..5, 1_u64..1 << 62],
        bits in prop::collection::vec(any::<u128>(), 8),
    ) {
        let rate = rate(2.0_f64.powi(exponent) * 1.37, sensitivity);
        let ends = ends(&rate, &scores);
        let all = boundaries(&ends, (0..scores.len()).step_by(1 + scores.len() / 30));
        check(rate, &scores, &[all, bits].concat());
    }

    #[test]
    fn floats_are_rounded_down(mantissa in -(1_i64 << 53)..1 << 53, power in -1074_i32..960, exponent in -1074_i32..1024) {
        // mantissa 2^power, in two steps so that no factor is subnormal.
        let x = mantissa as f64 * 2.0_f64.powi(power / 2) * 2.0_f64.powi(power - power / 2);
        let two = |exponent: i32| BigRational::from_integer(2.into()).pow(exponent);
        let grid = Granularity::floor_to(&two(exponent)).unwrap();
        for negate in [false, true] {
            let exact = BigRational::from_float(if negate { -x } else { x }).unwrap() / two(exponent);
            let found = grid.of_floats(&[x], negate).ok();
            prop_assert_eq!(found, exact.floor().to_integer().to_i64().map(|point| vec![point]));
        }
    }
}

#[test]
fn block_boundaries_are_no_boundaries_of_the_distribution() {
    for k in [1_usize, 2, 3, 4, 5, 255, 256, 257, 511, 512, 513, 4095, 4096, 4097, 10_000] {
        let scores: Vec<i64> =
            (0..k).map(|i| ((i * i).wrapping_mul(7919) % 1009).cast_signed() as i64 - 500).collect();
        for epsilon in [0.01, 1.0, 80.0] {
            let rate = rate(epsilon, 3);
            let ends = ends(&rate, &scores);
            let near = |place: usize| place.saturating_sub(2)..(place + 2).min(k);
            let places = (0..=k).step_by(256).chain([k]).flat_map(near);
            check(rate, &scores, &boundaries(&ends, places));
        }
    }
}

#[test]
fn profiles_of_scores_that_are_extreme() {
    for k in [300_usize, 5000] {
        for last in [i64::MIN, 0, 1, i64::MAX] {
            for (first, rest) in [(0, 0), (i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (-1, 50)] {
                let mut scores = vec![rest; k];
                (scores[0], scores[k - 1]) = (first, last);
                let rate = rate(1.0, 1);
                let ends = ends(&rate, &scores);
                check(rate, &scores, &boundaries(&ends, [0, 1, 255, 256, k - 2, k - 1]));
            }
        }
    }
}

#[test]
fn a_batch_from_a_seed_is_its_draws_one_by_one() {
    for k in [10_usize, 1000, 5000, 300_000] {
        let scores: Vec<i64> = (0..17).cycle().take(k).collect();
        let draws = Draws::new(rate(0.5, 1), &scores, true).unwrap();
        let seed = BigUint::from(77_u32);
        let (mut source, mut same) = (Source::seeded(&seed).unwrap(), Source::seeded(&seed).unwrap());
        let mut many = vec![0; if k > 10_000 { 7 } else { 1500 }];
        draws.draw_many(&mut source, &mut many, &Control::new()).unwrap();
        for &draw in &many {
            assert_eq!(draws.value(same.bits().unwrap()), draw.cast_unsigned());
        }
        assert!(many.iter().any(|&draw| draw != many[0]));
    }
}

#[test]
fn what_ends_a_batch() {
    let scores = [1, 2, 3];
    let draws = Draws::new(rate(1.0, 1), &scores, false).unwrap();
    let control = Control::new();
    control.cancel();
    assert_eq!(draws.draw_many(&mut Source::system(), &mut [0; 5], &control), Err(Error::Canceled));
    let few = draws.draw_many(&mut Source::listed(vec![0; 79]), &mut [0; 5], &Control::new());
    assert!(matches!(few, Err(Error::Entropy { .. })));
    assert_eq!(draws.draw_many(&mut Source::listed(vec![0; 80]), &mut [0; 5], &Control::new()), Ok(()));
    assert_eq!(draws.draw_many(&mut Source::listed(vec![]), &mut [], &Control::new()), Ok(()));
}

#[test]
fn numbers_of_candidates() {
    for scores in [vec![], vec![0; MAX_CANDIDATES + 1]] {
        let refused = Draws::new(rate(1.0, 1), &scores, false).err();
        assert!(matches!(refused, Some(Error::InvalidArgument { argument: "scores", .. })));
    }
    // The most candidates, all equal: u leads to floor(u / 2^104).
    let scores = vec![i64::MIN; MAX_CANDIDATES];
    let draws = Draws::new(rate(1.0, 1), &scores, false).unwrap();
    for bits in [0, (1 << 104) - 1, 1 << 104, 12_345 << 104, u128::MAX] {
        assert_eq!(u128::from(draws.value(bits)), bits >> 104);
    }
}

#[test]
fn scores_are_not_shown() {
    let draws = Draws::new(rate(1.0, 1), &[987_654_321, 55], false).unwrap();
    let shown = format!("{draws:?}");
    assert!(shown.contains("candidates: 2") && !shown.contains("987") && !shown.contains("55"), "{shown}");
}

#[test]
fn the_certified_epsilon_is_between_the_loss_and_the_request() {
    let level = |numerator: i64, denominator: i64| {
        Level::new(BigRational::one(), BigRational::new(numerator.into(), denominator.into()))
    };
    for (numerator, denominator) in [(1, 1 << 34), (1, 1000), (1, 1), (22, 1), (44, 1), (87, 1)] {
        let asked = BigRational::new(numerator.into(), denominator.into());
        for monotone in [false, true] {
            for sensitivity in [1_u64, 7, (1 << 62) - 1] {
                let rate = Rate::new(&level(numerator, denominator), sensitivity, monotone).unwrap();
                let certified = rate.certified_epsilon();
                assert!(certified < asked);
                // 0.6931471805 < ln 2.
                let ln_two =
                    BigRational::new(BigInt::from(6_931_471_805_i64), BigInt::from(10_000_000_000_i64));
                let units = BigInt::from(sensitivity) * if monotone { 1 } else { 2 };
                assert!(certified > rate.bits_per_unit() * units * ln_two);
            }
        }
    }
}
