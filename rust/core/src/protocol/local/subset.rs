//! Subset selection: a set of w items that the item is in, or one that it is not in.

use super::{Favor, Items, report_each, split_word};
use crate::{Error, Result, control::Control, ct, ct::Secret, exact::Level, rng::Source};

/// More items than this are refused: a report has a bit for each, and takes time for each.
pub const SUBSET_ITEMS_LIMIT: u64 = 1 << 16;

/// Bytes of the words that others are drawn with.
const WORD_BYTES: usize = 4;

/// Symbols: the sets of w of the items 0, ..., k - 1, as k bits in words of 64, the lowest bit first.
///
/// # Guarantee
/// The coin says whether the item is in the set. The others in it are drawn in order: with j others to come and r places
/// left the next one is in it with probability r / j, exactly (Fan, Muller and Rezucha, "Development of sampling plans by
/// using sequential (item by item) selection techniques", 1962). So they are uniform among the sets of their size. The
/// item's bit is inserted into theirs. Nothing of this depends on the item, the set or the coin in time or place.
#[derive(Debug, Clone)]
pub struct SubsetSelection {
    items: Items,
    favor: Favor,
    size: u64,
    /// 2^32 mod j, for j = k - 1, ..., 1: which words are rejected.
    rejected: Vec<u64>,
}

impl SubsetSelection {
    /// The randomizer of k items with sets of w.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for k outside 2, ..., [`SUBSET_ITEMS_LIMIT`], a default that is no item, w outside 1,
    /// ..., k - 1, and as [`Favor::new`].
    pub fn new(level: &Level, items: u64, size: u64, default: u64) -> Result<Self> {
        let items = Items::new(items, default, SUBSET_ITEMS_LIMIT)?;
        if size == 0 || size >= items.count {
            return Err(Error::invalid("subset_size", "must be at least 1 and below n_items"));
        }
        Ok(Self {
            items,
            favor: Favor::new(level, size, items.count)?,
            size,
            rejected: (1..items.count).rev().map(|bound| (1 << 32) % bound).collect(),
        })
    }

    /// The coin.
    pub fn favor(&self) -> &Favor {
        &self.favor
    }

    /// Words of one report.
    pub fn words(&self) -> usize {
        self.rejected.len() / 64 + 1
    }

    /// A report of every item, one after the other. Each takes 16 random bytes for the coin and 4 (k - 1) for the set.
    ///
    /// Secret: the items and the reports.
    ///
    /// # Errors
    /// As [`Source::fill`]; [`Error::Canceled`].
    pub fn report_many(
        &self,
        items: &[i64],
        source: &mut Source,
        reports: &mut [i64],
        control: &Control,
    ) -> Result<()> {
        let width = 16 + WORD_BYTES * self.rejected.len();
        let mut words = Secret::new(vec![0_u64; self.rejected.len()]);
        report_each(items, (width, self.words()), source, reports, control, |item, bytes, source, place| {
            let (coin, rest) = split_word(bytes);
            let against = self.favor.against(coin);
            read_words(rest, &mut words);
            let others = self.size.wrapping_sub(against ^ 1);
            userdp_revealed_subset_rejection(self, others, &mut words, source, place)?;
            userdp_ct_local_insert(self.items.read(item), against ^ 1, place);
            Ok(())
        })
    }
}

ct::kernel! {
    /// Writes a bit for each number j = n, ..., 1 whose remainders 2^32 mod j are `rejected`: 1 with probability r / j where
    /// r of `size` ones are left. `words` have 32 bits each. 1 unless one of them is rejected; then the bits mean nothing.
    /// Secret: `size`, `words` and the result. Public: `rejected`.
    pub fn userdp_ct_local_others(size: u64, words: &[u64], rejected: &[u64], bits: &mut [i64]) -> u64 {
        let (mut left, mut accepted, mut bound) = (size, 1, rejected.len() as u64);
        bits.fill(0);
        for ((words, rejected), bits) in words.chunks(64).zip(rejected.chunks(64)).zip(bits) {
            let mut drawn = 0;
            for (place, (&word, &remainder)) in words.iter().zip(rejected).enumerate() {
                let product = word.wrapping_mul(bound);
                let chosen = ct::less(product >> 32, left);
                accepted &= ct::less(product & 0xffff_ffff, remainder) ^ 1;
                left = left.wrapping_sub(chosen);
                drawn |= chosen << place;
                bound = bound.wrapping_sub(1);
            }
            *bits = drawn.cast_signed();
        }
        ct::barrier(accepted)
    }

    /// Moves the bits from place `item` on up by one, and writes `bit` there. Secret: all.
    pub fn userdp_ct_local_insert(item: u64, bit: u64, bits: &mut [i64]) {
        let mut carried = 0;
        for (index, word) in bits.iter_mut().enumerate() {
            let old = word.cast_unsigned();
            let start = (index as u64).wrapping_mul(64);
            // The ones of `below` are the places before the item; all of a word before its, none of one after it.
            let inside = ct::less(item.wrapping_sub(start), 64);
            let before = ct::less(start, item) & (inside ^ 1);
            let own = (1 << (item & 63)) & ct::mask(inside);
            let below = (own.wrapping_sub(1) & ct::mask(inside)) | ct::mask(before);
            let shifted = (old << 1) | carried;
            *word = ((old & below) | (shifted & !below & !own) | (own & ct::mask(bit))).cast_signed();
            carried = old >> 63;
        }
    }
}

ct::revealed! {
    /// The bits of the first words that are accepted: those given, then the source's.
    ///
    /// Revealed: how often one of the words was rejected, which has probability below k^2 / 2^33. Each time all are
    /// replaced, so that those that are accepted are independent of the ones before them. Secret: `size`, and `words`
    /// but for that.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn userdp_revealed_subset_rejection(
        randomizer: &SubsetSelection, size: u64, words: &mut [u64], source: &mut Source, bits: &mut [i64],
    ) -> Result<()> {
        while userdp_ct_local_others(size, words, &randomizer.rejected, bits) == 0 {
            let mut bytes = Secret::new(vec![0; WORD_BYTES * words.len()]);
            source.fill(&mut bytes)?;
            read_words(&bytes, words);
        }
        Ok(())
    }
}

/// The words that bytes stand for. Secret: both.
fn read_words(bytes: &[u8], words: &mut [u64]) {
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<WORD_BYTES>().0) {
        *word = u64::from(u32::from_le_bytes(*bytes));
    }
}
