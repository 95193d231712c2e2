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

use crate::exact::level::MachineLevel;
use std::sync::OnceLock;

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

/// The instruction sets that the pass is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Whatever the build's target guarantees.
    Baseline,
    /// 256-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kernel {
    /// The best kernel of this machine, detected once. The environment variable `USERDP_KERNEL` (`baseline`, `avx2`,
    /// `avx512`) can only lower it, for measurements; all kernels give enclosures of the same numbers.
    pub fn detect() -> Self {
        static KERNEL: OnceLock<Kernel> = OnceLock::new();
        *KERNEL.get_or_init(|| {
            let wish = std::env::var("USERDP_KERNEL").unwrap_or_default();
            Self::best(&wish)
        })
    }

    #[cfg(target_arch = "x86_64")]
    fn best(wish: &str) -> Self {
        if wish == "baseline" || !is_x86_feature_detected!("avx2") {
            Self::Baseline
        } else if wish == "avx2" || !is_x86_feature_detected!("avx512f") {
            Self::Avx2
        } else {
            Self::Avx512
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn best(_wish: &str) -> Self {
        Self::Baseline
    }
}

/// Runs the pass with the best kernel of this machine. Slices must have the same length.
pub fn sums(p: &[f64], q: &[f64], level: MachineLevel) -> Sums {
    sums_with(Kernel::detect(), p, q, level)
}

/// Runs the pass with a given kernel.
///
/// # Panics
/// When the lengths differ, or this machine does not support the kernel.
#[allow(unsafe_code)]
pub fn sums_with(kernel: Kernel, p: &[f64], q: &[f64], level: MachineLevel) -> Sums {
    assert_eq!(p.len(), q.len());
    match kernel {
        Kernel::Baseline => pass::<4>(p, q, level),
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => {
            assert!(is_x86_feature_detected!("avx2"));
            // SAFETY: the line above checks the only requirement, that the processor has AVX2.
            unsafe { pass_avx2(p, q, level) }
        }
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx512 => {
            assert!(is_x86_feature_detected!("avx512f"));
            // SAFETY: the line above checks the only requirement, that the processor has AVX-512F.
            unsafe { pass_avx512(p, q, level) }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn pass_avx2(p: &[f64], q: &[f64], level: MachineLevel) -> Sums {
    pass::<4>(p, q, level)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn pass_avx512(p: &[f64], q: &[f64], level: MachineLevel) -> Sums {
    pass::<8>(p, q, level)
}

/// Lane-wise accumulators of a block.
struct Lanes<const L: usize> {
    p_high: [f64; L],
    p_low: [f64; L],
    q_high: [f64; L],
    q_low: [f64; L],
    p_total: [f64; L],
    q_total: [f64; L],
    gap: [f64; L],
    signs: [u64; L],
}

// Inlined into each caller, so that it is compiled for the caller's instruction set.
#[allow(clippy::inline_always)]
#[inline(always)]
fn step<const L: usize>(lanes: &mut Lanes<L>, p: &[f64; L], q: &[f64; L], multiplier: f64, guard: f64) {
    for lane in 0..L {
        let (mass, other) = (p[lane], q[lane]);
        let scaled = multiplier * other;
        let inside = mass > scaled;
        let p_inside = if inside { mass } else { 0.0 };
        let q_inside = if inside { other } else { 0.0 };
        let p_sum = lanes.p_high[lane] + p_inside;
        lanes.p_low[lane] += p_inside - (p_sum - lanes.p_high[lane]);
        lanes.p_high[lane] = p_sum;
        let q_sum = lanes.q_high[lane] + q_inside;
        lanes.q_low[lane] += q_inside - (q_sum - lanes.q_high[lane]);
        lanes.q_high[lane] = q_sum;
        lanes.p_total[lane] += mass;
        lanes.q_total[lane] += other;
        let gap = (mass - scaled).abs() - guard * mass;
        lanes.gap[lane] = if gap < lanes.gap[lane] { gap } else { lanes.gap[lane] };
        lanes.signs[lane] |= mass.to_bits() | other.to_bits();
    }
}

#[allow(clippy::inline_always)]
#[inline(always)]
fn pass<const L: usize>(p: &[f64], q: &[f64], level: MachineLevel) -> Sums {
    let guard = if level.exact_products { 0.0 } else { 8.0 * f64::EPSILON / 2.0 };
    // A power of two in [1/h, 2/h): 2^-e for h in [2^e, 2^(e+1)).
    let exponent_bits = level.high.to_bits() >> 52;
    let q_bias = f64::from_bits((2046 - exponent_bits) << 52);
    let mut result = Sums::default();
    for (p, q) in p.chunks(BLOCK).zip(q.chunks(BLOCK)) {
        let mut lanes = Lanes::<L> {
            p_high: [1.0; L],
            p_low: [0.0; L],
            q_high: [q_bias; L],
            q_low: [0.0; L],
            p_total: [0.0; L],
            q_total: [0.0; L],
            gap: [0.0; L],
            signs: [0; L],
        };
        let (p_full, p_rest) = p.as_chunks::<L>();
        let (q_full, q_rest) = q.as_chunks::<L>();
        for (p, q) in p_full.iter().zip(q_full) {
            step(&mut lanes, p, q, level.high, guard);
        }
        if !p_rest.is_empty() {
            let (mut p_last, mut q_last) = ([0.0; L], [0.0; L]);
            p_last[..p_rest.len()].copy_from_slice(p_rest);
            q_last[..q_rest.len()].copy_from_slice(q_rest);
            step(&mut lanes, &p_last, &q_last, level.high, guard);
        }
        let (mut p_low, mut q_low) = (0.0, 0.0);
        for lane in 0..L {
            result.p_high += lanes.p_high[lane] - 1.0; // exact: multiples of 2^-52 below 2
            result.q_high += lanes.q_high[lane] - q_bias; // exact likewise
            p_low += lanes.p_low[lane];
            q_low += lanes.q_low[lane];
            result.p_total += lanes.p_total[lane];
            result.q_total += lanes.q_total[lane];
            result.close |= lanes.gap[lane] < 0.0;
            result.negative |= lanes.signs[lane] >> 63 == 1;
        }
        result.p_low += p_low;
        result.q_low += q_low;
    }
    let error = error_units(p.len(), L);
    result.p_error = error;
    result.q_error = error * q_bias;
    result
}

/// Bounds the error of the collected rounding errors, for accumulators of bias 1.
///
/// In a block of n additions per lane the lanes are off by 2^-105 L n (n + 1) / 2; adding L of them up by
/// at most u L (L n 2^-52); adding the blocks' values up by at most u per block times their sum, 2^-52 k.
fn error_units(outputs: usize, lanes: usize) -> f64 {
    let unit = 2.0_f64.powi(-105);
    let blocks = outputs.div_ceil(BLOCK) as f64;
    let per_lane = (outputs.min(BLOCK).div_ceil(lanes)) as f64;
    let lanes = lanes as f64;
    let in_block = lanes * per_lane * (per_lane + 1.0) / 2.0 + lanes * lanes * per_lane;
    let across = if blocks > 1.0 { blocks * outputs as f64 } else { 0.0 };
    1.001 * unit * (blocks * in_block + across)
}
