//! Exact sums of non-negative floats.

use super::{Integer, Natural, Rational, rounding::decompose};

/// Bits of fraction: every float is a multiple of 2^-1074.
const FRACTION_BITS: usize = 1074;
/// 32-bit digits that hold 2098 bits of float plus 96 bits of carries.
const DIGITS: usize = 70;

/// An exact running sum of non-negative finite floats: a fixed-point number wide enough for all of them.
#[derive(Debug, Clone)]
pub struct ExactSum {
    /// Little-endian digits to base 2^32, each with 32 bits of room for carries.
    digits: [u64; DIGITS],
    /// Additions since the carries were last propagated.
    pending: u32,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self { digits: [0; DIGITS], pending: 0 }
    }
}

impl ExactSum {
    /// The empty sum.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a finite, non-negative float. At most 2^64 additions keep the carries within the spare digits.
    pub fn add(&mut self, x: f64) {
        debug_assert!(x.is_finite() && x >= 0.0);
        let (mantissa, exponent) = decompose(x);
        let position = (exponent + 1074).unsigned_abs() as usize;
        let shifted = u128::from(mantissa) << (position % 32); // < 2^85
        let first = position / 32;
        for (offset, digit) in self.digits[first..first + 3].iter_mut().enumerate() {
            *digit += u64::try_from((shifted >> (32 * offset)) & 0xffff_ffff).unwrap_or(0);
        }
        self.pending += 1;
        if self.pending == 1 << 31 {
            self.propagate();
        }
    }

    fn propagate(&mut self) {
        let mut carry = 0;
        for digit in &mut self.digits {
            let sum = *digit + carry;
            *digit = sum & 0xffff_ffff;
            carry = sum >> 32;
        }
        self.pending = 0;
    }

    /// The exact sum.
    pub fn value(&self) -> Rational {
        let mut copy = self.clone();
        copy.propagate();
        #[allow(clippy::cast_possible_truncation)] // below 2^32 after propagation
        let digits: Vec<u32> = copy.digits.iter().map(|&digit| digit as u32).collect();
        Rational::new(Integer::from(Natural::from_slice(&digits)), Integer::from(1) << FRACTION_BITS)
    }
}
