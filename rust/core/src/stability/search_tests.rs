//! Searches against every choice, each with its grid.

use super::*;
use crate::{
    exact::{Integer, Level, Natural, Rational},
    pmf::Pmf,
};
use std::collections::BTreeSet;

struct Walk(u64);

impl Walk {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

fn closeness() -> Closeness {
    Closeness {
        level: Arc::new(Level::rational(Rational::new(3.into(), 2.into()))),
        delta: Rational::new(1.into(), 10.into()),
    }
}

/// What keys are answered with: one of a few distributions, or none.
#[derive(Clone, Copy)]
struct Algorithm {
    seed: u64,
    /// How many of a hundred keys have another distribution, and how many none.
    odd: u64,
    failing: u64,
}

impl Algorithm {
    fn pmf(self, key: &Key) -> Option<Pmf<'static>> {
        let text = format!("{key:?} {}", self.seed);
        let hash = text.bytes().fold(1_469_598_103_934_665_603, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211).rotate_left(23)
        });
        let weights: [u32; 2] = match hash % 100 {
            place if place < self.failing => return None,
            place if place < self.failing + self.odd => [1, 3],
            place if place.is_multiple_of(2) => [1, 1],
            _ => [9, 11],
        };
        let weights: Vec<Natural> = weights.map(Natural::from).to_vec();
        let total = weights.iter().sum();
        Some(Pmf::from_weights(weights, total, "pmfs", &Control::new()).unwrap())
    }

    fn answer(self, keys: &[Key]) -> (Arc<PmfMatrix<'static>>, Vec<usize>) {
        let pmfs: Vec<_> = keys.iter().map(|key| self.pmf(key)).collect();
        let missing = (0..keys.len()).filter(|&row| pmfs[row].is_none()).collect();
        let filler = Pmf::from_weights(vec![1_u32.into(), 0_u32.into()], 1_u32.into(), "p", &Control::new());
        let filler = filler.unwrap();
        let pmfs = pmfs.into_iter().map(|pmf| pmf.unwrap_or_else(|| filler.clone())).collect();
        (Arc::new(PmfMatrix::from_pmfs(pmfs).unwrap()), missing)
    }
}

fn run(problem: &Problem, algorithm: Algorithm) -> Result<StableSearch> {
    let control = Control::new();
    let mut search = StableSearch::new(problem.clone())?;
    while let Some(question) = search.step(&control)? {
        let keys = match question {
            Question::Keys(keys) => keys,
            Question::Deletions { active, vectors } => {
                let counts: Vec<usize> = active.iter().map(|&kind| problem.counts[kind]).collect();
                keys_of(&Keys::Users, &active, &counts, &vectors)
            }
        };
        let (matrix, incompatible) = algorithm.answer(&keys);
        search.answer(matrix, incompatible)?;
    }
    Ok(search)
}

fn keys_of(keys: &Keys, active: &[usize], counts: &[usize], vectors: &[u16]) -> Vec<Key> {
    let rows = vectors.chunks_exact(counts.len());
    rows.map(|row| {
        let left: Vec<usize> = counts.iter().zip(row).map(|(count, &x)| count - usize::from(x)).collect();
        keys.of(active, &left)
    })
    .collect()
}

/// (r*, users dropped, types kept), by the grid of every choice.
fn brute(problem: &Problem, algorithm: Algorithm) -> Option<(usize, usize, Vec<usize>)> {
    let control = Control::new();
    let (counts, types) = (&problem.counts, problem.counts.len());
    let deletions = counts.iter().sum::<usize>() + problem.unusable - problem.kept;
    let keys = problem.keys.clone().unwrap_or(Keys::Users);
    let mut ordered: Vec<usize> = (0..types).collect();
    ordered.sort_by_key(|&kind| (counts[kind], kind));
    let allowed = problem.max_types.min(types);
    let mut found = BTreeSet::new();
    for set in (0..1_usize << types).filter(|set| types > 0 && set.count_ones() as usize == allowed) {
        let gone: Vec<usize> = (0..types).filter(|place| set >> place & 1 == 0).collect();
        let dropped = problem.unusable + gone.iter().map(|&place| counts[ordered[place]]).sum::<usize>();
        if dropped > problem.limit {
            continue;
        }
        let mut active: Vec<usize> =
            (0..types).filter(|place| set >> place & 1 == 1).map(|place| ordered[place]).collect();
        active.sort_unstable();
        let own: Vec<usize> = active.iter().map(|&kind| counts[kind]).collect();
        let family = StableFamily::new(&own, deletions - dropped, problem.limit - dropped).unwrap();
        let vectors = family.vectors(&control).unwrap();
        let (matrix, missing) = algorithm.answer(&keys_of(&keys, &active, &own, &vectors));
        let Closeness { level, delta } = &problem.closeness;
        family.mark_bad_pairs(&matrix, level, delta, &missing, &control).unwrap();
        if let Some(removed) = family.smallest_stable_size(&control).unwrap() {
            found.insert((dropped + removed, dropped, gone, active));
        }
    }
    found.pop_first().map(|(size, dropped, _, active)| (size, dropped, active))
}

fn problem(walk: &mut Walk) -> Problem {
    let counts: Vec<usize> = (0..=walk.below(7)).map(|_| [1, 1, 1, 2, 3, 6][walk.below(6)]).collect();
    let unusable = [0, 0, 0, 1, 2][walk.below(5)];
    let users = counts.iter().sum::<usize>() + unusable;
    let kept = 1 + walk.below(users);
    let types = counts.len();
    let keys = match walk.below(3) {
        0 => None,
        1 => Some(Keys::Users),
        _ => Some(Keys::Totals((0..types).map(|kind| Integer::from(3 * kind * kind)).collect())),
    };
    Problem {
        unusable,
        kept,
        limit: walk.below(users - kept + 1),
        max_types: 1 + walk.below(types),
        max_choices: None,
        keys,
        closeness: closeness(),
        counts,
    }
}

#[test]
fn the_smallest_sets_are_those_of_all_choices() {
    let mut walk = Walk(3);
    let (mut seen, mut done) = (BTreeSet::new(), Work::default());
    for seed in 0..3000 {
        let problem = problem(&mut walk);
        let odd = [0, 2, 10, 30, 60][walk.below(5)];
        let failing = [0, 0, 3, 10][walk.below(4)];
        let algorithm = Algorithm { seed, odd, failing };
        let search = run(&problem, algorithm).unwrap();
        let found = search.found().map(|found| (found.size, found.dropped, found.active.clone()));
        assert_eq!(found, brute(&problem, algorithm), "{seed} {problem:?}");
        if let Some(found) = search.found() {
            let counts: Vec<usize> = found.active.iter().map(|&kind| problem.counts[kind]).collect();
            assert_eq!(found.family.counts_by_type(), counts);
            assert_eq!(found.matrix.rows(), found.family.rows());
        }
        seen.insert(found.map(|(size, ..)| size));
        done.grids += search.work().grids;
        done.pools += search.work().pools;
        done.kept_sets = done.kept_sets.max(search.work().kept_sets);
    }
    assert!([None, Some(0), Some(1), Some(2), Some(3)].iter().all(|size| seen.contains(size)));
    assert!(done.grids > 1000 && done.pools > 1000 && done.kept_sets > 10, "{done:?}");
}

fn many(max_choices: Option<usize>) -> Problem {
    Problem {
        counts: [vec![1; 20], vec![8]].concat(),
        unusable: 0,
        kept: 8,
        limit: 18,
        max_types: 3,
        max_choices,
        keys: Some(Keys::Users),
        closeness: closeness(),
    }
}

#[test]
fn failures_are_learned_from() {
    let failing = Algorithm { seed: 1, odd: 0, failing: 100 };
    let search = run(&many(None), failing).unwrap();
    assert!(search.found().is_none());
    // The giant alone fails: it is in every choice, so that the first one ends the search.
    assert_eq!((search.tried, search.lessons, search.futile), (1, 1, 0));
    // Of the lone users none can be left out where all three kinds are needed: lessons end as futile ones.
    let mut problem = many(None);
    problem.keys =
        Some(Keys::Totals([vec![1; 20], vec![0]].concat().into_iter().map(Integer::from).collect()));
    problem.limit = 18;
    let all = run(&problem, Algorithm { seed: 1, odd: 0, failing: 0 }).unwrap();
    assert_eq!((all.tried, all.found().unwrap().size), (1, 18));
}

#[test]
fn more_choices_than_admitted_are_refused() {
    let algorithm = Algorithm { seed: 4, odd: 40, failing: 0 };
    let tried = run(&many(None), algorithm).unwrap().tried;
    assert!(tried > 1, "{tried}");
    assert!(run(&many(Some(tried)), algorithm).is_ok());
    let refused = run(&many(Some(tried - 1)), algorithm).unwrap_err().to_string();
    let expected = format!(
        "sets of up to 18 users may leave more than {} choices of 3 types; refusal_probability looks at those up to \
         the largest size that a release needs",
        in_groups(tried - 1)
    );
    assert_eq!(refused, expected);
    assert_eq!([0, 999, 1000, 22_481_940].map(in_groups), ["0", "999", "1,000", "22,481,940"]);
}

#[test]
fn questions_are_answered_once_and_in_full() {
    let control = Control::new();
    let algorithm = Algorithm { seed: 4, odd: 40, failing: 0 };
    let mut search = StableSearch::new(many(None)).unwrap();
    let (matrix, _) = algorithm.answer(&[Key::Total(1.into())]);
    assert!(search.answer(Arc::clone(&matrix), Vec::new()).is_err());
    let Some(Question::Keys(keys)) = search.step(&control).unwrap() else { panic!("keys are asked for") };
    assert!(search.step(&control).is_err());
    assert!(search.answer(matrix, Vec::new()).is_err());
    let (matrix, missing) = algorithm.answer(&keys);
    assert!(search.answer(Arc::clone(&matrix), vec![keys.len()]).is_err());
    search.answer(Arc::clone(&matrix), missing).unwrap();
    assert!(search.answer(matrix, Vec::new()).is_err());
    control.cancel();
    assert!(search.step(&control).unwrap_err().is_canceled());
}

#[test]
fn problems_are_checked() {
    let good = many(None);
    let wrong = |change: &dyn Fn(&mut Problem)| {
        let mut problem = good.clone();
        change(&mut problem);
        StableSearch::new(problem).unwrap_err().to_string()
    };
    assert!(wrong(&|p| p.kept = 29).starts_with("kept: 29 exceeds the number of users, 28"));
    assert!(wrong(&|p| p.limit = 21).starts_with("limit: 21 exceeds the 20 deletions"));
    assert!(wrong(&|p| p.max_types = 0).starts_with("max_types"));
    assert!(
        wrong(&|p| p.keys = Some(Keys::Totals(vec![1.into()]))).starts_with("values: has 1 values of 21")
    );
    assert!(wrong(&|p| p.unusable = usize::MAX).starts_with("counts: more than 2^32"));
    assert!(wrong(&|p| p.unusable = u32::MAX as usize).starts_with("counts: more than 2^32"));
    // Nobody usable, or too many who are not: nothing to ask.
    let mut search =
        StableSearch::new(Problem { counts: Vec::new(), unusable: 9, ..many(None) }).unwrap_err();
    assert!(search.to_string().starts_with("limit"));
    search = StableSearch::new(Problem { kept: 0, limit: 29, ..many(None) }).unwrap_err();
    assert!(search.to_string().starts_with("limit"));
    for (counts, unusable) in [(Vec::new(), 30), (vec![11], 19)] {
        let problem = Problem { counts, unusable, ..many(None) };
        let mut search = StableSearch::new(problem).unwrap();
        assert!(search.step(&Control::new()).unwrap().is_none() && search.found().is_none());
    }
}
