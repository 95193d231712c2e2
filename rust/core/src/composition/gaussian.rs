//! Gaussian noise on a grid: values of Phi and of logarithms in fixed point, at many points, with proved errors.
//!
//! `docs/proofs/exact_composition.md`, section 6.

use super::{
    Options,
    fixed::{Fixed, floor_units, with_fixed},
    leaves::{bits_for, chords, square_root, terms},
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
const SPACING: u32 = 4;
/// Bits of a table's index of logarithms.
const LOGARITHMS: u32 = 7;

fn fixed_rational(x: &Rational, width: usize) -> BigInt {
    (x.numer() << width).div_floor(x.denom())
}

/// Phi at fixed-point numbers.
///
/// # Numerics
/// Around a center c, phi(c + d) = sum of `b_n` d^n with (n + 1) `b_(n+1)` = -c `b_n` - `b_(n-1)`, and Phi is the integral. The
/// recurrence says that y = sum of `b_n` d^n has y' = -(c + d) y; what a floor takes from `b_n`, e < 2 units, adds n e d^(n-1) on
/// the right, and so at most e |d|^n e^(|c d| + d^2 / 2) to y, with absolute values for coefficients: for |c| < 96 and |d| <= 1/32
/// less than 1.4 units to Phi for all n together. Quotients `b_n` / (n + 1) are floors, too, and Horner's rule has products that
/// are: 1.1 units. What is left out is at most |d|^(N+1) / sqrt(N!) by Cramer's bound `|He_n(x)| e^(-x^2/4) < 1.09 sqrt(n!)`, and a
/// unit at most by the choice of N; Phi(c) is off by 2, and by 1 beyond the reach. Together [`Normal::OFF`] units are enough.
struct Normal<const N: usize, const F: usize> {
    /// Coefficients of Phi around each center from 0 on, the highest first.
    coefficients: Vec<Fixed<N, F>>,
    /// For each center.
    terms: usize,
}

impl<const N: usize, const F: usize> Normal<N, F> {
    const OFF: u64 = 8;

    /// For |x| up to a reach below 90; beyond it Phi is 0 or 1.
    fn new(reach: f64) -> Self {
        let width = Fixed::<N, F>::WIDTH;
        let bits = width as i64 + 8;
        let last = (reach.min(90.0) * f64::from(1 << SPACING)).ceil() as i64 + 1;
        // |d| <= 2^-(SPACING + 1): |d|^(N+1) / sqrt(N!) < 2^-width.
        let mut terms = 1_usize;
        let mut smaller = 0.0;
        while smaller < width as f64 + 2.0 {
            terms += 1;
            smaller = (terms + 1) as f64 * f64::from(SPACING + 1)
                + (1..=terms).map(|n| 0.5 * (n as f64).log2()).sum::<f64>();
        }
        let scale = square_root(&pi(bits).times(&Interval::integer(2), bits), bits).reciprocal(bits);
        let center = |index: i64| {
            let c = Rational::new(Integer::from(index), Integer::from(1 << SPACING));
            let square = &c * &c;
            let density = exp(&-(&square / Integer::from(2)), bits).times(&scale, bits);
            let mut b = floor_units(&density.lower, width);
            let mut before = BigInt::zero();
            let at_center = floor_units(&distribution(&c, &square, &density, bits).lower, width);
            let mut coefficients = vec![Fixed::from_units(&at_center)];
            for n in 0..terms as u32 {
                coefficients.push(Fixed::from_units(&b.div_floor(&BigInt::from(n + 1))));
                let next = (-((&b * index) >> SPACING) - &before).div_floor(&BigInt::from(n + 1));
                before = b;
                b = next;
            }
            coefficients.reverse();
            coefficients
        };
        let centers: Vec<_> = (0..=last).into_par_iter().map(center).collect();
        Self { coefficients: centers.concat(), terms: terms + 1 }
    }

    fn at(&self, x: &Fixed<N, F>) -> Fixed<N, F> {
        if x.is_negative() {
            return Fixed::one().minus(&self.at(&x.negated()));
        }
        // The nearest center.
        let half_cell = Fixed::one().shifted(-i64::from(SPACING) - 1);
        let index = x.plus(&half_cell).floor_scaled(SPACING);
        let coefficients = index
            .and_then(|index| usize::try_from(index).ok())
            .and_then(|index| self.coefficients.get(index.checked_mul(self.terms)?..)?.get(..self.terms));
        let (Some(index), Some([highest, others @ ..])) = (index, coefficients) else {
            return Fixed::one();
        };
        let d = x.minus(&Fixed::one().times_short(index, SPACING));
        others.iter().fold(*highest, |sum, coefficient| sum.times(&d).plus(coefficient))
    }
}

/// Phi at c, enclosed: 1/2 + phi(c) c (1 + c^2 / 3 + c^4 / 15 + ...).
///
/// # Numerics
/// Terms are floors in units of 2^-w: a floor costs less than a unit there and less than e^(c^2 / 2) units in all that follows,
/// which phi(c) |c| makes less than 0.4 |c| units.
pub(super) fn distribution(c: &Rational, square: &Rational, density: &Interval, bits: i64) -> Interval {
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
    let slack = Dyadic { mantissa: (c.abs().to_integer() + 2) * (n + 2), exponent: -(width as i64) };
    let wider = Interval { upper: value.upper.plus(&slack).rounded(bits, true), lower: value.lower };
    let half = Interval::rational(&Rational::new(Integer::one(), Integer::from(2)), bits);
    if c.is_negative() { half.minus(&wider, bits) } else { half.plus(&wider, bits) }
}

/// Encloses pi: 16 atan(1/5) - 4 atan(1/239).
pub(super) fn pi(bits: i64) -> Interval {
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
/// y = 2^k m with 1 <= m < 2, and for the nearest c of a table and r within 2^-16 of 1 / c, m r = 1 + t with |t| < 2^-7:
/// ln y = k ln 2 - ln r + t - t^2 / 2 + ... . Floors take a unit from m, from m r and from each 1 / n; Horner's rule at most 4 units,
/// and what is left out of the series is less than a unit by the number of terms. ln r is a unit off, and k times ln 2 is at most
/// 64 N of them. In all less than [`Logarithms::OFF`] units, for the number that is given.
struct Logarithms<const N: usize, const F: usize> {
    two: Fixed<N, F>,
    /// r in units of 2^-16, and ln r, for each c.
    table: Vec<(u64, Fixed<N, F>)>,
    /// The signed 1 / n, the least first.
    inverses: Vec<Fixed<N, F>>,
}

impl<const N: usize, const F: usize> Logarithms<N, F> {
    const OFF: u64 = 64 * N as u64 + 16;

    fn new() -> Self {
        let width = Fixed::<N, F>::WIDTH;
        let of = |x: Rational| Fixed::from_units(&floor_units(&ln(&x, width as i64 + 16).lower, width));
        let table = (0..1_u64 << LOGARITHMS)
            .into_par_iter()
            .map(|index| {
                // 2^16 / c for c = 1 + (index + 1/2) / 2^LOGARITHMS.
                let short = (1_u64 << (17 + LOGARITHMS)) / (2 * index + 1 + (2 << LOGARITHMS));
                (short, of(Rational::new(Integer::from(short), Integer::from(1 << 16))))
            })
            .collect();
        // |t|^n < 2^-7n is below a unit for n > width / 7.
        let inverses = (1..=width as i64 / 7 + 1)
            .rev()
            .map(|n| {
                let sign = if n % 2 == 0 { -1 } else { 1 };
                Fixed::from_units(&(BigInt::from(sign) << width).div_floor(&BigInt::from(n)))
            })
            .collect();
        Self { two: of(Rational::from_integer(Integer::from(2))), table, inverses }
    }

    /// ln y for y > 0.
    fn at(&self, y: &Fixed<N, F>) -> Fixed<N, F> {
        let k = y.bits() - 1 - Fixed::<N, F>::WIDTH as i64;
        let m = y.shifted(-k);
        let index = m.floor_scaled(LOGARITHMS).unwrap_or(0).wrapping_sub(1 << LOGARITHMS) as usize;
        let (short, logarithm) = &self.table[index.min(self.table.len() - 1)];
        let t = m.times_short(*short, 16).minus(&Fixed::one());
        let sum =
            self.inverses.iter().fold(Fixed::ZERO, |sum, inverse| sum.times(&t).plus(inverse)).times(&t);
        let twos = self.two.times_short(k.unsigned_abs(), 0);
        let twos = if k < 0 { twos.negated() } else { twos };
        sum.plus(&twos).minus(logarithm)
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
    let ((low, high), rate) = match sampling {
        Sampling::None => ((mu * mu / 2.0 - z * mu, mu * mu / 2.0 + z * mu), 1.0),
        Sampling::Removal(rate) | Sampling::Addition(rate) | Sampling::Replacement(rate) => {
            let q = rate.to_f64().unwrap_or(f64::NAN);
            // P's and Q's outcomes beyond z deviations of either are below the cut together.
            // ln(1 - q + q e^e), without overflow.
            let loss = |x: f64| {
                let e = mu * x - mu * mu / 2.0;
                e.max(0.0) + ((1.0 - q) * (-e.max(0.0)).exp() + q * e.min(0.0).exp()).ln()
            };
            let (low, high) = (loss(-z), loss(mu + z));
            let ends = match sampling {
                Sampling::Addition(_) => (-high, -low),
                Sampling::Replacement(_) => (-high, high),
                _ => (low, high),
            };
            (ends, q)
        }
    };
    let ends = ((low / step).floor() as i64 - 1, (high / step).ceil() as i64 + 1);
    terms(ends.0, ends.1, options.max_terms)?;
    // Levels, and the arguments of the curve of all users, in bits.
    let largest = (low.abs().max(high.abs()) + 2.0 * step) * std::f64::consts::LOG2_E;
    let whole = (largest - rate.log2()).max(50.0) + 2.0;
    // The errors of `off` below, for less than 64 words.
    let off = largest + (1.0 / mu).log2().max(0.0) + 24.0;
    let fraction = bits_for(options.limbs, step, off);
    with_fixed!(fraction, whole, gaussian_in(mu_squared, sampling, levels, ends, largest, options, control))
}

/// Levels e^(ih) for many i: products of a far and a near power.
struct Powers<const N: usize, const F: usize> {
    first: i64,
    near: Vec<Fixed<N, F>>,
    far: Vec<Fixed<N, F>>,
}

impl<const N: usize, const F: usize> Powers<N, F> {
    /// For indices from `low` to `high`; the largest level has so many bits.
    fn new(levels: &Levels, step: f64, (low, high): (i64, i64), largest: f64) -> Self {
        let width = Fixed::<N, F>::WIDTH;
        let bits = width as i64 + largest.ceil() as i64 + 8;
        // Near powers are below e.
        let together = ((1.0 / step) as i64).clamp(1, 128);
        let of = |index: i64| Fixed::from_units(&floor_units(&levels.enclosure(index, bits).lower, width));
        let first = low.div_euclid(together);
        let near = (0..together).into_par_iter().map(of).collect();
        let far = (first..=high.div_euclid(together)).into_par_iter().map(|far| of(far * together)).collect();
        Self { first, near, far }
    }

    /// E at an index, at most 2 E + 9 units off: each factor is two units off at most, and their product one.
    fn at(&self, index: i64) -> Fixed<N, F> {
        let together = self.near.len() as i64;
        let (far, near) = (index.div_euclid(together) - self.first, index.rem_euclid(together));
        self.far[far as usize].times(&self.near[near as usize])
    }
}

fn gaussian_in<const N: usize, const F: usize>(
    mu_squared: &Rational,
    sampling: &Sampling,
    levels: &Levels,
    ends: (i64, i64),
    largest: f64,
    options: &Options,
    control: &Control,
) -> Result<Masses> {
    let width = Fixed::<N, F>::WIDTH;
    let (_, step) = levels.offset_and_step();
    let mu = mu_squared.to_f64().unwrap_or(f64::NAN).sqrt();
    // Beyond it Phi(x + mu) is less than a unit, and so is e^e Phi(x) < phi(x + mu) at x = -e / mu - mu / 2.
    let reach = (2.0 * std::f64::consts::LN_2 * (width as f64 + 2.0)).sqrt() + mu + 1.0;
    let normal = Normal::<N, F>::new(reach);
    control.check()?;
    let one = Fixed::<N, F>::one();
    let bits = width as i64 + 64;
    let root = square_root(&Interval::rational(mu_squared, bits), bits);
    let half = Fixed::<N, F>::from_units(&(floor_units(&root.lower, width) >> 1_usize));
    let inverse = Fixed::<N, F>::from_units(&floor_units(&root.reciprocal(bits).lower, width));
    // Phi(-e / mu + mu / 2) - E Phi(-e / mu - mu / 2).
    let plain = |loss: &Fixed<N, F>, level: &Fixed<N, F>| {
        let x = loss.times(&inverse);
        let (near, far) = (normal.at(&half.minus(&x)), normal.at(&half.plus(&x).negated()));
        near.minus(&level.times(&far))
    };
    let logarithms = Logarithms::<N, F>::new();
    let (rate, inverse_rate) = match sampling {
        Sampling::None => (one, one),
        Sampling::Removal(rate) | Sampling::Addition(rate) | Sampling::Replacement(rate) => {
            let of = |x: &Rational| Fixed::from_units(&fixed_rational(x, width));
            (of(rate), of(&rate.recip()))
        }
    };
    let unit = Fixed::units(1);
    // q g((E - 1 + q) / q), for the pair of removal.
    let removal = |level: &Fixed<N, F>| {
        let above = level.minus(&one).plus(&rate);
        if !above.is_positive() {
            return one.minus(level);
        }
        let inner = above.times(&inverse_rate).max(&unit);
        plain(&logarithms.at(&inner), &inner).times(&rate)
    };
    // All in units of 2^-width. `plain` has arguments that are off by |loss| + l / mu + 3 for a loss that is off by l, so it is by
    // a (1 + E) + 1, a = 0.4 of that and what Phi is off. q g((E - 1 + q) / q) has slopes between -1 and 0 in E, and at most 2
    // in q; (E - 1 + q) / q is off by less than 1 / q + E / q + 3, of which q counts: so `removal` is off by a (E + 2) + 5 E + 25
    // with what the level is off, and addition by a (2 E + 1) + 29 E + 25.
    let farthest = largest.max(f64::from(u32::try_from(64 * N).unwrap_or(u32::MAX)));
    let errors = 0.4 * (farthest + Logarithms::<N, F>::OFF as f64 / mu + 3.0) + Normal::<N, F>::OFF as f64;
    let errors = 2 * errors.ceil() as u64 + 32;
    let (low, high) = (ends.0 - 1, ends.1);
    let powers = match sampling {
        Sampling::Addition(_) | Sampling::Replacement(_) => {
            Powers::<N, F>::new(levels, step, (low.min(-high), high.max(-low)), largest)
        }
        _ => Powers::new(levels, step, (low, high), largest),
    };
    control.check()?;
    let resolution = &levels.step.exponent;
    let curve = |index: i64| {
        let level = powers.at(index);
        let value = match sampling {
            Sampling::None => {
                let loss = fixed_rational(&(resolution * Integer::from(index)), width);
                plain(&Fixed::from_units(&loss), &level)
            }
            Sampling::Replacement(_) if index >= 0 => removal(&level),
            Sampling::Removal(_) => removal(&level),
            Sampling::Addition(_) | Sampling::Replacement(_) => {
                one.minus(&level).plus(&removal(&powers.at(-index)).times(&level))
            }
        };
        // At least a (2 E + 4) + 32 (E + 1).
        let off = level.whole().times_short(errors, 0).plus(&Fixed::units(3 * errors));
        (value.minus(&off), value.plus(&off))
    };
    let moved = (&options.cut + 1_u8) * 2_u8;
    chords(curve, levels, ends, &moved, options, control)
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
