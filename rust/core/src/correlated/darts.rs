//! Shared darts: the first of a public sequence of uniform cells (item, height) that lies below the item's own weight.
//!
//! Weights are integers of one public total W, so that heights are exactly uniform below W and the distribution drawn from is
//! exactly w / W. How often two users agree: `docs/proofs/correlated_sampling.md`.

use crate::{
    Error, Result,
    control::Control,
    exact::Natural,
    pmf::Pmf,
    public::{PublicSeed, below},
};
use num_integer::Integer as _;
use num_traits::ToPrimitive;
use std::cmp::Reverse;

/// The largest total of the weights.
pub const LARGEST_TOTAL: u64 = 1 << 63;
/// Darts made at a time.
const CHUNK: usize = 64;
/// Chunks between two looks at the control.
const CHECK_EVERY: u64 = 1 << 10;

/// The item of the first dart below its weight; `None` when none of the first `most` darts is.
///
/// Dart j takes words 2j and 2j + 1 of the stream at the address, for the item and for the height. A word that
/// [`below`] refuses makes the dart a miss for everybody.
///
/// # Errors
/// [`Error::InvalidArgument`] naming `weights` when they do not sum to `total`, or `total` when it is not between 1 and
/// 2^63; [`Error::Canceled`].
pub fn winner(
    seed: &PublicSeed,
    label: &str,
    i: u64,
    weights: &[u64],
    total: u64,
    most: Option<u64>,
    control: &Control,
) -> Result<Option<usize>> {
    check_total(total)?;
    let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    if sum != u128::from(total) {
        let message = format!("sum to {sum}, not to the total of {total} that all parties share");
        return Err(Error::invalid("weights", message));
    }
    let (items, most) = (weights.len() as u64, most.unwrap_or(u64::MAX / 2));
    let mut source = seed.words(label, i);
    let (mut bytes, mut words) = ([0; 16 * CHUNK], [0; 2 * CHUNK]);
    for chunk in 0..most.div_ceil(CHUNK as u64) {
        if chunk % CHECK_EVERY == 0 {
            control.check()?;
        }
        source.read(chunk * 2 * CHUNK as u64, &mut bytes, &mut words);
        let left = usize::try_from(most - chunk * CHUNK as u64).unwrap_or(usize::MAX);
        for [item, height] in words.as_chunks().0.iter().take(left) {
            if let (Some(item), Some(height)) = (below(*item, items), below(*height, total)) {
                let item = usize::try_from(item).unwrap_or(usize::MAX); // an index of the weights
                if height < weights[item] {
                    return Ok(Some(item));
                }
            }
        }
    }
    Ok(None)
}

/// Integers of sum `total` next to `total` times the masses: rounded down, and what is left given to the largest
/// remainders, to the first of equal ones. A mass of zero stays zero.
///
/// Each is off by less than 1, so the distribution moves by less than (number of positive masses) / `total` in total variation.
///
/// # Errors
/// [`Error::InvalidArgument`] naming `total` when it is not between 1 and 2^63; [`Error::Canceled`].
pub fn quantized(pmf: &Pmf<'_>, total: u64, control: &Control) -> Result<Vec<u64>> {
    check_total(total)?;
    let normalized = pmf.is_float().then(|| Pmf::over_exact_sum(pmf.approximate()));
    let pmf = normalized.as_ref().unwrap_or(pmf);
    let (mut weights, mut remainders) = (Vec::with_capacity(pmf.len()), Vec::with_capacity(pmf.len()));
    for index in pmf.outputs() {
        control.check()?;
        let mass = pmf.mass(index);
        let scaled: Natural = mass.numer().magnitude() * total;
        let (weight, remainder) = scaled.div_rem(mass.denom().magnitude());
        weights.push(weight.to_u64().unwrap_or(total)); // at most the total
        remainders.push((Reverse(remainder), index));
    }
    let left = total - weights.iter().sum::<u64>();
    remainders.sort_unstable();
    for (_, index) in remainders.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
        weights[*index] += 1;
    }
    Ok(weights)
}

fn check_total(total: u64) -> Result<()> {
    if (1..=LARGEST_TOTAL).contains(&total) {
        Ok(())
    } else {
        Err(Error::invalid("total", format!("must be from 1 to 2^63; got {total}")))
    }
}
