//! From Python's numbers to the core's, and back.

use num_bigint::BigUint;
use num_rational::BigRational;
use num_traits::Signed;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyList,
};
use std::sync::Arc;
use userdp_core::{control::Control, exact::Level, pmf::Pmf};

/// Weights read between two looks for Ctrl-C.
const CHECK_EVERY: usize = 1 << 14;

/// The level e^epsilon = ratio * e^exponent; its enclosures are computed once and kept.
#[pyclass(frozen, name = "Level", module = "userdp._core")]
pub(crate) struct PyLevel(Arc<Level>);

#[pymethods]
impl PyLevel {
    #[new]
    fn new(ratio: BigRational, exponent: BigRational) -> PyResult<Self> {
        if !ratio.is_positive() || exponent.is_negative() {
            return Err(PyValueError::new_err("a level needs ratio > 0 and exponent >= 0"));
        }
        Ok(Self(Arc::new(Level::new(ratio, exponent))))
    }

    /// A level of at most E^(1 / degree), for E >= 1: of one unit, where E is that of `degree` units.
    fn root_below(&self, degree: BigUint) -> PyResult<Self> {
        if degree == BigUint::ZERO {
            return Err(PyValueError::new_err("degree must be at least 1"));
        }
        Ok(Self(Arc::new(self.0.root_below(&degree))))
    }
}

/// A level as the functions of this module take it.
pub(crate) type LevelArgument<'py> = PyRef<'py, PyLevel>;

/// The core's level, shared.
pub(crate) fn level(argument: &LevelArgument<'_>) -> Arc<Level> {
    Arc::clone(&argument.0)
}

/// A pmf as Python passes it: a contiguous native float64 vector, or (weights, total).
pub(crate) enum Masses {
    /// Float masses, copied.
    Floats(Vec<f64>),
    /// Integer weights and their total.
    Weights(Vec<BigUint>, BigUint),
}

impl<'py> FromPyObject<'_, 'py> for Masses {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // Long lists of pmfs and of weights take seconds to read: Ctrl-C must be able to end that.
        object.py().check_signals()?;
        if let Ok(array) = object.cast::<PyArray1<f64>>() {
            return Ok(Self::Floats(array.try_readonly()?.as_slice()?.to_vec()));
        }
        let expected = || PyTypeError::new_err("masses must be a float64 vector or (weights, total)");
        let (list, total) = object.extract::<(Bound<'py, PyList>, BigUint)>().map_err(|_| expected())?;
        let mut weights = Vec::with_capacity(list.len());
        for (index, weight) in list.iter().enumerate() {
            if index % CHECK_EVERY == 0 {
                object.py().check_signals()?;
            }
            weights.push(weight.extract::<BigUint>().map_err(|_| expected())?);
        }
        Ok(Self::Weights(weights, total))
    }
}

impl Masses {
    /// Validates the masses, naming `argument` in errors.
    pub(crate) fn into_pmf(
        self,
        argument: &'static str,
        control: &Control,
    ) -> userdp_core::Result<Pmf<'static>> {
        match self {
            Self::Floats(masses) => Pmf::from_floats(masses, argument),
            Self::Weights(weights, total) => Pmf::from_weights(weights, total, argument, control),
        }
    }

    /// The number of outputs, counted several times when their weights are long.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Floats(masses) => masses.len(),
            Self::Weights(weights, total) => {
                weights.len().saturating_mul(1 + usize::try_from(total.bits() / 512).unwrap_or(usize::MAX))
            }
        }
    }
}
