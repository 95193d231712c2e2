//! Sums of deleted users against all subsets, and the users that are chosen for them against a search in plain words.

#![allow(clippy::unwrap_used)]

use num_bigint::BigInt;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use userdp_core::{
    Error,
    control::Control,
    exact::Integer,
    subsets::{DeletedSums, MAX_REACHABLE_BITS},
};

fn integers(statistics: &[i64]) -> Vec<Integer> {
    statistics.iter().copied().map(BigInt::from).collect()
}

fn of(statistics: &[i64], counts: &[u64], deletions: u64) -> DeletedSums {
    DeletedSums::new(&integers(statistics), counts, deletions).unwrap()
}

fn sums(deleted: &DeletedSums) -> Vec<u64> {
    deleted.sums(&Control::new()).unwrap()
}

/// Distinct values in order of appearance, with how often they occur.
fn kinds(values: &[i64]) -> (Vec<i64>, Vec<u64>) {
    let mut counts: Vec<(i64, u64)> = Vec::new();
    for &value in values {
        match counts.iter_mut().find(|kind| kind.0 == value) {
            Some(kind) => kind.1 += 1,
            None => counts.push((value, 1)),
        }
    }
    counts.into_iter().unzip()
}

/// All vectors of so many users of each kind with the sum `deletions`, the last kind's part slowest and smallest first:
/// of those with one sum the first is the one with the fewest users of the last kind, then of the one before it.
fn vectors(counts: &[u64], deletions: u64) -> Vec<Vec<u64>> {
    let Some((&last, others)) = counts.split_last() else {
        return if deletions == 0 { vec![Vec::new()] } else { Vec::new() };
    };
    let mut all = Vec::new();
    for part in 0..=last.min(deletions) {
        for mut vector in vectors(others, deletions - part) {
            vector.push(part);
            all.push(vector);
        }
    }
    all
}

/// The first vector of each sum, by the sum above that of the smallest statistics.
fn by_sum(statistics: &[i64], counts: &[u64], deletions: u64) -> BTreeMap<u64, Vec<u64>> {
    let smallest = statistics.iter().copied().min().unwrap_or(0);
    let mut first = BTreeMap::new();
    for vector in vectors(counts, deletions) {
        let parts = statistics.iter().zip(&vector);
        let sum = parts.map(|(value, part)| (value - smallest).cast_unsigned() * part).sum();
        first.entry(sum).or_insert(vector);
    }
    first
}

fn agrees(values: &[i64], deletions: u64) {
    let (statistics, counts) = kinds(values);
    let expected = by_sum(&statistics, &counts, deletions);
    let deleted = of(&statistics, &counts, deletions);
    let found = sums(&deleted);
    assert!(found.iter().eq(expected.keys().rev()), "{values:?}, {deletions}: {found:?}");
    for (sum, vector) in expected {
        let parts = deleted.parts(sum, &Control::new()).unwrap();
        assert_eq!(parts, vector, "{values:?}, {deletions}, {sum}");
    }
}

#[test]
fn all_small_datasets() {
    let choices: [&[i64]; 4] = [&[0, 1, 3], &[5, -2, 0], &[i64::MAX, i64::MAX - 7], &[-1_000, 0, 63, 64]];
    let mut checked = 0;
    for choice in choices {
        for n in 0..=7_u32 {
            for code in 0..choice.len().pow(n) {
                let values: Vec<i64> =
                    (0..n).map(|place| choice[code / choice.len().pow(place) % choice.len()]).collect();
                // Longer datasets of four statistics are sampled.
                if choice.len() == 4 && n > 5 && code % 37 != 0 {
                    continue;
                }
                for deletions in 0..=u64::from(n) {
                    agrees(&values, deletions);
                    checked += 1;
                }
            }
        }
    }
    assert_eq!(checked, 63_059);
}

#[test]
fn sums_are_those_of_subsets() {
    for (values, deletions) in [(vec![3, 3, -4, 0, 9, 9, 9], 3), (vec![1, 2, 4, 8, 16, 32, 64], 4)] {
        let smallest = values.iter().min().unwrap() * i64::from(deletions);
        let expected: BTreeSet<u64> = (0_u32..1 << values.len())
            .filter(|pattern| pattern.count_ones() == deletions)
            .map(|pattern| {
                let chosen = values.iter().enumerate().filter(|(place, _)| pattern >> place & 1 == 1);
                (chosen.map(|(_, value)| value).sum::<i64>() - smallest).cast_unsigned()
            })
            .collect();
        let (statistics, counts) = kinds(&values);
        assert!(sums(&of(&statistics, &counts, u64::from(deletions))).iter().eq(expected.iter().rev()));
    }
}

#[test]
fn statistics_of_any_size() {
    let huge = BigInt::from(1) << 200_usize;
    let deleted = DeletedSums::new(&[huge.clone(), &huge - 5, &huge + 2], &[2, 1, 1], 2).unwrap();
    assert_eq!(sums(&deleted), [12, 10, 7, 5]);
    assert_eq!(deleted.parts(7, &Control::new()).unwrap(), [0, 1, 1]);
    // Nobody is deleted: their range does not matter.
    let deleted = DeletedSums::new(&[-&huge, BigInt::from(0), huge.clone()], &[1, 1, 1], 0).unwrap();
    assert_eq!(sums(&deleted), [0]);
    assert_eq!(deleted.parts(0, &Control::new()).unwrap(), [0, 0, 0]);
    let refused = DeletedSums::new(&[BigInt::from(-1), huge], &[1, 1], 1).unwrap_err();
    let words = "the sums of 1 of 2 statistics in a range of 1606938044258990275541962092341162602522202993782792835301377 \
                 take a table of over 8,589,934,592 bits. Cheaper: fewer deletions, or a narrower statistic_range";
    assert_eq!(refused.to_string(), words);
    let longer = DeletedSums::new(&[BigInt::from(0), BigInt::from(3) << 20_000_usize], &[1, 1], 2);
    assert!(longer.unwrap_err().to_string().contains("in a range of over 2^20001 take"));
}

#[test]
fn the_limit_itself() {
    // (r + 1) (r spread + 1) (kinds + 1) bits: with r = 1 and three kinds 8 (spread + 1) of 2^33.
    let last = i64::try_from(MAX_REACHABLE_BITS / 8).unwrap() - 1;
    assert!(DeletedSums::new(&integers(&[0, last, 1]), &[1, 1, 1], 1).is_ok());
    let above = DeletedSums::new(&integers(&[0, last + 1, 1]), &[1, 1, 1], 1);
    assert!(matches!(above, Err(Error::TooLarge { .. })));
    let many = u64::MAX;
    assert!(matches!(DeletedSums::new(&integers(&[0]), &[many], many), Err(Error::TooLarge { .. })));
    assert!(DeletedSums::new(&integers(&[0]), &[many], (MAX_REACHABLE_BITS / 2) - 1).is_ok());
    assert!(DeletedSums::new(&integers(&[0]), &[many], MAX_REACHABLE_BITS / 2).is_err());
}

#[test]
fn one_kind_of_a_million_users() {
    let deleted = of(&[-9], &[1_000_000], 1_000_000);
    assert_eq!(sums(&deleted), [0]);
    assert_eq!(deleted.parts(0, &Control::new()).unwrap(), [1_000_000]);
    let deleted = of(&[0, 1], &[1_000_000, 3], 1_000);
    assert_eq!(sums(&deleted), [3, 2, 1, 0]);
    assert_eq!(deleted.parts(2, &Control::new()).unwrap(), [998, 2]);
}

/// Shifts by whole words and over several blocks, which small tables do not reach.
#[test]
fn tables_of_many_words() {
    let statistics = [0, 1, 64, 6_400_000, 9_000_001];
    let counts = [1, 4, 1, 1, 1];
    for deletions in 0..=5 {
        let expected = by_sum(&statistics, &counts, deletions);
        let deleted = of(&statistics, &counts, deletions);
        assert!(sums(&deleted).iter().eq(expected.keys().rev()));
        for (sum, vector) in expected.into_iter().step_by(3) {
            assert_eq!(deleted.parts(sum, &Control::new()).unwrap(), vector);
        }
    }
}

/// More users than are deleted, with the sum 0, are bits above the last row.
#[test]
fn a_statistic_given_twice() {
    let deleted = of(&[7, 7, 7], &[1, 2, 1], 2);
    assert_eq!(sums(&deleted), [0]);
    assert_eq!(deleted.parts(0, &Control::new()).unwrap(), [1, 1, 0]);
}

#[test]
fn what_is_refused() {
    let message = |refused: userdp_core::Result<DeletedSums>| refused.unwrap_err().to_string();
    assert_eq!(
        message(DeletedSums::new(&integers(&[1]), &[1, 1], 1)),
        "counts: must be 1, as the statistics; got 2"
    );
    assert_eq!(
        message(DeletedSums::new(&integers(&[1, 2]), &[2, 1], 4)),
        "r: must be at most the number of users, 3; got 4"
    );
    assert_eq!(message(DeletedSums::new(&[], &[], 1)), "r: must be at most the number of users, 0; got 1");
    let deleted = of(&[0, 3], &[2, 2], 2);
    assert_eq!(sums(&deleted), [6, 3, 0]);
    for sum in [1, 2, 4, 5, 7, u64::MAX] {
        let refused = deleted.parts(sum, &Control::new()).unwrap_err();
        assert_eq!(refused.to_string(), "sum: is not one of those that occur");
    }
}

#[test]
fn work_stops_when_it_is_canceled() {
    let control = Control::new();
    control.cancel();
    let deleted = of(&[0, 3], &[2, 2], 2);
    assert!(deleted.sums(&control).unwrap_err().is_canceled());
    assert!(deleted.parts(3, &control).unwrap_err().is_canceled());
}

proptest! {
    #[test]
    fn datasets_of_any_statistics(
        values in prop::collection::vec(-40_i64..40, 0..11),
        repeated in prop::collection::vec(0_i64..3, 0..6),
        offset in -1_i64 << 61..1 << 61,
        share in 0_usize..=100,
    ) {
        let values: Vec<i64> = values.into_iter().chain(repeated).map(|value| value + offset).collect();
        agrees(&values, (values.len() * share / 100) as u64);
    }
}

#[test]
fn sums_that_do_not_occur_have_no_users() {
    let control = Control::new();
    // There is one user of 1, and then nobody is left of the last kind.
    assert!(of(&[0, 1], &[2, 1], 2).parts(2, &control).is_err());
    // All have the same: the only sum is 0, of however many.
    for deletions in [2_u64, 1 << 31] {
        let alike = of(&[5], &[1 << 40], deletions);
        assert_eq!(sums(&alike), [0]);
        assert_eq!(alike.parts(0, &control).unwrap(), [deletions]);
        assert!(alike.parts(1, &control).is_err());
    }
}

#[test]
fn rows_of_many_blocks_of_words() {
    // Over 2^16 words, with bits on both sides of each end of a block.
    let (statistics, counts) =
        ([0_i64, 3, (1 << 22) - 1, (1 << 22) + 64, (1 << 23) + 1], [2_u64, 2, 2, 1, 2]);
    let mut users = Vec::new();
    for (&statistic, &count) in statistics.iter().zip(&counts) {
        users.extend((0..count).map(|_| statistic.unsigned_abs()));
    }
    let mut expected = BTreeSet::new();
    for i in 0..users.len() {
        for j in 0..i {
            for k in 0..j {
                expected.insert(users[i] + users[j] + users[k]);
            }
        }
    }
    let deleted = of(&statistics, &counts, 3);
    assert_eq!(sums(&deleted), expected.iter().rev().copied().collect::<Vec<_>>());
    for &sum in &expected {
        let parts = deleted.parts(sum, &Control::new()).unwrap();
        let found: u64 =
            parts.iter().zip(&statistics).map(|(&part, &statistic)| part * statistic.unsigned_abs()).sum();
        assert_eq!((found, parts.iter().sum()), (sum, 3));
    }
}
