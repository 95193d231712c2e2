//! From pmfs to unstable sets: every bad pair of kept sets marks what its two deletions have in common.

use super::{StableFamily, prefixes::Prefixes};
use crate::{
    Result,
    control::Control,
    exact::{Level, Rational},
    family::{BadPairs, PmfMatrix, list_bad_pairs},
};
use std::{
    ops::Range,
    sync::atomic::{AtomicU16, Ordering},
};

/// A family while its bad pairs are being listed.
struct Marking<'a> {
    family: &'a StableFamily,
    /// Deletion vectors in the order of the rows.
    vectors: &'a [u16],
    /// What was unsettled at the last look, see [`StableFamily::lowest_stable`].
    lowest_stable: Box<[AtomicU16]>,
}

impl Marking<'_> {
    fn vector(&self, row: usize) -> &[u16] {
        let types = self.family.types();
        &self.vectors[row * types..][..types]
    }

    /// True when all that matters below min(a, b) is unstable.
    fn settled_vectors(&self, a: &[u16], b: &[u16]) -> bool {
        self.family.covers(a, b) || self.family.covers_up_to_limit(a, b, &self.lowest_stable)
    }
}

impl BadPairs for Marking<'_> {
    /// The component-wise largest deletions of the block: whatever it marks is below.
    type Corner = Vec<u16>;

    fn corner(&self, rows: Range<usize>) -> Vec<u16> {
        let mut corner = vec![0; self.family.types()];
        for row in rows {
            corner.iter_mut().zip(self.vector(row)).for_each(|(most, &x)| *most = x.max(*most));
        }
        corner
    }

    fn join(&self, a: &Vec<u16>, b: &Vec<u16>) -> Vec<u16> {
        a.iter().zip(b).map(|(&x, &y)| x.max(y)).collect()
    }

    /// Sets of the largest size that matters come first: they settle the larger ones for all that matters.
    fn weight(&self, a: &Vec<u16>, b: &Vec<u16>) -> u64 {
        let size: u64 = a.iter().zip(b).map(|(&x, &y)| u64::from(x.min(y))).sum();
        let limit = self.family.limit() as u64;
        if size < limit { size } else { u64::MAX - (size - limit) }
    }

    fn settled(&self, a: &Vec<u16>, b: &Vec<u16>) -> bool {
        self.settled_vectors(a, b)
    }

    fn settled_row(&self, row: usize, block: &Vec<u16>) -> bool {
        self.settled_vectors(self.vector(row), block)
    }

    /// When no set up to the limit is stable, none will be again.
    fn finished(&self, control: &Control) -> Result<bool> {
        for (known, lowest) in self.lowest_stable.iter().zip(self.family.lowest_stable(control)?) {
            known.store(lowest, Ordering::Relaxed);
        }
        Ok(self.family.smallest_stable_size(control)?.is_none())
    }

    fn known(&self, i: usize, j: usize) -> bool {
        self.settled_vectors(self.vector(i), self.vector(j))
    }

    fn receive(&self, i: usize, j: usize) {
        self.family.mark(self.vector(i), self.vector(j));
    }
}

/// No stable vector below.
const NONE: u16 = u16::MAX;

impl StableFamily {
    /// For every cell c of the grid, the lowest last coordinate of a stable vector of size `limit` whose other coordinates
    /// are at most c: vectors of size at least `limit` matter as far as there is such a vector below them.
    fn lowest_stable(&self, control: &Control) -> Result<Vec<u16>> {
        let (last, strides) = (self.last(), self.strides());
        let most = self.counts()[last.len()].min(self.deletions());
        let mut lowest = vec![NONE; self.cells()];
        let mut prefixes = Prefixes::new(last, strides, self.limit());
        loop {
            let rest = self.limit() - prefixes.size;
            if rest <= most && rest >= self.height(prefixes.cell) {
                // Sizes fit 16 bits, or the family is refused.
                lowest[prefixes.cell] = u16::try_from(rest).unwrap_or(NONE);
            }
            if prefixes.advance().is_none() {
                break;
            }
        }
        for (&stride, &last) in strides.iter().zip(last) {
            control.check()?;
            for block in lowest.chunks_exact_mut(stride * (last + 1)) {
                for cell in stride..block.len() {
                    block[cell] = block[cell].min(block[cell - stride]);
                }
            }
        }
        Ok(lowest)
    }

    /// True when every s <= min(a, b) of a size up to the limit was unstable when `lowest_stable` was made.
    fn covers_up_to_limit(&self, a: &[u16], b: &[u16], lowest_stable: &[AtomicU16]) -> bool {
        let size: usize = a.iter().zip(b).map(|(&x, &y)| usize::from(x.min(y))).sum();
        let (cell, highest) = self.locate(a, b);
        size >= self.limit() && highest < lowest_stable[cell].load(Ordering::Relaxed)
    }

    /// Marks the pairs of kept sets that are not within (epsilon, delta), as far as sets up to the limit matter; row i of the matrix belongs to row i of
    /// [`StableFamily::vectors`]. Rows listed as `incompatible` are far from every kept set, themselves included.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] when the matrix has another number of rows, or a row is out of range;
    /// [`crate::Error::Canceled`].
    pub fn mark_bad_pairs(
        &self,
        matrix: &PmfMatrix<'_>,
        level: &Level,
        delta: &Rational,
        incompatible: &[usize],
        control: &Control,
    ) -> Result<()> {
        let vectors = self.vectors(control)?;
        let rows = vectors.len() / self.types();
        if matrix.rows() != rows {
            let message = format!("has {} rows for {rows} deletion vectors", matrix.rows());
            return Err(crate::Error::invalid("matrix", message));
        }
        let lowest_stable = self.lowest_stable(control)?.into_iter().map(AtomicU16::new).collect();
        let marking = Marking { family: self, vectors: &vectors, lowest_stable };
        for &row in incompatible {
            if row >= rows {
                return Err(crate::Error::invalid("incompatible", format!("row {row} is out of range")));
            }
            // A pair with any other row would mark less than the row with itself.
            marking.receive(row, row);
        }
        list_bad_pairs(matrix, level, delta, &marking, control)
    }
}

#[cfg(test)]
#[path = "bad_pairs_tests.rs"]
mod tests;
