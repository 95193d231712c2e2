//! Dimensions of classes whose dimensions are known, and of all small ones by their definitions.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use std::collections::BTreeSet;
use userdp_core::{
    control::Control,
    dimension::{Concepts, VersionSpaces, growth, shattered},
};

const PLENTY: u64 = 1 << 40;

fn spaces(entries: &[u8], columns: usize) -> VersionSpaces {
    VersionSpaces::new(Concepts::new(entries, columns).unwrap())
}

fn littlestone(entries: &[u8], columns: usize) -> usize {
    spaces(entries, columns).littlestone(PLENTY, &Control::new()).unwrap()
}

fn thresholds(points: usize) -> Vec<u8> {
    (0..=points).flat_map(|cut| (0..points).map(move |point| u8::from(point < cut))).collect()
}

fn sparse_parities(bits: u32, weight: u32) -> (Vec<u8>, usize) {
    let points = 1_usize << bits;
    let supports = (0..points).filter(|support| support.count_ones() == weight);
    let entries =
        supports.flat_map(|support| (0..points).map(move |x| ((support & x).count_ones() % 2) as u8));
    (entries.collect(), points)
}

/// The definition: -1 of nothing, 0 of one concept, else the best split.
fn by_definition(concepts: &BTreeSet<Vec<u8>>, columns: usize) -> i32 {
    if concepts.len() <= 1 {
        return i32::try_from(concepts.len()).unwrap() - 1;
    }
    let split = |column: usize| {
        let (zeros, ones): (BTreeSet<_>, BTreeSet<_>) =
            concepts.iter().cloned().partition(|c| c[column] == 0);
        (!zeros.is_empty() && !ones.is_empty())
            .then(|| 1 + by_definition(&zeros, columns).min(by_definition(&ones, columns)))
    };
    (0..columns).filter_map(split).max().unwrap()
}

fn patterns(entries: &[u8], columns: usize, chosen: &[usize]) -> usize {
    let rows = entries.chunks(columns);
    rows.map(|row| chosen.iter().map(|&c| row[c]).collect::<Vec<u8>>()).collect::<BTreeSet<_>>().len()
}

#[test]
fn thresholds_have_a_logarithm() {
    for points in 1..=70 {
        assert_eq!(littlestone(&thresholds(points), points), (points + 1).ilog2() as usize, "{points}");
    }
    assert_eq!(littlestone(&thresholds(1023), 1023), 10);
}

#[test]
fn parities_of_three_of_twelve_bits() {
    let (entries, points) = sparse_parities(12, 3);
    assert_eq!(littlestone(&entries, points), 7);
}

#[test]
fn one_concept_and_constant_points() {
    assert_eq!(littlestone(&[1, 0, 1, 1, 0, 1], 3), 0);
    assert_eq!(littlestone(&[1, 1], 1), 0);
    assert_eq!(littlestone(&[1, 0, 1, 1], 2), 1);
}

#[test]
fn entries_and_shapes_are_checked() {
    for (entries, columns) in [(vec![], 3), (vec![0, 1], 0), (vec![0, 1, 2], 3), (vec![0, 1, 1], 2)] {
        assert!(Concepts::new(&entries, columns).is_err());
    }
}

#[test]
fn a_small_budget_is_refused_with_bounds() {
    let (entries, points) = sparse_parities(8, 3);
    let message = spaces(&entries, points).littlestone(3, &Control::new()).unwrap_err().to_string();
    assert!(message.contains("between 3 and 5") || message.contains("between 4 and 5"), "{message}");
    let concepts = Concepts::new(&entries, points).unwrap();
    assert!(
        shattered(&concepts, 2, &Control::new())
            .unwrap_err()
            .to_string()
            .contains("the VC dimension is between")
    );
    assert!(
        growth(&concepts, 4, 2, &Control::new())
            .unwrap_err()
            .to_string()
            .contains("growth function is between")
    );
    assert!(spaces(&entries, points).littlestone(PLENTY, &Control::new()).is_ok());
}

#[test]
fn work_can_be_canceled() {
    let control = Control::new();
    control.cancel();
    let (entries, points) = sparse_parities(8, 3);
    assert!(spaces(&entries, points).littlestone(PLENTY, &control).unwrap_err().is_canceled());
}

#[test]
fn the_standard_optimal_algorithm_finds_every_threshold() {
    let (points, control) = (31_usize, Control::new());
    let mut spaces = spaces(&thresholds(points), points);
    for cut in 0..=points {
        let mut sample = Vec::new();
        loop {
            let prediction = spaces.standard_optimal(&sample, PLENTY, &control).unwrap();
            assert_eq!(prediction.mistakes, sample.len());
            match (0..points).rev().find(|&point| prediction.labels[point] != (point < cut)) {
                Some(wrong) => sample.push((wrong, wrong < cut)),
                None => break,
            }
        }
        assert!(sample.len() <= 5);
    }
    assert!(spaces.standard_optimal(&[(points, true)], PLENTY, &control).is_err());
}

#[test]
fn explanations_hold_what_explains() {
    let (points, control) = (7_usize, Control::new());
    let mut spaces = spaces(&thresholds(points), points);
    let listed = spaces.explanations(&[(1, true), (5, false)], PLENTY, &control).unwrap();
    for cut in 2..=5 {
        assert!(listed.contains(&(0..points).map(|point| point < cut).collect()));
    }
    assert!(listed.is_sorted());
    assert!(spaces.explanations(&[(1, false), (5, true)], PLENTY, &control).unwrap().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn as_defined(rows in 1_usize..=14, columns in 1_usize..=7, bits in prop::collection::vec(0_u8..=1, 98)) {
        let entries = &bits[..rows * columns];
        let distinct: BTreeSet<Vec<u8>> = entries.chunks(columns).map(<[u8]>::to_vec).collect();
        let mut spaces = spaces(entries, columns);
        let dimension = spaces.littlestone(PLENTY, &Control::new()).unwrap();
        prop_assert_eq!(i32::try_from(dimension).unwrap(), by_definition(&distinct, columns));

        let tree = spaces.mistake_tree(PLENTY, &Control::new()).unwrap();
        prop_assert_eq!(tree.concepts.len(), 1 << dimension);
        for (leaf, &concept) in tree.concepts.iter().enumerate() {
            let mut node = leaf + tree.points.len();
            while node > 0 {
                let label = u8::from(node.is_multiple_of(2));
                node = (node - 1) / 2;
                prop_assert_eq!(entries[concept * columns + tree.points[node]], label);
            }
        }

        let control = Control::new();
        let concepts = Concepts::new(entries, columns).unwrap();
        let mut most = vec![0; columns + 1];
        for set in 0_usize..1 << columns {
            let chosen: Vec<usize> = (0..columns).filter(|c| set >> c & 1 == 1).collect();
            let shown = patterns(entries, columns, &chosen);
            most[chosen.len()] = shown.max(most[chosen.len()]);
        }
        for (k, &most) in most.iter().enumerate() {
            prop_assert_eq!(growth(&concepts, k, PLENTY, &control).unwrap(), most);
        }
        let vc = (0..=columns).filter(|&k| most[k] == 1 << k).max().unwrap();
        let chosen = shattered(&concepts, PLENTY, &control).unwrap();
        prop_assert_eq!(chosen.len(), vc);
        prop_assert_eq!(patterns(entries, columns, &chosen), 1 << vc);
    }
}
