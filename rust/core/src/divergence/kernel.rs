//! One pass over two float64 pmfs: validation, the event {p > E q}, and its two masses in twice the precision.
//!
//! # Method
//! The divergence is `d = P(B) - E Q(B)` with `B = {o : p_o > E q_o}`. One pass decides B by `p > fl(h q)` (h is the
//! float nearest to E), flags the outputs where rounding could have decided, and adds the masses of B to
//! accumulators that lose nothing: each accumulator starts at a bias that is at least as large as what is added, so
//! that `e = x - (s - a)` after `s = a + x` is the exact rounding error (the fast two-sum of Dekker), which a second accumulator collects.
//!
//! # Numerics
//! u = 2^-53, L lanes. Masses sum to at most 1 + 1e-9, so an accumulator of p stays in [1, 2 + 1e-8): its excess over
//! the bias is a multiple of 2^-52 and exact. Every error is at most 2^-52, so a lane that adds n of them is off by at
//! most u (2^-52 + 2 2^-52 + ... + n 2^-52) <= 2^-105 n (n + 1) / 2. The masses of q in B are below (1 + 1e-8) / h, so
//! their accumulators start at a power of two b with 1/h <= b < 2/h and everything scales by b.
//! An unflagged output is on the right side: fl(h q) is within a factor 1 +- 2.01 u of E q (plus 2^-1074 where it
//! underflows), and |p - fl(h q)| >= 8 u p. With an exact power of two E = h the guard is 0. What underflow can hide
//! is below 2^-600 per output for E <= 2^400.
//!
//! Paper: [GKKMMZ23, Definition 2], [LSAKKMS21, Definition 1], [LWY24, Definition 2.1].

use crate::exact::level::MachineLevel;
#[cfg(target_arch = "x86_64")]
use crate::simd::pass;
use crate::simd::{Block, Multiplier};

pub use crate::simd::Kernel;

/// Outputs per block; the lanes' errors are summed up after each.
const BLOCK: usize = 4096;

/// What one pass finds. `P(B)` is `p_high + p_low` within `p_error`, and so for q.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sums {
    /// Leading part of P(B), exact.
    pub p_high: f64,
    /// Collected rounding errors of P(B).
    pub p_low: f64,
    /// Bound on the error of `p_high + p_low`.
    pub p_error: f64,
    /// Leading part of Q(B), exact.
    pub q_high: f64,
    /// Collected rounding errors of Q(B).
    pub q_low: f64,
    /// Bound on the error of `q_high + q_low`.
    pub q_error: f64,
    /// Sum of p in ordinary floats.
    pub p_total: f64,
    /// Sum of q in ordinary floats.
    pub q_total: f64,
    /// Rounding could have decided on which side some output lies.
    pub close: bool,
    /// Some entry has its sign bit set.
    pub negative: bool,
}

/// The pass over one block, and the lanes it adds in.
type BlockPass = (fn(&[f64], &[f64], Multiplier) -> Block, usize);

/// Runs the pass with the best kernel of this machine. Slices must have the same length.
pub fn sums(p: &[f64], q: &[f64], level: MachineLevel) -> Sums {
    sums_with(Kernel::detect(), p, q, level)
}

/// Runs the pass with a given kernel.
///
/// # Panics
/// When the lengths differ, or this machine does not support the kernel.
pub fn sums_with(kernel: Kernel, p: &[f64], q: &[f64], level: MachineLevel) -> Sums {
    assert_eq!(p.len(), q.len());
    let (block, lanes): BlockPass = match kernel {
        Kernel::Scalar => (scalar_block, 1),
        #[cfg(target_arch = "x86_64")]
        Kernel::Sse2 => (pass::block_sse2, 2),
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => (pass::block_avx2, 4),
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx512 => (pass::block_avx512, 8),
    };
    // A power of two in [1/h, 2/h]: 2^-e for h in [2^e, 2^(e+1)).
    let q_bias = f64::from_bits((2046 - (level.high.to_bits() >> 52)) << 52);
    let guard = if level.exact_products { 0.0 } else { 2.0_f64.powi(-50) };
    let multiplier = Multiplier { high: level.high, guard, q_bias };
    let error = error_units(p.len(), lanes);
    let mut result = Sums { p_error: error, q_error: error * q_bias, ..Sums::default() };
    for (p, q) in p.chunks(BLOCK).zip(q.chunks(BLOCK)) {
        let block = block(p, q, multiplier);
        result.p_high += block.p_high; // exact: multiples of 2^-52 below 2
        result.p_low += block.p_low;
        result.q_high += block.q_high; // exact likewise
        result.q_low += block.q_low;
        result.p_total += block.p_total;
        result.q_total += block.q_total;
        result.close |= block.close;
        result.negative |= block.negative;
    }
    result
}

fn scalar_block(p: &[f64], q: &[f64], multiplier: Multiplier) -> Block {
    let mut block = Block { p_high: 1.0, q_high: multiplier.q_bias, ..Block::default() };
    for (&mass, &other) in p.iter().zip(q) {
        let scaled = multiplier.high * other;
        let (p_inside, q_inside) = if mass > scaled { (mass, other) } else { (0.0, 0.0) };
        let p_sum = block.p_high + p_inside;
        block.p_low += p_inside - (p_sum - block.p_high);
        block.p_high = p_sum;
        let q_sum = block.q_high + q_inside;
        block.q_low += q_inside - (q_sum - block.q_high);
        block.q_high = q_sum;
        block.p_total += mass;
        block.q_total += other;
        block.close |= (mass - scaled).abs() < multiplier.guard * mass;
        block.negative |= mass.is_sign_negative() || other.is_sign_negative();
    }
    block.p_high -= 1.0;
    block.q_high -= multiplier.q_bias;
    block
}

/// Bounds the error of the collected rounding errors, for accumulators of bias 1.
///
/// In a block of n additions per lane the L lanes are off by 2^-105 L n (n + 1) / 2; adding them up, by at most
/// u L (L n 2^-52); adding the blocks' values up, by at most u per block times their sum, 2^-52 k.
fn error_units(outputs: usize, lanes: usize) -> f64 {
    let unit = 2.0_f64.powi(-105);
    let blocks = outputs.div_ceil(BLOCK) as f64;
    let per_lane = (outputs.min(BLOCK).div_ceil(lanes)) as f64;
    let lanes = lanes as f64;
    let in_block = lanes * per_lane * (per_lane + 1.0) / 2.0 + lanes * lanes * per_lane;
    let across = if blocks > 1.0 { blocks * outputs as f64 } else { 0.0 };
    1.001 * unit * (blocks * in_block + across)
}
