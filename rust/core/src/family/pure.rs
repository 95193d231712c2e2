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
/// [`crate::Error::Cancelled`].
pub(super) fn exceeding_rows(
    matrix: &PmfMatrix<'_>,
    level: &Level,
    numerics: &Numerics,
    envelope: &Envelope,
    control: &Control,
) -> Result<Option<(usize, usize)>> {
    let extremes = |output: usize| (envelope.lower[output], envelope.upper[output]);
    let mut doubtful = Vec::new();
    for output in 0..matrix.outputs() {
        let (lower, upper) = extremes(output);
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
    for output in doubtful {
        let (lower, upper) = extremes(output);
        let largest = numerics.nearly_largest(upper);
        let smallest = numerics.nearly_smallest(lower);
        let mut most: Option<(Rational, usize)> = None;
        let mut least: Option<(Rational, usize)> = None;
        for row in 0..matrix.rows() {
            let mass = matrix.row(row)[output];
            if mass < largest && mass > smallest {
                continue;
            }
            control.check()?;
            let exact = matrix.pmf(row).mass(output);
            if most.as_ref().is_none_or(|(known, _)| &exact > known) {
                most = Some((exact.clone(), row));
            }
            if least.as_ref().is_none_or(|(known, _)| &exact < known) {
                least = Some((exact, row));
            }
        }
        if let (Some((most, i)), Some((least, j))) = (most, least)
            && level.compare(&most, &least) == Ordering::Greater
        {
            return Ok(Some((i, j)));
        }
    }
    Ok(None)
}
