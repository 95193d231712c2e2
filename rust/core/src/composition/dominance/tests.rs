use super::*;
use crate::composition::drawn_weights::Draw;
use crate::exact::Rational;
use num_traits::One;

fn masses(weights: &[BigUint]) -> Vec<Rational> {
    let total: BigUint = weights.iter().sum();
    weights.iter().map(|weight| Rational::new(weight.clone().into(), total.clone().into())).collect()
}

fn curve(pair: (&[BigUint], &[BigUint]), level: &Rational) -> Rational {
    let positive = |(p, q): (Rational, Rational)| (p - level * q).max(Rational::zero());
    masses(pair.0).into_iter().zip(masses(pair.1)).map(positive).sum()
}

/// At the corners of both curves, between which both are lines, and beyond.
fn nowhere_below(above: (&[BigUint], &[BigUint]), below: (&[BigUint], &[BigUint])) -> bool {
    let mut levels = vec![Rational::zero()];
    for pair in [above, below] {
        let ratios = masses(pair.0).into_iter().zip(masses(pair.1)).filter(|(_, q)| !q.is_zero());
        levels.extend(ratios.map(|(p, q)| p / q));
    }
    let beyond = levels.iter().max().map(|level| level + Rational::one()).unwrap_or_default();
    levels.push(beyond);
    levels.iter().all(|level| curve(below, level) <= curve(above, level))
}

#[test]
fn random_pairs_are_compared_at_all_corners() {
    let mut draw = Draw(7);
    let mut verdicts = [0; 2];
    let control = Control::new();
    for round in 0..3000 {
        let most = [2, 3, 5, 40][round % 4];
        let (m, n) = (1 + draw.next(5), 1 + draw.next(3));
        let pair =
            [draw.weights(m, most), draw.weights(m, most), draw.weights(n, most), draw.weights(n, most)];
        let (above, below) = ((&pair[0][..], &pair[1][..]), (&pair[2][..], &pair[3][..]));
        let wanted = nowhere_below(above, below);
        assert_eq!(pair_dominates(above, below, &control), Ok(wanted), "{pair:?}");
        assert_eq!(pair_dominates(above, above, &control), Ok(true));
        verdicts[usize::from(wanted)] += 1;
    }
    assert!(verdicts.iter().all(|&count| count > 300), "{verdicts:?}");
}

#[test]
fn what_is_merged_is_dominated() {
    // Merging outcomes loses something, unless their losses are the same; by how little is not seen in floats.
    let mut draw = Draw(11);
    let control = Control::new();
    for _ in 0..300 {
        let (p, q) = (draw.weights(6, 1000), draw.weights(6, 1000));
        let merge = |weights: &[BigUint]| {
            let mut merged = weights[1..].to_vec();
            merged[2] += &weights[0];
            merged
        };
        let (merged_p, merged_q) = (merge(&p), merge(&q));
        let (whole, merged) = ((&p[..], &q[..]), (&merged_p[..], &merged_q[..]));
        assert_eq!(pair_dominates(whole, merged, &control), Ok(true));
        let equal = &p[0] * &q[3] == &p[3] * &q[0];
        assert_eq!(pair_dominates(merged, whole, &control), Ok(equal));
        // A unit of 2^-300 moved to where it tells the two apart.
        let scaled = |weights: &[BigUint]| weights.iter().map(|weight| weight << 300).collect::<Vec<_>>();
        let (mut near_p, near_q) = (scaled(&p), scaled(&q));
        near_p.push(BigUint::one());
        let mut padded = near_q.clone();
        padded.push(BigUint::zero());
        let near = (&near_p[..], &padded[..]);
        assert_eq!(pair_dominates(whole, near, &control), Ok(false), "it has mass at infinity");
    }
}

#[test]
fn infinite_losses_count() {
    let whole = |weights: &[u32]| weights.iter().map(|&weight| BigUint::from(weight)).collect::<Vec<_>>();
    let control = Control::new();
    let dominates = |a: [&[u32]; 2], b: [&[u32]; 2]| {
        let (ap, aq, bp, bq) = (whole(a[0]), whole(a[1]), whole(b[0]), whole(b[1]));
        pair_dominates((&ap, &aq), (&bp, &bq), &control)
    };
    let (apart, same): ([&[u32]; 2], [&[u32]; 2]) = ([&[1, 0], &[0, 1]], [&[1], &[1]]);
    assert_eq!(dominates(apart, same), Ok(true));
    assert_eq!(dominates(same, apart), Ok(false));
    assert_eq!(dominates(apart, apart), Ok(true));
    // Less at infinity, and more below a level of 2.
    let (infinite, finite): ([&[u32]; 2], [&[u32]; 2]) = ([&[1, 9], &[0, 10]], [&[5, 1], &[1, 5]]);
    assert_eq!(dominates(finite, infinite), Ok(false));
    assert_eq!(dominates(infinite, finite), Ok(false));
    assert_eq!(dominates([&[2, 8], &[0, 10]], infinite), Ok(true));
    // An outcome that P never has: the slope at 0 is less than 1 in size.
    assert_eq!(dominates([&[0, 2], &[1, 1]], [&[1, 1], &[1, 1]]), Ok(true));
    assert_eq!(dominates([&[1, 1], &[1, 1]], [&[0, 2], &[1, 1]]), Ok(false));
}

#[test]
fn what_is_refused() {
    let one = [BigUint::one()];
    let none = [BigUint::zero()];
    let control = Control::new();
    let invalid = |result: Result<bool>| matches!(result, Err(Error::InvalidArgument { .. }));
    assert!(invalid(pair_dominates((&one, &[]), (&one, &one), &control)));
    assert!(invalid(pair_dominates((&one, &one), (&one, &[]), &control)));
    assert!(invalid(pair_dominates((&one, &none), (&one, &one), &control)));
    assert!(invalid(pair_dominates((&one, &one), (&none, &one), &control)));
    assert!(invalid(pair_dominates((&[], &[]), (&one, &one), &control)));
    control.cancel();
    assert_eq!(pair_dominates((&one, &one), (&one, &one), &control), Err(Error::Canceled));
}
