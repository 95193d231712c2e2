//! Proven error radii of the float passes over all pairs.
//!
//! u = 2^-53, k outputs, masses p and q with floats f and g, |f - p| <= r p + 2^-126 (r = 0 and no constant when the
//! floats are the masses), row sums at most S <= 1 + 2e-9, h the float nearest to E: |h - E| <= u E.
//!
//! Every bound below is proven in `docs/proofs/all_pairs.md`.
//!
//! * A tile computes `sum f - sum min(f, fl(h g))`. Each product is off by a factor (1 + u)^2 and an underflow below
//!   2^-1074, each of the two sums by a factor (1 + u)^(k-1), the difference by (1 + u): (2 k + 1) u S in all, and 4 u
//!   are left for adding and subtracting the radius in floats. Exact masses move every minimum by at most the same
//!   factor as its smaller argument and the sum of p by r S: 2.1 r S.
//! * A separator v bounds `d <= sum (p - v)+ + sum (v - E q)+`. Terms of the first sum are off by (1 + u). A term of the
//!   second is zero in truth unless E q <= v, and then fl(h q) is off by at most 2.1 u E q <= 2.1 u |v|. Sums of k
//!   non-negative terms that stay below 2 are off by 2 (k + 2) u. Exact masses: r S + 2.1 r sum |v|.

use crate::exact::level::MachineLevel;

const U: f64 = f64::EPSILON / 2.0;

/// The constant 2^-126 of an output's float, with room to spare.
const NEAR_CONSTANT: f64 = f64::from_bits((1023 - 119) << 52);

/// Underflows of products, with room to spare.
const UNDERFLOW: f64 = f64::from_bits((1023 - 1000) << 52);

/// The constants of one search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numerics {
    /// h.
    pub(crate) multiplier: f64,
    /// Bound on |tile's number - divergence|.
    pub(crate) radius: f64,
    outputs: f64,
    relative_error: f64,
    /// Bound on the absolute errors of one mass p and one product E q together.
    constant: f64,
}

impl Numerics {
    pub(crate) fn new(level: MachineLevel, outputs: usize, relative_error: f64) -> Self {
        let outputs = outputs as f64;
        let constant = (1.0 + level.high) * if relative_error > 0.0 { NEAR_CONSTANT } else { UNDERFLOW };
        let radius = 1.01 * ((2.0 * outputs + 5.0) * U + 2.1 * relative_error) + outputs * constant;
        Self { multiplier: level.high, radius, outputs, relative_error, constant }
    }

    /// What a separator's float bound may miss, as long as it stays below 2.
    pub(crate) fn separator_slack(&self, separator: &[f64]) -> f64 {
        let size: f64 = separator.iter().map(|level| level.abs()).sum();
        let relative = 2.0 * (self.outputs + 2.0) * U + (4.2 * U + 4.2 * self.relative_error) * (1.0 + size);
        1.01 * relative + self.outputs * self.constant
    }

    /// What `sum (U - h L)+` over the outputs may miss; `size` is the sum of the U and h L.
    pub(crate) fn sum_slack(&self, size: f64) -> f64 {
        let relative = (self.outputs + 4.0) * U + 2.0 * self.relative_error;
        1.01 * relative * size + self.outputs * self.constant
    }

    /// True when an output with these extreme masses contributes nothing to any pair: U <= E L, for certain.
    pub(crate) fn never_contributes(&self, lower: f64, upper: f64) -> bool {
        let margin = 1.0 - 2.2 * self.relative_error - 8.0 * U;
        let scaled = self.multiplier * lower * margin - self.constant;
        upper <= scaled || upper == 0.0 && self.relative_error == 0.0
    }

    /// True when an output with these extreme masses contributes to some pair: U > E L, for certain.
    pub(super) fn contributes(&self, lower: f64, upper: f64) -> bool {
        let margin = 1.0 + 2.2 * self.relative_error + 8.0 * U;
        upper > self.multiplier * lower * margin + self.constant
    }

    /// Floats at least this are exact masses that may be the largest, where `upper` is the largest float.
    pub(super) fn nearly_largest(&self, upper: f64) -> f64 {
        upper * (1.0 - 2.2 * self.relative_error - 4.0 * U) - self.constant
    }

    /// Floats at most this are exact masses that may be the smallest, where `lower` is the smallest float.
    pub(super) fn nearly_smallest(&self, lower: f64) -> f64 {
        lower * (1.0 + 2.2 * self.relative_error + 4.0 * U) + self.constant
    }
}

#[cfg(test)]
#[path = "numerics_tests.rs"]
mod tests;
