//! Divergences against a naive twin in rational arithmetic, on every kernel of this machine.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One, Zero};
use proptest::prelude::*;
use userdp_core::{
    Error,
    control::Control,
    divergence::{
        exp_epsilon_at_delta, hockey_stick,
        hockey_stick::quick_hockey_stick_of_floats,
        hockey_stick_bounds, is_indistinguishable,
        kernel::{Kernel, sums_with},
    },
    exact::{
        Level,
        level::MachineLevel,
        rounding::{Direction, rational_from_f64, rational_to_f64},
    },
    family::Family,
    pmf::Pmf,
};

fn control() -> Control {
    Control::new()
}

fn rationals(masses: &[f64]) -> Vec<BigRational> {
    masses.iter().map(|&mass| rational_from_f64(mass)).collect()
}

/// The definition, for a rational multiplier.
fn naive(p: &[BigRational], q: &[BigRational], multiplier: &BigRational) -> BigRational {
    p.iter().zip(q).map(|(p, q)| (p - multiplier * q).max(BigRational::zero())).sum()
}

/// Floats that sum to 1 within rounding, with zeros, ties and very small masses among them.
fn float_pmf(length: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(
        prop_oneof![3 => 0.0..1.0_f64, 1 => Just(0.0), 1 => Just(0.25), 1 => Just(1e-300)],
        length,
    )
    .prop_filter_map("all zero", |raw| {
        let total: f64 = raw.iter().sum();
        (total > 1e-3).then(|| raw.iter().map(|x| x / total).collect())
    })
}

fn float_pair() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    (1_usize..70).prop_flat_map(|length| (float_pmf(length), float_pmf(length)))
}

fn weight_pair() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
    (1_usize..8).prop_flat_map(|length| {
        let weights =
            || prop::collection::vec(0_u32..6, length).prop_filter("all zero", |w| w.iter().any(|&x| x > 0));
        (weights(), weights())
    })
}

#[allow(clippy::unwrap_used)]
fn exact_pmf(weights: &[u32]) -> Pmf<'static> {
    let weights: Vec<BigUint> = weights.iter().map(|&weight| BigUint::from(weight)).collect();
    let total = weights.iter().sum();
    Pmf::from_weights(weights, total, "p", &control()).unwrap()
}

fn masses(weights: &[u32]) -> Vec<BigRational> {
    let total = BigInt::from(weights.iter().sum::<u32>());
    weights.iter().map(|&weight| BigRational::new(weight.into(), total.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn float_divergence_is_correctly_rounded((p, q) in float_pair(), numerator in 1_i64..40, denominator in 1_i64..8) {
        let multiplier = BigRational::new(numerator.into(), denominator.into()).max(BigRational::one());
        let level = Level::rational(multiplier.clone());
        let exact = naive(&rationals(&p), &rationals(&q), &multiplier);
        let expected = rational_to_f64(&exact, Direction::Nearest);
        if let Some(quick) = quick_hockey_stick_of_floats(&p, &q, &level) {
            prop_assert_eq!(quick, expected);
        }
        let (p, q) = (Pmf::from_floats(&p[..], "p").unwrap(), Pmf::from_floats(&q[..], "q").unwrap());
        let bounds = hockey_stick_bounds(&p, &q, &level, &control()).unwrap();
        prop_assert!(rational_from_f64(bounds.lower) <= exact && exact <= rational_from_f64(bounds.upper));
        prop_assert!(bounds.upper <= bounds.lower.next_up());
        prop_assert_eq!(hockey_stick(&p, &q, &level, &control()).unwrap(), expected);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_kernel_encloses_both_masses((p, q) in float_pair(), multiplier in 0.01_f64..50.0, repeat in 1_usize..200) {
        // Spread over many outputs, so that several blocks and remainders occur.
        let spread = |x: &[f64]| -> Vec<f64> {
            let scale = repeat as f64;
            x.iter().flat_map(|&mass| std::iter::repeat_n(mass / scale, repeat)).collect()
        };
        let (p, q) = (spread(&p), spread(&q));
        let level = MachineLevel::from_float(multiplier);
        let exact_level = rational_from_f64(multiplier);
        let (mut p_inside, mut q_inside) = (BigRational::zero(), BigRational::zero());
        for (&a, &b) in p.iter().zip(&q) {
            if a > multiplier * b {
                p_inside += rational_from_f64(a);
                q_inside += rational_from_f64(b);
            }
        }
        let signed = |x: f64| if x < 0.0 { -rational_from_f64(-x) } else { rational_from_f64(x) };
        let mut agreed = None;
        for kernel in Kernel::supported() {
            let sums = sums_with(kernel, &p, &q, level);
            let error = |high: f64, low: f64, exact: &BigRational| {
                let gap = signed(high) + signed(low) - exact;
                if gap < BigRational::zero() { -gap } else { gap }
            };
            prop_assert!(error(sums.p_high, sums.p_low, &p_inside) <= rational_from_f64(sums.p_error));
            prop_assert!(error(sums.q_high, sums.q_low, &q_inside) <= rational_from_f64(sums.q_error));
            prop_assert!(!sums.negative);
            prop_assert!(*agreed.get_or_insert(sums.close) == sums.close);
            // Not close means that the event is the exact one.
            if !sums.close {
                let wrong = p.iter().zip(&q).any(|(&a, &b)| {
                    (a > multiplier * b) != (rational_from_f64(a) > &exact_level * rational_from_f64(b))
                });
                prop_assert!(!wrong);
            }
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn exact_divergence_and_verdicts((p, q) in weight_pair(), numerator in 1_i64..12, denominator in 1_i64..6, twelfths in 0_i64..=12) {
        let multiplier = BigRational::new(numerator.into(), denominator.into()).max(BigRational::one());
        let level = Level::rational(multiplier.clone());
        let delta = BigRational::new(twelfths.into(), 12.into());
        let forward = naive(&masses(&p), &masses(&q), &multiplier);
        let backward = naive(&masses(&q), &masses(&p), &multiplier);
        let (p, q) = (exact_pmf(&p), exact_pmf(&q));
        prop_assert_eq!(hockey_stick(&p, &q, &level, &control()).unwrap(), rational_to_f64(&forward, Direction::Nearest));
        let verdict = is_indistinguishable(&p, &q, &level, &delta, &control()).unwrap();
        prop_assert_eq!(verdict.holds, forward <= delta && backward <= delta);
        let worst = (&forward).max(&backward);
        prop_assert!(rational_from_f64(verdict.worst.lower) <= *worst && *worst <= rational_from_f64(verdict.worst.upper));
        if let Some(event) = verdict.event {
            let (above, below) = if verdict.reversed { (&q, &p) } else { (&p, &q) };
            prop_assert!(above.event_mass(&event) - multiplier * below.event_mass(&event) > delta);
        }
    }

    #[test]
    fn epsilon_is_the_smallest_breakpoint((p, q) in weight_pair(), twentieths in 0_i64..=20) {
        let delta = BigRational::new(twentieths.into(), 20.into());
        let (a, b) = (masses(&p), masses(&q));
        let within = |e: &BigRational| naive(&a, &b, e) <= delta && naive(&b, &a, e) <= delta;
        // Candidates: 1, every ratio, and every crossing of a linear piece with delta.
        let mut candidates = vec![BigRational::one()];
        for (x, y) in [(&a, &b), (&b, &a)] {
            let mut ratios: Vec<BigRational> =
                x.iter().zip(y).filter(|(_, y)| !y.is_zero()).map(|(x, y)| x / y).collect();
            ratios.sort();
            candidates.extend(ratios.iter().cloned());
            for cut in &ratios {
                let inside = || x.iter().zip(y).filter(|(x, y)| *x >= &(cut * *y));
                let (mass, other): (BigRational, BigRational) =
                    (inside().map(|(x, _)| x.clone()).sum(), inside().map(|(_, y)| y.clone()).sum());
                if !other.is_zero() {
                    candidates.push((mass - &delta) / other);
                }
            }
        }
        let expected = candidates.into_iter().filter(|e| e >= &BigRational::one() && within(e)).min();
        prop_assert_eq!(exp_epsilon_at_delta(&exact_pmf(&p), &exact_pmf(&q), &delta, &control()).unwrap(), expected);
    }

    #[test]
    fn family_finds_the_worst_pair(rows in prop::collection::vec(prop::collection::vec(1_u32..6, 4), 2..7), numerator in 2_i64..6) {
        let multiplier = BigRational::new(numerator.into(), 2.into());
        let level = Level::rational(multiplier.clone());
        let delta = BigRational::new(1.into(), 10.into());
        let pairs: Vec<(usize, usize)> =
            (0..rows.len()).flat_map(|j| (0..j).map(move |i| (i, j))).collect();
        let worst_naive = pairs
            .iter()
            .flat_map(|&(i, j)| [(i, j), (j, i)])
            .map(|(i, j)| naive(&masses(&rows[i]), &masses(&rows[j]), &multiplier))
            .max()
            .unwrap();
        let family = Family::new(rows.iter().map(|row| exact_pmf(row)).collect()).unwrap();
        let worst = family.worst_divergence(&pairs, &level, &delta, &control()).unwrap().unwrap();
        let attained = &worst.difference.mass - &multiplier * &worst.difference.other;
        prop_assert_eq!(&attained, &worst_naive);
        prop_assert_eq!(worst.against_delta, worst_naive.cmp(&delta));
        let exceeding: Vec<bool> = pairs
            .iter()
            .map(|&(i, j)| {
                let (p, q) = (masses(&rows[i]), masses(&rows[j]));
                naive(&p, &q, &multiplier).max(naive(&q, &p, &multiplier)) > delta
            })
            .collect();
        prop_assert_eq!(family.exceeding(&pairs, &level, &delta, &control()).unwrap(), exceeding);
        let tie = family.exceeding(&pairs, &level, &worst_naive, &control()).unwrap();
        prop_assert!(!tie.contains(&true));
        let upper = family.profile(&pairs, &[std::sync::Arc::new(level)], &control()).unwrap()[0];
        prop_assert_eq!(upper, rational_to_f64(&worst_naive, Direction::Up));
        let root = family.exp_epsilon_at_delta(&pairs, &delta, &control()).unwrap();
        let each = pairs.iter().map(|&(i, j)| {
            exp_epsilon_at_delta(&exact_pmf(&rows[i]), &exact_pmf(&rows[j]), &delta, &control()).unwrap().unwrap()
        });
        prop_assert_eq!(root, each.max());
    }
}

#[test]
fn bad_pmfs_are_refused_by_name() {
    let refused = |masses: &[f64]| {
        matches!(Pmf::from_floats(masses, "q"), Err(Error::InvalidArgument { argument: "q", .. }))
    };
    assert!(refused(&[]));
    assert!(refused(&[0.5, f64::NAN]));
    assert!(refused(&[f64::INFINITY, 0.0]));
    assert!(refused(&[-0.5, 1.5]));
    assert!(refused(&[0.5, 0.5 + 1.1e-9]));
    assert!(!refused(&[0.5, 0.5 + 0.9e-9]));
    assert!(!refused(&[-0.0, 1.0]));
    let weights = |w: &[u32], total: u32| {
        Pmf::from_weights(w.iter().map(|&x| BigUint::from(x)).collect(), total.into(), "p", &control())
    };
    assert!(weights(&[], 1).is_err());
    assert!(weights(&[0], 0).is_err());
    assert!(weights(&[1, 2], 4).is_err());
    assert!(weights(&[1, 2], 3).is_ok());
}

#[test]
fn canceled_work_stops() {
    let stopped = Control::new();
    stopped.cancel();
    let family = Family::new(vec![exact_pmf(&[1, 2]), exact_pmf(&[2, 1])]).unwrap();
    let level = Level::rational(BigRational::one());
    let result = family.worst_divergence(&[(0, 1)], &level, &BigRational::zero(), &stopped);
    assert_eq!(result.unwrap_err(), Error::Canceled);
}
