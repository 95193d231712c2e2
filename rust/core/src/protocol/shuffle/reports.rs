//! What users send, and the order in which it arrives.

use crate::{Error, Result, control::Control, ct::Secret, memory::zeros, rng::Source, sampler::Table};

/// The most messages of one call.
const MESSAGES_LIMIT: usize = 1 << 28;

/// Users share a call for random bits up to this many draws.
const DRAWS: usize = 1 << 12;

/// Random words asked for at once.
const WORDS: usize = 1 << 10;

/// The messages of some users, one user after the other.
#[derive(Debug, Default)]
pub struct Reports {
    /// The bucket that each message names; in increasing order within a user.
    pub messages: Vec<u32>,
    /// How many messages each user sends.
    pub counts: Vec<u64>,
}

/// Every user's messages: for each bucket b, x + Z messages of b, Z a draw of the table, x = 1 when b is the user's
/// item, or, for the complement, when it is not.
///
/// An item that is no bucket has x = 0 (complement: 1) everywhere. The draws read the whole table, whatever they are;
/// what is done with them shows how many messages there are, as sending them does.
///
/// # Errors
/// [`Error::InvalidArgument`] without buckets; [`Error::TooLarge`] for more than 2^28 messages or
/// buckets, [`Error::Memory`]; as [`Source::fill`];
/// [`Error::Canceled`].
pub fn reports(
    table: &Table,
    items: &[i64],
    buckets: u32,
    complement: bool,
    source: &mut Source,
    control: &Control,
) -> Result<Reports> {
    if buckets == 0 {
        return Err(Error::invalid("n_items", "must be at least 1"));
    }
    let mut sent = Reports::default();
    let size = buckets as usize;
    let together = (DRAWS / size).clamp(1, items.len().max(1));
    let mut noise: Secret<Vec<i64>> = Secret::new(zeros("n_items", size * together, "take fewer items")?);
    for users in items.chunks(together) {
        table.draw_many(source, &mut noise[..size * users.len()], control)?;
        for (&item, extras) in users.iter().zip(noise.chunks(size)) {
            let before = sent.messages.len();
            for (bucket, &extra) in (0..buckets).zip(extras) {
                let input = u64::from((i64::from(bucket) == item) != complement);
                let copies = usize::try_from(extra.unsigned_abs() + input).unwrap_or(usize::MAX);
                if copies > MESSAGES_LIMIT - sent.messages.len() {
                    return Err(Error::too_large(format!(
                        "more than {MESSAGES_LIMIT} messages in one call; take fewer users at a time"
                    )));
                }
                sent.messages.resize(sent.messages.len() + copies, bucket);
            }
            sent.counts.push((sent.messages.len() - before) as u64);
        }
    }
    Ok(sent)
}

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
