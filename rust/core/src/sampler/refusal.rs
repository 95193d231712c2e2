//! Probabilities of refusal that rise as fast as privacy allows, as a certified table.

use super::{SIZE_LIMIT, check_parameters, delta_units, multiplier::LowerMultiplier, table::userdp_ct_count};
use crate::{
    Error, Result,
    control::Control,
    exact::{Level, Natural, Rational},
    rng::Source,
};
use num_traits::{One, ToPrimitive};

/// Steps between two looks at the control.
const CHECK_EVERY: usize = 1 << 10;

/// Integers 0 = q(0) <= q(1) <= ... <= q(M) = 2^128: at size r a release refuses with probability q(min(r, M)) / 2^128.
///
/// Two sizes that differ by at most 1 have (epsilon, delta)-indistinguishable refusals.
#[derive(Debug)]
pub struct RefusalTable {
    /// q(0), ..., q(M - 1); q(M) = 2^128 does not fit and need not.
    uncertain: Vec<u128>,
}

impl RefusalTable {
    /// The fastest rise that the level allows, rounded toward privacy, and certified.
    ///
    /// # Guarantee
    /// [`certify`] has passed.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for epsilon <= 0 and delta outside [2^-128, 1); [`Error::TooLarge`] for more than
    /// [`SIZE_LIMIT`] steps; [`Error::Canceled`].
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

    /// The numerators q(0), ..., q(M) over 2^128.
    pub fn numerators(&self) -> impl Iterator<Item = Natural> + '_ {
        let certain = std::iter::once(Natural::one() << 128_u32);
        self.uncertain.iter().copied().map(Natural::from).chain(certain)
    }

    /// True with probability q(min(r, M)) / 2^128.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn refuses(&self, r: usize, source: &mut Source) -> Result<bool> {
        Ok(self.refuses_with(r, source.bits()?))
    }

    /// True for q(min(r, M)) of the 2^128 values of 128 bits. The whole table is read whatever r is.
    pub fn refuses_with(&self, r: usize, bits: u128) -> bool {
        // The table never falls, so the entries that are at most `bits` are its first ones, and r < M is among them
        // unless bits < q(r). A size beyond the table never is.
        r as u64 >= userdp_ct_count(&self.uncertain, bits)
    }
}

/// Checks in integers that sizes r and r + 1 have indistinguishable refusals, for all r.
///
/// # Guarantee
/// When it passes: q(0) = 0, q(M) = 2^128, q never decreases, q(r+1) <= E q(r) + delta 2^128, and
/// 2^128 - q(r) <= E (2^128 - q(r+1)) + delta 2^128; so 2^128 - q(M-1) <= delta 2^128, the last of these.
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
    let [first, .., last] = table else { return refused("it has fewer than two entries") };
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
    Ok(())
}
