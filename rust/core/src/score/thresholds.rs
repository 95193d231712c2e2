//! The errors of all thresholds.
