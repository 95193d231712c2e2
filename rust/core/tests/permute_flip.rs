//! Permute-and-flip around the sizes of words and parts, its random bytes, and its distribution.

use chacha20::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One, ToPrimitive};
use userdp_core::{
    Error,
    control::Control,
    exact::{Level, Natural},
    rng::Source,
    sampler::exponential::{
        Rate,
        permute_flip::{Draws, MOST_BOUNDED, bounds, bytes_of_draw, certified_epsilon, numerators},
    },
    simd::keystream::{WIDE_BYTES, fill_wide},
};

fn rate(epsilon: f64) -> Rate {
    Rate::new(&Level::from_epsilon(epsilon), 1, false).expect("valid input")
}

/// The slow twin: which coins succeed, and the one at the place among them.
fn naive(weights: &[u128], bytes: &[u8]) -> i64 {
    let winners: Vec<usize> = (0..weights.len())
        .filter(|&i| {
            let mut coin = [0; 16];
            coin[..13].copy_from_slice(&bytes[13 * i..13 * i + 13]);
            u128::from_le_bytes(coin) >> 1 < weights[i]
        })
        .collect();
    let place: [u8; 16] = bytes[bytes.len() - 16..].try_into().expect("16 bytes");
    let rank = (BigUint::from(u128::from_le_bytes(place)) * winners.len()) >> 128_u32;
    i64::try_from(winners[rank.to_usize().expect("a rank")]).expect("an index")
}

#[test]
fn draws_are_those_of_the_slow_twin() {
    for k in [1_usize, 2, 63, 64, 65, 127, 128, 129, 511, 512, 513, 640, 1024, 1025, 1700] {
        let scores: Vec<i64> = (0_i64..).take(k).map(|i| (i * i * 7919 + 13) % 23).collect();
        let reversed: Vec<i64> = scores.iter().map(|&score| !score).collect();
        let weights = rate(0.7).weights(&scores);
        for number in [1_usize, 2, 7, 60] {
            let each = bytes_of_draw(k);
            let mut bytes = vec![0; each * number];
            ChaCha20Rng::from_seed([k.to_le_bytes()[0]; 32]).fill_bytes(&mut bytes);
            // Nobody but the best, and everybody.
            bytes[..each - 16].fill(if number == 2 { 0xff } else { 0 });
            let expected: Vec<i64> = bytes.chunks(each).map(|bytes| naive(&weights, bytes)).collect();
            for (scores, maximize) in [(&scores, false), (&reversed, true)] {
                let mut stream = Source::listed(bytes.clone()).stream(bytes.len() as u64).expect("enough");
                let mut draws = vec![0; number];
                Draws::new(rate(0.7), scores, maximize, number)
                    .expect("valid input")
                    .draw_many(&mut stream, &mut draws, &Control::new())
                    .expect("not canceled");
                assert_eq!(draws, expected, "k = {k}");
            }
        }
    }
}

#[test]
fn eight_blocks_are_those_of_the_crate() {
    for (key, block) in
        [([0; 32], 0), ([7; 32], 5), (std::array::from_fn(|i| 255 - i.to_le_bytes()[0]), (1 << 32) - 3)]
    {
        let mut expected = vec![0; 3 * WIDE_BYTES];
        let mut crates = ChaCha20Rng::from_seed(key);
        crates.set_word_pos(16 * u128::from(block));
        crates.fill_bytes(&mut expected);
        let mut found = vec![1; 3 * WIDE_BYTES];
        if fill_wide(&key, block, &mut found) {
            assert_eq!(found, expected);
        }
    }
    // The first bytes of the zero key, as published.
    let mut found = vec![0; WIDE_BYTES];
    if fill_wide(&[0; 32], 0, &mut found) {
        assert_eq!(found[..8], [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90]);
    }
}

#[test]
fn a_stream_is_what_the_source_would_give() {
    for sizes in [vec![1040_usize], vec![512, 512, 16], vec![16, 1024], vec![8, 520, 512, 4], vec![1024, 16]]
    {
        let total: usize = sizes.iter().sum();
        let mut expected = vec![0; total + 8];
        let seed = Natural::from(9_u32);
        Source::seeded(&seed).expect("a seed").fill(&mut expected).expect("bytes");
        let mut source = Source::seeded(&seed).expect("a seed");
        let mut stream = source.stream(total as u64).expect("bytes");
        let mut found = vec![0; total];
        let mut rest = found.as_mut_slice();
        for size in sizes {
            let (part, others) = rest.split_at_mut(size);
            stream.fill(part);
            rest = others;
        }
        assert_eq!(found, expected[..total]);
        // The source goes on behind it.
        let mut next = [0; 8];
        source.fill(&mut next).expect("bytes");
        assert_eq!(next, expected[total..]);
    }
    assert!(matches!(Source::listed(vec![0; 15]).stream(16), Err(Error::Entropy { .. })));
    let parts: Vec<Vec<u8>> = [100, 2000]
        .iter()
        .map(|&size| {
            let mut bytes = vec![0; size];
            Source::system().stream(size as u64).expect("entropy").fill(&mut bytes);
            bytes
        })
        .collect();
    // A run of zeros of this length has probability 2^-800.
    assert!(parts.iter().all(|bytes| bytes.iter().any(|&byte| byte != 0)));
}

#[test]
fn numerators_have_their_sum_and_lie_between_the_bounds() {
    for k in [1_usize, 2, 5, 17] {
        let scores: Vec<i64> = (0_i64..).take(k).map(|i| (i * 5) % 7).collect();
        let weights = rate(1.0).weights(&scores);
        let exact = numerators(&weights, &Control::new()).expect("few candidates");
        let bits = 103 * k + 128;
        assert_eq!(exact.iter().sum::<Natural>(), Natural::one() << bits);
        let (lower, upper) = bounds(&weights, &Control::new()).expect("few candidates");
        let total = BigInt::one() << bits;
        for ((mass, low), high) in exact.iter().zip(lower).zip(upper) {
            let mass = BigRational::new(mass.clone().into(), total.clone());
            let [low, high] = [low, high].map(|end| BigRational::from_float(end).expect("finite"));
            assert!(low <= mass && mass <= high);
        }
    }
    let many = vec![1_u128 << 103; MOST_BOUNDED + 1];
    assert!(matches!(bounds(&many, &Control::new()), Err(Error::TooLarge { .. })));
    assert!(matches!(numerators(&many[..65], &Control::new()), Err(Error::TooLarge { .. })));
}

#[test]
fn the_certificate_is_below_that_of_the_exponential_mechanism() {
    for epsilon in [1e-9, 0.1, 1.0, 80.0] {
        assert!(certified_epsilon(&rate(epsilon)) < rate(epsilon).certified_epsilon());
    }
}
