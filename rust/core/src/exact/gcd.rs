//! Greatest common divisors of long integers, by Lehmer's method.
//!
//! `num-integer` takes them bit by bit, which is slow from some thousand bits on. Here the quotients of Euclid's algorithm are
//! found from the leading 62 bits as long as they are certain (Knuth, The Art of Computer Programming, volume 2, 4.5.2,
//! Algorithm L), and about 30 bits are taken off both numbers at a time.

use crate::{Result, control::Control};
use num_bigint::BigUint;
use num_integer::Integer as _;
use num_rational::Ratio;
use num_traits::{One, ToPrimitive, Zero};

/// Leading bits that are looked at: sums of them and of cofactors fit into an `i64`.
const LEADING: u64 = 62;

/// A fraction of numbers that are not negative.
pub type Share = Ratio<BigUint>;

/// The greatest common divisor; of 0 and x it is x.
pub fn gcd(a: &BigUint, b: &BigUint) -> BigUint {
    let (mut a, mut b) = if a >= b { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) };
    while b.bits() > 64 {
        (a, b) = steps(&a, &b).map_or_else(
            || (b.clone(), &a % &b),
            |[[p, q], [r, s]]| (combined(&a, p, &b, q), combined(&a, r, &b, s)),
        );
    }
    match b.to_u64() {
        Some(0) | None => a,
        Some(short) => {
            let rest = (a % short).to_u64().unwrap_or(0);
            BigUint::from(short.gcd(&rest))
        }
    }
}

/// What several steps of Euclid's algorithm for a >= b do to them, as rows of a matrix; none where not one is certain.
fn steps(a: &BigUint, b: &BigUint) -> Option<[[i64; 2]; 2]> {
    let shift = a.bits() - LEADING;
    let leading = |number: &BigUint| (number >> shift).to_i64();
    let (mut x, mut y) = (leading(a)?, leading(b)?);
    let [mut p, mut q, mut r, mut s] = [1_i64, 0, 0, 1];
    while y + r != 0 && y + s != 0 {
        let quotient = (x + p) / (y + r);
        if quotient != (x + q) / (y + s) {
            break;
        }
        // Cofactors stay below the leading bits of a, and so do their products.
        (p, r) = (r, p - quotient * r);
        (q, s) = (s, q - quotient * s);
        (x, y) = (y, x - quotient * y);
    }
    (q != 0).then_some([[p, q], [r, s]])
}

/// a x + b y for cofactors of which at most one is negative, where that is at least 0.
fn combined(a: &BigUint, x: i64, b: &BigUint, y: i64) -> BigUint {
    let (first, second) = (a * x.unsigned_abs(), b * y.unsigned_abs());
    match (x < 0, y < 0) {
        (true, _) => second - first,
        (_, true) => first - second,
        _ => first + second,
    }
}

/// The least common multiple of numbers that are not 0, 1 of none; none when it is longer than so many bits.
///
/// # Errors
/// [`Error::Canceled`].
///
/// [`Error::Canceled`]: crate::Error::Canceled
pub fn lcm<'a>(
    numbers: impl IntoIterator<Item = &'a BigUint>,
    most_bits: u64,
    control: &Control,
) -> Result<Option<BigUint>> {
    let mut found = BigUint::one();
    for number in numbers.into_iter().filter(|number| !number.is_one()) {
        control.check()?;
        let rest = &found % number;
        if !rest.is_zero() {
            found *= number / gcd(number, &rest);
        }
        if found.bits() > most_bits {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

/// A fraction in lowest terms. The denominator must not be 0.
pub fn reduced(numerator: BigUint, denominator: BigUint) -> Share {
    if numerator.is_zero() {
        return Share::new_raw(numerator, BigUint::one());
    }
    let common = gcd(&numerator, &denominator);
    if common.is_one() {
        Share::new_raw(numerator, denominator)
    } else {
        Share::new_raw(numerator / &common, denominator / common)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of a linear congruential generator, of a random length up to so many bits.
    fn number(state: &mut u64, most: u64) -> BigUint {
        let mut next = || {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 32) as u32
        };
        let bits = u64::from(next()) % most + 1;
        let words = (0..=bits / 32).map(|_| next()).collect();
        BigUint::new(words) >> (32 - bits % 32)
    }

    #[test]
    fn agrees_with_the_binary_algorithm() {
        let mut state = 1;
        for round in 0..2000 {
            let most = [70, 130, 400, 3000][round % 4];
            let common = number(&mut state, most);
            let (a, b) = (number(&mut state, most) * &common, number(&mut state, most) * &common);
            assert_eq!(gcd(&a, &b), a.gcd(&b), "{a} {b}");
            assert_eq!(gcd(&b, &a), a.gcd(&b));
            // Neighbors of multiples make quotients that leading bits do not tell.
            let near = &a * 3_u32 + 1_u32;
            assert_eq!(gcd(&near, &a), near.gcd(&a));
        }
    }

    #[test]
    fn ends_and_powers() {
        let power = |exponent: u32| BigUint::one() << exponent;
        let zero = BigUint::zero();
        assert_eq!(gcd(&zero, &zero), zero);
        for exponent in [0, 1, 61, 62, 63, 64, 65, 127, 128, 129, 1000, 4000] {
            let x = power(exponent);
            assert_eq!(gcd(&x, &zero), x);
            assert_eq!(gcd(&zero, &x), x);
            assert_eq!(gcd(&x, &x), x);
            for other in [0, 63, 64, 65, 129, 999] {
                assert_eq!(gcd(&x, &power(other)), power(exponent.min(other)));
                let (below, above) = (&x - 1_u32, &power(other) + 1_u32);
                assert_eq!(gcd(&below, &above), below.gcd(&above));
            }
        }
        // Fibonacci numbers have the most steps.
        let (mut a, mut b) = (BigUint::one(), BigUint::one());
        for _ in 0..3000 {
            (a, b) = (&a + &b, a);
        }
        assert!(gcd(&a, &b).is_one());
    }

    #[test]
    fn multiples_and_lowest_terms() {
        let numbers: Vec<BigUint> = [4_u32, 6, 1, 10, 15, 60].map(BigUint::from).to_vec();
        let lcm = |numbers: &[BigUint], most_bits| lcm(numbers, most_bits, &Control::new()).unwrap();
        assert_eq!(lcm(&numbers, 6), Some(BigUint::from(60_u32)));
        assert_eq!(lcm(&numbers, 5), None);
        assert_eq!(lcm(&[], 1), Some(BigUint::one()));
        let long = BigUint::from(3_u32).pow(400);
        assert_eq!(lcm(&[long.clone(), &long * 7_u32, &long * 21_u32], 1 << 10), Some(&long * 21_u32));
        let half = reduced(long.clone(), &long * 2_u32);
        assert_eq!((half.numer(), half.denom()), (&BigUint::one(), &BigUint::from(2_u32)));
        assert_eq!(*reduced(BigUint::zero(), long).denom(), BigUint::one());
    }
}
