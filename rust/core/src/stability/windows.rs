//! Stability of sums of integers under the relation |total - total'| <= distance.
//!
//! After a set S is deleted, the kept totals of the others range from the sum of the w smallest to that of the w largest,
//! w = n - D. Among all sets of r users, deleting from both ends of the sorted values leaves the smallest range: a pool
//! `p_1 <= ... <= p_N` has the range `sum a_j p_j` with `a_j` = -1 for j <= h, 1 for j > N - h and 0 between, h = min(w,
//! N - w). Let y be left out although `p_g <= y <= p_(g + 1)`. If g >= h, put y for `p_N`: only places beyond h fall. If
//! g < h, put y for `p_1`: only places up to h rise. The range does not grow either way, and so on to a window.

use super::{scaled::Scaled, transform::Number};
use crate::{
    Error, Result,
    control::Control,
    exact::{
        Natural,
        binomial::{binomial, binomial_row, binomials},
    },
};
use num_integer::Integer;
use num_traits::One;

/// Multiplications of floats at most: some minutes.
const MAX_FLOAT_WORK: f64 = 1e11;
/// Multiplications of 64-bit digits at most in exact distributions.
const MAX_EXACT_WORK: f64 = 1e10;
/// Numbers kept at most.
const MAX_NUMBERS: f64 = 1e8;
/// Terms summed one after the other; blocks of them are then summed, to keep the roundings few.
const BLOCK: usize = 16;
/// Half the distance from 1 to the next float.
const UNIT: f64 = f64::EPSILON / 2.0;

fn check_sorted(values: &[i64], deletions: usize) -> Result<()> {
    if !values.is_sorted() {
        return Err(Error::invalid("values", "are not sorted"));
    }
    if deletions > values.len() {
        let message = format!("{deletions} exceeds the number of users, {}", values.len());
        return Err(Error::invalid("deletions", message));
    }
    Ok(())
}

/// (r*, start): the fewest users to delete so that all totals of n - `deletions` of the others lie within `distance`,
/// and the first window `start..start + n - r*` of the sorted values that achieves it; None when r* exceeds `limit`.
///
/// # Errors
/// [`Error::InvalidArgument`] for values that are not sorted, or more deletions than values; [`Error::Canceled`].
pub fn smallest_window(
    values: &[i64],
    deletions: usize,
    distance: u64,
    limit: usize,
    control: &Control,
) -> Result<Option<(usize, usize)>> {
    check_sorted(values, deletions)?;
    let mut sums = vec![0_i128];
    for &value in values {
        sums.push(sums[sums.len() - 1] + i128::from(value));
    }
    let kept = values.len() - deletions;
    for r in 0..=limit.min(deletions) {
        control.check()?;
        for start in 0..=r {
            let end = start + values.len() - r;
            let range = (sums[end] - sums[end - kept]) - (sums[start + kept] - sums[start]);
            if range <= i128::from(distance) {
                return Ok(Some((r, start)));
            }
        }
    }
    Ok(None)
}

/// The totals that a distribution is over: `first`, `first + step`, ..., one for each mass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// The smallest total.
    pub first: i128,
    /// The distance of neighbors; at least 1.
    pub step: u64,
}

/// The total of `kept` users drawn uniformly from a window of sorted values.
///
/// Either the users kept or the users left out are counted, whichever are fewer.
#[derive(Debug)]
pub struct WindowTotal {
    totals: Totals,
    /// Users counted.
    chosen: usize,
    /// Whether the users counted are those left out.
    reversed: bool,
    /// Distinct values, as multiples of the step above the smallest, with their frequencies; ascending.
    values: Vec<(usize, usize)>,
    /// Sum of the smallest and of the largest `chosen` values, as such multiples.
    range: (usize, usize),
    users: usize,
    work: f64,
}

impl WindowTotal {
    /// Takes the window of n - r values from `start` on, of which n - `deletions` are kept.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for values that are not sorted, or a window that is not inside them or has fewer users
    /// than are kept; [`Error::TooLarge`] for a range of totals too long to list.
    pub fn new(values: &[i64], deletions: usize, start: usize, r: usize) -> Result<Self> {
        check_sorted(values, deletions)?;
        if r > deletions || start > r {
            let message =
                format!("{r} users deleted, {start} of them below, where {deletions} are deleted in all");
            return Err(Error::invalid("r", message));
        }
        let window = &values[start..start + values.len() - r];
        let (users, kept) = (window.len(), values.len() - deletions);
        let reversed = kept > users - kept;
        let chosen = kept.min(users - kept);
        let lowest = window.first().copied().unwrap_or(0);
        let above = |value: i64| value.abs_diff(lowest);
        let step = window.iter().fold(0, |step, &value| step.gcd(&above(value))).max(1);
        let span = window.last().map_or(0, |&value| above(value) / step) as f64;
        let length = span * chosen as f64 + 1.0;
        if length * (chosen + 1) as f64 > MAX_NUMBERS {
            return Err(Error::too_large(format!(
                "the distribution of the total needs {:.1e} numbers where {MAX_NUMBERS:.0e} are possible; use a coarser statistic \
                 or one of a smaller range",
                length * (chosen + 1) as f64
            )));
        }
        let mut frequencies: Vec<(usize, usize)> = Vec::new();
        let mut multiples = Vec::with_capacity(users);
        for &value in window {
            let multiple = usize::try_from(above(value) / step).unwrap_or(usize::MAX);
            multiples.push(multiple);
            match frequencies.last_mut() {
                Some((last, frequency)) if *last == multiple => *frequency += 1,
                _ => frequencies.push((multiple, 1)),
            }
        }
        let range = (multiples[..chosen].iter().sum(), multiples[users - chosen..].iter().sum());
        let sum = |values: &[i64]| values.iter().map(|&value| i128::from(value)).sum::<i128>();
        let work = frequencies.iter().map(|&(_, frequency)| frequency.min(chosen) as f64 + 1.0).sum::<f64>();
        Ok(Self {
            totals: Totals { first: sum(&window[..kept]), step },
            chosen,
            reversed,
            values: frequencies,
            range,
            users,
            work: work * (chosen + 1) as f64 * length,
        })
    }

    /// The totals that the masses belong to.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The masses as integer weights, with the total of the weights.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Canceled`].
    pub fn exact(&self, control: &Control) -> Result<(Vec<Natural>, Natural)> {
        let total = binomial(self.users, self.chosen);
        let steps = self.work * (8.0 + total.bits() as f64 / 64.0);
        if steps > MAX_EXACT_WORK {
            return Err(Error::too_large(format!(
                "the exact distribution of the total takes {steps:.1e} steps where {MAX_EXACT_WORK:.0e} are possible; ask for \
                 certified bounds instead"
            )));
        }
        let weights = self.polynomial(
            &Natural::one(),
            |frequency, _| {
                let row = binomial_row(frequency, frequency.min(self.chosen));
                move |_, x: usize| row[x].clone()
            },
            control,
        )?;
        Ok((weights, total))
    }

    /// The masses as floats m, with an e such that the exact ones p satisfy |m - p| <= e p + 2^-1000.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Canceled`].
    pub fn floats(&self, control: &Control) -> Result<(Vec<f64>, f64)> {
        if self.work > MAX_FLOAT_WORK {
            return Err(Error::too_large(format!(
                "the distribution of the total takes {:.1e} multiplications where {MAX_FLOAT_WORK:.0e} are possible; use a \
                 coarser statistic, or one of a smaller range",
                self.work
            )));
        }
        let scaled = |n: usize| -> Vec<Scaled> {
            binomials(n).take(n.min(self.chosen) + 1).map(|x| Scaled::integer(&x)).collect()
        };
        // The probability that x of k users among the values so far have the last one: the sums of k users among these
        // stay probabilities, which neither overflow nor vanish. Five roundings each.
        let masses = self.polynomial(
            &1.0,
            |frequency, before| {
                let (own, others, all) = (scaled(frequency), scaled(before), scaled(before + frequency));
                move |k, x: usize| own[x].times(others[k - x]).over(all[k]).to_f64(0)
            },
            control,
        )?;
        // For each value sums of min(frequency, chosen) + 1 terms in blocks, with a factor and a product each.
        let blocks = |terms: usize| terms.min(BLOCK) + terms.div_ceil(BLOCK);
        let roundings: usize =
            self.values.iter().map(|&(_, frequency)| blocks(frequency.min(self.chosen) + 1) + 6).sum();
        let error = roundings as f64 * UNIT;
        Ok((masses, error / (1.0 - error) * (1.0 + 1e-9)))
    }

    /// Adds one distinct value after the other: row k lists the ways to choose k users by their sum.
    ///
    /// `factors(frequency, users before)` gives the factor of choosing x of them among k.
    fn polynomial<N: Number, F: Fn(usize, usize) -> N>(
        &self,
        one: &N,
        factors: impl Fn(usize, usize) -> F,
        control: &Control,
    ) -> Result<Vec<N>> {
        let mut rows: Vec<Vec<N>> = vec![Vec::new(); self.chosen + 1];
        rows[0].push(one.clone());
        let mut before = 0;
        for &(value, frequency) in &self.values {
            let factor = factors(frequency, before);
            let users = before + frequency;
            // Users that later values cannot make up for must have been chosen.
            let fewest = self.chosen.saturating_sub(self.users - users);
            for k in (0..=self.chosen.min(users)).rev() {
                control.check()?;
                let choices = k.saturating_sub(before)..=k.min(frequency);
                let length = choices.clone().map(|x| rows[k - x].len() + x * value).max().unwrap_or(0);
                let mut row = vec![N::ZERO; if k < fewest { 0 } else { length }];
                let choices: Vec<usize> = choices.filter(|_| k >= fewest).collect();
                for block in choices.chunks(BLOCK) {
                    let mut sums = vec![N::ZERO; length];
                    for &x in block {
                        let terms = &rows[k - x];
                        N::add_scaled(&mut sums[x * value..][..terms.len()], &factor(k, x), terms);
                    }
                    N::add_scaled(&mut row, one, &sums);
                }
                rows[k] = row;
            }
            before = users;
        }
        let mut masses = rows.swap_remove(self.chosen)[self.range.0..].to_vec();
        masses.resize(self.range.1 - self.range.0 + 1, N::ZERO);
        if self.reversed {
            masses.reverse();
        }
        Ok(masses)
    }
}
