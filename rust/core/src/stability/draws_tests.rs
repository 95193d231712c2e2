//! What is drawn, against the weights that it must be drawn by.

use super::*;
use crate::{
    control::Control,
    exact::{Integer, Rational},
};

fn matrix() -> PmfMatrix<'static> {
    let rows = [[1_u32, 2, 3], [4, 0, 2], [0, 0, 5]].map(|weights| {
        let weights: Vec<Natural> = weights.map(Natural::from).to_vec();
        let total = weights.iter().sum();
        Pmf::from_weights(weights, total, "pmfs", &Control::new()).unwrap()
    });
    PmfMatrix::from_pmfs(rows.to_vec()).unwrap()
}

fn naturals(weights: &[u32]) -> Vec<Natural> {
    weights.iter().map(|&weight| Natural::from(weight)).collect()
}

fn seeded(seed: u32) -> Source {
    Source::seeded(&Natural::from(seed)).unwrap()
}

#[test]
fn masses_are_in_lowest_terms() {
    let matrix = matrix();
    assert_eq!(lowest_terms(&matrix.pmf(1), &Control::new()).unwrap(), naturals(&[2, 0, 1]));
    assert_eq!(lowest_terms(&matrix.pmf(2), &Control::new()).unwrap(), naturals(&[0, 0, 1]));
    let floats = Pmf::from_floats(vec![0.375, 0.5, 0.125], "p").unwrap();
    assert_eq!(lowest_terms(&floats, &Control::new()).unwrap(), naturals(&[3, 4, 1]));
}

#[test]
fn an_output_is_drawn_by_its_masses_in_lowest_terms() {
    let matrix = matrix();
    for seed in 0..50 {
        for (row, weights) in [[1, 2, 3], [2, 0, 1], [0, 0, 1]].iter().enumerate() {
            let (mut ours, mut theirs) = (seeded(seed), seeded(seed));
            assert_eq!(
                draw_output(&matrix, row, &mut ours, &Control::new()).unwrap(),
                theirs.weighted(&naturals(weights)).unwrap()
            );
            assert_eq!(ours.bits().unwrap(), theirs.bits().unwrap());
        }
    }
    assert!(draw_output(&matrix, 3, &mut seeded(1), &Control::new()).is_err());
}

/// How often each output comes, of 6,000 draws.
fn counted(mut draw: impl FnMut(&mut Source) -> usize) -> [f64; 3] {
    let mut source = seeded(7);
    let mut counts = [0.0; 3];
    for _ in 0..6000 {
        counts[draw(&mut source)] += 1.0;
    }
    counts
}

/// Whether counts are near those of these probabilities, of 6,000 draws.
fn near(counts: [f64; 3], probabilities: [f64; 3]) -> bool {
    counts.iter().zip(probabilities).all(|(count, p)| (count - 6000.0 * p).abs() < 200.0)
}

#[test]
fn rows_are_uniform() {
    let matrix = matrix();
    let rows = [[1.0 / 6.0, 1.0 / 3.0, 0.5], [2.0 / 3.0, 0.0, 1.0 / 3.0], [0.0, 0.0, 1.0]];
    let mean = [0, 1, 2].map(|output| rows.iter().map(|row| row[output] / 3.0).sum());
    assert!(near(counted(|source| draw_of_rows(&matrix, source, &Control::new()).unwrap()), mean));
}

#[test]
fn a_window_is_drawn_by_the_total_of_those_kept() {
    let matrix = matrix();
    // Two of 0, 1, 1: the total is 1 twice as often as 2.
    let mean = [4.0 / 9.0, 0.0, 2.0 / 9.0 + 1.0 / 3.0];
    assert!(near(
        counted(|source| draw_of_window(&[0, 1, 1], 2, &matrix, source, &Control::new()).unwrap()),
        mean
    ));
    assert!(draw_of_window(&[0, 1, 1], 4, &matrix, &mut seeded(1), &Control::new()).is_err());
    assert!(draw_of_window(&[-1, -1], 2, &matrix, &mut seeded(1), &Control::new()).is_err());
    assert!(draw_of_window(&[2, 2], 2, &matrix, &mut seeded(1), &Control::new()).is_err());
}

#[test]
fn a_family_is_drawn_by_the_row_of_its_deletions() {
    let control = Control::new();
    let family = StableFamily::new(&[2, 2], 2, 2).unwrap();
    let matrix = matrix();
    family.mark(&[2, 0], &[1, 1]);
    let vectors = family.vectors(&control).unwrap();
    for seed in 0..200 {
        for r in 1..=2 {
            let (mut ours, mut theirs) = (seeded(seed), seeded(seed));
            let (_, t) = family.sample(r, &mut |bound| theirs.below(bound), &control).unwrap();
            let same = |v: &[u16]| v.iter().zip(&t).all(|(&x, &y)| usize::from(x) == y);
            let row = vectors.chunks_exact(2).position(same).unwrap();
            assert_eq!(
                family.draw(r, &matrix, &mut ours, &control).unwrap(),
                draw_output(&matrix, row, &mut theirs, &Control::new()).unwrap()
            );
        }
    }
    assert!(family.draw(0, &matrix, &mut seeded(1), &control).is_err());
    let other = StableFamily::new(&[3, 3], 3, 2).unwrap();
    assert!(matches!(
        other.draw(0, &matrix, &mut seeded(1), &control),
        Err(Error::InvalidArgument { argument: "matrix", .. })
    ));
    control.cancel();
    assert!(family.draw(1, &matrix, &mut seeded(1), &control).unwrap_err().is_canceled());
}

#[test]
fn long_masses_lose_nothing() {
    let tiny = Rational::new(1.into(), Integer::one() << 3000_u32);
    let weights = vec![tiny.numer().magnitude().clone(), (tiny.denom() - Integer::one()).magnitude().clone()];
    let pmf =
        Pmf::from_weights(weights.clone(), tiny.denom().magnitude().clone(), "p", &Control::new()).unwrap();
    assert_eq!(lowest_terms(&pmf, &Control::new()).unwrap(), weights);
}

#[test]
fn long_float_masses_are_divided_once() {
    // exp(-x) over many orders of magnitude: denominators are powers of two up to 2^1074.
    let raw: Vec<f64> = (0..600).map(|place| (-1.2 * f64::from(place)).exp()).collect();
    let total: f64 = raw.iter().sum();
    let pmf = Pmf::from_floats(raw.iter().map(|mass| mass / total).collect::<Vec<_>>(), "pmf").unwrap();
    let weights = lowest_terms(&pmf, &Control::new()).unwrap();
    let common = weights.iter().fold(Natural::zero(), |common, weight| gcd(&common, weight));
    assert!(common.is_one());
    for output in 1..pmf.len() {
        let ratio = Rational::new(weights[output].clone().into(), weights[0].clone().into());
        assert_eq!(ratio, pmf.mass(output) / pmf.mass(0));
    }
    let control = Control::new();
    control.cancel();
    assert!(lowest_terms(&pmf, &control).unwrap_err().is_canceled());
}
