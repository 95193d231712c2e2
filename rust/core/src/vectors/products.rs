//! The mean of features times the target over the rows of every user, weighted by the user's features.
//!
//! Features are rounded as for second moments, of which these are the right side: least squares of what was rounded.

use super::{
    UserVectors, check_length,
    gradients::add_scaled,
    means::Records,
    moments::{MOST_ROWS, Moments, STEPS, round},
    rows::RowsOfUsers,
};
use crate::{Error, Result, simd::Kernel};

/// The mean of z e of every user, z a row's features in units and e its target, times min(1, radius / |A|), with A the
/// user's mean of z z^T: at most sqrt(radius) times the largest target.
pub struct Products<'a> {
    features: Moments<'a>,
    records: &'a dyn Records,
    rows: &'a RowsOfUsers,
    radius: f64,
    kernel: Kernel,
}

impl<'a> Products<'a> {
    /// Of features alone, and of the same with targets behind them.
    ///
    /// # Errors
    /// For other numbers of rows or columns, and for a radius out of range.
    pub fn new(
        features: &'a dyn Records,
        records: &'a dyn Records,
        rows: &'a RowsOfUsers,
        radius: f64,
    ) -> Result<Self> {
        check_length("radius", radius)?;
        if features.rows() != records.rows() || features.columns() + 1 != records.columns() {
            return Err(Error::invalid("records", "not the features and one target"));
        }
        let features = Moments::new(features, rows, None, None)?;
        Ok(Self { features, records, rows, radius, kernel: Kernel::detect() })
    }
}

impl UserVectors for Products<'_> {
    fn users(&self) -> usize {
        self.rows.users()
    }

    fn dimension(&self) -> usize {
        self.features.columns()
    }

    fn write(&self, user: usize, out: &mut [f64]) -> bool {
        let rows = self.rows.of(user);
        let counted = rows.len().min(MOST_ROWS);
        out.fill(0.0);
        let mut moments = vec![0.0; self.features.dimension()];
        if !self.features.write(user, &mut moments) {
            return false;
        }
        let norm = self.features.norm(&moments, &mut []);
        let weight = if norm > self.radius { self.radius / norm } else { 1.0 };
        let mut record = vec![0.0; out.len() + 1];
        for index in 0..counted {
            self.records.read(rows.get(index), &mut record);
            let (features, target) = record.split_at_mut(out.len());
            round(self.kernel, features);
            add_scaled(self.kernel, out, features, target[0]);
        }
        for sum in out {
            *sum *= weight / (counted as f64 * STEPS);
        }
        true
    }
}
