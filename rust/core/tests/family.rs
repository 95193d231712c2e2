//! The all-pairs search against naive loops over all pairs, in floats and in rational arithmetic.
#![allow(clippy::unwrap_used)]

use num_traits::Zero;
use proptest::prelude::*;
use std::{cmp::Ordering, collections::HashSet, ops::Range, sync::Mutex};
use userdp_core::{
    control::Control,
    divergence::hockey_stick::Difference,
    exact::{Level, Rational, rounding::rational_from_f64},
    family::{BadPairs, PmfMatrix, list_bad_pairs, maximum, verdict},
    pmf::Pmf,
    simd::{
        Kernel,
        tiles::{Hits, LEFT, Panels, RIGHT, block_f64, block_u32, block_u64},
    },
};

fn normalized(rows: Vec<Vec<f64>>) -> Vec<f64> {
    rows.into_iter()
        .flat_map(|row| {
            let total: f64 = row.iter().sum();
            row.into_iter().map(move |mass| mass / total)
        })
        .collect()
}

/// Random families: concentrated or flat rows, zeros, repeated rows.
fn family() -> impl Strategy<Value = (Vec<f64>, usize)> {
    (1_usize..12, 1_usize..40, 0.0_f64..6.0).prop_flat_map(|(outputs, rows, spread)| {
        let mass = prop_oneof![4 => (0.0..1.0_f64).prop_map(move |x| (spread * x).exp()), 1 => Just(0.0)];
        let row = prop::collection::vec(mass, outputs)
            .prop_filter("some mass", |row| row.iter().sum::<f64>() > 0.0);
        let rows = prop::collection::vec(row, rows);
        (rows, prop::collection::vec(any::<prop::sample::Index>(), 0..4)).prop_map(
            move |(mut rows, repeated)| {
                for index in repeated {
                    rows.push(rows[index.index(rows.len())].clone());
                }
                (normalized(rows), outputs)
            },
        )
    })
}

fn levels() -> impl Strategy<Value = Level> {
    prop_oneof![
        Just(Level::from_epsilon(0.0)),
        (0.0..3.0_f64).prop_map(Level::from_epsilon),
        (1_i64..9, 1_i64..9)
            .prop_map(|(a, b)| Level::rational(Rational::new((a.max(b)).into(), a.min(b).into()))),
    ]
}

/// Every ordered pair, exactly.
fn exact(matrix: &PmfMatrix<'_>, level: &Level) -> Vec<((usize, usize), Difference)> {
    let control = Control::new();
    (0..matrix.rows())
        .flat_map(|i| (0..matrix.rows()).map(move |j| (i, j)))
        .map(|(i, j)| ((i, j), Difference::new(&matrix.pmf(i), &matrix.pmf(j), level, &control).unwrap()))
        .collect()
}

fn largest(all: &[((usize, usize), Difference)], level: &Level) -> Difference {
    all.iter()
        .map(|(_, difference)| difference.clone())
        .reduce(|a, b| if b.compare_with(level, &a) == Ordering::Greater { b } else { a })
        .unwrap()
}

/// Receives everything.
#[derive(Default)]
struct Everything(Mutex<HashSet<(usize, usize)>>);

impl BadPairs for Everything {
    type Corner = ();
    fn corner(&self, _: Range<usize>) {}
    fn join(&self, (): &(), (): &()) {}
    fn weight(&self, (): &(), (): &()) -> u64 {
        0
    }
    fn settled(&self, (): &(), (): &()) -> bool {
        false
    }
    fn settled_row(&self, _: usize, (): &()) -> bool {
        false
    }
    fn finished(&self, _: &Control) -> userdp_core::Result<bool> {
        Ok(false)
    }
    fn known(&self, _: usize, _: usize) -> bool {
        false
    }
    fn receive(&self, i: usize, j: usize) {
        self.0.lock().unwrap().insert((i.min(j), i.max(j)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn maximum_verdicts_and_lists_are_those_of_all_pairs((masses, outputs) in family(), level in levels()) {
        let control = Control::new();
        let matrix = PmfMatrix::from_floats(masses, outputs, &control).unwrap();
        let all = exact(&matrix, &level);
        let truth = largest(&all, &level);
        let found = maximum(&matrix, &level, &control).unwrap().unwrap();
        prop_assert_eq!(found.pair.difference.compare_with(&level, &truth), Ordering::Equal);
        prop_assert!(found.upper <= found.pair.lower.next_up());
        // At the maximum itself the claim holds with equality; just below it fails.
        let mut deltas = vec![Rational::zero(), rational_from_f64(found.pair.lower), rational_from_f64(found.upper.min(1.0))];
        deltas.extend([0.5, 0.999, 1.001].map(|factor| rational_from_f64((factor * found.upper).min(1.0))));
        if level.is_rational() {
            deltas.push(&truth.mass - level.ratio() * &truth.other);
        }
        for delta in deltas {
            let expected = truth.compare(&level, &delta) != Ordering::Greater;
            let decided = verdict(&matrix, &level, &delta, &control).unwrap();
            prop_assert_eq!(decided.holds, expected);
            prop_assert_eq!(decided.pair.is_none(), expected);
            if let Some(pair) = decided.pair {
                prop_assert_eq!(pair.difference.compare(&level, &delta), Ordering::Greater);
            }
            let listed = Everything::default();
            list_bad_pairs(&matrix, &level, &delta, &listed, &control).unwrap();
            let bad: HashSet<(usize, usize)> = all
                .iter()
                .filter(|(_, difference)| difference.compare(&level, &delta) == Ordering::Greater)
                .map(|&((i, j), _)| (i.min(j), i.max(j)))
                .collect();
            prop_assert_eq!(listed.0.into_inner().unwrap(), bad);
        }
    }

    #[test]
    fn exact_rows_decide_what_their_floats_cannot(weights in prop::collection::vec(prop::collection::vec(1_u64..1 << 60, 3), 2..9), level in levels()) {
        let control = Control::new();
        let pmfs: Vec<Pmf<'static>> = weights
            .iter()
            .map(|row| {
                // Pairs of rows that differ by one unit in 2^160 have the same floats.
                let big: Vec<_> = row.iter().map(|&w| num_bigint::BigUint::from(w % 4 + 1) << 160_u32).enumerate()
                    .map(|(at, w)| if at == 0 { w + row[0] % 2 } else { w }).collect();
                let total = big.iter().sum();
                Pmf::from_weights(big, total, "pmfs", &control).unwrap()
            })
            .collect();
        let matrix = PmfMatrix::from_pmfs(pmfs).unwrap();
        let all = exact(&matrix, &level);
        let truth = largest(&all, &level);
        let found = maximum(&matrix, &level, &control).unwrap().unwrap();
        prop_assert_eq!(found.pair.difference.compare_with(&level, &truth), Ordering::Equal);
        let decided = verdict(&matrix, &level, &Rational::zero(), &control).unwrap();
        prop_assert_eq!(decided.holds, truth.compare(&level, &Rational::zero()) != Ordering::Greater);
    }
}

/// A cheap generator for families that are too large for proptest.
struct Generator(u64);

impl Generator {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / 2.0_f64.powi(53)
    }
}

/// Families large enough for every stage of the search, against the naive float loop.
#[test]
fn large_families_agree_with_the_float_loop() {
    let control = Control::new();
    let mut random = Generator(0x1234_5678_9abc);
    for (rows, outputs, flatness, epsilon) in [
        (700, 5, 3.0, 0.1),
        (900, 17, 1.0, 1.0 / 3.0),
        (1200, 8, 0.05, 0.0),
        (800, 33, 0.3, 1.0),
        (3000, 64, 1.0, 0.3),
    ] {
        let masses = normalized(
            (0..rows)
                .map(|_| {
                    (0..outputs)
                        .map(|_| (flatness * random.uniform()).exp() * (0.1 + random.uniform()))
                        .collect()
                })
                .collect(),
        );
        let e: f64 = f64::exp(epsilon);
        let mut naive = 0.0_f64;
        for p in masses.chunks_exact(outputs) {
            for q in masses.chunks_exact(outputs) {
                naive = naive.max(p.iter().zip(q).map(|(p, q)| (p - e * q).max(0.0)).sum());
            }
        }
        let level = Level::from_epsilon(epsilon);
        let matrix = PmfMatrix::from_floats(masses, outputs, &control).unwrap();
        let found = maximum(&matrix, &level, &control).unwrap().unwrap();
        assert!((found.pair.lower - naive).abs() < 1e-13, "{rows} {outputs}: {} {naive}", found.pair.lower);
        assert!(found.upper <= found.pair.lower.next_up());
        for (factor, holds) in [(0.9999, false), (1.0001, true)] {
            let delta = rational_from_f64(naive * factor);
            assert_eq!(verdict(&matrix, &level, &delta, &control).unwrap().holds, holds);
        }
    }
}

/// Every element type and instruction set finds the same pairs.
#[test]
fn tiles_of_every_kernel_are_the_sums_of_minima() {
    let mut random = Generator(99);
    let (rows, columns, outputs) = (21, 70, 13);
    let p: Vec<Vec<f64>> = (0..rows).map(|_| (0..outputs).map(|_| random.uniform()).collect()).collect();
    let q: Vec<Vec<f64>> = (0..columns).map(|_| (0..outputs).map(|_| random.uniform()).collect()).collect();
    let units = 2.0_f64.powi(26);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let fixed = |x: f64| (x * units) as u32;
    for kernel in Kernel::supported() {
        let left = Panels::<f64, LEFT>::pack(rows, outputs, 0.0, |i, o| p[i][o]);
        let right = Panels::<f64, RIGHT>::pack(columns, outputs, f64::INFINITY, |j, o| q[j][o]);
        let totals: Vec<f64> = p.iter().map(|row| row.iter().sum()).collect();
        let mut found = Vec::new();
        let mut hits = Hits { threshold: 1.0, found: &mut found, band: None };
        block_f64(kernel, (&left, 0..left.len()), &totals, (&right, 0..right.len()), &mut hits);
        let naive = |i: usize, j: usize| -> f64 {
            totals[i] - p[i].iter().zip(&q[j]).fold(0.0, |sum, (p, q)| sum + p.min(*q))
        };
        let expected: Vec<(usize, usize)> = (0..rows)
            .flat_map(|i| (0..columns).map(move |j| (i, j)))
            .filter(|&(i, j)| naive(i, j) > 1.0)
            .collect();
        let mut pairs: Vec<(usize, usize)> =
            found.iter().map(|hit| (hit.left as usize, hit.right as usize)).collect();
        pairs.sort_unstable();
        assert!(!expected.is_empty() && expected.len() < rows * columns);
        assert_eq!(pairs, expected, "{kernel:?}");
        assert!(found.iter().all(|hit| hit.value == naive(hit.left as usize, hit.right as usize)));

        let small = |i: usize, j: usize| -> u64 {
            let minima = |(p, q): (&f64, &f64)| u64::from(fixed(*p).saturating_sub(fixed(*q)));
            p[i].iter().zip(&q[j]).map(minima).sum()
        };
        let left = Panels::<u32, LEFT>::pack(rows, outputs, 0, |i, o| fixed(p[i][o]));
        let right = Panels::<u32, RIGHT>::pack(columns, outputs, u32::MAX, |j, o| fixed(q[j][o]));
        let totals: Vec<u32> = p.iter().map(|row| row.iter().map(|&x| fixed(x)).sum()).collect();
        let mut found = Vec::new();
        let mut hits = Hits { threshold: 0, found: &mut found, band: None };
        block_u32(kernel, (&left, 0..left.len()), &totals, (&right, 0..right.len()), &mut hits);
        assert_eq!(found.len(), rows * columns);
        assert!(found.iter().all(|hit| u64::from(hit.value) == small(hit.left as usize, hit.right as usize)));

        let left = Panels::<u64, LEFT>::pack(rows, outputs, 0, |i, o| u64::from(fixed(p[i][o])) << 20);
        let right =
            Panels::<u64, RIGHT>::pack(columns, outputs, u64::MAX, |j, o| u64::from(fixed(q[j][o])) << 20);
        let totals: Vec<u64> = totals.iter().map(|&total| u64::from(total) << 20).collect();
        let mut found = Vec::new();
        let mut hits = Hits { threshold: 0, found: &mut found, band: None };
        block_u64(kernel, (&left, 0..left.len()), &totals, (&right, 0..right.len()), &mut hits);
        assert_eq!(found.len(), rows * columns);
        assert!(found.iter().all(|hit| hit.value == small(hit.left as usize, hit.right as usize) << 20));
    }
}

#[test]
fn a_canceled_search_stops() {
    let control = Control::new();
    let matrix = PmfMatrix::from_floats(vec![0.5, 0.5, 0.25, 0.75], 2, &control).unwrap();
    control.cancel();
    let level = Level::from_epsilon(0.1);
    assert!(maximum(&matrix, &level, &control).unwrap_err().is_canceled());
    assert!(verdict(&matrix, &level, &Rational::zero(), &control).unwrap_err().is_canceled());
}

/// At these levels and with these rows every pair with a small number was once taken for a pair within delta, or the
/// conversion of the float's radius to fixed point overflowed.
#[test]
fn verdicts_at_huge_levels_are_those_of_all_pairs() {
    let control = Control::new();
    let mut random = Generator(7);
    let mut rows: Vec<Vec<f64>> = (0..64).map(|_| (0..4).map(|_| random.uniform()).collect()).collect();
    rows[5][0] = 0.0;
    let matrix = PmfMatrix::from_floats(normalized(rows), 4, &control).unwrap();
    for epsilon in [60.0, 80.0, 90.0, 100.0, 200.0, 276.0] {
        let level = Level::from_epsilon(epsilon);
        let truth = largest(&exact(&matrix, &level), &level);
        let found = maximum(&matrix, &level, &control).unwrap().unwrap();
        assert_eq!(found.pair.difference.compare_with(&level, &truth), Ordering::Equal);
        for delta in [0.1, 0.5, 0.9, 0.999_999, 1.0] {
            let delta = rational_from_f64(delta);
            let expected = truth.compare(&level, &delta) != Ordering::Greater;
            assert_eq!(verdict(&matrix, &level, &delta, &control).unwrap().holds, expected, "{epsilon}");
        }
    }
}
