//! Probabilities of refusal that rise as fast as privacy allows, as a certified table.

use super::{SIZE_LIMIT, check_parameters, delta_units, multiplier::LowerMultiplier};
use crate::{
    Error, Result,
    control::Control,
    exact::{Level, Natural, Rational},
    rng::Source,
};
use num_traits::{One, ToPrimitive};

/// Steps between two looks at the control.
const CHECK_EVERY: usize = 1 << 10;

/// Integers `0 = q_0 <= q_1 <= ... <= q_M = 2^128`: at size r a release refuses with probability `q_min(r, M)` / 2^128.
///
/// Two sizes that differ by at most 1 have (epsilon, delta)-indistinguishable refusals.
#[derive(Debug)]
pub struct RefusalTable {
    /// `q_0, ..., q_(M-1)`; `q_M` = 2^128 does not fit and need not.
    uncertain: Vec<u128>,
}

impl RefusalTable {
    /// The fastest rise that the level allows, rounded towards privacy, and certified.
    ///
    /// # Guarantee
    /// [`certify`] has passed.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for epsilon <= 0 and delta outside [2^-128, 1); [`Error::TooLarge`] for more than
    /// [`SIZE_LIMIT`] steps; [`Error::Cancelled`].
    pub fn new(level: &Level, delta: &Rational, control: &Control) -> Result<Self> {
        check_parameters(level, delta)?;
        let lower = LowerMultiplier::new(level)?;
        let delta = delta_units(delta)?;
        let whole = Natural::one() << 128_u32;
        let mut table = vec![Natural::ZERO];
        while table[table.len() - 1] < whole {
            if table.len() as u64 > SIZE_LIMIT {
                return Err(Error::too_large(format!(
                    "the refusal table would have more than {SIZE_LIMIT} steps; choose a larger epsilon or delta"
                )));
            }
            if table.len() % CHECK_EVERY == 0 {
                control.check()?;
            }
            let last = &table[table.len() - 1];
            let paid = last + &delta;
            let next = if paid >= whole {
                whole.clone()
            } else {
                (lower.times(last) + &delta).min(&whole - lower.divide_up(&(&whole - paid)))
            };
            table.push(next);
        }
        certify_with(&table, &lower, &delta)?;
        // All entries but the last are below 2^128.
        table.pop();
        Ok(Self { uncertain: table.iter().filter_map(ToPrimitive::to_u128).collect() })
    }

    /// M, the least size at which refusal is certain.
    pub fn certain_size(&self) -> usize {
        self.uncertain.len()
    }

    /// 2 M - 2, the number of users that a release with these probabilities leaves out.
    pub fn deletions(&self) -> usize {
        2 * self.uncertain.len() - 2
    }

    /// The numerators `q_0, ..., q_M` over 2^128.
    pub fn numerators(&self) -> impl Iterator<Item = Natural> + '_ {
        let certain = std::iter::once(Natural::one() << 128_u32);
        self.uncertain.iter().copied().map(Natural::from).chain(certain)
    }

    /// True with probability `q_min(r, M)` / 2^128: 128 random bits, and the whole table read whatever r is.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn refuses(&self, r: usize, source: &mut Source) -> Result<bool> {
        let u = source.bits()?;
        let (mut threshold, mut found) = (0_u128, 0_u128);
        for (size, &numerator) in self.uncertain.iter().enumerate() {
            let difference = size ^ r;
            // All ones when size = r, else zero.
            let differs = (difference | difference.wrapping_neg()) >> (usize::BITS - 1);
            let mask = (differs as u128).wrapping_sub(1);
            threshold |= numerator & mask;
            found |= mask;
        }
        // A size that is not in the table is beyond it: refused.
        Ok((u.overflowing_sub(threshold).1) | (found == 0))
    }
}

/// Checks in integers that sizes r and r + 1 have indistinguishable refusals, for all r.
///
/// # Guarantee
/// When it passes: q_0 = 0, q_M = 2^128, q never decreases, q_(r+1) <= E q_r + delta 2^128,
/// 2^128 - q_r <= E (2^128 - q_(r+1)) + delta 2^128, and 2^128 - q_(M-1) <= delta 2^128.
///
/// # Errors
/// [`Error::InvalidArgument`] saying which of these fails.
pub fn certify(table: &[Natural], level: &Level, delta: &Rational) -> Result<()> {
    check_parameters(level, delta)?;
    certify_with(table, &LowerMultiplier::new(level)?, &delta_units(delta)?)
}

fn certify_with(table: &[Natural], lower: &LowerMultiplier, delta: &Natural) -> Result<()> {
    let refused =
        |premise: &str| Err(Error::invalid("epsilon, delta", format!("the table is refused: {premise}")));
    let whole = Natural::one() << 128_u32;
    let [first, .., before, last] = table else { return refused("it has fewer than three entries") };
    if first != &Natural::ZERO || last != &whole {
        return refused("it does not rise from 0 to 1");
    }
    if !table.is_sorted() {
        return refused("it falls");
    }
    // E_lo q + delta as integers over 2^128: the other side is an integer, so that the floor loses nothing.
    let within = |a: &Natural, b: &Natural| a <= &(lower.times(b) + delta);
    if table.windows(2).any(|pair| !within(&pair[1], &pair[0])) {
        return refused("refusals rise by more than the level allows");
    }
    if table.windows(2).any(|pair| !within(&(&whole - &pair[0]), &(&whole - &pair[1]))) {
        return refused("answers fall by more than the level allows");
    }
    if &whole - before > *delta {
        return refused("the last answers are more likely than delta");
    }
    Ok(())
}
