//! Searches for smallest stable sets, and what is drawn when one is found.

use crate::{
    convert::{Items, LevelArgument, Masses, level},
    matrix::PyPmfMatrix,
    run::{locked, run, run_short},
    sampler::PySource,
    stability::PyStableFamily,
};
use num_bigint::BigInt;
use num_rational::BigRational;
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::{prelude::*, types::PyTuple};
use std::sync::{Arc, Mutex};
use userdp_core::{
    Error,
    stability::{self, Closeness, Key, Keys, Problem, Question, StableSearch},
};

/// A search for the smallest stable sets of users grouped by type. `step` asks, and `answer` tells.
#[pyclass(frozen, name = "StableSearch", module = "userdp._core")]
pub(crate) struct PyStableSearch(Mutex<StableSearch>);

/// Size, users dropped, types kept, the users of each, the family, its distributions, and the rows without one.
type Found = (usize, usize, Vec<usize>, Vec<usize>, PyStableFamily, PyPmfMatrix, Vec<usize>);

/// Types in play, or None for keys; deletion vectors, or keys.
type Asked<'py> = (Option<Vec<usize>>, Bound<'py, PyAny>);

#[pymethods]
impl PyStableSearch {
    /// `values` are those whose total matters; without, `keyed` tells whether equal kept users are asked for once.
    #[new]
    #[pyo3(signature = (counts, unusable, kept, limit, max_types, max_choices, epsilon, delta, keyed, values=None))]
    // Two arguments for each of five things.
    #[allow(clippy::too_many_arguments)]
    fn new(
        counts: Items<usize>,
        unusable: usize,
        kept: usize,
        limit: usize,
        max_types: usize,
        max_choices: Option<usize>,
        epsilon: LevelArgument<'_>,
        delta: BigRational,
        keyed: bool,
        values: Option<Items<BigInt>>,
    ) -> PyResult<Self> {
        let problem = Problem {
            counts: counts.0,
            unusable,
            kept,
            limit,
            max_types,
            max_choices,
            keys: values.map(|values| Keys::Totals(values.0)).or_else(|| keyed.then_some(Keys::Users)),
            closeness: Closeness { level: level(&epsilon), delta },
        };
        run_short(|| StableSearch::new(problem)).map(|search| Self(Mutex::new(search)))
    }

    /// The next question: (None, keys), or (types in play, deletion vectors from them); None at the end.
    #[pyo3(signature = (progress=None))]
    fn step<'py>(&self, py: Python<'py>, progress: Option<Py<PyAny>>) -> PyResult<Option<Asked<'py>>> {
        let mut search = locked(py, &self.0)?;
        let search = &mut *search;
        match run(py, progress, |control| search.step(control))? {
            None => Ok(None),
            Some(Question::Keys(keys)) => {
                let keys = keys.into_iter().map(|key| to_python(py, key)).collect::<PyResult<Vec<_>>>()?;
                Ok(Some((None, keys.into_pyobject(py)?)))
            }
            Some(Question::Deletions { active, vectors }) => {
                let shape = [vectors.len() / active.len().max(1), active.len()];
                let vectors = vectors.into_pyarray(py).reshape(shape)?;
                Ok(Some((Some(active), vectors.into_any())))
            }
        }
    }

    /// Takes the distributions that were asked for, and the rows on which the algorithm fails.
    fn answer(&self, py: Python<'_>, matrix: &PyPmfMatrix, incompatible: Items<usize>) -> PyResult<()> {
        let mut search = locked(py, &self.0)?;
        run_short(|| search.answer(Arc::clone(&matrix.0), incompatible.0))
    }

    /// What the search has found; None when every stable set exceeds the limit.
    fn found(&self, py: Python<'_>) -> PyResult<Option<Found>> {
        let search = locked(py, &self.0)?;
        Ok(search.found().map(|found| {
            (
                found.size,
                found.dropped,
                found.active.clone(),
                found.family.counts_by_type(),
                PyStableFamily(Arc::clone(&found.family)),
                PyPmfMatrix(Arc::clone(&found.matrix)),
                found.incompatible.clone(),
            )
        }))
    }

    /// (grids decided, kept sets of the largest, pools decided without one), so far.
    fn work(&self, py: Python<'_>) -> PyResult<(usize, usize, usize)> {
        let work = locked(py, &self.0)?.work();
        Ok((work.grids, work.kept_sets, work.pools))
    }
}

/// A key that Python can hash.
fn to_python(py: Python<'_>, key: Key) -> PyResult<Bound<'_, PyAny>> {
    Ok(match key {
        Key::Users(kept) => PyTuple::new(py, kept)?.into_any(),
        Key::Total(total) => total.into_pyobject(py)?.into_any(),
    })
}

/// The users that a smallest stable set leaves when one is kept, of one pmf each (None where the algorithm fails); None
/// when it has more than `limit` users.
#[pyfunction]
pub(crate) fn outside_smallest_cover(
    py: Python<'_>,
    pmfs: Items<Option<Masses>>,
    epsilon: LevelArgument<'_>,
    delta: BigRational,
    limit: usize,
) -> PyResult<Option<Vec<usize>>> {
    let level = level(&epsilon);
    run(py, None, |control| {
        let pmf = |masses: Masses| masses.into_pmf("pmfs", control);
        let pmfs = pmfs.0.into_iter().map(|masses| masses.map(pmf).transpose());
        let pmfs = pmfs.collect::<Result<Vec<_>, Error>>()?;
        stability::outside_smallest_cover(&pmfs, &level, &delta, limit, control)
    })
}

/// A uniform row, then an output with exactly its mass in it.
#[pyfunction]
pub(crate) fn draw_of_rows(py: Python<'_>, matrix: &PyPmfMatrix, source: &PySource) -> PyResult<usize> {
    run(py, None, |control| source.with(|source| stability::draw_of_rows(&matrix.0, source, control)))
}

/// A uniform set of `kept` users of a window, then an output with exactly its mass in the row of their total.
#[pyfunction]
pub(crate) fn draw_of_window(
    py: Python<'_>,
    window: Items<i64>,
    kept: usize,
    matrix: &PyPmfMatrix,
    source: &PySource,
) -> PyResult<usize> {
    run(py, None, |control| {
        source.with(|source| stability::draw_of_window(&window, kept, &matrix.0, source, control))
    })
}
