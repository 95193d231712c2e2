//! The Euclidean norm, and records taken into the range that is public.
//!
//! Sums have a fixed tree: 32 lanes by place in the vector, which no vector width or memory address changes.

use super::LARGEST;
use crate::simd::{Kernel, dispatch::dispatched};

/// 3 * 2^51: added to a whole number of at most 2^51, it leaves that number in the last bits.
const SHIFT: f64 = 6_755_399_441_055_744.0;

/// A whole number from -2^51 to 2^51 as an integer. Casts, which look for what is out of range, take longer.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(super) fn integer(whole: f64) -> i64 {
    (whole + SHIFT).to_bits().cast_signed().wrapping_sub(SHIFT.to_bits().cast_signed())
}

/// The nearest number of low..=high; high for NaN.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(super) fn clamped(x: f64, low: f64, high: f64) -> f64 {
    let x = if x < high { x } else { high };
    if x > low { x } else { low }
}

const LANES: usize = 8;
/// Lanes are kept in so many groups, whose additions do not wait for each other.
const GROUPS: usize = 4;
/// 2^-600: what all numbers are multiplied by when their squares overflow.
const DOWN: f64 = f64::from_bits((1023 - 600) << 52);

/// Where a record is clipped to, around the origin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Region {
    /// Points of at most this Euclidean norm.
    Ball(f64),
    /// Points with coordinates of at most this absolute value.
    Cube(f64),
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn squared_body(vector: &[f64], center: Option<&[f64]>) -> f64 {
    let mut sums = [[0.0; LANES]; GROUPS];
    let whole = vector.len() - vector.len() % (LANES * GROUPS);
    let mut rest = 0.0;
    if let Some(center) = center {
        let (blocks, others) =
            (vector[..whole].as_chunks::<LANES>().0, center[..whole].as_chunks::<LANES>().0);
        for (block, others) in blocks.chunks_exact(GROUPS).zip(others.chunks_exact(GROUPS)) {
            for group in 0..GROUPS {
                for lane in 0..LANES {
                    let difference = block[group][lane] - others[group][lane];
                    sums[group][lane] += difference * difference;
                }
            }
        }
        for (x, c) in vector[whole..].iter().zip(&center[whole..]) {
            rest += (x - c) * (x - c);
        }
    } else {
        for block in vector[..whole].as_chunks::<LANES>().0.chunks_exact(GROUPS) {
            for group in 0..GROUPS {
                for lane in 0..LANES {
                    sums[group][lane] += block[group][lane] * block[group][lane];
                }
            }
        }
        for x in &vector[whole..] {
            rest += x * x;
        }
    }
    let mut lanes = [0.0; LANES];
    for lane in 0..LANES {
        lanes[lane] = (sums[0][lane] + sums[1][lane]) + (sums[2][lane] + sums[3][lane]);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    (((a + e) + (b + f)) + ((c + g) + (d + h))) + rest
}

dispatched! {
    /// The sum of squares of a vector less a center.
    pub fn squared_distance(vector: &[f64], center: Option<&[f64]>) -> f64
        = squared_body(vector, center),
          squared_body(vector, center),
          squared_body(vector, center);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn scale_body(vector: &mut [f64], factor: f64) {
    for x in vector {
        *x *= factor;
    }
}

dispatched! {
    /// Multiplies every number.
    pub(crate) fn scale(vector: &mut [f64], factor: f64)
        = scale_body(vector, factor),
          scale_body(vector, factor),
          scale_body(vector, factor);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn clamp_body(record: &mut [f64], center: Option<&[f64]>, bound: f64) {
    let clamped = |x: f64| {
        let x = if x > bound { bound } else { x };
        let x = if x < -bound { -bound } else { x };
        if x.is_nan() { 0.0 } else { x }
    };
    match center {
        None => record.iter_mut().for_each(|x| *x = clamped(*x)),
        Some(center) => record.iter_mut().zip(center).for_each(|(x, c)| *x = clamped(*x - c)),
    }
}

dispatched! {
    /// Subtracts a center, and puts numbers into -bound..=bound: 0 for NaN, the nearest end for others.
    pub(crate) fn clamp(record: &mut [f64], center: Option<&[f64]>, bound: f64)
        = clamp_body(record, center, bound),
          clamp_body(record, center, bound),
          clamp_body(record, center, bound);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn units_body(record: &mut [f64], center: Option<&[f64]>, units: &[f64]) {
    match center {
        None => record.iter_mut().zip(units).for_each(|(x, unit)| *x /= unit),
        Some(center) => {
            record.iter_mut().zip(center).zip(units).for_each(|((x, c), unit)| *x = (*x - c) / unit);
        }
    }
}

dispatched! {
    /// Subtracts a center, and divides by units.
    pub(crate) fn to_units(record: &mut [f64], center: Option<&[f64]>, units: &[f64])
        = units_body(record, center, units),
          units_body(record, center, units),
          units_body(record, center, units);
}

/// Puts a record into a region around a center, and takes the center for the origin. Numbers may be anything: NaN
/// counts as the center, infinities as the largest numbers that there are. Without a region, numbers are clamped to
/// 2^400 in absolute value.
pub fn take_into(kernel: Kernel, record: &mut [f64], center: Option<&[f64]>, region: Option<Region>) {
    match region {
        None => clamp(kernel, record, center, LARGEST),
        Some(Region::Cube(bound)) => clamp(kernel, record, center, bound),
        Some(Region::Ball(radius)) => {
            clamp(kernel, record, center, f64::MAX);
            let mut squared = squared_distance(kernel, record, None);
            if !squared.is_finite() {
                scale(kernel, record, DOWN);
                squared = squared_distance(kernel, record, None);
                scale(kernel, record, radius / squared.sqrt());
            } else if squared.sqrt() > radius {
                scale(kernel, record, radius / squared.sqrt());
            }
        }
    }
}
