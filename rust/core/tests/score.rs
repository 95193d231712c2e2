//! Scores of thresholds and medians against sums over all users, and separations of binomials against exact ones.

#![allow(clippy::cast_possible_truncation)]

use num_bigint::BigUint;
use num_traits::ToPrimitive;
use proptest::prelude::*;
use userdp_core::{
    Error,
    control::Control,
    exact::binomial::binomial_row,
    score::{
        binomial::{binomial_tail, separating_threshold},
        thresholds::{Groups, ThresholdSweep, range_minimum},
        users::{first_rows, user_codes},
    },
};

/// Rows (point, label, user).
type Row = (u64, u8, u32);

const DOMAIN: u64 = 9;
const USERS: u32 = 5;

/// At most m rows of each user.
fn rows() -> impl Strategy<Value = (u32, Vec<Row>)> {
    let row = (1..=DOMAIN, 0_u8..2, 0..USERS);
    (1_u32..5, prop::collection::vec(row, 0..25)).prop_map(|(m, mut rows)| {
        let mut kept = [0; USERS as usize];
        rows.retain(|row| {
            kept[row.2 as usize] += 1;
            kept[row.2 as usize] <= m
        });
        (m, rows)
    })
}

fn sweep(rows: &[Row], m: u32) -> userdp_core::Result<ThresholdSweep> {
    let points: Vec<u64> = rows.iter().map(|row| row.0).collect();
    let labels: Vec<u8> = rows.iter().map(|row| row.1).collect();
    let users: Vec<u32> = rows.iter().map(|row| row.2).collect();
    ThresholdSweep::new(&points, &labels, &users, USERS as usize, m, DOMAIN, &Control::new())
}

fn users_with(rows: &[Row], holds: impl Fn(&[Row]) -> bool) -> i64 {
    (0..USERS)
        .map(|user| rows.iter().copied().filter(|row| row.2 == user).collect::<Vec<_>>())
        .fold(0, |users, rows| users + i64::from(holds(&rows)))
}

fn errors(rows: &[Row], m: u32, u: u64, t: u32) -> i64 {
    users_with(rows, |rows| {
        let wrong = rows.iter().filter(|row| (row.0 > u) != (row.1 == 1)).count();
        wrong * m as usize > t as usize * rows.len()
    })
}

/// The score of u by reading all groups.
fn score_at((starts, scores): &Groups, u: u64) -> i64 {
    let ends = starts[1..].iter().copied().chain([u64::MAX]);
    let found: Vec<i64> = starts
        .iter()
        .zip(ends)
        .zip(scores)
        .filter_map(|((&start, end), &score)| (start <= u && u < end).then_some(score))
        .collect();
    assert_eq!(found.len(), 1);
    found[0]
}

/// All close together, all far apart, and some of each.
fn ids() -> impl Strategy<Value = Vec<i64>> {
    let ids = |id: BoxedStrategy<i64>| prop::collection::vec(id, 0..40);
    let near = || (-3_i64..3).boxed();
    prop_oneof![ids(near()), ids(any::<i64>().boxed()), ids(prop_oneof![near(), any::<i64>()].boxed())]
}

proptest! {
    #[test]
    fn threshold_scores_are_sums_over_users((m, rows) in rows(), low in 0..=DOMAIN, width in 0..=DOMAIN) {
        let control = Control::new();
        let sweep = sweep(&rows, m).unwrap();
        let least = sweep.minimal_errors(&control).unwrap();
        prop_assert_eq!(least.len(), m as usize);
        for (t, &least) in (0..m).zip(&least) {
            let groups = sweep.groups(t, 0, &control).unwrap();
            prop_assert_eq!(groups.0.len(), rows.len() + 1);
            let expected: Vec<i64> = (0..=DOMAIN).map(|u| errors(&rows, m, u, t)).collect();
            let found: Vec<i64> = (0..=DOMAIN).map(|u| score_at(&groups, u)).collect();
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(Some(&least), expected.iter().min());
            let high = DOMAIN.min(low + width);
            let part = expected.iter().take(high as usize + 1).skip(low as usize).min().copied();
            prop_assert_eq!(range_minimum(&groups.0, &groups.1, low, high).ok(), part);
        }
    }

    #[test]
    fn median_scores_are_sums_over_users((m, rows) in rows(), low in 0..=DOMAIN, width in 0..=DOMAIN, s in 0_u32..4) {
        let high = DOMAIN.min(low + width);
        let groups = sweep(&rows, m).unwrap().median_groups(low, high, s, &Control::new()).unwrap();
        prop_assert_eq!(groups.0.len(), 2 * USERS as usize + 1);
        prop_assert!(groups.0[0] == low && groups.0.is_sorted() && groups.0.iter().all(|&start| start <= high));
        for u in low..=high {
            let more = |side: &dyn Fn(u64) -> bool| {
                users_with(&rows, |rows| rows.iter().filter(|row| side(row.0)).count() > s as usize)
            };
            let expected = more(&|x| low <= x && x < u).max(more(&|x| u < x && x <= high));
            prop_assert_eq!(score_at(&groups, u), expected);
        }
    }

    #[test]
    fn users_are_numbered_by_id(ids in ids()) {
        let (codes, distinct) = user_codes(&ids, &Control::new()).unwrap();
        prop_assert!(distinct.is_sorted_by(|a, b| a < b));
        let found: Vec<i64> = codes.iter().map(|&code| distinct[code as usize]).collect();
        prop_assert_eq!(&found, &ids);
        prop_assert!(distinct.iter().all(|id| ids.contains(id)));
    }
}

/// Pr[Bin(m, a / 2^20) > t] for all t, over 2^(20 m), and that power.
fn tails(m: usize, a: u32) -> (Vec<BigUint>, BigUint) {
    let (hit, miss) = (BigUint::from(a), BigUint::from((1_u32 << 20) - a));
    let mut tails: Vec<BigUint> = binomial_row(m, m)
        .into_iter()
        .enumerate()
        .map(|(k, ways)| ways * hit.pow(k as u32) * miss.pow((m - k) as u32))
        .collect();
    for k in (0..m).rev() {
        let above = tails[k + 1].clone();
        tails[k] += above;
    }
    (tails.split_off(1), BigUint::from(1_u32) << (20 * m))
}

/// A quotient to 1e-15.
fn quotient(a: &BigUint, b: &BigUint) -> f64 {
    ((a << 60_u32) / b).to_f64().unwrap_or(f64::NAN) / (1_u64 << 60) as f64
}

#[test]
fn separations_are_exact_ones() {
    let one = 1 << 20;
    for m in [1, 2, 3, 10, 40] {
        for (a, b) in [(0, 1), (1, 2), (one / 4, one / 2), (one / 2 - 1, one / 2), (one - 1, one), (0, one)] {
            let (p, q) = (f64::from(a) / f64::from(one), f64::from(b) / f64::from(one));
            let ((below, whole), (above, _)) = (tails(m, a), tails(m, b));
            let found = separating_threshold(m as u64, p, q).unwrap();
            let gaps: Vec<BigUint> = above.iter().zip(&below).map(|(above, below)| above - below).collect();
            let best = gaps.iter().position(|gap| Some(gap) == gaps.iter().max()).unwrap();
            assert_eq!(found.threshold, best as u64);
            assert!((found.gap - quotient(&gaps[best], &whole)).abs() < 1e-12);
            assert!((found.tail_p - quotient(&below[best], &whole)).abs() < 1e-12);
            for (t, tail) in above.iter().enumerate() {
                let found = binomial_tail(m as u64, q, t as u64).unwrap();
                assert!((found - quotient(tail, &whole)).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn work_stops_on_request() {
    let sweep = sweep(&[(1, 0, 0), (2, 1, 1)], 1).unwrap();
    let control = Control::new();
    control.cancel();
    assert_eq!(sweep.groups(0, 0, &control), Err(Error::Canceled));
    assert_eq!(sweep.median_groups(0, DOMAIN, 0, &control), Err(Error::Canceled));
    for ids in [[1, 2], [2, 1], [i64::MAX, i64::MIN]] {
        assert_eq!(user_codes(&ids, &control), Err(Error::Canceled));
    }
    assert_eq!(first_rows(&[0], 1, 1, &control), Err(Error::Canceled));
}
