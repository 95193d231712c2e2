use super::*;
use num_bigint::BigUint;
use proptest::prelude::*;

const EDGES: [u64; 7] = [0, 1, 2, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];

fn words() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), prop::sample::select(&EDGES[..])]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn comparisons_and_selections_are_those_of_the_language(a in words(), b in words(), c in words()) {
        let (x, y, z) = (a.cast_signed(), b.cast_signed(), c.cast_signed());
        let (wide, other) = (u128::from(a) << 64 | u128::from(b), u128::from(a) << 64 | u128::from(c));
        prop_assert_eq!(barrier(a), a);
        prop_assert_eq!(min(a, b), a.min(b));
        prop_assert_eq!(min_signed(x, y), x.min(y));
        prop_assert_eq!(clamp(z, x.min(y), x.max(y)), z.clamp(x.min(y), x.max(y)));
        prop_assert_eq!(less(a, b), u64::from(a < b));
        prop_assert_eq!(at_most_wide(wide, other), u64::from(wide <= other));
        prop_assert_eq!(equal(a, b), u64::from(a == b));
        prop_assert_eq!(equal(a, a), 1);
        prop_assert_eq!((select(1, a, b), select(0, a, b)), (a, b));
    }

    #[test]
    fn high_products_are_those_of_big_integers(a in words(), b in words(), c in words(), d in words()) {
        prop_assert_eq!(BigUint::from(high_product(a, b)), (BigUint::from(a) * b) >> 64);
        let (x, y) = (u128::from(a) << 64 | u128::from(b), u128::from(c) << 64 | u128::from(d));
        prop_assert_eq!(BigUint::from(high_product_wide(x, y)), (BigUint::from(x) * y) >> 128);
    }
}

#[test]
fn a_secret_is_not_shown() {
    let secret = Secret::new(vec![7_u64; 3]);
    assert_eq!((format!("{secret:?}"), secret[1]), ("Secret(..)".to_owned(), 7));
}

/// Counts how often it is wiped.
struct Watched<'a>(&'a std::cell::Cell<u32>);

impl Zeroize for Watched<'_> {
    fn zeroize(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn a_secret_is_wiped_once_when_it_goes() {
    let wiped = std::cell::Cell::new(0);
    let secret = Secret::new(Watched(&wiped));
    assert_eq!(wiped.get(), 0);
    drop(secret);
    assert_eq!(wiped.get(), 1);
}

fn natural(x: wide::Wide) -> BigUint {
    (BigUint::from(x[1]) << 128) + x[0]
}

fn wides() -> impl Strategy<Value = wide::Wide> {
    [words(), words(), words(), words()]
        .prop_map(|[a, b, c, d]| [u128::from(a) << 64 | u128::from(b), u128::from(c) << 64 | u128::from(d)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn wide_numbers_are_big_integers(a in wides(), b in wides(), places in 0_u64..128) {
        let (x, y, modulus) = (natural(a), natural(b), BigUint::from(1_u32) << 256_u32);
        prop_assert_eq!(natural(wide::add(a, b)), (&x + &y) % &modulus);
        prop_assert_eq!(natural(wide::subtract(a, b)), (&x + &modulus - &y) % &modulus);
        prop_assert_eq!(wide::at_most(a, b), u64::from(x <= y));
        prop_assert_eq!(wide::at_most([a[0], b[1]], b), u64::from(a[0] <= b[0]));
        prop_assert_eq!(wide::at_most(a, a), 1);
        prop_assert_eq!((wide::select(1, a, b), wide::select(0, a, b)), (a, b));
        prop_assert_eq!(natural(wide::shifted_left(a[0], places)), BigUint::from(a[0]) << places);
        prop_assert_eq!(BigUint::from(wide::shifted_right(a, places)), (x >> places) % (BigUint::from(1_u32) << 128_u32));
    }

    #[test]
    fn wide_products_and_quotients_are_those_of_big_integers(
        a in [words(), words(), words(), words(), words(), words()], b in wides(),
        quotient in words(), divisor in words(), rest in words(),
    ) {
        let factor = a.iter().rev().fold(BigUint::ZERO, |sum, &word| (sum << 64) + word);
        prop_assert_eq!(natural(wide::high_product(&a, b)), (factor * natural(b)) >> 384);
        let divisor = (divisor >> 1) + 1;
        let dividend = u128::from(quotient) * u128::from(divisor) + u128::from(rest % divisor);
        prop_assert_eq!(wide::quotient(dividend, divisor), quotient);
    }
}
