//! The coin that decides whether a report is one of the symbols that an item favors.

use crate::{
    Error, Result,
    exact::{Level, Natural, Rational},
    sampler::{multiplier::LowerMultiplier, table::userdp_ct_count},
};
use num_traits::{One, ToPrimitive};
use std::cmp::Ordering;

/// The probability p = numerator / 2^128 of a favored symbol.
///
/// # Guarantee
/// Of `symbols` symbols in proportion, `favored` are favored. A favored symbol is p / favored likely and another one
/// (1 - p) / (symbols - favored), in proportion. The first is above the second by at most the factor E: checked in integers against a
/// number that is proved not to exceed E. p is the largest multiple of 2^-128 of which that holds.
#[derive(Debug, Clone)]
pub struct Favor {
    numerator: u128,
    favored: u64,
    others: u64,
}

impl Favor {
    /// The coin for a level E > 1 and a share of `favored` / `symbols`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for E <= 1 or too near to 1, and unless 0 < favored < symbols.
    pub fn new(level: &Level, favored: u64, symbols: u64) -> Result<Self> {
        if favored == 0 || favored >= symbols {
            return Err(Error::invalid("favored", "must be at least 1 and below the number of symbols"));
        }
        let one = Rational::one();
        if level.compare(&one, &one) != Ordering::Less {
            return Err(Error::invalid("epsilon", "must be > 0: reports that lose nothing say nothing"));
        }
        let lower = LowerMultiplier::new(level)?;
        let others = symbols - favored;
        // E favored / (E favored + others), down to a multiple of 2^-128.
        let weight = lower.numerator() * favored;
        let all = &weight + (Natural::from(others) << 128_u32);
        let numerator = ((weight << 128_u32) / all).to_u128().unwrap_or(u128::MAX);
        let coin = Self { numerator, favored, others };
        coin.certify(&lower)?;
        Ok(coin)
    }

    /// The ratio is above 1 and at most E.
    fn certify(&self, lower: &LowerMultiplier) -> Result<()> {
        let (favored, other) = self.weights();
        if favored > other && (favored << 128_u32) <= other * lower.numerator() {
            return Ok(());
        }
        Err(Error::invalid("epsilon", "is too small: no coin of 128 bits has a bias this little"))
    }

    /// Numbers in proportion to the probabilities of one favored and of one other symbol.
    fn weights(&self) -> (Natural, Natural) {
        let against = (Natural::one() << 128_u32) - self.numerator;
        (Natural::from(self.numerator) * self.others, against * self.favored)
    }

    /// p 2^128.
    pub fn numerator(&self) -> u128 {
        self.numerator
    }

    /// 1 when the 128 bits stand for a symbol that is not favored: (1 - p) 2^128 of them do. Secret: both.
    pub(super) fn against(&self, bits: u128) -> u64 {
        userdp_ct_count(std::slice::from_ref(&self.numerator), bits)
    }
}
