//! User-level scores over finite classes.

use crate::{convert::copied, run::run};
use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyReadonlyArray3, PyUntypedArrayMethods,
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
};
use userdp_core::{
    control::Control,
    score::{
        counts::Mistakes,
        pairwise::{self, Count},
        predictions::Predictions,
        psi::PsiTable,
        scheffe::Scheffe,
        surrogate::Surrogate,
        user_rows::UserRows,
    },
    simd::Kernel,
};

/// Who has which rows, as Python passes it: (point of every row, user of every row, number of users, m).
type Rows<'py> = (PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u32>, usize, u32);

/// The same, copied.
struct OwnRows {
    points: Vec<u32>,
    codes: Vec<u32>,
    users: usize,
    m: u32,
}

impl OwnRows {
    fn new((points, codes, users, m): &Rows<'_>) -> PyResult<Self> {
        Ok(Self { points: copied("points", points)?, codes: copied("users", codes)?, users: *users, m: *m })
    }

    fn grouped(&self) -> userdp_core::Result<UserRows> {
        UserRows::new(&self.points, &self.codes, self.users, self.m)
    }
}

/// A copied matrix of zeros and ones with a row for every hypothesis.
struct Matrix {
    numbers: Vec<u8>,
    rows: usize,
}

impl Matrix {
    fn new(matrix: &PyReadonlyArray2<'_, u8>) -> PyResult<Self> {
        Ok(Self { numbers: copied("predictions", matrix)?, rows: matrix.as_array().nrows() })
    }

    fn packed(&self, control: &Control) -> userdp_core::Result<Predictions> {
        Predictions::new(&self.numbers, self.rows, control)
    }
}

/// Calls `work` with the mistakes of all hypotheses.
fn with_mistakes<T: Send>(
    py: Python<'_>,
    predictions: &PyReadonlyArray2<'_, u8>,
    labels: &PyReadonlyArray1<'_, u8>,
    rows: &Rows<'_>,
    work: impl FnOnce(&Mistakes<'_>, &Control) -> userdp_core::Result<T> + Send,
) -> PyResult<T> {
    let (matrix, rows, labels) = (Matrix::new(predictions)?, OwnRows::new(rows)?, copied("labels", labels)?);
    run(py, None, |control| {
        let (predictions, rows) = (matrix.packed(control)?, rows.grouped()?);
        let labels = rows.ordered(&labels)?;
        work(&Mistakes::new(&predictions, &rows, &labels, Kernel::detect())?, control)
    })
}

/// Mistakes of every hypothesis on every user's rows, scaled or plain, shape (hypotheses, users), of the smallest unsigned type.
#[pyfunction]
#[pyo3(signature = (predictions, labels, rows, scaled=true))]
pub(crate) fn user_errors<'py>(
    py: Python<'py>,
    predictions: PyReadonlyArray2<'py, u8>,
    labels: PyReadonlyArray1<'py, u8>,
    rows: Rows<'py>,
    scaled: bool,
) -> PyResult<Bound<'py, PyAny>> {
    fn counts<'py, T: Element + Copy + Default + TryFrom<u32>>(
        py: Python<'py>,
        predictions: &PyReadonlyArray2<'py, u8>,
        labels: &PyReadonlyArray1<'py, u8>,
        rows: &Rows<'py>,
        scaled: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shape = [predictions.as_array().nrows(), rows.2];
        let counts = with_mistakes(py, predictions, labels, rows, |mistakes, control| {
            mistakes.counts::<T>(scaled, control)
        })?;
        Ok(counts.into_pyarray(py).reshape(shape)?.into_any())
    }
    match rows.3 {
        ..=0xff => counts::<u8>(py, &predictions, &labels, &rows, scaled),
        0x100..=0xffff => counts::<u16>(py, &predictions, &labels, &rows, scaled),
        0x1_0000.. => counts::<u32>(py, &predictions, &labels, &rows, scaled),
    }
}

/// For every hypothesis the number of users whose scaled mistakes are more than t.
#[pyfunction]
pub(crate) fn user_errors_above<'py>(
    py: Python<'py>,
    predictions: PyReadonlyArray2<'py, u8>,
    labels: PyReadonlyArray1<'py, u8>,
    rows: Rows<'py>,
    t: u32,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let above =
        with_mistakes(py, &predictions, &labels, &rows, |mistakes, control| mistakes.above(t, control))?;
    Ok(above.into_pyarray(py))
}

/// For every t in 0..m the least number of users, over the hypotheses, whose scaled mistakes are more than t.
#[pyfunction]
pub(crate) fn least_errors_above<'py>(
    py: Python<'py>,
    predictions: PyReadonlyArray2<'py, u8>,
    labels: PyReadonlyArray1<'py, u8>,
    rows: Rows<'py>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    // Clippy's shorter form does not compile: it names one lifetime for all mistakes.
    #[allow(clippy::redundant_closure_for_method_calls)]
    let least =
        with_mistakes(py, &predictions, &labels, &rows, |mistakes, control| mistakes.least_above(control))?;
    Ok(least.into_pyarray(py))
}

/// min over hypotheses c of (users with more than t mistakes of c) + (users with more than s disagreements of c with h), for all h.
#[pyfunction]
pub(crate) fn surrogate_scores<'py>(
    py: Python<'py>,
    hypotheses: PyReadonlyArray2<'py, u8>,
    scored: PyReadonlyArray2<'py, u8>,
    labels: PyReadonlyArray1<'py, u8>,
    rows: Rows<'py>,
    t: u32,
    s: u32,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (class, scored) = (Matrix::new(&hypotheses)?, Matrix::new(&scored)?);
    let (rows, labels) = (OwnRows::new(&rows)?, copied("labels", &labels)?);
    let scores = run(py, None, |control| {
        let (class, scored, rows) = (class.packed(control)?, scored.packed(control)?, rows.grouped()?);
        let surrogate = Surrogate { class: &class, scored: &scored, rows: &rows, t, s };
        surrogate.scores(&labels, Kernel::detect(), control)
    })?;
    Ok(scores.into_pyarray(py))
}

/// max over b != a of `sum_i clip(counts[a, i] - counts[b, i], -tau, tau)` for all a, from integers of 8, 16 or 32 bits.
#[pyfunction]
pub(crate) fn clipped_pairwise_scores<'py>(
    py: Python<'py>,
    counts: &Bound<'py, PyAny>,
    tau: u64,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    fn scores<'py, T: Element + Count>(
        py: Python<'py>,
        counts: &Bound<'py, PyArray2<T>>,
        tau: u64,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (numbers, users) = (copied("counts", counts)?, counts.shape()[1]);
        let scores =
            run(py, None, |control| pairwise::clipped_pairwise_scores(&numbers, users, tau, control))?;
        Ok(scores.into_pyarray(py))
    }
    if let Ok(counts) = counts.cast::<PyArray2<i8>>() {
        scores(py, counts, tau)
    } else if let Ok(counts) = counts.cast::<PyArray2<u8>>() {
        scores(py, counts, tau)
    } else if let Ok(counts) = counts.cast::<PyArray2<i16>>() {
        scores(py, counts, tau)
    } else if let Ok(counts) = counts.cast::<PyArray2<u16>>() {
        scores(py, counts, tau)
    } else if let Ok(counts) = counts.cast::<PyArray2<i32>>() {
        scores(py, counts, tau)
    } else if let Ok(counts) = counts.cast::<PyArray2<u32>>() {
        scores(py, counts, tau)
    } else {
        Err(PyTypeError::new_err("counts must be a matrix of integers of 8, 16 or 32 bits"))
    }
}

/// max over b != a of `sum_i clip(sum_j psi[a, b, x_ij], -tau, tau)` for all a, from a table of shape (K, K, points).
#[pyfunction]
pub(crate) fn psi_scores<'py>(
    py: Python<'py>,
    psi: PyReadonlyArray3<'py, i64>,
    rows: Rows<'py>,
    tau: i64,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (candidates, points) = (psi.as_array().shape()[0], psi.as_array().shape()[2]);
    let (psi, rows) = (copied("psi", &psi)?, OwnRows::new(&rows)?);
    let scores = run(py, None, |control| {
        let table = PsiTable { psi: &psi, candidates, points };
        table.scores(&rows.grouped()?, tau, Kernel::detect(), control)
    })?;
    Ok(scores.into_pyarray(py))
}

/// Scheffe scores, in units of the grid of the masses: from masses of shape (K, symbols) and counts of shape (users, symbols).
#[pyfunction]
pub(crate) fn scheffe_scores<'py>(
    py: Python<'py>,
    masses: PyReadonlyArray2<'py, i64>,
    histograms: PyReadonlyArray2<'py, u32>,
    tau: i64,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let symbols = masses.as_array().ncols();
    if histograms.as_array().ncols() != symbols {
        return Err(PyValueError::new_err(format!(
            "histograms: {symbols} columns are needed, as masses has"
        )));
    }
    let (masses, histograms) = (copied("masses", &masses)?, copied("histograms", &histograms)?);
    let scores = run(py, None, |control| {
        Scheffe { masses: &masses, histograms: &histograms, symbols }.scores(tau, Kernel::detect(), control)
    })?;
    Ok(scores.into_pyarray(py))
}
