//! The bounds against exact arithmetic, on cases made to be hard for them.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_possible_wrap)]

use super::{Numerics, U};
use crate::{
    control::Control,
    divergence::hockey_stick::Difference,
    exact::{Level, Rational, level::MachineLevel, rounding::rational_from_f64},
    family::brute::pair_value,
    pmf::Pmf,
    simd::{
        Kernel,
        rows::{LANES, sums_above, sums_below},
    },
};
use num_traits::{Signed, Zero};

/// Random bits, the same on every run.
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / 2.0_f64.powi(53)
    }

    /// A pmf that is hard to add: equal masses, ones that lose half a unit each, tiny and subnormal ones, zeros.
    fn pmf(&mut self, outputs: usize) -> Vec<f64> {
        let style = self.below(5);
        let mut masses: Vec<f64> = (0..outputs)
            .map(|_| match style {
                0 => 1.0,
                1 => self.uniform(),
                2 => 1.0 + f64::EPSILON * self.below(3) as f64,
                3 => self.uniform().powi(60),
                _ => [0.0, 5e-324, 1e-310, 1e-200, 1.0, 1e-16][self.below(6) as usize],
            })
            .collect();
        masses[0] += 1e-3;
        let total: f64 = masses.iter().sum();
        // Up to the tolerance of totals.
        let scale = (1.0 + [0.0, 9e-10, -9e-10][self.below(3) as usize]) / total;
        masses.into_iter().map(|mass| mass * scale).collect()
    }

    fn level(&mut self) -> Level {
        let power = |base: i64, power: i32| Rational::new(base.into(), 1.into()).pow(power);
        match self.below(8) {
            0 => Level::from_epsilon(0.0),
            1 => Level::from_epsilon(1e-300),
            2 => Level::from_epsilon(3.0 * self.uniform()),
            3 => Level::from_epsilon(276.9),
            4 => Level::rational(power(10, 100)),
            5 => Level::rational(power(2, 400)),
            6 => Level::rational(Rational::new(999_999_999.into(), 1_000_000_000.into())),
            _ => Level::rational(Rational::new((1 + self.below(9)).into(), (1 + self.below(9)).into())),
        }
    }
}

fn exact(x: f64) -> Rational {
    if x < 0.0 { -rational_from_f64(-x) } else { rational_from_f64(x) }
}

fn numerics(level: &Level, outputs: usize) -> Numerics {
    Numerics::new(level.machine().unwrap(), outputs, 0.0)
}

fn padded(row: &[f64]) -> Vec<f64> {
    let mut padded = row.to_vec();
    padded.resize(row.len().next_multiple_of(LANES), 0.0);
    padded
}

/// d - bound > 0, decided exactly.
fn exceeds(difference: &Difference, level: &Level, bound: &Rational) -> bool {
    difference.compare(level, bound).is_gt()
}

fn difference(p: &[f64], q: &[f64], level: &Level) -> Difference {
    let pmf = |masses: &[f64]| Pmf::from_floats(masses.to_vec(), "p").unwrap();
    Difference::new(&pmf(p), &pmf(q), level, &Control::new()).unwrap()
}

#[test]
fn the_radius_encloses_the_divergence() {
    let mut random = Generator(0x0b5e_55ed);
    let mut share = 0.0_f64;
    for case in 0..4000 {
        let outputs = [1, 2, 3, 8, 33, 200][case % 6];
        let (p, mut q, level) = (random.pmf(outputs), random.pmf(outputs), random.level());
        if case % 3 == 0 {
            // Products within an ulp or so of the masses.
            let e = level.machine().unwrap().high;
            q = p.iter().map(|mass| mass / e * (1.0 + 2.0 * U * random.below(3) as f64)).collect();
            let rest = 1.0 - q.iter().sum::<f64>();
            q[0] += rest;
            if q[0] < 0.0 {
                continue;
            }
        }
        let numerics = numerics(&level, outputs);
        let (value, radius) = (pair_value(&p, &q, numerics.multiplier), numerics.radius);
        let truth = difference(&p, &q, &level);
        assert!(!exceeds(&truth, &level, &exact(value + radius)), "{p:?} {q:?} {level:?}");
        assert!(exceeds(&truth, &level, &exact((value - radius).next_down())), "{p:?} {q:?} {level:?}");
        let miss = (truth.to_f64(&level, crate::exact::rounding::Direction::Nearest) - value).abs();
        share = share.max(miss / radius);
    }
    // The cases come near the bound: a much smaller one would fail.
    assert!(share > 0.1 && share <= 1.0, "{share}");
}

/// `v - fl(E q)` is exact but `fl(E q)` is not: a bound that forgets the product's rounding is wrong here.
#[test]
fn the_slack_covers_the_rounding_of_products() {
    let e = std::f64::consts::E;
    let (q, p) = (0.925_437_422_998_740_5_f64, 2.515_599_730_313_444_f64);
    let separator = padded(&[e * q]);
    let (mut above, mut below) = (Vec::new(), Vec::new());
    sums_above(Kernel::detect(), &padded(&[p]), &separator, &mut above);
    sums_below(Kernel::detect(), &padded(&[q]), &separator, e, &mut below);
    let computed = exact(above[0]) + exact(below[0]);
    let truth = exact(p) - exact(e) * exact(q);
    assert!(truth > computed, "the case shows nothing");
    let numerics = Numerics::new(MachineLevel::from_float(e), 1, 0.0);
    assert!(truth <= computed + exact(numerics.separator_slack(&separator)));
}

#[test]
fn separators_bound_every_pair_within_their_slack() {
    let mut random = Generator(0x5e9a_4a70);
    let (mut share, mut bounded) = (0.0_f64, 0);
    for case in 0..4000 {
        let outputs = [1, 2, 3, 8, 33, 200][case % 6];
        let (p, mut q, level) = (random.pmf(outputs), random.pmf(outputs), random.level());
        let numerics = numerics(&level, outputs);
        if case % 2 == 0 {
            q.clone_from(&p);
            q[0] += f64::EPSILON;
        }
        // Tight separators, so that only rounding is between the bound and the divergence.
        let separator: Vec<f64> = p
            .iter()
            .zip(&q)
            .map(|(&p, &q)| match case % 5 {
                0 => p,
                1 => numerics.multiplier * q,
                2 => p.min(numerics.multiplier * q),
                3 => 0.5 * (p + numerics.multiplier * q),
                _ => random.uniform() - 0.2,
            })
            .collect();
        let (mut above, mut below) = (Vec::new(), Vec::new());
        sums_above(Kernel::detect(), &padded(&p), &padded(&separator), &mut above);
        sums_below(Kernel::detect(), &padded(&q), &padded(&separator), numerics.multiplier, &mut below);
        let computed = above[0] + below[0];
        if computed >= 2.0 {
            continue; // no floor is that high
        }
        bounded += 1;
        let slack = numerics.separator_slack(&separator);
        let truth = difference(&p, &q, &level);
        assert!(!exceeds(&truth, &level, &(exact(computed) + exact(slack))), "{p:?} {q:?} {level:?}");
        let miss = truth.to_f64(&level, crate::exact::rounding::Direction::Nearest) - computed;
        share = share.max(miss / slack);
    }
    assert!(bounded > 1000 && share > 0.01, "{bounded} {share}");
}

#[test]
fn envelopes_bound_the_sum_of_their_terms() {
    let mut random = Generator(0xe77e_10be);
    for case in 0..2000 {
        let outputs = [1, 2, 3, 8, 33, 200][case % 6];
        let (upper, mut lower, level) = (random.pmf(outputs), random.pmf(outputs), random.level());
        let numerics = numerics(&level, outputs);
        if case % 2 == 0 {
            lower = upper.iter().map(|mass| mass / numerics.multiplier).collect();
        }
        let (mut bound, mut size) = (0.0, 0.0);
        for (upper, lower) in upper.iter().zip(&lower) {
            bound += (upper - numerics.multiplier * lower).max(0.0);
            size += upper + numerics.multiplier * lower;
        }
        let bound = bound + numerics.sum_slack(size);
        let inside = |&(&upper, &lower): &(&f64, &f64)| level.compare(&exact(upper), &exact(lower)).is_gt();
        let (mut mass, mut other) = (Rational::zero(), Rational::zero());
        for (&upper, &lower) in upper.iter().zip(&lower).filter(inside) {
            mass += exact(upper);
            other += exact(lower);
        }
        let sum = Difference { mass, other, event: Vec::new() };
        assert!(!exceeds(&sum, &level, &exact(bound)), "{upper:?} {lower:?} {level:?}");
    }
}

/// Of every two floats near a tie, at most one of the two certain answers is given, and it is the true one.
#[test]
fn certain_contributions_are_true() {
    let mut random = Generator(0xce47_a147);
    let (mut certain, mut open) = (0, 0);
    for _ in 0..20_000 {
        let level = random.level();
        let numerics = numerics(&level, 1);
        let lower =
            [random.uniform(), 5e-324, 1e-310 * random.uniform(), 1e-100, 0.0][random.below(5) as usize];
        let steps = random.below(40) as i64 - 20;
        let upper = (numerics.multiplier * lower * (1.0 + steps as f64 * U)).max(0.0);
        let truth = level.compare(&exact(upper), &exact(lower)).is_gt();
        let (never, always) = (numerics.never_contributes(lower, upper), numerics.contributes(lower, upper));
        assert!(!(never && truth) && (!always || truth), "{lower:?} {upper:?} {level:?}");
        if never || always { certain += 1 } else { open += 1 }
    }
    assert!(certain > 1000 && open > 1000, "{certain} {open}");
}

/// Floats anywhere within the stated error of exact masses.
#[test]
fn the_radius_covers_rows_that_are_only_near() {
    let mut random = Generator(0x4ea4);
    let constant = Rational::new(1.into(), 2.into()).pow(126);
    for case in 0..3000 {
        let outputs = [1, 2, 5, 20][case % 4];
        let (p, q) = (random.pmf(outputs), random.pmf(outputs));
        let level =
            [Level::from_epsilon(0.5), Level::from_epsilon(0.0), Level::from_epsilon(70.0)][case % 3].clone();
        let error = [1e-3, 1e-9, 70.0 * U][random.below(3) as usize];
        let numerics = Numerics::new(level.machine().unwrap(), outputs, error);
        // The exact masses are p and q; these floats are as far away as they may be.
        let far = |masses: &[f64], sign: f64| -> Vec<f64> {
            let far = |&mass: &f64| (mass + sign * (error * mass + 2.0_f64.powi(-126))).max(0.0);
            let mut far: Vec<f64> = masses.iter().map(far).collect();
            for (far, &mass) in far.iter_mut().zip(masses) {
                while (exact(*far) - exact(mass)).abs() > exact(error) * exact(mass) + &constant {
                    *far = if sign > 0.0 { far.next_down() } else { far.next_up() };
                }
            }
            far
        };
        for sign in [1.0, -1.0] {
            let value = pair_value(&far(&p, sign), &far(&q, -sign), numerics.multiplier);
            let truth = difference(&p, &q, &level);
            assert!(!exceeds(&truth, &level, &exact(value + numerics.radius)), "{p:?} {q:?}");
            let below = exact((value - numerics.radius).next_down());
            assert!(exceeds(&truth, &level, &below), "{p:?} {q:?}");
        }
    }
}
