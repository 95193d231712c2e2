//! Exact binomial coefficients.

use super::Natural;
use num_traits::{One, PrimInt};
use std::ops::{Div, Mul};

/// C(n, 0), C(n, 1), ... for ever: zero beyond n.
pub fn binomials(n: usize) -> impl Iterator<Item = Natural> {
    let mut next = Natural::one();
    (0_usize..).map(move |k| {
        let following = if k < n { &next * (n - k) / (k + 1) } else { Natural::ZERO };
        std::mem::replace(&mut next, following)
    })
}

/// C(n, 0), ..., C(n, last).
pub fn binomial_row(n: usize, last: usize) -> Vec<Natural> {
    binomials(n).take(last + 1).collect()
}

/// C(n, k) of two integers of one kind; zero for k > n.
pub fn binomial<T>(n: T, k: T) -> Natural
where
    T: PrimInt,
    Natural: Mul<T, Output = Natural> + Div<T, Output = Natural>,
{
    if k > n {
        return Natural::ZERO;
    }
    let k = k.min(n - k);
    let (mut product, mut done) = (Natural::one(), T::zero());
    while done < k {
        // The quotient is C(n, done + 1), an integer.
        product = product * (n - done) / (done + T::one());
        done = done + T::one();
    }
    product
}

/// C(n, k), or `None` from 2^64 on.
pub fn small_binomial(n: u64, k: u64) -> Option<u64> {
    if k > n {
        return Some(0);
    }
    let k = k.min(n - k);
    let mut product = 1_u64;
    for i in 1..=k {
        // C(n - k + i, i): these grow with i, so that the first overflow is final.
        let next = u128::from(product) * u128::from(n - k + i) / u128::from(i);
        product = u64::try_from(next).ok()?;
    }
    Some(product)
}
