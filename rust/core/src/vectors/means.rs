//! The mean of every user's records.

use super::{
    UserVectors, check_length, check_point,
    hadamard::Rotation,
    norm::{self, Region},
    rows::RowsOfUsers,
};
use crate::{Error, Result, simd::Kernel};

/// A table of numbers.
pub trait Records: Sync {
    /// The number of rows.
    fn rows(&self) -> usize;
    /// The number of columns.
    fn columns(&self) -> usize;
    /// Writes a row to `out`, of length [`Records::columns`].
    fn read(&self, row: usize, out: &mut [f64]);
}

/// What is public about the means of users.
#[derive(Debug, Clone, Default)]
pub struct MeansOptions {
    /// Subtracted from every record; the origin when left out.
    pub center: Option<Vec<f64>>,
    /// What the numbers of every column are divided by, after the center is subtracted; 1 when left out.
    pub units: Option<Vec<f64>>,
    /// Where records are clipped to, around the center; only absurdly large numbers are clamped when left out.
    pub region: Option<Region>,
    /// Applied to means.
    pub rotation: Option<Rotation>,
    /// For tests: the kernel to use, whose results do not differ.
    pub kernel: Option<Kernel>,
}

/// The mean of every user's records: each clipped, then summed in the order of the user's rows, over their number.
pub struct Means<'a> {
    records: &'a dyn Records,
    rows: &'a RowsOfUsers,
    options: &'a MeansOptions,
    kernel: Kernel,
}

impl<'a> Means<'a> {
    /// Of the records of all users.
    ///
    /// # Errors
    /// When there are other numbers of rows than of records, and for a center, region or rotation that does not fit.
    pub fn new(records: &'a dyn Records, rows: &'a RowsOfUsers, options: &'a MeansOptions) -> Result<Self> {
        let columns = records.columns();
        if records.rows() != rows.rows() {
            let message = format!("{} records are given for {} rows of users", records.rows(), rows.rows());
            return Err(Error::invalid("X", message));
        }
        if let Some(center) = &options.center {
            check_point("center", center, columns)?;
        }
        if let Some(units) = &options.units {
            check_point("units", units, columns)?;
            units.iter().try_for_each(|&unit| check_length("units", unit).map(drop))?;
        }
        if let Some(Region::Ball(bound) | Region::Cube(bound)) = options.region {
            check_length("bound", bound)?;
        }
        if let Some(rotation) = &options.rotation
            && rotation.dimension() != columns.next_power_of_two()
        {
            let message = format!("{} are given for {columns} columns", rotation.dimension());
            return Err(Error::invalid("signs", message));
        }
        Ok(Self { records, rows, options, kernel: options.kernel.unwrap_or_else(Kernel::detect) })
    }

    fn record(&self, row: usize, out: &mut [f64]) {
        self.records.read(row, out);
        let Some(units) = &self.options.units else {
            return norm::take_into(self.kernel, out, self.options.center.as_deref(), self.options.region);
        };
        norm::to_units(self.kernel, out, self.options.center.as_deref(), units);
        norm::take_into(self.kernel, out, None, self.options.region);
    }
}

impl UserVectors for Means<'_> {
    fn users(&self) -> usize {
        self.rows.users()
    }

    fn dimension(&self) -> usize {
        self.options.rotation.as_ref().map_or(self.records.columns(), Rotation::dimension)
    }

    fn write(&self, user: usize, out: &mut [f64]) -> bool {
        let rows = self.rows.of(user);
        let (mean, padding) = out.split_at_mut(self.records.columns());
        padding.fill(0.0);
        if rows.is_empty() {
            mean.fill(0.0);
            return false;
        }
        self.record(rows.get(0), mean);
        if rows.len() > 1 {
            let mut record = vec![0.0; mean.len()];
            for index in 1..rows.len() {
                self.record(rows.get(index), &mut record);
                mean.iter_mut().zip(&record).for_each(|(sum, x)| *sum += x);
            }
            let count = rows.len() as f64;
            for x in mean {
                *x /= count;
            }
        }
        if let Some(rotation) = &self.options.rotation {
            rotation.apply(self.kernel, out);
        }
        true
    }
}
