//! Kernels compiled for several instruction sets, and the choice among them at run time.
//!
//! Here `unsafe` stands for vector loads and stores, and calls of functions compiled for instructions
//! that were checked to be there.

pub mod clamps;
pub(crate) mod dispatch;
pub mod hadamard;
pub mod keystream;
#[cfg(target_arch = "x86_64")]
pub(crate) mod pass;
pub mod rows;
pub mod tiles;

use std::sync::OnceLock;

/// What the pass over one block returns: excesses over the biases, and totals.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Block {
    pub(crate) p_high: f64,
    pub(crate) p_low: f64,
    pub(crate) q_high: f64,
    pub(crate) q_low: f64,
    pub(crate) p_total: f64,
    pub(crate) q_total: f64,
    pub(crate) close: bool,
    pub(crate) negative: bool,
}

/// The public constants of a pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Multiplier {
    /// The float nearest to E.
    pub(crate) high: f64,
    /// Outputs with |p - fl(h q)| < guard p are close.
    pub(crate) guard: f64,
    /// Where the accumulators of q start.
    pub(crate) q_bias: f64,
}

/// The instruction sets that the kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Plain arithmetic, one output at a time: the reference that the others are tested against.
    Scalar,
    /// 128-bit vectors, which every `x86_64` processor has.
    #[cfg(target_arch = "x86_64")]
    Sse2,
    /// 256-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kernel {
    /// The kernels that this machine can run, the best one last.
    pub fn supported() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut kernels = vec![Self::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            kernels.push(Self::Sse2);
            if is_x86_feature_detected!("avx2") {
                kernels.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
                kernels.push(Self::Avx512);
            }
        }
        kernels
    }

    fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => "baseline",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
        }
    }

    /// The best kernel of this machine, chosen once. The environment variable `USERDP_KERNEL` (`scalar`, `baseline`,
    /// `avx2`, `avx512`) names another supported one, for measurements; all enclose the same numbers.
    pub fn detect() -> Self {
        static KERNEL: OnceLock<Kernel> = OnceLock::new();
        *KERNEL.get_or_init(|| {
            let wish = std::env::var("USERDP_KERNEL").unwrap_or_default();
            let supported = Self::supported();
            let best = supported.last().copied().unwrap_or(Self::Scalar);
            supported.into_iter().find(|kernel| kernel.name() == wish).unwrap_or(best)
        })
    }
}
