//! Vectors of users, of records or of rows of linear models in public units, and integer sums of them.

use crate::{
    convert::Items,
    rows::{Numbers, PyRowsOfUsers},
    run::{run, run_short},
};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, ndarray::Array2,
};
use pyo3::{exceptions::PyValueError, prelude::*};
use userdp_core::{
    Result,
    control::Control,
    vectors::{
        Filled, Subset, UserVectors, bins, clip, excess,
        gradients::{GradientOptions, Gradients, Loss},
        hadamard::Rotation,
        joint::{Joint, Spreads, Units},
        means::{Means, MeansOptions},
        moments::{Moments, Target},
        norm::Region,
        products::Products,
        rotated::Rotated,
        rows::RowsOfUsers,
        whitened::{Whitened, WhitenedGradients},
        winsorize, within,
    },
};

/// A vector and its occupied bins' counts.
type Occupied<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>);

/// What vectors are made of.
enum Made {
    Means {
        records: Numbers,
        rows: Py<PyRowsOfUsers>,
        options: MeansOptions,
    },
    Gradients {
        records: Numbers,
        targets: Py<PyArray1<f64>>,
        rows: Py<PyRowsOfUsers>,
        options: GradientOptions,
    },
    Subset {
        of: Py<PyUserVectors>,
        users: Vec<u32>,
    },
    Rotated {
        of: Py<PyUserVectors>,
        rotation: Rotation,
    },
    Filled {
        of: Py<PyUserVectors>,
    },
    Joint {
        of: Py<PyJointRows>,
        made: OfJoint,
    },
    Whitened {
        of: Py<PyWhitenedRows>,
        theta: Vec<f64>,
        longest: f64,
    },
}

/// A vector for each user, made anew whenever it is needed.
#[pyclass(frozen, name = "UserVectors", module = "userdp._core")]
pub(crate) struct PyUserVectors(Made);

/// Integers for Python.
type Integers<'py> = Bound<'py, PyArray1<i64>>;

/// A sum over users.
type Sum<'a, T> = &'a (dyn Fn(&dyn UserVectors, &Control) -> Result<T> + Sync);

/// Called with (users done, users in all).
type Progress = Option<Py<PyAny>>;

impl PyUserVectors {
    fn sum<T: Send>(&self, py: Python<'_>, progress: Progress, sum: Sum<'_, T>) -> PyResult<T> {
        match &self.0 {
            Made::Means { records, rows, options } => records.with(py, |records| {
                let rows = &rows.get().0;
                run(py, progress, |control| sum(&Means::new(records, rows, options)?, control))
            }),
            Made::Gradients { records, targets, rows, options } => records.with(py, |records| {
                let (targets, rows) = (targets.bind(py).try_readonly()?, &rows.get().0);
                let targets = targets.as_slice()?;
                run(py, progress, |control| sum(&Gradients::new(records, targets, rows, options)?, control))
            }),
            Made::Subset { of, users } => {
                of.get().sum(py, progress, &|vectors, control| sum(&Subset::new(vectors, users)?, control))
            }
            Made::Rotated { of, rotation } => of
                .get()
                .sum(py, progress, &|vectors, control| sum(&Rotated::new(vectors, rotation)?, control)),
            Made::Filled { of } => {
                of.get().sum(py, progress, &|vectors, control| sum(&Filled(vectors), control))
            }
            Made::Joint { of, made } => of.get().sum(py, made, progress, sum),
            Made::Whitened { of, theta, longest } => run(py, progress, |control| {
                sum(&WhitenedGradients::new(&of.get().0, theta, *longest)?, control)
            }),
        }
    }
}

/// A loss by its name.
fn loss_of(name: &str, parameter: f64) -> PyResult<Loss> {
    match name {
        "logistic" => Ok(Loss::Logistic),
        "hinge" => Ok(Loss::Hinge(parameter)),
        "squared" => Ok(Loss::Squared(parameter)),
        other => Err(PyValueError::new_err(format!("loss {other:?} is unknown"))),
    }
}

#[pymethods]
impl PyUserVectors {
    /// Means of the records of users: less the center, in units of columns, each clipped, averaged, rotated by signs.
    #[staticmethod]
    #[pyo3(signature = (records, rows, norm, bound, center, signs, units=None))]
    fn means(
        records: Py<PyAny>,
        rows: Py<PyRowsOfUsers>,
        norm: &str,
        bound: Option<f64>,
        center: Option<Items<f64>>,
        signs: Option<Items<i8>>,
        units: Option<Items<f64>>,
    ) -> PyResult<Self> {
        let region = bound.map(if norm == "max" { Region::Cube } else { Region::Ball });
        let rotation = signs.map(|signs| run_short(|| Rotation::new(&signs))).transpose()?;
        let (center, units) = (center.map(|center| center.0), units.map(|units| units.0));
        let options = MeansOptions { center, units, region, rotation, kernel: None };
        Ok(Self(Made::Means { records: Numbers(records), rows, options }))
    }

    /// Mean gradients of the losses of the records of users at theta, each record clipped to a ball.
    #[staticmethod]
    #[pyo3(signature = (records, targets, rows, *, loss, parameter, theta, bound, intercept))]
    #[allow(clippy::too_many_arguments)]
    fn gradients(
        records: Py<PyAny>,
        targets: Py<PyArray1<f64>>,
        rows: Py<PyRowsOfUsers>,
        loss: &str,
        parameter: f64,
        theta: Items<f64>,
        bound: f64,
        intercept: bool,
    ) -> PyResult<Self> {
        let loss = loss_of(loss, parameter)?;
        let options = GradientOptions { loss, theta: theta.0, bound, intercept, kernel: None };
        Ok(Self(Made::Gradients { records: Numbers(records), targets, rows, options }))
    }

    /// Those of the listed users.
    fn subset(slf: Py<Self>, users: Items<u32>) -> Self {
        Self(Made::Subset { of: slf, users: users.0 })
    }

    /// The same, rotated by signs.
    fn rotated(slf: Py<Self>, signs: Items<i8>) -> PyResult<Self> {
        let rotation = run_short(|| Rotation::new(&signs))?;
        Ok(Self(Made::Rotated { of: slf, rotation }))
    }

    /// The same, and the origin for users without rows.
    fn filled(slf: Py<Self>) -> Self {
        Self(Made::Filled { of: slf })
    }

    /// Sums of vectors clipped to a ball, in steps of the grid.
    #[pyo3(signature = (center, radius, grid, progress = None))]
    fn clipped_sum<'py>(
        &self,
        py: Python<'py>,
        center: PyReadonlyArray1<'py, f64>,
        radius: f64,
        grid: f64,
        progress: Progress,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let center = center.as_slice()?;
        let sums = self.sum(py, progress, &|vectors, control| {
            clip::clipped_sum(vectors, center, radius, grid, control)
        })?;
        Ok(sums.into_pyarray(py))
    }

    /// Those sums, and that of squared distances from the center, cut at twice the radius, which is `squares` steps.
    #[pyo3(signature = (center, radius, grid, squares, progress = None))]
    fn clipped_moments<'py>(
        &self,
        py: Python<'py>,
        center: PyReadonlyArray1<'py, f64>,
        radius: f64,
        grid: f64,
        squares: u32,
        progress: Progress,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, i64)> {
        let center = center.as_slice()?;
        let (sums, second) = self.sum(py, progress, &|vectors, control| {
            clip::clipped_moments(vectors, center, radius, grid, squares, control)
        })?;
        Ok((sums.into_pyarray(py), second))
    }

    /// Sums of what is beyond a ball: vectors, and distances beyond 2, 4, .. radii.
    #[pyo3(signature = (center, radius, reach, grid, rungs, progress = None))]
    #[allow(clippy::too_many_arguments)]
    fn clipping_excess<'py>(
        &self,
        py: Python<'py>,
        center: PyReadonlyArray1<'py, f64>,
        radius: f64,
        reach: f64,
        grid: f64,
        rungs: usize,
        progress: Progress,
    ) -> PyResult<(Integers<'py>, Integers<'py>)> {
        let center = center.as_slice()?;
        let sums = self.sum(py, progress, &|vectors, control| {
            excess::clipping_excess(vectors, center, radius, reach, grid, rungs, control)
        })?;
        Ok((sums.pull.into_pyarray(py), sums.beyond.into_pyarray(py)))
    }

    /// Sums of coordinates clamped to intervals, in steps of the grid.
    #[pyo3(signature = (low, steps, grid, progress = None))]
    fn winsorized_sum<'py>(
        &self,
        py: Python<'py>,
        low: PyReadonlyArray1<'py, f64>,
        steps: u64,
        grid: f64,
        progress: Progress,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let low = low.as_slice()?;
        let sums = self.sum(py, progress, &|vectors, control| {
            winsorize::winsorized_sum(vectors, low, steps, grid, control)
        })?;
        Ok(sums.into_pyarray(py))
    }

    /// How many users are in each bin of each coordinate, shape (dimension, bins).
    #[pyo3(signature = (bins, bound, progress = None))]
    fn bin_counts<'py>(
        &self,
        py: Python<'py>,
        bins: usize,
        bound: f64,
        progress: Progress,
    ) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let counts = self
            .sum(py, progress, &|vectors, control| bins::bin_counts(vectors, bins as u64, bound, control))?;
        let shape = (counts.len() / bins, bins);
        let counts = Array2::from_shape_vec(shape, counts);
        Ok(counts.map_err(|error| PyValueError::new_err(error.to_string()))?.into_pyarray(py))
    }

    /// The bins with users in them, and how many are in each, for each of the coordinates start..end.
    #[pyo3(signature = (start, end, bins, bound, progress = None))]
    fn occupied_bins<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        end: usize,
        bins: u64,
        bound: f64,
        progress: Progress,
    ) -> PyResult<Vec<Occupied<'py>>> {
        let listed = self.sum(py, progress, &|vectors, control| {
            bins::occupied_bins(vectors, start..end, bins, bound, control)
        })?;
        Ok(listed
            .into_iter()
            .map(|(bins, counts)| (bins.into_pyarray(py), counts.into_pyarray(py)))
            .collect())
    }

    /// How many users are at most at each distance from a center.
    #[pyo3(signature = (center, radii, progress = None))]
    fn counts_within<'py>(
        &self,
        py: Python<'py>,
        center: PyReadonlyArray1<'py, f64>,
        radii: PyReadonlyArray1<'py, f64>,
        progress: Progress,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (center, radii) = (center.as_slice()?, radii.as_slice()?);
        let counts = self
            .sum(py, progress, &|vectors, control| within::counts_within(vectors, center, radii, control))?;
        Ok(counts.into_pyarray(py))
    }

    /// How many users have an entry of at most each level, shape (dimension, levels).
    #[pyo3(signature = (levels, progress = None))]
    fn counts_at_most<'py>(
        &self,
        py: Python<'py>,
        levels: PyReadonlyArray2<'py, f64>,
        progress: Progress,
    ) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let shape = levels.as_array().dim();
        let levels = levels.as_slice()?;
        let counts =
            self.sum(py, progress, &|vectors, control| within::counts_at_most(vectors, levels, control))?;
        let counts = Array2::from_shape_vec(shape, counts);
        Ok(counts.map_err(|error| PyValueError::new_err(error.to_string()))?.into_pyarray(py))
    }
}

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
enum OfJoint {
    Means,
    Spreads(Vec<f64>),
    Products(f64),
}

/// Work on features, and on features with targets, which are the same where there are none.
type Work<'a, T> = &'a (dyn Fn([&Joint<'_>; 2], &RowsOfUsers, &Control) -> Result<T> + Sync);

impl PyJointRows {
    fn with<T: Send>(&self, py: Python<'_>, progress: Progress, work: Work<'_, T>) -> PyResult<T> {
        self.records.with(py, |records| {
            let targets = self.targets.as_ref().map(|targets| targets.bind(py).try_readonly()).transpose()?;
            let targets = targets.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
            let (rows, units) = (&self.rows.get().0, self.units.as_ref());
            run(py, progress, |control| {
                let features = Joint::new(records, None, self.region, units)?;
                work([&features, &Joint::new(records, targets, self.region, units)?], rows, control)
            })
        })
    }

    /// Sums vectors that are made of these rows.
    fn sum<T: Send>(
        &self,
        py: Python<'_>,
        made: &OfJoint,
        progress: Progress,
        sum: Sum<'_, T>,
    ) -> PyResult<T> {
        match made {
            OfJoint::Means => {
                let options = MeansOptions::default();
                self.with(py, progress, &|[_, joint], rows, control| {
                    sum(&Means::new(joint, rows, &options)?, control)
                })
            }
            OfJoint::Spreads(center) => self.with(py, progress, &|[features, _], rows, control| {
                sum(&Spreads::new(features, rows, center)?, control)
            }),
            OfJoint::Products(radius) => self.with(py, progress, &|[features, joint], rows, control| {
                sum(&Products::new(features, joint, rows, *radius)?, control)
            }),
        }
    }
}

#[pymethods]
impl PyJointRows {
    /// Rows whose features are in the ball ("l2") or cube ("max") of radius 1, and targets in -1..=1.
    #[new]
    #[pyo3(signature = (records, targets, rows, norm, center = None, factor = None, constant = false, target = 0.0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        records: Py<PyAny>,
        targets: Option<Py<PyArray1<f64>>>,
        rows: Py<PyRowsOfUsers>,
        norm: &str,
        center: Option<Items<f64>>,
        factor: Option<Items<f64>>,
        constant: bool,
        target: f64,
    ) -> PyResult<Self> {
        let region = if norm == "max" { Region::Cube(1.0) } else { Region::Ball(1.0) };
        let units = match (center, factor) {
            (Some(center), Some(factor)) => {
                Some(Units { center: center.0, factor: factor.0, constant, target })
            }
            (None, None) => None,
            _ => return Err(PyValueError::new_err("center and factor go together")),
        };
        Ok(Self { records: Numbers(records), targets, rows, region, units })
    }

    /// The mean of every user's rows.
    fn means(slf: Py<Self>) -> PyUserVectors {
        PyUserVectors(Made::Joint { of: slf, made: OfJoint::Means })
    }

    /// How far every user's features are from a center, column by column.
    fn spreads(slf: Py<Self>, center: Items<f64>) -> PyUserVectors {
        PyUserVectors(Made::Joint { of: slf, made: OfJoint::Spreads(center.0) })
    }

    /// The mean of features times the target of every user, of whom those with second moments beyond a radius count less.
    fn products(slf: Py<Self>, radius: f64) -> PyUserVectors {
        PyUserVectors(Made::Joint { of: slf, made: OfJoint::Products(radius) })
    }

    /// These rows, which must be without units, in units and then times a matrix, with a constant behind them.
    #[pyo3(signature = (labels, center, factor, matrix, constant, radius, progress = None))]
    #[allow(clippy::too_many_arguments)]
    fn whitened(
        &self,
        py: Python<'_>,
        labels: PyReadonlyArray1<'_, f64>,
        center: Items<f64>,
        factor: Items<f64>,
        matrix: PyReadonlyArray2<'_, f64>,
        constant: bool,
        radius: f64,
        progress: Progress,
    ) -> PyResult<PyWhitenedRows> {
        let units = Units { center: center.0, factor: factor.0, constant, target: 0.0 };
        let (labels, matrix) = (labels.as_slice()?, matrix.as_slice()?);
        let whitened = self.with(py, progress, &|[features, _], rows, control| {
            Whitened::new(features, labels, rows, &units, matrix, radius, control)
        })?;
        Ok(PyWhitenedRows(whitened))
    }

    /// How many users have second moments of features of at most each Frobenius norm.
    #[pyo3(signature = (radii, progress = None))]
    fn norm_counts<'py>(
        &self,
        py: Python<'py>,
        radii: PyReadonlyArray1<'py, f64>,
        progress: Progress,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let radii = radii.as_slice()?;
        let counts = self.with(py, progress, &|[features, _], rows, control| {
            Moments::new(features, rows, None, None)?.norm_counts(radii, control)
        })?;
        Ok(counts.into_pyarray(py))
    }

    /// The sum of users' second moments, clipped in Frobenius norm, in steps of the grid: the upper triangle. Of features,
    /// or with a target that is multiplied by a factor, is then at most so long, and beside features of this norm.
    #[pyo3(signature = (radius, grid, target = None, progress = None))]
    fn moment_sum<'py>(
        &self,
        py: Python<'py>,
        radius: u32,
        grid: f64,
        target: Option<(f64, f64, f64)>,
        progress: Progress,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let sums = self.with(py, progress, &|[features, joint], rows, control| {
            let target =
                target.map(|(factor, longest, norm)| Target::new(factor, longest, norm)).transpose()?;
            let records = if target.is_some() { joint } else { features };
            Moments::new(records, rows, target, None)?.clipped_sum(radius, grid, control)
        })?;
        Ok(sums.into_pyarray(py))
    }
}

/// Users' rows in whitened units, for logistic regression.
#[pyclass(frozen, name = "WhitenedRows", module = "userdp._core")]
pub(crate) struct PyWhitenedRows(Whitened);

#[pymethods]
impl PyWhitenedRows {
    /// The shares of users' rows within each length, in steps of 1/1024, summed over users.
    #[pyo3(signature = (lengths, progress = None))]
    fn shares_within<'py>(
        &self,
        py: Python<'py>,
        lengths: PyReadonlyArray1<'py, f64>,
        progress: Progress,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let lengths = lengths.as_slice()?;
        let shares = run(py, progress, |control| self.0.shares_within(lengths, control))?;
        Ok(shares.into_pyarray(py))
    }

    /// The mean gradient of every user's rows at theta, each of at most a length.
    fn gradients(slf: Py<Self>, theta: Items<f64>, longest: f64) -> PyUserVectors {
        PyUserVectors(Made::Whitened { of: slf, theta: theta.0, longest })
    }
}
