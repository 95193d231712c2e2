//! The shared exponential race: the item x with the largest ln w(x) - ln E(x), for its weight w(x) and exponential
//! variables E(x) that all users share.
//!
//! That is the item whose E(x) / w(x) is least, hence x with probability w(x) over the sum of all weights. How often two
//! users agree: `docs/proofs/correlated_sampling.md`.
//!
//! Paper: [GKM21, Theorem 8].

use super::logarithm::{self, exponential, ln};
use crate::{
    Error, Result,
    control::Control,
    memory::zeros,
    public::{PublicSeed, Words},
    simd::Kernel,
};
use rayon::prelude::*;
use std::ops::Range;

/// Words made and used at a time: they stay in the nearest cache.
const CHUNK: usize = 1 << 10;
/// Items of one task: fewer are the caller's own work.
const TASK: usize = 1 << 16;

/// What is known of the probabilities: numbers proportional to them, or their logarithms.
#[derive(Debug, Clone, Copy)]
pub enum Weights<'a> {
    /// Finite numbers >= 0, not all zero.
    Plain(&'a [f64]),
    /// Finite numbers or minus infinity, not all of these.
    Logarithms(&'a [f64]),
}

impl Weights<'_> {
    /// The number of items.
    pub fn len(&self) -> usize {
        self.values().len()
    }

    /// True for no items.
    pub fn is_empty(&self) -> bool {
        self.values().is_empty()
    }

    fn values(&self) -> &[f64] {
        match self {
            Self::Plain(values) | Self::Logarithms(values) => values,
        }
    }

    fn logarithm(&self, item: usize) -> f64 {
        match self {
            Self::Plain(weights) => ln(weights[item]),
            Self::Logarithms(logarithms) => logarithms[item],
        }
    }

    fn is_fit(&self, item: usize) -> bool {
        match self {
            Self::Plain(weights) => (0.0..f64::INFINITY).contains(&weights[item]),
            Self::Logarithms(logarithms) => logarithms[item] < f64::INFINITY,
        }
    }

    /// The reason why these are no weights.
    fn error(&self) -> Error {
        let (name, accepted, nothing) = match self {
            Self::Plain(_) => ("weights", "a finite number >= 0", "zero"),
            Self::Logarithms(_) => ("log_weights", "a finite number or -inf", "-inf"),
        };
        match (0..self.len()).find(|&index| !self.is_fit(index)) {
            Some(index) => {
                let value = self.values()[index];
                Error::invalid(name, format!("entry {value:?} at index {index} is not {accepted}"))
            }
            None => {
                Error::invalid(name, format!("all are {nothing}; at least one item needs a positive weight"))
            }
        }
    }
}

/// The keys -ln E(x), x = 0, ..., count - 1, of the race at an address.
///
/// # Errors
/// [`Error::TooLarge`] beyond 2^28 keys, [`Error::Memory`], [`Error::Canceled`].
pub fn keys(seed: &PublicSeed, label: &str, i: u64, count: usize, control: &Control) -> Result<Vec<f64>> {
    let mut keys = zeros("count", count, "a race between listed weights needs no list of keys")?;
    let fill = |(task, keys): (usize, &mut [f64])| {
        let mut source = Keys::new(seed, label, i);
        for (place, keys) in keys.chunks_mut(CHUNK).enumerate() {
            control.check()?;
            source.read(task * TASK + place * CHUNK, keys);
        }
        Ok(())
    };
    if count <= TASK {
        fill((0, &mut keys))?;
    } else {
        keys.par_chunks_mut(TASK).enumerate().try_for_each(fill)?;
    }
    Ok(keys)
}

/// The winner among items known by their place in a public list; the first of several with the same sum.
///
/// # Errors
/// [`Error::InvalidArgument`] naming `weights` or `log_weights` for numbers that are none, or when no item can win;
/// [`Error::Canceled`].
pub fn winner(
    seed: &PublicSeed,
    label: &str,
    i: u64,
    weights: Weights<'_>,
    control: &Control,
) -> Result<usize> {
    let best_of = |places: Range<usize>| {
        let mut source = Keys::new(seed, label, i);
        let (mut best, mut sums) = (Best::NONE, [0.0; CHUNK]);
        for first in places.clone().step_by(CHUNK) {
            control.check()?;
            let sums = &mut sums[..CHUNK.min(places.end - first)];
            source.read(first, sums);
            let fit = match weights {
                Weights::Plain(weights) => {
                    logarithm::add_logarithms(Kernel::detect(), &weights[first..][..sums.len()], sums)
                }
                Weights::Logarithms(weights) => {
                    logarithm::add(Kernel::detect(), &weights[first..][..sums.len()], sums)
                }
            };
            if !fit {
                return Err(weights.error());
            }
            best = best.or(first, sums);
        }
        Ok(best)
    };
    let best = in_tasks(weights.len(), best_of, Best::merge)?;
    if best.sum == f64::NEG_INFINITY { Err(weights.error()) } else { Ok(best.item) }
}

/// Works on parts of `0..count`, few items on the calling thread, and merges the results.
fn in_tasks<T: Send>(
    count: usize,
    work: impl Fn(Range<usize>) -> Result<T> + Sync,
    merge: impl Fn(T, T) -> T + Sync,
) -> Result<T> {
    if count <= TASK {
        return work(0..count);
    }
    let part = |task: usize| work(task * TASK..count.min((task + 1) * TASK));
    let parts = (0..count.div_ceil(TASK)).into_par_iter().map(part);
    parts.try_reduce_with(|a, b| Ok(merge(a, b))).unwrap_or_else(|| work(0..0)) // there are parts
}

/// The winner among items known by their bytes, whatever list they stand in; of several with the same sum the one with
/// the least bytes.
///
/// # Errors
/// As [`winner`]; [`Error::InvalidArgument`] naming `items` when there are not as many as weights.
pub fn winner_of_items<B: AsRef<[u8]> + Sync>(
    seed: &PublicSeed,
    label: &str,
    i: u64,
    items: &[B],
    weights: Weights<'_>,
    control: &Control,
) -> Result<usize> {
    if items.len() != weights.len() {
        let message = format!("has {} items where there are {} weights", items.len(), weights.len());
        return Err(Error::invalid("items", message));
    }
    let address = seed.items(label, i);
    let better = |a: Best, b: Best| {
        // Only two of nothing have no items to compare.
        let tied = a.sum == b.sum && a.item != b.item;
        let first = if tied { items[a.item].as_ref() <= items[b.item].as_ref() } else { a.sum >= b.sum };
        if first { a } else { b }
    };
    let best_of = |places: Range<usize>| {
        let mut best = Best::NONE;
        for item in places {
            if item % CHUNK == 0 {
                control.check()?;
            }
            if !weights.is_fit(item) {
                return Err(weights.error());
            }
            let logarithm = weights.logarithm(item);
            if logarithm > f64::NEG_INFINITY {
                let sum = logarithm - ln(exponential(address.word(items[item].as_ref())));
                best = better(best, Best { sum, item });
            }
        }
        Ok(best)
    };
    let best = in_tasks(weights.len(), best_of, better)?;
    if best.sum == f64::NEG_INFINITY { Err(weights.error()) } else { Ok(best.item) }
}

/// The keys of a race, some at a time.
struct Keys {
    source: Words,
    bytes: [u8; 8 * CHUNK],
    words: [u64; CHUNK],
}

impl Keys {
    fn new(seed: &PublicSeed, label: &str, i: u64) -> Self {
        Self { source: seed.words(label, i), bytes: [0; 8 * CHUNK], words: [0; CHUNK] }
    }

    /// The keys from `first` on, at most a chunk.
    fn read(&mut self, first: usize, keys: &mut [f64]) {
        let words = &mut self.words[..keys.len()];
        self.source.read(first as u64, &mut self.bytes[..8 * keys.len()], words);
        logarithm::keys(Kernel::detect(), words, keys);
    }
}

/// The largest sum so far, and the first item that has it.
#[derive(Clone, Copy)]
struct Best {
    sum: f64,
    item: usize,
}

impl Best {
    const NONE: Self = Self { sum: f64::NEG_INFINITY, item: usize::MAX };

    /// Of this and later items with these sums.
    fn or(self, first: usize, sums: &[f64]) -> Self {
        let largest = logarithm::largest(Kernel::detect(), sums);
        match sums.iter().position(|&sum| sum == largest) {
            Some(place) if largest > self.sum => Self { sum: largest, item: first + place },
            _ => self,
        }
    }

    fn merge(self, other: Self) -> Self {
        if (other.sum, self.item) > (self.sum, other.item) { other } else { self }
    }
}
