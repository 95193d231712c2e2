//! Sums of minima over all pairs of two lists of rows, a register tile at a time.
//!
//! The divergence of row p from row q at E is `sum p - sum min(p, E q)`, so that one minimum and one addition per
//! output and pair are all that an all-pairs search costs. Rows are packed in panels: the masses of a few rows side by
//! side, output after output, in the order in which a tile reads them.

use super::dispatch::dispatched;
use rayon::prelude::*;
use std::ops::Range;

/// A number that tiles are made of: float64, or fixed point in unsigned integers.
pub trait Element: Copy + Default + PartialOrd + Send + Sync {
    /// Larger than every packed number: what missing columns are padded with.
    const LARGEST: Self;
    /// `self + min(p, q)`; integers do not overflow as long as the sum of p does not.
    #[must_use]
    fn plus_minimum(self, p: Self, q: Self) -> Self;
    /// `self - other`, where other is not larger up to rounding.
    #[must_use]
    fn less(self, other: Self) -> Self;
}

impl Element for f64 {
    const LARGEST: Self = f64::INFINITY;
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn plus_minimum(self, p: Self, q: Self) -> Self {
        self + if p < q { p } else { q }
    }
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn less(self, other: Self) -> Self {
        self - other
    }
}

macro_rules! fixed_point {
    ($type:ty) => {
        impl Element for $type {
            const LARGEST: Self = <$type>::MAX;
            #[inline(always)]
            #[allow(clippy::inline_always)]
            fn plus_minimum(self, p: Self, q: Self) -> Self {
                self.wrapping_add(if p < q { p } else { q })
            }
            #[inline(always)]
            #[allow(clippy::inline_always)]
            fn less(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    };
}
fixed_point!(u32);
fixed_point!(u64);

/// Rows of a left panel, for every element type and instruction set.
pub const LEFT: usize = 8;
/// Rows of a right panel.
pub const RIGHT: usize = 32;

/// Panels packed by one thread at a time, so that short lists are packed by the caller alone.
const PANELS_PER_TASK: usize = 256;

/// A list of rows in panels of `WIDTH`, padded at the end.
#[derive(Debug, Clone)]
pub struct Panels<T, const WIDTH: usize> {
    numbers: Vec<T>,
    outputs: usize,
    rows: usize,
}

impl<T: Element, const WIDTH: usize> Panels<T, WIDTH> {
    /// Packs `rows` rows of `outputs` numbers each, given by `number(row, output)`; missing rows get `padding`.
    pub fn pack(rows: usize, outputs: usize, padding: T, number: impl Fn(usize, usize) -> T + Sync) -> Self {
        let mut numbers = vec![padding; rows.div_ceil(WIDTH) * WIDTH * outputs];
        numbers.par_chunks_exact_mut(WIDTH * outputs).with_min_len(PANELS_PER_TASK).enumerate().for_each(
            |(panel, block)| {
                for lane in 0..WIDTH.min(rows - panel * WIDTH) {
                    for output in 0..outputs {
                        block[output * WIDTH + lane] = number(panel * WIDTH + lane, output);
                    }
                }
            },
        );
        Self { numbers, outputs, rows }
    }

    /// The number of rows without padding.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of panels.
    pub fn len(&self) -> usize {
        self.rows.div_ceil(WIDTH)
    }

    /// True for no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    fn panel(&self, panel: usize) -> &[[T; WIDTH]] {
        let size = self.outputs * WIDTH;
        self.numbers[panel * size..][..size].as_chunks().0
    }
}

/// A range of panels.
type Part<'a, T, const WIDTH: usize> = (&'a Panels<T, WIDTH>, Range<usize>);

/// A pair of rows with its number `sum p - sum min(p, E q)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit<T> {
    /// Row of the left list.
    pub left: u32,
    /// Row of the right list.
    pub right: u32,
    /// The number.
    pub value: T,
}

/// What is collected: pairs above the threshold, which may rise on the way.
#[derive(Debug)]
pub struct Hits<'a, T> {
    /// Pairs strictly above this are collected.
    pub threshold: T,
    /// The pairs.
    pub found: &'a mut Vec<Hit<T>>,
    /// `Some(band)`: after every hit the threshold rises to its value less the band, where that is larger.
    pub band: Option<T>,
}

/// One tile: all left rows of a panel against `COLUMNS` of the right rows.
#[inline(always)]
#[allow(clippy::inline_always, clippy::needless_range_loop)]
fn tile<T: Element, const COLUMNS: usize>(
    left: &[[T; LEFT]],
    right: &[[T; RIGHT]],
    part: usize,
) -> [[T; COLUMNS]; LEFT] {
    let mut sums = [[T::default(); COLUMNS]; LEFT];
    for (p, q) in left.iter().zip(right) {
        let q = &q.as_chunks::<COLUMNS>().0[part];
        for row in 0..LEFT {
            for column in 0..COLUMNS {
                sums[row][column] = sums[row][column].plus_minimum(p[row], q[column]);
            }
        }
    }
    sums
}

/// All pairs of two ranges of panels; `tile` makes one tile's sums.
#[inline(always)]
#[allow(clippy::inline_always)]
fn block<T: Element, const COLUMNS: usize>(
    left: Part<'_, T, LEFT>,
    totals: &[T],
    right: Part<'_, T, RIGHT>,
    hits: &mut Hits<'_, T>,
    tile: impl Fn(&[[T; LEFT]], &[[T; RIGHT]], usize) -> [[T; COLUMNS]; LEFT],
) {
    let (left, left_panels) = left;
    let (right, right_panels) = right;
    for i in left_panels {
        let left_panel = left.panel(i);
        let mut sums = [T::default(); LEFT];
        let rows = LEFT.min(left.rows - i * LEFT);
        sums[..rows].copy_from_slice(&totals[i * LEFT..][..rows]);
        for j in right_panels.clone() {
            let right_panel = right.panel(j);
            for part in 0..RIGHT / COLUMNS {
                let mut values = tile(left_panel, right_panel, part);
                let mut above = false;
                for (values, &sum) in values.iter_mut().zip(&sums) {
                    for value in values {
                        *value = sum.less(*value);
                        above |= *value > hits.threshold;
                    }
                }
                if above {
                    collect(&values, i * LEFT, j * RIGHT + part * COLUMNS, (left.rows, right.rows), hits);
                }
            }
        }
    }
}

/// Rarely run: picks the pairs above the threshold, without those of the padding.
#[cold]
#[inline(never)]
fn collect<T: Element, const COLUMNS: usize>(
    values: &[[T; COLUMNS]; LEFT],
    first_left: usize,
    first_right: usize,
    (left_rows, right_rows): (usize, usize),
    hits: &mut Hits<'_, T>,
) {
    for (left, values) in (first_left..left_rows).zip(values) {
        for (right, &value) in (first_right..right_rows).zip(values) {
            if value > hits.threshold {
                // Indices of rows fit 32 bits: matrices that do not would not fit the memory.
                #[allow(clippy::cast_possible_truncation)]
                hits.found.push(Hit { left: left as u32, right: right as u32, value });
                if let Some(band) = hits.band
                    && value > band
                    && value.less(band) > hits.threshold
                {
                    hits.threshold = value.less(band);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! avx512_tile {
    ($name:ident, $type:ty, $vector:ty, $lanes:literal, $vectors:literal,
     $zero:ident, $splat:expr, $load:ident, $store:ident, $minimum:ident, $add:ident) => {
        /// One tile with vectors of 512 bits, which the compiler does not find by itself.
        #[allow(unsafe_code)]
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
        fn $name(
            left: &[[$type; LEFT]],
            right: &[[$type; RIGHT]],
            part: usize,
        ) -> [[$type; $lanes * $vectors]; LEFT] {
            #[allow(clippy::wildcard_imports)]
            use std::arch::x86_64::*;
            let mut sums = [[$zero(); $vectors]; LEFT];
            for (p, q) in left.iter().zip(right) {
                let q = q.as_chunks::<{ $lanes * $vectors }>().0[part].as_chunks::<$lanes>().0;
                let mut loaded = [$zero(); $vectors];
                for (vector, numbers) in loaded.iter_mut().zip(q) {
                    // SAFETY: an unaligned load of exactly the array's numbers.
                    *vector = unsafe { $load(numbers.as_ptr().cast()) };
                }
                for (sums, &p) in sums.iter_mut().zip(p) {
                    let p = $splat(p);
                    for (sum, &q) in sums.iter_mut().zip(&loaded) {
                        *sum = $add(*sum, $minimum(p, q));
                    }
                }
            }
            let mut values = [[<$type>::default(); $lanes * $vectors]; LEFT];
            for (values, sums) in values.iter_mut().zip(sums) {
                for (numbers, sum) in values.as_chunks_mut::<$lanes>().0.iter_mut().zip(sums) {
                    // SAFETY: an unaligned store of exactly the array's numbers.
                    unsafe { $store(numbers.as_mut_ptr().cast(), sum) };
                }
            }
            values
        }
    };
}
#[cfg(target_arch = "x86_64")]
avx512_tile!(
    tile_f64,
    f64,
    __m512d,
    8,
    2,
    _mm512_setzero_pd,
    |x| _mm512_set1_pd(x),
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_min_pd,
    _mm512_add_pd
);
#[cfg(target_arch = "x86_64")]
avx512_tile!(
    tile_u32,
    u32,
    __m512i,
    16,
    2,
    _mm512_setzero_si512,
    |x: u32| _mm512_set1_epi32(x.cast_signed()),
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_min_epu32,
    _mm512_add_epi32
);
#[cfg(target_arch = "x86_64")]
avx512_tile!(
    tile_u64,
    u64,
    __m512i,
    8,
    2,
    _mm512_setzero_si512,
    |x: u64| _mm512_set1_epi64(x.cast_signed()),
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_min_epu64,
    _mm512_add_epi64
);

dispatched! {
    /// All pairs of two ranges of panels, in float64; `totals` are the sums of the left rows.
    pub fn block_f64(left: Part<'_, f64, LEFT>, totals: &[f64], right: Part<'_, f64, RIGHT>, hits: &mut Hits<'_, f64>)
        = block(left, totals, right, hits, tile::<f64, 2>),
          block(left, totals, right, hits, tile::<f64, 4>),
          block(left, totals, right, hits, |p, q, part| tile_f64(p, q, part));
}
dispatched! {
    /// All pairs of two ranges of panels, in fixed point of 32 bits.
    pub fn block_u32(left: Part<'_, u32, LEFT>, totals: &[u32], right: Part<'_, u32, RIGHT>, hits: &mut Hits<'_, u32>)
        = block(left, totals, right, hits, tile::<u32, 4>),
          block(left, totals, right, hits, tile::<u32, 16>),
          block(left, totals, right, hits, |p, q, part| tile_u32(p, q, part));
}
dispatched! {
    /// All pairs of two ranges of panels, in fixed point of 64 bits; worth its while with AVX-512 only.
    pub fn block_u64(left: Part<'_, u64, LEFT>, totals: &[u64], right: Part<'_, u64, RIGHT>, hits: &mut Hits<'_, u64>)
        = block(left, totals, right, hits, tile::<u64, 2>),
          block(left, totals, right, hits, tile::<u64, 4>),
          block(left, totals, right, hits, |p, q, part| tile_u64(p, q, part));
}
