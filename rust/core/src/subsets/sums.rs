//! The sums of the statistics of exactly r deleted users, and users whose deletion leaves one of them.

use crate::{
    Error, Result,
    control::Control,
    exact::{Integer, Natural},
    memory::{limited, zeros},
};
use num_traits::{ToPrimitive, Zero};

/// Bits of the table of sums that can be reached, one layer for every kind and one before them: one gigabyte.
pub const MAX_REACHABLE_BITS: u64 = 1 << 33;

/// Words between two looks for a cancellation.
const BLOCK: usize = 1 << 16;

/// Bits of a range of statistics that is written out in a message.
const WRITTEN_BITS: u64 = 1 << 14;

const ADVICE: &str = "fewer deletions, or a narrower statistic_range";

/// Users of one statistic.
#[derive(Debug, Clone, Copy)]
struct Kind {
    count: u64,
    /// Their statistic less the smallest one.
    step: u64,
}

/// The ways to delete `deletions` users whose statistics are integers, by the sum that is deleted.
///
/// # Formula
/// Sums are counted from `deletions` times the smallest statistic. With w = `deletions` (largest - smallest) + 1, bit
/// c w + s of a layer says that c users can have the sum s. One more user of a kind is a shift by w + step: sums of at
/// most `deletions` users stay below w, so that no bit gets from one c to another. Shifts by 1, 2, 4, ... users and by
/// the rest reach every number of users of a kind ("binary splitting" of bounded knapsacks: Kellerer, Pferschy and
/// Pisinger, *Knapsack Problems*, 2004, section 7.1).
#[derive(Debug, Clone)]
pub struct DeletedSums {
    kinds: Vec<Kind>,
    deletions: u64,
    /// Bits for one number of users.
    width: u64,
    /// Words of a layer.
    words: usize,
}

impl DeletedSums {
    /// From one statistic of each kind of users, and how many users are of it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for lists of different lengths or fewer users than deletions; [`Error::TooLarge`] for
    /// a table of more than [`MAX_REACHABLE_BITS`].
    pub fn new(statistics: &[Integer], counts: &[u64], deletions: u64) -> Result<Self> {
        if statistics.len() != counts.len() {
            let (given, wanted) = (counts.len(), statistics.len());
            return Err(Error::invalid(
                "counts",
                format!("must be {wanted}, as the statistics; got {given}"),
            ));
        }
        let users: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        if users < u128::from(deletions) {
            let message = format!("must be at most the number of users, {users}; got {deletions}");
            return Err(Error::invalid("r", message));
        }
        let smallest = statistics.iter().min().cloned().unwrap_or_default();
        let spread = statistics.iter().max().map_or_else(Integer::zero, |largest| largest - &smallest);
        let spread = spread.magnitude();
        let width = spread * deletions + 1_u64;
        let layer = &width * (Natural::from(deletions) + 1_u64);
        if &layer * (counts.len() + 1) > Natural::from(MAX_REACHABLE_BITS) {
            return Err(too_large(deletions, users, spread));
        }
        let (Some(width), Some(words)) = (width.to_u64(), layer.to_u64().map(|bits| bits.div_ceil(64)))
        else {
            return Err(too_large(deletions, users, spread));
        };
        let step = |statistic: &Integer| match deletions {
            0 => 0,                                                    // of any size, since nobody is deleted
            _ => (statistic - &smallest).to_u64().unwrap_or(u64::MAX), // at most the spread, below 2^33
        };
        let kinds = statistics.iter().zip(counts);
        Ok(Self {
            kinds: kinds.map(|(statistic, &count)| Kind { count, step: step(statistic) }).collect(),
            deletions,
            width,
            words: usize::try_from(words).map_err(|_| too_large(deletions, users, spread))?,
        })
    }

    /// The sums of `deletions` users that occur, largest first.
    ///
    /// # Errors
    /// [`Error::Memory`]; [`Error::Canceled`].
    pub fn sums(&self, control: &Control) -> Result<Vec<u64>> {
        let mut layer = self.nobody()?;
        for &kind in &self.kinds {
            self.delete(&mut layer, kind, control)?;
        }
        let first = self.deletions * self.width;
        let skipped = usize::try_from(first / 64).unwrap_or(usize::MAX).min(layer.len());
        let number = layer[skipped..].iter().map(|word| word.count_ones() as usize).sum();
        let mut sums = limited("r", number, ADVICE)?;
        for (index, &word) in layer.iter().enumerate().skip(skipped).rev() {
            let mut rest = word;
            while rest != 0 {
                let bit = 63 - u64::from(rest.leading_zeros());
                rest ^= 1 << bit;
                let place = 64 * index as u64 + bit;
                if first <= place && place - first < self.width {
                    sums.push(place - first);
                }
            }
            if index % BLOCK == 0 {
                control.check()?;
            }
        }
        Ok(sums)
    }

    /// How many users of each kind are deleted for one of the sums: of the last kind as few as possible, then of the one
    /// before it, and so on.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a sum that does not occur; [`Error::Memory`]; [`Error::Canceled`].
    pub fn parts(&self, sum: u64, control: &Control) -> Result<Vec<u64>> {
        let entries = self.words.saturating_mul(self.kinds.len() + 1);
        let mut layers = limited("r", entries, ADVICE)?;
        let mut layer = self.nobody()?;
        layers.extend_from_slice(&layer);
        for &kind in &self.kinds {
            self.delete(&mut layer, kind, control)?;
            layers.extend_from_slice(&layer);
        }
        let (mut users, mut rest) = (self.deletions, sum);
        if !self.reached(&layer, users, rest) {
            return Err(Error::invalid("sum", "is not one of those that occur"));
        }
        let mut parts = vec![0; self.kinds.len()];
        for ((kind, part), before) in
            self.kinds.iter().zip(&mut parts).zip(layers.chunks_exact(self.words)).rev()
        {
            // Some number of users of this kind was added, and a sum was there before them.
            while !self.reached(before, users, rest) && *part < kind.count && users > 0 && rest >= kind.step {
                *part += 1;
                users -= 1;
                rest -= kind.step;
            }
            control.check()?;
        }
        Ok(parts)
    }

    /// The layer before all kinds: nobody has the sum 0.
    fn nobody(&self) -> Result<Vec<u64>> {
        let mut layer = zeros("r", self.words, ADVICE)?;
        layer[0] = 1;
        Ok(layer)
    }

    /// True when so many users can have the sum.
    fn reached(&self, layer: &[u64], users: u64, sum: u64) -> bool {
        let place = users * self.width + sum.min(self.width - 1);
        let word = usize::try_from(place / 64).ok().and_then(|index| layer.get(index));
        sum < self.width && word.is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    /// Adds what users of one kind make possible.
    fn delete(&self, layer: &mut [u64], kind: Kind, control: &Control) -> Result<()> {
        let (mut rest, mut copies) = (kind.count.min(self.deletions), 1);
        while rest > 0 {
            copies = copies.min(rest);
            // At most `deletions` copies of steps at most the spread: within the layer.
            or_shifted(layer, copies * (self.width + kind.step), control)?;
            rest -= copies;
            copies *= 2;
        }
        Ok(())
    }
}

/// Takes the bits together with the same bits so many places higher; what leaves at the upper end is dropped.
fn or_shifted(layer: &mut [u64], shift: u64, control: &Control) -> Result<()> {
    let (whole, bits) = (usize::try_from(shift / 64).unwrap_or(usize::MAX), shift % 64);
    // (x << 1) << (63 - 0) is 0 where a shift by 64 would not be one.
    let moved = |word: u64, below: u64| word << bits | below >> 1 >> (63 - bits);
    // From the upper end down: what is read has not been changed. Blocks are read below where they are written.
    let mut end = layer.len();
    while end > whole {
        control.check()?;
        let start = (end - whole.clamp(1, BLOCK).min(end - whole)).max(whole);
        if whole == 0 {
            let below = if start > 0 { layer[start - 1] } else { 0 };
            layer[start] |= moved(layer[start], below);
        } else {
            let (source, target) = layer.split_at_mut(start);
            let source = &source[..end - whole];
            let target = &mut target[..end - start];
            let skipped = source.len() - target.len();
            let below = if skipped > 0 { source[skipped - 1] } else { 0 };
            target[0] |= moved(source[skipped], below);
            for (word, pair) in target[1..].iter_mut().zip(source[skipped..].windows(2)) {
                *word |= moved(pair[1], pair[0]);
            }
        }
        end = start;
    }
    Ok(())
}

fn too_large(deletions: u64, users: u128, spread: &Natural) -> Error {
    let bits = spread.bits();
    let range = if bits > WRITTEN_BITS { format!("over 2^{}", bits - 1) } else { spread.to_string() };
    Error::too_large(format!(
        "the sums of {deletions} of {users} statistics in a range of {range} take a table of over 8,589,934,592 bits. \
         Cheaper: {ADVICE}"
    ))
}
