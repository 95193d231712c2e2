//! The weights that the noise is proportional to.

use super::DiscreteGaussian;
use crate::{Error, Result, control::Control, exact::Natural, sampler::SIZE_LIMIT};

/// Weights between two looks at the control.
const BLOCK: u64 = 1 << 12;

/// The mass of the cell times the number of accepting words, for the magnitudes 0, ..., support.
pub(super) fn weights(noise: &DiscreteGaussian, control: &Control) -> Result<Vec<Natural>> {
    if noise.support() >= SIZE_LIMIT / 2 {
        return Err(Error::too_large(format!(
            "the distribution has 2 * {} + 1 probabilities, above {SIZE_LIMIT}; choose a smaller sigma_squared on a coarser grid",
            noise.support()
        )));
    }
    let cell = 1_u64 << noise.slope.cell_bits;
    let mut weights = Vec::new();
    for (k, mass) in (0_u64..).zip(&noise.masses) {
        for low in 0..cell {
            if low % BLOCK == 0 {
                control.check()?;
            }
            weights.push(mass * noise.slope.accepting(k, low));
        }
    }
    Ok(weights)
}
