//! Times of the core's divergences. `cargo bench` needs no Python; the results are checked before they are timed.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use userdp_core::{
    control::Control,
    divergence::{
        Difference, exp_epsilon_at_delta,
        hockey_stick::quick_hockey_stick_of_floats,
        kernel::{Kernel, sums_with},
    },
    exact::{
        Level,
        rounding::{Direction, rational_from_f64},
    },
    pmf::Pmf,
};

/// A reproducible pmf: a linear congruential walk, normalized.
fn pmf(length: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let raw: Vec<f64> = (0..length)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 + 1.0
        })
        .collect();
    let total: f64 = raw.iter().sum();
    raw.iter().map(|x| x / total).collect()
}

fn benches(criterion: &mut Criterion) {
    let level = Level::from_epsilon(0.5);
    let machine = level.machine().expect("0.5 is in range");
    let control = Control::new();
    for length in [16, 256, 4096, 1_000_000] {
        let (p, q) = (pmf(length, 1), pmf(length, 2));
        let exact = |p, q| {
            let (p, q) = (Pmf::from_floats(p, "p").expect("a pmf"), Pmf::from_floats(q, "q").expect("a pmf"));
            let difference = Difference::new(&p, &q, &level, &control).expect("not canceled");
            difference.to_f64(&level, Direction::Nearest)
        };
        let fast = quick_hockey_stick_of_floats(&p, &q, &level).expect("valid pmfs, settled by one pass");
        assert_eq!(
            fast.to_bits(),
            exact(&p[..], &q[..]).to_bits(),
            "the fast path is the exact value, rounded"
        );

        let mut group = criterion.benchmark_group("hockey_stick");
        group.throughput(Throughput::Elements(length as u64));
        group.bench_function(BenchmarkId::new("validated and rounded", length), |bencher| {
            bencher.iter(|| quick_hockey_stick_of_floats(black_box(&p), black_box(&q), &level));
        });
        for kernel in Kernel::supported() {
            group.bench_function(BenchmarkId::new(format!("kernel {kernel:?}"), length), |bencher| {
                bencher.iter(|| sums_with(kernel, black_box(&p), black_box(&q), machine));
            });
        }
        if length <= 4096 {
            group.bench_function(BenchmarkId::new("exact arithmetic only", length), |bencher| {
                bencher.iter(|| exact(black_box(&p[..]), black_box(&q[..])));
            });
        }
        group.finish();

        if length <= 4096 {
            let (p, q) = (Pmf::from_floats(p, "p").expect("a pmf"), Pmf::from_floats(q, "q").expect("a pmf"));
            let delta = rational_from_f64(1e-3);
            criterion.bench_function(&format!("epsilon_at_delta/{length}"), |bencher| {
                bencher.iter(|| exp_epsilon_at_delta(black_box(&p), black_box(&q), &delta, &control));
            });
        }
    }
}

criterion_group!(divergence, benches);
criterion_main!(divergence);
