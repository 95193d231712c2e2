//! Noise behind a shuffler: divergences against sums over all pairs of counts, calibration, permutations, messages.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use userdp_core::{
    Error,
    control::Control,
    exact::Level,
    protocol::shuffle::{
        Change, Goal, NegativeBinomialDistribution, ShuffleNoise, divergence, permute, reports,
    },
    rng::Source,
};

fn ratio(numerator: i64, denominator: i64) -> BigRational {
    BigRational::new(BigInt::from(numerator), BigInt::from(denominator))
}

/// P[0], ..., P[last] of NB(r, p) for an integer r.
fn masses(r: i64, p: &BigRational, last: i64) -> Vec<BigRational> {
    let mut mass =
        num_traits::pow(BigRational::one() - p, usize::try_from(r).expect("a number of successes"));
    (0..=last)
        .map(|k| {
            let now = mass.clone();
            mass = &mass * p * ratio(k + r, k + 1);
            now
        })
        .collect()
}

fn positive(x: BigRational) -> BigRational {
    if x.is_negative() { BigRational::zero() } else { x }
}

/// Both directions of one shifted count, and two counts, from all pairs up to `last`; what is left out is below the
/// last number.
fn brute(f: &[BigRational], e: &BigRational) -> (BigRational, BigRational, BigRational) {
    let zero = BigRational::zero();
    let before = |k: usize| if k == 0 { &zero } else { &f[k - 1] };
    let down = (0..f.len()).map(|k| positive(&f[k] - e * before(k))).sum();
    let up = (0..f.len()).map(|k| positive(before(k) - e * &f[k])).sum();
    let mut two = BigRational::zero();
    for a in 0..f.len() {
        for b in 0..f.len() {
            two += positive(before(a) * &f[b] - e * &f[a] * before(b));
        }
    }
    (down, up, two)
}

#[test]
fn divergences_are_those_of_all_pairs() {
    let control = Control::new();
    let cut = ratio(1, 1 << 28);
    for (r, p) in [(2, ratio(1, 2)), (3, ratio(1, 2)), (5, ratio(1, 3)), (4, ratio(1, 10)), (9, ratio(2, 5))]
    {
        let f = masses(r, &p, 60);
        for e in [ratio(1, 1), ratio(5, 4), ratio(2, 1), ratio(3, 1), ratio(20, 1)] {
            let distribution = NegativeBinomialDistribution::new(&ratio(r, 1), &p, &control).unwrap();
            let level = Level::rational(e.clone());
            let (down, up, two) = brute(&f, &e);
            for (change, exact) in [(Change::OneCount, down.max(up)), (Change::TwoCounts, two)] {
                let found = divergence(&distribution, &level, change, &control).unwrap();
                let (lower, upper) = (found.lower.to_rational(), found.upper.to_rational());
                assert!(exact <= upper, "{r} {p} {e} {change:?}");
                assert!(lower <= &exact + &cut, "{r} {p} {e} {change:?}");
                assert!(&upper - &lower <= BigRational::new(BigInt::one(), BigInt::one() << 72));
            }
        }
    }
}

#[test]
fn one_success_is_refused() {
    let control = Control::new();
    for r in [ratio(1, 1), ratio(1, 2), ratio(0, 1)] {
        let refused = NegativeBinomialDistribution::new(&r, &ratio(1, 2), &control);
        assert!(matches!(refused, Err(Error::InvalidArgument { argument: "r", .. })));
    }
    assert!(NegativeBinomialDistribution::new(&ratio(1_000_001, 1_000_000), &ratio(1, 2), &control).is_ok());
}

#[test]
fn tails_are_enclosed() {
    let distribution =
        NegativeBinomialDistribution::new(&ratio(3, 1), &ratio(1, 2), &Control::new()).unwrap();
    let f = masses(3, &ratio(1, 2), 40);
    for k in 0..30 {
        let tail = BigRational::one() - f[..k].iter().sum::<BigRational>();
        let found = distribution.tail(k);
        assert!(found.lower.to_rational() <= tail && tail <= found.upper.to_rational());
    }
    // Beyond the listed values only an upper bound is known.
    let beyond = distribution.tail(distribution.len() + 5);
    assert!(beyond.lower.to_rational().is_zero() && beyond.upper.to_rational().is_positive());
}

#[test]
fn calibrated_noise_is_enough_and_not_much_more() {
    let control = Control::new();
    for (epsilon, delta) in [(1.0, ratio(1, 1000)), (0.125, ratio(1, 1_000_000)), (10.0, ratio(1, 1 << 40))] {
        let level = Level::from_epsilon(epsilon);
        for change in [Change::OneCount, Change::TwoCounts] {
            for goal in [Goal::Mean, Goal::Quantile(0.01)] {
                let noise =
                    ShuffleNoise::calibrated(&level, &delta, 100, 100, change, goal, &control).unwrap();
                let found = noise.delta(&level, &control).unwrap();
                assert!(found.upper.to_rational() <= delta);
                assert!(found.lower.to_rational() > &delta * ratio(999, 1000));
                let (r, p) = (noise.distribution().r() / ratio(2, 1), noise.distribution().p());
                let halved = ShuffleNoise::new(&r, p, 100, change, &control).unwrap();
                assert!(halved.delta(&level, &control).unwrap().lower.to_rational() > delta);
            }
        }
    }
}

#[test]
fn levels_and_deltas_out_of_reach() {
    let control = Control::new();
    let calibrated = |epsilon: f64, delta: BigRational| {
        let level = Level::from_epsilon(epsilon);
        ShuffleNoise::calibrated(&level, &delta, 10, 10, Change::OneCount, Goal::Mean, &control)
    };
    let tiny = BigRational::new(BigInt::one(), BigInt::one() << 126);
    for (epsilon, delta, argument) in [
        (0.0, ratio(1, 2), "epsilon"),
        (65.0, ratio(1, 2), "epsilon"),
        (1.0, ratio(0, 1), "delta"),
        (1.0, ratio(1, 1), "delta"),
        (1.0, tiny, "epsilon, delta"),
        // Distributions of such lengths are not even looked at.
        (1e-9, ratio(1, 1000), "epsilon, delta"),
    ] {
        match calibrated(epsilon, delta) {
            Err(Error::InvalidArgument { argument: found, .. }) => assert_eq!(found, argument),
            other => panic!("{epsilon}: {other:?}"),
        }
    }
}

#[test]
fn permutations_of_three_are_uniform() {
    let mut source = Source::seeded(&BigUint::from(5_u8)).unwrap();
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..6000 {
        let mut items = [0, 1, 2];
        permute(&mut items, &mut source, &Control::new()).unwrap();
        *counts.entry(items).or_insert(0_i64) += 1;
    }
    assert_eq!(counts.len(), 6);
    // Each count is Binomial(6000, 1/6), standard deviation 29: 180 is beyond 6 of them, false alarm below 1e-7.
    assert!(counts.values().all(|count| (count - 1000).abs() < 180));
}

#[test]
fn places_come_from_high_halves_and_ties_are_drawn_again() {
    // Bound 3: 2^64 mod 3 = 1, so the word 0 (low half 0) is drawn again.
    let words = |words: &[u64]| Source::listed(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    let mut items = [0, 1, 2];
    // 6 words are asked for at once; 0 is rejected, 2^63 stands for place 1 of 3, then for place 1 of 2.
    permute(&mut items, &mut words(&[0, 1 << 63, 1 << 63, 0, 0, 0]), &Control::new()).unwrap();
    assert_eq!(items, [0, 2, 1]);
}

#[test]
fn messages_are_inputs_and_draws() {
    let control = Control::new();
    let noise = ShuffleNoise::new(&ratio(4, 1), &ratio(1, 2), 2, Change::TwoCounts, &control).unwrap();
    let draws = |items: &[i64], complement: bool| {
        let mut source = Source::seeded(&BigUint::from(9_u8)).unwrap();
        reports(noise.table().table(), items, 3, complement, &mut source, &control).unwrap()
    };
    let mut source = Source::seeded(&BigUint::from(9_u8)).unwrap();
    let mut extra = [0_i64; 6];
    let (first, second) = extra.split_at_mut(3);
    noise.table().table().draw_many(&mut source, first, &control).unwrap();
    noise.table().table().draw_many(&mut source, second, &control).unwrap();
    for complement in [false, true] {
        let sent = draws(&[2, 7], complement);
        let mut at = 0;
        for (user, item) in [(0, 2), (1, 7)] {
            let own = usize::try_from(sent.counts[user]).unwrap();
            let messages = &sent.messages[at..at + own];
            at += own;
            for bucket in 0..3_u32 {
                let expected = extra[3 * user + bucket as usize] + i64::from((bucket == item) != complement);
                let found = messages.iter().filter(|&&name| name == bucket).count();
                assert_eq!(i64::try_from(found).unwrap(), expected);
            }
        }
        assert_eq!(at, sent.messages.len());
    }
}
