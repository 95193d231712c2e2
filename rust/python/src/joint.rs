//! Rows of linear models in public units, and what is made of them.

use crate::{
    convert::Items,
    run::run,
    vectors::{Made, Numbers, Progress, PyRowsOfUsers, PyUserVectors, loss_of},
};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::{exceptions::PyValueError, prelude::*};
use userdp_core::{
    Result,
    control::Control,
    vectors::{
        UserVectors,
        gradients::{GradientOptions, Gradients},
        joint::{Joint, Spreads, Units},
        means::{Means, MeansOptions},
        moments::Moments,
        norm::Region,
        rotated::Mapped,
        rows::RowsOfUsers,
    },
};

/// Users' rows, with targets as a last column where there are any, in public units.
#[pyclass(frozen, name = "JointRows", module = "userdp._core")]
pub(crate) struct PyJointRows {
    records: Numbers,
    targets: Option<Py<PyArray1<f64>>>,
    rows: Py<PyRowsOfUsers>,
    region: Region,
    units: Option<Units>,
}

/// A vector for each user, made of joint rows.
pub(crate) enum OfJoint {
    Means,
    Spreads(Vec<f64>),
    Gradients { labels: Py<PyArray1<f64>>, options: GradientOptions, matrix: Vec<f64> },
}

/// Work on rows.
type Work<'a, T> = &'a (dyn Fn(&Joint<'_>, &RowsOfUsers, &Control) -> Result<T> + Sync);

impl PyJointRows {
    fn with<T: Send>(&self, py: Python<'_>, progress: Progress, work: Work<'_, T>) -> PyResult<T> {
        self.records.with(py, |records| {
            let targets = self.targets.as_ref().map(|targets| targets.bind(py).try_readonly()).transpose()?;
            let targets = targets.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
            let (rows, units) = (&self.rows.get().0, self.units.as_ref());
            run(py, progress, |control| {
                work(&Joint::new(records, targets, self.region, units)?, rows, control)
            })
        })
    }

    /// Sums vectors that are made of these rows.
    pub(crate) fn sum<T: Send>(
        &self,
        py: Python<'_>,
        made: &OfJoint,
        progress: Progress,
        sum: &(dyn Fn(&dyn UserVectors, &Control) -> Result<T> + Sync),
    ) -> PyResult<T> {
        match made {
            OfJoint::Means => {
                let options = MeansOptions::default();
                self.with(py, progress, &|joint, rows, control| {
                    sum(&Means::new(joint, rows, &options)?, control)
                })
            }
            OfJoint::Spreads(center) => self.with(py, progress, &|joint, rows, control| {
                sum(&Spreads::new(joint, rows, center)?, control)
            }),
            OfJoint::Gradients { labels, options, matrix } => {
                let labels = labels.bind(py).try_readonly()?;
                let labels = labels.as_slice()?;
                self.with(py, progress, &|joint, rows, control| {
                    sum(&Mapped::new(&Gradients::new(joint, labels, rows, options)?, matrix)?, control)
                })
            }
        }
    }
}

#[pymethods]
impl PyJointRows {
    /// Rows whose features are in the ball ("l2") or cube ("max") of radius 1, and targets in -1..=1.
    #[new]
    #[pyo3(signature = (records, targets, rows, norm, center = None, factor = None))]
    fn new(
        records: Py<PyAny>,
        targets: Option<Py<PyArray1<f64>>>,
        rows: Py<PyRowsOfUsers>,
        norm: &str,
        center: Option<Items<f64>>,
        factor: Option<Items<f64>>,
    ) -> PyResult<Self> {
        let region = if norm == "max" { Region::Cube(1.0) } else { Region::Ball(1.0) };
        let units = match (center, factor) {
            (Some(center), Some(factor)) => Some(Units { center: center.0, factor: factor.0 }),
            (None, None) => None,
            _ => return Err(PyValueError::new_err("center and factor go together")),
        };
        Ok(Self { records: Numbers(records), targets, rows, region, units })
    }

    /// The mean of every user's rows.
    fn means(slf: Py<Self>) -> PyUserVectors {
        PyUserVectors(Made::Joint { of: slf, made: OfJoint::Means })
    }

    /// How far every user's rows are from a center, column by column.
    fn spreads(slf: Py<Self>, center: Items<f64>) -> PyUserVectors {
        PyUserVectors(Made::Joint { of: slf, made: OfJoint::Spreads(center.0) })
    }

    /// A matrix times the mean gradient of every user's rows at theta.
    #[pyo3(signature = (labels, *, loss, parameter, theta, matrix, intercept))]
    #[allow(clippy::too_many_arguments)]
    fn gradients(
        slf: Py<Self>,
        labels: Py<PyArray1<f64>>,
        loss: &str,
        parameter: f64,
        theta: Items<f64>,
        matrix: Items<f64>,
        intercept: bool,
    ) -> PyResult<PyUserVectors> {
        let loss = loss_of(loss, parameter)?;
        // Numbers in units are bounded: nothing is clipped.
        let bound = userdp_core::vectors::LARGEST;
        let options = GradientOptions { loss, theta: theta.0, bound, intercept, kernel: None };
        let made = OfJoint::Gradients { labels, options, matrix: matrix.0 };
        Ok(PyUserVectors(Made::Joint { of: slf, made }))
    }

    /// How many users have second moments of at most each Frobenius norm.
    #[pyo3(signature = (radii, constant, progress = None))]
    fn norm_counts<'py>(
        &self,
        py: Python<'py>,
        radii: PyReadonlyArray1<'py, f64>,
        constant: bool,
        progress: Progress,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let radii = radii.as_slice()?;
        let counts = self.with(py, progress, &|joint, rows, control| {
            Moments::new(joint, rows, constant, None)?.norm_counts(radii, control)
        })?;
        Ok(counts.into_pyarray(py))
    }

    /// The sum of users' second moments, clipped in Frobenius norm, in steps of the grid: the upper triangle.
    #[pyo3(signature = (radius, grid, constant, progress = None))]
    fn moment_sum<'py>(
        &self,
        py: Python<'py>,
        radius: u32,
        grid: f64,
        constant: bool,
        progress: Progress,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let sums = self.with(py, progress, &|joint, rows, control| {
            Moments::new(joint, rows, constant, None)?.clipped_sum(radius, grid, control)
        })?;
        Ok(sums.into_pyarray(py))
    }
}
