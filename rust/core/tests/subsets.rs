//! Ranks, orders and counts of subsets and count vectors, against sorting all bit patterns.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]

use num_bigint::BigUint;
use proptest::prelude::*;
use userdp_core::{
    exact::binomial::{binomial, small_binomial},
    subsets::{CountVectors, RevolvingDoor, Subsets},
};

/// All subsets of {0, ..., n-1} of one size: bit patterns in increasing order are subsets in colexicographic order.
fn by_bit_patterns(n: usize, size: usize) -> Vec<Vec<usize>> {
    (0_u32..1 << n)
        .filter(|pattern| pattern.count_ones() as usize == size)
        .map(|pattern| (0..n).filter(|&bit| pattern >> bit & 1 == 1).collect())
        .collect()
}

#[test]
fn colexicographic_order_is_that_of_bit_patterns() {
    for n in 0..=10 {
        for size in 0..=n {
            let expected = by_bit_patterns(n, size);
            let subsets = Subsets::new(n, size).unwrap();
            assert_eq!(subsets.count(), expected.len() as u64);
            let mut current = subsets.unrank(0);
            for (rank, subset) in expected.iter().enumerate() {
                assert_eq!(&current, subset);
                assert_eq!(&subsets.unrank(rank as u64), subset);
                assert_eq!(subsets.rank(subset), rank as u64);
                let before = current.clone();
                match subsets.step(&mut current) {
                    Some(place) => {
                        assert_ne!(before[place], current[place]);
                        assert_eq!(before[place + 1..], current[place + 1..]);
                    }
                    None => assert_eq!(rank + 1, expected.len()),
                }
            }
        }
    }
}

#[test]
fn revolving_door_visits_every_subset_once_by_single_swaps() {
    for n in 0..=9 {
        for size in 0..=n {
            let subsets = Subsets::new(n, size).unwrap();
            let mut door = RevolvingDoor::starting_at(subsets, 0);
            let table: Vec<i64> = (0..2 * n as i64).map(|entry| (entry * 7919) % 31 - 15).collect();
            let sums = |subset: &[usize]| {
                (0..2)
                    .map(|column| subset.iter().map(|&i| table[2 * i + column]).sum::<i64>())
                    .collect::<Vec<_>>()
            };
            let mut running = sums(door.subset());
            let mut seen = Vec::new();
            loop {
                let before = door.subset().to_vec();
                assert!(before.is_sorted_by(|a, b| a < b));
                assert_eq!(door.rank(), seen.len() as u64);
                assert_eq!(RevolvingDoor::starting_at(subsets, door.rank()).subset(), before);
                seen.push(before.clone());
                let Some(swap) = door.next() else { break };
                swap.update(&mut running, &table);
                assert_eq!(running, sums(door.subset()));
                let mut expected: Vec<usize> = before.into_iter().filter(|&i| i != swap.leaves).collect();
                assert_eq!(expected.len() + 1, size.max(1));
                expected.push(swap.enters);
                expected.sort_unstable();
                assert_eq!(door.subset(), expected);
            }
            assert!(door.next().is_none());
            seen.sort();
            let mut all = by_bit_patterns(n, size);
            all.sort();
            assert_eq!(seen, all);
        }
    }
}

fn by_odometer(counts: &[u64], total: u64) -> Vec<Vec<u64>> {
    let mut vectors = vec![vec![]];
    for &count in counts {
        vectors = vectors
            .into_iter()
            .flat_map(|vector: Vec<u64>| {
                (0..=count).map(move |part| [vector.clone(), vec![part]].concat()).collect::<Vec<_>>()
            })
            .collect();
    }
    vectors.retain(|vector| vector.iter().sum::<u64>() == total);
    vectors.sort_by_key(|vector| vector.iter().rev().copied().collect::<Vec<_>>());
    vectors
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn count_vectors_are_all_there_in_order(counts in prop::collection::vec(0_u64..5, 0..5), part in 0.0..=1.0_f64) {
        let users: u64 = counts.iter().sum();
        let total = (part * users as f64).floor() as u64;
        let expected = by_odometer(&counts, total);
        let vectors = CountVectors::new(&counts, total).unwrap();
        prop_assert_eq!(vectors.count(), expected.len() as u64);
        let mut current = vectors.unrank(0);
        let mut sets = BigUint::ZERO;
        for (rank, vector) in expected.iter().enumerate() {
            prop_assert_eq!(&current, vector);
            prop_assert_eq!(&vectors.unrank(rank as u64), vector);
            prop_assert_eq!(vectors.rank(vector), rank as u64);
            sets += vectors.multiplicity(vector);
            prop_assert_eq!(vectors.step(&mut current), rank + 1 < expected.len());
        }
        // Vandermonde: every set of labeled users has one vector.
        prop_assert_eq!(sets, binomial(users, total));
        prop_assert!(CountVectors::new(&counts, users + 1).is_err());
    }

    #[test]
    fn large_subsets_come_back_from_their_ranks(n in 60_usize..600, size in 0_usize..8, part in 0.0..1.0_f64) {
        let subsets = Subsets::new(n, size).unwrap();
        let rank = (part * subsets.count() as f64) as u64;
        prop_assume!(rank < subsets.count());
        prop_assert_eq!(subsets.rank(&subsets.unrank(rank)), rank);
        prop_assert_eq!(RevolvingDoor::starting_at(subsets, rank).rank(), rank);
    }

    #[test]
    fn binomials_agree_with_pascal(n in 1_u64..200, part in 0_u64..200) {
        let k = part % (n + 1);
        prop_assume!(k > 0);
        prop_assert_eq!(binomial(n, k), binomial(n - 1, k - 1) + binomial(n - 1, k));
        let small = u64::try_from(&binomial(n, k)).ok();
        prop_assert_eq!(small_binomial(n, k), small);
    }
}

#[test]
fn numbers_beyond_64_bits_are_refused() {
    assert_eq!(Subsets::new(66, 33).map(|s| s.count()).ok(), Some(7_219_428_434_016_265_740));
    assert!(Subsets::new(70, 35).is_err());
    assert!(Subsets::new(3, 4).is_err());
    assert!(CountVectors::new(&[1; 70], 35).is_err());
    assert_eq!(CountVectors::new(&[1000, 1000, 1000], 192).map(|v| v.count()).ok(), Some(18_721));
    assert_eq!(binomial(10_u64, 11), BigUint::ZERO);
}
