//! The reduced 0/1 matrix.

use crate::{Error, Result};
use std::collections::{HashMap, HashSet};

/// What a column of the given matrix is in the reduced one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// All concepts say the same.
    Constant(bool),
    /// This point, or its negation.
    Point { point: usize, negated: bool },
}

/// Distinct concepts on points that tell some of them apart, no two points alike up to negation.
///
/// Points are bitsets over the concepts. The lowest concept is labeled 0 at every point.
#[derive(Debug, Clone)]
pub struct Concepts {
    count: usize,
    words: usize,
    points: Vec<u64>,
    first_row: Vec<usize>,
    first_column: Vec<usize>,
    columns: Vec<Column>,
}

/// How many bits are set.
pub(super) fn size(bits: &[u64]) -> usize {
    bits.iter().map(|word| word.count_ones() as usize).sum()
}

/// How many bits are set in both.
pub(super) fn common(a: &[u64], b: &[u64]) -> usize {
    a.iter().zip(b).map(|(a, b)| (a & b).count_ones() as usize).sum()
}

impl Concepts {
    /// Reads a matrix row by row: a row is a concept, a column a point.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless all entries are 0 or 1, there is a row and a column, and the entries fill whole
    /// rows.
    pub fn new(entries: &[u8], columns: usize) -> Result<Self> {
        if columns == 0 || entries.is_empty() {
            return Err(Error::invalid("matrix", "must have at least one row and one column"));
        }
        if !entries.len().is_multiple_of(columns) {
            return Err(Error::invalid("matrix", "must have rows of one length"));
        }
        if let Some(entry) = entries.iter().find(|&&entry| entry > 1) {
            return Err(Error::invalid("matrix", format!("entries must be 0 or 1; got {entry}")));
        }
        let mut seen = HashSet::new();
        let mut first_row = Vec::new();
        for (row, concept) in entries.chunks_exact(columns).enumerate() {
            if seen.insert(concept) {
                first_row.push(row);
            }
        }
        let words = first_row.len().div_ceil(64);
        let mut reduced = Self {
            count: first_row.len(),
            words,
            points: Vec::new(),
            first_row,
            first_column: Vec::new(),
            columns: Vec::new(),
        };
        let mut known: HashMap<Vec<u64>, usize> = HashMap::new();
        for column in 0..columns {
            let negated = entries[reduced.first_row[0] * columns + column] == 1;
            let mut bits = vec![0; words];
            for (concept, row) in reduced.first_row.iter().enumerate() {
                if (entries[row * columns + column] == 1) != negated {
                    bits[concept / 64] |= 1 << (concept % 64);
                }
            }
            if size(&bits) == 0 {
                reduced.columns.push(Column::Constant(negated));
                continue;
            }
            let next = reduced.first_column.len();
            let point = *known.entry(bits).or_insert_with_key(|bits| {
                reduced.points.extend_from_slice(bits);
                reduced.first_column.push(column);
                next
            });
            reduced.columns.push(Column::Point { point, negated });
        }
        Ok(reduced)
    }

    /// The number of distinct concepts.
    pub fn concepts(&self) -> usize {
        self.count
    }

    /// The number of points that are left.
    pub fn points(&self) -> usize {
        self.first_column.len()
    }

    /// The first row of the given matrix that is this concept.
    pub fn row_of(&self, concept: usize) -> usize {
        self.first_row[concept]
    }

    /// The first column of the given matrix that is this point.
    pub fn column_of(&self, point: usize) -> usize {
        self.first_column[point]
    }

    /// The concepts labeled 1 at a point.
    pub(super) fn ones(&self, point: usize) -> &[u64] {
        &self.points[point * self.words..(point + 1) * self.words]
    }

    /// What the columns of the given matrix are.
    pub(super) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The first of each kind of column that is not constant, where a point and its negation are two kinds.
    pub fn distinct_columns(&self) -> Vec<usize> {
        let mut seen = HashSet::new();
        let columns = (0..self.columns.len()).filter(|&column| match self.columns[column] {
            Column::Constant(_) => false,
            Column::Point { point, negated } => seen.insert((point, negated)),
        });
        columns.collect()
    }

    /// Is this column of the given matrix the negation of its point?
    pub(super) fn is_negated(&self, column: usize) -> bool {
        matches!(self.columns[column], Column::Point { negated: true, .. })
    }

    /// All concepts.
    pub(super) fn all(&self) -> Box<[u64]> {
        (0..self.words)
            .map(|word| match self.count - 64 * word {
                rest @ 0..64 => (1 << rest) - 1,
                _ => u64::MAX,
            })
            .collect()
    }

    /// The part of a set labeled 0 at a point, and the part labeled 1.
    pub(super) fn split(&self, set: &[u64], point: usize) -> [Box<[u64]>; 2] {
        let ones = self.ones(point);
        [
            set.iter().zip(ones).map(|(set, ones)| set & !ones).collect(),
            set.iter().zip(ones).map(|(set, ones)| set & ones).collect(),
        ]
    }
}
