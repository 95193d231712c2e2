//! Public randomness and shared draws: pinned bits, the logarithm against exact enclosures, kernels against each other.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed};
use proptest::prelude::*;
use userdp_core::{
    control::Control,
    correlated::{
        darts,
        logarithm::{add, add_logarithms, exponential, keys, largest, ln},
        race::{self, Weights},
    },
    exact::{
        ln::ln as exact_ln,
        rounding::{Direction, rational_from_f64, rational_to_f64},
    },
    pmf::Pmf,
    public::{PublicSeed, below},
    simd::Kernel,
};

const RELATIVE_ERROR: f64 = 1.0 / (1_u64 << 50) as f64;

fn seed() -> PublicSeed {
    PublicSeed::new(std::array::from_fn(|index| u8::try_from(index).expect("below 32")))
}

/// |value - exact| / |exact|, at most.
fn relative_error(value: f64, exact: &BigRational) -> f64 {
    let signed = BigRational::from_float(value).expect("a finite number");
    rational_to_f64(&((signed - exact) / exact).abs(), Direction::Up)
}

fn exact_logarithm(x: &BigRational) -> BigRational {
    exact_ln(x, 160).lower.to_rational()
}

/// Positive finite floats, all exponents alike.
fn positive() -> impl Strategy<Value = f64> {
    (1_u64..0x7ff0_0000_0000_0000).prop_map(f64::from_bits)
}

/// Words that are often near the ends, where one of U and 1 - U is tiny.
fn word() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0_u32..64, any::<bool>()).prop_map(|(word, shift, complement)| {
        let small = word >> shift;
        if complement { !small } else { small }
    })
}

fn check_logarithm(x: f64) {
    if x != 1.0 {
        let error = relative_error(ln(x), &exact_logarithm(&rational_from_f64(x)));
        assert!(error < RELATIVE_ERROR, "ln {x:e} is off by {error:e}");
    }
}

fn check_exponential(word: u64) {
    let scale = BigRational::from_integer(BigInt::one() << 65);
    let rest = BigRational::one() - BigRational::from_integer(BigInt::from(word) * 2 + 1) / scale;
    let error = relative_error(exponential(word), &-exact_logarithm(&rest));
    assert!(error < RELATIVE_ERROR, "the variable of {word:#x} is off by {error:e}");
}

#[test]
fn the_logarithm_at_the_edges() {
    assert_eq!(ln(1.0).to_bits(), 0);
    assert_eq!((ln(0.0), ln(-0.0)), (f64::NEG_INFINITY, f64::NEG_INFINITY));
    let half = 0.5_f64.sqrt().to_bits();
    for pattern in (half - 3..=half + 3).chain(1..5).chain([f64::MAX.to_bits()]) {
        check_logarithm(f64::from_bits(pattern));
        check_logarithm(f64::from_bits(pattern) * 2.0_f64.min(f64::MAX / f64::from_bits(pattern)));
    }
    for near in [1.0_f64.next_up(), 1.0_f64.next_down(), f64::MIN_POSITIVE, f64::MIN_POSITIVE.next_down()] {
        check_logarithm(near);
    }
    let cut = 0xb504_f333_f9de_6484_u64; // 1 - U near sqrt(1/2)
    for word in [0, 1, 2, u64::MAX, u64::MAX - 1, 1 << 63, !cut, cut, !cut + 2000, !cut - 2000] {
        check_exponential(word);
    }
    assert_eq!(exponential(0), 1.0 / (1_u128 << 65) as f64);
    assert!(exponential(u64::MAX) > 45.0 && exponential(u64::MAX).is_finite());
}

proptest! {
    #[test]
    fn the_logarithm_is_accurate(x in positive()) {
        check_logarithm(x);
    }

    #[test]
    fn exponential_variables_are_accurate(word in word()) {
        check_exponential(word);
    }

    #[test]
    fn every_kernel_computes_the_same_bits(
        words in prop::collection::vec(word(), 0..70),
        weights in prop::collection::vec(prop_oneof![Just(0.0), positive()], 70),
    ) {
        let weights = &weights[..words.len()];
        let compute = |kernel| {
            let mut sums = vec![0.0; words.len()];
            keys(kernel, &words, &mut sums);
            let mut logarithms = sums.clone();
            assert!(add_logarithms(kernel, weights, &mut sums) && add(kernel, weights, &mut logarithms));
            let top = largest(kernel, &sums);
            [sums, logarithms, vec![top]].concat().into_iter().map(f64::to_bits).collect::<Vec<_>>()
        };
        for kernel in Kernel::supported() {
            prop_assert_eq!(compute(kernel), compute(Kernel::Scalar));
        }
        let alone: Vec<u64> = words
            .iter()
            .zip(weights)
            .map(|(&word, &weight)| (-ln(exponential(word)) + ln(weight)).to_bits())
            .collect();
        prop_assert_eq!(&compute(Kernel::detect())[..words.len()], alone);
    }

    #[test]
    fn quantized_weights_are_next_to_the_masses(
        weights in prop::collection::vec(0_u32..1000, 1..40),
        total in 1_u64..5000,
    ) {
        let sum: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        prop_assume!(sum > 0);
        let naturals = weights.iter().map(|&weight| weight.into()).collect();
        let pmf = Pmf::from_weights(naturals, sum.into(), "pmf", &Control::new()).unwrap();
        let rounded = darts::quantized(&pmf, total, &Control::new()).unwrap();
        prop_assert_eq!(rounded.iter().sum::<u64>(), total);
        for (&weight, &whole) in weights.iter().zip(&rounded) {
            let (scaled, whole) = (u64::from(weight) * total, whole * sum);
            prop_assert!(whole < scaled + sum && scaled < whole + sum);
            prop_assert!(weight > 0 || whole == 0);
        }
    }
}

#[test]
fn unfit_weights_are_found_by_every_kernel() {
    for kernel in Kernel::supported() {
        for place in [0, 1, 7, 8, 30, 36] {
            for unfit in [f64::NAN, f64::INFINITY, -1.0, f64::NEG_INFINITY, -f64::MIN_POSITIVE] {
                let mut values = [1.0; 37];
                values[place] = unfit;
                assert!(!add_logarithms(kernel, &values, &mut [0.0; 37]));
                assert_eq!(add(kernel, &values, &mut [0.0; 37]), unfit < 0.0);
            }
        }
    }
}

#[test]
fn uniform_integers_are_exactly_uniform() {
    // The words that remain after refusals come in runs of the same length for every value: checked at the run's ends.
    for bound in [1, 3, 5, 7, 10, 1000, (1 << 32) + 1, (1 << 63) - 1] {
        let kept = (1_u128 << 64) / u128::from(bound);
        for value in [0, 1, bound / 2, bound - 1].into_iter().filter(|&value| value < bound) {
            let start = (u128::from(value) << 64).div_ceil(u128::from(bound));
            let end = ((u128::from(value) + 1) << 64).div_ceil(u128::from(bound));
            let words = [start, start + 1, end - 1].map(|word| u64::try_from(word).unwrap());
            let refused = words[..2].iter().filter(|&&word| below(word, bound).is_none()).count();
            assert_eq!(end - start - refused as u128, kept, "{value} below {bound}");
            assert_eq!(below(words[2], bound), Some(value));
        }
    }
}

#[test]
fn bits_are_pinned() {
    let keys = race::keys(&seed(), "pinned", 3, 70_000, &Control::new()).unwrap();
    let found: Vec<u64> = [0, 1, 2, 1023, 1024, 69_999].map(|place| keys[place].to_bits()).to_vec();
    assert_eq!(
        found,
        [
            0x3fef_0322_119b_a267,
            0xbfd2_6a2d_5a0b_650d,
            0xbfd4_c109_6ee7_c3a8,
            0x3fd5_f000_58b7_1413,
            0x3fc6_3539_2376_78f1,
            0x3ff3_f8f4_a38b_8240
        ]
    );
}

#[test]
fn the_first_largest_sum_wins_across_tasks() {
    let count = 200_000;
    let keys = race::keys(&seed(), "race", 1, count, &Control::new()).unwrap();
    let weights: Vec<f64> = (0..count).map(|place| (place % 17) as f64).collect();
    let sums: Vec<f64> = keys.iter().zip(&weights).map(|(key, &weight)| key + ln(weight)).collect();
    let top = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let winner = |weights| race::winner(&seed(), "race", 1, weights, &Control::new()).unwrap();
    assert_eq!(Some(winner(Weights::Plain(&weights))), sums.iter().position(|&sum| sum == top));
    // Sums that are all equal: 0 wins, in whichever task the others are.
    let level: Vec<f64> = keys.iter().map(|key| -key).collect();
    assert_eq!(winner(Weights::Logarithms(&level)), 0);
    let mut late = vec![f64::NEG_INFINITY; count];
    late[150_001] = -5.0;
    assert_eq!(winner(Weights::Logarithms(&late)), 150_001);
}

#[test]
fn items_win_across_tasks_whatever_their_order() {
    let count = 150_000_u32;
    let mut items: Vec<[u8; 4]> = (0..count).map(u32::to_be_bytes).collect();
    let weights = vec![1.0; items.len()];
    let winner = |items: &[[u8; 4]], logarithms: &[f64]| {
        let weights = Weights::Logarithms(logarithms);
        items[race::winner_of_items(&seed(), "items", 2, items, weights, &Control::new()).unwrap()]
    };
    let address = seed().items("items", 2);
    let key = |item: &[u8; 4]| -ln(exponential(address.word(item)));
    let best = items.iter().copied().max_by(|a, b| key(a).total_cmp(&key(b))).unwrap();
    let level: Vec<f64> = items.iter().map(|item| -key(item)).collect();
    assert_eq!(winner(&items, &weights), best);
    assert_eq!(winner(&items, &level), [0; 4]);
    items.reverse();
    assert_eq!(winner(&items, &weights), best);
    let level: Vec<f64> = items.iter().map(|item| -key(item)).collect();
    assert_eq!(winner(&items, &level), [0; 4]);
}
