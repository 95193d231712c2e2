//! Times of the core's divergences. `cargo bench` needs no Python; the results are checked before they are timed.

mod common;

use common::{Walk, masses, pmf};
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
    measurement::WallTime,
};
use std::hint::black_box;
use userdp_core::{
    control::Control,
    divergence::{
        Difference, exp_epsilon_at_delta,
        hockey_stick::quick_hockey_stick_of_floats,
        information::{chi2_divergence, kl_divergence, max_divergence, renyi_divergence, total_variation},
        is_indistinguishable,
        kernel::{Kernel, sums_with},
    },
    exact::{
        Integer, Level, Natural, Rational,
        rounding::{Direction, rational_from_f64},
    },
    pmf::Pmf,
};

const SIZES: [usize; 3] = [16, 256, 4096];

/// A divergence of two pmfs.
type Divergence<'a> = &'a dyn Fn(&Pmf<'_>, &Pmf<'_>, &Control) -> userdp_core::Result<f64>;

fn difference(p: &Pmf<'_>, q: &Pmf<'_>, level: &Level) -> Difference {
    Difference::new(p, q, level, &Control::new()).expect("not canceled")
}

/// One number for a pair, by floats, by the vector kernels alone, and in integers.
fn hockey_stick(group: &mut BenchmarkGroup<'_, WallTime>) {
    let level = Level::from_epsilon(0.5);
    let machine = level.machine().expect("0.5 is in range");
    for length in [16, 256, 4096, 1_000_000] {
        let (p, q) = (masses(length, 1), masses(length, 2));
        let exactly = |p: &[f64], q: &[f64]| {
            let (p, q) = (Pmf::from_floats(p, "p").expect("a pmf"), Pmf::from_floats(q, "q").expect("a pmf"));
            difference(&p, &q, &level).to_f64(&level, Direction::Nearest)
        };
        let fast = quick_hockey_stick_of_floats(&p, &q, &level).expect("valid pmfs, settled by one pass");
        assert_eq!(fast.to_bits(), exactly(&p, &q).to_bits(), "the fast path is the exact value, rounded");

        group.throughput(Throughput::Elements(length as u64));
        group.bench_function(BenchmarkId::new("hockey stick, validated and rounded", length), |bencher| {
            bencher.iter(|| quick_hockey_stick_of_floats(black_box(&p), black_box(&q), &level));
        });
        if length == 4096 {
            for kernel in Kernel::supported() {
                group.bench_function(BenchmarkId::new(format!("kernel {kernel:?}"), length), |bencher| {
                    bencher.iter(|| sums_with(kernel, black_box(&p), black_box(&q), machine));
                });
            }
        }
        if length <= 4096 {
            group.bench_function(
                BenchmarkId::new("hockey stick, exact arithmetic only", length),
                |bencher| {
                    bencher.iter(|| exactly(black_box(&p), black_box(&q)));
                },
            );
        }
    }
}

/// p = (3 w, 2 w) and q = (2 w, 3 w): at E = 3/2 every output is a tie, or below one, in both directions.
fn tied_pmfs(length: usize) -> (Pmf<'static>, Pmf<'static>) {
    let mut walk = Walk(3);
    let weights: Vec<u64> = (0..length / 2).map(|_| walk.weight()).collect();
    let total = Natural::from(5 * weights.iter().sum::<u64>());
    let times = |first: u64, second: u64| {
        let factors = [first, second].into_iter();
        let all = factors.flat_map(|factor| weights.iter().map(move |weight| Natural::from(factor * weight)));
        Pmf::from_weights(all.collect(), total.clone(), "weights", &Control::new()).expect("a pmf")
    };
    (times(3, 2), times(2, 3))
}

/// Verdicts in both directions: far from delta, equal to it, and with every output equal.
fn verdicts(group: &mut BenchmarkGroup<'_, WallTime>) {
    let control = Control::new();
    let ratio = Rational::new(Integer::from(3), Integer::from(2));
    let level = Level::rational(ratio.clone());
    for length in SIZES {
        let (p, q) = (pmf(length, 1), pmf(length, 2));
        let exact = |p, q| {
            let found = difference(p, q, &level);
            found.mass - &ratio * found.other
        };
        let worst = exact(&p, &q).max(exact(&q, &p));
        let above = &worst * Rational::new(Integer::from(11), Integer::from(10));
        let tied = tied_pmfs(length);
        for (name, (p, q), delta, by_integers) in [
            ("verdict, delta a tenth above", (&p, &q), &above, false),
            ("verdict, delta a tie", (&p, &q), &worst, true),
            ("verdict, outputs tied, delta 0", (&tied.0, &tied.1), &Rational::default(), true),
        ] {
            let decide = || is_indistinguishable(p, q, &level, delta, &control).expect("not canceled");
            let verdict = decide();
            assert!(verdict.holds && verdict.exact == by_integers, "{name}: {verdict:?}");
            group.throughput(Throughput::Elements(length as u64));
            group.bench_function(BenchmarkId::new(name, length), |bencher| bencher.iter(decide));
        }
    }
}

/// Other divergences, and the least epsilon.
fn others(group: &mut BenchmarkGroup<'_, WallTime>) {
    let control = Control::new();
    let delta = rational_from_f64(1e-3);
    for length in SIZES {
        let (p, q) = (pmf(length, 1), pmf(length, 2));
        let level = exp_epsilon_at_delta(&p, &q, &delta, &control).expect("not canceled").expect("finite");
        let level = Level::rational(level);
        let verdict = is_indistinguishable(&p, &q, &level, &delta, &control).expect("not canceled");
        assert!(verdict.holds && verdict.exact, "delta is reached at the least level");
        group.throughput(Throughput::Elements(length as u64));
        group.bench_function(BenchmarkId::new("least epsilon at delta", length), |bencher| {
            bencher.iter(|| exp_epsilon_at_delta(black_box(&p), black_box(&q), &delta, &control));
        });
    }

    let (length, order) = (256, Rational::from_integer(Integer::from(2)));
    let (p, q) = (pmf(length, 1), pmf(length, 2));
    let renyi = |p: &Pmf<'_>, q: &Pmf<'_>, control: &Control| renyi_divergence(p, q, &order, control);
    let chi2 = chi2_divergence(&p, &q, &control).expect("not canceled");
    let error = renyi(&p, &q, &control).expect("not canceled") - chi2.ln_1p();
    assert!(error.abs() < 1e-12, "the Renyi divergence of order 2 is ln(1 + chi^2)");
    let divergences: [(&str, Divergence<'_>); 5] = [
        ("max divergence", &max_divergence),
        ("total variation", &total_variation),
        ("chi^2", &chi2_divergence),
        ("Kullback-Leibler", &kl_divergence),
        ("Renyi, order 2", &renyi),
    ];
    group.throughput(Throughput::Elements(length as u64));
    for (name, divergence) in divergences {
        group.bench_function(BenchmarkId::new(name, length), |bencher| {
            bencher.iter(|| divergence(black_box(&p), black_box(&q), &control));
        });
    }
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("divergences");
    hockey_stick(&mut group);
    verdicts(&mut group);
    others(&mut group);
    group.finish();
}

criterion_group!(name = divergences; config = common::settings(); targets = benches);
criterion_main!(divergences);
