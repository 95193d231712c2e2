//! What the benchmarks of the core share: inputs that are the same in every run, and how long is measured.
#![allow(dead_code)] // each benchmark uses some of it

use criterion::Criterion;
use std::time::Duration;
use userdp_core::pmf::Pmf;

/// Short measurements, so that `cargo bench` takes minutes; flags of the command line come after these.
pub(crate) fn settings() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

/// A linear congruential generator: its high bits are random enough for inputs.
pub(crate) struct Walk(pub(crate) u64);

impl Walk {
    /// An integer from 1 to 2^24.
    pub(crate) fn weight(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) + 1
    }

    /// Integers from 0 to `most`.
    pub(crate) fn integers(&mut self, length: usize, most: i64) -> Vec<i64> {
        (0..length).map(|_| self.weight().cast_signed() % (most + 1)).collect()
    }
}

/// A pmf of float masses.
pub(crate) fn masses(length: usize, seed: u64) -> Vec<f64> {
    let mut walk = Walk(seed);
    let raw: Vec<f64> = (0..length).map(|_| walk.weight() as f64).collect();
    let total: f64 = raw.iter().sum();
    raw.iter().map(|x| x / total).collect()
}

/// The same as the core's own type.
pub(crate) fn pmf(length: usize, seed: u64) -> Pmf<'static> {
    Pmf::from_floats(masses(length, seed), "masses").expect("a pmf")
}

/// The masses that are not 0, by output, increasing.
pub(crate) type Sparse = [(u32, f64)];

/// A pmf on `length` outputs out of about twice as many.
pub(crate) fn sparse_pmf(length: usize, seed: u64) -> Vec<(u32, f64)> {
    let mut walk = Walk(seed + 1000);
    let mut output = 0;
    let mut next = || {
        output += 1 + u32::from(walk.weight().is_multiple_of(2));
        output
    };
    masses(length, seed).into_iter().map(|mass| (next(), mass)).collect()
}

/// The divergence of two sorted pmfs by one merge, in plain floats: the least that must be done for a deletion set.
pub(crate) fn merge(mut p: &Sparse, mut q: &Sparse, multiplier: f64) -> f64 {
    let mut sum = 0.0;
    while let Some((&(output, mass), rest)) = p.split_first() {
        let other = match q.split_first() {
            Some((&(smaller, _), others)) if smaller < output => {
                q = others;
                continue;
            }
            Some((&(same, other), others)) if same == output => {
                q = others;
                other
            }
            _ => 0.0,
        };
        sum += (mass - multiplier * other).max(0.0);
        p = rest;
    }
    sum
}
