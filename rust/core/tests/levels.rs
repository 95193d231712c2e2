//! Levels by 128 bits of e^epsilon against long enclosures: the same parts and comparisons.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::One;
use std::cmp::Ordering;
use userdp_core::exact::{
    Interval, Level,
    dyadic::Dyadic,
    exp::exp,
    exp128::Power,
    rounding::{Direction, rational_from_f64},
};

/// Epsilons of the largest test: a minute when optimized, a second in the ordinary build of tests.
const EPSILONS: u64 = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };

/// Cases of the tests in rational arithmetic.
const CASES: u64 = if cfg!(debug_assertions) { 1_000 } else { 40_000 };

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// In [0, 1).
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 * f64::EPSILON / 2.0
    }

    /// A float at most three places from another one.
    fn beside(&mut self, x: f64) -> f64 {
        f64::from_bits((x.to_bits() + self.below(7)).saturating_sub(3))
    }

    /// 2 to a uniform power.
    fn power(&mut self, least: f64, most: f64) -> f64 {
        (least + (most - least) * self.uniform()).exp2()
    }

    fn epsilon(&mut self, case: u64) -> f64 {
        const MARKS: [f64; 14] = [
            0.0,
            1.110_223_024_625_156_5e-16, // 2^-53
            9.094_947_017_729_282e-13,   // 2^-40
            1.0,
            276.0,
            276.574,
            277.0,
            277.258,
            709.0,
            745.0,
            1024.0,
            1e4,
            1e300,
            f64::MAX,
        ];
        match case % 10 {
            0 => 3.0 * self.uniform(),
            1 => self.power(-56.0, 10.0),
            2 => 277.3 * self.uniform(),
            3 => {
                let multiple = self.below(1500) as f64 * std::f64::consts::LN_2;
                self.beside(multiple)
            }
            4 => {
                let (a, b) = (1 + self.below(50), 1 + self.below(50));
                self.beside((a.max(b) as f64 / a.min(b) as f64).ln())
            }
            // e^epsilon near a float or near the midpoint of two.
            5 => (1 + self.below(1 << (1 + case % 30))) as f64 * f64::EPSILON / 2.0,
            6 => self.below(1 << 12) as f64 * (-(self.below(60) as f64)).exp2(),
            7 => self.below(20_000) as f64 / 1000.0,
            8 => f64::from_bits(self.next() % 1.0_f64.to_bits()), // all exponents alike, subnormal ones too
            _ => {
                let mark = MARKS[usize::try_from(self.below(14)).unwrap_or(0)];
                if mark == f64::MAX { mark } else { self.beside(mark) }
            }
        }
    }
}

fn dyadic(x: f64) -> Dyadic {
    let x = rational_from_f64(x);
    Dyadic { mantissa: x.numer().clone(), exponent: 1 - x.denom().bits().cast_signed() }
}

/// The nearest float to the lower end, and the nearest to what is missing.
fn parts(enclosure: &Interval) -> (f64, f64) {
    let high = enclosure.lower.to_f64(Direction::Nearest);
    (high, enclosure.lower.plus(&dyadic(high).negated()).to_f64(Direction::Nearest))
}

#[test]
fn short_levels_are_those_of_long_enclosures() {
    let mut random = Random(1);
    let mut undecided = 0;
    for case in 0..EPSILONS {
        let epsilon = random.epsilon(case);
        let x = rational_from_f64(epsilon);
        let machine = Level::from_epsilon(epsilon).machine();
        let power = Power::of_float(epsilon);
        assert_eq!(power.is_some(), epsilon < 1024.0, "{epsilon:e}");
        if epsilon > 277.0 {
            assert_eq!(machine, None, "{epsilon:e}");
        }
        let Some(power) = power else { continue };
        assert_eq!(Power::of_rational(&x), Some(power), "{epsilon:e}");
        // A tiny epsilon needs all places of 1 + epsilon.
        // The long way to a level takes 192 bits; tiny epsilons need all places of 1 + epsilon.
        let bits = if epsilon < 2.0_f64.powi(-53) { 2200 } else { 192 };
        let enclosure = Level::from_epsilon(epsilon).enclosure(bits);
        let short = power.interval();
        assert_ne!(short.lower.compare(&enclosure.lower), Ordering::Greater, "{epsilon:e}");
        assert_ne!(enclosure.upper.compare(&short.upper), Ordering::Greater, "{epsilon:e}");
        if epsilon <= 277.0 {
            let machine = machine.expect("in range");
            assert_eq!((machine.high, machine.low), parts(&enclosure), "{epsilon:e}");
            assert_eq!(machine.exact_products, epsilon == 0.0);
            if (0.001..276.0).contains(&epsilon) {
                undecided += u64::from(power.two_floats().is_none());
            }
        }
    }
    assert!(undecided < EPSILONS / 100, "{undecided} of {EPSILONS} took the long way");
}

#[test]
fn rational_epsilons_are_enclosed() {
    let mut random = Random(2);
    for _ in 0..CASES {
        let (a, b) = (random.next() >> random.below(60), (random.next() >> random.below(60)).max(1));
        let x = BigRational::new(a.into(), b.into());
        let Some(power) = Power::of_rational(&x) else {
            assert!(x >= BigRational::from_integer(1024.into()), "{x}");
            continue;
        };
        let (short, long) = (power.interval(), exp(&x, 196));
        assert_ne!(short.lower.compare(&long.lower), Ordering::Greater, "{x}");
        assert_ne!(long.upper.compare(&short.upper), Ordering::Greater, "{x}");
        if x >= rational_from_f64(2.0_f64.powi(-52)) && x <= BigRational::from_integer(277.into()) {
            let machine = Level::new(BigRational::one(), x.clone()).machine().expect("in range");
            let long = Level::new(BigRational::one(), x.clone()).enclosure(192);
            assert_eq!((machine.high, machine.low), parts(&long), "{x}");
        }
    }
}

/// e^epsilon between fractions.
fn ends(epsilon: f64, bits: i64) -> (BigRational, BigRational) {
    let enclosure = exp(&rational_from_f64(epsilon), bits);
    (enclosure.lower.to_rational(), enclosure.upper.to_rational())
}

/// x rounded down to at least so many significant bits.
fn shortened(x: &BigRational, bits: u64) -> BigRational {
    let scale = BigInt::from(1) << (bits + x.denom().bits()).saturating_sub(x.numer().bits());
    BigRational::new((x * &scale).floor().to_integer(), scale)
}

#[test]
fn near_ties_are_decided() {
    let mut random = Random(3);
    for case in 0..CASES {
        let epsilon = random.epsilon(case);
        if epsilon == 0.0 || epsilon > 800.0 {
            continue;
        }
        let bits = [40, 100, 121, 124, 127, 130, 190, 300][usize::try_from(case % 8).unwrap_or(0)];
        let (low, high) = ends(epsilon, if epsilon < 1e-9 { 5000 } else { 1700 });
        let below = shortened(&low, bits);
        let above = &below * BigRational::new((BigInt::from(1) << bits) + 3, BigInt::from(1) << bits);
        assert!(below < low && high < above);
        let q = BigRational::new(random.below(1 << 40).into(), BigInt::from(3) << 40)
            .max(rational_from_f64(1e-9));
        for ratio in [BigRational::one(), BigRational::new(7.into(), 3.into())] {
            let level = Level::new(ratio.clone(), rational_from_f64(epsilon));
            assert_eq!(level.compare(&(&below * &ratio * &q), &q), Ordering::Less, "{epsilon:e} {bits}");
            assert_eq!(level.compare(&(&above * &ratio * &q), &q), Ordering::Greater, "{epsilon:e} {bits}");
        }
    }
}
