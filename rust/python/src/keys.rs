//! Accounts of keys, and proposals of their noise.

use crate::{
    convert::Items,
    run::{run, run_short, to_python},
};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::One;
use pyo3::{exceptions::PyValueError, prelude::*};
use userdp_core::{
    Error,
    exact::{Rational, dyadic::Dyadic},
    keys::{self, Keys, RoundArguments, Rounds, guess},
};

/// Numbers of keys from ... to ..., for each of which it is asked how likely a key is shown.
#[pyfunction]
pub(crate) fn key_groups(max_keys: u64) -> PyResult<Vec<(u64, u64)>> {
    run_short(|| keys::groups(max_keys))
}

/// Numbers of keys in units of 1 / 64, for each of which but the last it is asked how likely a key of a walk is shown.
#[pyfunction]
pub(crate) fn key_groups_between(max_keys: u64) -> PyResult<Vec<u64>> {
    run_short(|| keys::fine_groups(max_keys))
}

/// At or above the sum of [P - E Q]_+ for normal P and Q, at a level E that may be below 1.
#[pyfunction]
pub(crate) fn gaussian_hockey_stick(mu2: BigRational, level: BigRational) -> PyResult<BigRational> {
    run_short(|| keys::gaussian_hockey_stick(&mu2, &level))
}

/// At or above the probability that not all of a user's own keys are hidden.
#[pyfunction]
pub(crate) fn vanishing_delta(hidden: BigRational, max_keys: u64) -> PyResult<BigRational> {
    run_short(|| keys::vanishing(&hidden, max_keys).map(|found| found.to_rational()))
}

/// Errors of the core, and those of a function of the caller.
enum Failure {
    Core(Error),
    Caller(PyErr),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

/// At or above the least delta at a level between low and high; with a limit any number on the same side of it.
///
/// `own` and `common` are mu^2 of continuous Gaussian noise for a key that one user has, and that both have, if numbers move there.
/// With `curve` they are not looked at: curve(own, common, level, negligible) is at or above the hockey-stick divergence of so many.
#[pyfunction]
#[pyo3(signature = (*, max_keys, replace, hidden, distance, low, high, limit=None, own, common=None, curve=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn keys_delta(
    py: Python<'_>,
    max_keys: u64,
    replace: bool,
    hidden: BigRational,
    distance: BigRational,
    low: BigRational,
    high: BigRational,
    limit: Option<BigRational>,
    own: BigRational,
    common: Option<BigRational>,
    curve: Option<Py<PyAny>>,
) -> PyResult<BigRational> {
    let made = Keys::new(max_keys, replace, common.is_some(), hidden, distance);
    let mut keys = made.map_err(|error| to_python(&error))?;
    let common = common.unwrap_or_default();
    let Some(curve) = curve else {
        return run(py, None, |control| {
            keys.gaussian_delta((&low, &high), limit.as_ref(), &own, &common, control)
        });
    };
    let asked = |single: u64, both: u64, level: &Dyadic, negligible: &Dyadic| {
        let call = || -> PyResult<Dyadic> {
            py.check_signals()?;
            let found: Rational = curve
                .call1(py, (single, both, level.to_rational(), negligible.to_rational()))?
                .extract(py)?;
            if found > Rational::one() || found < Rational::from_integer(BigInt::ZERO) {
                return Err(PyValueError::new_err("curve must return a number from 0 to 1"));
            }
            Ok(Dyadic::quotient(found.numer(), found.denom(), 256, true))
        };
        call().map_err(Failure::Caller)
    };
    // On this thread: the caller's function holds the interpreter anyway, and composes in the core, where Ctrl-C is looked for.
    keys.delta((&low, &high), limit.as_ref(), asked).map_err(|failure| match failure {
        Failure::Core(error) => to_python(&error),
        Failure::Caller(error) => error,
    })
}

/// One round or two, by the noise's parameter, how far it is from ideal noise, and how likely new keys are shown for each
/// group of keys, and with a walk for each of `key_groups_between`.
#[pyclass(frozen, name = "UnionRounds", module = "userdp._core")]
pub(crate) struct PyUnionRounds(Rounds);

#[pymethods]
impl PyUnionRounds {
    #[new]
    #[pyo3(signature = (rounds, *, weight, max_keys, replace, walk, slack, moved))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        rounds: Items<(BigRational, BigRational, Items<BigRational>, Items<BigRational>)>,
        weight: u64,
        max_keys: u64,
        replace: bool,
        walk: bool,
        slack: u64,
        moved: u64,
    ) -> PyResult<Self> {
        let arguments: Vec<RoundArguments> = rounds
            .0
            .into_iter()
            .map(|(sigma_squared, distance, shown, between)| RoundArguments {
                sigma_squared,
                weight,
                max_keys,
                replace,
                walk,
                slack,
                moved,
                distance,
                shown: shown.0,
                between: between.0,
            })
            .collect();
        run(py, None, |_| {
            let rounds = arguments.iter().map(keys::Round::new).collect::<userdp_core::Result<_>>()?;
            Rounds::new(rounds)
        })
        .map(Self)
    }

    /// The least probability that no new key of a user is shown in any round.
    #[getter]
    fn hidden(&self) -> BigRational {
        self.0.hidden()
    }

    /// mu^2 of each round's continuous noise, where no key is new.
    #[getter]
    fn mu2(&self) -> Vec<BigRational> {
        self.0.mu2()
    }

    /// At or above the least delta at a level between low and high.
    fn delta(&self, py: Python<'_>, low: BigRational, high: BigRational) -> PyResult<BigRational> {
        run(py, None, |control| self.0.delta((&low, &high), control))
    }
}

/// The noise and threshold of each round, in units of a user's weight; None where none was found.
#[pyfunction]
#[pyo3(signature = (max_keys, *, replace, walk, epsilon, delta, parts))]
pub(crate) fn propose_union(
    py: Python<'_>,
    max_keys: u64,
    replace: bool,
    walk: bool,
    epsilon: f64,
    delta: f64,
    parts: Items<f64>,
) -> PyResult<Option<Vec<(f64, f64)>>> {
    run(py, None, |control| {
        guess::Union::new(max_keys, replace, walk)?.proposed(epsilon, delta, &parts, control)
    })
}

/// About the least threshold at which new keys are shown with at most a probability, in units of a user's weight.
#[pyfunction]
#[pyo3(signature = (max_keys, *, sigma, shown))]
pub(crate) fn union_threshold(max_keys: u64, sigma: f64, shown: f64) -> PyResult<f64> {
    if !(sigma.is_finite() && sigma > 0.0 && (0.0..1.0).contains(&shown)) {
        return Err(PyValueError::new_err("sigma must be positive and finite, and shown in [0, 1)"));
    }
    run_short(|| Ok(guess::Union::new(max_keys, false, false)?.threshold(sigma, shown)))
}

/// Noise of counts by key: how many users a key needs, about, the threshold, and the variance or scale of a key's whole part.
#[pyfunction]
#[pyo3(signature = (max_keys, *, replace, laplace, epsilon, delta, share, common, probability))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn propose_histogram(
    py: Python<'_>,
    max_keys: u64,
    replace: bool,
    laplace: bool,
    epsilon: f64,
    delta: f64,
    share: f64,
    common: f64,
    probability: f64,
) -> PyResult<Vec<(f64, u64, f64)>> {
    let asked = guess::Histogram { epsilon, delta, max_keys, replace, share, common, probability };
    run(py, None, |control| asked.proposed(laplace, control))
}
