//! Subsets of n users by rank, and count vectors of users of few kinds. A range of ranks is what work is divided into.

mod colex;
mod counts;
mod revolving;

pub use colex::Subsets;
pub use counts::CountVectors;
pub use revolving::{RevolvingDoor, Swap};

use crate::exact::Natural;
use num_traits::One;

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
