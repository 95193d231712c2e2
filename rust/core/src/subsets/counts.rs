//! Count vectors: how many users of each kind are chosen, for a given total.

use crate::{
    Error, Result,
    exact::{Natural, binomial::binomial},
    memory::zeros,
};

/// Entries of the table of numbers of vectors.
const LARGEST_TABLE: usize = 1 << 27;

/// All vectors t with 0 <= `t_j` <= `counts_j` and a given sum, in colexicographic order (the one with the smaller
/// last entry comes first, and so on down); at most 2^64 - 2 of them.
#[derive(Debug, Clone)]
pub struct CountVectors {
    counts: Vec<u64>,
    total: u64,
    /// Row j, entry s: the number of vectors over the first j kinds with sum s, stopping at 2^64 - 1.
    numbers: Vec<u64>,
}

impl CountVectors {
    /// The vectors of one sum.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when the counts sum to less than `total`; [`Error::TooLarge`] for 2^64 - 1 vectors or
    /// more, or too large a table.
    pub fn new(counts: &[u64], total: u64) -> Result<Self> {
        let available: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        if available < u128::from(total) {
            let message = format!("must be at most the number of users, {available}; got {total}");
            return Err(Error::invalid("r", message));
        }
        let width = usize::try_from(total).unwrap_or(usize::MAX).saturating_add(1);
        if width.saturating_mul(counts.len() + 1) > LARGEST_TABLE {
            let kinds = counts.len();
            return Err(Error::too_large(format!(
                "counting the ways to choose {total} users of {kinds} kinds takes a table of {kinds} x {width} \
                 entries, more than {LARGEST_TABLE}; fewer deletions or fewer kinds of users are cheaper"
            )));
        }
        let mut numbers: Vec<u64> = zeros("r", width * (counts.len() + 1), "delete fewer users")?;
        numbers[0] = 1;
        for (kind, &count) in counts.iter().enumerate() {
            let (before, after) = numbers[kind * width..].split_at_mut(width);
            let window = usize::try_from(count).unwrap_or(usize::MAX).min(width - 1);
            // A sliding sum, in u128: at most 2^27 terms below 2^64.
            let mut sum = 0_u128;
            for entry in 0..width {
                sum += u128::from(before[entry]);
                if entry > window {
                    sum -= u128::from(before[entry - window - 1]);
                }
                after[entry] = u64::try_from(sum).unwrap_or(u64::MAX);
            }
        }
        let vectors = Self { counts: counts.to_vec(), total, numbers };
        if vectors.count() == u64::MAX {
            let message = format!("{available} users have over 2^64 - 2 count vectors of sum {total}");
            return Err(Error::too_large(message));
        }
        Ok(vectors)
    }

    fn number(&self, kinds: usize, sum: u64) -> u64 {
        // Sums are at most the total, which is a usize.
        #[allow(clippy::cast_possible_truncation)]
        self.numbers[kinds * (self.total as usize + 1) + sum as usize]
    }

    /// How many there are; at least one.
    pub fn count(&self) -> u64 {
        self.number(self.counts.len(), self.total)
    }

    /// The number of kinds.
    pub fn kinds(&self) -> usize {
        self.counts.len()
    }

    /// The vector of a rank below [`CountVectors::count`].
    ///
    /// # Panics
    /// For a larger rank.
    pub fn unrank(&self, mut rank: u64) -> Vec<u64> {
        assert!(rank < self.count(), "rank below the count");
        let mut vector = vec![0; self.counts.len()];
        let mut rest = self.total;
        for kind in (0..vector.len()).rev() {
            // A number that stopped at 2^64 - 1 is above every rank.
            loop {
                let here = self.number(kind, rest);
                if rank < here {
                    break;
                }
                rank -= here;
                rest -= 1;
                vector[kind] += 1;
            }
        }
        vector
    }

    /// The rank of a vector.
    ///
    /// # Panics
    /// When it is not one of these.
    pub fn rank(&self, vector: &[u64]) -> u64 {
        assert!(
            vector.len() == self.counts.len()
                && vector.iter().zip(&self.counts).all(|(part, count)| part <= count),
            "parts within the counts"
        );
        assert!(vector.iter().sum::<u64>() == self.total, "the right sum");
        let mut rest = self.total;
        let mut rank = 0;
        for (kind, &part) in vector.iter().enumerate().rev() {
            rank += (rest - part + 1..=rest).map(|sum| self.number(kind, sum)).sum::<u64>();
            rest -= part;
        }
        rank
    }

    /// Steps to the next vector; false at the end.
    pub fn step(&self, vector: &mut [u64]) -> bool {
        let mut below = 0;
        for kind in 0..vector.len() {
            if below > 0 && vector[kind] < self.counts[kind] {
                vector[kind] += 1;
                // The first arrangement of the rest fills the first kinds.
                let mut rest = below - 1;
                for (part, &count) in vector[..kind].iter_mut().zip(&self.counts) {
                    *part = rest.min(count);
                    rest -= *part;
                }
                return true;
            }
            below += vector[kind];
        }
        false
    }

    /// How many sets of labeled users have this vector: the product of (`counts_j` choose `t_j`).
    pub fn multiplicity(&self, vector: &[u64]) -> Natural {
        self.counts.iter().zip(vector).map(|(&count, &part)| binomial(count, part)).product()
    }
}
