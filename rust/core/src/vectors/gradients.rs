//! The mean gradient of every user's records at a public point, for losses of linear predictions.
//!
//! The loss of a record x with target y at theta is `phi(<theta, x>, y)`, its gradient `phi'(<theta, x>, y) x`.
//!
//! Paper: [LSAKKMS21, Algorithm 3].

use super::{
    LARGEST, UserVectors, check_length, check_point,
    means::Records,
    norm::{self, Region},
    rows::RowsOfUsers,
};
use crate::{
    Error, Result,
    simd::{Kernel, dispatch::dispatched},
};

const LANES: usize = 8;

/// A loss of a prediction and a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// ln(1 + e^(-y s)), with y = 1 for targets above 0 and -1 for others.
    Logistic,
    /// The hinge of y s, with its corner rounded over this width: 1 - y s over the width, clamped to 0..=1, is how steep
    /// it is.
    Hinge(f64),
    /// (s - y)^2 / 2 up to this residual, and a line beyond it.
    Squared(f64),
}

impl Loss {
    /// The slope in the prediction.
    pub fn slope(self, prediction: f64, target: f64) -> f64 {
        let sign = if target > 0.0 { 1.0 } else { -1.0 };
        match self {
            Self::Logistic => -sign / (1.0 + (sign * prediction).exp()),
            Self::Hinge(width) => -sign * ((1.0 - sign * prediction) / width).clamp(0.0, 1.0),
            Self::Squared(residual) => (prediction - target).clamp(-residual, residual),
        }
    }

    fn check(self) -> Result<()> {
        match self {
            Self::Logistic => Ok(()),
            Self::Hinge(width) => check_length("width", width).map(|_| ()),
            Self::Squared(residual) => check_length("residual", residual).map(|_| ()),
        }
    }
}

/// What is public about the gradients of users.
#[derive(Debug, Clone)]
pub struct GradientOptions {
    /// The loss of a record.
    pub loss: Loss,
    /// Where gradients are taken: one number for each column, and one more with an intercept.
    pub theta: Vec<f64>,
    /// Records are clipped to the ball of this radius around the origin.
    pub bound: f64,
    /// Whether records have a constant 1 behind their columns, which is not clipped.
    pub intercept: bool,
    /// For tests: the kernel to use, whose results do not differ.
    pub kernel: Option<Kernel>,
}

/// The mean gradient of every user's records: each record clipped, gradients summed in the order of the user's rows.
pub struct Gradients<'a> {
    records: &'a dyn Records,
    targets: &'a [f64],
    rows: &'a RowsOfUsers,
    options: &'a GradientOptions,
    kernel: Kernel,
}

impl<'a> Gradients<'a> {
    /// Of the records of all users. Targets may be any numbers; NaN counts as 0.
    ///
    /// # Errors
    /// When there are other numbers of rows, of records and of targets, and for public numbers out of range.
    pub fn new(
        records: &'a dyn Records,
        targets: &'a [f64],
        rows: &'a RowsOfUsers,
        options: &'a GradientOptions,
    ) -> Result<Self> {
        if records.rows() != rows.rows() || targets.len() != rows.rows() {
            let (given, needed) = ((records.rows(), targets.len()), rows.rows());
            let message =
                format!("{} rows and {} targets are given for {needed} rows of users", given.0, given.1);
            return Err(Error::invalid("X", message));
        }
        options.loss.check()?;
        check_point("theta", &options.theta, records.columns() + usize::from(options.intercept))?;
        check_length("bound", options.bound)?;
        Ok(Self { records, targets, rows, options, kernel: options.kernel.unwrap_or_else(Kernel::detect) })
    }

    fn target(&self, row: usize) -> f64 {
        let target = self.targets[row];
        if target.is_nan() { 0.0 } else { target.clamp(-LARGEST, LARGEST) }
    }
}

impl UserVectors for Gradients<'_> {
    fn users(&self) -> usize {
        self.rows.users()
    }

    fn dimension(&self) -> usize {
        self.options.theta.len()
    }

    fn write(&self, user: usize, out: &mut [f64]) -> bool {
        let columns = self.records.columns();
        let rows = self.rows.of(user);
        out.fill(0.0);
        if rows.is_empty() {
            return false;
        }
        let (slopes, constant) = out.split_at_mut(columns);
        let (theta, shift) = self.options.theta.split_at(columns);
        let shift = shift.first().copied().unwrap_or(0.0);
        let mut record = vec![0.0; columns];
        for index in 0..rows.len() {
            let row = rows.get(index);
            self.records.read(row, &mut record);
            norm::take_into(self.kernel, &mut record, None, Some(Region::Ball(self.options.bound)));
            let prediction = dot(self.kernel, &record, theta) + shift;
            let slope = self.options.loss.slope(prediction.clamp(-LARGEST, LARGEST), self.target(row));
            add_scaled(self.kernel, slopes, &record, slope);
            if let Some(sum) = constant.first_mut() {
                *sum += slope;
            }
        }
        let count = rows.len() as f64;
        // Gradients of public numbers that are large may be beyond what vectors may hold.
        for sum in out {
            *sum = (*sum / count).clamp(-LARGEST, LARGEST);
        }
        true
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn dot_body(x: &[f64], theta: &[f64]) -> f64 {
    let (blocks, rest) = x.as_chunks::<LANES>();
    let (others, last) = theta.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (block, other) in blocks.iter().zip(others) {
        for lane in 0..LANES {
            sums[lane] += block[lane] * other[lane];
        }
    }
    let rest: f64 = rest.iter().zip(last).map(|(x, t)| x * t).sum();
    let [a, b, c, d, e, f, g, h] = sums;
    (((a + e) + (b + f)) + ((c + g) + (d + h))) + rest
}

dispatched! {
    /// The inner product, by a tree that depends on the length only.
    pub(super) fn dot(x: &[f64], theta: &[f64]) -> f64
        = dot_body(x, theta),
          dot_body(x, theta),
          dot_body(x, theta);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn add_scaled_body(sums: &mut [f64], x: &[f64], factor: f64) {
    for (sum, x) in sums.iter_mut().zip(x) {
        *sum += factor * x;
    }
}

dispatched! {
    /// Adds a vector times a number.
    pub(super) fn add_scaled(sums: &mut [f64], x: &[f64], factor: f64)
        = add_scaled_body(sums, x, factor),
          add_scaled_body(sums, x, factor),
          add_scaled_body(sums, x, factor);
}
