//! Every pair through register tiles, nothing discarded: the yardstick of the search, and its check.

use super::{
    matrix::PmfMatrix,
    numerics::Numerics,
    work::{Envelope, Work, number_of_rows},
};
use crate::{
    Error, Result,
    control::Control,
    exact::Level,
    simd::{
        Kernel,
        tiles::{Element, Hits, LEFT, Panels, RIGHT, block_f64, block_u32, block_u64},
    },
};
use rayon::prelude::*;
use std::ops::Range;

/// Panels of either side per unit of work.
const LEFT_PANELS: usize = 64;
const RIGHT_PANELS: usize = 8;

/// What the tiles compute in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// float64, within about k 2^-52 of the exact number.
    Float64,
    /// Integers of 32 bits in units of 2^-31, within k units.
    Fixed32,
    /// Integers of 64 bits in units of 2^-63, within k units and the rounding of E q; fast with AVX-512 only.
    Fixed64,
}

/// A number type with its scale.
trait Number: Element {
    fn of(mass: f64) -> Self;
    fn value(self) -> f64;
    fn block(
        left: (&Panels<Self, LEFT>, Range<usize>),
        totals: &[Self],
        right: (&Panels<Self, RIGHT>, Range<usize>),
        hits: &mut Hits<'_, Self>,
    );
}

impl Number for f64 {
    fn of(mass: f64) -> Self {
        mass
    }
    fn value(self) -> f64 {
        self
    }
    fn block(
        left: (&Panels<Self, LEFT>, Range<usize>),
        totals: &[Self],
        right: (&Panels<Self, RIGHT>, Range<usize>),
        hits: &mut Hits<'_, Self>,
    ) {
        block_f64(Kernel::detect(), left, totals, right, hits);
    }
}

macro_rules! fixed_point {
    ($type:ty, $block:ident, $exponent:literal) => {
        impl Number for $type {
            // Saturates: what is larger than every mass is as good as the largest number.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            fn of(mass: f64) -> Self {
                (mass * 2.0_f64.powi($exponent)) as Self
            }
            fn value(self) -> f64 {
                // Rounds in 64 bits, by less than the units themselves.
                #[allow(clippy::cast_lossless)]
                let units = self as f64;
                units / 2.0_f64.powi($exponent)
            }
            fn block(
                left: (&Panels<Self, LEFT>, Range<usize>),
                totals: &[Self],
                right: (&Panels<Self, RIGHT>, Range<usize>),
                hits: &mut Hits<'_, Self>,
            ) {
                $block(Kernel::detect(), left, totals, right, hits);
            }
        }
    };
}
fixed_point!(u32, block_u32, 31);
fixed_point!(u64, block_u64, 63);

/// The largest divergence over all ordered pairs of rows, by evaluating every pair: (about the number, a pair).
///
/// The number is as exact as the arithmetic; for the exact one use [`super::maximum`].
///
/// # Errors
/// [`Error::InvalidArgument`] for no rows; [`Error::TooLarge`] for a level beyond 2^400; [`Error::Canceled`].
pub fn exhaustive_maximum(
    matrix: &PmfMatrix<'_>,
    level: &Level,
    arithmetic: Arithmetic,
    control: &Control,
) -> Result<(f64, (usize, usize))> {
    let machine =
        level.machine().ok_or_else(|| Error::too_large("an epsilon beyond 277 is beyond float64"))?;
    if matrix.rows() == 0 {
        return Err(Error::invalid("pmfs", "is empty"));
    }
    let numerics = Numerics::new(machine, matrix.outputs(), matrix.relative_error());
    let envelope = Envelope::of(matrix, control)?;
    let work = Work::new(matrix, (0..number_of_rows(matrix)?).collect(), &envelope, &numerics, control)?;
    match arithmetic {
        Arithmetic::Float64 => largest::<f64>(&work, numerics.multiplier, control),
        Arithmetic::Fixed32 => largest::<u32>(&work, numerics.multiplier, control),
        Arithmetic::Fixed64 => largest::<u64>(&work, numerics.multiplier, control),
    }
}

fn largest<T: Number>(work: &Work<'_>, multiplier: f64, control: &Control) -> Result<(f64, (usize, usize))> {
    let (width, rows, count) = (work.width, &work.side.rows, work.side.len());
    let left =
        Panels::<T, LEFT>::pack(count, width, T::default(), |row, output| T::of(rows[row * width + output]));
    let right = Panels::<T, RIGHT>::pack(count, width, T::LARGEST, |row, output| {
        T::of(multiplier * rows[row * width + output])
    });
    // A tile against the zero row leaves the totals.
    let totals: Vec<T> = rows
        .chunks_exact(width)
        .map(|row| row.iter().fold(T::default(), |sum, &mass| sum.plus_minimum(T::of(mass), T::LARGEST)))
        .collect();
    let best = (0..left.len())
        .into_par_iter()
        .step_by(LEFT_PANELS)
        .map(|first| {
            let mut found = Vec::new();
            let mut best: Option<(T, (u32, u32))> = None;
            for start in (0..right.len()).step_by(RIGHT_PANELS) {
                control.check()?;
                let threshold = best.map_or(T::default(), |(value, _)| value);
                let mut hits = Hits { threshold, found: &mut found, band: Some(T::default()) };
                let lefts = first..left.len().min(first + LEFT_PANELS);
                let rights = start..right.len().min(start + RIGHT_PANELS);
                T::block((&left, lefts), &totals, (&right, rights), &mut hits);
                for hit in found.drain(..) {
                    if best.is_none_or(|(value, _)| hit.value > value) {
                        best = Some((hit.value, (hit.left, hit.right)));
                    }
                }
            }
            Ok(best)
        })
        .try_reduce(
            || None,
            |a, b| {
                Ok(match (a, b) {
                    (Some(a), Some(b)) => Some(if b.0 > a.0 { b } else { a }),
                    (a, b) => a.or(b),
                })
            },
        )?;
    let (value, (i, j)) = best.map_or((0.0, (0, 0)), |(value, pair)| (value.value(), pair));
    Ok((value, (i as usize, j as usize)))
}
