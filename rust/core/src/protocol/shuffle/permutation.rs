//! Uniform random orders.

use crate::{Result, control::Control, rng::Source};

/// Random words asked for at once.
const WORDS: usize = 1 << 10;

/// Puts a slice into a uniformly random order (Fisher and Yates).
///
/// # Numerics
/// A place below b is the high half of the 128-bit product of b and 64 random bits; products whose low half is below
/// 2^64 mod b are drawn again, so that every place has the same number of words (Lemire 2019).
///
/// # Errors
/// As [`Source::fill`]; [`crate::Error::Canceled`].
pub fn permute<T>(items: &mut [T], source: &mut Source, control: &Control) -> Result<()> {
    let mut bytes = vec![0; 8 * WORDS.min(2 * items.len())];
    let mut used = bytes.len();
    for last in (1..items.len()).rev() {
        let bound = last as u64 + 1;
        let place = loop {
            if used == bytes.len() {
                control.advance(WORDS)?;
                source.fill(&mut bytes)?;
                used = 0;
            }
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[used..used + 8]);
            used += 8;
            let product = u128::from(u64::from_le_bytes(word)) * u128::from(bound);
            let (high, low) = (usize::try_from(product >> 64), product & u128::from(u64::MAX));
            if low >= u128::from(bound.wrapping_neg() % bound) {
                break high.unwrap_or(last); // at most last
            }
        };
        items.swap(last, place);
    }
    Ok(())
}
