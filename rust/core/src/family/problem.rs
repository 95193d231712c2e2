//! What one search is after, and what it has found so far.

use super::{matrix::PmfMatrix, numerics::Numerics};
use crate::{
    Result,
    control::Control,
    divergence::hockey_stick::{Difference, Side as Bounds, quick_bounds},
    exact::{
        Level, Rational,
        rounding::{Direction, rational_to_f64},
    },
    simd::Kernel,
};
use std::{
    cmp::Ordering,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering as Memory},
    },
};

/// Candidates kept at most; beyond, those that have fallen behind are dropped, and a bound on the others is kept.
const CANDIDATES: usize = 1 << 16;

/// Exact ties that are told apart; float bounds 2^-100 wide serve the rest.
const EXACT_TIES: usize = 256;

/// The question of a search.
#[derive(Debug, Clone)]
pub(super) enum Goal {
    /// The largest divergence.
    Maximum,
    /// A pair that exceeds delta, or the proof that none does.
    Verdict {
        /// The threshold.
        delta: Rational,
        /// The largest float at or below it.
        below: f64,
        /// The smallest float at or above it.
        above: f64,
    },
}

impl Goal {
    pub(super) fn verdict(delta: &Rational) -> Self {
        Self::Verdict {
            delta: delta.clone(),
            below: rational_to_f64(delta, Direction::Down),
            above: rational_to_f64(delta, Direction::Up),
        }
    }
}

/// Decides whether the divergence of row i from row j exceeds delta.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub(super) fn exceeds(
    matrix: &PmfMatrix<'_>,
    (i, j): (usize, usize),
    level: &Level,
    delta: &Rational,
    control: &Control,
) -> Result<bool> {
    let (p, q) = (matrix.pmf(i), matrix.pmf(j));
    if let Some(bounds) = quick_bounds(&p, &q, level) {
        if bounds.upper <= rational_to_f64(delta, Direction::Down) {
            return Ok(false);
        }
        if bounds.lower > rational_to_f64(delta, Direction::Up) {
            return Ok(true);
        }
    }
    let difference = Difference::new(&p, &q, level, control)?;
    Ok(difference.compare(level, delta) == Ordering::Greater)
}

/// An ordered pair of rows of the matrix and the float value of its divergence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) value: f64,
    pub(super) pair: (u32, u32),
}

/// What the threads have found.
#[derive(Debug, Default)]
struct Found {
    candidates: Vec<Candidate>,
    /// No pair that was dropped though it may be largest exceeds this.
    dropped: f64,
}

/// The outcome of a search.
pub(super) struct Best {
    pub(super) candidate: Candidate,
    pub(super) difference: Difference,
    /// No candidate, and none that was dropped, exceeds this.
    pub(super) upper: f64,
    /// True when the candidate was compared exactly with every pair that may be larger.
    pub(super) compared: bool,
}

/// Shared by all threads of a search.
pub(super) struct Problem<'a> {
    pub(super) matrix: &'a PmfMatrix<'a>,
    pub(super) level: &'a Level,
    pub(super) numerics: Numerics,
    pub(super) kernel: Kernel,
    pub(super) control: &'a Control,
    goal: Goal,
    /// Bits of a float that the answer is certified to reach (maximum), or of delta (verdict).
    floor: AtomicU64,
    stopped: AtomicBool,
    evaluated: AtomicU64,
    found: Mutex<Found>,
}

impl<'a> Problem<'a> {
    pub(super) fn new(
        matrix: &'a PmfMatrix<'a>,
        level: &'a Level,
        numerics: Numerics,
        goal: Goal,
        control: &'a Control,
    ) -> Self {
        let floor = match goal {
            Goal::Maximum => 0.0_f64,
            Goal::Verdict { below, .. } => below,
        };
        Self {
            matrix,
            level,
            numerics,
            kernel: Kernel::detect(),
            control,
            goal,
            floor: AtomicU64::new(floor.to_bits()),
            stopped: AtomicBool::new(false),
            evaluated: AtomicU64::new(0),
            found: Mutex::default(),
        }
    }

    /// Pairs whose divergence is certainly at or below this need no look.
    pub(super) fn floor(&self) -> f64 {
        f64::from_bits(self.floor.load(Memory::Relaxed))
    }

    /// True when the answer is known.
    pub(super) fn stopped(&self) -> bool {
        self.stopped.load(Memory::Relaxed)
    }

    pub(super) fn is_verdict(&self) -> bool {
        matches!(self.goal, Goal::Verdict { .. })
    }

    /// Counts pairs whose divergence was computed.
    pub(super) fn count(&self, pairs: usize) {
        self.evaluated.fetch_add(pairs as u64, Memory::Relaxed);
    }

    pub(super) fn evaluated(&self) -> u64 {
        self.evaluated.load(Memory::Relaxed)
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Considers a pair whose divergence is within the radius of `value`.
    ///
    /// # Errors
    /// [`crate::Error::Canceled`].
    pub(super) fn offer(&self, value: f64, pair: (u32, u32)) -> Result<()> {
        let radius = self.numerics.radius;
        if value + radius <= self.floor() || self.stopped() {
            return Ok(());
        }
        let candidate = Candidate { value, pair };
        match &self.goal {
            Goal::Maximum => {
                let reached = (value - radius).next_down();
                let mut found = self.found();
                found.candidates.push(candidate);
                if reached > self.floor() {
                    self.floor.store(reached.to_bits(), Memory::Relaxed);
                }
                if found.candidates.len() > CANDIDATES {
                    let floor = self.floor();
                    found.candidates.retain(|candidate| candidate.value + radius > floor);
                    found.candidates.sort_by(|a, b| b.value.total_cmp(&a.value));
                    let behind = found.candidates.len().min(CANDIDATES / 2);
                    let dropped = found.candidates.split_off(behind);
                    drop(found);
                    let bound = self.bound(&dropped)?;
                    let mut found = self.found();
                    found.dropped = found.dropped.max(bound);
                }
            }
            Goal::Verdict { .. } => {
                if self.decide(value, pair)? {
                    self.found().candidates.push(candidate);
                    self.stopped.store(true, Memory::Relaxed);
                }
            }
        }
        Ok(())
    }

    /// An upper bound on the divergences of some pairs.
    fn bound(&self, candidates: &[Candidate]) -> Result<f64> {
        let mut bound = 0.0_f64;
        for &Candidate { value, pair: (i, j) } in candidates {
            self.control.check()?;
            // Exact rows may have to be made first: too much for pairs that are so many.
            let quick = if self.matrix.is_float() {
                quick_bounds(&self.matrix.pmf(i as usize), &self.matrix.pmf(j as usize), self.level)
            } else {
                None
            };
            bound = bound.max(quick.map_or((value + self.numerics.radius).next_up(), |bounds| bounds.upper));
        }
        Ok(bound)
    }

    /// Decides whether the divergence of row i from row j exceeds delta, given the tile's number for it.
    ///
    /// # Errors
    /// [`crate::Error::Canceled`].
    pub(super) fn decide(&self, value: f64, pair: (u32, u32)) -> Result<bool> {
        match &self.goal {
            Goal::Maximum => Ok(false),
            Goal::Verdict { delta, above, .. } => {
                let pair = (pair.0 as usize, pair.1 as usize);
                Ok(value - self.numerics.radius > *above
                    || exceeds(self.matrix, pair, self.level, delta, self.control)?)
            }
        }
    }

    /// The candidate with the exactly largest divergence, among those that were compared.
    ///
    /// # Errors
    /// [`crate::Error::Canceled`].
    pub(super) fn best(&self) -> Result<Option<Best>> {
        let (mut candidates, dropped) = {
            let found = self.found();
            (found.candidates.clone(), found.dropped)
        };
        let radius = self.numerics.radius;
        let floor = candidates.iter().map(|candidate| candidate.value - radius).fold(0.0, f64::max);
        candidates.retain(|candidate| candidate.value + radius >= floor);
        candidates.sort_by(|a, b| b.value.total_cmp(&a.value).then(a.pair.cmp(&b.pair)));
        candidates.dedup_by_key(|candidate| candidate.pair);
        let mut bounded = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            self.control.check()?;
            let (i, j) = candidate.pair;
            let (p, q) = (self.matrix.pmf(i as usize), self.matrix.pmf(j as usize));
            let bounds = quick_bounds(&p, &q, self.level)
                .unwrap_or(Bounds { lower: 0.0, upper: candidate.value + radius });
            bounded.push((candidate, bounds));
        }
        let floor = bounded.iter().map(|(_, bounds)| bounds.lower).fold(0.0, f64::max);
        bounded.retain(|(_, bounds)| bounds.upper >= floor);
        bounded.sort_by_key(|(candidate, _)| candidate.pair);
        let mut best: Option<(Candidate, Difference)> = None;
        let (mut upper, mut compared) = (dropped, dropped == 0.0);
        for (count, (candidate, bounds)) in bounded.into_iter().enumerate() {
            if count >= EXACT_TIES {
                upper = upper.max(bounds.upper);
                compared = false;
                continue;
            }
            let (i, j) = candidate.pair;
            let (p, q) = (self.matrix.pmf(i as usize), self.matrix.pmf(j as usize));
            let difference = Difference::new(&p, &q, self.level, self.control)?;
            if best
                .as_ref()
                .is_none_or(|(_, known)| difference.compare_with(self.level, known) == Ordering::Greater)
            {
                best = Some((candidate, difference));
            }
        }
        Ok(best.map(|(candidate, difference)| {
            let upper = upper.max(difference.to_f64(self.level, Direction::Up));
            Best { candidate, difference, upper, compared }
        }))
    }
}
