//! Tables of rows: sums over users against plain maps, whatever the batches, the memory and the threads.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use std::collections::BTreeMap;
use userdp_core::{
    Error,
    control::Control,
    table::{
        SKIPPED,
        choice::Rule,
        columns::Column,
        index::{Digester, KEY_BYTES, TableIndex},
        sums::{Batch, Bounds, KeySums, LEAST_MEMORY, TableSums},
    },
};

type Row = (u32, u32, i64);

fn table(rows: &[Row], size: usize, memory: usize) -> TableSums {
    let mut sums = TableSums::new(1, memory, None).unwrap();
    for rows in rows.chunks(size) {
        let users: Vec<u32> = rows.iter().map(|row| row.0).collect();
        let keys: Vec<u32> = rows.iter().map(|row| row.1).collect();
        let values: Vec<i64> = rows.iter().map(|row| row.2).collect();
        sums.add(Batch { users: &users, keys: &keys, values: &[&values] }, &Control::new()).unwrap();
    }
    sums
}

const SUM: Column = Column::Sum { value: 0, of: None, low: -50, high: 70, shift: 10 };
const WIDE: Column = Column::Sum { value: 0, of: None, low: i64::MIN, high: i64::MAX, shift: 0 };
const COLUMNS: [Column; 4] = [Column::Users, Column::Rows { most: 2 }, SUM, WIDE];

/// The first keys of every user, by plain maps.
fn expected(rows: &[Row], key_order: &[u32], most: usize) -> KeySums {
    let mut users: BTreeMap<u32, BTreeMap<u32, (i128, i128)>> = BTreeMap::new();
    for &(user, key, value) in rows {
        let rank = key_order[key as usize];
        if rank != SKIPPED {
            let cell = users.entry(user).or_default().entry(rank).or_default();
            *cell = (cell.0 + 1, cell.1 + i128::from(value));
        }
    }
    let mut totals: BTreeMap<u32, [i128; 4]> = BTreeMap::new();
    for cells in users.values() {
        for (&rank, &(count, sum)) in cells.iter().take(most) {
            let wide = sum.clamp(i64::MIN.into(), i64::MAX.into());
            let added = [1, count.min(2), sum.clamp(-50, 70) - 10, wide];
            let total = totals.entry(rank).or_default();
            total.iter_mut().zip(added).for_each(|(total, more)| *total += more);
        }
    }
    let code = |rank: u32| (0..).zip(key_order).find(|(_, other)| **other == rank).unwrap().0;
    let clamped = |sum: i128| i64::try_from(sum.clamp(i64::MIN.into(), i64::MAX.into())).unwrap();
    KeySums {
        keys: totals.keys().map(|&rank| code(rank)).collect(),
        columns: (0..4).map(|column| totals.values().map(|sums| clamped(sums[column])).collect()).collect(),
    }
}

fn value() -> impl Strategy<Value = i64> {
    prop_oneof![4 => -40_i64..40, 1 => prop::sample::select(vec![i64::MIN, i64::MAX]), 1 => any::<i64>()]
}

proptest! {
    #[test]
    fn sums_are_those_of_plain_maps(
        rows in prop::collection::vec((0_u32..700, 0_u32..12, value()), 0..300),
        most in 0_usize..6, size in 1_usize..400, order in Just((0..12).collect::<Vec<u32>>()).prop_shuffle(),
        skipped in 0_usize..20,
    ) {
        let mut key_order = order;
        if let Some(rank) = key_order.get_mut(skipped) {
            *rank = SKIPPED;
        }
        let bounds = Bounds {
            users: 700, key_order: &key_order, max_keys: Some(most), rule: Rule::First, columns: &COLUMNS,
        };
        let found = table(&rows, size, LEAST_MEMORY).bounded(&bounds, &Control::new()).unwrap();
        prop_assert_eq!(found, expected(&rows, &key_order, most));
    }
}

/// Long tables go to disk, and users with many rows are added up in pieces.
#[test]
fn long_tables_are_the_same_on_disk() {
    let rows: Vec<Row> = (0..40_000_u32)
        .map(|row| {
            let mixed = row.wrapping_mul(2_654_435_769);
            (if row % 3 == 0 { 5 } else { mixed >> 20 }, mixed % 1000, i64::from(mixed) - (1 << 31))
        })
        .collect();
    let key_order: Vec<u32> = (0..1000).rev().collect();
    let bounds = Bounds {
        users: 1 << 12,
        key_order: &key_order,
        max_keys: Some(7),
        rule: Rule::First,
        columns: &COLUMNS,
    };
    let expected = expected(&rows, &key_order, 7);
    for (size, memory) in [(40_000, 1 << 30), (40_000, LEAST_MEMORY), (777, LEAST_MEMORY)] {
        let found = table(&rows, size, memory).bounded(&bounds, &Control::new()).unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn digests_are_of_values_and_not_of_codes() {
    let (control, digester) = (Control::new(), Digester::new(&[9; KEY_BYTES]));
    let (mut one, mut other) = (TableIndex::new(), TableIndex::new());
    assert_eq!(one.integers(&[5, -5, 5], &control).unwrap(), [0, 1, 0]);
    assert_eq!(one.texts(2, |i| [b"5".as_slice(), b""][i], &control).unwrap(), [2, 3]);
    assert_eq!(other.texts(2, |i| [b"".as_slice(), b"5"][i], &control).unwrap(), [0, 1]);
    assert_eq!(other.integers(&[-5, 5], &control).unwrap(), [2, 3]);
    for (a, b) in [(0, 3), (1, 2), (2, 1), (3, 0)] {
        assert_eq!(one.digest(a, &digester), other.digest(b, &digester));
    }
    assert_eq!(one.digest(4, &digester), None);
    assert_eq!(one.digests(&digester, &control).unwrap().len(), 4);
}

#[test]
fn work_stops_on_request_and_is_not_answered_later() {
    let rows: Vec<Row> = (0..200_000).map(|row| (row, row, 1)).collect();
    let control = Control::new();
    control.cancel();
    let mut sums = table(&rows[..10], 10, LEAST_MEMORY);
    assert_eq!(sums.split(10, 1, &control), Err(Error::Canceled));
    // Nothing was changed by that.
    assert_eq!(sums.split(10, 3, &Control::new()), Ok((vec![3; 10], 10)));
    let users: Vec<u32> = rows.iter().map(|row| row.0).collect();
    let values: Vec<i64> = rows.iter().map(|row| row.2).collect();
    let batch = Batch { users: &users, keys: &users, values: &[&values] };
    assert_eq!(sums.add(batch, &control), Err(Error::Canceled));
    assert!(matches!(sums.split(1 << 18, 1, &Control::new()), Err(Error::InvalidArgument { .. })));
}
