//! The exponential mechanism with integer weights: its rate, its weights, and its exact pmf.
//!
//! Scores are integers and lower is better. Candidate i has the gap `d_i` = `min(s_i` - min s, D) and a weight near
//! 2^(127 - 24) 2^(-rho `d_i`); a draw takes u uniform on 0..2^128 and returns the i whose interval of the cumulative
//! weights holds floor(u W / 2^128), so that `N_i` = ceil(C_{i+1} 2^128 / W) - `ceil(C_i` 2^128 / W) of the 2^128 values
//! of u lead to i. The pmf `N_i` / 2^128 is what is drawn, and what is proved private.
//!
//! # Privacy
//! Let no score change by more than the sensitivity between neighbors. The clamped scores `min(s_i`, min s + D) change
//! by no more than that either (the minimum is 1-Lipschitz in the largest change), so the ideal weights 2^(-rho `d_i`)
//! give ratios of probabilities within 2^(2 rho sensitivity): clamping the gap costs no privacy. Each integer weight
//! is within [lo, hi] of 2^103 2^(-rho `d_i`), where hi = (1 + 2^-49)(1 + 2^-57) and lo = (1 - 2^-49) - 2^-38: 2^-49
//! bounds the relative error of the polynomial and of its integer evaluation, 2^-38 the loss of the mantissa's low
//! bits. Rounding the `N_i` costs a relative W / (`w_min` 2^128) <= k 2^-64 hi/lo. For k <= 2^24 all of it together costs
//! less than 9.2e-12 in epsilon; [`Rate::new`] reserves sigma = 2^-36 > 1.4e-11 before it rounds the rate down. The
//! ratios are then within e^epsilon: pure epsilon-DP for the integers themselves.
//!
//! Paper: [GKKMMZ23, Theorem 9], [LWY24, Lemma 2.6].

pub mod draw;
pub mod granularity;
pub mod grouped;
pub mod permute_flip;

pub use draw::Draws;
pub use granularity::Granularity;
pub use grouped::{GroupedDraws, GroupedRate, Groups};

use crate::{
    Error, Result, ct,
    exact::{Integer, Level, Natural, Rational, ln::ln},
};
use num_integer::Integer as _;
use num_traits::{One, ToPrimitive, Zero};

/// The largest number of candidates that the error analysis covers.
pub const MAX_CANDIDATES: usize = 1 << 24;
/// The numerators of a pmf sum to 2 to this.
pub const TOTAL_BITS: u32 = 128;

/// Fraction bits of an exponent of 2.
const EXPONENT_BITS: u32 = 57;
/// Low bits of the polynomial's value that a mantissa leaves out.
const MANTISSA_SHIFT: u32 = 24;
/// floor(2^126 / ln 2).
const INVERSE_LN_TWO: u128 = 122_730_920_814_699_141_436_592_336_571_523_309_380;
/// 2^63 2^-x on [0, 1] is `c_0` - x (`c_1` - x (`c_2` - ...)), within 2^-49 of its value.
const POLYNOMIAL: [u64; 11] = [
    9_223_372_036_854_775_808,
    6_393_154_322_601_321_956,
    2_215_698_446_796_693_588,
    511_935_043_750_827_173,
    88_711_582_559_640_359,
    12_298_033_481_057_912,
    1_420_712_681_174_125,
    140_653_549_331_136,
    12_148_984_781_524,
    903_678_953_522,
    47_611_819_745,
];

/// rho, the bits of weight that one unit of score is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// rho = multiplier 2^-(57 + shift), with multiplier > 2^63.
    multiplier: u64,
    /// From 1 to 127.
    shift: u32,
    /// D, the largest gap with rho D < 64.
    largest_gap: u64,
    /// How often rho the logarithm of a probability may change: the sensitivity, twice unless monotone.
    units: u64,
}

impl Rate {
    /// The largest rate at which scores of this sensitivity are drawn with epsilon-DP.
    ///
    /// `monotone` promises that between neighbors all scores move in the same direction, which doubles the rate.
    /// A rho of 64 or more becomes 32: more private than asked. With epsilon below 88 that needs `monotone`, a
    /// sensitivity of 1 and epsilon above 44.3.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless 2^-35 < epsilon < 88 and 1 <= sensitivity < 2^62.
    #[allow(clippy::missing_panics_doc)] // the comments say why there are none
    pub fn new(level: &Level, sensitivity: u64, monotone: bool) -> Result<Self> {
        if !(1..1 << 62).contains(&sensitivity) {
            let message = format!("must be an integer from 1 to 2^62 - 1; got {sensitivity}");
            return Err(Error::invalid("sensitivity", message));
        }
        // sigma is reserved: epsilon - 2^-36, rounded down to 120 fraction bits.
        let (asked, sigma) = (scaled_epsilon(level), Integer::one() << 84_u32);
        let units = &asked - &sigma;
        if units <= sigma || asked >= Integer::from(88) << 120_u32 {
            return Err(Error::invalid(
                "epsilon",
                "must be above 2^-35 and below 88 for the exponential mechanism",
            ));
        }
        // Lower bound of (epsilon - sigma) / ln 2, still with 120 fraction bits.
        let bits = (units * Integer::from(INVERSE_LN_TWO)) >> 126_u32;
        let bits = bits.to_u128().expect("below 2^127, as epsilon < 88");
        let factor = if monotone { 1_u64 } else { 2 };
        let scale = bits.leading_zeros();
        let quotient = (bits << scale) / u128::from(factor * sensitivity);
        let zeros = quotient.leading_zeros();
        let multiplier = u64::try_from((quotient << zeros) >> 64).expect("64 bits are left");
        let shift = (zeros + scale + 120).cast_signed() - 64 - EXPONENT_BITS.cast_signed();
        Ok(Self::normalized(multiplier, shift, factor * sensitivity))
    }

    fn normalized(multiplier: u64, shift: i32, units: u64) -> Self {
        const HALF: u64 = 1 << 63;
        let (mut multiplier, mut shift) =
            if shift < 1 { (HALF, 1) } else { (multiplier, shift.unsigned_abs()) };
        if multiplier == HALF {
            // The largest gap below must fit 64 bits: one unit less of a longer multiplier.
            (multiplier, shift) = (u64::MAX, shift + 1);
        }
        debug_assert!(shift <= 127, "rho > 2^-98, as epsilon > 2^-35 and sensitivity < 2^62");
        let largest_gap = largest_gap(multiplier, shift, 6);
        Self { multiplier, shift, largest_gap, units }
    }

    /// rho in units of 2^-(57 + shift), above 2^63.
    pub fn multiplier(&self) -> u64 {
        self.multiplier
    }

    /// From 1 to 127.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// rho, exactly.
    pub fn bits_per_unit(&self) -> Rational {
        Rational::new(Integer::from(self.multiplier), Integer::one() << (EXPONENT_BITS + self.shift))
    }

    /// D: larger gaps weigh the same.
    pub fn largest_gap(&self) -> u64 {
        self.largest_gap
    }

    /// An upper bound of the epsilon that the integers deliver, for any number of candidates that is accepted.
    ///
    /// # Guarantee
    /// It is below the epsilon asked for: see the proof above.
    pub fn certified_epsilon(&self) -> Rational {
        self.certified_epsilon_with(64 - MAX_CANDIDATES.ilog2())
    }

    /// The same where rounding the `N_i` costs a relative 2^-`rounding_bits` hi/lo.
    fn certified_epsilon_with(&self, rounding_bits: u32) -> Rational {
        let ln_two = Rational::new(Integer::one() << 126_u32, Integer::from(INVERSE_LN_TWO));
        self.bits_per_unit() * Integer::from(self.units) * ln_two + slack(rounding_bits)
    }

    /// The weight of a candidate whose score is `gap` above the lowest: from 2^39 - 2 to 2^103.
    ///
    /// # Timing
    /// Secret: `gap` and the result. Public: the rate.
    #[inline]
    pub fn weight(&self, gap: u64) -> u128 {
        let [weight] = self.weights_of_gaps([gap]);
        weight
    }

    /// The weights of several gaps, side by side.
    ///
    /// # Timing
    /// Secret: the gaps and the results. Public: the rate.
    #[inline(always)]
    #[allow(clippy::inline_always)] // as in ct
    #[allow(clippy::cast_possible_truncation)]
    fn weights_of_gaps<const N: usize>(&self, gaps: [u64; N]) -> [u128; N] {
        self.powers_of_gaps(gaps, self.largest_gap).map(|Power { mantissa, whole }| {
            // mantissa << (64 - whole), by shifts of words below 64.
            let high = mantissa.wrapping_shr(whole as u32);
            let low = (mantissa << 1).wrapping_shl((whole ^ 63) as u32);
            (u128::from(high) << 64) | u128::from(low)
        })
    }

    /// 2^(-rho gap) of several gaps, side by side, where larger gaps than `largest_gap` are clamped to it: the one place
    /// where weights are made, for pmfs and for draws.
    ///
    /// # Timing
    /// Secret: the gaps and the results. Public: the rate and the largest gap.
    #[inline(always)]
    #[allow(clippy::inline_always)] // as in ct
    #[allow(clippy::cast_possible_truncation)]
    fn powers_of_gaps<const N: usize>(&self, gaps: [u64; N], largest_gap: u64) -> [Power; N] {
        // rho gap below 2^64, in units of 2^-57: an integer part of at most 127 and a fraction.
        let exponents = gaps.map(|gap| {
            let gap = ct::min(gap, largest_gap);
            (u128::from(gap).wrapping_mul(u128::from(self.multiplier)) >> self.shift) as u64
        });
        let fractions = exponents.map(|exponent| exponent << (64 - EXPONENT_BITS));
        let mut powers = [POLYNOMIAL[10]; N];
        for &coefficient in POLYNOMIAL[..10].iter().rev() {
            for (power, &fraction) in powers.iter_mut().zip(&fractions) {
                *power = coefficient.wrapping_sub(ct::high_product(*power, fraction));
            }
        }
        std::array::from_fn(|lane| Power {
            mantissa: powers[lane] >> MANTISSA_SHIFT,
            whole: exponents[lane] >> EXPONENT_BITS,
        })
    }

    /// The weights of candidates with these scores, lower scores first. Not constant time.
    pub fn weights(&self, scores: &[i64]) -> Vec<u128> {
        let lowest = scores.iter().copied().min().unwrap_or(0);
        scores.iter().map(|&score| self.weight(gap(score, lowest))).collect()
    }
}

/// The number near 2^(-rho gap) that is mantissa 2^(-39 - whole), where the mantissa is from 2^38 - 2 to 2^39.
#[derive(Clone, Copy)]
struct Power {
    mantissa: u64,
    whole: u64,
}

/// The largest gap with rho gap < 2^`bits`, for 6 or 7 bits.
fn largest_gap(multiplier: u64, shift: u32, bits: u32) -> u64 {
    1_u128.checked_shl(EXPONENT_BITS + bits + shift).map_or(u64::MAX, |end| {
        u64::try_from((end - 1) / u128::from(multiplier)).expect("multiplier > 2^63, end <= 2^127")
    })
}

/// 2 ln(hi / lo) + ln((1 + theta) / (1 - theta)) from above, by ln x <= x - 1, for theta = 2^-`rounding_bits` hi/lo.
fn slack(rounding_bits: u32) -> Rational {
    let power = |bits: u32| Rational::new(Integer::one(), Integer::one() << bits);
    let one = Rational::one();
    let high = (&one + power(49)) * (&one + power(57));
    let low = &one - power(49) - power(38);
    let spread = high / low;
    let theta = power(rounding_bits) * &spread;
    let two = Rational::from_integer(2.into());
    &two * (spread - &one) + two * &theta / (one - &theta)
}

/// How far a score is above the lowest; the full range of i64 fits.
pub fn gap(score: i64, lowest: i64) -> u64 {
    score.wrapping_sub(lowest).cast_unsigned()
}

/// floor(epsilon 2^120), or one less for an irrational epsilon.
fn scaled_epsilon(level: &Level) -> Integer {
    let mut epsilon = level.exponent().clone();
    if !level.ratio().is_one() {
        epsilon += ln(level.ratio(), 256).lower.to_rational();
    }
    (epsilon.numer() << 120_u32).div_floor(epsilon.denom())
}

/// `N_i`: how many of the 2^128 draws lead to each candidate. They are positive and sum to 2^128.
pub fn numerators(weights: &[u128]) -> Vec<Natural> {
    let total: Natural = weights.iter().copied().map(Natural::from).sum();
    shares(weights.iter().copied().map(Natural::from), &total, TOTAL_BITS).collect()
}

/// How many of the values u below 2^`bits` have floor(u W / 2^`bits`) in the interval of each weight, W being their
/// total.
fn shares(
    weights: impl Iterator<Item = Natural>,
    total: &Natural,
    bits: u32,
) -> impl Iterator<Item = Natural> {
    let (mut cumulative, mut before) = (Natural::zero(), Natural::zero());
    weights.map(move |weight| {
        cumulative += weight;
        let after = (&cumulative << bits).div_ceil(total);
        let numerator = &after - &before;
        before = after;
        numerator
    })
}
