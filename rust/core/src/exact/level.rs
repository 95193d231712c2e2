//! Privacy levels: the multiplier E = e^epsilon, exactly.

use super::{
    Integer, Interval, Natural, Rational,
    dyadic::Dyadic,
    exp::exp,
    exp128::Power,
    ln::ln,
    rounding::{Direction, rational_from_f64, rational_to_f64},
};
use num_traits::{One, Signed, Zero};
use std::{cmp::Ordering, sync::OnceLock};

/// The multiplier `E = ratio * e^exponent`, with a positive rational ratio and a rational exponent >= 0.
///
/// A float or rational epsilon has ratio 1; epsilon = ln(a/b) has ratio a/b and exponent 0; scaling a level (for a
/// pmf known up to a relative error) changes the ratio.
///
/// # Guarantee
/// Every comparison with E is decided. For exponent 0 it is rational arithmetic. Otherwise e^exponent is
/// transcendental (Lindemann), so a rational never equals it and enclosures of growing precision separate the two.
#[derive(Debug)]
pub struct Level {
    ratio: Rational,
    exponent: Rational,
    power: OnceLock<Option<Power>>,
    short: OnceLock<Interval>,
    machine: OnceLock<Option<MachineLevel>>,
}

/// 2^400: the float64 kernels take levels from the inverse of this up to it.
pub const MACHINE_LIMIT: f64 = f64::from_bits((1023 + 400) << 52);

/// E as an unevaluated sum of two floats, for the float64 kernels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineLevel {
    /// The float nearest to E (up to one unit in the last place).
    pub high: f64,
    /// What is missing: |E - high - low| <= 2^-104 E.
    pub low: f64,
    /// True when E is exactly `high` and a power of two, so that products with it are exact.
    pub exact_products: bool,
}

impl MachineLevel {
    /// A float E itself.
    pub fn from_float(e: f64) -> Self {
        Self { high: e, low: 0.0, exact_products: is_power_of_two(e) }
    }
}

/// True for a normal power of two.
fn is_power_of_two(x: f64) -> bool {
    x.is_normal() && x.to_bits() & ((1 << 52) - 1) == 0
}

/// Enclosures up to this many bits are computed once.
const SHORT_BITS: i64 = 192;

impl Level {
    /// The level `ratio * e^exponent`; `ratio` must be positive and `exponent` non-negative.
    pub fn new(ratio: Rational, exponent: Rational) -> Self {
        debug_assert!(ratio.is_positive() && !exponent.is_negative());
        Self { ratio, exponent, power: OnceLock::new(), short: OnceLock::new(), machine: OnceLock::new() }
    }

    /// A rational level: epsilon = ln(ratio).
    pub fn rational(ratio: Rational) -> Self {
        Self::new(ratio, Rational::zero())
    }

    /// The level of a finite epsilon >= 0, taken as the dyadic number it is.
    pub fn from_epsilon(epsilon: f64) -> Self {
        let level = Self::new(Rational::one(), rational_from_f64(epsilon));
        Self { power: Power::of_float(epsilon).into(), ..level }
    }

    /// A level with a number between 1 and E^(1 / degree), for E >= 1 and degree >= 1: equal to it but for rounding.
    ///
    /// # Guarantee
    /// Never above E^(1 / degree). Exact for degree 1 and for ratio 1; otherwise ln(ratio) is replaced by a rational
    /// number below it, by less than a part in 2^200.
    #[must_use]
    pub fn root_below(&self, degree: &Natural) -> Self {
        if degree.is_one() {
            return self.clone();
        }
        let of_ratio =
            if self.ratio.is_one() { Rational::zero() } else { ln(&self.ratio, 204).lower.to_rational() };
        let exponent = (of_ratio + &self.exponent) / Rational::from_integer(Integer::from(degree.clone()));
        Self::new(Rational::one(), exponent.max(Rational::zero()))
    }

    /// E / e^exponent.
    pub fn ratio(&self) -> &Rational {
        &self.ratio
    }

    /// The exponent of e.
    pub fn exponent(&self) -> &Rational {
        &self.exponent
    }

    /// True when E is a rational number.
    pub fn is_rational(&self) -> bool {
        self.exponent.is_zero()
    }

    /// Encloses E with a relative width of about 2^-bits. The exponent must be below 2^60.
    pub fn enclosure(&self, bits: i64) -> Interval {
        let compute = |bits: i64| {
            let ratio = Interval::rational(&self.ratio, bits + 4);
            if self.is_rational() { ratio } else { exp(&self.exponent, bits + 4).times(&ratio, bits + 4) }
        };
        if bits <= SHORT_BITS {
            self.short.get_or_init(|| compute(SHORT_BITS)).clone()
        } else {
            compute(bits)
        }
    }

    /// e^exponent to 123 bits, in a fraction of the time that an enclosure takes; `None` for exponents from 2^10 on.
    fn power(&self) -> Option<Power> {
        *self.power.get_or_init(|| Power::of_rational(&self.exponent))
    }

    /// The parts of E = e^exponent for the float64 kernels, where 128 bits settle them.
    ///
    /// # Guarantee
    /// What [`Level::long_machine`] finds as well, for exponents from 2^-53 on: its number, the lower end of an enclosure
    /// of 192 bits, is below E by less than the guarantee of [`Power::two_floats`] allows for.
    fn short_machine(&self) -> Option<MachineLevel> {
        if !self.ratio.is_one() || self.is_rational() {
            return None;
        }
        let x = &self.exponent;
        let (high, low) = if x.denom().bits() >= x.numer().bits() + 54 {
            // x < 2^-53 and x < e^x - 1 < x + x^2 (1 + x) / 2: a float x is the one nearest to e^x - 1, since what is added
            // is below half its last place. Others are off by at most 2^-106 more, for their rounding.
            (1.0, rational_to_f64(x, Direction::Nearest))
        } else {
            self.power()?.two_floats()?
        };
        Some(MachineLevel { high, low, exact_products: false })
    }

    /// True when E is certainly at least 2^399 and [`Level::machine`] is `None` for it.
    pub fn is_beyond_machine(&self) -> bool {
        self.ratio.is_one() && self.exponent > Rational::from_integer(Integer::from(277)) // e^277 > 2^399.6
    }

    /// E for the float64 kernels, or `None` when it is beyond 2^400 or below 2^-400.
    pub fn machine(&self) -> Option<MachineLevel> {
        *self.machine.get_or_init(|| self.short_machine().or_else(|| self.long_machine()))
    }

    /// [`Level::machine`] from a long enclosure.
    fn long_machine(&self) -> Option<MachineLevel> {
        if self.exponent > Rational::from_integer(Integer::from(277)) {
            return None;
        }
        let enclosure = self.enclosure(SHORT_BITS);
        let high = enclosure.lower.to_f64(Direction::Nearest);
        if !(1.0 / MACHINE_LIMIT..=MACHINE_LIMIT).contains(&high) {
            return None;
        }
        // high + low is off by the enclosure's width and by half a unit of low: below 2^-104 E together.
        let rest = enclosure.lower.to_rational() - rational_from_f64(high);
        let low = rational_to_f64(&rest, Direction::Nearest);
        let exact_products =
            is_power_of_two(high) && self.is_rational() && self.ratio == rational_from_f64(high);
        Some(MachineLevel { high, low, exact_products })
    }

    /// Compares `p` with `E q`, for rationals p, q >= 0.
    pub fn compare(&self, p: &Rational, q: &Rational) -> Ordering {
        if q.is_zero() || p.is_zero() {
            return p.cmp(q); // E q > 0 = p, or E q = 0
        }
        if self.is_rational() {
            // Cross-multiplied: no greatest common divisors.
            let left = p.numer() * q.denom() * self.ratio.denom();
            let right = q.numer() * p.denom() * self.ratio.numer();
            return left.cmp(&right);
        }
        if self.ratio.is_one() && p <= q {
            return Ordering::Less; // E > 1
        }
        // p / (q ratio) < 2^(bits of what can be above 1); e^exponent > 2^floor(exponent).
        let bits = p.numer().bits() + q.denom().bits() + self.ratio.denom().bits();
        if self.exponent.to_integer() > Integer::from(bits) {
            return Ordering::Less;
        }
        if let Some(decided) = self.quick_compare(p, q) {
            return decided;
        }
        let quotient = p / (q * &self.ratio);
        // 1 + x < e^x < 1 + x + x^2 for 0 < x <= 1: this settles near ties at tiny levels without long enclosures.
        let x = &self.exponent;
        if x <= &Rational::one() {
            let lower = Rational::one() + x;
            if quotient <= lower {
                return Ordering::Less;
            }
            if quotient >= lower + x * x {
                return Ordering::Greater;
            }
        }
        let mut precision = 96;
        loop {
            let power =
                if self.ratio.is_one() { self.enclosure(precision) } else { exp(&self.exponent, precision) };
            let target = Interval::rational(&quotient, precision);
            if target.upper.compare(&power.lower) == Ordering::Less {
                return Ordering::Less;
            }
            if target.lower.compare(&power.upper) == Ordering::Greater {
                return Ordering::Greater;
            }
            precision *= 2;
        }
    }

    /// [`Level::compare`] by 128 bits of e^exponent, cross-multiplied; `None` where these do not decide.
    fn quick_compare(&self, p: &Rational, q: &Rational) -> Option<Ordering> {
        let power = self.power()?.interval();
        let left = Dyadic::integer(p.numer() * q.denom() * self.ratio.denom());
        let right = Dyadic::integer(q.numer() * p.denom() * self.ratio.numer());
        if left.compare(&right.times(&power.lower)) == Ordering::Less {
            return Some(Ordering::Less);
        }
        (left.compare(&right.times(&power.upper)) == Ordering::Greater).then_some(Ordering::Greater)
    }

    /// The sign of `a - E b` for rationals of any sign, as an ordering against zero.
    pub fn sign_of_difference(&self, a: &Rational, b: &Rational) -> Ordering {
        match (a.is_negative(), b.is_negative()) {
            (false, false) => self.compare(a, b),
            (true, true) => self.compare(&-a, &-b).reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }

    /// `a - E b` as a float in the given direction, for a, b >= 0.
    ///
    /// # Guarantee
    /// Correctly rounded. For b > 0 and irrational E the number is irrational, so that both ends of a narrow enough
    /// enclosure round alike.
    pub fn difference_to_f64(&self, a: &Rational, b: &Rational, direction: Direction) -> f64 {
        if b.is_zero() {
            return rational_to_f64(a, direction);
        }
        if self.is_rational() {
            return rational_to_f64(&(a - b * &self.ratio), direction);
        }
        let rounded = |e: &Interval, precision: i64| {
            let product = e.times(&Interval::rational(b, precision), precision);
            let value = Interval::rational(a, precision).minus(&product, precision);
            let lower = value.lower.to_f64(direction);
            (lower == value.upper.to_f64(direction)).then_some(lower)
        };
        if self.ratio.is_one()
            && let Some(power) = self.power()
            && let Some(settled) = rounded(&power.interval(), 128)
        {
            return settled;
        }
        let mut precision = SHORT_BITS;
        loop {
            if let Some(settled) = rounded(&self.enclosure(precision), precision) {
                return settled;
            }
            precision *= 2;
        }
    }
}

impl Clone for Level {
    fn clone(&self) -> Self {
        Self::new(self.ratio.clone(), self.exponent.clone())
    }
}
