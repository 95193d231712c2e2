//! The family of stable deletion vectors, as the heights of the unstable ones.

use super::{order::Vectors, prefixes::Prefixes};
use crate::{
    Error, Result,
    control::Control,
    exact::{
        Natural,
        binomial::{binomial, binomial_row, binomials},
    },
};
use num_traits::{One, Zero};
use rayon::prelude::*;
use std::{
    collections::HashMap,
    sync::{
        OnceLock,
        atomic::{AtomicU16, Ordering},
    },
};

/// Heights take 2^28 bytes at most.
const MAX_CELLS: usize = 1 << 27;
/// Deletion vectors take 2^29 bytes at most.
const MAX_VECTOR_ENTRIES: u128 = 1 << 28;
/// Deletions at most, so that heights fit 16 bits.
pub const MAX_DELETIONS: usize = 1 << 15;
/// More types than this cannot have a grid that fits, unless nearly all of them are empty.
const MAX_TYPES: usize = 256;
/// Cells walked between two looks at the control.
const CHECK_EVERY: usize = 1 << 12;

/// How many deletion vectors there are: t <= counts with sum `deletions`; 2^128 - 1 stands for that many or more.
pub fn number_of_vectors(counts: &[usize], deletions: usize) -> u128 {
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
        let vectors = check_size(counts, deletions)?;
        let mut types: Vec<usize> = (0..counts.len()).collect();
        types.sort_by_key(|&kind| std::cmp::Reverse(counts[kind]));
        types.rotate_left(1);
        let counts: Vec<usize> = types.iter().map(|&kind| counts[kind]).collect();
        let last: Vec<usize> = counts[..counts.len() - 1].iter().map(|&count| count.min(deletions)).collect();
        let mut strides = vec![1; last.len()];
        for axis in (1..last.len()).rev() {
            strides[axis - 1] = strides[axis] * (last[axis] + 1);
        }
        let heights = (0..vectors).map(|_| AtomicU16::new(0)).collect();
        Ok(Self { types, counts, deletions, limit, last, strides, heights, vectors: OnceLock::new() })
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

    /// D.
    pub fn deletions(&self) -> usize {
        self.deletions
    }

    /// The largest size of a stable set that matters.
    pub fn limit(&self) -> usize {
        self.limit
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
    /// [`Error::Cancelled`].
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
    fn locate(&self, a: &[u16], b: &[u16]) -> (usize, u16) {
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
        // Whoever raises a cell raises all its lower neighbours, so that in the end the heights are closed downwards
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

    /// True when sets with this deletion vector, in the order of the types, are stable.
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

    /// Folds over the cells whose coordinates sum to at most `limit`, in parallel.
    ///
    /// `visit(state, size, height, weight)` gets the number of sets of users that a cell stands for as `weight`, on
    /// the types of its axes.
    fn fold<T: Send>(
        &self,
        limit: usize,
        control: &Control,
        start: impl Fn() -> T + Sync,
        visit: impl Fn(&mut T, usize, usize, &Natural) + Sync,
        merge: impl Fn(T, T) -> T + Sync + Send,
    ) -> Result<T> {
        let rows: Vec<Vec<Natural>> = self
            .last
            .iter()
            .zip(&self.counts)
            .map(|(&last, &count)| binomial_row(count, last.min(limit)))
            .collect();
        // The first axes make the tasks, the others the walk of each.
        let mut leading = 0;
        let mut tasks = 1;
        while leading < self.last.len() && tasks < 64 {
            tasks *= self.last[leading] + 1;
            leading += 1;
        }
        let mut starts = Vec::new();
        let mut heads = Prefixes::new(&self.last[..leading], &self.strides[..leading], limit);
        loop {
            let weight: Natural = heads.coordinates.iter().zip(&rows).map(|(&s, row)| &row[s]).product();
            starts.push((heads.cell, heads.size, weight));
            if heads.advance().is_none() {
                break;
            }
        }
        starts
            .into_par_iter()
            .map(|(cell, size, weight)| {
                let mut state = start();
                let mut tails = Prefixes::new(&self.last[leading..], &self.strides[leading..], limit - size);
                let mut weights = vec![weight; tails.coordinates.len() + 1];
                let mut walked = 0;
                loop {
                    walked += 1;
                    if walked % CHECK_EVERY == 1 {
                        control.check()?;
                    }
                    let all = &weights[weights.len() - 1];
                    visit(&mut state, size + tails.size, self.height(cell + tails.cell), all);
                    let Some(changed) = tails.advance() else { return Ok(state) };
                    weights[changed + 1] =
                        &weights[changed] * &rows[leading + changed][tails.coordinates[changed]];
                    for axis in changed + 1..tails.coordinates.len() {
                        weights[axis + 1] = weights[axis].clone();
                    }
                }
            })
            .try_reduce_with(|a, b| Ok(merge(a, b)))
            .unwrap_or_else(|| Ok(start()))
    }

    /// r*, the size of the smallest stable set, and the size from which on all sets are stable; `limit` + 1 stands for
    /// none up to the limit.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub(super) fn partial_layers(&self, control: &Control) -> Result<(usize, usize)> {
        let highest = self.counts[self.last.len()];
        let none = self.limit + 1;
        let (smallest, full) = self.fold(
            self.limit,
            control,
            || (none, 0),
            |(smallest, full), size, height, _| {
                if height <= highest {
                    *smallest = (*smallest).min(size + height);
                }
                if height > 0 {
                    *full = (*full).max(size + height);
                }
            },
            |a, b| (a.0.min(b.0), a.1.max(b.1)),
        )?;
        Ok((smallest, full.clamp(smallest, none)))
    }

    /// r*, the size of the smallest stable set, or None when it exceeds the limit.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn smallest_stable_size(&self, control: &Control) -> Result<Option<usize>> {
        let (smallest, _) = self.partial_layers(control)?;
        Ok((smallest <= self.limit).then_some(smallest))
    }

    /// The number of stable sets of each size 0, ..., limit.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn layer_sizes(&self, control: &Control) -> Result<Vec<Natural>> {
        let (smallest, full) = self.partial_layers(control)?;
        let mut sizes: Vec<Natural> = binomials(self.users()).take(self.limit + 1).collect();
        sizes[..smallest.min(self.limit + 1)].fill(Natural::ZERO);
        if smallest < full {
            let partial = self.count(smallest, full - 1, control)?;
            sizes[smallest..full].clone_from_slice(&partial);
        }
        Ok(sizes)
    }

    /// The number of stable sets of each size from `first` to `last`.
    fn count(&self, first: usize, last: usize, control: &Control) -> Result<Vec<Natural>> {
        // Cells of equal size and height differ in weight alone.
        let weights = self.fold(
            last,
            control,
            HashMap::<(usize, usize), Natural>::new,
            |weights, size, height, weight| {
                if size + height <= last {
                    *weights.entry((size, height)).or_default() += weight;
                }
            },
            |mut a, b| {
                for (key, weight) in b {
                    *a.entry(key).or_default() += weight;
                }
                a
            },
        )?;
        let mut by_size: Vec<Vec<(usize, Natural)>> = vec![Vec::new(); last + 1];
        for ((size, height), weight) in weights {
            by_size[size].push((height, weight));
        }
        let highest = binomial_row(self.counts[self.last.len()], last);
        let mut sizes = vec![Natural::ZERO; last + 1 - first];
        for (size, mut cells) in by_size.into_iter().enumerate() {
            control.check()?;
            cells.sort_by_key(|&(height, _)| std::cmp::Reverse(height));
            let mut weight = Natural::ZERO;
            for (top, choices) in highest[..=last - size].iter().enumerate() {
                while let Some((_, more)) = cells.pop_if(|&mut (height, _)| height <= top) {
                    weight += more;
                }
                if size + top >= first {
                    sizes[size + top - first] += &weight * choices;
                }
            }
        }
        Ok(sizes)
    }

    /// Draws a stable set S of r users uniformly, then a superset T of size D uniformly, as deletion vectors (s, t)
    /// in the order of the types. `below(n)` draws a uniform integer from 0 to n - 1.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an r above the limit, or without a stable set of that size; errors of `below`;
    /// [`Error::Cancelled`].
    pub fn sample(
        &self,
        r: usize,
        below: &mut dyn FnMut(&Natural) -> Result<Natural>,
        control: &Control,
    ) -> Result<(Vec<usize>, Vec<usize>)> {
        if r > self.limit {
            return Err(Error::invalid("r", format!("{r} exceeds the limit {}", self.limit)));
        }
        let size = self.count(r, r, control)?.swap_remove(0);
        if size.is_zero() {
            return Err(Error::invalid("r", format!("no set of {r} users is stable")));
        }
        let s = self.stable_vector(r, below(&size)?, control)?;
        let mut t = s.clone();
        let mut users = self.users() - r;
        let mut rest = self.deletions - r;
        for (axis, &count) in self.counts.iter().enumerate() {
            let left = count - s[axis];
            users -= left;
            let draw = below(&binomial(users + left, rest))?;
            let taken =
                choose(draw, (0..=left.min(rest)).map(|k| binomial(left, k) * binomial(users, rest - k)));
            t[axis] += taken;
            rest -= taken;
        }
        Ok((self.by_type(&s), self.by_type(&t)))
    }

    /// The stable deletion vector, by axis, of the stable set of size r with index `draw`.
    fn stable_vector(&self, r: usize, mut draw: Natural, control: &Control) -> Result<Vec<usize>> {
        let rows: Vec<Vec<Natural>> = self.counts.iter().map(|&count| binomial_row(count, r)).collect();
        let mut prefixes = Prefixes::new(&self.last, &self.strides, r);
        let mut weights = vec![Natural::one(); self.last.len() + 1];
        let mut walked = 0;
        loop {
            walked += 1;
            if walked % CHECK_EVERY == 1 {
                control.check()?;
            }
            let top = r - prefixes.size;
            if self.height(prefixes.cell) <= top {
                let weight = &weights[self.last.len()] * &rows[self.last.len()][top];
                if draw < weight {
                    prefixes.coordinates.push(top);
                    return Ok(prefixes.coordinates);
                }
                draw -= weight;
            }
            let Some(changed) = prefixes.advance() else {
                return Err(Error::invalid("below", "gave a number that is not below its argument"));
            };
            weights[changed + 1] = &weights[changed] * &rows[changed][prefixes.coordinates[changed]];
            for axis in changed + 1..self.last.len() {
                weights[axis + 1] = weights[axis].clone();
            }
        }
    }

    /// A vector by axis, in the order of the types.
    fn by_type(&self, vector: &[usize]) -> Vec<usize> {
        let mut reordered = vec![0; vector.len()];
        for (&kind, &coordinate) in self.types.iter().zip(vector) {
            reordered[kind] = coordinate;
        }
        reordered
    }
}

/// The index into `weights` that a number below their sum falls on.
fn choose(mut draw: Natural, weights: impl Iterator<Item = Natural>) -> usize {
    let mut last = 0;
    for (index, weight) in weights.enumerate() {
        if draw < weight {
            return index;
        }
        draw -= weight;
        last = index;
    }
    last
}

/// The number of cells, if the family fits.
fn check_size(counts: &[usize], deletions: usize) -> Result<usize> {
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
    Ok(kept.product::<usize>() / most)
}
