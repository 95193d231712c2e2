//! Sums over users of the integers of each key.

use crate::{Error, Result, memory::room};

/// How many integers are added for each key, in 64 bits and in 128.
#[derive(Debug, Clone, Copy)]
pub(super) struct Widths {
    pub(super) narrow: usize,
    pub(super) wide: usize,
}

impl Widths {
    /// Bytes of a key's sums.
    pub(super) fn bytes(self) -> usize {
        8 * self.narrow + 16 * self.wide
    }
}

/// Integers of users that are not in the sums yet.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    ranks: Vec<u32>,
    narrow: Vec<i64>,
    wide: Vec<i128>,
}

impl Outgoing {
    pub(super) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Makes room for so many more keys.
    pub(super) fn reserve(&mut self, more: usize, widths: Widths) -> Result<()> {
        let reserved = self
            .ranks
            .try_reserve(more)
            .and_then(|()| self.narrow.try_reserve(more.saturating_mul(widths.narrow)))
            .and_then(|()| self.wide.try_reserve(more.saturating_mul(widths.wide)));
        reserved.map_err(|_| Error::memory("rows: there is no memory for the keys of users"))
    }

    /// Begins the integers of a key, which are added next: as many as there are of each width.
    pub(super) fn key(&mut self, rank: u32) {
        self.ranks.push(rank);
    }

    pub(super) fn narrow(&mut self, integer: i64) {
        self.narrow.push(integer);
    }

    pub(super) fn wide(&mut self, integer: i64) {
        self.wide.push(integer.into());
    }
}

/// The sums of all keys by rank.
#[derive(Debug)]
pub(super) struct Totals {
    narrow: Vec<i64>,
    wide: Vec<i128>,
    widths: Widths,
}

impl Totals {
    pub(super) fn new(keys: usize, widths: Widths) -> Result<Self> {
        fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>> {
            let mut list = room("keys", len)?;
            list.resize(len, T::default());
            Ok(list)
        }
        Ok(Self {
            narrow: zeros(keys.saturating_mul(widths.narrow))?,
            wide: zeros(keys.saturating_mul(widths.wide))?,
            widths,
        })
    }

    /// Adds what users add, and empties it.
    ///
    /// The narrow sums are known to fit, whichever users are in them: an overflow is a bug, and panics.
    pub(super) fn add(&mut self, more: &mut Outgoing) {
        let Widths { narrow, wide } = self.widths;
        for (number, &rank) in more.ranks.iter().enumerate() {
            let at = rank as usize * narrow;
            let integers = &more.narrow[number * narrow..(number + 1) * narrow];
            self.narrow[at..at + narrow].iter_mut().zip(integers).for_each(|(sum, integer)| *sum += integer);
        }
        if wide > 0 {
            for (number, &rank) in more.ranks.iter().enumerate() {
                let at = rank as usize * wide;
                let integers = &more.wide[number * wide..(number + 1) * wide];
                self.wide[at..at + wide].iter_mut().zip(integers).for_each(|(sum, integer)| *sum += integer);
            }
        }
        more.ranks.clear();
        more.narrow.clear();
        more.wide.clear();
    }

    /// Adds the sums of other users.
    pub(super) fn merge(&mut self, other: &Self) {
        self.narrow.iter_mut().zip(&other.narrow).for_each(|(sum, more)| *sum += more);
        self.wide.iter_mut().zip(&other.wide).for_each(|(sum, more)| *sum += more);
    }

    /// A narrow sum of a key.
    pub(super) fn narrow(&self, rank: usize, index: usize) -> i64 {
        self.narrow[rank * self.widths.narrow + index]
    }

    /// A wide sum of a key, clamped to 64 bits: a clamp of whole sums moves no two of them apart.
    pub(super) fn wide(&self, rank: usize, index: usize) -> i64 {
        let sum = self.wide[rank * self.widths.wide + index];
        i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX })
    }
}
