//! Listing the pairs that are not indistinguishable, without those that would tell nothing new.

use super::{
    matrix::PmfMatrix,
    numerics::Numerics,
    problem::{Goal, Problem},
    separator::all_within,
    work::{Envelope, Work, number_of_rows},
};
use crate::{
    Error, Result,
    control::Control,
    exact::{Level, Rational},
    simd::tiles::{Hits, LEFT, Panels, RIGHT, block_f64},
};
use rayon::prelude::*;
use std::{cmp::Reverse, collections::BinaryHeap, ops::Range};

/// Rows of a leaf: whole panels of both kinds.
const LEAF: usize = 2 * RIGHT;

/// Blocks of pairs handled in parallel before the next look at what is settled.
/// Few in tests, so that small families have many batches.
const BATCH: usize = if cfg!(test) { 3 } else { 4096 };

/// Batches between two questions whether everything is settled.
const BATCHES: usize = if cfg!(test) { 2 } else { 32 };

/// Who receives the pairs, and knows which of them would be no news.
///
/// Rows are listed so that contiguous blocks are alike.
pub trait BadPairs: Sync {
    /// What is remembered of a block of rows.
    type Corner: Clone + Send + Sync;
    /// Summary of a block of rows.
    fn corner(&self, rows: Range<usize>) -> Self::Corner;
    /// Summary of two blocks together.
    fn join(&self, a: &Self::Corner, b: &Self::Corner) -> Self::Corner;
    /// How much a bad pair between two blocks could tell at most: blocks are looked at in descending order.
    fn weight(&self, a: &Self::Corner, b: &Self::Corner) -> u64;
    /// True when every pair between the two blocks would be no news.
    fn settled(&self, a: &Self::Corner, b: &Self::Corner) -> bool;
    /// True when every pair of a row with a block would be no news.
    fn settled_row(&self, row: usize, block: &Self::Corner) -> bool;
    /// True when the pair would be no news.
    fn known(&self, i: usize, j: usize) -> bool;
    /// True when no pair at all would be news any more; asked now and then.
    ///
    /// # Errors
    /// [`Error::Canceled`].
    fn finished(&self, control: &Control) -> Result<bool>;
    /// Receives rows that are farther apart than (epsilon, delta), in one direction at least.
    fn receive(&self, i: usize, j: usize);
}

/// A pair of nodes of the implicit tree over the leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    level: u32,
    place: usize,
}

/// Corners of a binary tree whose leaves are blocks of [`LEAF`] rows: `levels[0]` are the leaves.
struct Tree<C> {
    levels: Vec<Vec<C>>,
    rows: usize,
}

impl<C: Clone + Send + Sync> Tree<C> {
    fn new<L: BadPairs<Corner = C>>(listing: &L, rows: usize) -> Self {
        let leaves: Vec<C> = (0..rows.div_ceil(LEAF))
            .into_par_iter()
            .map(|leaf| listing.corner(leaf * LEAF..rows.min((leaf + 1) * LEAF)))
            .collect();
        let mut levels = vec![leaves];
        while let Some(last) = levels.last().filter(|level| level.len() > 1) {
            let next = last
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => listing.join(a, b),
                    other => other[0].clone(),
                })
                .collect();
            levels.push(next);
        }
        Self { levels, rows }
    }

    fn corner(&self, node: Node) -> &C {
        &self.levels[node.level as usize][node.place]
    }

    fn rows(&self, node: Node) -> Range<usize> {
        let size = LEAF << node.level;
        node.place * size..self.rows.min((node.place + 1) * size)
    }

    fn children(&self, node: Node) -> impl Iterator<Item = Node> + use<C> {
        let level = node.level - 1;
        let count = self.levels[level as usize].len();
        (2 * node.place..count.min(2 * node.place + 2)).map(move |place| Node { level, place })
    }
}

/// Rows packed once for both roles.
struct Packed<'a> {
    work: Work<'a>,
    /// Mean rows of the nodes of the tree, level by level.
    means: Vec<Vec<f64>>,
    left: Panels<f64, LEFT>,
    right: Panels<f64, RIGHT>,
    totals: Vec<f64>,
}

impl<'a> Packed<'a> {
    fn new(work: Work<'a>, multiplier: f64, control: &Control) -> Result<Self> {
        let (width, rows) = (work.width, &work.side.rows);
        let count = work.side.len();
        let left = Panels::pack(count, width, 0.0, |row, output| rows[row * width + output]);
        control.check()?;
        let right =
            Panels::pack(count, width, f64::INFINITY, |row, output| multiplier * rows[row * width + output]);
        control.check()?;
        let totals = rows.chunks_exact(width).map(|row| row.iter().sum()).collect();
        control.check()?;
        let means = means(rows, width);
        control.check()?;
        Ok(Self { work, means, left, right, totals })
    }

    /// The mean of a node's rows, for choosing separators.
    fn mean(&self, node: Node) -> &[f64] {
        let width = self.work.width;
        &self.means[node.level as usize][node.place * width..][..width]
    }

    fn rows(&self, range: Range<usize>) -> &[f64] {
        &self.work.side.rows[range.start * self.work.width..range.end * self.work.width]
    }

    /// Hands over the pairs of two leaves that exceed delta, in this direction, a left panel against a right one at a
    /// time: the first pairs often settle most of the others.
    fn leaf<L: BadPairs>(
        &self,
        problem: &Problem<'_>,
        listing: &L,
        corners: &Corners<L::Corner>,
        x: Range<usize>,
        y: Range<usize>,
    ) -> Result<()> {
        problem.control.check()?;
        let threshold = problem.floor() - problem.numerics.radius;
        let mut found = Vec::new();
        for left in x.start / LEFT..x.end.div_ceil(LEFT) {
            for right in y.start / RIGHT..y.end.div_ceil(RIGHT) {
                if listing.settled(&corners.left[left], &corners.right[right]) {
                    continue;
                }
                let mut hits = Hits { threshold, found: &mut found, band: None };
                let (one_left, one_right) = ((&self.left, left..left + 1), (&self.right, right..right + 1));
                block_f64(problem.kernel, one_left, &self.totals, one_right, &mut hits);
                let mut settled_row = None;
                for hit in found.drain(..) {
                    let (i, j) = (hit.left as usize, hit.right as usize);
                    // Hits come row by row.
                    let settled = match settled_row {
                        Some((row, settled)) if row == i => settled,
                        _ => listing.settled_row(i, &corners.right[right]),
                    };
                    settled_row = Some((i, settled));
                    if settled {
                        continue;
                    }
                    if !listing.known(i, j) && problem.decide(hit.value, (hit.left, hit.right))? {
                        listing.receive(i, j);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Mean rows of the leaves, of pairs of leaves, and so on up to the root; every half weighs the same.
fn means(rows: &[f64], width: usize) -> Vec<Vec<f64>> {
    let mean = |rows: &[f64]| {
        let mut sum = vec![0.0; width];
        for row in rows.chunks_exact(width) {
            sum.iter_mut().zip(row).for_each(|(sum, mass)| *sum += mass);
        }
        let count = (rows.len() / width) as f64;
        for sum in &mut sum {
            *sum /= count;
        }
        sum
    };
    let mut levels: Vec<Vec<f64>> = vec![rows.chunks(LEAF * width).flat_map(mean).collect()];
    while let Some(last) = levels.last().filter(|level| level.len() > width) {
        let next = last.chunks(2 * width).flat_map(mean).collect();
        levels.push(next);
    }
    levels
}

/// Corners of single panels.
struct Corners<C> {
    left: Vec<C>,
    right: Vec<C>,
}

impl<C: Clone + Send + Sync> Corners<C> {
    fn new<L: BadPairs<Corner = C>>(listing: &L, rows: usize) -> Self {
        let of = |width: usize| {
            let panels = (0..rows.div_ceil(width)).into_par_iter();
            panels.map(|panel| listing.corner(panel * width..rows.min((panel + 1) * width))).collect()
        };
        Self { left: of(LEFT), right: of(RIGHT) }
    }
}

/// Hands every unordered pair of rows that exceeds `delta` at `level`, in either direction, to `listing`, except those
/// that it declares settled. Every verdict is decided.
///
/// # Errors
/// [`Error::TooLarge`] for a level beyond 2^400; [`Error::Canceled`].
pub fn list_bad_pairs<L: BadPairs>(
    matrix: &PmfMatrix<'_>,
    level: &Level,
    delta: &Rational,
    listing: &L,
    control: &Control,
) -> Result<()> {
    let Some(machine) = level.machine() else {
        return Err(Error::too_large(
            "an epsilon beyond 277 is not searched for bad pairs; use a smaller one",
        ));
    };
    if matrix.rows() == 0 {
        return Ok(());
    }
    let numerics = Numerics::new(machine, matrix.outputs(), matrix.relative_error());
    let problem = Problem::new(matrix, level, numerics, Goal::verdict(delta), control);
    let envelope = Envelope::of(matrix, control)?;
    let work = Work::new(matrix, (0..number_of_rows(matrix)?).collect(), &envelope, &numerics, control)?;
    if work.envelope_bound <= problem.floor() {
        return Ok(());
    }
    let packed = Packed::new(work, numerics.multiplier, control)?;
    let tree = Tree::new(listing, matrix.rows());
    let corners = Corners::new(listing, matrix.rows());
    let entry = |a: Node, b: Node| {
        let weight = listing.weight(tree.corner(a), tree.corner(b));
        // Among equal weights the larger blocks come first: they may settle at once.
        (weight, a.level.max(b.level), Reverse((a, b)))
    };
    #[allow(clippy::cast_possible_truncation)]
    let root = Node { level: (tree.levels.len() - 1) as u32, place: 0 };
    let mut queue = BinaryHeap::from([entry(root, root)]);
    for round in 1.. {
        if queue.is_empty() || round % BATCHES == 0 && listing.finished(control)? {
            break;
        }
        let batch: Vec<(Node, Node)> =
            (0..BATCH).map_while(|_| queue.pop()).map(|(_, _, Reverse(nodes))| nodes).collect();
        let next = batch
            .into_par_iter()
            .map(|(a, b)| {
                control.check()?;
                if listing.settled(tree.corner(a), tree.corner(b)) {
                    return Ok(Vec::new());
                }
                let (x, y) = (tree.rows(a), tree.rows(b));
                let first = (packed.rows(x.clone()), packed.mean(a));
                let second = (packed.rows(y.clone()), packed.mean(b));
                if all_within(&problem, first, second) && (a == b || all_within(&problem, second, first)) {
                    return Ok(Vec::new());
                }
                if a.level == 0 && b.level == 0 {
                    packed.leaf(&problem, listing, &corners, x.clone(), y.clone())?;
                    if a != b {
                        packed.leaf(&problem, listing, &corners, y, x)?;
                    }
                    return Ok(Vec::new());
                }
                Ok(split(&tree, a, b))
            })
            .collect::<Result<Vec<_>>>()?;
        queue.extend(next.into_iter().flatten().map(|(a, b)| entry(a, b)));
    }
    Ok(())
}

/// The pairs of children, each unordered pair once.
fn split<C: Clone + Send + Sync>(tree: &Tree<C>, a: Node, b: Node) -> Vec<(Node, Node)> {
    if a == b {
        let children: Vec<Node> = tree.children(a).collect();
        let mut pairs: Vec<(Node, Node)> = children.iter().map(|&child| (child, child)).collect();
        if let [first, second] = children[..] {
            pairs.push((first, second));
        }
        pairs
    } else if a.level >= b.level {
        tree.children(a).map(|child| (child, b)).collect()
    } else {
        tree.children(b).map(|child| (a, child)).collect()
    }
}
