//! The least parameter at which an increasing total reaches a whole: how ladders are fitted to 2^128.

use crate::{Result, exact::Natural};
use num_traits::{One, Zero};

/// The least x in 1, ..., `high` with `total`(x) >= `whole`, for an increasing total that reaches the whole at `high`.
///
/// The total should be nearly proportional to x, and nearer still to an affine function of it: scaling twice and one
/// step of the secant then come next to the answer.
pub(super) fn least_reaching(
    whole: &Natural,
    mut high: Natural,
    total: impl Fn(&Natural) -> Result<Natural>,
) -> Result<Natural> {
    let reaches = |x: &Natural| Ok::<_, crate::Error>(&total(x)? >= whole);
    let mut low = Natural::ZERO;
    let mut guess = high.clone();
    for _ in 0..2 {
        if guess.is_zero() {
            break;
        }
        guess = (&guess * whole) / total(&guess)?;
    }
    if !guess.is_zero() {
        let (value, doubled) = (total(&guess)?, total(&(&guess << 1_u32))?);
        let (reached, twice) = (whole + &doubled, &value << 1_u32);
        if doubled > value && reached > twice {
            guess = (&guess * (reached - twice)) / (doubled - value);
        }
    }
    let mut step = Natural::one();
    if guess > low && guess < high {
        if reaches(&guess)? {
            high = guess;
            while high > step {
                let below = &high - &step;
                if !reaches(&below)? {
                    low = below;
                    break;
                }
                high = below;
                step <<= 1;
            }
        } else {
            low = guess;
            while &low + &step < high {
                let above = &low + &step;
                if reaches(&above)? {
                    high = above;
                    break;
                }
                low = above;
                step <<= 1;
            }
        }
    }
    while &low + 1_u32 < high {
        let middle = (&low + &high) >> 1_u32;
        if reaches(&middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}
