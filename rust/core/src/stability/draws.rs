//! What a release draws once stable sets are known: the users kept, then an output of the algorithm on them.

use super::StableFamily;
use crate::{
    Error, Result,
    control::Control,
    exact::{Natural, gcd::gcd},
    family::PmfMatrix,
    memory::room,
    pmf::Pmf,
    rng::Source,
};
use num_traits::{One, Zero};

/// Integers in the proportions of the masses, without a common divisor.
pub(super) fn lowest_terms(pmf: &Pmf<'_>, control: &Control) -> Result<Vec<Natural>> {
    let masses: Vec<_> = pmf.outputs().map(|output| pmf.mass(output)).collect();
    // Masses have one denominator, or are floats with powers of two: the largest is a multiple of all.
    let scale = masses.iter().map(|mass| mass.denom().magnitude()).max().cloned().unwrap_or_default();
    let mut weights = room("outputs", masses.len())?;
    let mut common = Natural::zero();
    for mass in &masses {
        control.check()?;
        let (numerator, denominator) = (mass.numer().magnitude(), mass.denom().magnitude());
        let weight =
            if *denominator == scale { numerator.clone() } else { numerator * (&scale / denominator) };
        if !common.is_one() {
            common = gcd(&common, &weight);
        }
        weights.push(weight);
    }
    if !common.is_one() && !common.is_zero() {
        for weight in &mut weights {
            *weight /= &common;
        }
    }
    Ok(weights)
}

/// An output with exactly its mass in one row.
///
/// Source: [`Source::weighted`] of the masses in lowest terms.
///
/// # Timing
/// Not constant time: it takes as long as numbers of the length of the masses take. All masses are read, whichever
/// output is drawn.
fn draw_output(matrix: &PmfMatrix<'_>, row: usize, source: &mut Source, control: &Control) -> Result<usize> {
    if row >= matrix.rows() {
        return Err(Error::invalid("row", format!("{row} is out of range")));
    }
    source.weighted(&lowest_terms(&matrix.pmf(row), control)?)
}

/// A uniform row, then an output with exactly its mass in that row.
///
/// # Errors
/// [`Error::InvalidArgument`] for no rows; as [`Source::fill`];
/// [`Error::Canceled`].
pub fn draw_of_rows(matrix: &PmfMatrix<'_>, source: &mut Source, control: &Control) -> Result<usize> {
    let row = source.index_below(matrix.rows())?;
    draw_output(matrix, row, source, control)
}

/// A uniform set of `kept` users of a window, then an output with exactly its mass in the row of their total.
///
/// # Errors
/// [`Error::InvalidArgument`] for more users than the window has, or a total that is no row; as [`Source::fill`];
/// [`Error::Canceled`].
pub fn draw_of_window(
    window: &[i64],
    kept: usize,
    matrix: &PmfMatrix<'_>,
    source: &mut Source,
    control: &Control,
) -> Result<usize> {
    let total: i128 =
        source.subset(window.len(), kept, control)?.iter().map(|&place| i128::from(window[place])).sum();
    let row = usize::try_from(total).map_err(|_| Error::invalid("window", "has a total below 0"))?;
    draw_output(matrix, row, source, control)
}

impl StableFamily {
    /// A uniform stable set of r users, a uniform set of all deletions above it, then an output with exactly its mass
    /// in the row of these deletions; row i of the matrix belongs to row i of [`StableFamily::vectors`].
    ///
    /// Source: [GKKMMZ23, Algorithm 1], the last two steps.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for another number of rows, and as [`StableFamily::sample`]; as [`Source::fill`];
    /// [`Error::Canceled`].
    pub fn draw(
        &self,
        r: usize,
        matrix: &PmfMatrix<'_>,
        source: &mut Source,
        control: &Control,
    ) -> Result<usize> {
        if matrix.rows() != self.rows() {
            let message = format!("has {} rows for {} deletion vectors", matrix.rows(), self.rows());
            return Err(Error::invalid("matrix", message));
        }
        let (_, deleted) = self.sample(r, &mut |bound| source.below(bound), control)?;
        // All rows are looked at, whichever it is.
        let vectors = self.vectors(control)?;
        let rows = vectors.chunks_exact(self.types()).enumerate();
        let same = |vector: &[u16]| vector.iter().zip(&deleted).all(|(&x, &y)| usize::from(x) == y);
        let row = rows.fold(usize::MAX, |found, (row, vector)| if same(vector) { row } else { found });
        draw_output(matrix, row, source, control)
    }
}

#[cfg(test)]
#[path = "draws_tests.rs"]
mod tests;
