//! The pass over one block with the vector instructions of `x86_64`: the same steps at three widths.
//!
//! `unsafe` here is vector loads and stores through pointers, and calls to functions compiled for instructions that
//! were checked to be there.
#![allow(unsafe_code)]

use super::{Block, Multiplier};

/// Writes a module with the pass for one vector type from its few primitive operations.
macro_rules! vector_pass {
    ($module:ident, $feature:literal, $lanes:literal, $vector:ty, $mask:ty, $no_lane:expr,
     $load:ident, $store:ident, $splat:ident, $add:ident, $sub:ident, $mul:ident, $or:ident,
     $greater:expr, $keep:expr, $magnitude:expr, $unite:expr, $any:expr) => {
        pub(crate) mod $module {
            use super::{Block, Multiplier};
            #[allow(clippy::wildcard_imports)]
            use std::arch::x86_64::*;

            /// Lane-wise accumulators.
            struct Lanes {
                p_high: $vector,
                p_low: $vector,
                q_high: $vector,
                q_low: $vector,
                p_total: $vector,
                q_total: $vector,
                signs: $vector,
                close: $mask,
            }

            #[inline]
            #[target_feature(enable = $feature)]
            fn step(lanes: &mut Lanes, p: $vector, q: $vector, multiplier: $vector, guard: $vector) {
                let scaled = $mul(multiplier, q);
                let inside = $greater(p, scaled);
                let p_inside = $keep(inside, p);
                let p_sum = $add(lanes.p_high, p_inside);
                lanes.p_low = $add(lanes.p_low, $sub(p_inside, $sub(p_sum, lanes.p_high)));
                lanes.p_high = p_sum;
                let q_inside = $keep(inside, q);
                let q_sum = $add(lanes.q_high, q_inside);
                lanes.q_low = $add(lanes.q_low, $sub(q_inside, $sub(q_sum, lanes.q_high)));
                lanes.q_high = q_sum;
                lanes.p_total = $add(lanes.p_total, p);
                lanes.q_total = $add(lanes.q_total, q);
                let gap = $magnitude($sub(p, scaled));
                lanes.close = $unite(lanes.close, $greater($mul(guard, p), gap));
                lanes.signs = $or(lanes.signs, $or(p, q));
            }

            /// The pass over two slices of the same length.
            #[target_feature(enable = $feature)]
            pub(super) fn block(p: &[f64], q: &[f64], multiplier: Multiplier) -> Block {
                let load = |x: &[f64; $lanes]| {
                    // SAFETY: an unaligned load of exactly the array's elements.
                    unsafe { $load(x.as_ptr()) }
                };
                let zero = $splat(0.0);
                let mut lanes = Lanes {
                    p_high: $splat(1.0),
                    p_low: zero,
                    q_high: $splat(multiplier.q_bias),
                    q_low: zero,
                    p_total: zero,
                    q_total: zero,
                    signs: zero,
                    close: $no_lane,
                };
                let (high, guard) = ($splat(multiplier.high), $splat(multiplier.guard));
                let (p_full, p_rest) = p.as_chunks::<$lanes>();
                let (q_full, q_rest) = q.as_chunks::<$lanes>();
                for (p, q) in p_full.iter().zip(q_full) {
                    step(&mut lanes, load(p), load(q), high, guard);
                }
                if !p_rest.is_empty() {
                    // Zeros change nothing: they are outside the event, and not close.
                    let (mut p_last, mut q_last) = ([0.0; $lanes], [0.0; $lanes]);
                    p_last[..p_rest.len()].copy_from_slice(p_rest);
                    q_last[..q_rest.len()].copy_from_slice(q_rest);
                    step(&mut lanes, load(&p_last), load(&q_last), high, guard);
                }
                let store = |x: $vector| {
                    let mut out = [0.0; $lanes];
                    // SAFETY: an unaligned store of exactly the array's elements.
                    unsafe { $store(out.as_mut_ptr(), x) };
                    out
                };
                Block {
                    p_high: store(lanes.p_high).iter().map(|high| high - 1.0).sum(),
                    p_low: store(lanes.p_low).iter().sum(),
                    q_high: store(lanes.q_high).iter().map(|high| high - multiplier.q_bias).sum(),
                    q_low: store(lanes.q_low).iter().sum(),
                    p_total: store(lanes.p_total).iter().sum(),
                    q_total: store(lanes.q_total).iter().sum(),
                    close: $any(lanes.close),
                    negative: store(lanes.signs).iter().any(|signs| signs.is_sign_negative()),
                }
            }
        }
    };
}

vector_pass!(
    sse2,
    "sse2",
    2,
    __m128d,
    __m128d,
    _mm_set1_pd(0.0),
    _mm_loadu_pd,
    _mm_storeu_pd,
    _mm_set1_pd,
    _mm_add_pd,
    _mm_sub_pd,
    _mm_mul_pd,
    _mm_or_pd,
    _mm_cmpgt_pd,
    _mm_and_pd,
    |x| _mm_andnot_pd(_mm_set1_pd(-0.0), x),
    _mm_or_pd,
    |x| _mm_movemask_pd(x) != 0
);
vector_pass!(
    avx2,
    "avx2",
    4,
    __m256d,
    __m256d,
    _mm256_set1_pd(0.0),
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_set1_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    _mm256_or_pd,
    |a, b| _mm256_cmp_pd::<_CMP_GT_OQ>(a, b),
    _mm256_and_pd,
    |x| _mm256_andnot_pd(_mm256_set1_pd(-0.0), x),
    _mm256_or_pd,
    |x| _mm256_movemask_pd(x) != 0
);
vector_pass!(
    avx512,
    "avx512f,avx512dq",
    8,
    __m512d,
    u8,
    0,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_set1_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_mul_pd,
    _mm512_or_pd,
    |a, b| _mm512_cmp_pd_mask::<_CMP_GT_OQ>(a, b),
    |mask, x| _mm512_maskz_mov_pd(mask, x),
    |x| _mm512_abs_pd(x),
    |a, b| a | b,
    |mask| mask != 0
);

pub(crate) fn block_sse2(p: &[f64], q: &[f64], multiplier: Multiplier) -> Block {
    // SAFETY: every x86_64 processor has SSE2.
    unsafe { sse2::block(p, q, multiplier) }
}

/// # Panics
/// Without AVX2.
pub(crate) fn block_avx2(p: &[f64], q: &[f64], multiplier: Multiplier) -> Block {
    assert!(is_x86_feature_detected!("avx2"));
    // SAFETY: checked on the line above.
    unsafe { avx2::block(p, q, multiplier) }
}

/// # Panics
/// Without AVX-512F and AVX-512DQ.
pub(crate) fn block_avx512(p: &[f64], q: &[f64], multiplier: Multiplier) -> Block {
    assert!(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq"));
    // SAFETY: checked on the line above.
    unsafe { avx512::block(p, q, multiplier) }
}
