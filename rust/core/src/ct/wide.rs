//! Unsigned integers of 256 bits in constant time, as the low and the high 128 bits.
//!
//! Secret: all arguments and results, where nothing else is said.

#![allow(clippy::cast_possible_truncation)] // words are taken out of wider numbers

use super::{at_most_wide, mask};

/// Low and high 128 bits.
pub type Wide = [u128; 2];

/// a + b modulo 2^256.
#[inline(always)]
pub fn add(a: Wide, b: Wide) -> Wide {
    let (low, carry) = a[0].overflowing_add(b[0]);
    [low, a[1].wrapping_add(b[1]).wrapping_add(u128::from(carry))]
}

/// a - b modulo 2^256.
#[inline(always)]
pub fn subtract(a: Wide, b: Wide) -> Wide {
    let (low, borrow) = a[0].overflowing_sub(b[0]);
    [low, a[1].wrapping_sub(b[1]).wrapping_sub(u128::from(borrow))]
}

/// 1 when a <= b, otherwise 0.
#[inline(always)]
pub fn at_most(a: Wide, b: Wide) -> u64 {
    // The borrow of b - a.
    let low = b[0].overflowing_sub(a[0]).1;
    let (high, first) = b[1].overflowing_sub(a[1]);
    let second = high.overflowing_sub(u128::from(low)).1;
    (u64::from(first) | u64::from(second)) ^ 1
}

/// `yes` for the bit 1 and `no` for 0.
#[inline(always)]
pub fn select(bit: u64, yes: Wide, no: Wide) -> Wide {
    let mask = mask_wide(bit);
    [no[0] ^ ((yes[0] ^ no[0]) & mask), no[1] ^ ((yes[1] ^ no[1]) & mask)]
}

/// All ones for 1 and zero for 0.
#[inline(always)]
pub fn mask_wide(bit: u64) -> u128 {
    from_words(mask(bit), mask(bit))
}

/// x 2^places, for places below 128.
///
/// Made of shifts of words below 64: how a compiler shifts more than a word by a secret is its own business.
#[inline(always)]
pub fn shifted_left(x: u128, places: u64) -> Wide {
    let (low, high) = words(x);
    let (left, right, skip) = (places as u32 & 63, (places as u32 & 63) ^ 63, mask(places >> 6));
    let shifted = [
        low.wrapping_shl(left),
        high.wrapping_shl(left) | (low >> 1).wrapping_shr(right),
        (high >> 1).wrapping_shr(right),
    ];
    [
        from_words(shifted[0] & !skip, (shifted[1] & !skip) | (shifted[0] & skip)),
        from_words((shifted[2] & !skip) | (shifted[1] & skip), shifted[2] & skip),
    ]
}

/// floor(x / 2^places) modulo 2^128, for places below 128.
#[inline(always)]
pub fn shifted_right(x: Wide, places: u64) -> u128 {
    let ((first, second), (third, fourth)) = (words(x[0]), words(x[1]));
    let (right, left, skip) = (places as u32 & 63, (places as u32 & 63) ^ 63, mask(places >> 6));
    let taken = |near: u64, far: u64| (near & !skip) | (far & skip);
    let (low, middle, high) = (taken(first, second), taken(second, third), taken(third, fourth));
    from_words(
        low.wrapping_shr(right) | (middle << 1).wrapping_shl(left),
        middle.wrapping_shr(right) | (high << 1).wrapping_shl(left),
    )
}

/// floor(a x / 2^384), for the number a of six words, the lowest first.
#[inline(always)]
pub fn high_product(a: &[u64; 6], x: Wide) -> Wide {
    let ((first, second), (third, fourth)) = (words(x[0]), words(x[1]));
    let mut product = [0_u64; 10];
    for (place, &word) in a.iter().enumerate() {
        let mut carry = 0_u64;
        for (digit, other) in product[place..].iter_mut().zip([first, second, third, fourth]) {
            // At most (2^64 - 1)^2 + 2 (2^64 - 1) = 2^128 - 1.
            let sum = u128::from(word)
                .wrapping_mul(u128::from(other))
                .wrapping_add(u128::from(*digit))
                .wrapping_add(u128::from(carry));
            let (low, high) = words(sum);
            (*digit, carry) = (low, high);
        }
        product[place + 4] = carry;
    }
    [from_words(product[6], product[7]), from_words(product[8], product[9])]
}

/// floor(dividend / divisor), for a divisor of 1 to 2^63 and a quotient below 2^64.
///
/// Bit by bit: processors take a time for divisions that depends on what is divided.
#[inline(always)]
pub fn quotient(dividend: u128, divisor: u64) -> u64 {
    let (mut rest, mut quotient) = (dividend, 0_u64);
    for place in (0..64_u32).rev() {
        let part = u128::from(divisor) << place;
        let fits = at_most_wide(part, rest);
        rest = rest.wrapping_sub(part & mask_wide(fits));
        quotient |= fits << place;
    }
    quotient
}

/// Low and high word.
#[inline(always)]
fn words(x: u128) -> (u64, u64) {
    (x as u64, (x >> 64) as u64)
}

#[inline(always)]
fn from_words(low: u64, high: u64) -> u128 {
    (u128::from(high) << 64) | u128::from(low)
}
