//! The family of stable deletion vectors, as the heights of the unstable ones.
//!
//! Paper: [GKKMMZ23, Observation 36].

use super::order::Vectors;
use crate::{Error, Result, control::Control};
use std::sync::{
    OnceLock,
    atomic::{AtomicU16, Ordering},
};

/// Heights take 2^28 bytes at most.
const MAX_CELLS: usize = 1 << 27;
/// Deletion vectors take 2^29 bytes at most.
const MAX_VECTOR_ENTRIES: u128 = 1 << 28;
/// Deletions at most, so that heights fit 16 bits.
const MAX_DELETIONS: usize = 1 << 15;
/// More types than this cannot have a grid that fits, unless nearly all of them are empty.
const MAX_TYPES: usize = 256;

/// How many deletion vectors there are: t <= counts with sum `deletions`; 2^128 - 1 stands for that many or more.
pub(super) fn number_of_vectors(counts: &[usize], deletions: usize) -> u128 {
    let mut ways = vec![0_u128; deletions + 1];
    ways[0] = 1;
    for &count in counts {
        for total in (1..=deletions).rev() {
            let fewer = &ways[total.saturating_sub(count)..total];
            ways[total] = fewer.iter().fold(ways[total], |sum, &ways| sum.saturating_add(ways));
        }
    }
    ways[deletions]
}

/// Which deletion vectors s are unstable: those below min(t, t') for a marked pair of vectors t, t' of size D.
///
/// A vector says how many users of each type are deleted. The grid has an axis for each type but the most frequent
/// one, and a cell holds the number of unstable last coordinates: the unstable vectors are closed downwards, so one
/// look-up decides. Marking works from many threads at once.
#[derive(Debug)]
pub struct StableFamily {
    /// The type of each axis; the last one, the most frequent type, is the axis of heights.
    types: Vec<usize>,
    /// Users of each type, by axis.
    counts: Vec<usize>,
    deletions: usize,
    limit: usize,
    /// How many deletion vectors there are.
    rows: usize,
    /// Largest coordinate of each axis but the last.
    last: Vec<usize>,
    strides: Vec<usize>,
    /// (s, h) is unstable exactly when h < heights\[s\].
    heights: Box<[AtomicU16]>,
    vectors: OnceLock<Vectors>,
}

impl StableFamily {
    /// A family in which everything is stable.
    ///
    /// `counts` are the users of each type, `deletions` is D, and sizes of sets up to `limit` matter.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no types, more deletions than users, or a limit above the deletions;
    /// [`Error::TooLarge`] when the grid or the list of deletion vectors does not fit.
    pub fn new(counts: &[usize], deletions: usize, limit: usize) -> Result<Self> {
        if counts.is_empty() {
            return Err(Error::invalid("counts", "is empty; at least one type of users is needed"));
        }
        let users = counts.iter().try_fold(0_usize, |sum, &count| sum.checked_add(count));
        if users.is_none_or(|users| users > u32::MAX as usize) {
            return Err(Error::too_large(
                "counts: more than 2^32 users; there is no way to decide stability for them",
            ));
        }
        if users.is_some_and(|users| deletions > users) {
            let users = users.unwrap_or(0);
            return Err(Error::invalid(
                "deletions",
                format!("{deletions} exceeds the number of users, {users}"),
            ));
        }
        if limit > deletions {
            return Err(Error::invalid("limit", format!("{limit} exceeds the {deletions} deletions")));
        }
        let (cells, rows) = check_size(counts, deletions)?;
        let mut types: Vec<usize> = (0..counts.len()).collect();
        types.sort_by_key(|&kind| std::cmp::Reverse(counts[kind]));
        types.rotate_left(1);
        let counts: Vec<usize> = types.iter().map(|&kind| counts[kind]).collect();
        let last: Vec<usize> = counts[..counts.len() - 1].iter().map(|&count| count.min(deletions)).collect();
        let mut strides = vec![1; last.len()];
        for axis in (1..last.len()).rev() {
            strides[axis - 1] = strides[axis] * (last[axis] + 1);
        }
        let heights = (0..cells).map(|_| AtomicU16::new(0)).collect();
        Ok(Self { types, counts, deletions, limit, rows, last, strides, heights, vectors: OnceLock::new() })
    }

    /// Users of each type, by axis.
    pub(super) fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Users of each type.
    pub fn counts_by_type(&self) -> Vec<usize> {
        self.by_type(&self.counts)
    }

    /// The number of users.
    pub fn users(&self) -> usize {
        self.counts.iter().sum()
    }

    /// The number of types.
    pub fn types(&self) -> usize {
        self.counts.len()
    }

    /// The number of deletion vectors.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// D.
    pub fn deletions(&self) -> usize {
        self.deletions
    }

    /// The largest size of a stable set that matters.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Largest coordinate of each axis but the last.
    pub(super) fn last(&self) -> &[usize] {
        &self.last
    }

    /// The number of cells.
    pub(super) fn cells(&self) -> usize {
        self.heights.len()
    }

    /// Strides of the axes but the last in the grid of heights.
    pub(super) fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// All deletion vectors of size D, a row each, u16 after u16 in the order of the types.
    ///
    /// The order makes contiguous blocks (the first half, the second half, and so on) boxes as tight as possible.
    ///
    /// # Errors
    /// [`Error::Canceled`].
    pub fn vectors(&self, control: &Control) -> Result<Vec<u16>> {
        let vectors = self.arranged(control)?;
        let mut rows = vec![0; vectors.len() * self.types()];
        for (row, vector) in rows.chunks_exact_mut(self.types()).zip(vectors.iter()) {
            for (&kind, &coordinate) in self.types.iter().zip(vector) {
                row[kind] = coordinate;
            }
        }
        Ok(rows)
    }

    /// The same vectors by axis, made once.
    pub(super) fn arranged(&self, control: &Control) -> Result<&Vectors> {
        if let Some(vectors) = self.vectors.get() {
            return Ok(vectors);
        }
        let vectors = Vectors::new(&self.counts, self.deletions, control)?;
        Ok(self.vectors.get_or_init(|| vectors))
    }

    /// The cell and last coordinate of min(a, b), given in the order of the types.
    pub(super) fn locate(&self, a: &[u16], b: &[u16]) -> (usize, u16) {
        let at = |kind: usize| a[kind].min(b[kind]);
        let (&highest, others) = self.types.split_last().unwrap_or((&0, &[]));
        let cell =
            others.iter().zip(&self.strides).map(|(&kind, stride)| usize::from(at(kind)) * stride).sum();
        (cell, at(highest))
    }

    /// Makes every s <= min(a, b) unstable, for two deletion vectors given in the order of the types. Returns false
    /// when all of them were already.
    ///
    /// # Panics
    /// When a and b are not deletion vectors of this family.
    pub fn mark(&self, a: &[u16], b: &[u16]) -> bool {
        let (mut cell, height) = self.locate(a, b);
        let height = height + 1;
        let raise = |cell: usize| {
            let height_there = &self.heights[cell];
            height_there.load(Ordering::Relaxed) < height
                && height_there.fetch_max(height, Ordering::Relaxed) < height
        };
        if !raise(cell) {
            return false;
        }
        // Whoever raises a cell raises all its lower neighbors, so that in the end the heights are closed downwards
        // whatever the threads do.
        let mut coordinates: Vec<u16> =
            self.types[..self.last.len()].iter().map(|&j| a[j].min(b[j])).collect();
        let mut path = Vec::new();
        let mut axis = 0;
        loop {
            if axis == coordinates.len() {
                let Some(lowered) = path.pop() else { return true };
                coordinates[lowered] += 1;
                cell += self.strides[lowered];
                axis = lowered + 1;
            } else if coordinates[axis] > 0 && raise(cell - self.strides[axis]) {
                coordinates[axis] -= 1;
                cell -= self.strides[axis];
                path.push(axis);
                axis = 0;
            } else {
                axis += 1;
            }
        }
    }

    /// True when every s <= min(a, b) is already unstable; while other threads mark, false may come too often.
    ///
    /// # Panics
    /// When a and b are not below deletion vectors of this family.
    pub fn covers(&self, a: &[u16], b: &[u16]) -> bool {
        let (cell, height) = self.locate(a, b);
        height < self.heights[cell].load(Ordering::Relaxed)
    }

    /// True when sets with this deletion vector, in the order of the types, are stable. After
    /// [`StableFamily::mark_bad_pairs`] this is the answer for sets up to the limit; unstable larger ones may not be marked.
    pub fn is_stable(&self, s: &[usize]) -> bool {
        let coordinates = || self.types.iter().map(|&kind| s[kind]);
        if coordinates().zip(&self.last).any(|(coordinate, &last)| coordinate > last) {
            return true; // no marked vector is that large
        }
        let cell: usize =
            coordinates().zip(&self.strides).map(|(coordinate, stride)| coordinate * stride).sum();
        coordinates().next_back().is_none_or(|last| last >= self.height(cell))
    }

    /// The number of unstable last coordinates in a cell.
    pub(super) fn height(&self, cell: usize) -> usize {
        usize::from(self.heights[cell].load(Ordering::Relaxed))
    }

    /// A vector by axis, in the order of the types.
    pub(super) fn by_type(&self, vector: &[usize]) -> Vec<usize> {
        let mut reordered = vec![0; vector.len()];
        for (&kind, &coordinate) in self.types.iter().zip(vector) {
            reordered[kind] = coordinate;
        }
        reordered
    }
}

/// The number of cells and the number of deletion vectors, if the family fits.
fn check_size(counts: &[usize], deletions: usize) -> Result<(usize, usize)> {
    let advice = "describe users by fewer types, or use an epsilon or delta that needs fewer deletions";
    if deletions > MAX_DELETIONS {
        return Err(Error::too_large(format!(
            "{deletions} deletions where {MAX_DELETIONS} are possible; {advice}"
        )));
    }
    if counts.len() > MAX_TYPES {
        let message = format!("{} types of users where {MAX_TYPES} are possible; {advice}", counts.len());
        return Err(Error::too_large(message));
    }
    let most = counts.iter().max().copied().unwrap_or(0).min(deletions) + 1;
    let cells: f64 =
        counts.iter().map(|&count| (count.min(deletions) + 1) as f64).product::<f64>() / most as f64;
    if cells > MAX_CELLS as f64 {
        let message = format!(
            "{} types of users and {deletions} deletions make a grid of {cells:.2e} cells where {MAX_CELLS} are \
             possible; {advice}, or look for a smallest stable set only (minimum hitting set)",
            counts.len()
        );
        return Err(Error::too_large(message));
    }
    let vectors = number_of_vectors(counts, deletions);
    if vectors.saturating_mul(counts.len() as u128) > MAX_VECTOR_ENTRIES {
        let message = format!(
            "{} types of users and {deletions} deletions make {:.2e} deletion vectors where {:.2e} are possible; {advice}",
            counts.len(),
            vectors as f64,
            MAX_VECTOR_ENTRIES as f64 / counts.len() as f64,
        );
        return Err(Error::too_large(message));
    }
    let kept = counts.iter().map(|&count| count.min(deletions) + 1);
    Ok((kept.product::<usize>() / most, usize::try_from(vectors).unwrap_or(usize::MAX)))
}
