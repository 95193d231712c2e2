//! Holds the benchmarks in this folder; the crate itself is empty.
