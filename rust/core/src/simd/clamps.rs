//! Sums of clamped numbers over all pairs of two lists of rows, a register tile at a time.
//!
//! `clip(a - b, -tau, tau) = a - clamp(b, a - tau, a + tau)`, and bounds that saturate at the ends of the number type
//! clamp alike: two comparisons, one widening sum and one addition for a whole vector of pairs, for every tau and
//! without overflow.
//!
//! `unsafe` here is vector loads and stores through pointers, and calls to functions compiled for instructions that
//! were checked to be there.
#![allow(unsafe_code)]

use super::Kernel;

/// Numbers of rows are padded to a multiple of this.
pub const ROWS: usize = 4;
/// Bytes of a row are padded to a multiple of this, with zeros everywhere, which add nothing.
pub const ALIGNMENT: usize = 64;
/// The most bytes of a row.
pub const WIDEST: usize = 4096;

/// Some rows of bounds and some rows of numbers, all of the same width.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, T> {
    /// Lower bounds, row after row.
    pub lower: &'a [T],
    /// Upper bounds.
    pub upper: &'a [T],
    /// The numbers to be clamped.
    pub numbers: &'a [T],
    /// Numbers in a row.
    pub width: usize,
    /// Whether only the sums for a < b are needed; others may then be left out.
    pub triangle: bool,
}

/// A number type with a kernel for each instruction set.
pub trait Clamped: Copy + Default + Ord + Into<i64> + Send + Sync {
    /// Adds `sum_i clamp(numbers[b, i], lower[a, i], upper[a, i])` to `sums[a, b]`.
    ///
    /// # Panics
    /// When the lengths do not fit together, or rows are padded differently than this module says.
    fn add_clamped(kernel: Kernel, rows: Rows<'_, Self>, sums: &mut [i64]);
}

fn check<T>(rows: &Rows<'_, T>, sums: &[i64]) {
    let (group, bytes) = (ROWS * rows.width, rows.width * size_of::<T>());
    assert!(bytes > 0 && bytes <= WIDEST && bytes.is_multiple_of(ALIGNMENT));
    assert!(rows.lower.len() == rows.upper.len() && rows.lower.len().is_multiple_of(group));
    assert!(rows.numbers.len().is_multiple_of(group));
    assert!(sums.len() == (rows.lower.len() / rows.width) * (rows.numbers.len() / rows.width));
}

/// One pair at a time: for number types and processors without a kernel, and what the kernels are tested against.
fn add_scalar<T: Clamped>(rows: Rows<'_, T>, sums: &mut [i64]) {
    let Rows { lower, upper, numbers, width, .. } = rows;
    let bounds = lower.chunks_exact(width).zip(upper.chunks_exact(width));
    for ((lower, upper), sums) in bounds.zip(sums.chunks_exact_mut(numbers.len() / width)) {
        for (numbers, sum) in numbers.chunks_exact(width).zip(sums) {
            for ((&lower, &upper), &number) in lower.iter().zip(upper).zip(numbers) {
                *sum += number.max(lower).min(upper).into();
            }
        }
    }
}

impl Clamped for i64 {
    fn add_clamped(_: Kernel, rows: Rows<'_, Self>, sums: &mut [i64]) {
        check(&rows, sums);
        add_scalar(rows, sums);
    }
}

/// Writes a module with the sums for one vector type from its primitive operations.
///
/// `$height` rows of bounds times [`ROWS`] rows of numbers are one tile, whose sums stay in registers.
#[cfg(target_arch = "x86_64")]
macro_rules! vector_clamps {
    ($module:ident, $feature:literal, $type:ty, $lanes:literal, $height:literal, $vector:ty, $sum:ty, $sums:literal,
     $load:ident, $store:ident, $zero:ident, $maximum:ident, $minimum:ident, $total:expr, $add:ident) => {
        mod $module {
            use super::{ROWS, Rows};
            #[allow(clippy::wildcard_imports)]
            use std::arch::x86_64::*;
            use std::array::from_fn;

            type Row<'a> = &'a [[$type; $lanes]];

            #[inline]
            #[target_feature(enable = $feature)]
            fn tile(
                lower: [Row<'_>; $height],
                upper: [Row<'_>; $height],
                numbers: [Row<'_>; ROWS],
            ) -> [[$vector; ROWS]; $height] {
                let load = |numbers: &[$type; $lanes]| {
                    // SAFETY: an unaligned load of exactly the array's numbers.
                    unsafe { $load(numbers.as_ptr().cast()) }
                };
                let mut totals = [[$zero(); ROWS]; $height];
                for step in 0..numbers[0].len() {
                    let loaded: [$vector; ROWS] = from_fn(|column| load(&numbers[column][step]));
                    for ((lower, upper), totals) in lower.iter().zip(&upper).zip(&mut totals) {
                        let (lower, upper) = (load(&lower[step]), load(&upper[step]));
                        for (total, &numbers) in totals.iter_mut().zip(&loaded) {
                            *total = $add(*total, $total($minimum($maximum(numbers, lower), upper)));
                        }
                    }
                }
                totals
            }

            #[target_feature(enable = $feature)]
            pub(super) fn add(rows: Rows<'_, $type>, sums: &mut [i64]) {
                let Rows { lower, upper, numbers, width, triangle } = rows;
                let columns = numbers.len() / width;
                let row = |rows, index| {
                    <[$type]>::as_chunks(&<[$type]>::split_at(rows, index * width).1[..width]).0
                };
                for (i, sums) in sums.chunks_exact_mut($height * columns).enumerate() {
                    let lower = from_fn(|part| row(lower, i * $height + part));
                    let upper = from_fn(|part| row(upper, i * $height + part));
                    let below = if triangle { i * $height / ROWS * ROWS } else { 0 };
                    for first in (below..columns).step_by(ROWS) {
                        let totals = tile(lower, upper, from_fn(|part| row(numbers, first + part)));
                        for (sums, totals) in sums.chunks_exact_mut(columns).zip(totals) {
                            for (sum, total) in sums[first..].iter_mut().zip(totals) {
                                let mut lanes: [$sum; $sums] = [0; $sums];
                                // SAFETY: an unaligned store of exactly the array's numbers.
                                unsafe { $store(lanes.as_mut_ptr().cast(), total) };
                                *sum += lanes.into_iter().map(i64::from).sum::<i64>();
                            }
                        }
                    }
                }
            }
        }
    };
}

/// Writes the choice among the kernels of one number type.
macro_rules! clamped {
    ($type:ty, $sse2:ident, $avx2:ident, $avx512:ident) => {
        impl Clamped for $type {
            fn add_clamped(kernel: Kernel, rows: Rows<'_, Self>, sums: &mut [i64]) {
                check(&rows, sums);
                #[cfg(target_arch = "x86_64")]
                match kernel {
                    Kernel::Scalar => {}
                    Kernel::Avx512
                        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") =>
                    {
                        // SAFETY: the instructions were found on this machine.
                        return unsafe { $avx512::add(rows, sums) };
                    }
                    Kernel::Avx512 | Kernel::Avx2 if is_x86_feature_detected!("avx2") => {
                        // SAFETY: the instructions were found on this machine.
                        return unsafe { $avx2::add(rows, sums) };
                    }
                    // SAFETY: every x86_64 processor has SSE2.
                    _ => return unsafe { $sse2::add(rows, sums) },
                }
                let _ = kernel;
                add_scalar(rows, sums);
            }
        }
    };
}
clamped!(u8, bytes_sse2, bytes_avx2, bytes_avx512);
clamped!(i16, words_sse2, words_avx2, words_avx512);

#[cfg(target_arch = "x86_64")]
vector_clamps!(
    bytes_sse2,
    "sse2",
    u8,
    16,
    2,
    __m128i,
    i64,
    2,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_setzero_si128,
    _mm_max_epu8,
    _mm_min_epu8,
    |x| _mm_sad_epu8(x, _mm_setzero_si128()),
    _mm_add_epi64
);
#[cfg(target_arch = "x86_64")]
vector_clamps!(
    bytes_avx2,
    "avx2",
    u8,
    32,
    2,
    __m256i,
    i64,
    4,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_setzero_si256,
    _mm256_max_epu8,
    _mm256_min_epu8,
    |x| _mm256_sad_epu8(x, _mm256_setzero_si256()),
    _mm256_add_epi64
);
#[cfg(target_arch = "x86_64")]
vector_clamps!(
    bytes_avx512,
    "avx512f,avx512bw",
    u8,
    64,
    4,
    __m512i,
    i64,
    8,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_setzero_si512,
    _mm512_max_epu8,
    _mm512_min_epu8,
    |x| _mm512_sad_epu8(x, _mm512_setzero_si512()),
    _mm512_add_epi64
);
// Pairs of words are added up in 32 bits: at most 2^16 in a step and 2^7 steps in a row.
#[cfg(target_arch = "x86_64")]
vector_clamps!(
    words_sse2,
    "sse2",
    i16,
    8,
    2,
    __m128i,
    i32,
    4,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_setzero_si128,
    _mm_max_epi16,
    _mm_min_epi16,
    |x| _mm_madd_epi16(x, _mm_set1_epi16(1)),
    _mm_add_epi32
);
#[cfg(target_arch = "x86_64")]
vector_clamps!(
    words_avx2,
    "avx2",
    i16,
    16,
    2,
    __m256i,
    i32,
    8,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_setzero_si256,
    _mm256_max_epi16,
    _mm256_min_epi16,
    |x| _mm256_madd_epi16(x, _mm256_set1_epi16(1)),
    _mm256_add_epi32
);
#[cfg(target_arch = "x86_64")]
vector_clamps!(
    words_avx512,
    "avx512f,avx512bw",
    i16,
    32,
    4,
    __m512i,
    i32,
    16,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_setzero_si512,
    _mm512_max_epi16,
    _mm512_min_epi16,
    |x| _mm512_madd_epi16(x, _mm512_set1_epi16(1)),
    _mm512_add_epi32
);
