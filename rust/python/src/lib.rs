//! The compiled core of `userdp` for Python: conversion only. `run` is the one way into long computations.

// Arguments arrive by value from Python.
#![allow(clippy::needless_pass_by_value)]

use pyo3::prelude::*;

mod accounting;
mod composition;
mod convert;
mod counts;
mod dimension;
mod discrete_gaussian;
mod discrete_laplace;
mod distributions;
mod divergence;
mod exact;
mod exponential;
mod family;
mod grouped;
mod keys;
mod local;
mod matrix;
mod patterns;
mod public;
mod reading;
mod reading_csv;
mod rows;
mod run;
mod sampler;
mod score;
mod selection;
mod shuffle;
mod stability;
mod stable_search;
mod table;
mod vectors;

/// The compiled core of userdp. Private: use the public modules of `userdp`.
#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::accounting::{PyResponses, divergence_of_responses, grouped_pair, pair_dominates};
    #[pymodule_export]
    use crate::composition::{PyComposed, PyRelease, largest_loss, largest_loss_at_most};
    #[pymodule_export]
    use crate::convert::PyLevel;
    #[pymodule_export]
    use crate::counts::{
        clipped_pairwise_scores, least_errors_above, psi_scores, scheffe_scores, surrogate_scores,
        user_errors, user_errors_above,
    };
    #[pymodule_export]
    use crate::dimension::PyVersionSpaces;
    #[pymodule_export]
    use crate::discrete_gaussian::PyDiscreteGaussian;
    #[pymodule_export]
    use crate::discrete_laplace::PyDiscreteLaplaceTables;
    #[pymodule_export]
    use crate::distributions::{
        PyCategorical, PyCoin, PyGeometric, PyNegativeBinomialTable, PyTwoSidedGeometric, PyUniformInteger,
        random_subsets,
    };
    #[pymodule_export]
    use crate::divergence::{
        chi2_divergence, epsilon_at_delta, hockey_stick, hockey_stick_bounds, hockey_stick_bounds_float64,
        hockey_stick_float64, is_indistinguishable, is_indistinguishable_float64, kl_divergence,
        max_divergence, privacy_profile, renyi_divergence, total_variation,
    };
    #[pymodule_export]
    use crate::exact::{exp_bounds, exp_weights, gaussian_delta_above, ln_bounds, normal_tail_above};
    #[pymodule_export]
    use crate::exponential::{PyExponentialRate, PyGranularity, PyPermuteAndFlipRate, PyRate};
    #[pymodule_export]
    use crate::family::{
        family_band, family_epsilon, family_exceeding, family_profile, family_worst, largest_shift,
        pairwise_band, pairwise_exhaustive, pairwise_maximum, pairwise_verdict,
    };
    #[pymodule_export]
    use crate::grouped::{PyGroupedExponentialRate, check_groups};
    #[pymodule_export]
    use crate::keys::{
        PyUnionRounds, gaussian_hockey_stick, key_groups, key_groups_between, keys_delta, propose_histogram,
        propose_union, union_threshold, vanishing_delta,
    };
    #[pymodule_export]
    use crate::local::{PyLocalRandomizer, bits_of_rows, hadamard_transform};
    #[pymodule_export]
    use crate::matrix::PyPmfMatrix;
    #[pymodule_export]
    use crate::patterns::PyPattern;
    #[pymodule_export]
    use crate::public::{PyPublicSeed, quantized_masses};
    #[pymodule_export]
    use crate::reading::{PyColumn, check_time_format, owner_codes};
    #[pymodule_export]
    use crate::reading_csv::PyCsvReader;
    #[pymodule_export]
    use crate::rows::PyRowsOfUsers;
    #[pymodule_export]
    use crate::sampler::{PyRefusalTable, PySource, PyTruncatedDiscreteLaplaceTable, kappa};
    #[pymodule_export]
    use crate::score::{
        PyThresholdSweep, binomial_tail, first_rows, range_minimum, separating_threshold, user_codes,
    };
    #[pymodule_export]
    use crate::selection::{
        PyScoreSelection, count_subsets, count_vectors, count_vectors_number, deleted_parts, deleted_sums,
        subsets,
    };
    #[pymodule_export]
    use crate::shuffle::{PyShuffleNoise, negative_binomial_divergence, random_permutation};
    #[pymodule_export]
    use crate::stability::{
        PyStableFamily, smallest_window, window_total_distribution, window_total_weights,
    };
    #[pymodule_export]
    use crate::stable_search::{PyStableSearch, draw_of_rows, draw_of_window, outside_smallest_cover};
    #[pymodule_export]
    use crate::table::{PyTableIndex, PyTableSums, walked_sums};
    #[pymodule_export]
    use crate::vectors::{PyJointRows, PyUserVectors, PyWhitenedRows};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
