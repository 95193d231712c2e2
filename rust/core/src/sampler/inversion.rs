//! Geometric distributions on all integers, exactly, by inversion of a uniform number whose bits are revealed as needed.

use crate::{
    Error, Result,
    control::Control,
    exact::{Integer, Interval, Level, Natural, Rational, dyadic::Dyadic, exp::exp_interval, ln::ln},
    rng::Source,
};
use num_traits::{One, Signed, ToPrimitive, Zero};
use std::cmp::Ordering;

/// Bits of U that are looked at first: nearly always enough.
const FIRST_BITS: u64 = 64;
/// Bits of the enclosures of 1 / rate that are computed once.
const KEPT_BITS: i64 = 192;
/// Rates are at least 2^-52, so that a draw is below 2^63 except with probability e^-2^11 < 2^-2954.
const LEAST_RATE_BITS: u32 = 52;
/// Draws between two looks at the control.
const BLOCK: usize = 1 << 8;
/// e^-x is below the least positive float from here on.
const VANISHING: u32 = 1 << 10;

/// X >= 0 with P[X >= k] = e^(-rate k), for the rate ln(E) / divisor of a level E.
///
/// # Guarantee
/// X = floor(-ln(U) / rate) for a uniform U in (0, 1). Both ends of an enclosure of -ln(U) / rate, for the bits of U
/// drawn so far, have the same floor when it is returned; until then 128 more bits are drawn. No U but those of a set of
/// probability 0 needs infinitely many. A draw of 2^63 or more is returned as 2^63 - 1.
///
/// # Timing
/// Not constant time: larger draws and rarer ones take longer.
#[derive(Debug, Clone)]
struct Inversion {
    level: Level,
    divisor: Rational,
    /// Encloses 1 / rate.
    kept: Interval,
}

impl Inversion {
    fn new(level: Level, divisor: Rational, argument: &'static str) -> Result<Self> {
        let one = Rational::one();
        if !divisor.is_positive() || level.compare(&one, &one) != Ordering::Less {
            return Err(Error::invalid(argument, "must be positive"));
        }
        let mut distribution = Self { level, divisor, kept: Interval::integer(1) };
        distribution.kept = distribution.inverse_rate(KEPT_BITS);
        let largest = Dyadic { mantissa: Integer::one(), exponent: i64::from(LEAST_RATE_BITS) };
        if distribution.kept.upper.compare(&largest) == Ordering::Greater {
            let message = format!(
                "the noise must have a scale of at most 2^{LEAST_RATE_BITS} (below, for an irrational one)"
            );
            return Err(Error::invalid(argument, message));
        }
        Ok(distribution)
    }

    /// Encloses the rate.
    fn rate(&self, bits: i64) -> Interval {
        let mut epsilon = Interval::rational(self.level.exponent(), bits + 8);
        if !self.level.ratio().is_one() {
            epsilon = epsilon.plus(&ln(self.level.ratio(), bits + 8), bits + 8);
        }
        epsilon.times(&Interval::rational(&self.divisor, bits + 8).reciprocal(bits + 8), bits + 8)
    }

    fn inverse_rate(&self, bits: i64) -> Interval {
        self.rate(bits + 8).reciprocal(bits + 8)
    }

    /// floor(-ln(U) / rate) for U of which these are the first bits, and more of them from the source.
    fn value(&self, first: u128, width: u64, source: &mut Source) -> Result<u64> {
        if let Some(value) = decided(&Natural::from(first >> (width - FIRST_BITS)), FIRST_BITS, &self.kept) {
            return Ok(value);
        }
        let (mut drawn, mut width) = (Natural::from(first), width);
        loop {
            let precision = width.cast_signed();
            let value = if precision <= KEPT_BITS {
                decided(&drawn, width, &self.kept)
            } else {
                decided(&drawn, width, &self.inverse_rate(precision))
            };
            if let Some(value) = value {
                return Ok(value);
            }
            drawn = (drawn << 128_u32) + source.bits()?;
            width += 128;
        }
    }

    /// Encloses e^(-rate k); `None` when it is below the least positive float.
    fn survival(&self, k: &Natural, bits: i64) -> Option<Interval> {
        // Relative to e^-x, an error in x is absolute.
        let precision = bits + i64::from(VANISHING.ilog2()) + 8;
        let exponent =
            self.rate(precision).times(&Interval::integer(Integer::from(k.clone())), precision).negated();
        let vanishing = Dyadic::integer(-Integer::from(VANISHING));
        if exponent.upper.compare(&vanishing) == Ordering::Less {
            return None;
        }
        Some(exp_interval(&exponent, bits))
    }
}

/// floor(-ln(U) `scale`), at most 2^63 - 1, when it is the same for all U in [drawn, drawn + 1] / 2^width.
fn decided(drawn: &Natural, width: u64, scale: &Interval) -> Option<u64> {
    if drawn.is_zero() {
        return None;
    }
    let precision = width.cast_signed() + 16;
    let logarithm = ln(&Rational::new_raw(Integer::from(drawn.clone()), Integer::one() << width), precision);
    // ln(drawn + 1) - ln(drawn) < 1 / drawn <= 2^-(bits of drawn - 1)
    let step = Dyadic { mantissa: Integer::one(), exponent: 1 - drawn.bits().cast_signed() };
    let minus_logarithm = Interval { lower: logarithm.lower, upper: logarithm.upper.plus(&step) }.negated();
    let quotient = minus_logarithm.times(scale, precision);
    let (lower, upper) = (floor(&quotient.lower), floor(&quotient.upper));
    (lower == upper).then_some(lower)
}

/// floor(max(x, 0)), at most 2^63 - 1.
fn floor(x: &Dyadic) -> u64 {
    if x.sign() != Ordering::Greater {
        return 0;
    }
    let magnitude = x.mantissa.magnitude();
    let integer = if x.exponent >= 0 {
        magnitude << x.exponent.unsigned_abs()
    } else {
        magnitude >> x.exponent.unsigned_abs()
    };
    integer.to_u64().unwrap_or(u64::MAX).min(i64::MAX.unsigned_abs())
}

/// Fills a slice one draw after the other.
fn fill(draws: &mut [i64], control: &Control, mut draw: impl FnMut() -> Result<i64>) -> Result<()> {
    for block in draws.chunks_mut(BLOCK) {
        control.advance(block.len())?;
        for place in block {
            *place = draw()?;
        }
    }
    Ok(())
}

/// The number of failures before the first success: P[X = k] = (1 - p)^k p, exactly, for k = 0, 1, ....
///
/// # Timing
/// Not constant time.
#[derive(Debug, Clone)]
pub struct Geometric {
    /// `None` for p = 1.
    distribution: Option<Inversion>,
}

impl Geometric {
    /// The distribution of a success probability p.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless about 2^-52 <= p <= 1.
    pub fn new(p: &Rational) -> Result<Self> {
        let one = Rational::one();
        if !p.is_positive() || p > &one {
            return Err(Error::invalid("p", "must be in (0, 1], 0 excluded"));
        }
        if p == &one {
            return Ok(Self { distribution: None });
        }
        let distribution = Inversion::new(Level::rational((&one - p).recip()), one, "p")
            .map_err(|_| Error::invalid("p", "must be at least 2^-52, so that draws fit into 64 bits"))?;
        Ok(Self { distribution: Some(distribution) })
    }

    /// One draw, at most 2^63 - 1; a larger one has probability below 2^-2954.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn draw(&self, source: &mut Source) -> Result<i64> {
        match &self.distribution {
            None => Ok(0),
            Some(distribution) => Ok(distribution.value(source.bits()?, 128, source)?.cast_signed()),
        }
    }

    /// Independent draws into a slice, the same as one by one.
    ///
    /// # Errors
    /// As [`Source::fill`]; [`Error::Canceled`].
    pub fn draw_many(&self, source: &mut Source, draws: &mut [i64], control: &Control) -> Result<()> {
        fill(draws, control, || self.draw(source))
    }
}

/// P[X = x] proportional to e^(-rate |x|) on all integers, exactly: the discrete Laplace distribution of scale 1 / rate.
///
/// # Guarantee
/// A sign and a [`Geometric`] magnitude, both drawn again for -0: x and -x have the probability (1 - q) q^|x| / 2 before
/// that, for q = e^-rate, and 0 has (1 - q) / 2 once its second form is left out.
///
/// # Timing
/// Not constant time.
#[derive(Debug, Clone)]
pub struct TwoSidedGeometric {
    distribution: Inversion,
}

impl TwoSidedGeometric {
    /// The distribution with the rate ln(E) / divisor; errors name `argument`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless the divisor is positive, E > 1 and the rate at least 2^-52.
    pub fn new(level: Level, divisor: Rational, argument: &'static str) -> Result<Self> {
        Ok(Self { distribution: Inversion::new(level, divisor, argument)? })
    }

    /// One draw, of absolute value at most 2^63 - 1; a larger one has probability below 2^-2953.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn draw(&self, source: &mut Source) -> Result<i64> {
        loop {
            let bits = source.bits()?;
            let magnitude = self.distribution.value(bits >> 1, 127, source)?.cast_signed();
            match (bits & 1, magnitude) {
                (0, magnitude) => return Ok(magnitude),
                (_, 0) => {}
                (_, magnitude) => return Ok(-magnitude),
            }
        }
    }

    /// Independent draws into a slice, the same as one by one.
    ///
    /// # Errors
    /// As [`Source::fill`]; [`Error::Canceled`].
    pub fn draw_many(&self, source: &mut Source, draws: &mut [i64], control: &Control) -> Result<()> {
        fill(draws, control, || self.draw(source))
    }

    /// Floats at or below and at or above P[X = x] = (1 - q) / (1 + q) q^|x|, for |x| = `distance`.
    pub fn probability(&self, distance: &Natural) -> (f64, f64) {
        let bits = 128 + i64::from(LEAST_RATE_BITS); // 1 - q loses up to 52 of them
        let Some(power) = self.distribution.survival(distance, bits) else { return (0.0, f64::from_bits(1)) };
        let one = Interval::integer(1);
        let q = self.distribution.survival(&Natural::one(), bits).unwrap_or_else(|| Interval {
            lower: Dyadic::integer(Integer::ZERO),
            upper: Dyadic { mantissa: Integer::one(), exponent: -i64::from(VANISHING) },
        });
        let zero = one.minus(&q, bits).times(&one.plus(&q, bits).reciprocal(bits), bits);
        zero.times(&power, bits).to_f64_bounds()
    }
}
