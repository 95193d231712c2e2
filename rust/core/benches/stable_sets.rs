//! Times of searches for smallest stable sets, and of the last draw of a release.
//!
//! Choices of types: all choices fail, each for a reason of its own, or the first one is as good as any. Covers: graphs
//! on 45 users. Draws: of 8 outputs, by masses of 53 and of 1,000 bits.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::{hint::black_box, sync::Arc};
use userdp_core::{
    control::Control,
    exact::{Level, Natural, Rational},
    family::PmfMatrix,
    pmf::Pmf,
    rng::Source,
    stability::{
        Closeness, Key, Keys, Problem, Question, StableSearch, draw_of_rows, outside_smallest_cover,
    },
};

fn pmf(weights: Vec<Natural>) -> Pmf<'static> {
    let total = weights.iter().sum();
    Pmf::from_weights(weights, total, "pmfs", &Control::new()).expect("weights are positive")
}

fn pair(first: u32, second: u32) -> Pmf<'static> {
    pmf(vec![first.into(), second.into()])
}

fn closeness() -> Closeness {
    Closeness {
        level: Arc::new(Level::rational(Rational::new(3.into(), 2.into()))),
        delta: Rational::new(1.into(), 10.into()),
    }
}

/// The users of the smallest stable sets, where kept sets of at least two kinds have a distribution of their own if
/// `apart`.
fn search(apart: bool) -> Option<usize> {
    let problem = Problem {
        counts: [vec![1; 25], vec![29]].concat(),
        unusable: 0,
        kept: 2,
        limit: 26,
        max_types: 5,
        max_choices: None,
        keys: Some(Keys::Users),
        closeness: closeness(),
    };
    let control = Control::new();
    let mut search = StableSearch::new(problem).expect("a good problem");
    while let Some(question) = search.step(&control).expect("every question is answered") {
        let Question::Keys(keys) = question else { break };
        let odd = |key: &Key| apart && matches!(key, Key::Users(kept) if kept.len() > 1);
        let pmfs = keys.iter().map(|key| if odd(key) { pair(1, 3) } else { pair(1, 1) }).collect();
        let matrix = PmfMatrix::from_pmfs(pmfs).expect("pmfs of two outputs");
        search.answer(Arc::new(matrix), Vec::new()).expect("as many as were asked for");
    }
    search.found().map(|found| found.size)
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stable sets");
    group.bench_function("choices, alike", |bencher| bencher.iter(|| search(black_box(false))));
    group.bench_function("choices, apart", |bencher| bencher.iter(|| search(black_box(true))));

    let control = Control::new();
    let Closeness { level, delta } = closeness();
    // A quarter of 45 users is far from the others.
    let users: Vec<_> = (0..45_u32)
        .map(|user| Some(if user % 4 == 0 { pair(1, user + 9) } else { pair(20 + user, 40) }))
        .collect();
    group.bench_function(BenchmarkId::new("cover, users", 45), |bencher| {
        bencher.iter(|| outside_smallest_cover(black_box(&users), &level, &delta, 22, &control));
    });

    for bits in [53_u32, 1000] {
        let weights = (1..=8_u32).map(|weight| (Natural::from(weight) << bits) + 1_u32).collect();
        let matrix = PmfMatrix::from_pmfs(vec![pmf(weights)]).expect("one pmf");
        let mut source = Source::seeded(&Natural::from(1_u32)).expect("a seed");
        group.bench_function(BenchmarkId::new("draw, bits of a weight", bits), |bencher| {
            bencher.iter(|| draw_of_rows(black_box(&matrix), &mut source, &control));
        });
    }
    group.finish();
}

criterion_group!(stable_sets, benches);
criterion_main!(stable_sets);
