//! What a user's rows with one key add up to.

use crate::{Error, Result};

/// Cells by user and rank of the key: the number of rows of each, and the sum of each of their values.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    /// The user's place in its part, and the rank of the key in the lower half.
    places: Vec<u64>,
    rows: Vec<u64>,
    /// Cell after cell.
    sums: Vec<i128>,
    values: usize,
}

/// The cells of one user, in increasing order of ranks, each rank once.
#[derive(Debug, Clone, Copy)]
pub struct UserCells<'a> {
    places: &'a [u64],
    rows: &'a [u64],
    sums: &'a [i128],
    values: usize,
}

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell<'a> {
    /// The rank of the key.
    pub rank: u32,
    /// How many rows there are, at least 1.
    pub rows: u64,
    /// The sum of each value.
    pub sums: &'a [i128],
}

/// The two halves of a place.
#[allow(clippy::cast_possible_truncation)]
fn halves(place: u64) -> (u32, u32) {
    ((place >> 32) as u32, place as u32)
}

impl<'a> UserCells<'a> {
    /// How many keys the user has rows with.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// A cell by its index.
    pub fn cell(&self, index: usize) -> Cell<'a> {
        Cell {
            rank: halves(self.places[index]).1,
            rows: self.rows[index],
            sums: &self.sums[index * self.values..(index + 1) * self.values],
        }
    }
}

impl Cells {
    pub(super) fn new(values: usize) -> Self {
        Self { places: Vec::new(), rows: Vec::new(), sums: Vec::new(), values }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.rows.clear();
        self.sums.clear();
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, more: usize) -> Result<()> {
        let reserved = self
            .places
            .try_reserve(more)
            .and_then(|()| self.rows.try_reserve(more))
            .and_then(|()| self.sums.try_reserve(more.saturating_mul(self.values)));
        reserved.map_err(|_| Error::memory("rows: there is no memory for the keys of users"))
    }

    /// Adds a row to the last cell, or to a new one if that is of another place. Places must not decrease.
    pub(super) fn add_row(&mut self, place: u64, values: &[u64]) {
        if self.places.last() == Some(&place) {
            let last = self.places.len() - 1;
            self.rows[last] += 1;
            let start = self.sums.len() - self.values;
            for (sum, &value) in self.sums[start..].iter_mut().zip(values) {
                // Fewer than 2^63 rows of 64-bit integers have sums below 2^126.
                *sum += i128::from(value.cast_signed());
            }
        } else {
            self.places.push(place);
            self.rows.push(1);
            self.sums.extend(values.iter().map(|&value| i128::from(value.cast_signed())));
        }
    }

    /// Adds a cell behind all others.
    fn push(&mut self, place: u64, rows: u64, sums: &[i128]) {
        if self.places.last() == Some(&place) {
            let (last, start) = (self.places.len() - 1, self.sums.len() - self.values);
            self.rows[last] += rows;
            self.sums[start..].iter_mut().zip(sums).for_each(|(sum, more)| *sum += more);
        } else {
            self.places.push(place);
            self.rows.push(rows);
            self.sums.extend_from_slice(sums);
        }
    }

    /// The cells of both, added up where they are of the same place.
    pub(super) fn merged(&self, other: &Self) -> Result<Self> {
        let mut merged = Self::new(self.values);
        merged.reserve(self.len() + other.len())?;
        let (mut i, mut j) = (0, 0);
        while i < self.len() || j < other.len() {
            let first = j == other.len() || i < self.len() && self.places[i] <= other.places[j];
            let (from, at) = if first { (self, &mut i) } else { (other, &mut j) };
            merged.push(
                from.places[*at],
                from.rows[*at],
                &from.sums[*at * self.values..(*at + 1) * self.values],
            );
            *at += 1;
        }
        Ok(merged)
    }

    /// Adds all cells of another one behind these, whose places are all smaller.
    pub(super) fn append(&mut self, other: &Self) -> Result<()> {
        self.reserve(other.len())?;
        self.places.extend_from_slice(&other.places);
        self.rows.extend_from_slice(&other.rows);
        self.sums.extend_from_slice(&other.sums);
        Ok(())
    }

    /// Calls with every user's place in the part and that user's cells.
    pub(super) fn by_user(&self, mut visit: impl FnMut(u32, UserCells<'_>) -> Result<()>) -> Result<()> {
        let mut start = 0;
        for places in self.places.chunk_by(|a, b| halves(*a).0 == halves(*b).0) {
            let range = start..start + places.len();
            start = range.end;
            let sums = &self.sums[range.start * self.values..range.end * self.values];
            let cells = UserCells { places, rows: &self.rows[range], sums, values: self.values };
            visit(halves(places[0]).0, cells)?;
        }
        Ok(())
    }
}
