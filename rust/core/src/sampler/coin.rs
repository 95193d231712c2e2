//! Biased coins whose probability is exact, rational or a power of e.

use super::words;
use crate::{
    Error, Result,
    control::Control,
    ct,
    exact::{Integer, Natural, Rational, exp::exp_floor},
    rng::Source,
};
use num_integer::Integer as _;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// A probability that coins have exactly.
#[derive(Debug, Clone)]
enum Probability {
    Rational(Rational),
    /// e^-x for a rational x > 0, an irrational number.
    ExpOfMinus(Rational),
}

impl Probability {
    /// floor(p 2^bits), and whether that is p 2^bits itself.
    fn scaled(&self, bits: u32) -> (Natural, bool) {
        match self {
            Self::Rational(p) => {
                let (floor, rest) = (p.numer() << bits).div_rem(p.denom());
                (floor.magnitude().clone(), rest.is_zero())
            }
            Self::ExpOfMinus(x) => (exp_floor(&-x, bits).magnitude().clone(), false),
        }
    }
}

/// 1 with probability exactly p, and 0 otherwise.
///
/// # Guarantee
/// A toss is 1 exactly when U < p, for a uniform U in [0, 1) of which 128 bits are drawn at first, and 128 more
/// whenever those so far are equal to the leading bits of p. That happens with probability 2^-128 for each 128 bits.
#[derive(Debug, Clone)]
pub struct Coin {
    probability: Probability,
    /// The leading 128 bits of p; all ones for p = 1.
    leading: u128,
}

impl Coin {
    /// The coin of a rational probability.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] outside [0, 1].
    pub fn rational(probability: Rational) -> Result<Self> {
        if probability.is_negative() || probability > Rational::one() {
            return Err(Error::invalid("probability", "must be in [0, 1]"));
        }
        Ok(Self::new(Probability::Rational(probability)))
    }

    /// The coin of the probability e^-x.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a negative x.
    pub fn exp_of_minus(x: Rational) -> Result<Self> {
        if x.is_negative() {
            return Err(Error::invalid("log_probability", "must be at most 0"));
        }
        Ok(Self::new(if x.is_zero() {
            Probability::Rational(Rational::from_integer(Integer::one()))
        } else {
            Probability::ExpOfMinus(x)
        }))
    }

    fn new(probability: Probability) -> Self {
        let leading = probability.scaled(128).0.to_u128().unwrap_or(u128::MAX); // 2^128 for p = 1
        Self { probability, leading }
    }

    /// The toss that 128 bits lead to, with more of them from the source when they do not decide.
    ///
    /// Secret: `bits` and the result. Public: the coin.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn value(&self, bits: u128, source: &mut Source) -> Result<u64> {
        userdp_revealed_coin_tie(self, userdp_ct_coin(self.leading, bits), source)
    }

    /// One toss. Secret: the result.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn draw(&self, source: &mut Source) -> Result<u64> {
        let bits = source.bits()?;
        self.value(bits, source)
    }

    /// Independent tosses into a slice. Secret: the results.
    ///
    /// # Errors
    /// As [`Source::fill`]; [`Error::Canceled`].
    pub fn draw_many(&self, source: &mut Source, draws: &mut [i64], control: &Control) -> Result<()> {
        words::draw_each(source, draws, control, |bits, source| {
            self.value(bits, source).map(u64::cast_signed)
        })
    }

    /// The toss when the first 128 bits of U are the leading ones of p.
    ///
    /// # Timing
    /// Every round is revealed; see [`userdp_revealed_coin_tie`].
    fn carried_on(&self, source: &mut Source) -> Result<u64> {
        let mut drawn = Natural::from(self.leading);
        let mut bits = 128;
        loop {
            drawn = (drawn << 128_u32) + source.bits()?;
            bits += 128;
            let (floor, exact) = self.probability.scaled(bits);
            if drawn != floor || exact {
                return Ok(u64::from(drawn < floor));
            }
        }
    }
}

ct::kernel! {
    /// 1 for bits below the leading ones of a probability, 2 for the same bits, 0 above. Secret: `bits` and the result.
    /// Public: `leading`.
    pub fn userdp_ct_coin(leading: u128, bits: u128) -> u64 {
        let at_most = ct::at_most_wide(bits, leading);
        let at_least = ct::at_most_wide(leading, bits);
        // Both for a tie; only the second above.
        at_most.wrapping_add(at_most & at_least)
    }
}

ct::revealed! {
    /// The toss of a code of [`userdp_ct_coin`], with more bits from the source for a tie.
    ///
    /// Revealed: that the first 128 bits were those of the public probability, and how many more were needed. Each has
    /// probability 2^-128, whatever the coin; nothing else about the toss is. Secret: `code` but for that.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn userdp_revealed_coin_tie(coin: &Coin, code: u64, source: &mut Source) -> Result<u64> {
        if ct::barrier(code) >> 1 == 1 { coin.carried_on(source) } else { Ok(code) }
    }
}
