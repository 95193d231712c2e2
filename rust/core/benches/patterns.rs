//! Times of patterns on many short texts, on one long text, and of patterns whose automaton is large.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use userdp_core::{control::Control, table::patterns::Pattern};

fn pattern(text: &str) -> Pattern {
    Pattern::new(&text.chars().map(u32::from).collect::<Vec<_>>()).expect("a pattern")
}

fn count(pattern: &Pattern, texts: &[String]) -> usize {
    let found = pattern.matches(texts, &Control::new()).expect("nobody cancels");
    found.into_iter().filter(|&yes| yes).count()
}

fn short_texts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("patterns");
    group.sample_size(10).throughput(Throughput::Elements(1_000_000));
    let texts: Vec<_> = (0..1_000_000_u32)
        .map(|number| format!("{}{:05} city", if number % 2 == 0 { "EC" } else { "é" }, number % 99_991))
        .collect();
    for (text, yes) in [(r"[A-Z]{1,2}\d+ .*", 500_000), (r".*(city|town|village)", 1_000_000)] {
        let pattern = pattern(text);
        assert_eq!(count(&pattern, &texts), yes);
        group.bench_function(BenchmarkId::new("many short texts", text), |bencher| {
            bencher.iter(|| count(black_box(&pattern), black_box(&texts)));
        });
    }
    group.finish();
}

fn long_texts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("patterns");
    group.sample_size(10).throughput(Throughput::Bytes(1_000_000));
    // Letters in no order, so that the third has as many sets of states as there are places.
    let mut state = 1_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if state >> 63 == 0 { "ab" } else { "ba" }
    };
    let texts = [(0..500_000).map(|_| letter()).collect::<String>()];
    for (text, yes) in [(r"(ab|ba|c)*", 1), (r"(a|b|ab)*(a?){50}c", 0), (r".*a.{201}c?.*c", 0)] {
        let pattern = pattern(text);
        assert_eq!(count(&pattern, &texts), yes);
        group.bench_function(BenchmarkId::new("a long text", text), |bencher| {
            bencher.iter(|| count(black_box(&pattern), black_box(&texts)));
        });
    }
    group.finish();
}

fn readings(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("patterns");
    for text in [r"[A-Z]{1,2}\d+ .*", r".{1000}", r"([^\d\s]{2,9}[é-ü]|\w+){90}"] {
        group.bench_function(BenchmarkId::new("reading", text), |bencher| {
            bencher.iter(|| pattern(black_box(text)));
        });
    }
    group.finish();
}

criterion_group!(benches, short_texts, long_texts, readings);
criterion_main!(benches);
