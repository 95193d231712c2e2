//! Subsets of one size in colexicographic order: the one with the smaller largest element comes first, and so on down.

use crate::{Error, Result, exact::binomial::small_binomial};

/// The subsets of {0, ..., n-1} of size r, as increasing lists; at most 2^64 - 1 of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subsets {
    n: usize,
    size: usize,
    count: u64,
}

impl Subsets {
    /// All subsets of one size.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when size > n; [`Error::TooLarge`] for 2^64 subsets or more.
    pub fn new(n: usize, size: usize) -> Result<Self> {
        if size > n {
            return Err(Error::invalid("r", format!("must be at most the number of users, {n}; got {size}")));
        }
        let count = small_binomial(n as u64, size as u64)
            .ok_or_else(|| Error::too_large(format!("{n} users have over 2^64 subsets of size {size}")))?;
        Ok(Self { n, size, count })
    }

    /// How many there are; at least one.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number of elements to choose from.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The number of elements of every subset.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The rank of an increasing list: the sum of (element i choose i + 1).
    ///
    /// # Panics
    /// When the list is not one of these subsets.
    pub fn rank(&self, subset: &[usize]) -> u64 {
        assert!(subset.len() == self.size && subset.is_sorted_by(|a, b| a < b), "an increasing list");
        assert!(subset.last().is_none_or(|&last| last < self.n), "elements below n");
        let terms = subset.iter().zip(1..).map(|(&element, place)| small_binomial(element as u64, place));
        terms.map(|term| term.expect("at most the rank")).sum()
    }

    /// The subset of a rank below [`Subsets::count`].
    ///
    /// # Panics
    /// For a larger rank.
    pub fn unrank(&self, mut rank: u64) -> Vec<usize> {
        assert!(rank < self.count, "rank below the count");
        let mut subset = vec![0; self.size];
        let mut limit = self.n;
        for (place, element) in subset.iter_mut().enumerate().rev() {
            *element = largest_element(rank, place as u64 + 1, limit);
            rank -= small_binomial(*element as u64, place as u64 + 1).expect("at most the rank");
            limit = *element;
        }
        subset
    }

    /// Steps to the next subset; returns the highest place that changed (all below it did too), or `None` at the end.
    pub fn step(&self, subset: &mut [usize]) -> Option<usize> {
        for place in 0..self.size {
            let limit = subset.get(place + 1).copied().unwrap_or(self.n);
            if subset[place] + 1 < limit {
                subset[place] += 1;
                for (lower, element) in subset[..place].iter_mut().enumerate() {
                    *element = lower;
                }
                return Some(place);
            }
        }
        None
    }
}

/// The largest x < limit with (x choose k) <= rank; (k - 1 choose k) = 0 is one, and `limit` is at least k.
pub(super) fn largest_element(rank: u64, k: u64, limit: usize) -> usize {
    let fits = |x: usize| small_binomial(x as u64, k).is_some_and(|count| count <= rank);
    let (mut low, mut high) = (usize::try_from(k).unwrap_or(limit) - 1, limit);
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
