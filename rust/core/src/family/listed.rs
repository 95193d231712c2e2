//! The worst of many listed pairs of pmfs.

use crate::{
    Error, Result,
    control::Control,
    divergence::{
        breakpoints::one_direction,
        hockey_stick::{Difference, hockey_stick_bounds, quick_bounds},
        mass_error::{Band, Largest, MassError},
    },
    exact::{
        Level, Rational,
        rounding::{Direction, rational_to_f64},
    },
    pmf::Pmf,
};
use num_traits::One;
use rayon::prelude::*;
use std::{cmp::Ordering, sync::Arc};

/// Unordered pairs of indices into a list of pmfs.
pub type Pairs<'a> = &'a [(usize, usize)];

/// Pairs per unit of parallel work: a few milliseconds at most for short pmfs.
const CHUNK: usize = 1024;

/// The largest divergence over all listed pairs and both directions.
#[derive(Debug, Clone)]
pub struct Worst {
    /// (i, j): the divergence of pmf i from pmf j is the largest; the first such pair of the list.
    pub pair: (usize, usize),
    /// The divergence, exactly, with its event.
    pub difference: Difference,
    /// Its comparison with delta.
    pub against_delta: Ordering,
    /// Largest float at or below it.
    pub lower: f64,
    /// Smallest float at or above it.
    pub upper: f64,
}

/// Pmfs over the same outputs.
#[derive(Debug)]
pub struct Family {
    pmfs: Vec<Pmf<'static>>,
}

impl Family {
    /// Collects pmfs of one length.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when lengths differ.
    pub fn new(pmfs: Vec<Pmf<'static>>) -> Result<Self> {
        if let Some(odd) = pmfs.iter().find(|pmf| pmf.len() != pmfs[0].len()) {
            let message = format!("pmfs have different lengths, {} and {}", pmfs[0].len(), odd.len());
            return Err(Error::invalid("pmfs", message));
        }
        Ok(Self { pmfs })
    }

    fn check(&self, pairs: Pairs<'_>) -> Result<()> {
        let count = self.pmfs.len();
        match pairs.iter().find(|&&(i, j)| i >= count || j >= count) {
            Some(pair) => Err(Error::invalid("pairs", format!("{pair:?} is out of range for {count} pmfs"))),
            None => Ok(()),
        }
    }

    /// Both orders of a pair.
    fn ordered(pairs: Pairs<'_>) -> impl Iterator<Item = (usize, usize)> {
        pairs.iter().flat_map(|&(i, j)| [(i, j), (j, i)])
    }

    /// Runs `evaluate` over chunks of pairs in parallel, in the pool that is installed, counting progress.
    fn in_chunks<T: Send>(
        pairs: Pairs<'_>,
        control: &Control,
        evaluate: impl Fn(Pairs<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        pairs
            .par_chunks(CHUNK)
            .map(|chunk| {
                control.check()?;
                let result = evaluate(chunk)?;
                control.advance(chunk.len())?;
                Ok(result)
            })
            .collect()
    }

    /// The largest divergence at `level` over all pairs and both directions, exactly, and its comparison with `delta`;
    /// `None` for no pairs.
    ///
    /// A float pass bounds every pair; those that may attain the maximum are compared in exact arithmetic. The
    /// answer does not depend on the number of threads.
    ///
    /// # Errors
    /// Pairs out of range; [`Error::Canceled`].
    pub fn worst_divergence(
        &self,
        pairs: Pairs<'_>,
        level: &Level,
        delta: &Rational,
        control: &Control,
    ) -> Result<Option<Worst>> {
        self.check(pairs)?;
        control.set_total(2 * pairs.len());
        let bounds = |i: usize, j: usize| {
            control.check()?;
            Ok(quick_bounds(&self.pmfs[i], &self.pmfs[j], level))
        };
        let floor = Self::in_chunks(pairs, control, |chunk| {
            Self::ordered(chunk).try_fold(0.0_f64, |floor, (i, j)| {
                Ok(bounds(i, j)?.map_or(floor, |side| floor.max(side.lower)))
            })
        })?
        .into_iter()
        .fold(0.0, f64::max);
        let candidates = Self::in_chunks(pairs, control, |chunk| {
            let mut best: Option<((usize, usize), Difference)> = None;
            for (i, j) in Self::ordered(chunk) {
                if bounds(i, j)?.is_some_and(|side| side.upper < floor) {
                    continue;
                }
                let difference = Difference::new(&self.pmfs[i], &self.pmfs[j], level, control)?;
                if best
                    .as_ref()
                    .is_none_or(|(_, best)| difference.compare_with(level, best) == Ordering::Greater)
                {
                    best = Some(((i, j), difference));
                }
            }
            Ok(best)
        })?;
        let best = candidates.into_iter().flatten().reduce(|best, next| {
            if next.1.compare_with(level, &best.1) == Ordering::Greater { next } else { best }
        });
        Ok(best.map(|(pair, difference)| Worst {
            pair,
            against_delta: difference.compare(level, delta),
            lower: difference.to_f64(level, Direction::Down),
            upper: difference.to_f64(level, Direction::Up),
            difference,
        }))
    }

    /// What [`Family::worst_divergence`] would say of the true masses, which are within `error` of the stated ones. A pmf
    /// may be paired with itself: equal masses may be unequal in truth.
    ///
    /// # Errors
    /// As [`Family::worst_divergence`].
    pub fn band(
        &self,
        pairs: Pairs<'_>,
        level: &Level,
        delta: &Rational,
        error: &MassError,
        control: &Control,
    ) -> Result<Band> {
        error.band(level, delta, |level, delta| {
            let worst = self.worst_divergence(pairs, level, delta, control)?;
            Ok(worst.map_or_else(Largest::default, |worst| Largest {
                lower: worst.lower,
                upper: worst.upper,
                exceeds: worst.against_delta == Ordering::Greater,
            }))
        })
    }

    /// For every pair, whether the divergence at `level` exceeds `delta` in some direction; decided exactly.
    ///
    /// # Errors
    /// Pairs out of range; [`Error::Canceled`].
    pub fn exceeding(
        &self,
        pairs: Pairs<'_>,
        level: &Level,
        delta: &Rational,
        control: &Control,
    ) -> Result<Vec<bool>> {
        self.check(pairs)?;
        control.set_total(pairs.len());
        let (below, above) = (rational_to_f64(delta, Direction::Down), rational_to_f64(delta, Direction::Up));
        let exceeds = |i: usize, j: usize| {
            control.check()?;
            let (p, q) = (&self.pmfs[i], &self.pmfs[j]);
            match quick_bounds(p, q, level) {
                Some(side) if side.upper <= below => Ok(false),
                Some(side) if side.lower > above => Ok(true),
                _ => Ok(Difference::new(p, q, level, control)?.compare(level, delta) == Ordering::Greater),
            }
        };
        let per_chunk = Self::in_chunks(pairs, control, |chunk| {
            chunk.iter().map(|&(i, j)| Ok(exceeds(i, j)? || exceeds(j, i)?)).collect::<Result<Vec<bool>>>()
        })?;
        Ok(per_chunk.concat())
    }

    /// The smallest `E >= 1` at which every pair is within `delta` in both directions; `None` when none is.
    ///
    /// # Errors
    /// Pairs out of range; [`Error::Canceled`].
    pub fn exp_epsilon_at_delta(
        &self,
        pairs: Pairs<'_>,
        delta: &Rational,
        control: &Control,
    ) -> Result<Option<Rational>> {
        self.check(pairs)?;
        control.set_total(pairs.len());
        let target = rational_to_f64(delta, Direction::Down);
        let per_chunk = Self::in_chunks(pairs, control, |chunk| {
            let mut largest = Level::rational(Rational::one());
            for (i, j) in Self::ordered(chunk) {
                control.check()?;
                let (p, q) = (&self.pmfs[i], &self.pmfs[j]);
                if quick_bounds(p, q, &largest).is_some_and(|side| side.upper <= target) {
                    continue;
                }
                match one_direction(p, q, delta, largest.ratio().clone(), control)? {
                    None => return Ok(None),
                    Some(root) if &root > largest.ratio() => largest = Level::rational(root),
                    Some(_) => {}
                }
            }
            Ok(Some(largest.ratio().clone()))
        })?;
        Ok(per_chunk
            .into_iter()
            .try_fold(Rational::one(), |largest, next| next.map(|next| largest.max(next))))
    }

    /// For every level a certified upper bound on the divergences of all pairs, both directions.
    ///
    /// # Errors
    /// Pairs out of range; [`Error::Canceled`].
    pub fn profile(&self, pairs: Pairs<'_>, levels: &[Arc<Level>], control: &Control) -> Result<Vec<f64>> {
        self.check(pairs)?;
        control.set_total(pairs.len());
        let per_chunk = Self::in_chunks(pairs, control, |chunk| {
            let mut maxima = vec![0.0_f64; levels.len()];
            for (i, j) in Self::ordered(chunk) {
                control.check()?;
                let (p, q) = (&self.pmfs[i], &self.pmfs[j]);
                for (maximum, level) in maxima.iter_mut().zip(levels) {
                    control.check()?;
                    // Cheap bounds spare the exact evaluation wherever the maximum is larger already.
                    if quick_bounds(p, q, level).is_none_or(|side| side.upper > *maximum) {
                        *maximum = maximum.max(hockey_stick_bounds(p, q, level, control)?.upper);
                    }
                }
            }
            Ok(maxima)
        })?;
        Ok(per_chunk.into_iter().fold(vec![0.0; levels.len()], |mut total: Vec<f64>, next| {
            total.iter_mut().zip(next).for_each(|(total, next)| *total = total.max(next));
            total
        }))
    }
}
