//! Exact numbers against independent definitions: rational arithmetic, partial sums with remainders, bit patterns.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use proptest::prelude::*;
use std::cmp::Ordering;
use userdp_core::exact::{
    ExactSum, Level,
    exp::{exp, exp_to_integer},
    ln::{ln, ln_bounds, ln_nearest},
    rounding::{Direction, quotient_to_f64, rational_from_f64, rational_to_f64},
};

fn ratio(numerator: i64, denominator: i64) -> BigRational {
    BigRational::new(BigInt::from(numerator), BigInt::from(denominator))
}

fn power_of_two(exponent: i32) -> BigRational {
    let one = BigRational::one();
    let shift = BigInt::from(1) << exponent.unsigned_abs();
    if exponent >= 0 { one * shift } else { one / shift }
}

/// e^x for 0 <= x <= 1 between a partial sum and the same with the remainder 2 x^n / n! added; the definition.
fn exp_by_definition(x: &BigRational, terms: i64) -> (BigRational, BigRational) {
    let (mut sum, mut term) = (BigRational::zero(), BigRational::one());
    for n in 1..=terms {
        sum += &term;
        term = term * x / BigInt::from(n);
    }
    let upper = &sum + &term * BigInt::from(2);
    (sum, upper)
}

/// Any finite non-negative float, all exponents alike.
fn magnitude() -> impl Strategy<Value = f64> {
    (0_u64..0x7ff0_0000_0000_0000).prop_map(f64::from_bits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn floats_become_the_rationals_they_are(x in magnitude()) {
        let exact = rational_from_f64(x);
        for direction in [Direction::Down, Direction::Nearest, Direction::Up] {
            prop_assert_eq!(rational_to_f64(&exact, direction).to_bits(), x.to_bits());
        }
    }

    #[test]
    fn rounding_finds_the_neighbors(x in magnitude(), part in 1_i64..1000) {
        // A point strictly between two adjacent floats.
        let above = x.next_up();
        prop_assume!(above.is_finite());
        let (low, high) = (rational_from_f64(x), rational_from_f64(above));
        let between = &low + (&high - &low) * ratio(part, 1000);
        prop_assert_eq!(rational_to_f64(&between, Direction::Down), x);
        prop_assert_eq!(rational_to_f64(&between, Direction::Up), above);
        let nearest = rational_to_f64(&between, Direction::Nearest);
        let even_below = x.to_bits() & 1 == 0;
        let expected = match part.cmp(&500) {
            Ordering::Less => x,
            Ordering::Greater => above,
            Ordering::Equal => if even_below { x } else { above },
        };
        prop_assert_eq!(nearest, expected);
        prop_assert_eq!(rational_to_f64(&-&between, Direction::Down), -above);
        prop_assert_eq!(rational_to_f64(&-between, Direction::Up), -x);
    }

    #[test]
    fn exact_sums_are_exact(values in prop::collection::vec(magnitude(), 0..60)) {
        let mut sum = ExactSum::new();
        let mut expected = BigRational::zero();
        for &value in &values {
            sum.add(value);
            expected += rational_from_f64(value);
        }
        prop_assert_eq!(sum.value(), expected);
    }

    #[test]
    fn exp_encloses(numerator in 0_i64..=1000, bits in 8_i64..400) {
        let x = ratio(numerator, 1000);
        let enclosure = exp(&x, bits);
        let (low, high) = exp_by_definition(&x, 150);
        prop_assert!(enclosure.lower.to_rational() <= high);
        prop_assert!(enclosure.upper.to_rational() >= low);
        let width = enclosure.upper.to_rational() - enclosure.lower.to_rational();
        prop_assert!(width <= power_of_two(-i32::try_from(bits).unwrap()) * BigInt::from(3));
    }

    #[test]
    fn exp_of_sums_multiplies(a in -5000_i64..5000, b in -5000_i64..5000) {
        let (x, y) = (ratio(a, 17), ratio(b, 17));
        let (ex, ey, sum) = (exp(&x, 200), exp(&y, 200), exp(&(&x + &y), 200));
        prop_assert!(ex.lower.times(&ey.lower).compare(&sum.upper) != Ordering::Greater);
        prop_assert!(ex.upper.times(&ey.upper).compare(&sum.lower) != Ordering::Less);
        let relative = sum.upper.to_rational() / sum.lower.to_rational() - BigRational::one();
        prop_assert!(relative <= power_of_two(-198));
    }

    #[test]
    fn ln_inverts_exp(numerator in 1_i64..i64::MAX, denominator in 1_i64..i64::MAX) {
        let x = ratio(numerator, denominator);
        let log = ln(&x, 160);
        let back = exp(&log.lower.to_rational(), 200);
        let forth = exp(&log.upper.to_rational(), 200);
        prop_assert!(back.lower.to_rational() <= x);
        prop_assert!(forth.upper.to_rational() >= x);
        let width = (log.upper.to_rational() - log.lower.to_rational()).abs();
        prop_assert!(width <= log.upper.to_rational().abs() * power_of_two(-140));
    }

    #[test]
    fn levels_compare_as_e_to_the_epsilon(p in 1_i64..1000, q in 1_i64..1000, tenths in 0_i64..100) {
        let epsilon = ratio(tenths, 10);
        let level = Level::new(BigRational::one(), epsilon.clone());
        let (low, high) = exp_by_definition(&(&epsilon / BigInt::from(16)), 80);
        let sixteenth = |x: BigRational| (0..4).fold(x, |x, _| &x * &x);
        let (low, high) = (sixteenth(low), sixteenth(high));
        let quotient = ratio(p, q);
        let expected = if quotient < low { Ordering::Less } else if quotient > high { Ordering::Greater } else { Ordering::Equal };
        prop_assert_eq!(level.compare(&ratio(p, 1000), &ratio(q, 1000)), expected);
    }

    #[test]
    fn machine_levels_are_close(epsilon in 0.0_f64..270.0) {
        let level = Level::from_epsilon(epsilon);
        let machine = level.machine().unwrap();
        let sum = rational_from_f64(machine.high)
            + rational_from_f64(machine.low.abs()) * BigInt::from(if machine.low < 0.0 { -1 } else { 1 });
        let exact = level.enclosure(400).lower.to_rational();
        let error = ((sum - &exact) / exact).abs();
        prop_assert!(error <= power_of_two(-104));
        prop_assert!(machine.low.abs() <= machine.high * f64::EPSILON / 2.0);
    }
}

#[test]
fn tiny_and_huge_numbers_round_as_ieee_says() {
    let half_smallest =
        quotient_to_f64(&BigUint::from(1_u32), &(BigUint::from(1_u32) << 1075), Direction::Nearest);
    assert_eq!(half_smallest.to_bits(), 0); // a tie, to even
    let above_half =
        quotient_to_f64(&BigUint::from(3_u32), &(BigUint::from(1_u32) << 1076), Direction::Nearest);
    assert_eq!(above_half.to_bits(), 1);
    assert_eq!(
        quotient_to_f64(&BigUint::from(1_u32), &(BigUint::from(1_u32) << 5000), Direction::Up).to_bits(),
        1
    );
    assert_eq!(quotient_to_f64(&BigUint::from(1_u32), &(BigUint::from(1_u32) << 5000), Direction::Down), 0.0);
    let huge = BigUint::from(1_u32) << 1024;
    let one = BigUint::from(1_u32);
    assert_eq!(quotient_to_f64(&huge, &one, Direction::Nearest), f64::INFINITY);
    assert_eq!(quotient_to_f64(&huge, &one, Direction::Down), f64::MAX);
    // Just below the midpoint of MAX and 2^1024 rounds to MAX; the midpoint itself overflows.
    let midpoint = (BigUint::from(1_u32) << 1024) - (BigUint::from(1_u32) << 970);
    assert_eq!(quotient_to_f64(&(&midpoint - &one), &one, Direction::Nearest), f64::MAX);
    assert_eq!(quotient_to_f64(&midpoint, &one, Direction::Nearest), f64::INFINITY);
}

#[test]
fn logarithms_of_simple_numbers() {
    assert_eq!(ln_bounds(&BigRational::one()), (0.0, 0.0));
    // Published: ln 2 = 0.693147180559945309417..., ln 10 = 2.302585092994045684017...
    assert_eq!(ln_nearest(&ratio(2, 1)), std::f64::consts::LN_2);
    assert_eq!(ln_nearest(&ratio(10, 1)), std::f64::consts::LN_10);
    assert_eq!(ln_nearest(&ratio(1, 2)), -std::f64::consts::LN_2);
    let (low, high) = ln_bounds(&ratio(3, 1));
    assert_eq!(low.next_up(), high);
}

#[test]
fn weights_of_logits_are_nearest_integers() {
    assert_eq!(exp_to_integer(&BigRational::zero(), 10), BigInt::from(1024));
    // 1024 / e = 376.708...
    assert_eq!(exp_to_integer(&ratio(-1, 1), 10), BigInt::from(377));
    // e^-7.6246... = 2^-11 is the last that rounds to 1 at 10 bits; e^-7.63 rounds to 0.
    assert_eq!(exp_to_integer(&ratio(-762, 100), 10), BigInt::from(1));
    assert_eq!(exp_to_integer(&ratio(-763, 100), 10), BigInt::zero());
    assert_eq!(exp_to_integer(&ratio(-1_000_000_000, 1), 10), BigInt::zero());
}

#[test]
fn astronomical_levels_are_decided() {
    let level = Level::new(BigRational::one(), rational_from_f64(1e300));
    let (tiny, one) = (rational_from_f64(5e-324), BigRational::one());
    assert_eq!(level.compare(&one, &tiny), Ordering::Less);
    assert_eq!(level.compare(&one, &BigRational::zero()), Ordering::Greater);
    assert!(level.machine().is_none());
    let smallest = Level::from_epsilon(5e-324);
    assert_eq!(smallest.compare(&one, &one), Ordering::Less); // e^(5e-324) > 1
}
