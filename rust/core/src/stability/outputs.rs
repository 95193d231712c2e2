//! The distribution of an output: the mixture of the outputs' pmfs on what is kept, by the distribution of what is deleted.

use super::{
    distribution::{Distribution, Mixture},
    typed::StableFamily,
};
use crate::{
    Error, Result,
    control::Control,
    exact::{Natural, Rational},
    family::PmfMatrix,
};
use num_integer::Integer;
use num_traits::Zero;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Terms summed one after the other; sums of such sums, and so on, keep the roundings few.
const BLOCK: usize = 128;
/// Half the distance from 1 to the next float.
const UNIT: f64 = f64::EPSILON / 2.0;
/// Far above all that underflow loses, far below all that matters.
const UNDERFLOW: f64 = 1e-300;
/// A float of a matrix near exact masses is off by 2^-126 at most beyond its relative error.
const NEAR: f64 = 1.0 / ((1_u128 << 126) as f64);

fn check_rows(rows: usize, matrix: &PmfMatrix<'_>) -> Result<()> {
    if matrix.rows() == rows {
        return Ok(());
    }
    let message = format!("has {} rows where there are {rows} deletion vectors", matrix.rows());
    Err(Error::invalid("matrix", message))
}

impl Distribution {
    /// Floats below and above the probability of each output, when row i of the matrix is the pmf of the output after
    /// the deletions of vector i.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when the matrix has other rows; [`Error::Canceled`].
    pub fn output_bounds(&self, matrix: &PmfMatrix<'_>, control: &Control) -> Result<(Vec<f64>, Vec<f64>)> {
        check_rows(self.masses.len(), matrix)?;
        let outputs = matrix.outputs();
        let mut blocks: Vec<Vec<f64>> = self
            .masses
            .par_chunks(BLOCK)
            .zip(matrix.masses().par_chunks(BLOCK * outputs))
            .map(|(masses, pmfs)| {
                control.check()?;
                let mut sums = vec![0.0; outputs];
                for (mass, pmf) in masses.iter().zip(pmfs.chunks_exact(outputs)) {
                    for (sum, p) in sums.iter_mut().zip(pmf) {
                        *sum += mass * p;
                    }
                }
                Ok(sums)
            })
            .collect::<Result<_>>()?;
        let mut roundings = BLOCK + 1;
        while blocks.len() > 1 {
            roundings += BLOCK;
            blocks = blocks
                .chunks(BLOCK)
                .map(|block| {
                    let mut sums = vec![0.0; outputs];
                    for terms in block {
                        for (sum, term) in sums.iter_mut().zip(terms) {
                            *sum += term;
                        }
                    }
                    sums
                })
                .collect();
        }
        let sums = blocks.pop().unwrap_or_default();
        // Every factor is within (1 - e, 1 + e) of the exact one for its own e, and what underflows is tiny.
        let mut error = roundings as f64 * UNIT * (1.0 + 1e-9) + self.relative_error;
        let mut absolute = UNDERFLOW;
        if !matrix.is_float() {
            error += matrix.relative_error();
            absolute += NEAR * (1.0 + 1e-9);
        }
        // 1 / (1 - e) and 1 / (1 + e) with room for the products of errors and for the roundings here.
        let error = error * (1.0 + 4.0 * error) + 8.0 * UNIT;
        let lower = sums.iter().map(|sum| ((sum - absolute) * (1.0 - error)).max(0.0)).collect();
        let upper = sums.iter().map(|sum| ((sum + absolute) * (1.0 + error)).min(1.0 + 1e-8)).collect();
        Ok((lower, upper))
    }
}

impl StableFamily {
    /// The distribution of the output exactly, when row i of the matrix is the pmf of the output after the deletions of vector
    /// i: integer weights, and the total they are over. They sum to the mass of the mixture, as nearly as float rows
    /// sum to 1.
    ///
    /// # Errors
    /// Those of [`StableFamily::exact_distribution`], and [`Error::InvalidArgument`] when the matrix has other rows.
    pub fn exact_output_distribution(
        &self,
        mixture: &Mixture,
        matrix: &PmfMatrix<'_>,
        control: &Control,
    ) -> Result<(Vec<Natural>, Natural)> {
        let (weights, total) = self.exact_distribution(mixture, control)?;
        check_rows(weights.len(), matrix)?;
        // Sums of integers for each denominator: float masses have few, exact rows often share theirs.
        let mut sums: BTreeMap<Natural, Vec<Natural>> = BTreeMap::new();
        for (row, weight) in weights.iter().enumerate() {
            control.check()?;
            let pmf = matrix.pmf(row);
            for output in pmf.outputs().filter(|&output| !pmf.is_zero(output)) {
                let mass: Rational = pmf.mass(output);
                let sums = sums
                    .entry(mass.denom().magnitude().clone())
                    .or_insert_with(|| vec![Natural::ZERO; matrix.outputs()]);
                sums[output] += weight * mass.numer().magnitude();
            }
        }
        let mut common = Natural::from(1_u8);
        for denominator in sums.keys() {
            control.check()?;
            common = common.lcm(denominator);
        }
        let mut outputs = vec![Natural::ZERO; matrix.outputs()];
        for (denominator, sums) in sums {
            control.check()?;
            let factor = &common / denominator;
            for (output, sum) in outputs.iter_mut().zip(sums).filter(|(_, sum)| !sum.is_zero()) {
                *output += sum * &factor;
            }
        }
        Ok((outputs, common * total))
    }
}
