//! Proven error radii of the float passes over all pairs.
//!
//! u = 2^-53, k outputs, masses p and q with floats f and g, |f - p| <= r p + 2^-126 (r = 0 and no constant when the
//! floats are the masses), row sums at most S <= 1 + 2e-9, h the float nearest to E: |h - E| <= u E.
//!
//! * A tile computes `sum f - sum min(f, fl(h g))`. Each product is off by a factor (1 + u)^2 and an underflow below
//!   2^-1074, each of the two sums by a factor (1 + u)^(k-1), the difference by (1 + u): (2 k + 5) u S in all. Exact
//!   masses move every minimum by at most the same factor as its smaller argument and the sum of p by r S: 2.1 r S.
//! * A separator v bounds `d <= sum (p - v)+ + sum (v - E q)+`. Terms of the first sum are off by (1 + u). A term of the
//!   second is zero both in truth and in floats unless E q <= 2 v, and then fl(h g) is off by at most 2.1 u E q <= 4.2 u
//!   |v|. Sums of k non-negative terms that stay below 2 are off by 2 (k + 2) u. Exact masses: r S + 4.2 r sum |v|.

use crate::exact::level::MachineLevel;

const U: f64 = f64::EPSILON / 2.0;

/// Underflows and the constant 2^-126 of every output, with room to spare.
const PER_OUTPUT: f64 = f64::from_bits((1023 - 119) << 52);

/// The constants of one search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numerics {
    /// h.
    pub(crate) multiplier: f64,
    /// Bound on |tile's number - divergence|.
    pub(crate) radius: f64,
    outputs: f64,
    relative_error: f64,
}

impl Numerics {
    pub(crate) fn new(level: MachineLevel, outputs: usize, relative_error: f64) -> Self {
        let outputs = outputs as f64;
        let radius = 1.01 * ((2.0 * outputs + 5.0) * U + 2.1 * relative_error)
            + outputs * (1.0 + level.high) * PER_OUTPUT;
        Self { multiplier: level.high, radius, outputs, relative_error }
    }

    /// What a separator's float bound may miss, as long as it stays below 2.
    pub(crate) fn separator_slack(&self, separator: &[f64]) -> f64 {
        let size: f64 = separator.iter().map(|level| level.abs()).sum();
        let relative = 2.0 * (self.outputs + 2.0) * U + (4.2 * U + 4.2 * self.relative_error) * (1.0 + size);
        1.01 * relative + self.outputs * (1.0 + self.multiplier) * PER_OUTPUT
    }

    /// What `sum (U - h L)+` over the outputs may miss; `size` is the sum of the U and h L.
    pub(crate) fn sum_slack(&self, size: f64) -> f64 {
        let relative = (self.outputs + 4.0) * U + 2.0 * self.relative_error;
        1.01 * relative * size + self.outputs * (1.0 + self.multiplier) * PER_OUTPUT
    }

    /// True when an output with these extreme masses contributes nothing to any pair: U <= E L, for certain.
    pub(crate) fn never_contributes(&self, lower: f64, upper: f64) -> bool {
        let margin = 1.0 - 2.2 * self.relative_error - 8.0 * U;
        let scaled = self.multiplier * lower * margin - (1.0 + self.multiplier) * PER_OUTPUT;
        upper <= scaled || upper == 0.0 && self.relative_error == 0.0
    }

    /// True when an output with these extreme masses contributes to some pair: U > E L, for certain.
    pub(super) fn contributes(&self, lower: f64, upper: f64) -> bool {
        let margin = 1.0 + 2.2 * self.relative_error + 8.0 * U;
        upper > self.multiplier * lower * margin + (1.0 + self.multiplier) * PER_OUTPUT
    }

    /// Floats at least this are exact masses that may be the largest, where `upper` is the largest float.
    pub(super) fn nearly_largest(&self, upper: f64) -> f64 {
        upper * (1.0 - 2.2 * self.relative_error - 4.0 * U) - PER_OUTPUT
    }

    /// Floats at most this are exact masses that may be the smallest, where `lower` is the smallest float.
    pub(super) fn nearly_smallest(&self, lower: f64) -> f64 {
        lower * (1.0 + 2.2 * self.relative_error + 4.0 * U) + PER_OUTPUT
    }
}
