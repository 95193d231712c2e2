//! Local randomizers: every user sends one symbol, whose distribution loses exactly the epsilon that is certified.
//!
//! All of them have one form. Each item favors some of the symbols, the same share w / k of them for every item. A coin
//! ([`Favor`]) decides whether a report is one of the item's own symbols, and then it is uniform among these; or
//! uniform among the others. Coins are integers over 2^128 that are rounded toward privacy, and the uniform draws are
//! exact. So every distribution is exactly rational, and the largest ratio of two items' probabilities is that of the coin.
//!
//! | randomizer | symbols | an item favors |
//! |---|---|---|
//! | [`RandomizedResponse`] | the k items | itself |
//! | [`SubsetSelection`] | the sets of w of the k items | the sets it is in |
//! | [`HadamardResponse`] | K columns of Sylvester's matrix | those where its row is +1 |
//!
//! Which item a user has is secret: reports take the same instructions and addresses for every one, those outside the
//! range included. They stand for a public default item.
//!
//! Paper: [GKM21, Lemma 13], [GKM21, Theorem 29], [GKM21, Algorithm 4].

pub mod favor;
pub mod hadamard;
pub mod randomized_response;
pub mod subset;

pub use favor::Favor;
pub use hadamard::{HadamardResponse, walsh_hadamard};
pub use randomized_response::{RandomizedResponse, bits_of_rows};
pub use subset::SubsetSelection;

use crate::{Error, Result, control::Control, ct, ct::Secret, rng::Source};

/// The most items that a histogram is made of.
pub const ITEMS_LIMIT: u64 = 1 << 24;

/// Random bytes asked for at a time.
const BLOCK_BYTES: usize = 1 << 14;

/// The items 0, ..., count - 1 with a public default.
#[derive(Debug, Clone, Copy)]
struct Items {
    count: u64,
    default: u64,
}

impl Items {
    fn new(count: u64, default: u64, limit: u64) -> Result<Self> {
        if count < 2 || count > limit {
            return Err(Error::invalid("n_items", format!("must be from 2 to {limit}; got {count}")));
        }
        if default >= count {
            let message = format!("must be one of the items 0, ..., {}; got {default}", count - 1);
            return Err(Error::invalid("default", message));
        }
        Ok(Self { count, default })
    }

    /// The item itself, or the default in place of what is none. Secret: `item` and the result.
    fn read(self, item: i64) -> u64 {
        userdp_ct_local_item(item, self.count, self.default)
    }
}

ct::kernel! {
    /// `item` if it is from 0 to `count` - 1, otherwise `default`. Secret: `item` and the result. Public: the rest.
    pub fn userdp_ct_local_item(item: i64, count: u64, default: u64) -> u64 {
        // Negative items are above all counts.
        let item = item.cast_unsigned();
        ct::select(ct::less(item, count), item, default)
    }
}

/// Calls `report` for every item, with `width` random bytes of its own and the place of its `symbol_words` words.
///
/// Secret: the items, the bytes and the reports. Public: how many there are.
fn report_each(
    items: &[i64],
    (width, symbol_words): (usize, usize),
    source: &mut Source,
    reports: &mut [i64],
    control: &Control,
    mut report: impl FnMut(i64, &[u8], &mut Source, &mut [i64]) -> Result<()>,
) -> Result<()> {
    if items.len().checked_mul(symbol_words) != Some(reports.len()) {
        return Err(Error::invalid("reports", "must have a place for every item"));
    }
    let block = (BLOCK_BYTES / width).max(1);
    let mut bytes = Secret::new(vec![0; width * block.min(items.len())]);
    for (items, places) in items.chunks(block).zip(reports.chunks_mut(block * symbol_words)) {
        control.advance(items.len())?;
        let drawn = &mut bytes[..width * items.len()];
        source.fill(drawn)?;
        for ((&item, bytes), place) in
            items.iter().zip(drawn.chunks_exact(width)).zip(places.chunks_exact_mut(symbol_words))
        {
            report(item, bytes, source, place)?;
        }
    }
    Ok(())
}

/// The first 16 bytes as a word of 128 bits, and what follows them. Secret: the bytes.
fn split_word(bytes: &[u8]) -> (u128, &[u8]) {
    let (word, rest) = bytes.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
    (u128::from_le_bytes(*word), rest)
}
