//! Delta 0: whether any divergence is positive is decided output by output, from the extreme masses alone.

use super::{matrix::PmfMatrix, numerics::Numerics, work::Envelope};
use crate::{
    Result,
    control::Control,
    exact::{Level, Rational},
};
use std::cmp::Ordering;

/// Rows (i, j) such that the mass of i exceeds E times that of j on some output; `None` when there are none.
///
/// The largest divergence is positive if and only if there are some: on one output, the pair of the largest and the
/// smallest mass decides for all pairs.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub(super) fn exceeding_rows(
    matrix: &PmfMatrix<'_>,
    level: &Level,
    numerics: &Numerics,
    envelope: &Envelope,
    control: &Control,
) -> Result<Option<(usize, usize)>> {
    let bounds = |output: usize| (envelope.lower[output], envelope.upper[output]);
    let mut doubtful = Vec::new();
    for output in 0..matrix.outputs() {
        let (lower, upper) = bounds(output);
        if numerics.contributes(lower, upper) {
            let place = |extreme: f64| {
                let mut column = (0..matrix.rows()).map(|row| matrix.row(row)[output]);
                column.position(|mass| mass == extreme).unwrap_or(0)
            };
            return Ok(Some((place(upper), place(lower))));
        }
        if !numerics.never_contributes(lower, upper) {
            doubtful.push(output);
        }
    }
    let mut extremes = vec![Extremes::default(); doubtful.len()];
    for row in 0..matrix.rows() {
        let masses = matrix.row(row);
        let near = |output: usize| {
            let (lower, upper) = bounds(output);
            masses[output] >= numerics.nearly_largest(upper)
                || masses[output] <= numerics.nearly_smallest(lower)
        };
        if !doubtful.iter().any(|&output| near(output)) {
            continue;
        }
        control.check()?;
        // Once per row: exact rows may have to be made first.
        let pmf = matrix.pmf(row);
        for (extremes, &output) in extremes.iter_mut().zip(&doubtful) {
            if near(output) {
                extremes.take(pmf.mass(output), row);
            }
        }
    }
    Ok(extremes.into_iter().find_map(|extremes| {
        let (most, i) = extremes.most?;
        let (least, j) = extremes.least?;
        (level.compare(&most, &least) == Ordering::Greater).then_some((i, j))
    }))
}

/// The largest and the smallest exact mass of an output, with their rows.
#[derive(Debug, Clone, Default)]
struct Extremes {
    most: Option<(Rational, usize)>,
    least: Option<(Rational, usize)>,
}

impl Extremes {
    fn take(&mut self, mass: Rational, row: usize) {
        if self.most.as_ref().is_none_or(|(known, _)| &mass > known) {
            self.most = Some((mass.clone(), row));
        }
        if self.least.as_ref().is_none_or(|(known, _)| &mass < known) {
            self.least = Some((mass, row));
        }
    }
}
