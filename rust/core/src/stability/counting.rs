//! How many sets of each size are stable.

use super::{
    prefixes::{Prefixes, Weighted},
    typed::StableFamily,
};
use crate::{
    Result,
    control::Control,
    exact::{
        Natural,
        binomial::{binomial_row, binomials},
    },
};
use num_traits::One;
use rayon::prelude::*;
use std::collections::HashMap;

/// Tasks of a parallel walk, at least.
const TASKS: usize = 64;
/// Cells walked between two looks at the control.
const CHECK_EVERY: usize = 1 << 12;

impl StableFamily {
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
        let (last, strides) = (self.last(), self.strides());
        let rows: Vec<Vec<Natural>> = last
            .iter()
            .zip(self.counts())
            .map(|(&last, &count)| binomial_row(count, last.min(limit)))
            .collect();
        // The first axes make the tasks, the others the walk of each.
        let mut leading = 0;
        let mut tasks = 1;
        while leading < last.len() && tasks < TASKS {
            tasks *= last[leading] + 1;
            leading += 1;
        }
        let mut starts = Vec::new();
        let mut heads =
            Weighted::new(Prefixes::new(&last[..leading], &strides[..leading], limit), &rows, Natural::one());
        loop {
            starts.push((heads.at.cell, heads.at.size, heads.weight().clone()));
            if !heads.advance() {
                break;
            }
        }
        starts
            .into_par_iter()
            .map(|(cell, size, weight)| {
                let mut state = start();
                let tails = Prefixes::new(&last[leading..], &strides[leading..], limit - size);
                let mut tails = Weighted::new(tails, &rows[leading..], weight);
                for walked in 0.. {
                    if walked % CHECK_EVERY == 0 {
                        control.check()?;
                    }
                    visit(
                        &mut state,
                        size + tails.at.size,
                        self.height(cell + tails.at.cell),
                        tails.weight(),
                    );
                    if !tails.advance() {
                        break;
                    }
                }
                Ok(state)
            })
            .try_reduce_with(|a, b| Ok(merge(a, b)))
            .unwrap_or_else(|| Ok(start()))
    }

    /// r*, the size of the smallest stable set, and the size from which on all sets are stable; `limit` + 1 stands for
    /// none up to the limit.
    ///
    /// # Errors
    /// [`crate::Error::Canceled`].
    pub(super) fn partial_layers(&self, control: &Control) -> Result<(usize, usize)> {
        let highest = self.counts()[self.last().len()];
        let none = self.limit() + 1;
        let (smallest, full) = self.fold(
            self.limit(),
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
    /// [`crate::Error::Canceled`].
    pub fn smallest_stable_size(&self, control: &Control) -> Result<Option<usize>> {
        let (smallest, _) = self.partial_layers(control)?;
        Ok((smallest <= self.limit()).then_some(smallest))
    }

    /// The number of stable sets of each size 0, ..., limit.
    ///
    /// # Errors
    /// [`crate::Error::Canceled`].
    pub fn layer_sizes(&self, control: &Control) -> Result<Vec<Natural>> {
        let (smallest, full) = self.partial_layers(control)?;
        let mut sizes: Vec<Natural> = binomials(self.users()).take(self.limit() + 1).collect();
        sizes[..smallest.min(self.limit() + 1)].fill(Natural::ZERO);
        if smallest < full {
            let partial = self.count(smallest, full - 1, control)?;
            sizes[smallest..full].clone_from_slice(&partial);
        }
        Ok(sizes)
    }

    /// The number of stable sets of each size from `first` to `last`.
    pub(super) fn count(&self, first: usize, last: usize, control: &Control) -> Result<Vec<Natural>> {
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
        let highest = binomial_row(self.counts()[self.last().len()], last);
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
}
