//! The fast Walsh-Hadamard transform of one vector.
//!
//! Every number of the result is a sum by one fixed tree, that of the plain algorithm; the passes below only take
//! several of its levels at a time.

use crate::simd::{Kernel, dispatch::dispatched};

const LANES: usize = 8;

type Lane = [f64; LANES];

#[inline(always)]
#[allow(clippy::inline_always)]
fn sum(a: Lane, b: Lane) -> Lane {
    std::array::from_fn(|i| a[i] + b[i])
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn difference(a: Lane, b: Lane) -> Lane {
    std::array::from_fn(|i| a[i] - b[i])
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn transposed(a: [Lane; LANES]) -> [Lane; LANES] {
    std::array::from_fn(|i| std::array::from_fn(|j| a[j][i]))
}

/// Three levels, in every lane by itself.
#[inline(always)]
#[allow(clippy::inline_always)]
fn three_levels([a, b, c, d, e, f, g, h]: [Lane; LANES]) -> [Lane; LANES] {
    let (a, b, c, d) = (sum(a, b), difference(a, b), sum(c, d), difference(c, d));
    let (e, f, g, h) = (sum(e, f), difference(e, f), sum(g, h), difference(g, h));
    let (a, b, c, d) = (sum(a, c), sum(b, d), difference(a, c), difference(b, d));
    let (e, f, g, h) = (sum(e, g), sum(f, h), difference(e, g), difference(f, h));
    [
        sum(a, e),
        sum(b, f),
        sum(c, g),
        sum(d, h),
        difference(a, e),
        difference(b, f),
        difference(c, g),
        difference(d, h),
    ]
}

/// One level of the plain algorithm.
#[inline(always)]
#[allow(clippy::inline_always)]
fn level(vector: &mut [f64], half: usize) {
    for pair in vector.chunks_exact_mut(2 * half) {
        let (left, right) = pair.split_at_mut(half);
        for (a, b) in left.iter_mut().zip(right) {
            (*a, *b) = (*a + *b, *a - *b);
        }
    }
}

/// Two levels, `half` and `2 * half`.
#[inline(always)]
#[allow(clippy::inline_always)]
fn two_levels(vector: &mut [f64], half: usize) {
    for block in vector.chunks_exact_mut(4 * half) {
        let (low, high) = block.split_at_mut(2 * half);
        let ((a, b), (c, d)) = (low.split_at_mut(half), high.split_at_mut(half));
        for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
            let (p, q, r, s) = (*a + *b, *a - *b, *c + *d, *c - *d);
            (*a, *b, *c, *d) = (p + r, q + s, p - r, q - s);
        }
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn transform_body(vector: &mut [f64]) {
    let mut half = 1;
    if vector.len() >= LANES * LANES {
        // Transposed, the first three levels are between lanes, and the next three are after transposing back.
        for block in vector.as_chunks_mut::<LANES>().0.as_chunks_mut::<LANES>().0 {
            *block = three_levels(transposed(three_levels(transposed(*block))));
        }
        half = LANES * LANES;
    }
    while 4 * half <= vector.len() {
        two_levels(vector, half);
        half *= 4;
    }
    if 2 * half <= vector.len() {
        level(vector, half);
    }
}

dispatched! {
    /// Replaces the numbers by the sums `S(i) = sum_j (-1)^(number of ones of i & j) v_j`, D log2 D additions. The
    /// length D must be a power of two.
    pub fn transform(vector: &mut [f64])
        = transform_body(vector),
          transform_body(vector),
          transform_body(vector);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn scaled_body(vector: &mut [f64], factors: &[f64]) {
    for (x, factor) in vector.iter_mut().zip(factors) {
        *x *= factor;
    }
    transform_body(vector);
}

dispatched! {
    /// Multiplies the numbers by factors and transforms them.
    fn transform_scaled(vector: &mut [f64], factors: &[f64])
        = scaled_body(vector, factors),
          scaled_body(vector, factors),
          scaled_body(vector, factors);
}

/// A rotation of d numbers into D, the next power of two: zeros are appended, signs are applied, and the
/// Walsh-Hadamard transform over sqrt(D) follows.
#[derive(Debug, Clone)]
pub struct Rotation {
    /// The signs over sqrt(D).
    factors: Vec<f64>,
}

impl Rotation {
    /// From public signs, one for each coordinate with the appended ones.
    ///
    /// # Errors
    /// Unless there are a power of two many, all -1 or 1.
    pub fn new(signs: &[i8]) -> crate::Result<Self> {
        let argument = "signs";
        if !signs.len().is_power_of_two() {
            let message = format!("must be a power of two many; got {}", signs.len());
            return Err(crate::Error::invalid(argument, message));
        }
        if let Some(sign) = signs.iter().find(|sign| sign.abs() != 1) {
            return Err(crate::Error::invalid(argument, format!("{sign} is not a sign; -1 and 1 are")));
        }
        let scale = 1.0 / (signs.len() as f64).sqrt();
        Ok(Self { factors: signs.iter().map(|&sign| f64::from(sign) * scale).collect() })
    }

    /// D.
    pub fn dimension(&self) -> usize {
        self.factors.len()
    }

    /// Rotates a vector of length D.
    pub fn apply(&self, kernel: Kernel, vector: &mut [f64]) {
        transform_scaled(kernel, vector, &self.factors);
    }
}
