//! Subsets of one size in revolving-door order: each step takes one element out and puts one in.

use super::{Subsets, colex::largest_element};
use crate::exact::binomial::small_binomial;

/// One step: `leaves` is replaced by `enters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swap {
    /// The element that leaves.
    pub leaves: usize,
    /// The element that enters.
    pub enters: usize,
}

impl Swap {
    /// Updates sums over the subset of a table with one row of integers for each element.
    pub fn update(&self, sums: &mut [i64], table: &[i64]) {
        let width = sums.len();
        let (old, new) = (&table[self.leaves * width..][..width], &table[self.enters * width..][..width]);
        for ((sum, old), new) in sums.iter_mut().zip(old).zip(new) {
            *sum += new - old;
        }
    }
}

/// The order of Nijenhuis and Wilf, from any rank to the last (Kreher and Stinson, "Combinatorial Algorithms", 2.3.3).
#[derive(Debug, Clone)]
pub struct RevolvingDoor {
    n: usize,
    /// Increasing.
    subset: Vec<usize>,
    /// Steps to the last subset.
    remaining: u64,
}

impl RevolvingDoor {
    /// Starts at the subset of a rank below [`Subsets::count`].
    ///
    /// # Panics
    /// For a larger rank.
    pub fn starting_at(subsets: Subsets, mut rank: u64) -> Self {
        assert!(rank < subsets.count(), "rank below the count");
        let remaining = subsets.count() - 1 - rank;
        let mut subset = vec![0; subsets.size()];
        let mut limit = subsets.n();
        for (place, element) in subset.iter_mut().enumerate().rev() {
            let k = place as u64 + 1;
            *element = largest_element(rank, k, limit);
            rank = last_with(*element, k) - rank;
            limit = *element;
        }
        Self { n: subsets.n(), subset, remaining }
    }

    /// The current subset, increasing.
    pub fn subset(&self) -> &[usize] {
        &self.subset
    }

    /// The rank of the current subset.
    pub fn rank(&self) -> u64 {
        self.subset.iter().zip(1..).fold(0, |rank, (&element, k)| last_with(element, k) - rank)
    }
}

/// The last rank among the subsets of size k whose largest element is `element`; the smaller ones go backwards in it.
fn last_with(element: usize, k: u64) -> u64 {
    small_binomial(element as u64 + 1, k).expect("at most the number of subsets") - 1
}

impl Iterator for RevolvingDoor {
    type Item = Swap;

    /// Steps to the next subset; `None` at the last.
    fn next(&mut self) -> Option<Swap> {
        self.remaining = self.remaining.checked_sub(1)?;
        let subset = &mut self.subset;
        let size = subset.len();
        // The elements below this place are 0, 1, 2, ...
        let place = subset.iter().enumerate().take_while(|&(place, &element)| place == element).count();
        let swap;
        if (size - place).is_multiple_of(2) {
            // The number of elements from this place up is even.
            if place == 0 {
                swap = Swap { leaves: subset[0], enters: subset[0] - 1 };
                subset[0] -= 1;
            } else {
                swap = Swap { leaves: place.saturating_sub(2), enters: place };
                subset[place - 1] = place;
                if place > 1 {
                    subset[place - 2] = place - 1;
                }
            }
        } else {
            let element = subset[place];
            let above = subset.get(place + 1).copied().unwrap_or(self.n);
            if above == element + 1 {
                swap = Swap { leaves: above, enters: place };
                subset[place + 1] = element;
                subset[place] = place;
            } else {
                swap = Swap { leaves: if place > 0 { place - 1 } else { element }, enters: element + 1 };
                if place > 0 {
                    subset[place - 1] = element;
                }
                subset[place] = element + 1;
            }
        }
        Some(swap)
    }
}
