//! The score of a hypothesis by way of a class ([LWY24, Theorem 3.4] and [LWY24, Theorem 4.6]):
//! `min over c of K_err(c; t) + K_dis(c, h; s)`, where c goes through the class, `K_err` counts the users on whose
//! examples c has more than t mistakes, and `K_dis` those on whose points c and h disagree more than s times.
//!
//! One user adds 0, 1 or 2 to every sum, so that replacing one changes the exact minimum by at most 2.

use super::{counts::Mistakes, predictions::Predictions, user_rows::UserRows};
use crate::{Error, Result, control::Control, simd::Kernel};
use rayon::prelude::*;

/// What the scores are made from.
#[derive(Debug, Clone, Copy)]
pub struct Surrogate<'a> {
    /// Of the class over which the minimum is taken.
    pub class: &'a Predictions,
    /// Of the hypotheses that are scored, at the same points.
    pub scored: &'a Predictions,
    /// The rows of every user.
    pub rows: &'a UserRows,
    /// Users with more scaled mistakes count.
    pub t: u32,
    /// Users with more scaled disagreements count.
    pub s: u32,
}

impl Surrogate<'_> {
    /// The score of every hypothesis; `labels` are those of the rows in their own order.
    ///
    /// # Errors
    /// For labels other than 0 and 1, unknown points, thresholds that are not below m, and when canceled.
    pub fn scores(self, labels: &[u8], kernel: Kernel, control: &Control) -> Result<Vec<i64>> {
        let Self { class, scored, rows, t, s } = self;
        for (argument, threshold) in [("t", t), ("s", s)] {
            if threshold >= rows.most_rows() {
                let largest = rows.most_rows() - 1;
                return Err(Error::invalid(
                    argument,
                    format!("{threshold} is out of range; at most {largest}"),
                ));
            }
        }
        if class.points() != scored.points() {
            return Err(Error::invalid("predictions", "both classes must be given at the same points"));
        }
        let labels = rows.ordered(labels)?;
        let errors = Mistakes::new(class, rows, &labels, kernel)?.above(t, control)?;
        control.set_total(scored.hypotheses());
        (0..scored.hypotheses())
            .into_par_iter()
            .map(|hypothesis| {
                // Disagreements with a hypothesis are mistakes where it has given the labels.
                let labels: Vec<u8> =
                    rows.points().iter().map(|&point| scored.label(hypothesis, point)).collect();
                let disagreements = Mistakes::new(class, rows, &labels, kernel)?.above(s, control)?;
                control.advance(1)?;
                let sums =
                    errors.iter().zip(disagreements).map(|(errors, disagreements)| errors + disagreements);
                // A class has at least one hypothesis.
                Ok(sums.min().unwrap_or(0))
            })
            .collect()
    }
}
