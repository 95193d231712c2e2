//! Exact decisions about pairs of distributions: responses composed, groups, which pair dominates which.

use crate::{convert::Items, run::run};
use num_bigint::BigUint;
use pyo3::prelude::*;
use userdp_core::composition::{self, Responses};

/// Numerator and denominator, not in lowest terms.
type Parts = (BigUint, BigUint);

/// Randomized responses at e^epsilon = top / bottom.
#[pyclass(frozen, name = "Responses", module = "userdp._core")]
pub(crate) struct PyResponses(Responses);

#[pymethods]
impl PyResponses {
    #[new]
    fn new(py: Python<'_>, top: BigUint, bottom: BigUint, count: BigUint) -> PyResult<Self> {
        run(py, None, |control| Responses::new(&top, &bottom, &count, control)).map(Self)
    }

    /// Whether nothing was rounded.
    #[getter]
    fn exact(&self) -> bool {
        self.0.exact()
    }

    /// The least e^epsilon at which the divergence is at most delta.
    fn least_multiplier(&self, py: Python<'_>, numerator: BigUint, denominator: BigUint) -> PyResult<Parts> {
        run(py, None, |control| self.0.least_multiplier(&numerator, &denominator, control))
    }
}

/// The divergence of responses of several levels together at e^epsilon = top / bottom >= 1.
#[pyfunction]
pub(crate) fn divergence_of_responses(
    py: Python<'_>,
    groups: Items<Py<PyResponses>>,
    top: BigUint,
    bottom: BigUint,
) -> PyResult<Parts> {
    let groups: Vec<&Responses> = groups.iter().map(|group| &group.get().0).collect();
    run(py, None, |control| composition::divergence_of_responses(&groups, &top, &bottom, control))
}

/// The pair by integer weights whose power curve is that of a pair, applied so often.
#[pyfunction]
pub(crate) fn grouped_pair(
    py: Python<'_>,
    p: Items<BigUint>,
    q: Items<BigUint>,
    size: BigUint,
) -> PyResult<composition::Weights> {
    run(py, None, |control| composition::grouped_pair(&p, &q, &size, control))
}

/// Whether the curve of the first pair of integer weights is nowhere below that of the second.
#[pyfunction]
pub(crate) fn pair_dominates(
    py: Python<'_>,
    p: Items<BigUint>,
    q: Items<BigUint>,
    below_p: Items<BigUint>,
    below_q: Items<BigUint>,
) -> PyResult<bool> {
    run(py, None, |control| composition::pair_dominates((&p, &q), (&below_p, &below_q), control))
}
