//! Stable families, hitting sets and windows against brute force over explicit sets of users.
#![allow(clippy::unwrap_used, clippy::type_complexity)]

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::Zero;
use proptest::prelude::*;
use rayon::prelude::*;
use std::collections::BTreeMap;
use userdp_core::{
    control::Control,
    exact::rounding::rational_from_f64,
    stability::{Mixture, StableFamily, WindowTotal, smallest_window},
};

fn control() -> Control {
    Control::new()
}

/// Users of up to four types, deletions, and indices that pick bad pairs of deletion vectors.
#[derive(Debug, Clone)]
struct Instance {
    counts: Vec<usize>,
    deletions: usize,
    picks: Vec<(prop::sample::Index, prop::sample::Index)>,
}

fn instances() -> impl Strategy<Value = Instance> {
    let counts = prop_oneof![
        prop::collection::vec(0_usize..4, 1..4),
        prop::collection::vec(Just(1_usize), 1..8),
        prop::collection::vec(0_usize..8, 1..3),
    ]
    .prop_filter("too many users", |counts| (1..9).contains(&counts.iter().sum::<usize>()));
    counts.prop_flat_map(|counts| {
        let users = counts.iter().sum::<usize>();
        let picks = prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 0..6);
        (Just(counts), 0..=users, picks).prop_map(|(counts, deletions, picks)| Instance {
            counts,
            deletions,
            picks,
        })
    })
}

/// Marked pairs of deletion vectors.
type Marked = Vec<(Vec<u16>, Vec<u16>)>;

impl Instance {
    /// The family, and its marked pairs.
    fn family(&self) -> (StableFamily, Marked) {
        let family = StableFamily::new(&self.counts, self.deletions, self.deletions).unwrap();
        let rows = family.vectors(&control()).unwrap();
        let rows: Vec<&[u16]> = rows.chunks_exact(self.counts.len()).collect();
        assert_eq!(rows.len(), family.rows());
        let pairs: Marked =
            self.picks.iter().map(|(a, b)| (a.get(&rows).to_vec(), b.get(&rows).to_vec())).collect();
        pairs.par_iter().for_each(|(a, b)| {
            family.mark(a, b);
            assert!(family.covers(a, b));
        });
        (family, pairs)
    }

    fn users(&self) -> usize {
        self.counts.iter().sum()
    }

    /// How many users of each type a set holds, users being numbered type by type.
    fn vector(&self, set: u32) -> Vec<usize> {
        let mut first = 0;
        let of_type = |&count: &usize| {
            let mask = ((1_u32 << count) - 1) << first;
            first += count;
            (set & mask).count_ones() as usize
        };
        self.counts.iter().map(of_type).collect()
    }

    fn sets(&self, size: usize) -> Vec<u32> {
        (0..1_u32 << self.users()).filter(|set| set.count_ones() as usize == size).collect()
    }

    /// Pairs of sets of all deletions that are marked.
    fn bad(&self, pairs: &[(Vec<u16>, Vec<u16>)]) -> Vec<(u32, u32)> {
        let marked = |set: u32, vector: &[u16]| {
            self.vector(set).iter().zip(vector).all(|(&x, &y)| x == usize::from(y))
        };
        let sets = self.sets(self.deletions);
        let mut bad = Vec::new();
        for (a, b) in pairs {
            for &first in sets.iter().filter(|&&set| marked(set, a)) {
                bad.extend(sets.iter().filter(|&&set| marked(set, b)).map(|&second| (first, second)));
            }
        }
        bad
    }
}

fn is_stable(set: u32, bad: &[(u32, u32)]) -> bool {
    bad.iter().all(|&(first, second)| set & !(first & second) != 0)
}

fn rational(numerator: &BigUint, denominator: &BigUint) -> BigRational {
    BigRational::new(BigInt::from(numerator.clone()), BigInt::from(denominator.clone()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn families_are_those_of_explicit_sets(instance in instances(), seed in any::<u64>()) {
        let (family, pairs) = instance.family();
        let bad = instance.bad(&pairs);
        let layers: Vec<Vec<u32>> = (0..=instance.deletions)
            .map(|size| instance.sets(size).into_iter().filter(|&set| is_stable(set, &bad)).collect())
            .collect();
        let sizes: Vec<BigUint> = layers.iter().map(|layer| BigUint::from(layer.len())).collect();
        prop_assert_eq!(&family.layer_sizes(&control()).unwrap(), &sizes);
        prop_assert_eq!(family.smallest_stable_size(&control()).unwrap(), layers.iter().position(|l| !l.is_empty()));
        for size in 0..=instance.deletions {
            for set in instance.sets(size) {
                prop_assert_eq!(family.is_stable(&instance.vector(set)), is_stable(set, &bad));
            }
        }

        // The distribution of T's vector, for weights r + 1 or 0 on the sizes that have stable sets.
        let weights: Vec<BigUint> = layers.iter().enumerate().map(|(r, layer)| {
            BigUint::from(if layer.is_empty() || seed >> (r % 64) & 1 == 0 { 0 } else { r + 1 })
        }).collect();
        let total = weights.iter().sum::<BigUint>() + 1_u8;
        let mut expected: BTreeMap<Vec<usize>, BigRational> = BTreeMap::new();
        for (r, layer) in layers.iter().enumerate().filter(|(r, _)| !weights[*r].is_zero()) {
            for &s in layer {
                let above: Vec<u32> = instance.sets(instance.deletions).into_iter().filter(|t| s & !t == 0).collect();
                let share = rational(&weights[r], &(&total * layer.len() * above.len()));
                for t in above {
                    *expected.entry(instance.vector(t)).or_insert_with(BigRational::zero) += &share;
                }
            }
        }
        let mixture = Mixture::new(weights, total).unwrap();
        let (exact, common) = family.exact_distribution(&mixture, &control()).unwrap();
        let distribution = family.distribution(&mixture, &control()).unwrap();
        let error = rational_from_f64(distribution.relative_error);
        let rows = family.vectors(&control()).unwrap();
        for (index, row) in rows.chunks_exact(instance.counts.len()).enumerate() {
            let row: Vec<usize> = row.iter().map(|&x| usize::from(x)).collect();
            let mass = expected.remove(&row).unwrap_or_else(BigRational::zero);
            prop_assert_eq!(rational(&exact[index], &common), mass.clone());
            let float = rational_from_f64(distribution.masses[index]);
            let off = if float > mass { &float - &mass } else { &mass - &float };
            prop_assert!(off <= &error * &mass);
        }
        prop_assert!(expected.is_empty());
    }

    #[test]
    fn marking_from_many_threads_is_marking_in_turn(instance in instances()) {
        let (family, pairs) = instance.family();
        let again = StableFamily::new(&instance.counts, instance.deletions, instance.deletions).unwrap();
        for (a, b) in &pairs {
            let covered = again.covers(a, b);
            prop_assert_eq!(again.mark(a, b), !covered);
        }
        for size in 0..=instance.deletions {
            for set in instance.sets(size) {
                let vector = instance.vector(set);
                prop_assert_eq!(family.is_stable(&vector), again.is_stable(&vector));
            }
        }
    }

    #[test]
    fn windows_are_best_and_their_distributions_exact(
        mut values in prop::collection::vec(-9_i64..10, 1..9),
        share in 0.0..=1.0_f64,
        distance in 0_u64..12,
    ) {
        values.sort_unstable();
        let users = values.len();
        let deletions = (0..=users).rfind(|&d| d as f64 <= share * users as f64).unwrap();
        let kept = users - deletions;
        let total = |set: u32| (0..users).filter(|i| set >> i & 1 == 1).map(|i| values[i]).sum::<i64>();
        let subsets = |pool: u32| (0..1_u32 << users)
            .filter(move |set| set & !pool == 0 && set.count_ones() as usize == kept);
        let best = (0..1_u32 << users)
            .filter(|pool| {
                let totals: Vec<i64> = subsets(*pool).map(total).collect();
                let range = totals.iter().max().zip(totals.iter().min());
                range.is_some_and(|(max, min)| max.abs_diff(*min) <= distance)
            })
            .map(|pool| users - pool.count_ones() as usize)
            .min();
        let found = smallest_window(&values, deletions, distance, deletions, &control()).unwrap();
        prop_assert_eq!(found.map(|(r, _)| r), best);
        let (r, start) = found.unwrap();

        let pool = ((1_u32 << (users - r)) - 1) << start;
        let mut expected: BTreeMap<i128, u32> = BTreeMap::new();
        for set in subsets(pool) {
            *expected.entry(total(set).into()).or_default() += 1;
        }
        let distribution = WindowTotal::new(&values, deletions, start, r).unwrap();
        let (weights, ways) = distribution.exact(&control()).unwrap();
        let (masses, error) = distribution.floats(&control()).unwrap();
        prop_assert_eq!(weights.iter().sum::<BigUint>(), ways.clone());
        prop_assert_eq!(masses.len(), weights.len());
        for (index, weight) in weights.iter().enumerate() {
            let at = distribution.totals().first + i128::from(distribution.totals().step) * i128::try_from(index).unwrap();
            prop_assert_eq!(weight, &BigUint::from(expected.remove(&at).unwrap_or(0)));
            let (mass, float) = (rational(weight, &ways), rational_from_f64(masses[index]));
            let off = if float > mass { &float - &mass } else { &mass - &float };
            prop_assert!(off <= rational_from_f64(error) * mass);
        }
        prop_assert!(expected.is_empty());
    }
}

#[test]
fn work_stops_when_canceled() {
    let stopped = Control::new();
    stopped.cancel();
    let family = StableFamily::new(&[9, 9, 9], 8, 4).unwrap();
    assert!(family.vectors(&stopped).is_err_and(|error| error.is_canceled()));
    assert!(family.layer_sizes(&stopped).is_err_and(|error| error.is_canceled()));
    let mixture = Mixture::new(vec![1_u8.into()], 1_u8.into()).unwrap();
    assert!(family.distribution(&mixture, &stopped).is_err_and(|error| error.is_canceled()));
    assert!(smallest_window(&[1, 2], 1, 0, 1, &stopped).is_err_and(|error| error.is_canceled()));
}
