//! Enclosures of e^x and ln x, and exact weights from logits.

use crate::{
    convert::{Items, LevelArgument, level},
    run::{run, run_short},
};
use num_bigint::BigInt;
use num_rational::BigRational;
use pyo3::{exceptions::PyValueError, prelude::*};
use userdp_core::{
    composition,
    exact::{exp::exp_to_integer, ln},
};

/// The most bits of an enclosure or a weight.
const MOST_BITS: u32 = 1 << 20;

/// Fractions (lower, upper) around e^epsilon, of relative width about 2^-bits.
#[pyfunction]
pub(crate) fn exp_bounds(epsilon: LevelArgument<'_>, bits: i64) -> PyResult<(BigRational, BigRational)> {
    let level = level(&epsilon);
    if level.exponent().to_integer() >= BigInt::from(MOST_BITS) || !(1..=i64::from(MOST_BITS)).contains(&bits)
    {
        return Err(PyValueError::new_err(
            "epsilon: e^epsilon is too large to be written out (epsilon < 2^20)",
        ));
    }
    run_short(|| {
        let enclosure = level.enclosure(bits);
        Ok((enclosure.lower.to_rational(), enclosure.upper.to_rational()))
    })
}

/// At or above the delta of continuous Gaussian noise at a level, for the Fraction mu^2.
#[pyfunction]
pub(crate) fn gaussian_delta_above(mu2: BigRational, epsilon: LevelArgument<'_>) -> PyResult<BigRational> {
    let level = level(&epsilon);
    run_short(|| composition::gaussian_delta_above(&mu2, &level))
}

/// At or above Phi(-x), for the Fraction x^2.
#[pyfunction]
pub(crate) fn normal_tail_above(square: BigRational) -> PyResult<BigRational> {
    run_short(|| composition::normal_tail_above(&square))
}

/// Floats at or below and at or above ln x for a positive Fraction.
#[pyfunction]
pub(crate) fn ln_bounds(x: BigRational) -> PyResult<(f64, f64)> {
    if x <= BigRational::from_integer(BigInt::ZERO) {
        return Err(PyValueError::new_err("x must be positive"));
    }
    run_short(|| Ok(ln::ln_bounds(&x)))
}

/// The integers nearest to e^x 2^bits, for Fractions x <= 0.
#[pyfunction]
pub(crate) fn exp_weights(py: Python<'_>, exponents: Items<BigRational>, bits: u32) -> PyResult<Vec<BigInt>> {
    if bits > MOST_BITS {
        return Err(PyValueError::new_err(format!("bits must be at most {MOST_BITS}; got {bits}")));
    }
    if exponents.iter().any(|exponent| exponent > &BigRational::from_integer(BigInt::ZERO)) {
        return Err(PyValueError::new_err("exponents must be at most 0"));
    }
    run(py, None, |control| {
        exponents
            .iter()
            .map(|exponent| {
                control.advance(1)?;
                Ok(exp_to_integer(exponent, bits))
            })
            .collect()
    })
}
