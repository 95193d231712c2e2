//! Whether the curve of one pair is nowhere below that of another, exactly.
//!
//! Curves, sums of [P - E Q]_+ as functions of E, are compared at all E >= 0 (`docs/proofs/exact_composition.md`, section 9): at E >= 1 alone
//! it would not be enough, since products of pairs that dominate there need not.

use crate::{Error, Result, control::Control};
use num_bigint::{BigInt, BigUint};
use num_traits::Zero;

/// That both lists of weights are as long and have mass.
pub(super) fn check_weights(p: &[BigUint], q: &[BigUint]) -> Result<()> {
    if p.len() != q.len() {
        return Err(Error::invalid("q", "must be as long as p"));
    }
    for (name, weights) in [("p", p), ("q", q)] {
        if weights.iter().all(Zero::is_zero) {
            return Err(Error::invalid(name, "has no mass"));
        }
    }
    Ok(())
}

/// A pair with its outcomes in the order of their losses, the largest first; masses in units of a common total.
struct Ordered {
    /// P's masses where Q has some, and Q's.
    finite: Vec<(BigUint, BigUint)>,
    /// P's mass where Q has none.
    infinite: BigUint,
}

impl Ordered {
    /// Of weights, each of which is taken so often.
    fn new(p: &[BigUint], q: &[BigUint], times_p: &BigUint, times_q: &BigUint) -> Self {
        let mut infinite = BigUint::zero();
        let mut finite = Vec::with_capacity(p.len());
        for (x, y) in p.iter().zip(q) {
            if y.is_zero() {
                infinite += x * times_p;
            } else {
                finite.push((x * times_p, y * times_q));
            }
        }
        finite.sort_by(|(x1, y1), (x2, y2)| (x2 * y1).cmp(&(x1 * y2)));
        Self { finite, infinite }
    }
}

/// Whether the curve of the first pair of integer weights is nowhere below that of the second.
///
/// A convex curve is below a broken line where it is below its corners and ends. At E = 0 both are 1.
///
/// # Errors
/// [`Error::InvalidArgument`] for lists of other lengths or without mass; [`Error::Canceled`].
pub fn pair_dominates(
    above: (&[BigUint], &[BigUint]),
    below: (&[BigUint], &[BigUint]),
    control: &Control,
) -> Result<bool> {
    check_weights(above.0, above.1)?;
    check_weights(below.0, below.1)?;
    let total = |weights: &[BigUint]| weights.iter().sum::<BigUint>();
    // All masses of P have one unit then, and all of Q another one: no comparison needs it.
    let high = Ordered::new(above.0, above.1, &total(below.0), &total(below.1));
    let low = Ordered::new(below.0, below.1, &total(above.0), &total(above.1));
    if low.infinite > high.infinite {
        return Ok(false);
    }
    let (mut high_p, mut high_q) = (high.infinite, BigUint::zero());
    let (mut low_p, mut low_q) = (low.infinite, BigUint::zero());
    let mut left = low.finite.iter().peekable();
    for (x, y) in &high.finite {
        control.check()?;
        // At the level x / y, where what has just this level adds nothing.
        while let Some((u, v)) = left.next_if(|(u, v)| u * y > x * v) {
            (low_p, low_q) = (low_p + u, low_q + v);
        }
        // h = P - (x / y) Q, times y.
        if BigInt::from(&low_p * y) - BigInt::from(x * &low_q)
            > BigInt::from(&high_p * y) - BigInt::from(x * &high_q)
        {
            return Ok(false);
        }
        (high_p, high_q) = (high_p + x, high_q + y);
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
