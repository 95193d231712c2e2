//! Times of going through deletions, each for one deletion set, beside one merge of two sorted pmfs of the same size.
//!
//! One thread, so that nanoseconds are those of a core. Labeled users are enumerated as subsets, users of few kinds as
//! count vectors, and users with a number each as windows of these. Results are checked before they are timed.

mod common;

use common::{Walk, merge, sparse_pmf};
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
    measurement::WallTime,
};
use std::{hint::black_box, sync::Arc};
use userdp_core::{
    control::Control,
    exact::{Integer, Level, Rational, rounding::rational_from_f64},
    family::{
        PmfMatrix, maximum,
        scores::{Deletions, KindDeletions, TotalRows, exponential_matrix},
        verdict,
    },
    sampler::exponential::Rate,
    stability::{StableFamily, smallest_window},
    subsets::{CountVectors, DeletedSums, Subsets},
};

/// The level of all comparisons, and the outputs of the pmfs.
const EPSILON: f64 = 0.5;
const OUTPUTS: [usize; 2] = [8, 32];
/// The largest score that a user gives.
const SENSITIVITY: u64 = 4;

/// How users are counted.
struct Users {
    name: &'static str,
    /// Users of each kind; labeled users are one each.
    counts: Vec<usize>,
    deletions: usize,
    /// Of the exponential mechanism: many deleted users need a small one for divergences that are not near 1.
    epsilon: f64,
}

/// (16 choose 6) = 8,008 subsets, and (43 choose 3) = 12,341 count vectors.
fn settings() -> [Users; 2] {
    [
        Users { name: "labeled", counts: vec![1; 16], deletions: 6, epsilon: 0.8 },
        Users { name: "symmetric", counts: vec![60, 50, 50, 40], deletions: 40, epsilon: 0.08 },
    ]
}

impl Users {
    fn counts(&self) -> Vec<u64> {
        self.counts.iter().map(|&count| count as u64).collect()
    }

    /// A score of every kind for every output.
    fn scores(&self, outputs: usize) -> Vec<i64> {
        Walk(7).integers(self.counts.len() * outputs, SENSITIVITY.cast_signed())
    }

    fn matrix(&self, totals: Arc<dyn TotalRows>) -> PmfMatrix<'static> {
        let level = Level::from_epsilon(self.epsilon);
        let rate = Rate::new(&level, SENSITIVITY, false).expect("a rate");
        exponential_matrix(rate, totals, &Control::new()).expect("a matrix")
    }

    /// The pmfs after the deletions of the vectors.
    fn pmfs(&self, outputs: usize, vectors: Vec<u16>) -> PmfMatrix<'static> {
        let totals = KindDeletions::new(self.scores(outputs), outputs, &self.counts(), vectors);
        self.matrix(Arc::new(totals.expect("vectors within the counts")))
    }

    /// The pmfs of all subsets of labeled users.
    fn labeled_pmfs(&self, outputs: usize) -> PmfMatrix<'static> {
        let totals = Deletions::new(self.scores(outputs), outputs, self.deletions);
        self.matrix(Arc::new(totals.expect("subsets")))
    }

    fn family(&self) -> StableFamily {
        StableFamily::new(&self.counts, self.deletions, self.deletions / 2).expect("a family")
    }
}

/// Going through all deletion sets, and nothing else.
fn walks(group: &mut BenchmarkGroup<'_, WallTime>) {
    let [labeled, symmetric] = settings();
    let subsets = Subsets::new(labeled.counts.len(), labeled.deletions).expect("subsets");
    let all_subsets = || {
        let mut subset = subsets.unrank(0);
        1 + std::iter::from_fn(|| subsets.step(black_box(&mut subset))).count() as u64
    };
    assert_eq!((all_subsets(), subsets.count()), (8_008, 8_008));
    group.throughput(Throughput::Elements(subsets.count()));
    group.bench_function("labeled, subsets alone", |bencher| bencher.iter(all_subsets));

    let vectors = CountVectors::new(&symmetric.counts(), symmetric.deletions as u64).expect("vectors");
    let all_vectors = || {
        let mut vector = vectors.unrank(0);
        1 + std::iter::from_fn(|| vectors.step(black_box(&mut vector)).then_some(())).count() as u64
    };
    assert_eq!((all_vectors(), vectors.count()), (12_341, 12_341));
    group.throughput(Throughput::Elements(vectors.count()));
    group.bench_function("symmetric, count vectors alone", |bencher| bencher.iter(all_vectors));
}

/// The limit: one merge, of 64 pairs in turn.
fn merges(group: &mut BenchmarkGroup<'_, WallTime>, outputs: usize) {
    let pairs: Vec<_> =
        (0..64).map(|pair| (sparse_pmf(outputs, 2 * pair), sparse_pmf(outputs, 2 * pair + 1))).collect();
    let multiplier = EPSILON.exp();
    let all = || pairs.iter().map(|(p, q)| merge(black_box(p), black_box(q), multiplier)).sum::<f64>();
    let of = |pmf: &[(u32, f64)], output| pmf.iter().find(|mass| mass.0 == output).map_or(0.0, |mass| mass.1);
    let terms = pairs
        .iter()
        .flat_map(|(p, q)| p.iter().map(|&(output, mass)| (mass - multiplier * of(q, output)).max(0.0)));
    assert!((all() - terms.sum::<f64>()).abs() < 1e-9, "merges look every output up");
    group.throughput(Throughput::Elements(pairs.len() as u64));
    group.bench_function(BenchmarkId::new("merge of two sorted pmfs", outputs), |bencher| bencher.iter(all));
}

/// Making all pmfs, searching them and deciding a near tie; then r*, the size of the smallest stable set.
fn deletions(group: &mut BenchmarkGroup<'_, WallTime>, users: &Users, outputs: usize) {
    let (control, level) = (Control::new(), Level::from_epsilon(EPSILON));
    let vectors = users.family().vectors(&control).expect("not canceled");
    let pmfs = users.pmfs(outputs, vectors.clone());
    let id = |what: &str| BenchmarkId::new(format!("{}, {what}", users.name), outputs);
    group.throughput(Throughput::Elements(pmfs.rows() as u64));

    let worst = || maximum(&pmfs, &level, &control).expect("not canceled").expect("rows");
    let found = worst();
    if users.name == "labeled" {
        let again =
            maximum(&users.labeled_pmfs(outputs), &level, &control).expect("not canceled").expect("rows");
        // So many pairs tie that they are not all compared: the bounds must overlap.
        assert!(found.pair.lower <= again.upper && again.pair.lower <= found.upper);
        group.bench_function(id("pmfs"), |bencher| bencher.iter(|| users.labeled_pmfs(outputs)));
    } else {
        group.bench_function(id("pmfs"), |bencher| {
            bencher.iter_batched(
                || vectors.clone(),
                |vectors| users.pmfs(outputs, vectors),
                criterion::BatchSize::LargeInput,
            );
        });
    }
    group.bench_function(id("worst divergence"), |bencher| bencher.iter(worst));

    let decide =
        |delta: f64| verdict(&pmfs, &level, &rational_from_f64(delta), &control).expect("not canceled");
    assert!(0.0 < found.pair.lower && found.upper < 1.0);
    assert!(decide(found.upper).holds && !decide(found.pair.lower.next_down()).holds);
    group.bench_function(id("verdict, delta nearest above"), |bencher| bencher.iter(|| decide(found.upper)));

    let delta: Rational = rational_from_f64(found.pair.lower / 2.0);
    let smallest = || {
        let family = users.family();
        family.mark_bad_pairs(&pmfs, &level, &delta, &[], &control).expect("not canceled");
        family.smallest_stable_size(&control).expect("not canceled")
    };
    // Some pairs are bad, and deleting a few users leaves none of them.
    assert!(smallest().is_some_and(|size| size > 0));
    group.bench_function(id("r*"), |bencher| bencher.iter(smallest));
}

/// r* of sums: windows of the sorted values, from which D - r more are deleted at either end.
fn windows(group: &mut BenchmarkGroup<'_, WallTime>) {
    let (users, deletions, control) = (100_000, 192, Control::new());
    let mut values = Walk(9).integers(users, 4);
    values.sort_unstable();
    // Each of the D - r others is left out above or below: 4 more or less, so that r* is D - 100.
    let distance = 4 * 100;
    let smallest =
        || smallest_window(&values, deletions, distance, deletions, &control).expect("not canceled");
    let (size, start) = smallest().expect("a window");
    assert_eq!((size, start), (92, 0));
    group.throughput(Throughput::Elements((size * (size + 1) / 2 + start + 1) as u64));
    group.bench_function("additive, r*", |bencher| bencher.iter(smallest));
}

/// The sums of 20 of 2,000 users with statistics up to 1,000, and the users of one of them.
fn sums(group: &mut BenchmarkGroup<'_, WallTime>) {
    let (deletions, largest, control) = (20, 1_000, Control::new());
    let statistics: Vec<Integer> = (0..=largest).map(Integer::from).collect();
    let counts: Vec<u64> = (0..=largest).map(|statistic| 1 + statistic % 3).collect();
    assert_eq!(counts.iter().sum::<u64>(), 2_001);
    let deleted = DeletedSums::new(&statistics, &counts, deletions).expect("a table within the limit");
    let all = || deleted.sums(&control).expect("not canceled");
    let found = all();
    // From the smallest to the largest users without a gap.
    let least: u64 = found[found.len() - 1];
    assert_eq!(found[0] - least + 1, found.len() as u64);
    group.throughput(Throughput::Elements(found.len() as u64));
    group.bench_function("additive, sums", |bencher| bencher.iter(all));
    let parts = || deleted.parts(black_box(found[found.len() / 2]), &control).expect("a sum that occurs");
    assert_eq!(parts().iter().sum::<u64>(), deletions);
    group.throughput(Throughput::Elements(1));
    group.bench_function("additive, users of a sum", |bencher| bencher.iter(parts));
}

fn benches(criterion: &mut Criterion) {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("the first pool");
    let mut group = criterion.benchmark_group("enumeration");
    walks(&mut group);
    for outputs in OUTPUTS {
        merges(&mut group, outputs);
        for users in settings() {
            deletions(&mut group, &users, outputs);
        }
    }
    windows(&mut group);
    sums(&mut group);
    group.finish();
}

criterion_group!(name = enumeration; config = common::settings(); targets = benches);
criterion_main!(enumeration);
