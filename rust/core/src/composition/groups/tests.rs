use super::*;
use crate::composition::drawn_weights::Draw;
use crate::exact::Rational;
use num_traits::Signed;

fn whole(weights: &[u32]) -> Vec<BigUint> {
    weights.iter().map(|&weight| BigUint::from(weight)).collect()
}

fn rational(top: u64, bottom: u64) -> Rational {
    Rational::new(top.into(), bottom.into())
}

fn signed(share: &Share) -> Rational {
    Rational::new(share.numer().clone().into(), share.denom().clone().into())
}

/// The largest mass under P of a test with this mass under Q: outcomes in the order of their ratios.
fn power_of_test(p: &[BigUint], q: &[BigUint], alpha: &Rational) -> Rational {
    let mass = |weights: &[BigUint], index: usize| {
        Rational::new(weights[index].clone().into(), weights.iter().sum::<BigUint>().into())
    };
    let mut order: Vec<usize> = (0..p.len()).filter(|&x| !(p[x].is_zero() && q[x].is_zero())).collect();
    order.sort_by(|&a, &b| (&p[b] * &q[a]).cmp(&(&p[a] * &q[b])));
    let (mut left, mut got) = (alpha.clone(), Rational::zero());
    for outcome in order {
        let (x, y) = (mass(p, outcome), mass(q, outcome));
        let taken = if y <= left { Rational::one() } else { &left / &y };
        got += &taken * x;
        left -= taken * y;
    }
    got
}

fn at(curve: &Curve, alpha: &Rational) -> Rational {
    let corners: Vec<_> =
        curve.0.iter().map(|corner| (signed(&corner.alpha), signed(&corner.power))).collect();
    for pair in corners.windows(2) {
        let ((a, low), (b, high)) = (&pair[0], &pair[1]);
        if a <= alpha && alpha <= b {
            return low + (high - low) * (alpha - a) / (b - a);
        }
    }
    panic!("{alpha} is not in [0, 1]")
}

fn iterated(p: &[BigUint], q: &[BigUint], size: u64) -> Curve {
    Curve::of(p, q).iterated(size, &Control::new()).expect("not canceled")
}

#[test]
fn curves_are_the_best_tests_applied_so_often() {
    let mut draw = Draw(3);
    for round in 0..400 {
        let (outcomes, most) = (1 + draw.next(5), [2, 3, 12, 1000][round % 4]);
        let (p, q) = (draw.weights(outcomes, most), draw.weights(outcomes, most));
        let size = 1 + draw.next(6);
        let curve = iterated(&p, &q, size);
        let (back_p, back_q) = curve.clone().pair(&Control::new()).expect("not canceled");
        assert_eq!((&back_p, &back_q), (&curve_pair(&p, &q, size).0, &curve_pair(&p, &q, size).1));
        for step in 0..=12 {
            let alpha = rational(step, 12) * rational(1 + draw.next(9), 10).max(rational(step, 12));
            let mut wanted = alpha.clone();
            for _ in 0..size {
                wanted = power_of_test(&p, &q, &wanted);
            }
            assert_eq!(at(&curve, &alpha), wanted, "{p:?} {q:?} {size} at {alpha}");
            assert_eq!(power_of_test(&back_p, &back_q, &alpha), wanted);
        }
        // No corner is on the line of its neighbors.
        let corners: Vec<_> =
            curve.0.iter().map(|corner| (signed(&corner.alpha), signed(&corner.power))).collect();
        for triple in corners.windows(3) {
            let slope = |i: usize| (&triple[i + 1].1 - &triple[i].1) / (&triple[i + 1].0 - &triple[i].0);
            assert!(slope(0) > slope(1));
        }
    }
}

fn curve_pair(p: &[BigUint], q: &[BigUint], size: u64) -> Weights {
    grouped_pair(p, q, &BigUint::from(size), &Control::new()).expect("valid")
}

#[test]
fn responses_iterated_are_discrete_laplace_noise() {
    // Masses (E^n, (E - 1) E^(n-1), ..., (E - 1) E, ..., 1) / (1 + E) in units of E^-n, as in their own proof.
    let (p, q) = curve_pair(&whole(&[3, 1]), &whole(&[1, 3]), 3);
    let some =
        |weights: &[BigUint]| weights.iter().filter(|weight| !weight.is_zero()).cloned().collect::<Vec<_>>();
    assert_eq!(some(&p), whole(&[27, 6, 2, 1]));
    assert_eq!(some(&q), whole(&[1, 2, 6, 27]));
}

#[test]
fn ends_of_curves() {
    // Nothing in common: everything is gained at once.
    assert_eq!(curve_pair(&whole(&[1, 0]), &whole(&[0, 1]), 9), (whole(&[1, 0]), whole(&[0, 1])));
    // The same twice: nothing is gained.
    assert_eq!(curve_pair(&whole(&[2, 5]), &whole(&[2, 5]), 1000), (whole(&[0, 1]), whole(&[0, 1])));
    // What P never has does not help.
    let (p, q) = curve_pair(&whole(&[1, 0]), &whole(&[1, 1]), 2);
    assert_eq!((p, q), (whole(&[0, 1, 0]), whole(&[0, 1, 3])));
    // Mass at infinity adds up as by the union of events: 1/10 + 9/10 of 1/10.
    let (p, _) = curve_pair(&whole(&[1, 9]), &whole(&[0, 1]), 2);
    assert_eq!(p, whole(&[19, 81]));
    // Once is the pair itself, in the order of its losses.
    let (p, q) = curve_pair(&whole(&[1, 6, 3]), &whole(&[5, 1, 4]), 1);
    assert_eq!((p, q), (whole(&[0, 6, 3, 1]), whole(&[0, 1, 4, 5])));
}

#[test]
fn long_corners_are_rounded_up_by_little() {
    let (p, q) = (whole(&[997, 641, 13]), whole(&[17, 503, 911]));
    let mut exact = Curve::of(&p, &q);
    let rounded = iterated(&p, &q, 600);
    let longest = |curve: &Curve| curve.0.iter().map(|corner| corner.power.denom().bits()).max();
    assert!(longest(&rounded) <= Some(KEPT_BITS + MOST_PLACES + 1));
    // Six steps, rounded once, are above what they were, and hardly so.
    for _ in 0..5 {
        exact = Curve(exact.0).after(&Curve::of(&p, &q), &Control::new()).expect("not canceled");
    }
    let moved = exact.clone().rounded();
    let unit = Rational::new(1.into(), num_bigint::BigInt::one() << KEPT_BITS);
    let slack = &unit * rational(100_000, 1);
    for step in 0..=200 {
        let alpha = rational(step, 200);
        let (low, high) = (at(&exact, &alpha), at(&moved, &alpha));
        assert!(low <= high && high <= &low + &slack, "at {alpha}");
    }
    // Where it is steep, a corner that moves to the right would be below.
    for corner in &exact.0 {
        assert!(signed(&corner.power) <= at(&moved, &signed(&corner.alpha)));
    }
    for corner in &moved.0 {
        for mass in [&corner.alpha, &corner.power] {
            let least = mass.numer().min(&(mass.denom() - mass.numer())).bits();
            assert!(least <= KEPT_BITS + 2);
        }
        let (alpha, power) = (signed(&corner.alpha), signed(&corner.power));
        assert!(alpha <= Rational::one() && power <= Rational::one() && !alpha.is_negative());
        // In lowest terms, as the next step takes them.
        assert_eq!(*alpha.denom(), corner.alpha.denom().clone().into());
        assert_eq!(*power.denom(), corner.power.denom().clone().into());
    }
}

#[test]
fn rare_outcomes_keep_their_losses() {
    // The second has 2^-1074 of Q's mass: losses of four of them together are at most 4 ln(2^1073).
    let (p, q) = (whole(&[1, 1]), vec![BigUint::one(), (BigUint::one() << 1074_u32) - 1_u32]);
    for size in [3, 4, 7] {
        let (found_p, found_q) = curve_pair(&p, &q, size);
        let steepest = BigUint::one() << (1074 * size);
        let (total_p, total_q): (BigUint, BigUint) = (found_p.iter().sum(), found_q.iter().sum());
        for (x, y) in found_p.iter().zip(&found_q) {
            assert!(x * &total_q <= y * &steepest * &total_p, "{size}");
        }
    }
}

#[test]
fn long_masses_of_many_outcomes_are_rounded() {
    // Denominators that have nothing in common: together they are as long as all of them.
    let mut draw = Draw(7);
    let mut weights = |bits: u32| -> Vec<BigUint> {
        (0..3000)
            .map(|_| (0..bits / 32).fold(BigUint::one(), |w, _| (w << 32_u32) + draw.next(1 << 31)))
            .collect()
    };
    let (p, q) = (weights(192), weights(192));
    let (found_p, found_q) = curve_pair(&p, &q, 2);
    assert!(found_p.iter().chain(&found_q).all(|weight| weight.bits() <= KEPT_BITS + MOST_PLACES));
}

#[test]
fn hulls_take_the_highest_of_points_above_each_other() {
    let corner = |a: u64, b: u64| Corner {
        alpha: reduced(BigUint::from(a), BigUint::from(8_u32)),
        power: reduced(BigUint::from(b), BigUint::from(8_u32)),
    };
    let found = Curve::above(vec![
        corner(0, 0),
        corner(0, 1),
        corner(1, 3),
        corner(1, 4),
        corner(2, 5),
        corner(3, 6),
    ]);
    assert_eq!(found, Curve(vec![corner(0, 1), corner(1, 4), corner(3, 6), corner(8, 8)]));
    // A higher one makes those before it superfluous.
    let found = Curve::above(vec![corner(0, 1), corner(1, 2), corner(2, 3), corner(3, 7)]);
    assert_eq!(found, Curve(vec![corner(0, 1), corner(3, 7), corner(8, 8)]));
    assert_eq!(Curve::above(vec![corner(0, 1), corner(8, 8)]), Curve(vec![corner(0, 1), corner(8, 8)]));
}

#[test]
fn what_is_refused() {
    let control = Control::new();
    let one = whole(&[1, 1]);
    let of = |p: &[BigUint], q: &[BigUint], size: u64| grouped_pair(p, q, &BigUint::from(size), &control);
    let invalid = |result: Result<Weights>| matches!(result, Err(Error::InvalidArgument { .. }));
    assert!(invalid(of(&one, &one[..1], 2)));
    assert!(invalid(of(&[], &[], 2)));
    assert!(invalid(of(&one, &whole(&[0, 0]), 2)));
    assert!(invalid(of(&one, &one, 0)));
    let Err(Error::TooLarge { message }) = of(&one, &one, (1 << 17) + 1) else { panic!("too large") };
    assert!(
        message.starts_with(
            "a group of 131073 has up to 262146 outcomes, where 262144 are allowed; merge outputs"
        )
    );
    assert!(of(&one, &one, 1 << 17).is_ok());
    let huge = BigUint::one() << 100;
    assert!(matches!(grouped_pair(&one, &one, &huge, &control), Err(Error::TooLarge { .. })));
    control.cancel();
    assert!(of(&whole(&[3, 1]), &whole(&[1, 3]), 3).is_err_and(|error| error.is_canceled()));
}
