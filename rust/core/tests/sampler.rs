//! Tables of noise: certificates and the faults they must catch, every boundary of the draws, random integers.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One, Zero};
use userdp_core::{
    Error,
    control::Control,
    exact::Level,
    rng::Source,
    sampler::{
        KappaRule, RefusalTable, TruncatedDiscreteLaplaceTable, kappa, multiplier::LowerMultiplier, refusal,
        tdlap,
    },
};

fn ratio(numerator: i64, denominator: i64) -> BigRational {
    BigRational::new(BigInt::from(numerator), BigInt::from(denominator))
}

/// A level e^(numerator / denominator).
fn exponential(numerator: i64, denominator: i64) -> Level {
    Level::new(BigRational::one(), ratio(numerator, denominator))
}

fn table(level: &Level, delta: &BigRational, rule: KappaRule) -> TruncatedDiscreteLaplaceTable {
    TruncatedDiscreteLaplaceTable::new(level, delta, rule, &Control::new()).expect("a valid table")
}

/// N(kappa), ..., N(2 kappa).
fn half(table: &TruncatedDiscreteLaplaceTable) -> Vec<BigUint> {
    table.numerators().skip(table.kappa()).map(BigUint::from).collect()
}

fn premise(result: userdp_core::Result<()>) -> String {
    result.expect_err("a refusal").to_string()
}

#[test]
fn kappa_decides_ties() {
    let two = Level::rational(ratio(2, 1));
    for (numerator, denominator, expected) in
        [(1, 8, 4), (999, 8000, 5), (1001, 8000, 4), (1, 2, 2), (999, 1000, 2)]
    {
        assert_eq!(kappa(&two, &ratio(numerator, denominator)), Ok(expected));
    }
    // Not in lowest terms.
    assert_eq!(kappa(&two, &BigRational::new_raw(BigInt::from(6), BigInt::from(48))), Ok(4));
    assert_eq!(kappa(&exponential(7, 2), &ratio(1, 2)), Ok(2));
    // A level of both kinds: 2 e^(1/10), whose third power is above 8 and below 8 e.
    let mixed = Level::new(ratio(2, 1), ratio(1, 10));
    assert_eq!(kappa(&mixed, &ratio(1, 8)), Ok(4));
    assert_eq!(kappa(&mixed, &ratio(1, 11)), Ok(5));
    let far = kappa(&exponential(1, i64::MAX), &ratio(1, i64::MAX));
    assert!(matches!(far, Err(Error::TooLarge { .. })));
}

#[test]
fn the_multiplier_is_the_floor() {
    let unit = BigUint::one() << 128_u32;
    let rational = LowerMultiplier::new(&Level::rational(ratio(4, 3))).expect("above 1");
    assert_eq!(rational.numerator(), &(&unit * 4_u32 / 3_u32));
    assert_eq!(rational.times(&BigUint::from(300_u32)), BigUint::from(399_u32));
    assert_eq!(rational.divide_up(&BigUint::from(300_u32)), BigUint::from(226_u32));
    let huge = LowerMultiplier::new(&exponential(1000, 1)).expect("above 1");
    assert_eq!(huge.numerator(), &(unit << 64_u32));
    // Epsilons of a million zeros are not written out; the least one that counts is.
    let power =
        |bits: u32| Level::new(BigRational::one(), BigRational::new(BigInt::one(), BigInt::one() << bits));
    let numerator = |bits| {
        LowerMultiplier::new(&power(bits)).expect("at least 1").numerator() - (BigUint::one() << 128_u32)
    };
    assert_eq!([4_000_000, 129, 128].map(numerator), [0_u32, 0, 1].map(BigUint::from));
    assert!(LowerMultiplier::new(&Level::rational(ratio(1, 2))).is_err());
}

#[test]
fn tables_for_less_noise_are_refused() {
    let (level, delta) = (exponential(1, 1), ratio(1, 1_000_000));
    let good = half(&table(&level, &delta, KappaRule::Tight));
    assert_eq!(tdlap::certify(&good, &level, &delta), Ok(()));
    // Half the noise; ends that are too likely; a level a little below.
    let louder = half(&table(&exponential(2, 1), &delta, KappaRule::Paper));
    assert!(premise(tdlap::certify(&louder, &level, &delta)).contains("factor"));
    let smaller = BigRational::new(BigInt::from(good[good.len() - 1].clone()) - 1, BigInt::one() << 128_u32);
    assert!(premise(tdlap::certify(&good, &level, &smaller)).contains("ends"));
    assert!(premise(tdlap::certify(&good, &exponential(999_999, 1_000_000), &delta)).contains("factor"));
}

#[test]
fn every_fault_of_a_table_is_refused() {
    let (level, delta) = (Level::rational(ratio(3, 2)), ratio(1, 4));
    let unit = BigUint::one() << 120_u32;
    let scaled = |values: &[u32]| values.iter().map(|&value| &unit * value).collect::<Vec<_>>();
    let refused = |values: &[u32]| premise(tdlap::certify(&scaled(values), &level, &delta));
    // 256 = 72 + 2 (54 + 38): all premises hold.
    assert_eq!(tdlap::certify(&scaled(&[72, 54, 38]), &level, &delta), Ok(()));
    assert!(refused(&[]).contains("empty"));
    assert!(refused(&[256]).contains("single"));
    assert!(refused(&[148, 54, 0]).contains('0'));
    assert!(refused(&[73, 54, 38]).contains("sum"));
    // All ratios are fine, and the total is 512 = 2 * 256: 0 to whoever adds modulo 2^128.
    assert!(refused(&[114, 82, 55, 37, 25]).contains("sum"));
    assert!(refused(&[74, 56, 35]).contains("factor"));
    assert!(refused(&[84, 52, 34]).contains("factor"));
    // Falling toward the center by more than the factor is as bad.
    assert!(refused(&[36, 55, 55]).contains("factor"));
    assert!(refused(&[108, 74]).contains("ends"));
}

#[test]
fn refusals_name_parameters_that_work() {
    let power = |exponent: i32| BigRational::from_integer(2.into()).pow(exponent);
    let works = |level: &Level, delta: &BigRational| {
        TruncatedDiscreteLaplaceTable::new(level, delta, KappaRule::Paper, &Control::new())
    };
    // Noise that falls too fast for 2^128; at the last delta no noise keeps its ends accurate.
    for (epsilon, bits, other_epsilon) in [(50, 100, true), (30, 100, true), (20, 120, false)] {
        let (level, delta) = (exponential(epsilon, 1), power(-bits));
        let message = works(&level, &delta).expect_err("too steep").to_string();
        let named =
            |after: &str| -> Option<i32> { message.split(after).nth(1)?.split(' ').next()?.parse().ok() };
        let exponent = named("delta >= 2^-").expect("a delta");
        assert!(works(&level, &power(-exponent)).is_ok(), "{message}");
        assert!(works(&level, &power(-exponent - 1)).is_err(), "{message}");
        let exponent = named("epsilon = 2^");
        assert_eq!(exponent.is_some(), other_epsilon, "{message}");
        if let Some(exponent) = exponent {
            assert!(works(&Level::new(BigRational::one(), power(exponent)), &delta).is_ok(), "{message}");
        }
    }
}

#[test]
fn a_tight_ladder_stops_where_it_cannot_be_held() {
    // The ends creep toward delta for thousands of ladders, long after rounding has spoilt them.
    let delta = BigRational::new(BigInt::one(), BigInt::one() << 116_u32);
    let (level, control) = (exponential(1, 64), Control::new());
    let refused = TruncatedDiscreteLaplaceTable::new(&level, &delta, KappaRule::Tight, &control);
    assert!(refused.expect_err("too long").to_string().contains("delta >= 2^-106"));
}

#[test]
fn every_value_has_its_share_of_the_bits() {
    for (level, delta) in [(exponential(1, 2), ratio(1, 1000)), (Level::rational(ratio(20, 1)), ratio(1, 50))]
    {
        for rule in [KappaRule::Paper, KappaRule::Tight] {
            let table = table(&level, &delta, rule);
            let mut first = 0_u128;
            for (value, numerator) in table.numerators().enumerate() {
                let last = first + (numerator - 1);
                assert_eq!(table.table().value(first), value as u64);
                assert_eq!(table.table().value(last), value as u64);
                first = last.wrapping_add(1);
            }
            assert_eq!(first, 0, "the shares fill 2^128");
        }
    }
}

#[test]
fn blocks_of_draws_equal_single_ones() {
    let table = table(&exponential(1, 10), &ratio(1, 1_000_000), KappaRule::Paper);
    let seed = BigUint::from(5_u32);
    let (mut source, mut same) =
        (Source::seeded(&seed).expect("a seed"), Source::seeded(&seed).expect("a seed"));
    let mut draws = vec![0; 2500];
    table.table().draw_many(&mut source, &mut draws, &Control::new()).expect("draws");
    for draw in draws {
        assert_eq!(draw, table.table().draw(&mut same).expect("a draw").cast_signed());
    }
    let control = Control::new();
    control.cancel();
    assert_eq!(table.table().draw_many(&mut source, &mut [0], &control), Err(Error::Canceled));
}

#[test]
fn refusals_have_their_share_of_the_bits() {
    let table =
        RefusalTable::new(&exponential(4, 5), &ratio(5, 10_000_000), &Control::new()).expect("a table");
    assert_eq!((table.certain_size(), table.deletions()), (35, 68));
    for (size, numerator) in table.numerators().enumerate() {
        match u128::try_from(&numerator) {
            Ok(0) => assert!(!table.refuses_with(size, 0)),
            Ok(share) => assert!(table.refuses_with(size, share - 1) && !table.refuses_with(size, share)),
            Err(_) => assert!(size == 35 && table.refuses_with(size, u128::MAX)),
        }
    }
    assert!(table.refuses_with(36, u128::MAX) && table.refuses_with(usize::MAX, u128::MAX));
}

#[test]
fn every_fault_of_a_refusal_table_is_refused() {
    let (level, delta) = (Level::rational(ratio(2, 1)), ratio(1, 8));
    let unit = BigUint::one() << 125_u32;
    let scaled = |values: &[u32]| values.iter().map(|&value| &unit * value).collect::<Vec<_>>();
    let refused = |values: &[u32]| premise(refusal::certify(&scaled(values), &level, &delta));
    // In eighths, with delta = 1: q may rise to 2 q + 1, and 1 - q fall from 2 (1 - q) + 1.
    assert_eq!(refusal::certify(&scaled(&[0, 1, 3, 6, 7, 8]), &level, &delta), Ok(()));
    assert!(refused(&[]).contains("two entries"));
    assert!(refused(&[0, 8]).contains("rise"));
    assert!(refused(&[1, 3, 6, 7, 8]).contains("0 to 1"));
    assert!(refused(&[0, 1, 3, 6, 7]).contains("0 to 1"));
    assert!(refused(&[0, 1, 3, 2, 3, 6, 7, 8]).contains("falls"));
    assert!(refused(&[0, 2, 5, 7, 8]).contains("rise"));
    assert!(refused(&[0, 1, 3, 7, 8]).contains("answers"));
    assert!(refused(&[0, 1, 3, 6, 8]).contains("answers"));
}

#[test]
fn bad_parameters_are_refused() {
    let control = Control::new();
    let one = ratio(1, 1);
    for (level, delta) in [
        (Level::rational(one.clone()), ratio(1, 2)),
        (Level::rational(ratio(1, 2)), ratio(1, 2)),
        (exponential(1, 1), BigRational::zero()),
        (exponential(1, 1), one.clone()),
        (exponential(1, 1), ratio(-1, 2)),
    ] {
        assert!(matches!(kappa(&level, &delta), Err(Error::InvalidArgument { .. })));
        assert!(matches!(RefusalTable::new(&level, &delta, &control), Err(Error::InvalidArgument { .. })));
        for rule in [KappaRule::Paper, KappaRule::Tight] {
            let built = TruncatedDiscreteLaplaceTable::new(&level, &delta, rule, &control);
            assert!(matches!(built, Err(Error::InvalidArgument { .. })));
        }
    }
}

#[test]
fn the_system_gives_different_bits() {
    let mut source = Source::system();
    assert_ne!(source.bits().expect("entropy"), source.bits().expect("entropy"));
    assert!(source.below(&BigUint::zero()).is_err());
    assert_eq!(source.below(&BigUint::one()).expect("entropy"), BigUint::zero());
    assert_eq!(source.subset(6, 6, &Control::new()).expect("entropy"), [0, 1, 2, 3, 4, 5]);
    assert!(source.subset(6, 7, &Control::new()).is_err());
    assert_eq!(source.weighted(&[BigUint::zero(), BigUint::one(), BigUint::zero()]), Ok(1));
    assert!(source.weighted(&[]).is_err());
    assert!(Source::seeded(&(BigUint::one() << 256_u32)).is_err());
}

#[test]
fn listed_bytes_are_used_in_order_and_once() {
    let mut source = Source::listed((0..40).collect());
    let bytes: Vec<u8> = (0..36).collect();
    assert_eq!(source.bits().expect("16 bytes").to_le_bytes(), bytes[..16]);
    let mut next = [0; 20];
    source.fill(&mut next).expect("20 bytes");
    assert_eq!(next, bytes[16..]);
    assert!(matches!(source.bits(), Err(Error::Entropy { .. })), "4 bytes are left");
    assert_eq!(format!("{source:?}"), "Source::listed(..)");
}

#[test]
fn long_requests_of_the_system_do_not_repeat() {
    let mut source = Source::system();
    let (mut first, mut second) = (vec![0; 4096], vec![0; 4096]);
    source.fill(&mut first).expect("entropy");
    source.fill(&mut second).expect("entropy");
    assert!(first != second && first[..32] != first[32..64] && !first.windows(32).any(|run| run == [0; 32]));
}
