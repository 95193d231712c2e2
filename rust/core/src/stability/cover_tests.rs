//! Covers against all sets of users.

use super::*;

/// A walk through the residues modulo 2^64, for graphs.
struct Walk(u64);

impl Walk {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn graph(walk: &mut Walk, n: usize, degree: u64, of: u64, loops: u64) -> Vec<u128> {
    let mut apart = vec![0_u128; n];
    for a in 0..n {
        for b in a..n {
            let edge = if a == b { walk.below(100) < loops } else { walk.below(of) < degree };
            if edge {
                apart[a] |= 1 << b;
                apart[b] |= 1 << a;
            }
        }
    }
    apart
}

fn covers(apart: &[u128], cover: u128) -> bool {
    apart.iter().enumerate().all(|(vertex, others)| cover >> vertex & 1 == 1 || others & !cover == 0)
}

#[test]
fn covers_are_smallest_of_all_sets() {
    let control = Control::new();
    let mut walk = Walk(8);
    for _ in 0..1500 {
        let n = usize::try_from(walk.below(10)).unwrap();
        let density = walk.below(11);
        let apart = graph(&mut walk, n, density, 10, 5);
        let smallest =
            (0..1_u128 << n).filter(|&set| covers(&apart, set)).map(u128::count_ones).min().unwrap();
        for limit in 0..=n + 1 {
            let found = Search { apart: &apart, control: &control, steps: 0 }.smallest(limit).unwrap();
            assert_eq!(found.is_none(), smallest as usize > limit);
            assert!(found.is_none_or(|cover| covers(&apart, cover) && cover.count_ones() == smallest));
        }
    }
}

/// The sum of S(k) = 1 + S(k - 1) + S(k - 3) for k = 0, ..., limit: the bound of the plan.
fn most_steps(limit: usize) -> usize {
    let mut steps = vec![1, 1, 1];
    for k in 3..limit + 4 {
        steps.push(1 + steps[k - 1] + steps[k - 3]);
    }
    steps[3..].iter().sum()
}

#[test]
fn covers_take_as_many_steps_as_are_planned() {
    let control = Control::new();
    assert!(most_steps(36) <= 1 << 24 && most_steps(37) > 1 << 24);
    for n in [45_usize, 73] {
        let mut walk = Walk(n as u64);
        for degree in [2, 3, 4, 6, 12, 40] {
            for alone in [0, n / 4, n / 3] {
                let mut apart = graph(&mut walk, n - alone, degree, n as u64, 0);
                apart.resize(n, 0);
                let mut search = Search { apart: &apart, control: &control, steps: 0 };
                search.smallest(n / 2).unwrap();
                assert!(search.steps <= most_steps(n / 2), "{} steps", search.steps);
            }
        }
    }
}

#[test]
fn known_graphs_take_one_step_for_each_size() {
    let control = Control::new();
    // A circle of seven and a path of five, which need no choice: one step for every size that is tried.
    let edge = |apart: &mut Vec<u128>, a: usize, b: usize| {
        apart[a] |= 1 << b;
        apart[b] |= 1 << a;
    };
    let mut apart = vec![0; 12];
    (0..7).for_each(|a| edge(&mut apart, a, (a + 1) % 7));
    (7..11).for_each(|a| edge(&mut apart, a, a + 1));
    let mut search = Search { apart: &apart, control: &control, steps: 0 };
    assert_eq!(search.smallest(12).unwrap().unwrap().count_ones(), 4 + 2);
    assert_eq!(search.steps, 7);
}

/// The pmf of a user on whom the algorithm does not fail.
#[allow(clippy::unnecessary_wraps)]
fn pmf(weights: &[u32]) -> Option<Pmf<'static>> {
    let weights: Vec<Natural> = weights.iter().map(|&weight| Natural::from(weight)).collect();
    let total = weights.iter().sum();
    Some(Pmf::from_weights(weights, total, "pmfs", &Control::new()).unwrap())
}

#[test]
fn users_are_apart_as_their_pmfs_are() {
    let control = Control::new();
    let level = Level::rational(Rational::new(1.into(), 1.into()));
    let delta = Rational::new(1.into(), 10.into());
    let near = || pmf(&[11, 9]);
    // 1 : 1 twice, however written; near both; far from all; failing.
    let pmfs = [pmf(&[1, 1]), pmf(&[2, 2]), near(), pmf(&[1, 9]), None, pmf(&[13, 7])];
    let apart = incompatible(&pmfs, &level, &delta, &control).unwrap();
    assert_eq!(apart, [0b10_1000, 0b10_1000, 0b1000, 0b10_0111, 0b1_0000, 0b1011]);
    let left = |limit| outside_smallest_cover(&pmfs, &level, &delta, limit, &control).unwrap();
    assert_eq!(left(3), Some(vec![0, 1, 2]));
    assert_eq!(left(2), None);
    // Below e^0 even equal ones are apart, each from itself.
    let below = Level::rational(Rational::new(1.into(), 2.into()));
    let strict = Rational::new(1.into(), 10.into());
    let equal = [pmf(&[1, 1]), pmf(&[1, 1])];
    assert_eq!(incompatible(&equal, &below, &strict, &control).unwrap(), [0b11, 0b11]);
    assert_eq!(outside_smallest_cover(&equal, &below, &strict, 2, &control).unwrap(), Some(vec![]));
}

#[test]
fn what_cannot_be_decided_is_refused() {
    let control = Control::new();
    let level = Level::rational(Rational::new(1.into(), 1.into()));
    let delta = Rational::new(0.into(), 1.into());
    let many = vec![pmf(&[1]); 129];
    let refused = outside_smallest_cover(&many, &level, &delta, 1, &control).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }));
    let all = outside_smallest_cover(&many[..128], &level, &delta, 1, &control).unwrap();
    assert_eq!(all.map(|left| left.len()), Some(128));
    let uneven = [pmf(&[1, 1]), pmf(&[1, 1, 1])];
    assert!(outside_smallest_cover(&uneven, &level, &delta, 1, &control).is_err());
    control.cancel();
    assert!(outside_smallest_cover(&many[..2], &level, &delta, 1, &control).unwrap_err().is_canceled());
}
