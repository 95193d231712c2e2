//! The Walsh-Hadamard transform, several levels at a time in registers.
//!
//! Every number of the result is a sum by one fixed tree, that of the plain algorithm (level 1, 2, 4, and so on), so
//! that all kernels give the same bits.
//!
//! `unsafe` here is vector loads and stores through pointers, and calls to functions compiled for instructions that
//! were checked to be there.
#![allow(unsafe_code)]

use super::Kernel;
#[cfg(target_arch = "x86_64")]
use super::dispatch::{has_avx2, has_avx512};

/// Multiplies numbers by factors, and replaces them by their transform `S(i) = sum_j (-1)^(ones of i & j) x_j`.
///
/// # Panics
/// Unless there are as many factors as numbers, a power of two.
pub fn transform(kernel: Kernel, numbers: &mut [f64], factors: &[f64]) {
    assert!(numbers.len().is_power_of_two() && factors.len() == numbers.len());
    #[cfg(target_arch = "x86_64")]
    match kernel {
        // SAFETY: the instructions were found on this machine.
        Kernel::Avx512 if numbers.len() >= avx512::LEAST && has_avx512() => unsafe {
            return avx512::transform(numbers, factors);
        },
        // SAFETY: the instructions were found on this machine.
        Kernel::Avx512 | Kernel::Avx2 if numbers.len() >= avx2::LEAST && has_avx2() => unsafe {
            return avx2::transform(numbers, factors);
        },
        Kernel::Scalar => {}
        // SAFETY: every x86_64 processor has SSE2.
        _ if numbers.len() >= sse2::LEAST => unsafe { return sse2::transform(numbers, factors) },
        _ => {}
    }
    let _ = kernel;
    plain(numbers, factors);
}

/// Level after level: for short vectors, and what the kernels are tested against.
fn plain(numbers: &mut [f64], factors: &[f64]) {
    for (x, factor) in numbers.iter_mut().zip(factors) {
        *x *= factor;
    }
    let mut half = 1;
    while half < numbers.len() {
        for pair in numbers.chunks_exact_mut(2 * half) {
            let (left, right) = pair.split_at_mut(half);
            for (a, b) in left.iter_mut().zip(right) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
}

/// Writes a module with the transform for one vector type from its primitive operations.
///
/// `$levels` takes a vector through the levels among its own lanes; `2 * $half` vectors, at most 16, fit into registers
/// with what else is needed.
#[cfg(target_arch = "x86_64")]
macro_rules! vector_transform {
    ($module:ident, $feature:literal, $vector:ty, $lanes:literal, $half:literal, $load:ident, $store:ident, $add:ident,
     $subtract:ident, $multiply:ident, $levels:expr) => {
        mod $module {
            #[allow(clippy::wildcard_imports)]
            use std::arch::x86_64::*;
            use std::array::from_fn;

            /// The least length.
            pub(super) const LEAST: usize = 2 * $half * $lanes;

            /// The level `half` among vectors, in every lane by itself.
            #[inline]
            #[target_feature(enable = $feature)]
            fn level<const R: usize>(x: [$vector; R], half: usize) -> [$vector; R] {
                from_fn(
                    |i| if i & half == 0 { $add(x[i], x[i ^ half]) } else { $subtract(x[i ^ half], x[i]) },
                )
            }

            /// All levels among the vectors of two halves.
            #[inline]
            #[target_feature(enable = $feature)]
            fn levels<const R: usize>(halves: [[$vector; R]; 2]) -> [[$vector; R]; 2] {
                let [low, high] = halves.map(|x| {
                    let x = if R > 1 { level(x, 1) } else { x };
                    let x = if R > 2 { level(x, 2) } else { x };
                    if R > 4 { level(x, 4) } else { x }
                });
                [from_fn(|i| $add(low[i], high[i])), from_fn(|i| $subtract(low[i], high[i]))]
            }

            /// The levels `apart`, `2 apart`, to `R apart`, a multiple of the lanes.
            #[inline]
            #[target_feature(enable = $feature)]
            fn pass<const R: usize>(numbers: &mut [f64], apart: usize) {
                for block in numbers.chunks_exact_mut(2 * R * apart) {
                    for first in (0..apart).step_by($lanes) {
                        let start = block[first..].as_mut_ptr();
                        // SAFETY: `first + i apart` and the places of a vector are within the block of `2 R apart`.
                        unsafe {
                            let load = |i| $load(start.add(i * apart));
                            let [low, high] = levels::<R>([from_fn(load), from_fn(|i| load(R + i))]);
                            for i in 0..R {
                                $store(start.add(i * apart), low[i]);
                                $store(start.add((R + i) * apart), high[i]);
                            }
                        }
                    }
                }
            }

            #[target_feature(enable = $feature)]
            pub(super) fn transform(numbers: &mut [f64], factors: &[f64]) {
                for (block, factors) in numbers.chunks_exact_mut(LEAST).zip(factors.chunks_exact(LEAST)) {
                    let (start, factors) = (block.as_mut_ptr(), factors.as_ptr());
                    // SAFETY: there are `2 half` vectors in the block and of factors.
                    unsafe {
                        let load = |i| {
                            let (x, factor) = ($load(start.add(i * $lanes)), $load(factors.add(i * $lanes)));
                            $levels($multiply(x, factor))
                        };
                        let [low, high] = levels::<$half>([from_fn(load), from_fn(|i| load($half + i))]);
                        for i in 0..$half {
                            $store(start.add(i * $lanes), low[i]);
                            $store(start.add(($half + i) * $lanes), high[i]);
                        }
                    }
                }
                let mut apart = LEAST;
                while apart < numbers.len() {
                    match numbers.len() / apart {
                        2 => pass::<1>(numbers, apart),
                        4 => pass::<2>(numbers, apart),
                        8 => pass::<4>(numbers, apart),
                        _ => pass::<$half>(numbers, apart),
                    }
                    apart *= 2 * $half;
                }
            }
        }
    };
}

// Of two lanes a, b at the places i and i + half, the first gets a + b, the second a - b. Products by 1 and -1 are
// exact, so that adding them in the same instruction rounds as adding does.
#[cfg(target_arch = "x86_64")]
vector_transform!(
    avx512,
    "avx512f,avx512dq,avx512vl",
    __m512d,
    8,
    8,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_mul_pd,
    |x| {
        let signs = _mm512_setr_pd(1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0);
        let x = _mm512_fmadd_pd(x, signs, _mm512_permute_pd::<0b0101_0101>(x));
        let signs = _mm512_setr_pd(1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0);
        let x = _mm512_fmadd_pd(x, signs, _mm512_permutex_pd::<0b0100_1110>(x));
        let signs = _mm512_setr_pd(1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0);
        _mm512_fmadd_pd(x, signs, _mm512_shuffle_f64x2::<0b0100_1110>(x, x))
    }
);
#[cfg(target_arch = "x86_64")]
vector_transform!(
    avx2,
    "avx2,fma",
    __m256d,
    4,
    4,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    |x| {
        let x = _mm256_fmadd_pd(x, _mm256_setr_pd(1.0, -1.0, 1.0, -1.0), _mm256_permute_pd::<0b0101>(x));
        _mm256_fmadd_pd(x, _mm256_setr_pd(1.0, 1.0, -1.0, -1.0), _mm256_permute2f128_pd::<1>(x, x))
    }
);
#[cfg(target_arch = "x86_64")]
vector_transform!(
    sse2,
    "sse2",
    __m128d,
    2,
    4,
    _mm_loadu_pd,
    _mm_storeu_pd,
    _mm_add_pd,
    _mm_sub_pd,
    _mm_mul_pd,
    |x| _mm_add_pd(_mm_xor_pd(x, _mm_setr_pd(0.0, -0.0)), _mm_shuffle_pd::<1>(x, x))
);
