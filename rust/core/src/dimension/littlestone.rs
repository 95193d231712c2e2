//! The Littlestone dimension of version spaces, decided by branch and bound.
//!
//! LDim(V) >= k holds for k = 0 when V is not empty, and otherwise when some point splits V into two parts of dimension
//! at least k - 1. A part of dimension k - 1 has at least 2^(k-1) concepts, so that points which leave fewer on one side
//! are not tried; the others are tried from the most balanced split on, since those mostly succeed, and of the two parts
//! the smaller one first, since that one mostly fails. What was decided about a version space is kept as a lower and an
//! upper bound, which decide other k as well: the dimension is monotone in the set and in k.
//!
//! Paper: [GKM21, Theorem 18].

use super::concepts::{Concepts, common, size};
use crate::{Error, Result, control::Control};
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::Arc,
};

/// A complete binary tree that the class shatters, in heap order: node i has the children 2i + 1 (label 0) and 2i + 2
/// (label 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MistakeTree {
    /// Columns of the given matrix at the 2^d - 1 inner nodes.
    pub points: Vec<usize>,
    /// Rows of the given matrix at the 2^d leaves, left to right.
    pub concepts: Vec<usize>,
}

/// What is known of a version space's dimension.
#[derive(Debug, Clone, Copy)]
struct Known {
    at_least: u32,
    at_most: u32,
}

/// Mixes words by multiplication; keys are sets that no adversary chooses.
#[derive(Debug, Default)]
struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// Why a search stopped before it had an answer.
enum Stopped {
    Budget,
    Failed(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

type Searched<T> = std::result::Result<T, Stopped>;

/// The subsets of a class, and what was found out about their dimensions.
#[derive(Debug)]
pub struct VersionSpaces {
    concepts: Arc<Concepts>,
    known: HashMap<Box<[u64]>, Known, BuildHasherDefault<WordHasher>>,
}

/// One search: how many version spaces it may still look at, and who may stop it.
struct Search<'a> {
    spaces: &'a mut VersionSpaces,
    left: u64,
    control: &'a Control,
}

/// floor(log2(size)): a class of so many concepts has no larger dimension.
fn size_bound(size: usize) -> u32 {
    size.ilog2()
}

/// The points that split a version space, in the order to try them, and those that are worth trying.
struct Splits {
    all: Vec<u32>,
    balanced: Vec<u32>,
}

impl VersionSpaces {
    /// The version spaces of a class.
    pub fn new(concepts: impl Into<Arc<Concepts>>) -> Self {
        Self { concepts: concepts.into(), known: HashMap::default() }
    }

    /// The class.
    pub fn concepts(&self) -> &Concepts {
        &self.concepts
    }

    /// The Littlestone dimension of the class.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when more than `budget` version spaces would have to be looked at; the message has the bounds
    /// that are proved by then. [`Error::Canceled`].
    pub fn littlestone(&mut self, budget: u64, control: &Control) -> Result<usize> {
        let all = self.concepts.all();
        control.set_total(usize::try_from(budget).unwrap_or(usize::MAX));
        self.dimension(&all, budget, control)
    }

    /// A shattered tree of the class whose depth is the Littlestone dimension.
    ///
    /// # Errors
    /// As of [`Self::littlestone`].
    pub fn mistake_tree(&mut self, budget: u64, control: &Control) -> Result<MistakeTree> {
        let depth = u32::try_from(self.littlestone(budget, control)?).unwrap_or(u32::MAX);
        let mut tree = MistakeTree { points: vec![0; (1 << depth) - 1], concepts: vec![0; 1 << depth] };
        let all = self.concepts.all();
        let points = self.points();
        // Nearly all that this asks was decided above, so that it has no budget of its own.
        let mut search = Search { spaces: self, left: u64::MAX, control };
        match search.plant(&all, depth, &points, 0, &mut tree) {
            Ok(()) => Ok(tree),
            Err(Stopped::Failed(error)) => Err(error),
            Err(Stopped::Budget) => {
                unreachable!("a set of this dimension has a split, and there is no budget")
            }
        }
    }

    /// The Littlestone dimension of a nonempty set of concepts.
    pub(super) fn dimension(&mut self, set: &[u64], budget: u64, control: &Control) -> Result<usize> {
        let count = size(set);
        let Known { mut at_least, mut at_most } =
            self.known.get(set).copied().unwrap_or(Known { at_least: 0, at_most: size_bound(count) });
        let points = self.points();
        let mut search = Search { spaces: self, left: budget, control };
        while at_least < at_most {
            match search.at_least(set, count, at_least + 1, &points) {
                Ok(true) => at_least += 1,
                Ok(false) => at_most = at_least,
                Err(Stopped::Failed(error)) => return Err(error),
                Err(Stopped::Budget) => {
                    let bytes = 100 + self.concepts.concepts() / 8;
                    return Err(Error::too_large(format!(
                        "the Littlestone dimension is between {at_least} and {at_most} (both proved), and {budget} \
                         version spaces did not suffice to decide it; raise budget= (about {bytes} bytes each), or go on \
                         with the bounds"
                    )));
                }
            }
        }
        Ok(at_least as usize)
    }

    #[allow(clippy::cast_possible_truncation)]
    fn points(&self) -> Vec<u32> {
        (0..self.concepts.points() as u32).collect()
    }
}

impl Search<'_> {
    /// Is the dimension of `set` at least `depth`? `points` has all points that split the set, and perhaps others.
    fn at_least(&mut self, set: &[u64], count: usize, depth: u32, points: &[u32]) -> Searched<bool> {
        if depth <= 1 {
            return Ok(count >= 1 << depth);
        }
        if let Some(answer) = self.recall(set, count, depth) {
            return Ok(answer);
        }
        if depth == 2 {
            return Ok(points.iter().any(|&point| {
                let ones = common(set, self.spaces.concepts.ones(point as usize));
                ones >= 2 && count - ones >= 2
            }));
        }
        if self.left == 0 {
            return Err(Stopped::Budget);
        }
        self.left -= 1;
        self.control.advance(1)?;
        let splits = self.splits(set, count, depth, points);
        let answer = self.splitting(set, depth, &splits)?.is_some();
        let known =
            self.spaces.known.entry(set.into()).or_insert(Known { at_least: 0, at_most: size_bound(count) });
        if answer {
            known.at_least = known.at_least.max(depth);
        } else {
            known.at_most = known.at_most.min(depth - 1);
        }
        Ok(answer)
    }

    /// What is known without a search.
    fn recall(&self, set: &[u64], count: usize, depth: u32) -> Option<bool> {
        if count < 1 << depth {
            return Some(false);
        }
        // Below depth 3 deciding is as quick as looking up.
        if depth < 3 {
            return None;
        }
        let known = self.spaces.known.get(set)?;
        if depth <= known.at_least {
            Some(true)
        } else if depth > known.at_most {
            Some(false)
        } else {
            None
        }
    }

    fn splits(&self, set: &[u64], count: usize, depth: u32, points: &[u32]) -> Splits {
        let least = 1 << (depth - 1);
        let mut all = Vec::with_capacity(points.len());
        let mut balanced = Vec::new();
        for &point in points {
            let ones = common(set, self.spaces.concepts.ones(point as usize));
            let smaller = ones.min(count - ones);
            if smaller > 0 {
                all.push(point);
            }
            if smaller >= least {
                balanced.push((count - 2 * smaller, point));
            }
        }
        balanced.sort_unstable();
        Splits { all, balanced: balanced.into_iter().map(|(_, point)| point).collect() }
    }

    /// A point that splits `set` into two parts of dimension at least `depth` - 1.
    fn splitting(&mut self, set: &[u64], depth: u32, splits: &Splits) -> Searched<Option<u32>> {
        for &point in &splits.balanced {
            let mut parts = self.spaces.concepts.split(set, point as usize).map(|part| (size(&part), part));
            if parts[0].0 > parts[1].0 {
                parts.swap(0, 1);
            }
            if parts.iter().any(|(count, part)| self.recall(part, *count, depth - 1) == Some(false)) {
                continue;
            }
            if self.at_least(&parts[0].1, parts[0].0, depth - 1, &splits.all)?
                && self.at_least(&parts[1].1, parts[1].0, depth - 1, &splits.all)?
            {
                return Ok(Some(point));
            }
        }
        Ok(None)
    }

    /// Fills in the subtree at `node` of a tree for `set`, whose dimension is at least `depth`.
    fn plant(
        &mut self,
        set: &[u64],
        depth: u32,
        points: &[u32],
        node: usize,
        tree: &mut MistakeTree,
    ) -> Searched<()> {
        if depth == 0 {
            let concept = set.iter().enumerate().find(|(_, word)| **word != 0);
            let concept = concept.map_or(0, |(index, word)| 64 * index + word.trailing_zeros() as usize);
            tree.concepts[node - tree.points.len()] = self.spaces.concepts.row_of(concept);
            return Ok(());
        }
        let splits = self.splits(set, size(set), depth, points);
        let point = self.splitting(set, depth, &splits)?.ok_or(Stopped::Budget)? as usize;
        tree.points[node] = self.spaces.concepts.column_of(point);
        let mut parts = self.spaces.concepts.split(set, point);
        // The column in the given matrix may be the negation of the point.
        if self.spaces.concepts.is_negated(self.spaces.concepts.column_of(point)) {
            parts.swap(0, 1);
        }
        for (label, part) in parts.iter().enumerate() {
            self.plant(part, depth - 1, &splits.all, 2 * node + 1 + label, tree)?;
        }
        Ok(())
    }
}
