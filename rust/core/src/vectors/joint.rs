//! Users' rows as linear models see them: features in a public region, their target behind them, in public units.
//!
//! A row is read alone, and what is read of it is a function of that row and of public numbers only.

use super::{
    UserVectors, check_point,
    means::Records,
    norm::{self, Region},
    rows::RowsOfUsers,
};
use crate::{
    Error, Result,
    simd::{Kernel, dispatch::dispatched},
};

/// In units, no feature is larger: rows with one that would be are shrunk.
pub const WIDEST: f64 = 4.0;

/// What features are measured from, and by what they are multiplied.
#[derive(Debug, Clone, PartialEq)]
pub struct Units {
    /// One number for each feature.
    pub center: Vec<f64>,
    /// One positive number for each.
    pub factor: Vec<f64>,
    /// Whether there is a 1 behind the features.
    pub constant: bool,
    /// What targets are measured from.
    pub target: f64,
}

/// Rows of features, each in a region, with their targets, in -1..=1, as the last column where there are any.
///
/// In units a whole row, its constant and its target included, is multiplied by min(1, 4 / its largest feature): a
/// weight that looks at features only, and leaves a linear law of the target as it is.
pub struct Joint<'a> {
    records: &'a dyn Records,
    targets: Option<&'a [f64]>,
    region: Region,
    units: Option<&'a Units>,
    kernel: Kernel,
}

impl<'a> Joint<'a> {
    /// Of public regions and units; without units numbers are as they are in the region.
    ///
    /// # Errors
    /// For other numbers of targets than of rows, and for units that do not fit.
    pub fn new(
        records: &'a dyn Records,
        targets: Option<&'a [f64]>,
        region: Region,
        units: Option<&'a Units>,
    ) -> Result<Self> {
        if let Some(targets) = targets
            && targets.len() != records.rows()
        {
            let message = format!("{} are given for {} rows", targets.len(), records.rows());
            return Err(Error::invalid("targets", message));
        }
        if let Some(units) = units {
            check_point("center", &units.center, records.columns())?;
            check_point("factor", &units.factor, records.columns())?;
            check_point("target", &[units.target], 1)?;
        }
        Ok(Self { records, targets, region, units, kernel: Kernel::detect() })
    }
}

impl Records for Joint<'_> {
    fn rows(&self) -> usize {
        self.records.rows()
    }

    fn columns(&self) -> usize {
        let constant = self.units.is_some_and(|units| units.constant);
        self.records.columns() + usize::from(constant) + usize::from(self.targets.is_some())
    }

    fn read(&self, row: usize, out: &mut [f64]) {
        let (features, others) = out.split_at_mut(self.records.columns());
        self.records.read(row, features);
        norm::take_into(self.kernel, features, None, Some(self.region));
        if let (Some(last), Some(targets)) = (others.last_mut(), self.targets) {
            let target = targets[row];
            *last = if target.is_nan() { 0.0 } else { target.clamp(-1.0, 1.0) };
        }
        let Some(units) = self.units else { return };
        let widest = measure(self.kernel, features, &units.center, &units.factor);
        if let (Some(last), Some(_)) = (others.last_mut(), self.targets) {
            *last -= units.target;
        }
        if units.constant {
            others[0] = 1.0;
        }
        if widest > WIDEST {
            // Numbers of the region and factors are far from overflow.
            norm::scale(self.kernel, out, WIDEST / widest);
        }
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn measure_body(row: &mut [f64], center: &[f64], factor: &[f64]) -> f64 {
    let mut widest = 0.0;
    for ((x, c), f) in row.iter_mut().zip(center).zip(factor) {
        *x = (*x - c) * f;
        widest = if x.abs() > widest { x.abs() } else { widest };
    }
    widest
}

dispatched! {
    /// Puts numbers into units; the largest of them.
    fn measure(row: &mut [f64], center: &[f64], factor: &[f64]) -> f64
        = measure_body(row, center, factor),
          measure_body(row, center, factor),
          measure_body(row, center, factor);
}

/// The root of the mean square of every column about a public center, over the rows of each user.
pub struct Spreads<'a> {
    records: &'a dyn Records,
    rows: &'a RowsOfUsers,
    center: &'a [f64],
}

impl<'a> Spreads<'a> {
    /// Of the records of all users.
    ///
    /// # Errors
    /// For other numbers of rows than of records, and for a center of another length.
    pub fn new(records: &'a dyn Records, rows: &'a RowsOfUsers, center: &'a [f64]) -> Result<Self> {
        check_rows(records, rows)?;
        check_point("center", center, records.columns())?;
        Ok(Self { records, rows, center })
    }
}

impl UserVectors for Spreads<'_> {
    fn users(&self) -> usize {
        self.rows.users()
    }

    fn dimension(&self) -> usize {
        self.center.len()
    }

    fn write(&self, user: usize, out: &mut [f64]) -> bool {
        let rows = self.rows.of(user);
        out.fill(0.0);
        let mut record = vec![0.0; self.center.len()];
        for index in 0..rows.len() {
            self.records.read(rows.get(index), &mut record);
            for ((sum, x), c) in out.iter_mut().zip(&record).zip(self.center) {
                *sum += (x - c) * (x - c);
            }
        }
        let count = rows.len().max(1) as f64;
        for sum in out {
            *sum = (*sum / count).sqrt();
        }
        !rows.is_empty()
    }
}

/// Refuses records that are not those of the users.
pub(super) fn check_rows(records: &dyn Records, rows: &RowsOfUsers) -> Result<()> {
    if records.rows() == rows.rows() {
        return Ok(());
    }
    let message = format!("{} records are given for {} rows of users", records.rows(), rows.rows());
    Err(Error::invalid("X", message))
}
