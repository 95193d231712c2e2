//! Powers of 2 to 110 bits.

use crate::ct;

/// The powers before this one have coefficients of more than 64 bits.
const SHORT: usize = 19;

/// floor(2^127 (ln 2)^j / j!) for j = 0, ..., 18.
const LONG_COEFFICIENTS: [u128; SHORT] = [
    170_141_183_460_469_231_731_687_303_715_884_105_728,
    117_932_881_612_756_647_068_972_071_382_077_242_199,
    40_872_422_192_596_042_913_617_041_123_525_746_634,
    9_443_534_735_151_228_371_999_190_612_236_520_315,
    1_636_439_869_047_495_949_713_465_924_813_499_472,
    226_858_736_277_231_586_484_361_129_450_110_342,
    26_207_748_905_992_542_942_886_288_857_795_847,
    2_595_118_180_430_246_044_597_950_466_712_474,
    224_849_856_248_135_060_629_315_267_253_182,
    17_317_115_989_744_868_873_735_672_506_364,
    1_200_331_012_372_120_265_039_144_593_779,
    75_636_914_269_490_908_405_322_002_211,
    4_368_959_489_345_993_213_398_499_083,
    232_948_611_693_907_201_019_961_728,
    11_533_405_243_641_805_858_709_937,
    532_956_488_459_040_455_257_173,
    23_088_580_458_532_057_681_471,
    941_399_085_174_290_885_315,
    36_251_562_315_015_085_427,
];

/// The same for j = 19, ..., 27.
const SHORT_COEFFICIENTS: [u64; 9] = [
    1_322_508_853_133_993_178,
    45_834_664_140_769_708,
    1_512_865_153_385_073,
    47_665_373_438_011,
    1_436_483_443_864,
    41_487_268_709,
    1_150_271_333,
    30_665_666,
    787_252,
];

/// 2^127 2^-f for f = fraction / 2^128, at most 2^127 and within 2^16 of the exact value.
///
/// Taylor's polynomial of degree 27 by Horner's rule, from the smallest coefficient: each step subtracts the floor of a
/// product that is below the next coefficient, so that nothing wraps. Secret: `fraction` and the result.
///
/// # Numerics
/// The terms alternate and fall, so that the remainder is at most the first term left out, 2^127 (ln 2)^28 / 28! <
/// 19489. Cutting a coefficient costs less than 1, a floor less than 1 and, in short steps, what is cut off the fraction
/// less than 1 more: together less than 28 + 27 + 8.
#[inline(always)]
#[allow(clippy::inline_always)] // as in ct
#[allow(clippy::cast_possible_truncation)]
pub(super) fn power(fraction: u128) -> u128 {
    let [shorter @ .., last] = &SHORT_COEFFICIENTS;
    let short = shorter.iter().rev().fold(*last, |sum, &coefficient| {
        coefficient.wrapping_sub(ct::high_product(sum, (fraction >> 64) as u64))
    });
    LONG_COEFFICIENTS.iter().rev().fold(u128::from(short), |sum, &coefficient| {
        coefficient.wrapping_sub(ct::high_product_wide(sum, fraction))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::{Integer, Natural, Rational, exp::exp, ln::ln};
    use num_traits::{One, pow};
    use proptest::prelude::*;

    #[test]
    fn coefficients_are_those_of_taylor() {
        let ln_two = ln(&Rational::from_integer(2.into()), 400);
        let mut factorial = Integer::one();
        let all = LONG_COEFFICIENTS.iter().copied().chain(SHORT_COEFFICIENTS.map(u128::from));
        for (j, coefficient) in all.enumerate() {
            if j > 0 {
                factorial *= j;
            }
            for end in [&ln_two.lower, &ln_two.upper] {
                let exact = pow(end.to_rational(), j) / &factorial * (Integer::one() << 127_u32);
                assert_eq!(exact.to_integer(), Integer::from(coefficient));
            }
        }
    }

    fn check(fraction: u128) {
        let two = Rational::from_integer(2.into());
        let exponent = Rational::new(fraction.into(), Integer::one() << 128_u32);
        let power = Rational::from_integer(power(fraction).into());
        for (end, logarithm) in [(true, ln(&two, 300).lower), (false, ln(&two, 300).upper)] {
            let exact = exp(&(-&exponent * logarithm.to_rational()), 300);
            let exact = if end { exact.upper } else { exact.lower }.to_rational();
            let difference = &power - exact * (Integer::one() << 127_u32);
            assert!(difference < Rational::from_integer(65_536.into()), "{fraction}");
            assert!(difference > Rational::from_integer((-65_536).into()), "{fraction}");
        }
    }

    #[test]
    fn powers_at_the_ends_are_near_enough() {
        assert_eq!(power(0), 1 << 127);
        for fraction in [0, 1, u128::MAX, 1 << 127, u128::from(u64::MAX)] {
            check(fraction);
            assert!(Natural::from(power(fraction)) <= Natural::one() << 127_u32);
        }
    }

    proptest! {
        #[test]
        fn powers_are_near_enough(fraction in any::<u128>()) {
            check(fraction);
        }
    }
}
