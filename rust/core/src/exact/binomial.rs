//! Exact binomial coefficients.

use super::Natural;
use num_traits::One;

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

/// C(n, k); zero for k > n.
pub fn binomial(n: usize, k: usize) -> Natural {
    if k > n {
        return Natural::ZERO;
    }
    let k = k.min(n - k);
    (0..k).fold(Natural::one(), |product, j| product * (n - j) / (j + 1))
}
