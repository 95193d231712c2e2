//! Bad pairs against a loop over all pairs, with so few pairs in a batch that every shortcut is taken.

use super::*;
use crate::divergence::hockey_stick::is_indistinguishable;

/// Every vector s up to `counts`, of any size.
fn all_vectors(counts: &[usize]) -> Vec<Vec<u16>> {
    counts.iter().fold(vec![Vec::new()], |shorter, &count| {
        let values = 0..=u16::try_from(count).unwrap();
        let longer = |s: Vec<u16>| values.clone().map(move |x| [s.clone(), vec![x]].concat());
        shorter.into_iter().flat_map(longer).collect()
    })
}

fn below(s: &[u16], a: &[u16], b: &[u16]) -> bool {
    s.iter().zip(a).zip(b).all(|((s, a), b)| s <= a && s <= b)
}

fn size(s: &[u16]) -> usize {
    s.iter().map(|&x| usize::from(x)).sum()
}

/// Pmfs that move with a linear statistic of the deletions, each type in its own direction.
fn distributions(vectors: &[u16], slopes: [f64; 3], control: &Control) -> PmfMatrix<'static> {
    let masses = vectors.chunks_exact(3).flat_map(|vector| {
        let x: f64 = vector.iter().zip(slopes).map(|(&t, slope)| f64::from(t) * slope).sum();
        let y: f64 = vector
            .iter()
            .zip([slopes[1], slopes[2], slopes[0]])
            .map(|(&t, slope)| f64::from(t) * slope)
            .sum();
        let weights = [1.0, x.exp(), y.exp()];
        let total: f64 = weights.iter().sum();
        weights.map(|weight| weight / total)
    });
    PmfMatrix::from_floats(masses.collect::<Vec<f64>>(), 3, control).unwrap()
}

#[test]
fn marked_sets_are_those_of_all_pairs() {
    let control = Control::new();
    let level = Level::from_epsilon(0.1);
    let mut smallest_sizes = std::collections::BTreeSet::new();
    for (counts, deletions, limit) in [([20, 18, 16], 18, 9), ([30, 5, 17], 20, 8), ([19, 19, 19], 19, 19)] {
        let every = all_vectors(&counts);
        for slopes in [[0.01, -0.02, 0.015], [0.05, 0.0, -0.03], [0.2, -0.1, 0.0], [1.0, 2.0, -3.0]] {
            for delta in [(1, 20), (1, 1000)] {
                let delta = Rational::new(delta.0.into(), delta.1.into());
                let family = StableFamily::new(&counts, deletions, limit).unwrap();
                let vectors = family.vectors(&control).unwrap();
                let matrix = distributions(&vectors, slopes, &control);
                let vector = |row: usize| &vectors[3 * row..][..3];
                let mut unstable = vec![false; every.len()];
                for i in 0..matrix.rows() {
                    for j in 0..i {
                        let within =
                            is_indistinguishable(&matrix.pmf(i), &matrix.pmf(j), &level, &delta, &control);
                        if !within.unwrap().holds {
                            for (unstable, s) in unstable.iter_mut().zip(&every) {
                                *unstable |= below(s, vector(i), vector(j));
                            }
                        }
                    }
                }
                family.mark_bad_pairs(&matrix, &level, &delta, &[], &control).unwrap();
                for (&unstable, s) in unstable.iter().zip(&every) {
                    let wide: Vec<usize> = s.iter().map(|&x| usize::from(x)).collect();
                    if size(s) <= limit {
                        assert_eq!(family.is_stable(&wide), !unstable, "{counts:?} {slopes:?} {s:?}");
                    }
                }
                let expected =
                    every.iter().zip(&unstable).filter(|(_, unstable)| !**unstable).map(|(s, _)| size(s));
                let expected = expected.min().filter(|&smallest| smallest <= limit);
                assert_eq!(family.smallest_stable_size(&control).unwrap(), expected);
                smallest_sizes.insert(expected);

                // What counts as settled is unstable, and everything of the largest size that is unstable counts.
                let lowest: Vec<AtomicU16> =
                    family.lowest_stable(&control).unwrap().into_iter().map(AtomicU16::new).collect();
                for row in 0..matrix.rows() {
                    let (a, b) = (vector(row), vector((row * 7 + 3) % matrix.rows()));
                    let common: Vec<u16> = a.iter().zip(b).map(|(&x, &y)| x.min(y)).collect();
                    if size(&common) >= limit {
                        let mut relevant = every.iter().zip(&unstable);
                        let all = relevant.all(|(s, &bad)| bad || size(s) > limit || !below(s, a, b));
                        assert_eq!(family.covers_up_to_limit(a, b, &lowest), all);
                    }
                }
            }
        }
    }
    assert!(smallest_sizes.len() > 5, "{smallest_sizes:?}");
}
