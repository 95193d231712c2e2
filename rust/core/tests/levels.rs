//! Levels by 128 bits of e^epsilon against long enclosures: the same parts, comparisons, floats and verdicts.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use std::cmp::Ordering;
use userdp_core::{
    control::Control,
    divergence::{
        hockey_stick,
        hockey_stick::{
            quick_hockey_stick_bounds_of_floats, quick_hockey_stick_of_floats, quick_verdict_of_floats,
        },
        hockey_stick_bounds, is_indistinguishable,
    },
    exact::{
        Interval, Level,
        dyadic::Dyadic,
        exp::exp,
        exp128::Power,
        rounding::{Direction, rational_from_f64, rational_to_f64},
    },
    pmf::Pmf,
};

/// Epsilons of the largest test: under a minute when optimized, a second in the ordinary build of tests.
const EPSILONS: u64 = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };

/// Cases of the tests in rational arithmetic.
const CASES: u64 = if cfg!(debug_assertions) { 600 } else { 10_000 };

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

/// The hockey-stick divergence between fractions, by the definition.
fn naive(p: &[f64], q: &[f64], e: &(BigRational, BigRational)) -> (BigRational, BigRational) {
    let sum = |e: &BigRational| -> BigRational {
        p.iter()
            .zip(q)
            .map(|(&p, &q)| (rational_from_f64(p) - e * rational_from_f64(q)).max(BigRational::zero()))
            .sum()
    };
    (sum(&e.1), sum(&e.0))
}

/// Two pmfs whose divergence is within a part of 2^(-53 limbs) of the midpoint of two floats, or of a float.
fn near_boundary(random: &mut Random, e: &BigRational, limbs: usize) -> (Vec<f64>, Vec<f64>) {
    let mut p = vec![0.5 + 0.25 * random.uniform()];
    // Room above E q for the small corrections of q.
    p.resize(limbs, 0.01);
    let mass: BigRational = p.iter().map(|&x| rational_from_f64(x)).sum();
    let goal = 0.5 * random.uniform().max(1e-6);
    let half_place = (goal.next_up() - goal) / 2.0;
    let target = rational_from_f64(goal) + rational_from_f64(half_place) * BigInt::from(random.below(2));
    let mut missing = (mass - target) / e;
    let mut q = Vec::new();
    for limb in 0..limbs {
        let direction = if limb + 1 < limbs { Direction::Down } else { Direction::Nearest };
        let part = rational_to_f64(&missing, direction);
        missing -= rational_from_f64(part);
        q.push(part);
    }
    // The rest of each on outputs of their own; q's has p = 0.
    let rest = |x: &[f64]| 1.0 - x.iter().sum::<f64>();
    let (p_rest, q_rest) = (rest(&p), rest(&q));
    p.extend([0.0, p_rest]);
    q.extend([q_rest * 0.5, q_rest * 0.5]);
    (p, q)
}

fn pmfs(random: &mut Random, case: u64, e: &(BigRational, BigRational)) -> (Vec<f64>, Vec<f64>) {
    let limbs = usize::try_from(case % 5).unwrap_or(0);
    if (1..4).contains(&limbs) {
        return near_boundary(random, &e.0, limbs);
    }
    let normalized = |x: Vec<f64>| -> Vec<f64> {
        let sum: f64 = x.iter().sum();
        x.into_iter().map(|x| x / sum).collect()
    };
    let q = normalized((0..6).map(|_| random.power(-8.0, 0.0)).collect());
    if limbs == 0 {
        return (normalized((0..6).map(|_| random.power(-8.0, 0.0)).collect()), q);
    }
    // Masses within a few places of E q, as long as they sum to less than 1.
    let mut p = Vec::new();
    for &mass in &q {
        let tie = random.beside(rational_to_f64(&(&e.0 * rational_from_f64(mass)), Direction::Nearest));
        p.push(if p.iter().sum::<f64>() + tie < 0.99 { tie } else { 0.0 });
    }
    p[0] += 1.0 - p.iter().sum::<f64>();
    (p, q)
}

#[test]
#[allow(clippy::unwrap_used)]
fn floats_and_verdicts_are_exact() {
    let mut random = Random(4);
    let control = Control::new();
    let mut quickly = 0_u64;
    for case in 0..CASES {
        let epsilon = match case % 3 {
            0 => 3.0 * random.uniform(),
            1 => random.power(-40.0, 3.0),
            _ => random.epsilon(case),
        };
        if epsilon == 0.0 || epsilon > 800.0 {
            continue;
        }
        let e = ends(epsilon, if epsilon < 1e-9 { 5000 } else { 900 });
        let (p, q) = pmfs(&mut random, case / 3, &e);
        let (forward, backward) = (naive(&p, &q, &e), naive(&q, &p, &e));
        let expected = rational_to_f64(&forward.0, Direction::Nearest);
        assert_eq!(
            expected,
            rational_to_f64(&forward.1, Direction::Nearest),
            "the reference is narrow enough"
        );
        let level = Level::from_epsilon(epsilon);
        let quick = quick_hockey_stick_of_floats(&p, &q, &level);
        quickly += u64::from(quick.is_some());
        assert!(quick.is_none_or(|quick| quick == expected), "{epsilon:e} {p:?} {q:?}");
        let (first, second) =
            (Pmf::from_floats(&p[..], "p").unwrap(), Pmf::from_floats(&q[..], "q").unwrap());
        assert_eq!(
            hockey_stick(&first, &second, &level, &control).unwrap(),
            expected,
            "{epsilon:e} {p:?} {q:?}"
        );
        let side = hockey_stick_bounds(&first, &second, &level, &control).unwrap();
        assert!(rational_from_f64(side.lower) <= forward.0 && forward.1 <= rational_from_f64(side.upper));
        assert!(side.upper <= side.lower.next_up());
        if let Some(quick) = quick_hockey_stick_bounds_of_floats(&p, &q, &level) {
            assert_eq!(quick, side);
        }
        let worst = if forward.0 > backward.1 { &forward } else { &backward };
        if worst.0.is_zero() {
            continue;
        }
        // Thresholds on both sides, as near as floats come and nearer.
        let (down, up) =
            (rational_to_f64(&worst.0, Direction::Down), rational_to_f64(&worst.1, Direction::Up));
        let within = |delta: &BigRational| {
            assert!(*delta >= worst.1 || *delta < worst.0, "the reference is narrow enough");
            *delta >= worst.1
        };
        for delta in [down, up, down.next_down().max(0.0), up.next_up()] {
            let exact = rational_from_f64(delta);
            if delta > 1.0 {
                continue;
            }
            let verdict = is_indistinguishable(&first, &second, &level, &exact, &control).unwrap();
            assert_eq!(verdict.holds, within(&exact), "{epsilon:e} {delta:e} {p:?} {q:?}");
            if let Some(quick) = quick_verdict_of_floats(&p, &q, &level, [delta; 2], &control).unwrap() {
                assert_eq!(quick.holds, verdict.holds);
                assert_eq!((quick.event, quick.reversed), (verdict.event, verdict.reversed));
            }
        }
        for bits in [90, 120, 126, 130, 200, 400] {
            let below = shortened(&worst.0, bits);
            let step = BigRational::new(1.into(), BigInt::from(1) << bits) * &worst.1;
            for delta in [&below - &step, &below + &step + &step] {
                if !delta.is_negative() && delta <= BigRational::one() {
                    let verdict = is_indistinguishable(&first, &second, &level, &delta, &control).unwrap();
                    assert_eq!(verdict.holds, within(&delta), "{epsilon:e} {bits} {p:?} {q:?}");
                }
            }
        }
    }
    assert!(quickly > CASES / 4, "{quickly} of {CASES} were settled by floats");
}

#[test]
#[allow(clippy::unwrap_used)]
fn zero_is_certain_or_left_to_exact_arithmetic() {
    let control = Control::new();
    let least = f64::from_bits(1);
    // e^0.47 = 1.59...: products with it round away what is left of the first masses, 3 * 0.4 * 2^-1074.
    let (p, q) = ([2.0 * least, 2.0 * least, 2.0 * least, 1.0], [least, least, least, 1.0]);
    let level = Level::from_epsilon(0.47);
    assert_eq!(quick_hockey_stick_of_floats(&p, &q, &level), None);
    let (first, second) = (Pmf::from_floats(&p[..], "p").unwrap(), Pmf::from_floats(&q[..], "q").unwrap());
    assert_eq!(hockey_stick(&first, &second, &level, &control).unwrap(), least);
    let none = BigRational::zero();
    assert!(!is_indistinguishable(&first, &second, &level, &none, &control).unwrap().holds);
    // Clearly nothing, with masses of 0 on either side.
    let (p, q) = ([0.5, 0.25, 0.25, 0.0], [0.4, 0.2, 0.3, 0.1]);
    assert_eq!(quick_hockey_stick_of_floats(&p, &q, &level), Some(0.0));
    let (first, second) = (Pmf::from_floats(&p[..], "p").unwrap(), Pmf::from_floats(&q[..], "q").unwrap());
    let side = hockey_stick_bounds(&first, &second, &level, &control).unwrap();
    assert_eq!((side.lower, side.upper), (0.0, 0.0));
    // Equal masses at E = 1, and masses one place above and below a tie.
    let zero = Level::from_epsilon(0.0);
    assert_eq!(quick_hockey_stick_of_floats(&p, &p, &zero), Some(0.0));
    assert!(
        quick_hockey_stick_of_floats(&[0.5_f64.next_up(), 0.5], &[0.5, 0.5], &zero).is_none_or(|d| d > 0.0)
    );
    let (p, q) = (
        [0.5, 0.5],
        [rational_to_f64(&(ends(0.47, 200).0.recip() / BigInt::from(2)), Direction::Up), 0.6859],
    );
    let level = Level::from_epsilon(0.47);
    assert_eq!(quick_hockey_stick_of_floats(&p, &q, &level), None, "too near for floats");
    // E beyond the floats of the pass: only what q excludes is left, and masses that E does not lift above 1.
    for epsilon in [277.1, 500.0, 1e4, f64::MAX] {
        let level = Level::from_epsilon(epsilon);
        let p = [0.3, 0.7, 0.0];
        assert_eq!(quick_hockey_stick_of_floats(&p, &[0.0, 0.5, 0.5], &level), Some(0.3));
        assert_eq!(quick_hockey_stick_of_floats(&p, &[1e-118, 0.5, 0.5], &level), Some(0.0));
        assert_eq!(quick_hockey_stick_of_floats(&p, &[1e-120, 0.5, 0.5], &level), None);
        let tiny = [least, 0.5, 0.5];
        let (first, second) =
            (Pmf::from_floats(&p[..], "p").unwrap(), Pmf::from_floats(&tiny[..], "q").unwrap());
        let expected = if epsilon < 740.0 { 0.3 } else { 0.0 };
        assert_eq!(hockey_stick(&first, &second, &level, &control).unwrap(), expected, "{epsilon:e}");
        let verdict =
            is_indistinguishable(&first, &second, &level, &rational_from_f64(0.2), &control).unwrap();
        let back = 0.5; // of the last output, which p excludes
        assert_eq!((verdict.holds, verdict.reversed, verdict.worst.lower <= back), (false, true, true));
        assert_eq!(verdict.event, Some(vec![2]));
    }
}
