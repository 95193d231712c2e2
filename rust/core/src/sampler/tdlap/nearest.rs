//! What to ask for instead of noise that probabilities over 2^128 cannot hold.

use super::{KappaRule, build};
use crate::{
    Error, Result,
    control::Control,
    exact::{Integer, Level, Rational},
};
use num_traits::One;

/// The powers of two that are tried as epsilon. Much smaller ones need long tables, larger ones fall too fast.
const EXPONENTS: std::ops::RangeInclusive<i32> = -10..=6;

/// The refusal of parameters, naming the least power of two as delta and the nearest one as epsilon that work.
pub(super) fn refusal(level: &Level, delta: &Rational, rule: KappaRule, control: &Control) -> Result<Error> {
    let works = |level: &Level, delta: &Rational| match build(level, delta, rule, control) {
        Err(Error::Canceled) => Err(Error::Canceled),
        outcome => Ok(outcome.is_ok_and(|table| table.is_some())),
    };
    let mut options = Vec::new();
    if let Some(exponent) = largest_exponent(delta, |delta| works(level, delta))? {
        options
            .push(format!("delta >= 2^-{exponent} (about {:.2e}) with this epsilon", 2_f64.powi(-exponent)));
    }
    if let Some(exponent) = nearest_exponent(level, |level| works(level, delta))? {
        options.push(format!("epsilon = 2^{exponent} (about {:.2e}) with this delta", 2_f64.powi(exponent)));
    }
    let advice = match options.as_slice() {
        [] => "choose a larger delta, or an epsilon nearer to 1".to_owned(),
        options => format!("what works is {}", options.join(", or ")),
    };
    let message = format!("probabilities over 2^128 cannot hold this noise; {advice}");
    Ok(Error::invalid("epsilon, delta", message))
}

/// The largest j for which 2^-j >= delta works, if any does.
fn largest_exponent(delta: &Rational, works: impl Fn(&Rational) -> Result<bool>) -> Result<Option<i32>> {
    let delta_works = |exponent: i32| works(&Rational::new(Integer::one(), Integer::one() << exponent));
    let asked = Integer::one().max(delta.recip().floor().to_integer()).bits() - 1;
    let (mut low, mut high) = (1, i32::try_from(asked).unwrap_or(i32::MAX).saturating_add(1));
    if high <= low || !delta_works(low)? {
        return Ok(None);
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if delta_works(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(Some(low))
}

/// The i nearest to log2 of epsilon for which 2^i works, if any does.
fn nearest_exponent(level: &Level, works: impl Fn(&Level) -> Result<bool>) -> Result<Option<i32>> {
    let (log, one) = (super::epsilon_to_f64(level).log2(), Rational::one());
    let mut exponents: Vec<i32> = EXPONENTS.collect();
    exponents.sort_by(|a, b| (f64::from(*a) - log).abs().total_cmp(&(f64::from(*b) - log).abs()));
    for exponent in exponents {
        let power = Integer::one() << exponent.unsigned_abs();
        let epsilon =
            if exponent < 0 { Rational::new(Integer::one(), power) } else { Rational::from_integer(power) };
        if works(&Level::new(one.clone(), epsilon))? {
            return Ok(Some(exponent));
        }
    }
    Ok(None)
}
