//! The sums of the statistics of exactly r deleted users, and users whose deletion leaves one of them.

use crate::{
    Error, Result,
    control::Control,
    exact::{Integer, Natural},
    memory::{copied, lengthened, limited},
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

/// The sums that so many users can have, at each place; sum s is bit s, and a row without words has none.
type Layer = Vec<Vec<u64>>;

/// The ways to delete `deletions` users whose statistics are integers, by the sum that is deleted.
///
/// # Formula
/// Sums are counted from `deletions` times the smallest statistic. Row c of a layer has bit s where c users can have the
/// sum s; it is as long as its largest sum asks. One more user of a kind is a shift by its step, from row c to row c + 1.
/// Shifts by 1, 2, 4, ... users and by the rest reach every number of users of a kind ("binary splitting" of bounded
/// knapsacks: Kellerer, Pferschy and Pisinger, *Knapsack Problems*, 2004, section 7.1). Of the last kind only row
/// `deletions` is needed, one shift for each number of its users.
#[derive(Debug, Clone)]
pub struct DeletedSums {
    kinds: Vec<Kind>,
    deletions: u64,
    /// Sums are below it; 1 where there is one sum only, and otherwise `deletions` is below 2^16.
    width: u64,
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
        let width = width.to_u64().ok_or_else(|| too_large(deletions, users, spread))?;
        let step = |statistic: &Integer| match deletions {
            0 => 0,                                                    // of any size, since nobody is deleted
            _ => (statistic - &smallest).to_u64().unwrap_or(u64::MAX), // at most the spread, below 2^33
        };
        let kinds = statistics.iter().zip(counts);
        Ok(Self {
            kinds: kinds.map(|(statistic, &count)| Kind { count, step: step(statistic) }).collect(),
            deletions,
            width,
        })
    }

    /// The sums of `deletions` users that occur, largest first.
    ///
    /// # Errors
    /// [`Error::Memory`]; [`Error::Canceled`].
    pub fn sums(&self, control: &Control) -> Result<Vec<u64>> {
        let (mut layer, mut row) = (nobody(), vec![1]);
        if let (Some((last, others)), true) = (self.kinds.split_last(), self.width > 1) {
            for &kind in others {
                self.delete(&mut layer, kind, control)?;
            }
            row.clear();
            for part in 0..=last.count.min(self.deletions) {
                if let Some(before) = row_of(&layer, self.deletions - part) {
                    or_shifted(&mut row, before, part * last.step, control)?;
                }
            }
        }
        let number = row.iter().map(|word| word.count_ones() as usize).sum();
        let mut sums = limited("r", number, ADVICE)?;
        for (index, &word) in row.iter().enumerate().rev() {
            let mut rest = word;
            while rest != 0 {
                let bit = 63 - u64::from(rest.leading_zeros());
                rest ^= 1 << bit;
                sums.push(64 * index as u64 + bit);
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
        let unreached = || Error::invalid("sum", "is not one of those that occur");
        let (mut users, mut rest) = (self.deletions, sum);
        if self.width == 1 {
            let mut take = |kind: &Kind| {
                let part = kind.count.min(users);
                users -= part;
                part
            };
            return if sum == 0 { Ok(self.kinds.iter().map(&mut take).collect()) } else { Err(unreached()) };
        }
        let (mut layer, mut layers) = (nobody(), limited("r", self.kinds.len(), ADVICE)?);
        for (place, &kind) in self.kinds.iter().enumerate() {
            layers.push(layer.iter().map(|row| copied("r", row)).collect::<Result<Layer>>()?);
            if place + 1 < self.kinds.len() {
                self.delete(&mut layer, kind, control)?;
            }
        }
        let mut parts = vec![0; self.kinds.len()];
        for ((kind, part), before) in self.kinds.iter().zip(&mut parts).zip(&layers).rev() {
            // Some number of users of this kind was added, and a sum was there before them.
            while !reached(before, users, rest) {
                if *part == kind.count || users == 0 || rest < kind.step {
                    return Err(unreached());
                }
                *part += 1;
                users -= 1;
                rest -= kind.step;
            }
            control.check()?;
        }
        Ok(parts)
    }

    /// Adds what users of one kind make possible.
    fn delete(&self, layer: &mut Layer, kind: Kind, control: &Control) -> Result<()> {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let deletions = whole(self.deletions); // below 2^16
        let (mut rest, mut copies) = (deletions.min(whole(kind.count)), 1);
        while rest > 0 {
            copies = copies.min(rest);
            let most = deletions.min(layer.len() - 1 + copies);
            lengthened("r", layer, most + 1)?;
            // From the upper end down: what is read has not been changed.
            for users in (copies..=most).rev() {
                let (before, after) = layer.split_at_mut(users);
                or_shifted(&mut after[0], &before[users - copies], copies as u64 * kind.step, control)?;
            }
            rest -= copies;
            copies *= 2;
        }
        Ok(())
    }
}

/// The layer before all kinds: nobody has the sum 0.
fn nobody() -> Layer {
    vec![vec![1]]
}

/// The sums of so many users.
fn row_of(layer: &Layer, users: u64) -> Option<&Vec<u64>> {
    usize::try_from(users).ok().and_then(|users| layer.get(users))
}

/// True when so many users can have the sum.
fn reached(layer: &Layer, users: u64, sum: u64) -> bool {
    let index = usize::try_from(sum / 64).unwrap_or(usize::MAX);
    row_of(layer, users).and_then(|row| row.get(index)).is_some_and(|word| word >> (sum % 64) & 1 == 1)
}

/// Adds the bits of one row to another, so many places higher.
fn or_shifted(target: &mut Vec<u64>, source: &[u64], shift: u64, control: &Control) -> Result<()> {
    control.check()?;
    let (Some(first), Some(last)) = (source.first(), source.last()) else { return Ok(()) };
    let (whole, bits) = (usize::try_from(shift / 64).unwrap_or(usize::MAX), shift % 64);
    let end = whole + source.len();
    if target.len() <= end {
        lengthened("r", target, end + 1)?;
    }
    // (x >> 1) >> (63 - 0) is 0 where a shift by 64 would not be one.
    let carried = |below: u64| below >> 1 >> (63 - bits);
    target[whole] |= first << bits;
    for start in (1..source.len()).step_by(BLOCK) {
        let pairs = source[start - 1..source.len().min(start + BLOCK)].windows(2);
        for (word, pair) in target[whole + start..].iter_mut().zip(pairs) {
            *word |= pair[1] << bits | carried(pair[0]);
        }
        control.check()?;
    }
    target[end] |= carried(*last);
    while target.last() == Some(&0) {
        target.pop();
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
