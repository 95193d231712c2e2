//! Non-negative floats with an exponent of their own: products of huge binomials neither overflow nor underflow.

use crate::exact::{
    Natural,
    rounding::{Direction, scaled_quotient_to_f64},
};

/// 2^exponent for -1022 <= exponent <= 1023.
fn power_of_two(exponent: i64) -> f64 {
    debug_assert!((-1022..=1023).contains(&exponent));
    f64::from_bits((exponent + 1023).cast_unsigned() << 52)
}

/// `mantissa * 2^exponent`, with 1 <= mantissa < 2, or zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scaled {
    mantissa: f64,
    pub(super) exponent: i64,
}

impl Scaled {
    pub(super) const ZERO: Self = Self { mantissa: 0.0, exponent: i64::MIN / 4 };

    /// `x * 2^exponent` for a normal x > 0 or zero; exact.
    pub(super) fn new(x: f64, exponent: i64) -> Self {
        if x == 0.0 {
            return Self::ZERO;
        }
        debug_assert!(x.is_normal() && x > 0.0);
        let bits = x.to_bits();
        let own = (bits >> 52).cast_signed() - 1023;
        let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
        Self { mantissa, exponent: exponent + own }
    }

    /// The quotient of integers; one rounding.
    pub(super) fn quotient(numerator: &Natural, denominator: &Natural) -> Self {
        let exponent = numerator.bits().cast_signed() - denominator.bits().cast_signed();
        Self::new(scaled_quotient_to_f64(numerator, denominator, -exponent, Direction::Nearest), exponent)
    }

    /// The integer; one rounding.
    pub(super) fn integer(x: &Natural) -> Self {
        Self::quotient(x, &Natural::from(1_u8))
    }

    /// The product; one rounding.
    pub(super) fn times(self, other: Self) -> Self {
        Self::new(self.mantissa * other.mantissa, self.exponent + other.exponent)
    }

    /// The quotient by a positive number; one rounding.
    pub(super) fn over(self, other: Self) -> Self {
        Self::new(self.mantissa / other.mantissa, self.exponent - other.exponent)
    }

    /// The sum; one rounding.
    pub(super) fn plus(self, other: Self) -> Self {
        let (large, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let shift = small.exponent - large.exponent;
        if shift < -100 {
            return large; // less than half a unit in the last place
        }
        Self::new(large.mantissa + small.mantissa * power_of_two(shift), large.exponent)
    }

    /// The number over 2^exponent as a float: exact down to 2^-1022, at most 2^-1074 off below.
    pub(super) fn to_f64(self, exponent: i64) -> f64 {
        let exponent = self.exponent - exponent;
        if exponent >= -1022 {
            debug_assert!(exponent <= 1023);
            self.mantissa * power_of_two(exponent)
        } else if exponent >= -1080 {
            self.mantissa * power_of_two(-1022) * power_of_two(exponent + 1022)
        } else {
            0.0
        }
    }
}
