//! How many users are near a center, or below levels.

use super::{UserVectors, check_point, fold, merge_sums, norm::squared_distance};
use crate::{Error, Result, control::Control, simd::Kernel};

/// The number of users at each distance: of Euclidean distance at most `radii[j]` from the center. Users without rows
/// are at no distance. Replacing one user changes each count by at most 1.
///
/// # Errors
/// For a center of another dimension or out of range, for radii that are NaN, [`Error::Canceled`].
pub fn counts_within(
    vectors: &dyn UserVectors,
    center: &[f64],
    radii: &[f64],
    control: &Control,
) -> Result<Vec<i64>> {
    check_point("center", center, vectors.dimension())?;
    if radii.iter().any(|radius| radius.is_nan()) {
        return Err(Error::invalid("radii", "NaN is no radius"));
    }
    let kernel = Kernel::detect();
    fold(
        vectors,
        control,
        || vec![0; radii.len()],
        |counts, vector| {
            let Some(vector) = vector else { return };
            let distance = squared_distance(kernel, vector, Some(center)).sqrt();
            for (count, &radius) in counts.iter_mut().zip(radii) {
                *count += i64::from(distance <= radius);
            }
        },
        |counts, others| merge_sums(counts, &others),
    )
}

/// The number of users whose entry is at most each level, for each entry in turn: `levels` has as many for each of them.
/// Users without rows are in no count. Replacing one user changes each count by at most 1.
///
/// # Errors
/// For levels that are NaN or no whole number for each entry, [`Error::Canceled`].
pub fn counts_at_most(vectors: &dyn UserVectors, levels: &[f64], control: &Control) -> Result<Vec<i64>> {
    let dimension = vectors.dimension();
    let each = levels.len() / dimension.max(1);
    if each * dimension != levels.len() || levels.iter().any(|level| level.is_nan()) {
        let message = format!("{} numbers for {dimension} entries, or NaN among them", levels.len());
        return Err(Error::invalid("levels", message));
    }
    fold(
        vectors,
        control,
        || vec![0; levels.len()],
        |counts, vector| {
            let Some(vector) = vector else { return };
            for (index, (count, &level)) in counts.iter_mut().zip(levels).enumerate() {
                *count += i64::from(vector[index / each] <= level);
            }
        },
        |counts, others| merge_sums(counts, &others),
    )
}
