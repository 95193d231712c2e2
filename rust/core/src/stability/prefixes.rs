//! Walks over the cells of a grid whose coordinates sum to at most a limit.

/// The cells of a grid, in lexicographic order, whose coordinates sum to at most `limit`.
#[derive(Debug, Clone)]
pub(super) struct Prefixes<'a> {
    /// Largest coordinate of each axis.
    last: &'a [usize],
    strides: &'a [usize],
    limit: usize,
    /// Coordinates of the current cell.
    pub(super) coordinates: Vec<usize>,
    /// Index of the current cell.
    pub(super) cell: usize,
    /// Sum of its coordinates.
    pub(super) size: usize,
}

impl<'a> Prefixes<'a> {
    /// Starts at the origin.
    pub(super) fn new(last: &'a [usize], strides: &'a [usize], limit: usize) -> Self {
        Self { last, strides, limit, coordinates: vec![0; last.len()], cell: 0, size: 0 }
    }

    /// Moves to the next cell; returns the first axis whose coordinate changed (the later ones are zero), or None at
    /// the end.
    pub(super) fn advance(&mut self) -> Option<usize> {
        for axis in (0..self.last.len()).rev() {
            let coordinate = &mut self.coordinates[axis];
            if *coordinate < self.last[axis] && self.size < self.limit {
                *coordinate += 1;
                self.cell += self.strides[axis];
                self.size += 1;
                return Some(axis);
            }
            self.size -= *coordinate;
            self.cell -= *coordinate * self.strides[axis];
            *coordinate = 0;
        }
        None
    }
}
