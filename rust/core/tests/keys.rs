//! Accounts of keys against all splits and shares, in exact fractions.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use num_traits::{One, Signed, ToPrimitive, Zero};
use userdp_core::{
    Error,
    control::Control,
    exact::{Integer, Rational, dyadic::Dyadic},
    keys::{
        Keys, Round, RoundArguments, Rounds, fine_groups, gaussian_hockey_stick, groups,
        guess::{Histogram, MOST_LAPLACE_KEYS, Union, gaussian_delta},
        vanishing,
    },
};

fn fraction(numerator: i64, denominator: i64) -> Rational {
    Rational::new(numerator.into(), denominator.into())
}

fn power(x: &Rational, exponent: u64) -> Rational {
    num_traits::pow(x.clone(), exponent as usize)
}

/// A curve that falls as the level grows and grows with what moves.
fn moved(own: u64, common: u64, level: &Rational) -> Rational {
    let reach =
        fraction(10, 1) + fraction(7, 3) * Integer::from(own) + fraction(5, 2) * Integer::from(common);
    (Rational::one() - level * Integer::from(20) / reach).max(Rational::zero())
}

/// The largest value of all splits.
fn worst(keys: u64, replace: bool, common: bool, hidden: &Rational, level: &Rational) -> Rational {
    let mut best = Rational::zero();
    for both in 0..=if common && replace { keys } else { 0 } {
        let (most, whole) = (keys - both, if replace { 2 * (keys - both) } else { keys });
        for vanishing in 0..=most {
            for new in 0..=most {
                if !replace && vanishing > 0 && new > 0 {
                    continue;
                }
                let kept = power(hidden, vanishing);
                let left = level * power(hidden, new) / &kept;
                let value = Rational::one() - &kept + &kept * moved(whole - vanishing - new, both, &left);
                best = best.max(value);
            }
        }
    }
    best
}

fn delta(
    keys: u64,
    replace: bool,
    common: bool,
    hidden: &Rational,
    level: &Rational,
    limit: Option<&Rational>,
) -> Result<Rational, Error> {
    let mut made = Keys::new(keys, replace, common, hidden.clone(), Rational::zero())?;
    made.delta::<Error>((level, level), limit, |own, both, level, _| {
        let found = moved(own, both, &level.to_rational());
        Ok(Dyadic::quotient(found.numer(), found.denom(), 256, true))
    })
}

#[test]
fn the_worst_split_is_that_of_all_splits() {
    let tiny = Rational::new(Integer::one(), Integer::one() << 200);
    for keys in [1, 2, 3, 6, 11, 16] {
        for (replace, common) in [(false, false), (true, false), (true, true)] {
            for hidden in [fraction(1, 3), fraction(9, 10), fraction(999_999, 1_000_000), fraction(1, 1)] {
                for level in [fraction(1, 1), fraction(3, 2), fraction(4, 1)] {
                    let exact = worst(keys, replace, common, &hidden, &level);
                    let found = delta(keys, replace, common, &hidden, &level, None).unwrap();
                    assert!(found >= exact, "{keys} {replace} {common} {hidden} {level}");
                    assert!(found <= &exact + &exact * &tiny, "{keys} {replace} {common} {hidden} {level}");
                    for limit in [&found * fraction(9, 10), found.clone(), &found * fraction(11, 10)] {
                        let decided = delta(keys, replace, common, &hidden, &level, Some(&limit)).unwrap();
                        assert_eq!(decided <= limit, found <= limit);
                    }
                }
            }
        }
    }
}

#[test]
fn more_keys_are_within_a_part_in_a_million() {
    let hidden = fraction(9_999, 10_000);
    for (keys, common) in [(17, true), (40, false)] {
        let exact = worst(keys, true, common, &hidden, &fraction(5, 1));
        let found = delta(keys, true, common, &hidden, &fraction(5, 1), None).unwrap();
        assert!(found >= exact && found <= &exact * fraction(1_000_001, 1_000_000));
    }
}

/// Of many keys, numbers in common are searched in ranges: here what moves is the most where a third of them is in common.
#[test]
fn many_keys_in_common_are_searched_in_ranges() {
    let level = fraction(3, 1);
    for keys in [64_u64, 65, 100, 777, 4096] {
        let curve = |own: u64, both: u64| {
            let reach = fraction(10, 1) + Rational::from_integer(own.min(4 * both).into());
            Rational::one() - fraction(20, 1) / (reach * &level)
        };
        let mut made = Keys::new(keys, true, true, Rational::one(), Rational::zero()).unwrap();
        let found = made
            .delta::<Error>((&level, &level), None, |own, both, _, _| {
                let value = curve(own, both).max(Rational::zero());
                Ok(Dyadic::quotient(value.numer(), value.denom(), 256, true))
            })
            .unwrap();
        let exact = (0..=keys).map(|both| curve(2 * (keys - both), both)).max().unwrap();
        assert!(
            found >= exact && found <= &exact * fraction(1_000_001, 1_000_000),
            "{keys}: {found} {exact}"
        );
    }
}

/// All keys that are not in common vanish here, and what moves is only what is in common.
#[test]
fn keys_beside_those_in_common_may_all_vanish() {
    let (level, hidden) = (fraction(3, 1), fraction(99, 100));
    for keys in [20_u64, 90, 150] {
        let share = |both: u64| Rational::new(both.into(), (2 * keys).into());
        let mut made = Keys::new(keys, true, true, hidden.clone(), Rational::zero()).unwrap();
        let found = made
            .delta::<Error>((&level, &level), None, |_, both, _, _| {
                let value = share(both);
                Ok(Dyadic::quotient(value.numer(), value.denom(), 256, true))
            })
            .unwrap();
        let value = |both: u64| {
            let kept = power(&hidden, keys - both);
            Rational::one() - &kept + kept * share(both)
        };
        let exact = (0..=keys).map(value).max().unwrap();
        assert!(found >= exact && found <= &exact * fraction(1_000_001, 1_000_000), "{keys}");
    }
}

/// New keys of the other side can be worse than vanishing ones, for a curve that is steep below 1.
#[test]
fn new_keys_count_too() {
    let (hidden, level) = (fraction(9, 10), Rational::one());
    for replace in [false, true] {
        let mut made = Keys::new(7, replace, false, hidden.clone(), Rational::zero()).unwrap();
        let found = made
            .delta::<Error>((&level, &level), None, |_, _, level, _| {
                let steep = level.to_rational() < fraction(1, 2);
                Ok(Dyadic::integer(Integer::from(i32::from(steep))))
            })
            .unwrap();
        assert!(found.is_one(), "{found}");
    }
}

#[test]
fn distances_are_paid_on_both_sides_and_ends_are_said() {
    let (level, high) = (fraction(3, 1), fraction(7, 2));
    let without = |distance: Rational, replace: bool| {
        let mut made = Keys::new(4, replace, false, fraction(99, 100), distance).unwrap();
        let (own, control) = (fraction(1, 9), Control::new());
        made.gaussian_delta((&level, &high), None, &own, &Rational::zero(), &control).unwrap()
    };
    for replace in [false, true] {
        let more = without(fraction(1, 1_000_000), replace) - without(Rational::zero(), replace);
        assert_eq!(
            more,
            fraction(9, 2) * Integer::from(if replace { 8 } else { 4 }) * fraction(1, 1_000_000)
        );
    }
    assert!(without(fraction(1, 18), false).is_one());
    assert!(delta(3, false, false, &Rational::zero(), &level, None).unwrap().is_one());
    assert!(delta(1 << 20, true, false, &fraction(1, 2), &level, None).unwrap() > fraction(999, 1000));
    assert!(Keys::new(0, true, true, fraction(1, 2), Rational::zero()).is_err());
    assert!(Keys::new(1 << 33, true, true, fraction(1, 2), Rational::zero()).is_err());
    assert!(Keys::new(1, true, true, fraction(3, 2), Rational::zero()).is_err());
    assert!(Keys::new(1, true, true, fraction(1, 2), fraction(-1, 2)).is_err());
    assert!(delta(1, true, true, &fraction(1, 2), &Rational::zero(), None).is_err());
}

#[test]
fn canceled_searches_end() {
    let control = Control::new();
    control.cancel();
    let mut made = Keys::new(4, true, false, fraction(99, 100), Rational::zero()).unwrap();
    let level = fraction(3, 1);
    let own = fraction(1, 2);
    let ended = made.gaussian_delta((&level, &level), None, &own, &Rational::zero(), &control);
    assert_eq!(ended.unwrap_err(), Error::Canceled);
    let rounds = Rounds::new(vec![round(9, 3, false, false, &fraction(1, 100))]).unwrap();
    assert_eq!(rounds.delta((&level, &level), &control).unwrap_err(), Error::Canceled);
}

#[test]
fn vanishing_keys_are_rounded_up_by_little() {
    for (hidden, keys) in [(fraction(1, 3), 7), (fraction(999_999, 1_000_000), 4096), (fraction(2, 3), 1)] {
        let exact = Rational::one() - power(&hidden, keys);
        let found = vanishing(&hidden, keys).unwrap().to_rational();
        assert!(found >= exact && found <= &exact + &exact * Rational::new(1.into(), Integer::one() << 255));
    }
    assert!(vanishing(&fraction(1, 2), 1 << 30).unwrap().to_rational().is_one());
    assert!(vanishing(&Rational::one(), 5).unwrap().to_rational().is_zero());
}

/// A round with a probability that is the same for all groups, over the number of keys.
fn round(variance: i64, keys: u64, replace: bool, walk: bool, shown: &Rational) -> Round {
    let all = groups(keys).unwrap();
    Round::new(&RoundArguments {
        sigma_squared: fraction(variance * 64 + 4, 1),
        weight: 8,
        max_keys: keys,
        replace,
        walk,
        slack: 0,
        moved: 0,
        distance: Rational::zero(),
        shown: all.iter().map(|(_, last)| shown / Integer::from(*last)).collect(),
        between: Vec::new(),
    })
    .unwrap()
}

/// All shares t / d, and the least probability that t new keys of d are hidden: t times the probability at most.
#[test]
fn a_round_is_as_all_shares_of_keys() {
    let level = fraction(5, 2);
    for keys in [1_u64, 2, 5, 9] {
        for (replace, shown) in [
            (false, fraction(1, 50)),
            (true, fraction(1, 7)),
            (true, fraction(1, 100_000)),
            (false, fraction(1, 10_000)),
        ] {
            let variance = 9;
            let lengths = Rational::from_integer(Integer::from(if replace { 2 } else { 1 }));
            let least = Rational::one() - &shown;
            let other = if replace { &level * &least } else { level.clone() };
            let curve = |mu2: &Rational, level: &Rational| gaussian_hockey_stick(mu2, level).unwrap();
            let mut best = curve(&(&lengths / Integer::from(variance)), &(&level * &least));
            for d in 1..=keys {
                for t in 0..=d {
                    let share = Rational::new(t.into(), d.into());
                    // The most keys of a user that are new at this share: floor(last share) of every group.
                    let expected = (1..=keys)
                        .map(|last| (&share * Integer::from(last)).floor() * &shown / Integer::from(last))
                        .max()
                        .unwrap();
                    let hidden = Rational::one() - expected;
                    let mu2 = (&lengths - &share) / Integer::from(variance);
                    let value = Rational::one() - &hidden + &hidden * curve(&mu2, &(&other / &hidden));
                    best = best.max(value);
                }
            }
            let rounds = Rounds::new(vec![round(variance, keys, replace, false, &shown)]).unwrap();
            let found = rounds.delta((&level, &level), &Control::new()).unwrap();
            assert!(found >= &best * fraction(999_999_999, 1_000_000_000), "{keys} {replace} {shown}");
            assert!(found <= &best * fraction(10_031, 10_000), "{keys} {replace} {shown}");
            let off = (rounds.hidden() - &least).abs();
            assert!(off <= Rational::new(1.into(), Integer::one() << 120));
        }
    }
}

/// A second round that says nothing leaves the curve of the first, but for chords, and so does a first one.
#[test]
fn a_round_that_says_nothing_costs_nothing() {
    let nothing = |keys, replace| round(1 << 40, keys, replace, false, &Rational::zero());
    for (variance, keys, replace) in [(9, 3, false), (4, 2, true), (100, 1, false), (1, 8, true)] {
        let shown = fraction(1, 10_000);
        let made = || round(variance, keys, replace, false, &shown);
        let level = fraction(3, 1);
        let delta = |rounds: Vec<Round>| {
            Rounds::new(rounds).unwrap().delta((&level, &level), &Control::new()).unwrap()
        };
        let alone = delta(vec![made()]);
        for pair in [vec![made(), nothing(keys, replace)], vec![nothing(keys, replace), made()]] {
            let both = delta(pair);
            assert!(both >= &alone * fraction(9_999, 10_000), "{variance} {keys}");
            assert!(both <= &alone * fraction(105, 100), "{variance} {keys}: {both} {alone}");
        }
    }
}

/// Two rounds of one key that is never new are Gaussian noise of both distances.
#[test]
fn two_rounds_without_new_keys_are_one_of_both_distances() {
    for (first, second) in [(9, 9), (4, 25), (100, 1)] {
        for level in [fraction(1, 1), fraction(2, 1), fraction(9, 1)] {
            let made = |variance| round(variance, 1, false, false, &Rational::zero());
            let rounds = Rounds::new(vec![made(first), made(second)]).unwrap();
            assert_eq!(rounds.mu2(), vec![fraction(1, first), fraction(1, second)]);
            let found = rounds.delta((&level, &level), &Control::new()).unwrap();
            let exact = gaussian_hockey_stick(&(fraction(1, first) + fraction(1, second)), &level).unwrap();
            assert!(found >= exact, "{first} {second} {level}");
            let room = if exact > fraction(1, 10_000) { fraction(104, 100) } else { fraction(13, 10) };
            assert!(
                found <= &exact * room + fraction(1, 10_000_000_000),
                "{first} {second} {level} {found} {exact}"
            );
        }
    }
}

/// A share of .6 on one new key, which is shown by half: whole numbers of keys have no such weight.
#[test]
fn new_keys_of_a_walk_may_weigh_anything_between() {
    let ends = fine_groups(2).unwrap();
    let half = |place: &u64| if *place < 107 { fraction(1, 2) } else { Rational::zero() };
    let arguments = RoundArguments {
        sigma_squared: Rational::from_integer(Integer::one() << 74) + fraction(4, 1),
        weight: 1 << 40,
        max_keys: 2,
        replace: false,
        walk: true,
        slack: 0,
        moved: 0,
        distance: Rational::zero(),
        shown: vec![fraction(1, 2), Rational::zero()],
        between: ends[..ends.len() - 1].iter().map(half).collect(),
    };
    let rounds = Rounds::new(vec![Round::new(&arguments).unwrap()]).unwrap();
    let level = Rational::from_float(34.0_f64.exp()).unwrap();
    let kept = gaussian_hockey_stick(&(fraction(4, 10) * Integer::from(64)), &(&level * Integer::from(2)));
    let exact = fraction(1, 2) + kept.unwrap() / Integer::from(2);
    let found = rounds.delta((&level, &level), &Control::new()).unwrap();
    assert!(found >= exact && found <= fraction(51, 100));
    // At the share 1 there are whole keys alone, and nothing is more likely.
    assert_eq!(rounds.hidden(), fraction(1, 2));
}

/// Losses of a first round beyond eight of its widths are counted as infinite.
#[test]
fn losses_beyond_the_steps_count_in_full() {
    let made = || round(1, 1, false, false, &Rational::zero());
    let rounds = Rounds::new(vec![made(), made()]).unwrap();
    let level = Rational::from_float(60.0_f64.exp()).unwrap();
    let found = rounds.delta((&level, &level), &Control::new()).unwrap().to_f64().unwrap();
    // H at the loss 9 of mu = 1: about 10^-18.
    assert!((1e-19..1e-16).contains(&found), "{found}");
}

#[test]
fn rounds_refuse_what_is_out_of_range() {
    let good = RoundArguments {
        sigma_squared: fraction(9, 1),
        weight: 2,
        max_keys: 2,
        replace: true,
        walk: false,
        slack: 3,
        moved: 4,
        distance: Rational::zero(),
        shown: vec![fraction(1, 100); 2],
        between: Vec::new(),
    };
    assert!(Round::new(&good).is_ok());
    for bad in [
        RoundArguments { sigma_squared: fraction(4, 1), ..good.clone() },
        RoundArguments { weight: 0, ..good.clone() },
        RoundArguments { max_keys: 0, ..good.clone() },
        RoundArguments { max_keys: (1 << 24) + 1, ..good.clone() },
        RoundArguments { distance: fraction(-1, 9), ..good.clone() },
        RoundArguments { shown: vec![fraction(1, 100)], ..good.clone() },
        RoundArguments { shown: vec![fraction(3, 2); 2], ..good.clone() },
        RoundArguments { shown: vec![fraction(-1, 2); 2], ..good.clone() },
        RoundArguments { walk: true, ..good.clone() },
        RoundArguments { between: vec![fraction(1, 100)], ..good.clone() },
    ] {
        assert!(Round::new(&bad).is_err());
    }
    // (2 + 3 a + a^2) W^2 / (sigma^2 - 4) with a = 3 / 2.
    let rounds = Rounds::new(vec![Round::new(&good).unwrap()]).unwrap();
    assert_eq!(rounds.mu2(), vec![fraction(35, 5)]);
    let level = fraction(1, 2);
    assert!(rounds.delta((&level, &level), &Control::new()).is_err());
    assert!(Rounds::new(Vec::new()).is_err());
    let surely = RoundArguments { shown: vec![Rational::one(); 2], ..good.clone() };
    let rounds = Rounds::new(vec![Round::new(&surely).unwrap()]).unwrap();
    assert!(rounds.delta((&fraction(9, 1), &fraction(9, 1)), &Control::new()).unwrap().is_one());
    let vast = RoundArguments { slack: 1 << 40, ..good };
    let rounds = Rounds::new(vec![Round::new(&vast).unwrap()]).unwrap();
    assert!(rounds.delta((&fraction(9, 1), &fraction(9, 1)), &Control::new()).unwrap().is_one());
}

#[test]
fn proposals_are_near_what_accounts_decide() {
    let control = Control::new();
    for (keys, replace) in [(1, false), (5, true), (64, false)] {
        for parts in [&[0.1, 0.9][..], &[1.0]] {
            let union = Union::new(keys, replace, false).unwrap();
            let proposed = union.proposed(1.0, 1e-5, parts, &control).unwrap().unwrap();
            let exact = |(sigma, threshold): (f64, f64)| {
                let tail = |first: u64| {
                    0.5 * libm::erfc((threshold - 1.0 / (first as f64).sqrt()) / sigma / 2.0_f64.sqrt())
                };
                let shown = groups(keys)
                    .unwrap()
                    .iter()
                    .map(|(first, _)| Rational::from_float(tail(*first)).unwrap())
                    .collect();
                Round::new(&RoundArguments {
                    sigma_squared: Rational::from_float(sigma * sigma * 64.0 + 4.0).unwrap(),
                    weight: 8,
                    max_keys: keys,
                    replace,
                    walk: false,
                    slack: 0,
                    moved: 0,
                    distance: Rational::zero(),
                    shown,
                    between: Vec::new(),
                })
                .unwrap()
            };
            let rounds = Rounds::new(proposed.into_iter().map(exact).collect()).unwrap();
            let e = Rational::from_float(1.0_f64.exp()).unwrap();
            let found = rounds.delta((&e, &e), &control).unwrap().to_f64().unwrap();
            assert!((9.6e-6..1.01e-5).contains(&found), "{keys} {replace} {parts:?}: {found}");
        }
    }
}

#[test]
fn histograms_are_proposed_with_the_least_thresholds() {
    let control = Control::new();
    let asked = Histogram {
        epsilon: 1.0,
        delta: 1e-5,
        max_keys: 1,
        replace: false,
        share: 1.0,
        common: 0.0,
        probability: 0.5,
    };
    // 1 + ln(1 / (2 delta)) users or so, and noise of scale 1.
    let (users, threshold, scale) = asked.proposed(true, &control).unwrap()[0];
    assert!(threshold == 12 || threshold == 13, "{threshold}");
    assert!((scale - 1.0).abs() < 1e-4 && (users - threshold as f64).abs() < 1.0);
    let gaussian = asked.proposed(false, &control).unwrap();
    for (users, threshold, variance) in gaussian {
        let shown = |height: f64| 0.5 * libm::erfc((height - 1.5) / variance.sqrt() / 2.0_f64.sqrt());
        let whole = |height: f64| {
            let (p, moves) = (shown(height), gaussian_delta(1.0 / variance.sqrt(), 1.0));
            p.max(moves)
        };
        assert!(whole(threshold as f64) <= 1.0001e-5 && whole(threshold as f64 - 1.0) > 0.999e-5);
        assert!((users - threshold as f64).abs() < 1e-9);
    }
    // So many randomized responses: the sum over all of them.
    let many = Histogram { max_keys: 40, ..asked };
    let (_, _, scale) = many.proposed(true, &control).unwrap()[0];
    let rate = 1.0 / scale;
    let mut choose = 1.0_f64;
    let mut sum = 0.0;
    for i in 0..=40 {
        let (p, q) = ((f64::from(40 - i) * rate).exp(), (f64::from(i) * rate).exp());
        sum += choose * (p - 1.0_f64.exp() * q).max(0.0) / (1.0 + rate.exp()).powi(40);
        choose *= f64::from(40 - i) / f64::from(i + 1);
    }
    assert!((sum / 1e-5 - 1.0).abs() < 1e-6, "{sum}");
    let many = Histogram { max_keys: MOST_LAPLACE_KEYS + 1, ..many };
    assert!(many.proposed(true, &control).is_err());
    for bad in [Histogram { delta: 0.0, ..many }, Histogram { epsilon: f64::NAN, ..many }] {
        assert!(bad.proposed(false, &control).is_err());
    }
}

/// Curves far below the delta of keys that vanish are not resolved: the answer is that of all bits.
#[test]
fn shallow_curves_leave_the_delta_as_it_is() {
    let control = Control::new();
    let hidden =
        [fraction(1, 2), fraction(999_999, 1_000_000), Rational::one() - power(&fraction(1, 10), 40)];
    for (keys, replace) in [(1, false), (3, true), (5, true), (20, false)] {
        for hidden in &hidden {
            for (own, level) in [(fraction(1, 400), 2), (fraction(1, 20), 20_000), (fraction(4, 1), 3)] {
                let (common, level) = (&own * Integer::from(2), fraction(level, 1));
                let made = || Keys::new(keys, replace, true, hidden.clone(), Rational::zero()).unwrap();
                let found = made().gaussian_delta((&level, &level), None, &own, &common, &control).unwrap();
                let deep = made()
                    .delta::<Error>((&level, &level), None, |single, both, level, _| {
                        let mu2 = &own * Integer::from(single) + &common * Integer::from(both);
                        let curve = gaussian_hockey_stick(&mu2, &level.to_rational())?;
                        Ok(Dyadic::quotient(curve.numer(), curve.denom(), 300, true))
                    })
                    .unwrap();
                assert_eq!(found, deep, "{keys} {hidden} {own}");
            }
        }
    }
}

#[test]
fn proposals_for_any_number_of_keys_do_not_overflow() {
    let asked = |max_keys| Histogram {
        epsilon: 1.0,
        delta: 1e-5,
        max_keys,
        replace: true,
        share: 1.0,
        common: 0.0,
        probability: 0.5,
    };
    for keys in [1 << 40, 1 << 63, u64::MAX - 1, u64::MAX] {
        assert!(asked(keys).proposed(false, &Control::new()).is_ok());
    }
}
