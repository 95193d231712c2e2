//! Walks over the cells of a grid whose coordinates sum to at most a limit.

use crate::exact::Natural;

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

/// Such a walk that carries the product of a number for every coordinate.
#[derive(Debug)]
pub(super) struct Weighted<'a> {
    /// The walk.
    pub(super) at: Prefixes<'a>,
    /// The numbers of each axis.
    rows: &'a [Vec<Natural>],
    /// The start, and its product with the numbers of the first axes.
    products: Vec<Natural>,
}

impl<'a> Weighted<'a> {
    /// Takes a walk that is at its origin, where every number is 1.
    pub(super) fn new(at: Prefixes<'a>, rows: &'a [Vec<Natural>], start: Natural) -> Self {
        let products = vec![start; at.coordinates.len() + 1];
        Self { at, rows, products }
    }

    /// The product at the current cell.
    pub(super) fn weight(&self) -> &Natural {
        &self.products[self.products.len() - 1]
    }

    /// Moves to the next cell; returns false at the end.
    pub(super) fn advance(&mut self) -> bool {
        let Some(changed) = self.at.advance() else { return false };
        let product = &self.products[changed] * &self.rows[changed][self.at.coordinates[changed]];
        self.products[changed + 1..].fill(product);
        true
    }
}
