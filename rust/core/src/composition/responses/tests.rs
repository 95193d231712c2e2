use super::*;

fn number(x: u64) -> BigUint {
    BigUint::from(x)
}

fn responses(top: u64, bottom: u64, count: u64) -> Responses {
    Responses::new(&number(top), &number(bottom), &number(count), &Control::new()).expect("valid")
}

fn fraction((top, bottom): (BigUint, BigUint)) -> Rational {
    Rational::new(top.into(), bottom.into())
}

fn rational(top: u64, bottom: u64) -> Rational {
    Rational::new(top.into(), bottom.into())
}

/// All lists of answers of all groups: masses under both truths, added up one list at a time.
fn brute(groups: &[(u64, u64, u64)], multiplier: &Rational) -> Rational {
    let mut lists = vec![(Rational::one(), Rational::one())];
    for &(top, bottom, count) in groups {
        let (truth, lie) = (rational(top, top + bottom), rational(bottom, top + bottom));
        for _ in 0..count {
            lists =
                lists.iter().flat_map(|(p, q)| [(p * &truth, q * &lie), (p * &lie, q * &truth)]).collect();
        }
    }
    let positive = |(p, q): (Rational, Rational)| (p - multiplier * q).max(Rational::zero());
    lists.into_iter().map(positive).sum()
}

fn divergence_at(groups: &[(u64, u64, u64)], top: u64, bottom: u64) -> Rational {
    let made: Vec<Responses> =
        groups.iter().map(|&(top, bottom, count)| responses(top, bottom, count)).collect();
    let made: Vec<&Responses> = made.iter().collect();
    fraction(divergence(&made, &number(top), &number(bottom), &Control::new()).expect("valid"))
}

#[test]
fn short_ones_are_all_lists_of_answers() {
    let groups: [&[(u64, u64, u64)]; 8] = [
        &[(3, 1, 1)],
        &[(3, 1, 4)],
        &[(7, 5, 9)],
        &[(101, 100, 6)],
        &[(3, 1, 3), (7, 5, 4)],
        &[(3, 1, 4), (7, 5, 4)],
        &[(2, 1, 2), (4, 1, 2), (3, 2, 5)],
        &[(9, 1, 3), (2, 1, 1), (11, 10, 4)],
    ];
    for group in groups {
        // Levels between losses, at them, and beyond all of them.
        for (top, bottom) in
            [(1, 1), (101, 100), (7, 5), (49, 25), (3, 1), (5, 1), (9, 1), (81, 1), (10_000, 1)]
        {
            let found = divergence_at(group, top, bottom);
            assert_eq!(found, brute(group, &rational(top, bottom)), "{group:?} at {top}/{bottom}");
        }
    }
    assert_eq!(divergence_at(&[], 1, 1), Rational::zero());
    assert_eq!(divergence_at(&[], 7, 5), Rational::zero());
}

#[test]
fn the_least_multiplier_is_the_inverse() {
    for (top, bottom, count) in [(3, 1, 1), (3, 1, 4), (7, 5, 9), (101, 100, 6)] {
        let made = responses(top, bottom, count);
        assert!(made.exact());
        for (numerator, denominator) in
            [(1, 1000), (1, 100), (1, 20), (1, 9), (9, 32), (1, 3), (1, 2), (4, 5), (1, 1)]
        {
            let delta = rational(numerator, denominator);
            let found = made.least_multiplier(&number(numerator), &number(denominator), &Control::new());
            let found = fraction(found.expect("valid"));
            let group = [(top, bottom, count)];
            assert!(brute(&group, &found) <= delta);
            if found.is_one() {
                continue;
            }
            // It is attained, and nothing smaller does.
            assert_eq!(brute(&group, &found), delta);
            let smaller = found * rational(999_999, 1_000_000);
            assert!(brute(&group, &smaller) > delta);
        }
    }
    // At delta = 0 it is E^k.
    let found = responses(3, 2, 5).least_multiplier(&number(0), &number(1), &Control::new());
    assert_eq!(fraction(found.expect("valid")), rational(243, 32));
}

#[test]
fn masses_are_between_their_roundings() {
    let one = BigUint::one();
    for (top, bottom, count) in [(2, 1, 12), (101, 100, 40), (7, 5, 33), (9, 1, 5), (1_000_000, 1, 3)] {
        let exact = exact_masses(&number(top), &number(bottom), count, &Control::new()).expect("valid");
        let total: BigUint = exact.iter().sum();
        assert_eq!(total, number(top + bottom).pow(count as u32));
        let places = 20;
        let (upper, lower) =
            rounded_masses(&number(top), &number(bottom), count, places, &Control::new()).expect("valid");
        for ((upper, lower), exact) in upper.iter().zip(&lower).zip(&exact) {
            let unrounded = exact << places;
            assert!(upper * &total >= unrounded && lower * &total <= unrounded);
            assert!(*upper <= lower + number(4 * count));
        }
        let (most, least): (BigUint, BigUint) = (upper.iter().sum(), lower.iter().sum());
        assert!(least <= &one << places && &one << places <= most);
    }
}

#[test]
fn rounded_ones_are_barely_above() {
    // The same responses, exact and rounded.
    let exact = responses(11, 10, 300);
    assert!(exact.exact());
    let (upper, lower) = rounded_masses(&number(11), &number(10), 300, 512, &Control::new()).expect("valid");
    let rounded = Responses {
        level: rational(11, 10),
        count: 300,
        above: sums(upper.into_iter()),
        below: sums(lower.into_iter().rev()),
        total: BigUint::one() << 512,
        exact: false,
    };
    let slack = Rational::new(1.into(), Integer::one() << 400);
    for (top, bottom) in [(1, 1), (3, 2), (5, 1), (1000, 1)] {
        let at = |of: &Responses| {
            fraction(divergence(&[of], &number(top), &number(bottom), &Control::new()).expect("valid"))
        };
        let (low, high) = (at(&exact), at(&rounded));
        assert!(low <= high && high <= &low + &slack, "at {top}/{bottom}");
    }
    for denominator in [3, 1000, 1_000_000_000] {
        let at = |of: &Responses| {
            let found = of.least_multiplier(&number(1), &number(denominator), &Control::new());
            fraction(found.expect("valid"))
        };
        let (low, high) = (at(&exact), at(&rounded));
        assert!(low <= high && high <= &low + &slack, "delta = 1/{denominator}");
    }
}

#[test]
fn long_lists_are_rounded() {
    let long = responses(1001, 1000, 3000);
    assert!(!long.exact());
    assert_eq!(long.above.len(), 3002);
    // Over all terms both come to 1, from above and from below.
    assert!(long.above[3001] >= long.total && long.below[3001] <= long.total);
    // Far beyond the largest loss nothing is left, whatever was rounded.
    let beyond = number(1_000_000);
    let found = fraction(divergence(&[&long], &beyond, &number(1), &Control::new()).expect("valid"));
    assert!(found < Rational::new(1.into(), Integer::one() << 400));
}

#[test]
fn thresholds_are_around_the_number_of_positive_terms() {
    let level = rational(7, 5);
    let step = Span::of_logarithm_of(&level);
    for count in [1_u64, 2, 5, 8] {
        for (top, bottom) in [(1, 1), (6, 5), (7, 5), (3, 2), (49, 25), (100, 1), (1_000_000, 1)] {
            let multiplier = rational(top, bottom);
            let mut exact = 0;
            for lies in 0..=count {
                let truths = count.cast_signed() - 2 * lies.cast_signed();
                exact += usize::from(level.pow(truths as i32) > multiplier);
            }
            let (first, last) = threshold(count, &Span::of_logarithm_of(&multiplier), &step);
            assert!(first <= exact && exact <= last && last <= first + 1, "{count} at {multiplier}");
        }
    }
    // What is below all losses takes all terms, and its negative too.
    let lowest = Span::of_logarithm_of(&rational(1, 1)).minus(100, &step);
    assert_eq!(threshold(8, &lowest, &step), (9, 9));
    let highest = Span::of_logarithm_of(&rational(1, 1)).minus(-100, &step);
    assert_eq!(threshold(8, &highest, &step), (0, 0));
    // Of a level whose logarithm is below all floats nothing is known.
    let nothing = Span { low: Dyadic::integer(Integer::zero()), high: step.high.clone() };
    assert_eq!(threshold(8, &highest, &nothing), (0, 9));
}

#[test]
fn spans_are_wide_where_their_parts_are() {
    let wide = Span { low: Dyadic::integer(2.into()), high: Dyadic::integer(5.into()) };
    let start = Span { low: Dyadic::integer(100.into()), high: Dyadic::integer(101.into()) };
    let ends = |span: &Span| (span.low.to_rational(), span.high.to_rational());
    let whole = |x: i64| Rational::from_integer(x.into());
    assert_eq!(ends(&start.minus(3, &wide)), (whole(85), whole(95)));
    assert_eq!(ends(&start.minus(-3, &wide)), (whole(106), whole(116)));
    assert_eq!(ends(&start.minus(0, &wide)), (whole(100), whole(101)));
    // A wide step: (8 - x / y) / 2 for x in [10, 12] and y in [2, 5].
    let x = Span { low: Dyadic::integer(10.into()), high: Dyadic::integer(12.into()) };
    assert_eq!(threshold(8, &x, &wide), (1, 3));
    let below = Span { low: Dyadic::integer((-12).into()), high: Dyadic::integer((-10).into()) };
    assert_eq!(threshold(8, &below, &wide), (5, 7));
}

#[test]
fn what_is_refused() {
    let control = Control::new();
    let of = |top: &BigUint, bottom: u64, count: u64| {
        Responses::new(top, &number(bottom), &number(count), &control)
    };
    for (top, bottom, count) in [(1, 1, 1), (1, 2, 1), (0, 0, 1), (1, 0, 1), (3, 1, 0)] {
        assert!(matches!(of(&number(top), bottom, count), Err(Error::InvalidArgument { .. })));
    }
    assert!(of(&number(10_001), 10_000, MOST_TERMS).is_ok());
    let too_large = |result: Result<Responses>| match result {
        Err(Error::TooLarge { message }) => message,
        other => panic!("{other:?}"),
    };
    let message = too_large(of(&number(3), 2, MOST_TERMS + 1));
    assert!(
        message.starts_with("optimal composition of k=131073 mechanisms at this epsilon has too many terms")
    );
    assert!(message.contains("(at most 131072)"));
    too_large(of(&(BigUint::one() << 5000), 1, MOST_TERMS));
    // Masses would be short enough, but not what tells the least of them from 0.
    too_large(of(&number(1_000_000), 1, MOST_TERMS / 2));

    let groups = [responses(3, 1, 400), responses(2, 1, 399), responses(5, 1, 500)];
    let groups: Vec<&Responses> = groups.iter().collect();
    let Err(Error::TooLarge { message }) = divergence(&groups, &number(3), &number(1), &control) else {
        panic!("too many combinations")
    };
    assert!(
        message.starts_with("groups of [400, 399, 500] mechanisms have 160400 combinations (at most 131072)")
    );
    for (top, bottom) in [(1, 0), (0, 1), (0, 0), (1, 2)] {
        assert!(divergence(&groups[..1], &number(top), &number(bottom), &control).is_err());
    }
    assert!(groups[0].least_multiplier(&number(1), &number(0), &control).is_err());
    control.cancel();
    assert!(of(&number(3), 1, 5).is_err_and(|error| error.is_canceled()));
    assert!(of(&number(1001), 1000, 5000).is_err_and(|error| error.is_canceled()));
    assert!(
        divergence(&groups[..1], &number(3), &number(1), &control).is_err_and(|error| error.is_canceled())
    );
    assert!(
        groups[0].least_multiplier(&number(1), &number(9), &control).is_err_and(|error| error.is_canceled())
    );
}

#[test]
fn places_grow_with_the_length_and_end() {
    assert_eq!(more_places(&number(3), &number(1), 100), (150.0 * 3_f64.ln()).ceil() as u64);
    assert_eq!(more_places(&number(3), &number(1), 100_000_000_000), MOST_BITS);
    let long = BigUint::one() << 3000_u32;
    assert!((logarithm(&long) / (3000.0 * std::f64::consts::LN_2) - 1.0).abs() < 1e-12);
    assert_eq!(more_places(&(&long * 3_u32), &long, 10), 17);
}

#[test]
fn what_cannot_be_told_from_zero_is_refused() {
    // 2^-k is below the last place that there is room for.
    let long = responses(2, 1, 60_000);
    let found = long.least_multiplier(&number(1), &number(1_000_000), &Control::new());
    assert!(found.is_err_and(|error| error.to_string().contains("too many terms")));
}
