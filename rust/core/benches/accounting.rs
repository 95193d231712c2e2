//! Times of exact decisions about pairs: responses composed, groups, dominance. Results are checked before they are timed.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use num_bigint::BigUint;
use num_integer::Integer;
use std::hint::black_box;
use userdp_core::{
    composition::{Responses, divergence_of_responses, grouped_pair, pair_dominates},
    control::Control,
    exact::gcd::gcd,
};

fn number(x: u64) -> BigUint {
    BigUint::from(x)
}

/// Weights of a linear congruential generator.
fn weights(length: u64, seed: u64) -> Vec<BigUint> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        number((state >> 33) % 1000 + 1)
    };
    (0..length).map(|_| next()).collect()
}

fn responses(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("accounts");
    group.sample_size(10);
    let control = Control::new();
    for count in [64, 1000, 20_000] {
        let (top, bottom, k) = (number(1001), number(1000), number(count));
        group.bench_function(BenchmarkId::new("delta of randomized responses", count), |bencher| {
            bencher.iter(|| {
                let made = Responses::new(black_box(&top), &bottom, &k, &control).expect("valid");
                divergence_of_responses(&[&made], &number(2), &number(1), &control)
            });
        });
    }
    group.finish();
}

fn groups(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("accounts");
    group.sample_size(10);
    let control = Control::new();
    for (outcomes, size) in [(5, 500), (40, 100), (200, 50)] {
        let (p, q) = (weights(outcomes, 1), weights(outcomes, 2));
        let size = number(size);
        let (found, _) = grouped_pair(&p, &q, &size, &control).expect("valid");
        assert!(found.len() as u64 > outcomes);
        group.bench_function(
            BenchmarkId::new(format!("a group, pair of {outcomes} outcomes"), &size),
            |bencher| {
                bencher.iter(|| grouped_pair(black_box(&p), &q, &size, &control));
            },
        );
    }
    group.finish();
}

fn dominance(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("accounts");
    let control = Control::new();
    for outcomes in [100, 10_000] {
        let (p, q) = (weights(outcomes, 1), weights(outcomes, 2));
        assert_eq!(pair_dominates((&p, &q), (&p, &q), &control), Ok(true));
        group.bench_function(BenchmarkId::new("dominance of a pair and itself", outcomes), |bencher| {
            bencher.iter(|| pair_dominates((black_box(&p), &q), (&p, &q), &control));
        });
    }
    group.finish();
}

fn divisors(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("accounts");
    for words in [8, 64, 512] {
        let long = |seed| weights(words, seed).iter().fold(number(1), |product, x| (product << 64_u32) + x);
        let (a, b) = (long(1), long(2));
        assert_eq!(gcd(&a, &b), a.gcd(&b));
        group.bench_function(
            BenchmarkId::new("greatest common divisor, by leading bits", 64 * words),
            |bencher| {
                bencher.iter(|| gcd(black_box(&a), &b));
            },
        );
        group.bench_function(
            BenchmarkId::new("greatest common divisor, bit by bit", 64 * words),
            |bencher| {
                bencher.iter(|| black_box(&a).gcd(&b));
            },
        );
    }
    group.finish();
}

criterion_group!(benches, responses, groups, dominance, divisors);
criterion_main!(benches);
