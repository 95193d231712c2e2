//! Gaussian noise on a grid: values of Phi and of logarithms in fixed point, at many points, with proved errors.
//!
//! `docs/proofs/exact_composition.md`, section 6.

use super::{
    Options,
    leaves::{chords, square_root, working_bits},
    levels::{Levels, Multiplier},
    masses::{Masses, bits_of},
};
use crate::{
    Result,
    control::Control,
    exact::{Integer, Interval, Rational, dyadic::Dyadic, exp::exp, ln::ln},
};
use num_bigint::BigInt;
use num_integer::Integer as _;
use num_traits::{One, Signed, ToPrimitive, Zero};
use rayon::prelude::*;

/// Centers of Taylor polynomials are multiples of 2^-SPACING; points are at most half of that away.
const SPACING: usize = 4;
/// Bits of a table's index of logarithms.
const LOGARITHMS: usize = 7;

/// A number x as an integer, floor(x 2^width).
fn fixed(x: &Dyadic, width: usize) -> BigInt {
    let shift = x.exponent + width as i64;
    if shift >= 0 { &x.mantissa << shift as usize } else { &x.mantissa >> shift.unsigned_abs() as usize }
}

fn fixed_rational(x: &Rational, width: usize) -> BigInt {
    (x.numer() << width).div_floor(x.denom())
}

/// Phi at fixed-point numbers.
///
/// # Numerics
/// Around a center c, phi(c + d) = sum of `b_n` d^n with (n + 1) `b_(n+1)` = -c `b_n` - `b_(n-1)`, and Phi is the integral. All
/// products are floors in units of 2^-width. A floor of `b_n` adds at most (|c| + 1)^k / k! units to `b_(n+k)`, so to Phi at most
/// e^((|c| + 1) / 32) < e^4 units for |c| < 96; there are at most three floors for each n, two in Horner's rule, and one for
/// each of the first two coefficients: below 2^17 units for fewer than 400 terms. What is left out is at most |d|^(N+1) / sqrt(N!)
/// by Cramer's bound `|He_n(x)| e^(-x^2/4) < 1.09 sqrt(n!)`, and a unit at most by the choice of N.
struct Normal {
    width: usize,
    /// The index of the first center.
    first: i64,
    /// Coefficients of Phi around each center.
    centers: Vec<Vec<BigInt>>,
}

impl Normal {
    /// For |x| up to a reach below 90; beyond it Phi is 0 or 1.
    fn new(width: usize, reach: f64) -> Self {
        let bits = width as i64 + 8;
        let last = (reach.min(90.0) * f64::from(1 << SPACING)).ceil() as i64 + 1;
        // |d| <= 2^-(SPACING + 1): |d|^(N+1) / sqrt(N!) < 2^-width.
        let mut terms = 1_usize;
        let mut smaller = 0.0;
        while smaller < width as f64 + 2.0 {
            terms += 1;
            smaller = (terms + 1) as f64 * (SPACING + 1) as f64
                + (1..=terms).map(|n| 0.5 * (n as f64).log2()).sum::<f64>();
        }
        let scale = square_root(&pi(bits).times(&Interval::integer(2), bits), bits).reciprocal(bits);
        let center = |index: i64| {
            let c = Rational::new(Integer::from(index), Integer::from(1 << SPACING));
            let square = &c * &c;
            let density = exp(&-(&square / Integer::from(2)), bits).times(&scale, bits);
            let mut b = fixed(&density.lower, width);
            let mut before = BigInt::zero();
            let mut coefficients = vec![fixed(&distribution(&c, &square, &density, bits).lower, width)];
            for n in 0..terms as u32 {
                coefficients.push(&b / (n + 1));
                let next = (-((&b * index) >> SPACING) - &before) / (n + 1);
                before = b;
                b = next;
            }
            coefficients
        };
        Self { width, first: -last, centers: (-last..=last).into_par_iter().map(center).collect() }
    }

    fn at(&self, x: &BigInt) -> BigInt {
        let places = self.width - SPACING;
        // The nearest center.
        let index = ((x >> (places - 1)) + 1_u8) >> 1_usize;
        let index = index.to_i64().unwrap_or(if x.is_negative() { i64::MIN / 2 } else { i64::MAX / 2 });
        let place = index - self.first;
        let Some(coefficients) = usize::try_from(place).ok().and_then(|place| self.centers.get(place)) else {
            return if place < 0 { BigInt::zero() } else { BigInt::one() << self.width };
        };
        let d = x - (BigInt::from(index) << places);
        let mut sum = BigInt::zero();
        for coefficient in coefficients.iter().rev() {
            sum = ((sum * &d) >> self.width) + coefficient;
        }
        sum
    }
}

/// Phi at c, enclosed: 1/2 + phi(c) c (1 + c^2 / 3 + c^4 / 15 + ...).
///
/// # Numerics
/// Terms are floors in units of 2^-w: a floor costs less than a unit there and less than e^(c^2 / 2) units in all that follows,
/// which phi(c) |c| makes less than 0.4 |c| units.
fn distribution(c: &Rational, square: &Rational, density: &Interval, bits: i64) -> Interval {
    let width = (bits + 32) as usize;
    let x = fixed_rational(square, width);
    let mut term = BigInt::one() << width;
    let mut sum = term.clone();
    let mut n = 0_u32;
    while !term.is_zero() {
        n += 1;
        term = ((term * &x) >> width) / (2 * n + 1);
        sum += &term;
    }
    let sum = Dyadic { mantissa: sum, exponent: -(width as i64) };
    let magnitude = Interval::rational(&c.abs(), bits);
    let value = density.times(&magnitude, bits).times(&Interval { lower: sum.clone(), upper: sum }, bits);
    let slack = Rational::from_integer(Integer::from(n + 2)) * (c.abs() + Rational::one());
    let slack = Dyadic { mantissa: slack.ceil().to_integer(), exponent: -(width as i64) };
    let wider = Interval { upper: value.upper.plus(&slack).rounded(bits, true), lower: value.lower };
    let half = Interval::rational(&Rational::new(Integer::one(), Integer::from(2)), bits);
    if c.is_negative() { half.minus(&wider, bits) } else { half.plus(&wider, bits) }
}

/// Encloses pi: 16 atan(1/5) - 4 atan(1/239).
fn pi(bits: i64) -> Interval {
    let width = bits + 16;
    let one = Integer::one() << usize::try_from(width).unwrap_or(0);
    // The terms alternate and fall: each floor is off by at most a unit.
    let atan = |x: u32| {
        let (mut power, mut sum, mut n) = (&one / x, Integer::zero(), 0_u32);
        while !power.is_zero() {
            let term = &power / (2 * n + 1);
            sum = if n % 2 == 0 { sum + term } else { sum - term };
            power /= x * x;
            n += 1;
        }
        (sum, Integer::from(3 * n + 3))
    };
    let ((a, a_off), (b, b_off)) = (atan(5), atan(239));
    let (middle, off) = (a * 16 - b * 4, a_off * 16 + b_off * 4);
    let end = |mantissa: Integer| Dyadic { mantissa, exponent: -width };
    Interval { lower: end(&middle - &off), upper: end(middle + off) }
}

/// Logarithms of fixed-point numbers.
///
/// # Numerics
/// y = 2^k m with 1 <= m < 2, and ln m = ln c + 2 atanh(z), z = (m - c) / (m + c), for the nearest c of a table: |z| < 2^-9, so
/// each term of the series is 2^-18 times the one before. Floors: three for each term, below 2^9 units for fewer than 90 terms,
/// doubled; and |k| < 2^10 times the error of ln 2, a unit. In all below 2^11 units, for the number that is given.
struct Logarithms {
    width: usize,
    two: BigInt,
    table: Vec<BigInt>,
}

impl Logarithms {
    fn new(width: usize) -> Self {
        let of = |x: Rational| fixed(&ln(&x, width as i64 + 16).lower, width);
        let table = (0..1_i64 << LOGARITHMS)
            .into_par_iter()
            .map(|index| {
                of(Rational::new(
                    Integer::from(2 * index + 1 + (2 << LOGARITHMS)),
                    Integer::from(2_i64 << LOGARITHMS),
                ))
            })
            .collect();
        Self { width, two: of(Rational::from_integer(Integer::from(2))), table }
    }

    /// ln y for y > 0.
    fn at(&self, y: &BigInt) -> BigInt {
        let k = y.bits() as i64 - 1 - self.width as i64;
        let m = if k >= 0 { y >> k as usize } else { y << k.unsigned_abs() as usize };
        let index = ((&m >> (self.width - LOGARITHMS)).to_usize().unwrap_or(0)).wrapping_sub(1 << LOGARITHMS);
        let index = index.min(self.table.len() - 1);
        let c = BigInt::from(2 * index + 1 + (2 << LOGARITHMS)) << (self.width - LOGARITHMS - 1);
        let z = ((&m - &c) << self.width).div_floor(&(&m + &c));
        let square = (&z * &z) >> self.width;
        let (mut power, mut sum, mut n) = (z, BigInt::zero(), 1_u32);
        // Floors of negative numbers end at -1 unit.
        while power.bits() > 1 {
            sum += &power / n;
            power = (power * &square) >> self.width;
            n += 2;
        }
        (sum << 1_usize) + &self.table[index] + &self.two * k
    }
}

/// How a Gaussian mechanism is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sampling {
    /// On all users.
    None,
    /// On each user with this probability: the pair of removing one.
    Removal(Rational),
    /// The same: the pair of adding one.
    Addition(Rational),
    /// On a sample of a fixed size that each user is in with this probability: the pair of replacing one.
    Replacement(Rational),
}

/// The pair N(0, 1), N(mu, 1), or its samples, by mu^2: g(E) = Phi(-e / mu + mu / 2) - E Phi(-e / mu - mu / 2) at E = e^e;
/// q g((E - 1 + q) / q) for removal where E > 1 - q, and 1 - E below; and 1 - E + E g(1 / E) of that for addition.
/// The curve of replacement is that of removal from E = 1 on, and that of addition below.
pub(super) fn gaussian(
    mu_squared: &Rational,
    sampling: &Sampling,
    levels: &Levels,
    options: &Options,
    control: &Control,
) -> Result<Masses> {
    let (_, step) = levels.offset_and_step();
    let mu = mu_squared.to_f64().unwrap_or(f64::NAN).sqrt();
    let cut = options.cut.bits().saturating_sub(1) as f64;
    // Phi(-z) <= e^(-z^2 / 2) / 2, which is at most the cut.
    let z = (2.0 * std::f64::consts::LN_2 * (bits_of(options.limbs) as f64 - cut)).sqrt() + 0.5;
    let (low, high) = match sampling {
        Sampling::None => (mu * mu / 2.0 - z * mu, mu * mu / 2.0 + z * mu),
        Sampling::Removal(rate) | Sampling::Addition(rate) | Sampling::Replacement(rate) => {
            let q = rate.to_f64().unwrap_or(f64::NAN);
            // P's and Q's outcomes beyond z deviations of either are below the cut together.
            // ln(1 - q + q e^e), without overflow.
            let loss = |x: f64| {
                let e = mu * x - mu * mu / 2.0;
                e.max(0.0) + ((1.0 - q) * (-e.max(0.0)).exp() + q * e.min(0.0).exp()).ln()
            };
            let (low, high) = (loss(-z), loss(mu + z));
            match sampling {
                Sampling::Addition(_) => (-high, -low),
                Sampling::Replacement(_) => (-high, high),
                _ => (low, high),
            }
        }
    };
    let ends = ((low / step).floor() as i64 - 1, (high / step).ceil() as i64 + 1);
    // E is a factor of what values are off.
    let more = (low.abs().max(high.abs()) * std::f64::consts::LOG2_E).ceil() as i64;
    let bits = working_bits(options.limbs, 2, 1.0 / step) + 8 + more;
    let width = (bits + 64) as usize;
    // Beyond it Phi(x + mu) < 2^-(bits + 10), and so is e^e Phi(x) < phi(x + mu) at x = -e / mu - mu / 2.
    let reach = (2.0 * std::f64::consts::LN_2 * (bits as f64 + 10.0)).sqrt() + mu + 1.0;
    let normal = Normal::new(width, reach);
    control.check()?;
    let one = BigInt::one() << width;
    let root = square_root(&Interval::rational(mu_squared, bits + 128), bits + 128);
    let half = fixed(&root.lower, width) >> 1_usize;
    let inverse = fixed(&root.reciprocal(bits + 128).lower, width);
    let resolution = &levels.step.exponent;
    // Phi(-e / mu + mu / 2) - E Phi(-e / mu - mu / 2), and how far it is off in units, for E in fixed point.
    let plain = |loss: &BigInt, level: &BigInt| {
        let x = (loss * &inverse) >> width;
        let (near, far) = (normal.at(&(&half - &x)), normal.at(&(-&half - &x)));
        near - ((level * far) >> width)
    };
    let logarithms = Logarithms::new(width);
    // q g((E - 1 + q) / q), for the pair of removal.
    let removal = |rate: &BigInt, level: &BigInt| {
        let above = level - &one + rate;
        if !above.is_positive() {
            return &one - level;
        }
        let inner = (above << width).div_floor(rate).max(BigInt::one());
        (plain(&logarithms.at(&inner), &inner) * rate) >> width
    };
    let rate = match sampling {
        Sampling::None => one.clone(),
        Sampling::Removal(rate) | Sampling::Addition(rate) | Sampling::Replacement(rate) => {
            fixed_rational(rate, width)
        }
    };
    // Errors in units of 2^-width, with width = bits + 64: 1 / mu <= 2^20 makes 2^21 of x, or 2^31 by the logarithm's 2^11, so
    // less of Phi; a unit of q moves q g((E - 1 + q) / q) by at most 1 + E / q <= 2^32 (1 + E); E is a factor. All are below
    // 2^55 (1 + E). The curve has slopes between -1 and 0, and E is known between two ends.
    let curve = |index: i64, level: &Interval| {
        let value = match sampling {
            Sampling::None => {
                let loss = fixed_rational(&(resolution * Integer::from(index)), width);
                plain(&loss, &fixed(&level.lower, width))
            }
            Sampling::Replacement(_) if index >= 0 => removal(&rate, &fixed(&level.lower, width)),
            Sampling::Removal(_) => removal(&rate, &fixed(&level.lower, width)),
            Sampling::Addition(_) | Sampling::Replacement(_) => {
                let level_here = fixed(&level.lower, width);
                let inverse = (BigInt::one() << (2 * width)).div_floor(&level_here);
                &one - &level_here + ((removal(&rate, &inverse) * &level_here) >> width)
            }
        };
        let end = |mantissa: BigInt| Dyadic { mantissa, exponent: -(width as i64) };
        let off = (BigInt::one() << 56_usize) + fixed(&level.upper, 56) + fixed(&level.upper, width)
            - fixed(&level.lower, width)
            + 1_u8;
        Interval { lower: end(&value - &off), upper: end(value + off) }
    };
    let moved = (&options.cut + 1_u8) * 2_u8;
    chords(curve, levels, ends, bits, &moved, options, control)
}

/// e^e of a release's largest loss, where it is finite: for addition on a sample, 1 / (1 - q).
pub(super) fn largest_loss(sampling: &Sampling) -> Option<Multiplier> {
    match sampling {
        Sampling::Addition(rate) if *rate < Rational::one() => {
            Some(Multiplier::rational((Rational::one() - rate).recip()))
        }
        _ => None,
    }
}
