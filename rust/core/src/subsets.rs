//! Subsets of n users by rank, and count vectors of users of few kinds. A range of ranks is what work is divided into.

mod colex;
mod counts;
mod revolving;

pub use colex::Subsets;
pub use counts::CountVectors;
pub use revolving::{RevolvingDoor, Swap};

use crate::exact::Natural;
use num_traits::One;
use std::ops::Range;

/// n choose k, exactly.
pub fn binomial(n: u64, k: u64) -> Natural {
    if k > n {
        return Natural::ZERO;
    }
    // Every partial product is n - k + i choose i, an integer.
    (1..=k.min(n - k))
        .zip((1..=n).rev())
        .fold(Natural::one(), |product, (below, above)| product * above / below)
}

/// n choose k, or `None` from 2^64 on.
pub fn small_binomial(n: u64, k: u64) -> Option<u64> {
    if k > n {
        return Some(0);
    }
    let k = k.min(n - k);
    let mut product = 1_u64;
    for i in 1..=k {
        // n - k + i choose i: these grow with i, so that the first overflow is final.
        let next = u128::from(product) * u128::from(n - k + i) / u128::from(i);
        product = u64::try_from(next).ok()?;
    }
    Some(product)
}

/// Cuts the ranks 0..count into at most `parts` ranges of nearly equal length.
pub fn rank_ranges(count: u64, parts: u64) -> Vec<Range<u64>> {
    let parts = parts.clamp(1, count.max(1));
    let (short, longer) = (count / parts, count % parts);
    let start = |part: u64| part * short + part.min(longer);
    (0..parts).map(|part| start(part)..start(part + 1)).collect()
}
