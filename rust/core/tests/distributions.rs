//! Exact distributions from Rust: ties, rejections and refinements with listed words, certificates, refusals.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::One;
use userdp_core::{
    Error,
    control::Control,
    exact::Level,
    rng::Source,
    sampler::{
        Categorical, Coin, Geometric, NegativeBinomialTable, TwoSidedGeometric, Uniform,
        coin::userdp_ct_coin, uniform::userdp_ct_uniform,
    },
};

const ONES: u128 = u128::MAX;

fn ratio(numerator: i64, denominator: i64) -> BigRational {
    BigRational::new(BigInt::from(numerator), BigInt::from(denominator))
}

fn listed(words: &[u128]) -> Source {
    Source::listed(words.iter().flat_map(|word| word.to_le_bytes()).collect())
}

fn used_up<T>(result: &userdp_core::Result<T>) -> bool {
    matches!(result, Err(Error::Entropy { .. }))
}

#[test]
fn codes_of_comparisons() {
    for leading in [0, 1, 1 << 64, (1 << 64) - 1, ONES / 3, ONES - 1, ONES] {
        assert_eq!(userdp_ct_coin(leading, leading), 2);
        if leading > 0 {
            assert_eq!(userdp_ct_coin(leading, leading - 1), 1);
            assert_eq!(userdp_ct_coin(leading, 0), 1);
        }
        if leading < ONES {
            assert_eq!(userdp_ct_coin(leading, leading + 1), 0);
            assert_eq!(userdp_ct_coin(leading, ONES), 0);
        }
    }
}

#[test]
fn digits_of_coins_next_to_1() {
    // e^-x for x = 2^-4000000: ones for as long as anybody looks, and known without looking.
    let power = |bits: u32| BigRational::new(BigInt::one(), BigInt::one() << bits);
    let coin = Coin::exp_of_minus(power(4_000_000)).expect("a probability");
    assert_eq!(coin.draw(&mut listed(&[ONES - 1])), Ok(1));
    assert_eq!(coin.draw(&mut listed(&[ONES, 0])), Ok(1));
    assert!(used_up(&coin.draw(&mut listed(&[ONES, ONES, ONES]))));
    // e^-x 2^128 is just above ONES for the first two, and above ONES - 1 for the third.
    for (bits, leading) in [(129, ONES), (128, ONES), (127, ONES - 1)] {
        let coin = Coin::exp_of_minus(power(bits)).expect("a probability");
        assert_eq!(coin.draw(&mut listed(&[leading - 1])), Ok(1));
        assert_eq!(coin.draw(&mut listed(&[leading, ONES])), Ok(0));
    }
}

#[test]
fn ties_of_coins_are_carried_on() {
    let coin = Coin::rational(ratio(1, 3)).expect("a probability");
    let third = ONES / 3; // 0.0101... for ever
    assert_eq!(coin.draw(&mut listed(&[third - 1])), Ok(1));
    assert_eq!(coin.draw(&mut listed(&[third + 1])), Ok(0));
    assert_eq!(coin.draw(&mut listed(&[third, third, third - 1])), Ok(1));
    assert_eq!(coin.draw(&mut listed(&[third, third, third + 1])), Ok(0));
    assert!(used_up(&coin.draw(&mut listed(&[third, third]))));
    // A dyadic probability is not below itself; 1 is above all, and e^0 is 1.
    let half = Coin::rational(ratio(1, 2)).expect("a probability");
    assert_eq!(half.draw(&mut listed(&[1 << 127, 0])), Ok(0));
    assert_eq!(half.draw(&mut listed(&[(1 << 127) - 1])), Ok(1));
    for certain in [Coin::rational(ratio(1, 1)), Coin::exp_of_minus(ratio(0, 1))] {
        assert_eq!(certain.expect("a probability").draw(&mut listed(&[ONES, ONES])), Ok(1));
    }
    for refused in
        [Coin::rational(ratio(-1, 9)), Coin::rational(ratio(10, 9)), Coin::exp_of_minus(ratio(-1, 9))]
    {
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })));
    }
}

#[test]
fn every_value_has_the_same_number_of_words() {
    // The words of v are consecutive: from the first to the last that is accepted there are floor(2^128 / bound).
    for bound in [2_u128, 3, 5, 6, 1000, (1 << 64) - 59, (1 << 127) + 1, ONES / 3 * 2, ONES] {
        let share = (ONES - bound + 1) / bound + 1;
        let rejected = bound.wrapping_neg() % bound;
        for value in [0, 1, bound / 2, bound - 2, bound - 1] {
            // ceil(value 2^128 / bound) in long integers.
            let edge = (BigUint::from(value) << 128_u32) + BigUint::from(bound - 1);
            let first = u128::try_from(edge / bound).expect("below 2^128");
            let skipped = u128::from(userdp_ct_uniform(bound, rejected, first).1 == 0);
            let (begin, end) = (first + skipped, first + skipped + (share - 1));
            for word in [begin, end] {
                assert_eq!(userdp_ct_uniform(bound, rejected, word), (value, 1), "{word} of {bound}");
            }
            // The next one belongs to the next value.
            if end < ONES {
                assert_eq!(userdp_ct_uniform(bound, rejected, end + 1).0, value + 1);
            }
        }
    }
    assert_eq!(userdp_ct_uniform(0, 0, 12345), (12345, 1)); // 2^128
}

#[test]
fn bounds_of_uniform_integers() {
    let whole = BigUint::one() << 128_u32;
    assert_eq!(Uniform::new(&whole).expect("a bound").draw(&mut listed(&[77])), Ok(77));
    assert!(Uniform::new(&BigUint::ZERO).is_err());
    assert!(Uniform::new(&(whole + 1_u32)).is_err());
    let three = Uniform::new(&BigUint::from(3_u32)).expect("a bound");
    assert_eq!(three.draw(&mut listed(&[0, 0, ONES])), Ok(2));
    assert!(used_up(&three.draw(&mut listed(&[0, 0]))));
}

#[test]
fn indices_of_boundary_words() {
    let weights: Vec<BigUint> = [0_u32, 2, 0, 1, 1, 0].map(BigUint::from).to_vec();
    let distribution = Categorical::new(&weights).expect("weights");
    let quarter = 1_u128 << 126;
    for (word, index) in
        [(0, 1), (2 * quarter - 1, 1), (2 * quarter, 3), (3 * quarter - 1, 3), (3 * quarter, 4), (ONES, 4)]
    {
        assert_eq!(distribution.draw(&mut listed(&[word])), Ok(index));
    }
    assert!(Categorical::new(&[]).is_err());
    assert!(Categorical::new(&[BigUint::one() << 128_u32, BigUint::one()]).is_err());
    let sure = [BigUint::ZERO, BigUint::one() << 128_u32, BigUint::ZERO];
    assert_eq!(Categorical::new(&sure).expect("weights").draw(&mut listed(&[ONES])), Ok(1));
}

#[test]
fn floors_and_remainder_of_a_negative_binomial_table() {
    // r = 1, p = 1/2: the ideal distribution is 2^-(k + 1), which its lower bounds just miss.
    let distribution =
        NegativeBinomialTable::new(&ratio(1, 1), &ratio(1, 2), &Control::new()).expect("a table");
    let numerators = distribution.numerators();
    assert_eq!(numerators.iter().sum::<BigUint>(), BigUint::one() << 128_u32);
    for (k, numerator) in numerators.iter().enumerate().skip(1) {
        let ideal = BigUint::one() << (127 - k);
        assert!(numerator <= &ideal && numerator + 1_u32 >= ideal, "{k}");
    }
    assert_eq!(numerators[0], (BigUint::one() << 127_u32) - 1_u32 + distribution.remainder());
    assert!(distribution.remainder() < &BigUint::from(200_u32));

    let canceled = Control::new();
    canceled.cancel();
    assert_eq!(
        NegativeBinomialTable::new(&ratio(9, 2), &ratio(1, 2), &canceled).err(),
        Some(Error::Canceled)
    );
    for (r, p) in [(ratio(0, 1), ratio(1, 2)), (ratio(1, 1), ratio(0, 1)), (ratio(1, 1), ratio(1, 1))] {
        let refused = NegativeBinomialTable::new(&r, &p, &Control::new());
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })));
    }
}

#[test]
fn inversion_asks_for_bits_until_they_decide() {
    // 1 - p = 1/3, whose bits are 0101... for ever.
    let distribution = Geometric::new(&ratio(2, 3)).expect("a distribution");
    let third = ONES / 3;
    assert_eq!(distribution.draw(&mut listed(&[third - (1 << 100)])), Ok(1));
    assert_eq!(distribution.draw(&mut listed(&[third + (1 << 100)])), Ok(0));
    assert_eq!(distribution.draw(&mut listed(&[third, third, 0])), Ok(1));
    assert_eq!(distribution.draw(&mut listed(&[third, third, ONES])), Ok(0));
    assert!(used_up(&distribution.draw(&mut listed(&[third, third]))));
    assert!(used_up(&distribution.draw(&mut listed(&[0, 0])))); // U may be 0 as yet
    assert_eq!(Geometric::new(&ratio(1, 1)).expect("a distribution").draw(&mut listed(&[])), Ok(0));
    for refused in [ratio(0, 1), ratio(-1, 2), ratio(3, 2), ratio(1, 1 << 53)] {
        assert!(Geometric::new(&refused).is_err());
    }
}

#[test]
fn signs_and_minus_zero() {
    // q = 1/3: U in its 127 high bits, the sign in the lowest one.
    let distribution =
        TwoSidedGeometric::new(Level::rational(ratio(3, 1)), ratio(1, 1), "scale").expect("a distribution");
    let u = |eighths: u128| (eighths << 125) | (1 << 100);
    assert_eq!(distribution.draw(&mut listed(&[u(1)])), Ok(1)); // 1/9 < 1/8 < 1/3
    assert_eq!(distribution.draw(&mut listed(&[u(1) | 1])), Ok(-1));
    assert_eq!(distribution.draw(&mut listed(&[u(5)])), Ok(0));
    assert_eq!(distribution.draw(&mut listed(&[u(5) | 1, u(7) | 1, u(1) | 1])), Ok(-1));
    let (low, high) = distribution.probability(&BigUint::ZERO);
    assert!(low <= 0.5 && 0.5 <= high && high - low < 1e-15);
    assert!(TwoSidedGeometric::new(Level::rational(ratio(1, 1)), ratio(1, 1), "scale").is_err());
    assert!(TwoSidedGeometric::new(Level::rational(ratio(3, 1)), ratio(1 << 60, 1), "scale").is_err());
}
