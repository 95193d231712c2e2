//! Matrices of the exponential mechanism's pmfs, one row for every way to delete users.

use super::{ExactRows, PmfMatrix};
use crate::{
    Error, Result,
    control::Control,
    exact::Natural,
    pmf::Pmf,
    sampler::exponential::{MAX_CANDIDATES, Rate, TOTAL_BITS, gap, numerators},
    subsets::Subsets,
};
use num_traits::One;
use rayon::prelude::*;
use std::{ops::Range, sync::Arc};

/// Totals stay below this in size, so that no sum of them leaves an i64.
const LARGEST_TOTAL: i128 = 1 << 61;
/// Masses of a matrix: 4 GB.
const LARGEST_MATRIX: usize = 1 << 29;
/// Rows filled in one go by one thread.
const BLOCK_ROWS: usize = 2048;
/// Weights are looked up when the table of them is at most this long.
const LARGEST_TABLE: u64 = 1 << 20;

/// Rows of total scores, one total for each candidate.
pub trait TotalRows: Send + Sync {
    /// The number of rows.
    fn rows(&self) -> usize;
    /// The number of candidates.
    fn outputs(&self) -> usize;
    /// A bound on the difference of any two totals of one row.
    fn largest_gap(&self) -> u64;
    /// Hands the totals of each row of a range to `visit`, in order.
    fn visit(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[i64]));
}

/// Totals that are listed.
#[derive(Debug)]
pub struct Listed {
    totals: Vec<i64>,
    outputs: usize,
}

impl Listed {
    /// Rows of `outputs` totals each.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no candidates or too many.
    pub fn new(totals: Vec<i64>, outputs: usize) -> Result<Self> {
        check_outputs(outputs)?;
        Ok(Self { totals, outputs })
    }
}

impl TotalRows for Listed {
    fn rows(&self) -> usize {
        self.totals.len() / self.outputs
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn largest_gap(&self) -> u64 {
        self.totals.par_chunks(self.outputs).map(spread).max().unwrap_or(0)
    }

    fn visit(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[i64])) {
        let totals = &self.totals[rows.start * self.outputs..rows.end * self.outputs];
        totals.chunks_exact(self.outputs).for_each(visit);
    }
}

/// The totals that are left after deleting each subset of one size, in colexicographic order.
#[derive(Debug)]
pub struct Deletions {
    scores: Scores,
    subsets: Subsets,
}

impl Deletions {
    /// `scores` has one row of `outputs` integers for each user; `size` users are deleted.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming `scores` or `r`; [`Error::TooLarge`] for too many subsets.
    pub fn new(scores: Vec<i64>, outputs: usize, size: usize) -> Result<Self> {
        check_outputs(outputs)?;
        let users = scores.len() / outputs;
        let scores = Scores::new(scores, outputs, &vec![1; users])?;
        let subsets = Subsets::new(users, size)?;
        check_matrix(subsets.count(), outputs)?;
        Ok(Self { scores, subsets })
    }
}

impl TotalRows for Deletions {
    fn rows(&self) -> usize {
        usize::try_from(self.subsets.count()).unwrap_or(usize::MAX)
    }

    fn outputs(&self) -> usize {
        self.scores.outputs
    }

    fn largest_gap(&self) -> u64 {
        self.scores.largest_gap
    }

    fn visit(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[i64])) {
        if rows.is_empty() {
            return;
        }
        let width = self.scores.outputs;
        let mut subset = self.subsets.unrank(rows.start as u64);
        // Layer i: the totals after deleting the elements at the places i and up. A step renews the layers it changes.
        let mut layers = vec![0_i64; (subset.len() + 1) * width];
        layers[subset.len() * width..].copy_from_slice(&self.scores.everyone);
        let mut changed = subset.len();
        for row in rows.clone() {
            for place in (0..changed).rev() {
                let (layer, above) = layers[place * width..].split_at_mut(width);
                let score = self.scores.row(subset[place]);
                for ((total, above), score) in layer.iter_mut().zip(above).zip(score) {
                    *total = *above - score;
                }
            }
            visit(&layers[..width]);
            if row + 1 < rows.end {
                changed = self.subsets.step(&mut subset).map_or(0, |place| place + 1);
            }
        }
    }
}

/// The totals that are left after deleting `t_j` of the users of kind j, for listed vectors t.
#[derive(Debug)]
pub struct KindDeletions {
    scores: Scores,
    deleted: Vec<u16>,
    kinds: usize,
}

impl KindDeletions {
    /// `scores` has a row of `outputs` integers for each kind, of which there are `counts` users; `deleted` has a row of
    /// one entry for each kind.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the argument that does not fit; [`Error::TooLarge`].
    pub fn new(scores: Vec<i64>, outputs: usize, counts: &[u64], deleted: Vec<u16>) -> Result<Self> {
        check_outputs(outputs)?;
        let kinds = counts.len();
        if scores.len() != kinds * outputs {
            let message = format!("has {} rows for {kinds} counts", scores.len() / outputs);
            return Err(Error::invalid("type_scores", message));
        }
        if kinds == 0 || !deleted.len().is_multiple_of(kinds) {
            return Err(Error::invalid(
                "deleted",
                "must have one column for each kind of user, and at least one",
            ));
        }
        check_matrix((deleted.len() / kinds) as u64, outputs)?;
        let fits = |vector: &[u16]| vector.iter().zip(counts).all(|(&part, &count)| u64::from(part) <= count);
        if let Some(row) = deleted.par_chunks(kinds).position_any(|vector| !fits(vector)) {
            return Err(Error::invalid(
                "deleted",
                format!("row {row} deletes more users of a kind than there are"),
            ));
        }
        Ok(Self { scores: Scores::new(scores, outputs, counts)?, deleted, kinds })
    }
}

impl TotalRows for KindDeletions {
    fn rows(&self) -> usize {
        self.deleted.len() / self.kinds
    }

    fn outputs(&self) -> usize {
        self.scores.outputs
    }

    fn largest_gap(&self) -> u64 {
        self.scores.largest_gap
    }

    fn visit(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[i64])) {
        let mut totals = vec![0_i64; self.scores.outputs];
        for vector in self.deleted[rows.start * self.kinds..rows.end * self.kinds].chunks_exact(self.kinds) {
            totals.copy_from_slice(&self.scores.everyone);
            for (kind, &part) in vector.iter().enumerate() {
                if part > 0 {
                    for (total, score) in totals.iter_mut().zip(self.scores.row(kind)) {
                        *total -= i64::from(part) * score;
                    }
                }
            }
            visit(&totals);
        }
    }
}

/// A table of scores, one row for each user or kind of user.
#[derive(Debug)]
struct Scores {
    table: Vec<i64>,
    outputs: usize,
    everyone: Vec<i64>,
    largest_gap: u64,
}

impl Scores {
    fn new(table: Vec<i64>, outputs: usize, counts: &[u64]) -> Result<Self> {
        let mut everyone = vec![0_i128; outputs];
        let (mut size, mut largest_gap) = (0_u128, 0_u128);
        for (row, &count) in table.chunks_exact(outputs).zip(counts) {
            let largest = row.iter().map(|score| score.unsigned_abs()).max().unwrap_or(0);
            size = size.saturating_add(u128::from(largest) * u128::from(count));
            largest_gap = largest_gap.saturating_add(u128::from(spread(row)) * u128::from(count));
            if size > LARGEST_TOTAL.cast_unsigned() {
                return Err(Error::invalid("scores", "are so large that totals may exceed 2^61"));
            }
            for (total, &score) in everyone.iter_mut().zip(row) {
                *total += i128::from(score) * i128::from(count);
            }
        }
        let everyone = everyone.into_iter().map(|total| i64::try_from(total).expect("below 2^61")).collect();
        let largest_gap = u64::try_from(largest_gap).expect("at most twice 2^61");
        Ok(Self { table, outputs, everyone, largest_gap })
    }

    fn row(&self, index: usize) -> &[i64] {
        &self.table[index * self.outputs..][..self.outputs]
    }
}

fn spread(row: &[i64]) -> u64 {
    match (row.iter().min(), row.iter().max()) {
        (Some(&lowest), Some(&highest)) => gap(highest, lowest),
        _ => 0,
    }
}

fn check_outputs(outputs: usize) -> Result<()> {
    if (1..=MAX_CANDIDATES).contains(&outputs) {
        return Ok(());
    }
    Err(Error::invalid("outputs", format!("must number from 1 to 2^24; got {outputs}")))
}

fn check_matrix(rows: u64, outputs: usize) -> Result<()> {
    if u128::from(rows) * outputs as u128 <= LARGEST_MATRIX as u128 {
        return Ok(());
    }
    Err(Error::too_large(format!(
        "{rows} pmfs over {outputs} outputs are more than the {LARGEST_MATRIX} masses kept at a time; fewer deletions or \
         fewer kinds of users are cheaper, and so is an executor, which works on parts"
    )))
}

/// Weights by gap: looked up where the table is short, computed otherwise.
struct Weights {
    rate: Rate,
    /// Every weight is a float, since its mantissa has at most 40 bits.
    table: Vec<f64>,
}

impl Weights {
    fn new(rate: Rate, largest_gap: u64, lookups: u64) -> Self {
        let largest = largest_gap.min(rate.largest_gap());
        let worthwhile = largest < LARGEST_TABLE.min(lookups);
        let table =
            if worthwhile { (0..=largest).map(|gap| rate.weight(gap) as f64).collect() } else { Vec::new() };
        Self { rate, table }
    }

    /// The probabilities of candidates with these totals, each within (k + 5) 2^-53 of weight / sum, relatively: k - 1
    /// roundings of sums of non-negative terms in any order, two of the scaling, and the products of these errors.
    fn fill(&self, totals: &[i64], masses: &mut [f64]) {
        let lowest = totals.iter().copied().min().unwrap_or(0);
        if let Some(last) = self.table.len().checked_sub(1) {
            for (mass, &total) in masses.iter_mut().zip(totals) {
                let index = usize::try_from(gap(total, lowest)).unwrap_or(last).min(last);
                *mass = self.table[index];
            }
        } else {
            for (mass, &total) in masses.iter_mut().zip(totals) {
                *mass = self.rate.weight(gap(total, lowest)) as f64;
            }
        }
        let sum = sum_in_lanes(masses);
        let scale = 1.0 / sum;
        for mass in masses {
            *mass *= scale;
        }
    }
}

fn sum_in_lanes(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

/// The exact pmf `N_i` / 2^128 of the exponential mechanism on total scores.
#[allow(clippy::missing_panics_doc)]
pub fn exponential_pmf(rate: &Rate, totals: &[i64]) -> Pmf<'static> {
    let weights = numerators(&rate.weights(totals));
    Pmf::from_weights(weights, Natural::one() << TOTAL_BITS, "totals", &Control::new())
        .expect("the numerators sum to 2^128")
}

/// Exact rows, made again from their totals.
struct ExponentialRows {
    rate: Rate,
    totals: Arc<dyn TotalRows>,
}

impl ExactRows for ExponentialRows {
    fn pmf(&self, row: usize) -> Pmf<'static> {
        let mut found = None;
        self.totals.visit(row..row + 1, &mut |totals| found = Some(exponential_pmf(&self.rate, totals)));
        found.expect("one row was asked for")
    }
}

/// The exponential mechanism's pmfs on rows of total scores.
///
/// # Numerics
/// The floats are within (k + 5) 2^-53 of w / W, relatively, and the exact mass N / 2^128 is within 2^-128 of that, which
/// is [`PmfMatrix::near`]'s condition.
///
/// # Errors
/// [`Error::TooLarge`] beyond 2^29 masses; [`Error::Canceled`].
pub fn exponential_matrix(
    rate: Rate,
    totals: Arc<dyn TotalRows>,
    control: &Control,
) -> Result<PmfMatrix<'static>> {
    let (rows, outputs) = (totals.rows(), totals.outputs());
    check_matrix(rows as u64, outputs)?;
    let weights = Weights::new(rate, totals.largest_gap(), (rows * outputs) as u64);
    let mut masses = vec![0.0; rows * outputs];
    masses.par_chunks_mut(BLOCK_ROWS * outputs).enumerate().try_for_each(|(block, masses)| {
        control.check()?;
        let start = block * BLOCK_ROWS;
        let mut each = masses.chunks_exact_mut(outputs);
        totals.visit(start..start + each.len(), &mut |totals| {
            if let Some(row) = each.next() {
                weights.fill(totals, row);
            }
        });
        Ok(())
    })?;
    let relative_error = (outputs + 5) as f64 * (f64::EPSILON / 2.0);
    PmfMatrix::near(masses, outputs, relative_error, Arc::new(ExponentialRows { rate, totals }))
}
