//! Times of the core's draws, with random bits of the operating system as in releases; what is drawn is checked first,
//! with a seed. Scores are equal, or one is far ahead: in constant time both take as long.

mod common;

use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
    measurement::WallTime,
};
use std::hint::black_box;
use userdp_core::{
    Result,
    control::Control,
    exact::{Integer, Level, Natural, Rational},
    rng::Source,
    sampler::{
        DiscreteGaussian, DiscreteLaplaceTables, KappaRule, TruncatedDiscreteLaplaceTable,
        exponential::{Draws, Rate, permute_flip},
    },
};

/// Draws in a call: the operating system is asked once for all of them.
const DRAWS: usize = 1 << 14;

fn rational(numerator: u64, denominator: u64) -> Rational {
    Rational::new(Integer::from(numerator), Integer::from(denominator))
}

/// Draws `number` candidates with scores of which lower ones are better.
type Selection = fn(Rate, &[i64], &mut Source, &mut [i64]) -> Result<()>;

fn by_exponential_mechanism(
    rate: Rate,
    scores: &[i64],
    source: &mut Source,
    draws: &mut [i64],
) -> Result<()> {
    Draws::new(rate, scores, false)?.draw_many(source, draws, &Control::new())
}

fn by_permute_and_flip(rate: Rate, scores: &[i64], source: &mut Source, draws: &mut [i64]) -> Result<()> {
    let mut choice = permute_flip::Draws::new(rate, scores, false, draws.len())?;
    let bytes = permute_flip::bytes_of_draw(scores.len()) * draws.len();
    choice.draw_many(&mut source.stream(bytes as u64)?, draws, &Control::new())
}

/// Equal scores are drawn alike, and one that is 40 scales ahead is always drawn.
fn check_selection(rate: Rate, select: Selection) {
    let mut source = Source::seeded(&Natural::from(1_u8)).expect("a seed");
    let mut draws = vec![0; 4000];
    select(rate, &[0; 4], &mut source, &mut draws).expect("draws");
    for candidate in 0..4 {
        let count = draws.iter().filter(|&&draw| draw == candidate).count();
        assert!(count.abs_diff(1000) < 165, "six deviations of 27.4");
    }
    select(rate, &[80, 80, 0, 80], &mut source, &mut draws).expect("draws");
    assert!(draws.iter().all(|&draw| draw == 2));
}

fn selections(group: &mut BenchmarkGroup<'_, WallTime>) {
    let rate = Rate::new(&Level::from_epsilon(1.0), 1, false).expect("a rate");
    let selections: [(&str, Selection); 2] =
        [("exponential mechanism", by_exponential_mechanism), ("permute-and-flip", by_permute_and_flip)];
    for (mechanism, select) in selections {
        check_selection(rate, select);
        for (candidates, number) in [(10, 1), (1000, 1), (100_000, 1), (1000, 1000)] {
            let equal = vec![0; candidates];
            // 20 scales of 2 / epsilon.
            let mut peaked = vec![40; candidates];
            peaked[candidates / 3] = 0;
            for (kind, scores) in [("equal", equal), ("peaked", peaked)] {
                let draws = if number == 1 { "one draw" } else { "1000 draws" };
                let id = BenchmarkId::new(format!("{mechanism}, {kind}, {draws}"), candidates);
                let (mut source, mut drawn) = (Source::system(), vec![0; number]);
                group.throughput(Throughput::Elements(number as u64));
                group.bench_function(id, |bencher| {
                    bencher.iter(|| select(rate, black_box(&scores), &mut source, &mut drawn));
                });
            }
        }
    }
}

/// Times draws into a slice, after a check of their mean and variance with a seed.
fn noise(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: BenchmarkId,
    (mean, variance): (f64, f64),
    draw: impl Fn(&mut Source, &mut [i64]) -> Result<()>,
) {
    let mut drawn = vec![0; DRAWS];
    draw(&mut Source::seeded(&Natural::from(2_u8)).expect("a seed"), &mut drawn).expect("draws");
    let number = DRAWS as f64;
    let found = drawn.iter().map(|&x| x as f64).sum::<f64>() / number;
    let spread = drawn.iter().map(|&x| (x as f64 - mean).powi(2)).sum::<f64>() / number;
    assert!((found - mean).abs() < 6.0 * (variance / number).sqrt(), "the mean {found}");
    // Their kurtosis is at most 7.25, so that squares deviate by less than 2.5 variances.
    assert!((spread / variance - 1.0).abs() < 6.0 * 2.5 / number.sqrt(), "the variance {spread}");
    let mut source = Source::system();
    group.throughput(Throughput::Elements(DRAWS as u64));
    group.bench_function(id, |bencher| {
        bencher.iter(|| draw(&mut source, black_box(&mut drawn)));
    });
}

fn truncated_laplace(group: &mut BenchmarkGroup<'_, WallTime>) {
    let (delta, control) = (rational(1, 1_000_000), Control::new());
    for (name, epsilon) in [("1", 1.0), ("0.1", 0.1), ("0.01", 0.01)] {
        let level = Level::from_epsilon(epsilon);
        let make = || TruncatedDiscreteLaplaceTable::new(&level, &delta, KappaRule::Paper, &control);
        let noise_of = make().expect("a table");
        let kappa = noise_of.kappa() as f64;
        let squares = (0_u32..).zip(noise_of.numerators());
        let variance: f64 =
            squares.map(|(x, n)| (f64::from(x) - kappa).powi(2) * n as f64 / 2.0_f64.powi(128)).sum();
        let id = BenchmarkId::new("truncated discrete Laplace, epsilon", name);
        noise(group, id, (kappa, variance), |source, draws| {
            noise_of.table().draw_many(source, draws, &control)
        });
        group.throughput(Throughput::Elements(1));
        let id = BenchmarkId::new("truncated discrete Laplace, its table, epsilon", name);
        group.bench_function(id, |bencher| bencher.iter(make));
    }
}

fn laplace_and_gaussian(group: &mut BenchmarkGroup<'_, WallTime>) {
    let control = Control::new();
    let middle = 500_000;
    for scale in [1_u32, 10, 1000] {
        let level = Level::from_epsilon(1.0 / f64::from(scale));
        let make = || DiscreteLaplaceTables::new(&level, 0, 2 * middle, &control);
        let tables = make().expect("tables");
        // 2 a / (1 - a)^2 with a = e^(-1 / scale).
        let variance = 0.5 / (0.5 / f64::from(scale)).sinh().powi(2);
        let id = BenchmarkId::new("discrete Laplace, scale", scale);
        noise(group, id, (middle as f64, variance), |source, draws| {
            draws.fill(middle);
            tables.release_many(source, draws, &control)
        });
        group.throughput(Throughput::Elements(1));
        let id = BenchmarkId::new("discrete Laplace, its tables, scale", scale);
        group.bench_function(id, |bencher| bencher.iter(make));
    }
    for sigma in [1_u32, 10, 1000] {
        let squared = rational(u64::from(sigma).pow(2), 1);
        let make = || DiscreteGaussian::new(squared.clone());
        let gaussian = make().expect("a distribution");
        let id = BenchmarkId::new("discrete Gaussian, sigma", sigma);
        // At sigma = 1 the variance differs from sigma^2 by less than 1e-6.
        noise(group, id, (0.0, f64::from(sigma).powi(2)), |source, draws| {
            draws.fill(0);
            gaussian.release_many(source, draws, &control)
        });
        group.throughput(Throughput::Elements(1));
        let id = BenchmarkId::new("discrete Gaussian, its cells, sigma", sigma);
        group.bench_function(id, |bencher| bencher.iter(make));
    }
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("samplers");
    selections(&mut group);
    truncated_laplace(&mut group);
    laplace_and_gaussian(&mut group);
    group.finish();
}

criterion_group!(name = samplers; config = common::settings(); targets = benches);
criterion_main!(samplers);
