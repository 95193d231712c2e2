//! Small pools against grids.

use super::*;
use crate::stability::StableFamily;

fn pmf_of(weights: &[u32]) -> Pmf<'static> {
    let weights: Vec<Natural> = weights.iter().map(|&weight| Natural::from(weight)).collect();
    let total = weights.iter().sum();
    Pmf::from_weights(weights, total, "pmfs", &Control::new()).unwrap()
}

fn closeness() -> Closeness {
    Closeness {
        level: Arc::new(Level::rational(Rational::new(3.into(), 2.into()))),
        delta: Rational::new(1.into(), 10.into()),
    }
}

/// A number made from a key and a seed.
fn digest(key: &Key, seed: u64) -> u64 {
    let text = format!("{key:?} {seed}");
    text.bytes().fold(1_469_598_103_934_665_603, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211).rotate_left(23)
    })
}

/// One of a few distributions, or none.
fn answer(key: &Key, seed: u64) -> Option<Pmf<'static>> {
    match digest(key, seed) % 30 {
        0 => Some(pmf_of(&[1, 3])),
        1 | 2 => Some(pmf_of(&[9, 11])),
        3 if seed.is_multiple_of(3) => None,
        place => Some(pmf_of(&[1 + u32::from(place.is_multiple_of(2)); 2])),
    }
}

fn table(keys: &[Key], seed: u64) -> (PmfMatrix<'static>, Vec<usize>) {
    let answers: Vec<_> = keys.iter().map(|key| answer(key, seed)).collect();
    let missing = (0..keys.len()).filter(|&row| answers[row].is_none()).collect();
    let pmfs = answers.into_iter().map(|pmf| pmf.unwrap_or_else(|| pmf_of(&[1, 0]))).collect();
    (PmfMatrix::from_pmfs(pmfs).unwrap(), missing)
}

fn decided(
    pools: &mut Pools,
    active: &[usize],
    counts: &[usize],
    kept: usize,
    room: usize,
    seed: u64,
) -> Needs {
    let control = Control::new();
    loop {
        match pools.needs(active, counts, kept, room, &closeness(), &control).unwrap() {
            Needs::Pmfs(keys) => {
                assert!(keys.iter().collect::<HashSet<_>>().len() == keys.len());
                let (matrix, missing) = table(&keys, seed);
                pools.learn(keys, &matrix, &missing, &control).unwrap();
            }
            needs => return needs,
        }
    }
}

#[test]
fn small_pools_are_decided_as_grids_are() {
    let control = Control::new();
    let mut seen = HashSet::new();
    for seed in 0..600_u64 {
        let draw =
            |place: u64, of: u64| usize::try_from(digest(&Key::Total(place.into()), seed) % of).unwrap();
        let counts: Vec<usize> =
            (0..=draw(0, 4)).map(|kind| [1, 1, 2, 3][draw(9 + kind as u64, 4)]).collect();
        let active: Vec<usize> = (0..counts.len()).map(|kind| 2 * kind + 1).collect();
        let users: usize = counts.iter().sum();
        let kept = 1 + draw(1, users as u64);
        let keys = if draw(2, 2) == 0 {
            Keys::Users
        } else {
            Keys::Totals((0..20_u32).map(|value| Integer::from(value * value)).collect())
        };
        let mut pools = Pools::new(keys.clone());
        let family = StableFamily::new(&counts, users - kept, users - kept).unwrap();
        let rows = family.vectors(&control).unwrap();
        let left = |deleted: &[u16]| -> Vec<usize> {
            counts.iter().zip(deleted).map(|(count, &deleted)| count - usize::from(deleted)).collect()
        };
        let asked: Vec<Key> =
            rows.chunks_exact(counts.len()).map(|row| keys.of(&active, &left(row))).collect();
        let (matrix, missing) = table(&asked, seed);
        let Closeness { level, delta } = closeness();
        family.mark_bad_pairs(&matrix, &level, &delta, &missing, &control).unwrap();
        let smallest = family.smallest_stable_size(&control).unwrap();
        seen.insert(smallest);
        for room in 1..=users - kept + 1 {
            let expected = smallest.is_none_or(|smallest| smallest >= room);
            let found = decided(&mut pools, &active, &counts, kept, room, seed);
            assert_eq!(found, Needs::Decided(expected), "{seed}");
        }
    }
    assert!([None, Some(0), Some(1), Some(2)].iter().all(|size| seen.contains(size)));
}

#[test]
fn below_the_level_of_one_even_equal_distributions_are_apart() {
    let control = Control::new();
    let half =
        Closeness { level: Arc::new(Level::rational(Rational::new(1.into(), 2.into()))), ..closeness() };
    let mut pools = Pools::new(Keys::Users);
    let Needs::Pmfs(keys) = pools.needs(&[0, 1], &[1, 1], 1, 2, &half, &control).unwrap() else {
        panic!("nothing is known")
    };
    let matrix = PmfMatrix::from_pmfs(vec![pmf_of(&[1, 1]); keys.len()]).unwrap();
    pools.learn(keys, &matrix, &[], &control).unwrap();
    assert_eq!(pools.needs(&[0, 1], &[1, 1], 1, 2, &half, &control).unwrap(), Needs::Decided(true));
    assert_eq!(pools.needs(&[0, 1], &[1, 1], 1, 3, &half, &control).unwrap(), Needs::Decided(false));
}

#[test]
fn keys_are_what_distributions_depend_on() {
    let totals = Keys::Totals([-3, 0, 5].map(Integer::from).to_vec());
    assert_eq!(totals.of(&[0, 2], &[2, 1]), Key::Total((-1).into()));
    assert_eq!(Keys::Users.of(&[1, 4, 6], &[2, 0, 1]), Key::Users(vec![(1, 2), (6, 1)]));
}

#[test]
fn vectors_are_all_up_to_the_counts() {
    assert_eq!(kept_vectors(&[1, 2], 2, 9), [[0, 2], [1, 1]]);
    assert_eq!(kept_vectors(&[1, 2], 4, 9), Vec::<Vec<usize>>::new());
    let all = kept_vectors(&[3, 3, 3], 4, 100);
    assert_eq!(all.len(), 12);
    assert!(all.is_sorted() && all.iter().all(|v| v.iter().sum::<usize>() == 4 && v.iter().all(|&x| x <= 3)));
    assert_eq!(kept_vectors(&[3, 3, 3], 4, 5), all[..5]);
}

#[test]
fn many_kept_sets_are_left_to_grids() {
    let mut pools = Pools::new(Keys::Users);
    // 65 kept sets of 64 of 64 + 64 users, then 64.
    assert_eq!(decided(&mut pools, &[0, 1], &[64, 64], 64, 1, 5), Needs::Large);
    assert_ne!(decided(&mut pools, &[0, 1], &[63, 63], 63, 1, 5), Needs::Large);
}

#[test]
fn what_takes_long_is_left_to_grids() {
    // Joins that all must be met by deleting one of twelve users: the product of the ways is large.
    let pairs: Vec<Vec<usize>> =
        (0..12).map(|pair| (0..24).map(|user| usize::from(user / 2 == pair)).collect()).collect();
    assert_eq!(unavoidable(&[1; 24], &pairs, 11), None);
    assert_eq!(unavoidable(&[1; 24], &pairs, 2), Some(true));
    assert_eq!(unavoidable(&[1; 6], &[vec![1, 1, 0, 0, 0, 0]], 1), Some(false));
    assert_eq!(unavoidable(&[2], &[vec![1]], 1), Some(true));
    assert_eq!(unavoidable(&[2], &[vec![1]], 2), Some(false));
}

#[test]
fn few_masses_are_remembered_and_the_answers_are_the_same() {
    let mut pools = Pools::new(Keys::Users);
    pools.most_masses = 3;
    for seed in [5, 6] {
        let mut fresh = Pools::new(Keys::Users);
        for first in 0..6 {
            for second in first + 1..7 {
                pools.tidy();
                assert!(pools.known.examples.len() * 2 <= 3);
                let ours = decided(&mut pools, &[first, second], &[2, 2], 2, 1, 5);
                assert_eq!(ours, decided(&mut fresh, &[first, second], &[2, 2], 2, 1, 5), "{seed}");
            }
        }
    }
}

#[test]
fn answers_have_the_rows_that_were_asked_for() {
    let (matrix, _) = table(&[Key::Total(1.into()), Key::Total(2.into())], 5);
    assert!(check_rows(&matrix, &[1], 2).is_ok());
    assert!(check_rows(&matrix, &[2], 2).is_err());
    assert!(check_rows(&matrix, &[], 3).is_err());
}
