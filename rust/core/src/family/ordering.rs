//! Rows in an order in which neighbors are alike, so that contiguous halves are good halves.

use super::work::Side;
use crate::{
    Result,
    control::Control,
    simd::{Kernel, rows::inner_products},
};

/// Groups that are not ordered further.
const GROUP: usize = 64;

/// Rows that a direction is found from.
const SAMPLE: usize = 64;

/// Rounds of the power method: a rough direction will do.
const ROUNDS: usize = 5;

/// Splits recursively at the median along the direction in which the square roots of the masses vary most.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub(super) fn ordered(side: &Side<'_>, width: usize, control: &Control) -> Result<Side<'static>> {
    let count = u32::try_from(side.ids.len()).map_err(|_| crate::Error::too_large("more than 2^32 pmfs"))?;
    let mut places: Vec<u32> = (0..count).collect();
    split(&side.rows, width, &mut places, control)?;
    let mut rows = Vec::with_capacity(side.rows.len());
    for &place in &places {
        rows.extend_from_slice(&side.rows[place as usize * width..][..width]);
    }
    let ids: Vec<u32> = places.iter().map(|&place| side.ids[place as usize]).collect();
    Ok(Side { ids: ids.into(), rows: rows.into() })
}

fn split(rows: &[f64], width: usize, places: &mut [u32], control: &Control) -> Result<()> {
    if places.len() <= GROUP {
        return Ok(());
    }
    control.check()?;
    let weights = principal_direction(rows, width, places);
    let row = |place: u32| &rows[place as usize * width..][..width];
    let mut keys = Vec::with_capacity(places.len());
    for &place in &*places {
        inner_products(Kernel::detect(), row(place), &weights, &mut keys);
    }
    let mut keyed: Vec<(f64, u32)> = keys.into_iter().zip(places.iter().copied()).collect();
    let middle = keyed.len() / 2;
    keyed.select_nth_unstable_by(middle, |a, b| a.0.total_cmp(&b.0));
    for (place, (_, chosen)) in places.iter_mut().zip(keyed) {
        *place = chosen;
    }
    let (low, high) = places.split_at_mut(middle);
    let (first, second) =
        rayon::join(|| split(rows, width, low, control), || split(rows, width, high, control));
    first.and(second)
}

/// Weights whose inner product with a row grows along the principal direction of the square roots.
fn principal_direction(rows: &[f64], width: usize, places: &[u32]) -> Vec<f64> {
    let step = places.len().div_ceil(SAMPLE);
    let roots: Vec<Vec<f64>> = places
        .iter()
        .step_by(step)
        .map(|&place| rows[place as usize * width..][..width].iter().map(|mass| mass.sqrt()).collect())
        .collect();
    let mut mean = vec![0.0; width];
    for row in &roots {
        mean.iter_mut().zip(row).for_each(|(mean, root)| *mean += root / roots.len() as f64);
    }
    // Any start that is not orthogonal to the direction will do.
    let mut direction: Vec<f64> = (0..width).map(|output| 1.0 + 0.1 * (output % 7) as f64).collect();
    for _ in 0..ROUNDS {
        let mut next = vec![0.0; width];
        for row in &roots {
            let along: f64 = row
                .iter()
                .zip(&mean)
                .zip(&direction)
                .map(|((root, mean), along)| (root - mean) * along)
                .sum();
            for ((next, root), mean) in next.iter_mut().zip(row).zip(&mean) {
                *next += along * (root - mean);
            }
        }
        let norm = next.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-300);
        direction = next.into_iter().map(|x| x / norm).collect();
    }
    // The derivative of the square root at the mean turns it into weights of the masses themselves.
    direction.iter().zip(&mean).map(|(along, mean)| along / mean.max(1e-150)).collect()
}
