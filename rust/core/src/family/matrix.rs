//! N pmfs over the same k outputs, as a matrix of floats with an exact pmf behind every row.

use crate::{
    Error, Result,
    control::Control,
    pmf::{FLOAT_TOTAL_TOLERANCE, Pmf},
};
use std::{borrow::Cow, sync::Arc};

/// Where the exact masses of a row come from when its floats cannot decide.
pub trait ExactRows: Send + Sync {
    /// The exact pmf of one row.
    fn pmf(&self, row: usize) -> Pmf<'static>;
}

/// Rows are pmfs, columns outputs.
///
/// Every exact mass p and its float f satisfy |f - p| <= `relative_error` p + 2^-126: with the error 0 and no
/// [`ExactRows`] the floats are the masses.
#[derive(Clone)]
pub struct PmfMatrix<'a> {
    masses: Cow<'a, [f64]>,
    rows: usize,
    outputs: usize,
    relative_error: f64,
    exact: Option<Arc<dyn ExactRows + 'a>>,
}

impl std::fmt::Debug for PmfMatrix<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PmfMatrix of {} pmfs over {} outputs", self.rows, self.outputs)
    }
}

/// Pmfs that are all kept.
struct Kept(Vec<Pmf<'static>>);

impl ExactRows for Kept {
    fn pmf(&self, row: usize) -> Pmf<'static> {
        self.0[row].clone()
    }
}

/// Float masses that are divided by their exact sum.
struct OverSum(PmfMatrix<'static>);

impl ExactRows for OverSum {
    fn pmf(&self, row: usize) -> Pmf<'static> {
        Pmf::over_exact_sum(self.0.row(row))
    }
}

/// The float nearest to a mass is off by half a unit in the last place, or less than 2^-1074 when it underflows.
const NEAREST: f64 = f64::EPSILON / 2.0;

/// Relative errors up to which the search's error bounds hold.
const LARGEST_ERROR: f64 = 0.001;

impl<'a> PmfMatrix<'a> {
    /// Takes float masses, row after row, as the exact dyadic numbers they are.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no outputs, a length that is not a multiple of `outputs`, or a row that is not a
    /// pmf (named by its index); [`Error::Canceled`].
    pub fn from_floats(masses: impl Into<Cow<'a, [f64]>>, outputs: usize, control: &Control) -> Result<Self> {
        Self::from_floats_within(masses, outputs, FLOAT_TOTAL_TOLERANCE, control)
    }

    fn from_floats_within(
        masses: impl Into<Cow<'a, [f64]>>,
        outputs: usize,
        tolerance: f64,
        control: &Control,
    ) -> Result<Self> {
        let masses = masses.into();
        check_shape(&masses, outputs)?;
        for (index, row) in masses.chunks_exact(outputs).enumerate() {
            if index % 1024 == 0 {
                control.check()?;
            }
            Pmf::from_floats_within(row, "pmfs", tolerance).map_err(|error| error.in_row(index))?;
        }
        Ok(Self { rows: masses.len() / outputs, masses, outputs, relative_error: 0.0, exact: None })
    }

    /// Floats near the exact masses that `exact` states: |f - p| <= `relative_error` p + 2^-126.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no outputs, a length that is not a multiple of `outputs`, or an error outside
    /// (0, 0.001].
    pub fn near(
        masses: impl Into<Cow<'a, [f64]>>,
        outputs: usize,
        relative_error: f64,
        exact: Arc<dyn ExactRows + 'a>,
    ) -> Result<Self> {
        let masses = masses.into();
        check_shape(&masses, outputs)?;
        // The search's bounds absorb squares of the error, and take 0 to mean that floats are the masses.
        if !(relative_error > 0.0 && relative_error <= LARGEST_ERROR) {
            let message = format!("must be above 0 and at most {LARGEST_ERROR}; got {relative_error}");
            return Err(Error::invalid("relative_error", message));
        }
        Ok(Self { rows: masses.len() / outputs, masses, outputs, relative_error, exact: Some(exact) })
    }

    /// Takes float masses, row after row, over their exact sums.
    ///
    /// Sums may miss 1 by twice as much as those of [`PmfMatrix::from_floats`]: callers who check private rows by sums that are
    /// rounded must not be told here that the exact sum is a little farther from 1.
    ///
    /// # Errors
    /// Those of [`PmfMatrix::from_floats`].
    pub fn normalized(masses: Vec<f64>, outputs: usize, control: &Control) -> Result<PmfMatrix<'static>> {
        let raw = PmfMatrix::from_floats_within(masses, outputs, 2.0 * FLOAT_TOTAL_TOLERANCE, control)?;
        let mut floats = Vec::with_capacity(raw.masses.len());
        for row in raw.masses.chunks_exact(outputs) {
            let total: f64 = row.iter().sum();
            floats.extend(row.iter().map(|mass| mass / total));
        }
        // k - 1 additions of non-negative numbers and a division; what underflows is below 2^-1074.
        let error = 1.01 * (outputs as f64 + 1.0) * NEAREST;
        PmfMatrix::near(floats, outputs, error, Arc::new(OverSum(raw)))
    }

    /// Collects pmfs of one length.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when lengths differ.
    pub fn from_pmfs(pmfs: Vec<Pmf<'static>>) -> Result<PmfMatrix<'static>> {
        let outputs = pmfs.first().map_or(1, Pmf::len);
        if let Some(odd) = pmfs.iter().find(|pmf| pmf.len() != outputs) {
            let message = format!("pmfs have different lengths, {outputs} and {}", odd.len());
            return Err(Error::invalid("pmfs", message));
        }
        let masses: Vec<f64> = pmfs.iter().flat_map(Pmf::approximate).copied().collect();
        if pmfs.iter().all(Pmf::is_float) {
            let rows = pmfs.len();
            return Ok(PmfMatrix { masses: masses.into(), rows, outputs, relative_error: 0.0, exact: None });
        }
        PmfMatrix::near(masses, outputs, NEAREST, Arc::new(Kept(pmfs)))
    }

    /// The number of pmfs.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of outputs, at least 1.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// All floats, row after row.
    pub fn masses(&self) -> &[f64] {
        &self.masses
    }

    /// The floats of one row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.masses[row * self.outputs..][..self.outputs]
    }

    /// Bound on the relative error of the floats; 0 when they are the masses.
    pub fn relative_error(&self) -> f64 {
        self.relative_error
    }

    /// True when the floats are the masses.
    pub fn is_float(&self) -> bool {
        self.exact.is_none()
    }

    /// The exact pmf of one row.
    pub fn pmf(&self, row: usize) -> Pmf<'_> {
        match &self.exact {
            None => Pmf::from_checked_floats(self.row(row)),
            Some(exact) => exact.pmf(row),
        }
    }
}

fn check_shape(masses: &[f64], outputs: usize) -> Result<()> {
    if outputs == 0 || !masses.len().is_multiple_of(outputs) {
        let message = format!("{} masses are not rows of {outputs} outputs", masses.len());
        return Err(Error::invalid("pmfs", message));
    }
    Ok(())
}
