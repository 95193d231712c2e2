//! From pmfs to unstable sets: every bad pair of kept sets marks what its two deletions have in common.

use super::StableFamily;
use crate::{
    Result,
    control::Control,
    exact::{Level, Rational},
    family::{BadPairs, PmfMatrix, list_bad_pairs},
};
use std::ops::Range;

/// A family while its bad pairs are being listed.
struct Marking<'a> {
    family: &'a StableFamily,
    /// Deletion vectors in the order of the rows.
    vectors: &'a [u16],
}

impl Marking<'_> {
    fn vector(&self, row: usize) -> &[u16] {
        let types = self.family.types();
        &self.vectors[row * types..][..types]
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

    fn weight(&self, a: &Vec<u16>, b: &Vec<u16>) -> u64 {
        a.iter().zip(b).map(|(&x, &y)| u64::from(x.min(y))).sum()
    }

    fn settled(&self, a: &Vec<u16>, b: &Vec<u16>) -> bool {
        self.family.covers(a, b)
    }

    fn settled_row(&self, row: usize, block: &Vec<u16>) -> bool {
        self.family.covers(self.vector(row), block)
    }

    /// When no set up to the limit is stable, none will be again.
    fn finished(&self, control: &Control) -> Result<bool> {
        Ok(self.family.smallest_stable_size(control)?.is_none())
    }

    fn known(&self, i: usize, j: usize) -> bool {
        self.family.covers(self.vector(i), self.vector(j))
    }

    fn receive(&self, i: usize, j: usize) {
        self.family.mark(self.vector(i), self.vector(j));
    }
}

impl StableFamily {
    /// Marks every pair of kept sets that is not within (epsilon, delta); row i of the matrix belongs to row i of
    /// [`StableFamily::vectors`]. Rows listed as `incompatible` are far from every kept set, themselves included.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] when the matrix has another number of rows, or a row is out of range;
    /// [`crate::Error::Cancelled`].
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
        let marking = Marking { family: self, vectors: &vectors };
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
