//! Local randomizers.

use crate::{
    convert::{LevelArgument, level},
    run::{run, run_short},
    sampler::{PySource, draw_many},
};
use num_bigint::BigUint;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use userdp_core::{
    control::Control,
    ct::Secret,
    protocol::local::{
        Favor, HadamardResponse, RandomizedResponse, SubsetSelection, bits_of_rows as bits_at, walsh_hadamard,
    },
    rng::Source,
};

type Reports<'py> = PyResult<Bound<'py, PyArray1<i64>>>;

/// One of the three, with what Python asks all of them.
enum Randomizer {
    RandomizedResponse(RandomizedResponse),
    Subset(SubsetSelection),
    Hadamard(HadamardResponse),
}

/// A randomizer of the items 0, ..., n - 1 with a public default in place of anything else.
#[pyclass(frozen, name = "LocalRandomizer", module = "userdp._core")]
pub(crate) struct PyLocalRandomizer(Randomizer);

#[pymethods]
impl PyLocalRandomizer {
    /// An item itself, or any other one.
    #[staticmethod]
    fn randomized_response(
        py: Python<'_>,
        epsilon: LevelArgument<'_>,
        items: u64,
        default: u64,
    ) -> PyResult<Self> {
        let level = level(&epsilon);
        run(py, None, |_| RandomizedResponse::new(&level, items, default))
            .map(|distribution| Self(Randomizer::RandomizedResponse(distribution)))
    }

    /// A set of `size` items.
    #[staticmethod]
    fn subset_selection(
        py: Python<'_>,
        epsilon: LevelArgument<'_>,
        items: u64,
        size: u64,
        default: u64,
    ) -> PyResult<Self> {
        let level = level(&epsilon);
        run(py, None, |_| SubsetSelection::new(&level, items, size, default))
            .map(|distribution| Self(Randomizer::Subset(distribution)))
    }

    /// A column of Sylvester's matrix.
    #[staticmethod]
    fn hadamard_response(
        py: Python<'_>,
        epsilon: LevelArgument<'_>,
        items: u64,
        default: u64,
    ) -> PyResult<Self> {
        let level = level(&epsilon);
        run(py, None, |_| HadamardResponse::new(&level, items, default))
            .map(|distribution| Self(Randomizer::Hadamard(distribution)))
    }

    /// The probability of a symbol that the item favors, times 2^128.
    #[getter]
    fn favor(&self) -> BigUint {
        let favor: &Favor = match &self.0 {
            Randomizer::RandomizedResponse(distribution) => distribution.favor(),
            Randomizer::Subset(distribution) => distribution.favor(),
            Randomizer::Hadamard(distribution) => distribution.favor(),
        };
        BigUint::from(favor.numerator())
    }

    /// A report of every item: `words` integers each, one report after the other.
    fn report_many<'py>(
        &self,
        py: Python<'py>,
        source: &PySource,
        items: PyReadonlyArray1<'py, i64>,
    ) -> Reports<'py> {
        let items = Secret::new(items.as_slice()?.to_vec());
        let (words, steps) = match &self.0 {
            Randomizer::Subset(distribution) => (distribution.words(), 64),
            _ => (1, 1),
        };
        let fill = |source: &mut Source, reports: &mut [i64], control: &Control| match &self.0 {
            Randomizer::RandomizedResponse(distribution) => {
                distribution.report_many(&items, source, reports, control)
            }
            Randomizer::Subset(distribution) => distribution.report_many(&items, source, reports, control),
            Randomizer::Hadamard(distribution) => distribution.report_many(&items, source, reports, control),
        };
        draw_many(py, source, items.len().saturating_mul(words), steps, fill)
    }
}

/// Of every row of zeros and ones the entry at its place; 0 of all others. Constant time.
///
/// The rows are read where they are, so that the interpreter lock is kept.
#[pyfunction]
pub(crate) fn bits_of_rows<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyArray2<i64>>,
    places: PyReadonlyArray1<'py, u64>,
) -> Reports<'py> {
    let rows = rows.try_readonly()?;
    let (rows, places) = (rows.as_slice()?, places.as_slice()?);
    Ok(run_short(|| bits_at(rows, places))?.into_pyarray(py))
}

/// The Walsh-Hadamard transform of counts, of which there are a power of two.
#[pyfunction]
pub(crate) fn hadamard_transform<'py>(
    py: Python<'py>,
    counts: PyReadonlyArray1<'py, i64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let mut sums = counts.as_slice()?.to_vec();
    let sums = run(py, None, move |control| walsh_hadamard(&mut sums, control).map(|()| sums))?;
    Ok(sums.into_pyarray(py))
}
