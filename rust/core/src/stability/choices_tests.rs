//! Choices against all subsets.

use super::*;
use std::collections::BTreeSet;

struct Walk(u64);

impl Walk {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// (users dropped, types dropped, types kept), in order.
fn all(sizes: &[usize], kept: usize, bound: usize) -> Vec<(usize, Vec<usize>, Vec<usize>)> {
    let sets = (0..1_usize << sizes.len()).filter(|set| set.count_ones() as usize == kept);
    let ways = sets.map(|set| {
        let (left, gone): (Vec<usize>, Vec<usize>) =
            (0..sizes.len()).partition(|place| set >> place & 1 == 1);
        (gone.iter().map(|&place| sizes[place]).sum(), gone, left)
    });
    let mut ways: Vec<_> = ways.filter(|&(users, ..)| users <= bound).collect();
    ways.sort();
    ways
}

fn sizes(walk: &mut Walk) -> Vec<usize> {
    let mut sizes: Vec<usize> = (0..=walk.below(9)).map(|_| [1, 1, 2, 3, 5, 9][walk.below(6)]).collect();
    sizes.sort_unstable();
    sizes
}

#[test]
fn choices_come_in_order_and_without_those_excluded() {
    let control = Control::new();
    let mut walk = Walk(7);
    for _ in 0..3000 {
        let sizes = sizes(&mut walk);
        let (kept, bound) = (1 + walk.below(sizes.len()), walk.below(sizes.iter().sum::<usize>() + 1));
        let excluded: Vec<BTreeSet<usize>> = (0..walk.below(3))
            .map(|_| (0..=walk.below(3)).map(|_| walk.below(sizes.len())).collect())
            .collect();
        let mut choices = Choices::new(sizes.clone(), kept, bound);
        for places in &excluded {
            choices.exclude(&places.iter().copied().collect::<Vec<_>>());
        }
        let mut found = Vec::new();
        for users in 0..=bound {
            choices.begin(users);
            while let Some(places) = choices.next(&control).unwrap() {
                found.push((users, places));
            }
        }
        let fails = |left: &Vec<usize>| excluded.iter().any(|places| places.iter().all(|p| left.contains(p)));
        let expected = all(&sizes, kept, bound).into_iter().filter(|(_, _, left)| !fails(left));
        assert_eq!(found, expected.map(|(users, _, left)| (users, left)).collect::<Vec<_>>());
    }
}

#[test]
fn types_are_droppable_where_a_choice_drops_them() {
    let mut walk = Walk(11);
    for _ in 0..2000 {
        let sizes = sizes(&mut walk);
        let (kept, bound) = (1 + walk.below(sizes.len()), walk.below(sizes.iter().sum::<usize>() + 1));
        let choices = Choices::new(sizes.clone(), kept, bound);
        let ways = all(&sizes, kept, bound);
        assert_eq!(choices.over, ways.is_empty());
        for place in 0..sizes.len() {
            let dropped = ways.iter().any(|(_, gone, _)| gone.contains(&place));
            // Where nothing is dropped by any choice, none of the answers matters.
            assert!(
                ways.is_empty() || choices.droppable(place) == dropped,
                "{sizes:?} {kept} {bound} {place}"
            );
        }
    }
}

#[test]
fn what_is_excluded_between_two_choices_counts_from_the_next_walk_on() {
    let control = Control::new();
    let mut walk = Walk(13);
    for _ in 0..2000 {
        let sizes = sizes(&mut walk);
        let (kept, bound) = (1 + walk.below(sizes.len()), sizes.iter().sum());
        let ways = all(&sizes, kept, bound);
        let mut choices = Choices::new(sizes.clone(), kept, bound);
        let mut excluded: Vec<Vec<usize>> = Vec::new();
        let fails = |excluded: &[Vec<usize>], left: &[usize]| {
            excluded.iter().any(|places| places.iter().all(|p| left.contains(p)))
        };
        let mut expected = ways.iter();
        for users in 0..=bound {
            choices.begin(users);
            let before = excluded.clone();
            while let Some(places) = choices.next(&control).unwrap() {
                // What was excluded since the walk began may come all the same where the walk is inside of it.
                assert!(!fails(&before, &places));
                let next = expected.find(|(_, _, left)| *left == places || !fails(&excluded, left)).unwrap();
                assert_eq!((users, &places), (next.0, &next.2));
                if walk.below(3) == 0 {
                    let some: Vec<usize> = places.into_iter().filter(|_| walk.below(2) == 0).collect();
                    choices.exclude(&some);
                    excluded.push(some);
                }
            }
        }
        assert!(expected.all(|(_, _, left)| fails(&excluded, left)));
    }
}

#[test]
fn nothing_and_too_much() {
    let control = Control::new();
    let mut choices = Choices::new(vec![1, 2], 1, 2);
    choices.begin(4);
    assert_eq!(choices.next(&control).unwrap(), None);
    choices.begin(1);
    control.cancel();
    assert!(choices.next(&control).unwrap_err().is_canceled());
    let mut choices = Choices::new(Vec::new(), 0, 2);
    choices.begin(0);
    assert_eq!(choices.next(&Control::new()).unwrap(), None);
}
