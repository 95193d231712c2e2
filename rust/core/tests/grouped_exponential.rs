//! The exponential mechanism on groups: draws against the inverse of the distribution function, and against the
//! mechanism on listed candidates.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::One;
use proptest::prelude::*;
use std::cmp::Ordering;
use userdp_core::{
    Error,
    control::Control,
    exact::Level,
    rng::Source,
    sampler::exponential::{
        GroupedDraws, GroupedRate, Groups, Rate,
        grouped::{MOST_POINTS, draw::draw_bits},
    },
};

fn rate(epsilon: f64, sensitivity: u64) -> GroupedRate {
    GroupedRate::new(&Level::from_epsilon(epsilon), sensitivity, false).expect("valid input")
}

fn whole() -> BigUint {
    BigUint::one() << 384_u32
}

/// Where each group begins and ends (inclusive; `None` for an empty one), and the weight of one candidate of it.
fn listed(rate: &GroupedRate, starts: &[u64], scores: &[i64], last: u64) -> Vec<(u64, Option<u64>, BigUint)> {
    let ends: Vec<Option<u64>> = (0..starts.len())
        .map(|j| match starts.get(j + 1) {
            Some(&next) => (next > starts[j]).then(|| next - 1),
            None => (starts[j] <= last).then_some(last),
        })
        .collect();
    let full = ends.iter().zip(scores).filter(|(end, _)| end.is_some());
    let lowest = i128::from(*full.map(|(_, score)| score).min().expect("a candidate"));
    let weight = |score: i64| {
        let gap = i128::from(score) - lowest;
        u64::try_from(gap).map_or_else(|_| BigUint::ZERO, |gap| rate.weight(gap))
    };
    starts
        .iter()
        .zip(ends)
        .zip(scores)
        .map(|((&start, end), &score)| {
            (start, end, if end.is_some() { weight(score) } else { BigUint::ZERO })
        })
        .collect()
}

/// The slow twin of a draw, by big integers.
fn naive(groups: &[(u64, Option<u64>, BigUint)], bits: &BigUint) -> u64 {
    let length = |start: u64, end: u64| BigUint::from(u128::from(end - start) + 1);
    let filled = || groups.iter().filter_map(|(start, end, weight)| end.map(|end| (*start, end, weight)));
    let total: BigUint = filled().map(|(start, end, weight)| length(start, end) * weight).sum();
    let mut rest: BigUint = (bits * total) >> 384_u32;
    for (start, end, weight) in filled() {
        let here = length(start, end) * weight;
        if rest < here {
            return start + u64::try_from(rest / weight).expect("within the group");
        }
        rest -= here;
    }
    unreachable!("R is below the sum")
}

#[test]
fn bits_are_the_bytes_of_the_source() {
    let bits = (whole() - 1_u32) / 7_u32;
    let bytes: Vec<u8> = words(&bits).into_iter().flat_map(u64::to_le_bytes).collect();
    let mut source = Source::listed(bytes);
    assert_eq!(*draw_bits(&mut source).unwrap(), words(&bits));
    assert!(matches!(draw_bits(&mut source), Err(Error::Entropy { .. })));
}

fn words(bits: &BigUint) -> [u64; 6] {
    let mut digits = bits.to_u64_digits();
    digits.resize(6, 0);
    digits.try_into().expect("below 2^384")
}

/// Draws with these bits, and with those at the ends of the groups' shares, are what they should be.
fn check(rate: GroupedRate, starts: &[u64], scores: &[i64], last: u64, more: &[BigUint], step: usize) {
    let groups = Groups::new(starts, scores, last).expect("valid input");
    let control = Control::new();
    let shares = rate.group_numerators(&groups, &control).expect("not canceled");
    assert_eq!(shares.iter().sum::<BigUint>(), whole());
    let listed = listed(&rate, starts, scores, last);
    let mut bits = vec![BigUint::ZERO, whole() - 1_u32];
    let mut end = BigUint::ZERO;
    for (place, (share, (_, filled, _))) in shares.iter().zip(&listed).enumerate() {
        assert_eq!(share == &BigUint::ZERO, filled.is_none());
        end += share;
        if place % step == 0 && end < whole() && end > BigUint::ZERO {
            // The last of one group and the first of the next that is not empty.
            let next = listed[place + 1..].iter().find_map(|(start, end, _)| end.map(|_| *start));
            assert_eq!(Some(naive(&listed, &end)), next);
            if filled.is_some() {
                assert_eq!(Some(naive(&listed, &(&end - 1_u32))), *filled);
            }
            bits.extend([&end - 1_u32, end.clone(), &end + 1_u32]);
        }
    }
    bits.extend_from_slice(more);
    let draws = GroupedDraws::new(rate, groups, &control).expect("not canceled");
    let expected: Vec<u64> = bits.iter().map(|bits| naive(&listed, bits)).collect();
    for (bits, expected) in bits.iter().zip(&expected) {
        assert_eq!(draws.value(&words(bits), &control).expect("not canceled"), *expected);
    }
    let bytes = bits.iter().flat_map(words).flat_map(u64::to_le_bytes).collect();
    let mut many = vec![0; bits.len()];
    draws.draw_many(&mut Source::listed(bytes), &mut many, &control).expect("enough bytes");
    assert_eq!(many, expected);
}

/// Starts that do not fall, from differences: many are 0.
fn starts(first: u64, differences: &[u64]) -> Vec<u64> {
    let mut start = first;
    std::iter::once(first)
        .chain(differences.iter().map(|&difference| {
            start = start.saturating_add(difference);
            start
        }))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn draws_invert_the_distribution_function(
        first in prop_oneof![Just(0), any::<u64>(), 0_u64..100],
        groups in prop_oneof![
            prop::collection::vec((prop::sample::select(&[0, 0, 1, 3, 1 << 40, 1 << 62][..]), any::<i64>()), 1..40),
            prop::collection::vec((0_u64..3, -300_i64..300), 1..40),
            prop::collection::vec((any::<u64>(), prop::sample::select(&[i64::MIN, -1, 0, 1, i64::MAX][..])), 1..12),
            prop::collection::vec((0_u64..1 << 50, 0_i64..200), 250..600),
        ],
        slack in prop_oneof![Just(0), any::<u64>()],
        exponent in -30_i32..6, sensitivity in prop_oneof![1_u64..5, 1_u64..1 << 62],
        bits in prop::collection::vec(prop::collection::vec(any::<u32>(), 12), 8),
    ) {
        let (differences, scores): (Vec<_>, Vec<_>) = groups.into_iter().unzip();
        let starts = starts(first, &differences[1..]);
        let last = starts[starts.len() - 1].saturating_add(slack);
        let rate = rate(2.0_f64.powi(exponent) * 1.37, sensitivity);
        let bits: Vec<_> = bits.into_iter().map(BigUint::new).collect();
        check(rate, &starts, &scores, last, &bits, 1 + starts.len() / 30);
    }

    #[test]
    fn points_have_the_distribution_of_listed_candidates(
        groups in prop::collection::vec((0_u64..5, -60_i64..60), 1..9), epsilon in 0.01_f64..10.0,
    ) {
        let (lengths, scores): (Vec<_>, Vec<_>) = groups.iter().copied().unzip();
        prop_assume!(lengths.iter().sum::<u64>() > 0);
        let starts = starts(7, &lengths[..lengths.len() - 1]);
        let last = 6 + lengths.iter().sum::<u64>();
        let rate = rate(epsilon, 1);
        let groups = Groups::new(&starts, &scores, last).unwrap();
        let found = rate.numerators(&groups, &Control::new()).unwrap();
        prop_assert_eq!(found.iter().sum::<BigUint>(), whole());
        let expanded: Vec<i64> =
            lengths.iter().zip(&scores).flat_map(|(&length, &score)| vec![score; usize::try_from(length).unwrap()]).collect();
        // Exactly that of groups of one.
        let singles: Vec<u64> = (7..=last).collect();
        let single = Groups::new(&singles, &expanded, last).unwrap();
        prop_assert_eq!(&found, &rate.group_numerators(&single, &Control::new()).unwrap());
        // The ends of points and next to them.
        let draws = GroupedDraws::new(rate, groups, &Control::new()).unwrap();
        let mut end = BigUint::ZERO;
        for (point, numerator) in (7..).zip(&found) {
            prop_assert_eq!(draws.value(&words(&end), &Control::new()).unwrap(), point);
            end += numerator;
            prop_assert_eq!(draws.value(&words(&(&end - 1_u32)), &Control::new()).unwrap(), point);
        }
        // And that of listed candidates, as far as those are not clamped.
        let few = Rate::new(&Level::from_epsilon(epsilon), 1, false).unwrap();
        let listed = userdp_core::sampler::exponential::numerators(&few.weights(&expanded));
        for (a, b) in found.iter().zip(&listed) {
            let near = BigRational::new(BigInt::from(a.clone()), BigInt::from(b << 256_u32));
            let distance = BigRational::new(BigInt::one(), BigInt::one() << 56_u32);
            if expanded.iter().max().unwrap() - expanded.iter().min().unwrap() <= few.largest_gap().cast_signed() {
                prop_assert!(near >= BigRational::one() - &distance && near <= BigRational::one() + &distance);
            }
        }
    }
}

#[test]
fn blocks_and_parts_are_no_boundaries_of_the_distribution() {
    for n in [1_u32, 2, 255, 256, 257, 511, 512, 513, 1000] {
        // Some are empty, among them whole blocks.
        let differences: Vec<u64> =
            (1..n).map(|i| if i / 256 == 1 || i % 7 == 0 { 0 } else { u64::from(i * i * 31) }).collect();
        let starts = starts(5, &differences);
        let scores: Vec<i64> = (0..i64::from(n)).map(|i| i * i * 7919 % 1009 - 500).collect();
        let end = starts[starts.len() - 1];
        for (epsilon, last) in [(0.01, u64::MAX), (1.0, end), (80.0, end + 9)] {
            check(rate(epsilon, 3), &starts, &scores, last, &[], 3);
        }
    }
    // Above 2^18 groups are read in parts.
    let n = (1 << 18) + 700;
    let starts: Vec<u64> = (0..n).map(|i| i * 1000).collect();
    let scores: Vec<i64> = (0..n.cast_signed()).map(|i| i * i * 7919 % 1009 - 500).collect();
    check(rate(1.0, 50), &starts, &scores, u64::MAX, &[], 60_013);
}

#[test]
fn all_integers_of_64_bits_may_be_one_group() {
    for epsilon in [1e-6, 1.0, 80.0] {
        let bits: Vec<BigUint> =
            (1..40_u32).map(|i| (whole() - 1_u32) / i).chain((0..384).map(|i| BigUint::one() << i)).collect();
        for scores in [vec![i64::MIN], vec![i64::MIN, 0, i64::MAX]] {
            // Only the last of groups that begin at the same place has candidates.
            let starts = vec![0; scores.len()];
            check(rate(epsilon, 1), &starts, &scores, u64::MAX, &bits, 1);
            let groups = Groups::new(&starts, &scores, u64::MAX).unwrap();
            let draws = GroupedDraws::new(rate(epsilon, 1), groups, &Control::new()).unwrap();
            for bits in &bits {
                // Every point has the same share of 2^320 values.
                let point = u64::try_from(bits >> 320_u32).unwrap();
                assert_eq!(draws.value(&words(bits), &Control::new()).unwrap(), point);
            }
        }
    }
}

#[test]
fn the_best_point_among_2_to_64_is_found() {
    // All others together weigh about 2^-64 of it.
    let (starts, scores) = ([0, 1 << 63, (1 << 63) + 1], [i64::MAX, i64::MIN, i64::MAX]);
    let groups = Groups::new(&starts, &scores, u64::MAX).unwrap();
    let rate = rate(1.0, 1);
    let shares = rate.group_numerators(&groups, &Control::new()).unwrap();
    let others = &shares[0] + &shares[2];
    assert!(&others << 63_u32 < whole() && &others << 66_u32 > whole());
    check(rate, &starts, &scores, u64::MAX, &[], 1);
}

#[test]
fn scores_of_empty_groups_do_not_matter() {
    let rate = rate(1.0, 1);
    let distribution = |starts: &[u64], scores: &[i64]| {
        let groups = Groups::new(starts, scores, 29).unwrap();
        rate.numerators(&groups, &Control::new()).unwrap()
    };
    let expected = distribution(&[0, 10, 20], &[5, 4, 6]);
    for empty in [i64::MIN, 0, i64::MAX] {
        assert_eq!(distribution(&[0, 0, 10, 20], &[empty, 5, 4, 6]), expected);
        assert_eq!(distribution(&[0, 10, 10, 20], &[5, empty, 4, 6]), expected);
        assert_eq!(distribution(&[0, 10, 20, 30, 30], &[5, 4, 6, empty, empty]), expected);
        check(rate, &[0, 0, 10, 10, 20, 30], &[empty, 5, empty, 4, 6, empty], 29, &[], 1);
    }
}

#[test]
fn moved_boundaries_and_scores_are_within_epsilon_and_half_the_noise_is_not() {
    // Score functions on four points, in the coarsest groups that describe them.
    let functions: Vec<[i64; 4]> =
        (0..81).map(|code: i64| [1, 3, 9, 27].map(|power| code / power % 3)).collect();
    let distribution = |rate: &GroupedRate, function: &[i64; 4]| {
        let cuts: Vec<usize> = (0..4).filter(|&i| i == 0 || function[i] != function[i - 1]).collect();
        let starts: Vec<u64> = cuts.iter().map(|&i| i as u64).collect();
        let scores: Vec<i64> = cuts.iter().map(|&i| function[i]).collect();
        let groups = Groups::new(&starts, &scores, 3).unwrap();
        rate.numerators(&groups, &Control::new()).unwrap()
    };
    for epsilon in [0.1, 1.0, 5.0, 87.0] {
        let level = Level::from_epsilon(epsilon);
        let is_private = |noise: f64| {
            let rate = rate(noise, 1);
            let distributions: Vec<_> =
                functions.iter().map(|function| distribution(&rate, function)).collect();
            functions.iter().zip(&distributions).all(|(f, p)| {
                functions.iter().zip(&distributions).all(|(g, q)| {
                    f.iter().zip(g).any(|(a, b)| (a - b).abs() > 1)
                        || p.iter().zip(q).all(|(a, b)| {
                            let mass = |n: &BigUint| BigRational::new(n.clone().into(), whole().into());
                            level.compare(&mass(a), &mass(b)) != Ordering::Greater
                        })
                })
            })
        };
        assert!(is_private(epsilon), "{epsilon}");
        assert!(epsilon > 44.0 || !is_private(2.0 * epsilon), "{epsilon}");
    }
}

#[test]
fn rates_are_those_of_listed_candidates_with_a_longer_reach() {
    for (epsilon, sensitivity, monotone) in
        [(1.0, 1, false), (1e-9, 1 << 61, true), (87.0, 1, true), (3.0, 7, false)]
    {
        let level = Level::from_epsilon(epsilon);
        let few = Rate::new(&level, sensitivity, monotone).unwrap();
        let many = GroupedRate::new(&level, sensitivity, monotone).unwrap();
        assert_eq!(few.bits_per_unit(), many.bits_per_unit());
        assert!(many.certified_epsilon() < few.certified_epsilon());
        let reached = |gap: u64| few.bits_per_unit() * BigInt::from(gap);
        let limit = BigRational::from_integer(128.into());
        assert!(reached(many.largest_gap()) < limit);
        assert!(many.largest_gap() == u64::MAX || reached(many.largest_gap() + 1) >= limit);
        // The same weights, 63 bits longer.
        for gap in [0, 1, few.largest_gap() / 2, few.largest_gap()] {
            assert_eq!(many.weight(gap), BigUint::from(few.weight(gap)) << 63_u32);
        }
        assert_eq!(many.weight(many.largest_gap()), many.weight(u64::MAX));
        assert!(many.weight(u64::MAX) >= BigUint::from((1_u64 << 38) - 2));
    }
}

#[test]
fn groups_that_are_none_are_refused() {
    let named = |starts: &[u64], scores: &[i64], last| match Groups::new(starts, scores, last) {
        Err(Error::InvalidArgument { argument, .. }) => argument,
        other => panic!("{other:?}"),
    };
    assert_eq!(named(&[], &[], 3), "starts");
    assert_eq!(named(&[0], &[1, 2], 3), "scores");
    assert_eq!(named(&[1, 0], &[1, 2], 3), "starts");
    assert_eq!(named(&[0, u64::MAX, 5], &[1, 2, 3], 9), "starts");
    assert_eq!(named(&[0, 5], &[1, 2], 3), "starts");
    assert_eq!(named(&[4], &[1], 3), "starts");
    assert_eq!(named(&[1, 1], &[1, 1], 0), "starts");
    assert!(Groups::new(&[0, 4], &[1, 2], 3).is_ok());
}

#[test]
fn long_work_is_refused_or_canceled() {
    let (rate, control) = (rate(1.0, 1), Control::new());
    let last = u64::try_from(MOST_POINTS).unwrap();
    let groups = Groups::new(&[0], &[0], last).unwrap();
    assert!(matches!(rate.numerators(&groups, &control), Err(Error::TooLarge { .. })));
    let draws = GroupedDraws::new(rate, groups, &control).unwrap();
    control.cancel();
    assert!(matches!(draws.value(&[0; 6], &control), Err(Error::Canceled)));
    assert!(matches!(GroupedDraws::new(rate, groups, &control), Err(Error::Canceled)));
    assert!(matches!(rate.group_numerators(&groups, &control), Err(Error::Canceled)));
}

#[test]
fn secrets_are_not_shown() {
    let groups = Groups::new(&[3, 7], &[1, 2], 9).unwrap();
    let draws = GroupedDraws::new(rate(1.0, 1), groups, &Control::new()).unwrap();
    assert_eq!(format!("{groups:?} {draws:?}"), "Groups { groups: 2, .. } GroupedDraws { groups: 2, .. }");
}
