//! Local randomizers from Rust: kernels against slow definitions, certificates, rejections and refusals.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use std::collections::BTreeMap;
use userdp_core::{
    Error,
    control::Control,
    exact::Level,
    protocol::local::{
        Favor, HadamardResponse, RandomizedResponse, SubsetSelection, bits_of_rows,
        hadamard::userdp_ct_local_column,
        randomized_response::{userdp_ct_local_bit, userdp_ct_local_other},
        subset::SUBSET_ITEMS_LIMIT,
        subset::userdp_ct_local_insert,
        subset::userdp_ct_local_others,
        userdp_ct_local_item, walsh_hadamard,
    },
    rng::Source,
};

fn level(numerator: i64, denominator: i64) -> Level {
    Level::rational(BigRational::new(BigInt::from(numerator), BigInt::from(denominator)))
}

fn reports(
    length: usize,
    report: impl FnOnce(&mut [i64], &Control) -> userdp_core::Result<()>,
) -> userdp_core::Result<Vec<i64>> {
    let mut reports = vec![0; length];
    report(&mut reports, &Control::new()).map(|()| reports)
}

#[test]
fn coins_are_the_largest_that_the_level_allows() {
    let whole = BigUint::from(1_u8) << 128_u32;
    for (favored, symbols) in [(1, 2), (1, 3), (2, 7), (1, 1 << 24), (6, 7), (1 << 15, 1 << 16)] {
        for (a, b) in [(3, 1), (1001, 1000), (1 << 40, 1), (5, 2)] {
            let p = BigUint::from(Favor::new(&level(a, b), favored, symbols).expect("a coin").numerator());
            // p others / ((1 - p) favored) <= a / b, and not for the next p.
            let allowed = |p: &BigUint| {
                p * (symbols - favored) * b.unsigned_abs() <= (&whole - p) * favored * a.unsigned_abs()
            };
            assert!(allowed(&p), "{favored} of {symbols} at {a}/{b}");
            assert!(!allowed(&(p + 1_u8)), "{favored} of {symbols} at {a}/{b}");
        }
    }
}

#[test]
fn coins_that_are_refused() {
    let refused = |level: &Level, favored, symbols| Favor::new(level, favored, symbols).is_err();
    assert!(refused(&level(1, 1), 1, 2));
    assert!(refused(&Level::from_epsilon(1e-40), 1, 2));
    assert!(refused(&Level::from_epsilon(1e-40), 1, 3));
    assert!(!refused(&Level::from_epsilon(1e-36), 1, 2));
    for (favored, symbols) in [(0, 2), (2, 2), (3, 2)] {
        assert!(refused(&level(3, 1), favored, symbols));
    }
}

#[test]
fn items_and_what_is_none() {
    for item in -3..8_i64 {
        let expected = if (0..5).contains(&item) { item.unsigned_abs() } else { 2 };
        assert_eq!(userdp_ct_local_item(item, 5, 2), expected);
    }
    assert_eq!([i64::MIN, i64::MAX].map(|item| userdp_ct_local_item(item, 5, 2)), [2, 2]);
}

#[test]
fn bits_are_those_of_rows_of_zeros_and_ones() {
    for row in 0..5_u32.pow(3) {
        let row = [1, 5, 25].map(|place| i64::from(row / place % 5) - 1); // -1, ..., 3
        let is_item = row.iter().all(|&entry| entry == 0 || entry == 1);
        for (place, &entry) in (0..).zip(&row) {
            let expected = if is_item { entry.unsigned_abs() } else { 0 };
            assert_eq!(userdp_ct_local_bit(&row, place), expected, "{row:?} at {place}");
        }
    }
    for other in [i64::MIN, i64::MIN + 1, 1 << 32, (1 << 62) + 1, i64::MAX] {
        assert_eq!(userdp_ct_local_bit(&[1, other], 0), 0);
    }
    assert_eq!(bits_of_rows(&[1, 0, 0, 1, 1, 2], &[0, 1, 0]).expect("bits"), [1, 1, 0]);
    assert_eq!(bits_of_rows(&[], &[]).expect("bits"), [0_i64; 0]);
    for (rows, places) in [(&[1, 0, 1][..], &[0, 0][..]), (&[1, 0], &[2]), (&[1], &[]), (&[], &[0])] {
        assert!(bits_of_rows(rows, places).is_err());
    }
}

#[test]
fn other_items_are_all_equally_far() {
    for k in 2..9 {
        for item in 0..k {
            assert!((1..k).all(|offset| userdp_ct_local_other(item, k, 0, offset) == item));
            let mut others: Vec<u64> =
                (1..k).map(|offset| userdp_ct_local_other(item, k, 1, offset)).collect();
            others.sort_unstable();
            assert!(others.into_iter().eq((0..k).filter(|&other| other != item)));
        }
    }
}

#[test]
fn columns_of_either_sign_are_equally_likely() {
    for columns in [2_u64, 4, 8, 32] {
        for row in 1..columns {
            for against in [0, 1] {
                let mut seen = BTreeMap::new();
                for word in 0..columns {
                    // High bits of the word mean nothing.
                    *seen
                        .entry(userdp_ct_local_column(row, columns, against, word | 1 << 50))
                        .or_insert(0) += 1;
                }
                let right =
                    (0..columns).filter(|column| u64::from((row & column).count_ones()) % 2 == against);
                assert!(seen.keys().copied().eq(right));
                assert!(seen.values().all(|&times| times == 2));
            }
        }
    }
}

/// The places of ones.
fn ones(bits: &[i64]) -> Vec<u64> {
    (0..64 * bits.len() as u64).filter(|place| bits[(place / 64) as usize] >> (place % 64) & 1 == 1).collect()
}

#[test]
fn bits_are_inserted_at_every_place() {
    let mut source = Source::seeded(&BigUint::from(1_u8)).expect("a source");
    for words in 1..4_usize {
        for item in 0..64 * words as u64 {
            for bit in [0, 1] {
                let mut bits: Vec<i64> = (0..words)
                    .map(|_| {
                        i64::from_le_bytes(
                            source.bits().expect("bits").to_le_bytes()[..8].try_into().expect("8"),
                        )
                    })
                    .collect();
                bits[words - 1] &= i64::MAX;
                let mut expected: Vec<u64> =
                    ones(&bits).into_iter().map(|place| place + u64::from(place >= item)).collect();
                expected.extend((bit == 1).then_some(item));
                expected.sort_unstable();
                userdp_ct_local_insert(item, bit, &mut bits);
                assert_eq!(ones(&bits), expected, "{bit} at {item} of {words}");
            }
        }
    }
}

#[test]
fn others_are_drawn_one_after_the_other() {
    // The words of the values 2, 0 and 0 below 3, 2 and 1, and a rejected one: 2^32 mod 3 = 1.
    let third = (1 << 32) / 3 + 1;
    let rejected = [1, 0, 0];
    let mut bits = [-1];
    assert_eq!(userdp_ct_local_others(1, &[2 * third, 0, 0], &rejected, &mut bits), 1);
    assert_eq!(bits, [0b10]);
    assert_eq!(userdp_ct_local_others(1, &[1, 0, 0], &rejected, &mut bits), 1);
    assert_eq!(bits, [0b001]);
    assert_eq!(userdp_ct_local_others(2, &[2 * third, 0, 0], &rejected, &mut bits), 1);
    assert_eq!(bits, [0b110]);
    assert_eq!(
        userdp_ct_local_others(3, &[2 * third, (1 << 32) - 1, (1 << 32) - 1], &rejected, &mut bits),
        1
    );
    assert_eq!(bits, [0b111]);
    assert_eq!(userdp_ct_local_others(2, &[0, 0, 0], &rejected, &mut bits), 0);
}

#[test]
fn many_reports_are_those_of_blocks() {
    // More than one block of random bytes, with the last one not full.
    let items: Vec<i64> = (0..1300).map(|user| user % 11 - 1).collect();
    let source = || Source::seeded(&BigUint::from(9_u8)).expect("a source");
    let three = level(3, 1);
    let response = RandomizedResponse::new(&three, 9, 4).expect("a randomizer");
    let hadamard = HadamardResponse::new(&three, 9, 4).expect("a randomizer");
    let subset = SubsetSelection::new(&three, 9, 3, 4).expect("a randomizer");
    let mut bytes = source();
    let words: Vec<(u128, u128)> =
        items.iter().map(|_| (bytes.bits().expect("bits"), bytes.bits().expect("bits"))).collect();
    let at_once = reports(1300, |out, control| response.report_many(&items, &mut source(), out, control))
        .expect("reports");
    for ((&item, &(coin, word)), &report) in items.iter().zip(&words).zip(&at_once) {
        let listed: Vec<u8> = [coin, word].iter().flat_map(|word| word.to_le_bytes()).collect();
        let alone = reports(1, |out, control| {
            response.report_many(&[item], &mut Source::listed(listed), out, control)
        });
        assert_eq!(alone, Ok(vec![report]));
    }
    let columns = reports(1300, |out, control| hadamard.report_many(&items, &mut source(), out, control))
        .expect("reports");
    assert!(columns.iter().all(|column| (0..16).contains(column)));
    let sets = reports(1300, |out, control| subset.report_many(&items, &mut source(), out, control))
        .expect("reports");
    assert!(sets.iter().all(|&set| (0..512).contains(&set) && set.count_ones() == 3));
}

#[test]
fn randomizers_that_are_refused() {
    let three = level(3, 1);
    for (items, default) in [(1, 0), (0, 0), ((1 << 24) + 1, 0), (5, 5)] {
        assert!(RandomizedResponse::new(&three, items, default).is_err());
        assert!(HadamardResponse::new(&three, items, default).is_err());
    }
    for (items, size) in [(5, 0), (5, 5), (SUBSET_ITEMS_LIMIT + 1, 1)] {
        assert!(SubsetSelection::new(&three, items, size, 0).is_err());
    }
    let response = RandomizedResponse::new(&three, 4, 0).expect("a randomizer");
    let wrong = reports(2, |out, control| response.report_many(&[1], &mut Source::system(), out, control));
    assert!(matches!(wrong, Err(Error::InvalidArgument { .. })));
    let canceled = Control::new();
    canceled.cancel();
    assert_eq!(response.report_many(&[1], &mut Source::system(), &mut [0], &canceled), Err(Error::Canceled));
}

#[test]
fn transforms_are_their_definition() {
    for power in 0..6_u32 {
        let counts: Vec<i64> = (0..1_i64 << power).map(|column| column * column % 13 - 5).collect();
        let expected: Vec<i64> = (0..counts.len())
            .map(|row| {
                let signed = |(column, &count): (usize, &i64)| {
                    if (row & column).count_ones() % 2 == 0 { count } else { -count }
                };
                counts.iter().enumerate().map(signed).sum()
            })
            .collect();
        let mut sums = counts;
        walsh_hadamard(&mut sums, &Control::new()).expect("a transform");
        assert_eq!(sums, expected);
    }
    for wrong in [vec![0; 3], vec![], vec![i64::MAX, 1], vec![i64::MIN, 0]] {
        assert!(walsh_hadamard(&mut wrong.clone(), &Control::new()).is_err());
    }
    let mut largest = [i64::MAX, 0];
    walsh_hadamard(&mut largest, &Control::new()).expect("a transform");
    assert_eq!(largest, [i64::MAX, i64::MAX]);
}
