//! Times of the core's shared race. `cargo bench` needs no Python; the results are checked before they are timed.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use userdp_core::{
    control::Control,
    correlated::race::{self, Weights},
    public::PublicSeed,
};

const ITEMS: usize = 1_000_000;

fn benches(criterion: &mut Criterion) {
    let (seed, control) = (PublicSeed::new([7; 32]), Control::new());
    let weights: Vec<f64> = (0..ITEMS).map(|item| 1.0 / (1.0 + (item % 1000) as f64)).collect();
    let keys = || race::keys(&seed, "bench", 0, ITEMS, &control).expect("not canceled");
    let plain = || race::winner(&seed, "bench", 0, Weights::Plain(&weights), &control).expect("weights");
    let sums: Vec<f64> = keys().iter().zip(&weights).map(|(key, weight)| key + weight.ln()).collect();
    assert_eq!(sums[plain()], sums.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    let mut group = criterion.benchmark_group("race");
    group.throughput(Throughput::Elements(ITEMS as u64));
    group.bench_function("keys", |bencher| bencher.iter(|| black_box(keys())));
    group.bench_function("weights", |bencher| bencher.iter(|| black_box(plain())));
    group.bench_function("log-weights", |bencher| {
        bencher.iter(|| race::winner(&seed, "bench", 0, Weights::Logarithms(black_box(&weights)), &control));
    });
    group.finish();
}

criterion_group!(correlated, benches);
criterion_main!(correlated);
