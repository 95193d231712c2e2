//! Times of accounts: Gaussian noise at a level, keys of a user, and rounds of weights.

mod common;

use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
    measurement::WallTime,
};
use std::hint::black_box;
use userdp_core::{
    composition::gaussian_delta_above,
    control::Control,
    exact::{Level, Rational, rounding::rational_from_f64},
    keys::{
        Keys, Round, RoundArguments, Rounds, groups,
        guess::{Union, gaussian_delta},
    },
};

fn fraction(numerator: u64, denominator: u64) -> Rational {
    Rational::new(numerator.into(), denominator.into())
}

/// The curve of Gaussian noise, at a delta of 1e-5 or so.
fn gaussian(group: &mut BenchmarkGroup<'_, WallTime>) {
    let (mu2, level) = (fraction(1, 14), Level::from_epsilon(1.0));
    let found = gaussian_delta_above(&mu2, &level).expect("in range");
    let about = rational_from_f64(gaussian_delta((1.0_f64 / 14.0).sqrt(), 1.0));
    assert!((&found / &about - fraction(1, 1)).to_integer() == 0.into(), "the floats agree");
    group.throughput(Throughput::Elements(1));
    group.bench_function(BenchmarkId::new("Gaussian noise at a level", 1), |bencher| {
        bencher.iter(|| gaussian_delta_above(black_box(&mu2), &level));
    });
}

/// The worst split of counts by key.
fn splits(group: &mut BenchmarkGroup<'_, WallTime>) {
    let level = rational_from_f64(1.0_f64.exp());
    for keys in [1_u64, 64, 4096, 100_000] {
        let (hidden, own) = (fraction(1_000_000_000 - 10, 1_000_000_000), fraction(1, 14 * keys));
        let delta = || {
            let mut made = Keys::new(keys, true, false, hidden.clone(), fraction(0, 1)).expect("in range");
            made.gaussian_delta((&level, &level), None, black_box(&own), &fraction(0, 1), &Control::new())
        };
        assert!(delta().expect("not canceled") < fraction(1, 2));
        group.throughput(Throughput::Elements(keys));
        group.bench_function(BenchmarkId::new("keys that vanish or move", keys), |bencher| {
            bencher.iter(delta);
        });
    }
}

/// The worst share of a user's length in two rounds.
fn rounds(group: &mut BenchmarkGroup<'_, WallTime>) {
    let level = rational_from_f64(1.0_f64.exp());
    for keys in [1_u64, 8, 64, 4096] {
        let many = groups(keys).expect("in range").len();
        let made = |sigma: u64, shown: u64| {
            Round::new(&RoundArguments {
                sigma_squared: fraction(sigma * sigma, 1),
                weight: 1,
                max_keys: keys,
                replace: false,
                walk: false,
                slack: 0,
                moved: keys,
                distance: fraction(0, 1),
                shown: vec![fraction(1, shown * keys); many],
                between: Vec::new(),
            })
            .expect("in range")
        };
        let two = Rounds::new(vec![made(12, 1_000_000), made(4, 100_000)]).expect("two");
        let delta = || two.delta((black_box(&level), &level), &Control::new());
        assert!(delta().expect("not canceled") < fraction(1, 100));
        group.throughput(Throughput::Elements(keys));
        group.bench_function(BenchmarkId::new("two rounds of weights", keys), |bencher| {
            bencher.iter(delta);
        });
        let union = Union::new(keys, false, false).expect("in range");
        group.bench_function(BenchmarkId::new("two rounds of weights, proposed", keys), |bencher| {
            bencher.iter(|| union.proposed(1.0, 1e-5, black_box(&[0.1, 0.9]), &Control::new()));
        });
    }
}

fn all(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("keys");
    gaussian(&mut group);
    splits(&mut group);
    rounds(&mut group);
    group.finish();
}

criterion_group! { name = benches; config = common::settings(); targets = all }
criterion_main!(benches);
