//! Discrete Laplace noise in a range: its certificate and the faults it must catch, wiping, canceling.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::One;
use userdp_core::{
    Error,
    control::Control,
    exact::Level,
    rng::Source,
    sampler::{
        DiscreteLaplaceTables,
        discrete_laplace::{Digits, certify},
    },
};

fn two() -> Level {
    Level::rational(BigRational::from_integer(BigInt::from(2)))
}

/// Digits from 64ths of the first draw and of the second.
fn digits(center: u32, high: &[u32], rest: u32, low: &[u32], flat_bits: u32) -> Digits {
    let scaled =
        |values: &[u32], unit: u32| values.iter().map(|&v| BigUint::from(v) << unit).collect::<Vec<_>>();
    Digits {
        center: BigUint::from(center) << 121_u32,
        high: scaled(high, 121),
        rest: BigUint::from(rest) << 121_u32,
        low: scaled(low, 122),
        flat_bits,
    }
}

fn refused(digits: &Digits, width: u64) -> String {
    certify(digits, &two(), width).expect_err("a refusal").to_string()
}

#[test]
fn every_fault_is_refused() {
    // P[X = 0] = 2 * 16, P[1] = 26 * 36 / 64 = 14.6: a factor 2.2.
    assert!(refused(&digits(16, &[26, 16], 6, &[36, 28], 0), 3).contains("0 and 1"));
    // 2 * 14 = 28 <= 2 * 14.6; the carry 26 * 28 <= 2 * 16 * 36; 16 * 28 / 64 = 7 <= 8, all the rest.
    let passes = digits(14, &[26, 16], 8, &[36, 28], 0);
    for width in 1..=5 {
        assert_eq!(certify(&passes, &two(), width), Ok(()));
    }
    // A range that reaches beyond what is beyond the digits.
    assert!(refused(&passes, 6).contains("ends within"));
    assert!(refused(&digits(15, &[26, 16], 8, &[36, 28], 0), 3).contains("first draw"));
    assert!(refused(&digits(14, &[26, 16], 8, &[36, 29], 0), 3).contains("low digit"));
    assert!(refused(&digits(14, &[42, 0], 8, &[36, 28], 0), 3).contains('0'));
    assert!(refused(&digits(18, &[26, 20], 0, &[36, 28], 0), 3).contains('0'));
    assert!(refused(&digits(14, &[], 50, &[36, 28], 0), 3).contains("power of 2"));
    assert!(refused(&digits(14, &[26, 16], 8, &[24, 20, 20], 0), 3).contains("power of 2"));
    assert!(refused(&digits(14, &[26, 16], 8, &[], 0), 3).contains("power of 2"));
    assert!(refused(&digits(14, &[26, 16], 8, &[36, 28], 64), 3).contains("64 bits"));
    // Low digits, carries, and what is beyond.
    assert!(refused(&digits(14, &[26, 16], 8, &[44, 20], 0), 3).contains("low digits"));
    assert!(refused(&digits(8, &[26, 16], 14, &[20, 44], 0), 3).contains("low digits"));
    assert!(refused(&digits(14, &[32, 10], 8, &[36, 28], 0), 3).contains("carry"));
    assert!(refused(&digits(15, &[27, 16], 6, &[36, 28], 0), 3).contains("too light"));
    // Totals of twice the whole are 0 to whoever adds modulo 2^127 or 2^128.
    assert!(refused(&digits(28, &[52, 32], 16, &[36, 28], 0), 3).contains("first draw"));
    assert!(refused(&digits(14, &[26, 16], 8, &[72, 56], 0), 3).contains("low digit"));
}

#[test]
fn independent_signs_and_magnitudes_are_refused() {
    // All of the least magnitude on 0 when the sign is free: P[0] is twice what it may be, here 4 P[1] for E = 2.
    let distribution = digits(32, &[16, 8], 8, &[64], 0);
    assert!(refused(&distribution, 3).contains("0 and 1"));
    // Half of it is the center of the certified distribution, and what is left goes elsewhere.
    assert_eq!(certify(&digits(20, &[20, 12], 12, &[64], 0), &two(), 3), Ok(()));
    assert!(refused(&digits(4, &[24, 18], 18, &[64], 0), 3).contains("0 and 1"));
}

#[test]
fn flat_stretches_must_be_level_and_long() {
    // L = 2; the values 3, ..., 6 of X have 30 / 4 = 7.5 each, about level with the last digit's 8.
    let good = digits(12, &[14, 8], 30, &[64], 2);
    // From width 4 = L + 2 on it is needed; the mass beyond width - 1 is 2 + 4 - (width - 1) values, at least 1.
    for width in 4..=6 {
        assert_eq!(certify(&good, &two(), width), Ok(()));
    }
    assert!(refused(&good, 7).contains("ends within"));
    let little_less = Level::rational(BigRational::new(BigInt::from(19), BigInt::from(10)));
    let short = certify(&good, &little_less, 6).expect_err("1 / 0.9 > 1").to_string();
    assert!(short.contains("too short"), "{short}");
    assert_eq!(certify(&good, &little_less, 5), Ok(()));
    // 44 / 4 = 11 is above twice 5, and 12 / 4 = 3 below half of 12.
    assert!(refused(&digits(7, &[8, 5], 44, &[64], 2), 5).contains("level"));
    assert!(refused(&digits(20, &[20, 12], 12, &[64], 2), 5).contains("level"));
}

#[test]
fn what_is_built_passes_and_less_noise_does_not() {
    let control = Control::new();
    let level =
        |n: i64, d: i64| Level::new(BigRational::one(), BigRational::new(BigInt::from(n), BigInt::from(d)));
    for (high, low_bits) in
        [(1, None), (40, None), (40, Some(2)), (2000, Some(0)), (2000, None), (1 << 40, None)]
    {
        let tables =
            DiscreteLaplaceTables::with_low_bits(&level(1, 4), 0, high, low_bits, &control).expect("tables");
        let width = high.unsigned_abs();
        assert_eq!(certify(tables.digits(), &level(1, 4), width), Ok(()));
        assert!(certify(tables.digits(), &level(1, 8), width).is_err());
        assert!(certify(tables.digits(), &level(249_999, 1_000_000), width).is_err());
        // A unit more in the center and one less at the first digit, on the scale of 2^-40.
        let mut moved = tables.digits().clone();
        let part = BigUint::one() << 87_u32;
        moved.center += &part;
        moved.high[0] -= &part;
        assert!(certify(&moved, &level(1, 4), width).is_err());
        // Wider ranges than what it was built for.
        if tables.digits().flat_bits > 0 {
            assert!(certify(tables.digits(), &level(1, 4), width * 4).is_err());
        }
    }
}

#[test]
fn values_are_wiped_when_a_batch_stops() {
    let control = Control::new();
    let tables = DiscreteLaplaceTables::new(&two(), 0, 1000, &control).expect("tables");
    let mut values = [7; 5];
    let failed = tables.release_many(&mut Source::listed(vec![0; 40]), &mut values, &control);
    assert!(matches!(failed, Err(Error::Entropy { .. })));
    assert_eq!(values, [0; 5]);
    control.cancel();
    let mut values = [7; 5];
    assert_eq!(tables.release_many(&mut Source::system(), &mut values, &control), Err(Error::Canceled));
    assert_eq!(values, [0; 5]);
    assert!(matches!(DiscreteLaplaceTables::new(&two(), 0, 1000, &control), Err(Error::Canceled)));
    assert!(DiscreteLaplaceTables::new(&two(), 5, 5, &Control::new()).is_err());
}
