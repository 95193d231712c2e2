//! Signed numbers in fixed point, of a fixed number of words: what a curve's values at many points are computed in.
//!
//! Nothing is allocated, which is what makes such numbers many times as fast as those of any length.

use crate::exact::{Interval, dyadic::Dyadic};
use num_bigint::{BigInt, Sign};

/// A multiple of 2^-64F, in two's complement of N words, the lowest first. Its magnitude is below 2^(64 (N - F) - 1), which
/// callers answer for: sums and products wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fixed<const N: usize, const F: usize>([u64; N]);

/// x in units of 2^-width, rounded down.
pub(super) fn floor_units(x: &Dyadic, width: usize) -> BigInt {
    let shift = x.exponent + width as i64;
    if shift >= 0 { &x.mantissa << shift as usize } else { &x.mantissa >> shift.unsigned_abs() as usize }
}

/// x in units of 2^-width, rounded up.
pub(super) fn ceil_units(x: &Dyadic, width: usize) -> BigInt {
    -floor_units(&x.negated(), width)
}

impl<const N: usize, const F: usize> Default for Fixed<N, F> {
    fn default() -> Self {
        Self::ZERO
    }
}

impl<const N: usize, const F: usize> Fixed<N, F> {
    /// Bits behind the point.
    pub(super) const WIDTH: usize = 64 * F;
    pub(super) const ZERO: Self = Self([0; N]);

    pub(super) fn one() -> Self {
        let mut words = [0; N];
        words[F] = 1;
        Self(words)
    }

    /// So many units of 2^-64F.
    pub(super) fn units(units: u64) -> Self {
        let mut words = [0; N];
        words[0] = units;
        Self(words)
    }

    /// A number of units, which must be in range.
    pub(super) fn from_units(units: &BigInt) -> Self {
        debug_assert!(units.bits() < 64 * N as u64);
        let mut words = [0; N];
        for (word, digit) in words.iter_mut().zip(units.magnitude().iter_u64_digits()) {
            *word = digit;
        }
        let magnitude = Self(words);
        if units.sign() == Sign::Minus { magnitude.negated() } else { magnitude }
    }

    /// The ends of an interval, outwards.
    pub(super) fn ends(interval: &Interval) -> (Self, Self) {
        let (lower, upper) =
            (floor_units(&interval.lower, Self::WIDTH), ceil_units(&interval.upper, Self::WIDTH));
        (Self::from_units(&lower), Self::from_units(&upper))
    }

    pub(super) fn is_negative(&self) -> bool {
        self.0[N - 1] >> 63 == 1
    }

    pub(super) fn is_positive(&self) -> bool {
        !self.is_negative() && self.0 != [0; N]
    }

    #[inline]
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut words = self.0;
        super::masses::add(&mut words, &other.0);
        Self(words)
    }

    #[inline]
    pub(super) fn minus(&self, other: &Self) -> Self {
        let mut words = [0; N];
        super::masses::subtract(&self.0, &other.0, &mut words);
        Self(words)
    }

    #[inline]
    pub(super) fn negated(&self) -> Self {
        Self::ZERO.minus(self)
    }

    /// The larger of both.
    pub(super) fn max(&self, other: &Self) -> Self {
        if self.minus(other).is_negative() { *other } else { *self }
    }

    /// The product, rounded down. A call costs little beside it, and copies of it would be long.
    #[inline(never)]
    pub(super) fn times(&self, other: &Self) -> Self {
        let (a, b) = (&self.0, &other.0);
        let mut words = [0_u64; N];
        // The lowest word of each of the first F partial sums is behind the last place.
        for &x in &a[..F] {
            let mut carry = (u128::from(x) * u128::from(b[0])).wrapping_add(u128::from(words[0])) >> 64;
            for j in 1..N {
                let product = u128::from(x) * u128::from(b[j]);
                carry = carry.wrapping_add(product).wrapping_add(u128::from(words[j]));
                words[j - 1] = carry as u64;
                carry >>= 64;
            }
            words[N - 1] = carry as u64;
        }
        for (place, &x) in a[F..].iter().enumerate() {
            let mut carry = 0_u128;
            for (word, &y) in words[place..].iter_mut().zip(b) {
                let product = u128::from(x) * u128::from(y);
                carry = carry.wrapping_add(product).wrapping_add(u128::from(*word));
                *word = carry as u64;
                carry >>= 64;
            }
        }
        // A negative number is short of what its words say by 2^64N.
        for (one, other) in [(self, other), (other, self)] {
            if one.is_negative() {
                let mut rest = [0; N];
                super::masses::subtract(&words[N - F..], &other.0[..F], &mut rest[..F]);
                words[N - F..].copy_from_slice(&rest[..F]);
            }
        }
        Self(words)
    }

    /// The product of a number of at least 0 and a factor over 2^shift, rounded down; shift < 64.
    #[inline]
    pub(super) fn times_short(&self, factor: u64, shift: u32) -> Self {
        debug_assert!(!self.is_negative());
        let (mut words, mut carry) = ([0; N], 0_u128);
        for (word, &x) in words.iter_mut().zip(&self.0) {
            carry = carry.wrapping_add(u128::from(x) * u128::from(factor));
            *word = carry as u64;
            carry >>= 64;
        }
        if shift > 0 {
            for i in 0..N {
                let above = if i + 1 < N { words[i + 1] } else { carry as u64 };
                words[i] = words[i] >> shift | above << (64 - shift);
            }
        }
        Self(words)
    }

    /// x times a power of 2, rounded down, for x of at least 0.
    pub(super) fn shifted(&self, left: i64) -> Self {
        debug_assert!(!self.is_negative());
        let (far, near) = (left.div_euclid(64), left.rem_euclid(64) as u32);
        let word = |i: i64| usize::try_from(i).ok().and_then(|i| self.0.get(i)).copied().unwrap_or(0);
        let mut words = [0; N];
        for (i, out) in words.iter_mut().enumerate() {
            let i = i as i64 - far;
            *out = word(i) << near | if near > 0 { word(i - 1) >> (64 - near) } else { 0 };
        }
        Self(words)
    }

    /// How many units 2^-64F of 1 there are in a number of at least 0, as such units.
    pub(super) fn whole(&self) -> Self {
        let mut words = [0; N];
        words[..N - F].copy_from_slice(&self.0[F..]);
        Self(words)
    }

    /// The number of bits of what is stored, for numbers of at least 0.
    pub(super) fn bits(&self) -> i64 {
        let zeros = self.0.iter().rev().take_while(|&&word| word == 0).count();
        if zeros == N {
            0
        } else {
            64 * (N - zeros) as i64 - i64::from(self.0[N - 1 - zeros].leading_zeros())
        }
    }

    /// floor(2^places x) for a number from 0 to 2^40, and places from 0 to 20.
    #[inline]
    pub(super) fn floor_scaled(&self, places: u32) -> Option<u64> {
        let small = self.0[F] < 1 << 40 && self.0[F + 1..].iter().all(|&word| word == 0);
        small.then(
            || if places == 0 { self.0[F] } else { self.0[F] << places | self.0[F - 1] >> (64 - places) },
        )
    }

    /// min(ceil(2^b x), 2^b) for x of at least 0 and b = 64 words - 8, in words; a negative x counts as 0.
    pub(super) fn ceil_mass(&self, out: &mut [u64]) {
        let limbs = out.len();
        out.fill(0);
        if self.is_negative() {
            return;
        }
        // 2^b x in the words from F - limbs on, but for 8 bits.
        let drop = F - limbs;
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.0[drop + i] >> 8 | self.0[drop + i + 1] << 56;
        }
        let rest = self.0[..drop].iter().any(|&word| word != 0) || self.0[drop] << 56 != 0;
        let mut carry = rest;
        for out in out.iter_mut() {
            (*out, carry) = out.overflowing_add(u64::from(carry));
        }
        let whole = carry || self.0[F] >> 8 != 0 || self.0[F + 1..].iter().any(|&word| word != 0);
        if whole || out[limbs - 1] >> 56 != 0 {
            out.fill(0);
            out[limbs - 1] = 1 << 56;
        }
    }
}

/// Calls `function::<N, F>` for the first pair with so many bits behind the point, and before it with a sign.
macro_rules! with_fixed {
    ($fraction:expr, $whole:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let (fraction, whole): (f64, f64) = ($fraction, $whole);
        $crate::composition::fixed::with_fixed!(
            @ fraction, whole, $function, ($($argument),*),
            (4, 3) (5, 4) (6, 5) (8, 6) (10, 6) (12, 9) (16, 10) (20, 14) (24, 14) (32, 22) (40, 22) (64, 44)
        )
    }};
    (@ $fraction:ident, $whole:ident, $function:ident, $arguments:tt, $(($n:literal, $f:literal))*) => {
        $(if $fraction <= 64.0 * f64::from($f) && $whole <= 64.0 * f64::from($n - $f) - 1.0 {
            $crate::composition::fixed::with_fixed!(@@ $function, $n, $f, $arguments)
        } else)* {
            Err($crate::Error::too_large("resolution: such fine cells at such large losses need numbers of more bits"))
        }
    };
    (@@ $function:ident, $n:literal, $f:literal, ($($argument:expr),*)) => { $function::<$n, $f>($($argument),*) };
}
pub(super) use with_fixed;

#[cfg(test)]
mod tests {
    use super::*;
    use num_traits::{One, Zero};

    fn integer<const N: usize, const F: usize>(x: &Fixed<N, F>) -> BigInt {
        let unsigned = x.0.iter().rev().fold(BigInt::zero(), |sum, &word| (sum << 64) + word);
        if x.is_negative() { unsigned - (BigInt::one() << (64 * N)) } else { unsigned }
    }

    /// Numbers of all sizes and both signs, ends of the range of words among them.
    fn numbers<const N: usize>(count: usize) -> Vec<BigInt> {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let mut numbers = vec![BigInt::zero(), BigInt::one(), -BigInt::one()];
        for place in 1..N {
            let power = BigInt::one() << (64 * place);
            numbers.extend([&power - 1_u8, power.clone(), -&power - 1_u8, -power]);
        }
        numbers.extend((0..count).map(|_| {
            let words: BigInt = (0..N).fold(BigInt::zero(), |sum, _| (sum << 64) + next());
            let small = words >> (2 + next() as usize % (64 * N - 2));
            if next() % 2 == 0 { -small } else { small }
        }));
        numbers
    }

    fn operations_are_those_of_integers<const N: usize, const F: usize>() {
        let numbers = numbers::<N>(40);
        let half = BigInt::one() << (64 * N - 1);
        for a in &numbers {
            let x = Fixed::<N, F>::from_units(a);
            assert_eq!(integer(&x), *a);
            assert_eq!(integer(&x.negated()), -a);
            assert_eq!((x.is_negative(), x.is_positive()), (a.sign() == Sign::Minus, a.sign() == Sign::Plus));
            for b in &numbers {
                let y = Fixed::from_units(b);
                // Floors, of negative numbers as well.
                let wanted = (a * b) >> (64 * F);
                if wanted < half && wanted >= -&half {
                    assert_eq!(integer(&x.times(&y)), wanted, "{a} {b}");
                }
                if a + b < half && a + b >= -&half && a - b < half && a - b >= -&half {
                    assert_eq!(integer(&x.plus(&y)), a + b);
                    assert_eq!(integer(&x.minus(&y)), a - b);
                    assert_eq!(integer(&x.max(&y)), a.max(b).clone());
                }
            }
            if x.is_negative() {
                continue;
            }
            assert_eq!(x.bits(), a.bits() as i64);
            assert_eq!(integer(&x.whole()), a >> (64 * F));
            for shift in [0, 1, 63, 64, 65, 130] {
                assert_eq!(integer(&x.shifted(-shift)), a >> shift as usize);
                if (a.clone() << shift as usize) < half {
                    assert_eq!(integer(&x.shifted(shift)), a << shift as usize);
                }
            }
            for (factor, shift) in [(0, 0), (3, 0), (u64::MAX, 16), (12345, 63)] {
                let wanted = (a * factor) >> shift as usize;
                if wanted < half {
                    assert_eq!(integer(&x.times_short(factor, shift)), wanted);
                }
            }
            if (a.clone() >> (64 * F)) < BigInt::one() << 40 {
                for places in [0, 4, 7] {
                    let wanted = a.clone() >> (64 * F - places as usize);
                    assert_eq!(x.floor_scaled(places).map(BigInt::from), Some(wanted));
                }
            }
        }
    }

    #[test]
    fn operations_agree_with_integers_of_any_length() {
        operations_are_those_of_integers::<4, 3>();
        operations_are_those_of_integers::<5, 4>();
        operations_are_those_of_integers::<8, 6>();
        operations_are_those_of_integers::<20, 14>();
    }

    #[test]
    fn masses_are_rounded_up_and_stay_within_one() {
        for a in numbers::<5>(400) {
            let x = Fixed::<5, 4>::from_units(&a);
            for limbs in [2, 3] {
                let mut out = vec![7; limbs];
                x.ceil_mass(&mut out);
                let drop = 256 - (64 * limbs - 8);
                let wanted: BigInt = -((-&a) >> drop);
                let wanted = wanted.clamp(BigInt::zero(), BigInt::one() << (64 * limbs - 8));
                let found = out.iter().rev().fold(BigInt::zero(), |sum, &word| (sum << 64) + word);
                assert_eq!(found, wanted, "{a}");
            }
        }
    }
}
