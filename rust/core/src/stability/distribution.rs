//! The distribution of the deletion vector t when S is a uniform stable set of random size r, and T a uniform superset of size D.
//!
//! With `X_r` the stable sets of size r, each has `C(n - r, D - r)` supersets T; and `prod C(n_j, t_j)` sets T have the
//! vector t, each with `prod C(t_j, s_j)` subsets of vector s. So
//!
//! ```text
//! P(t) = prod C(n_j, t_j) sum_r p(r) / (|X_r| C(n - r, D - r)) sum_{s stable, |s| = r} prod C(t_j, s_j).
//! ```
//!
//! As `C(n, r) C(n - r, D - r) = C(n, D) C(D, r)`, this is `H(t) sum_r p(r) C(n, r) / (|X_r| C(D, r)) sum_s prod C(t_j, s_j)`
//! for the hypergeometric `H(t) = prod C(n_j, t_j) / C(n, D)`; a size of which every set is stable contributes
//! `H(t) p(r)`, by Vandermonde's identity.

use super::{
    scaled::Scaled,
    transform::{Sizes, Transform, roundings, work},
    typed::StableFamily,
};
use crate::{
    Error, Result,
    control::Control,
    exact::{
        Natural,
        binomial::{binomial, binomials},
        rounding::{Direction, quotient_to_f64},
    },
};
use num_integer::Integer;
use num_traits::Zero;
use rayon::prelude::*;

/// Multiplications of floats at most: some ten minutes.
const MAX_FLOAT_WORK: f64 = 1e12;
/// Multiplications of 64-bit digits at most in exact distributions.
const MAX_EXACT_WORK: f64 = 1e11;
/// Bits of exact distributions at most: 1 GB.
const MAX_EXACT_BITS: f64 = 8e9;
/// Deletions at most in float sums, which stay below 2^deletions times the largest value.
const MAX_FLOAT_DELETIONS: usize = 1000;
/// Binary orders of magnitude among the values of one transform: its terms stay above 2^-range.
const FLOAT_RANGE: i64 = 900;
/// Half the distance from 1 to the next float.
const UNIT: f64 = f64::EPSILON / 2.0;

/// The probabilities of sizes r = 0, 1, ...: integer weights over a total; what is missing to 1 belongs to no size.
#[derive(Debug, Clone)]
pub struct Mixture {
    weights: Vec<Natural>,
    total: Natural,
}

impl Mixture {
    /// `weights[r] / total`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a total of zero, or weights that sum to more.
    pub fn new(weights: Vec<Natural>, total: Natural) -> Result<Self> {
        let sum: Natural = weights.iter().sum();
        if total.is_zero() {
            return Err(Error::invalid("mixture", "has the total 0; weights are over a positive total"));
        }
        if sum > total {
            return Err(Error::invalid(
                "mixture",
                format!("weights sum to {sum}, more than their total {total}"),
            ));
        }
        Ok(Self { weights, total })
    }

    fn weight(&self, r: usize) -> &Natural {
        const ZERO: &Natural = &Natural::ZERO;
        self.weights.get(r).unwrap_or(ZERO)
    }
}

/// Certified floats near the distribution of the deletion vectors, in the order of [`StableFamily::vectors`].
#[derive(Debug, Clone)]
pub struct Distribution {
    /// The masses of the vectors; they sum to the mass of the mixture.
    pub masses: Vec<f64>,
    /// Every mass m and its exact value p satisfy |m - p| <= `relative_error` p + 2^-1070.
    pub relative_error: f64,
}

/// The layers that a mixture reaches.
struct Layers {
    /// The number of stable sets of each size.
    sizes: Vec<Natural>,
    /// Sizes of weight that have unstable sets too, from the first to the last.
    partial: Option<Sizes>,
    /// Weight of the sizes of which every set is stable.
    full: Natural,
}

impl StableFamily {
    fn layers(&self, mixture: &Mixture, control: &Control) -> Result<Layers> {
        let (smallest, full) = self.partial_layers(control)?;
        let positive = |r: &usize| !mixture.weight(*r).is_zero();
        let reached = smallest..self.limit() + 1;
        if let Some(r) = (0..mixture.weights.len()).filter(positive).find(|r| !reached.contains(r)) {
            let limit = self.limit();
            let message =
                format!("has weight on size {r}, where no set is stable (sizes up to {limit} count)");
            return Err(Error::invalid("mixture", message));
        }
        let first = (smallest..full).find(positive);
        let last = (smallest..full).rfind(positive);
        Ok(Layers {
            sizes: if first.is_some() { self.layer_sizes(control)? } else { Vec::new() },
            partial: first.zip(last).map(|(first, last)| Sizes { first, last }),
            full: (full..=self.limit()).map(|r| mixture.weight(r)).sum(),
        })
    }

    /// C(t, 0), C(t, 1), ... up to `last` for t = 0, ..., D.
    fn binomial_rows<T>(&self, last: usize, convert: impl Fn(Natural) -> T) -> Vec<Vec<T>> {
        let row = |t: usize| binomials(t).take(t.min(last) + 1).map(&convert).collect();
        (0..=self.deletions()).map(row).collect()
    }

    /// Certified floats near the distribution of the deletion vector.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when the mixture has weight on a size without stable sets; [`Error::TooLarge`];
    /// [`Error::Canceled`].
    pub fn distribution(&self, mixture: &Mixture, control: &Control) -> Result<Distribution> {
        let layers = self.layers(mixture, control)?;
        let full = Scaled::quotient(&layers.full, &mixture.total);
        let mut sums = Vec::new();
        let mut errors = 1;
        if let Some(sizes) = layers.partial {
            let bands = self.bands(mixture, &layers, sizes)?;
            let steps = work(self, sizes)? * bands.len() as f64;
            if steps > MAX_FLOAT_WORK {
                return Err(Error::too_large(format!(
                    "the distribution of the deleted users takes {steps:.1e} multiplications where {MAX_FLOAT_WORK:.0e} are \
                     possible; describe users by fewer types, or use an epsilon or delta that needs fewer deletions"
                )));
            }
            errors += roundings(self, sizes) + bands.len();
            let rows = self
                .binomial_rows(sizes.last, |x| quotient_to_f64(&x, &Natural::from(1_u8), Direction::Nearest));
            for (values, exponent) in bands {
                let partial = Transform::new(self, sizes, values, &rows).sums(control)?;
                if sums.is_empty() {
                    sums = vec![full; partial.len()];
                }
                for (sum, value) in sums.iter_mut().zip(partial) {
                    *sum = sum.plus(Scaled::new(value, exponent));
                }
            }
        }
        let vectors = self.arranged(control)?;
        let choices: Vec<Vec<Scaled>> = self
            .counts()
            .iter()
            .map(|&count| {
                binomials(count).take(count.min(self.deletions()) + 1).map(|x| Scaled::integer(&x)).collect()
            })
            .collect();
        let all = Scaled::integer(&binomial(self.users(), self.deletions()));
        control.check()?;
        let masses: Vec<f64> = vectors
            .coordinates
            .par_chunks_exact(self.types())
            .enumerate()
            .map(|(rank, vector)| {
                let sum = sums.get(rank).copied().unwrap_or(full);
                let ways = |(row, &t): (&Vec<Scaled>, &u16)| row[usize::from(t)];
                choices.iter().zip(vector).map(ways).fold(sum, Scaled::times).over(all).to_f64(0)
            })
            .collect();
        // Two roundings for each type, two for C(n, D).
        errors += 2 * self.types() + 2;
        let error = errors as f64 * UNIT;
        Ok(Distribution {
            masses: vectors.arrange(&masses),
            relative_error: error / (1.0 - error) * (1.0 + 1e-9),
        })
    }

    /// The values `p(r) C(n, r) / (|X_r| C(D, r))` over 2^exponent, with the exponent, in groups whose sums stay in the
    /// range of floats.
    fn bands(&self, mixture: &Mixture, layers: &Layers, sizes: Sizes) -> Result<Vec<(Vec<f64>, i64)>> {
        if self.deletions() > MAX_FLOAT_DELETIONS {
            return Err(Error::too_large(format!(
                "the distribution of {} deleted users is beyond the range of floats, which ends at {MAX_FLOAT_DELETIONS} \
                 deletions; ask for the exact distribution, or use an epsilon or delta that needs fewer deletions",
                self.deletions()
            )));
        }
        let mut values: Vec<(usize, Scaled)> = binomials(self.users())
            .zip(binomials(self.deletions()))
            .enumerate()
            .take(sizes.last + 1)
            .skip(sizes.first)
            .filter(|(r, _)| !mixture.weight(*r).is_zero())
            .map(|(r, (of_users, of_deletions))| {
                let numerator = mixture.weight(r) * of_users;
                let denominator = &mixture.total * &layers.sizes[r] * of_deletions;
                (r, Scaled::quotient(&numerator, &denominator))
            })
            .collect();
        values.sort_by_key(|(_, value)| value.exponent);
        let mut bands = Vec::new();
        while let Some(&(_, highest)) = values.last() {
            let exponent = highest.exponent + 1; // every value is below 1 then
            let start = values.partition_point(|(_, value)| value.exponent < exponent - FLOAT_RANGE);
            let mut band = vec![0.0; sizes.last + 1];
            for (r, value) in values.drain(start..) {
                band[r] = value.to_f64(exponent);
            }
            bands.push((band, exponent));
        }
        Ok(bands)
    }

    /// The distribution of the deletion vector exactly: integer weights in the order of [`StableFamily::vectors`], and the total
    /// they are over. They sum to the mass of the mixture.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when the mixture has weight on a size without stable sets; [`Error::TooLarge`], and
    /// certified floats are the cheaper option; [`Error::Canceled`].
    pub fn exact_distribution(
        &self,
        mixture: &Mixture,
        control: &Control,
    ) -> Result<(Vec<Natural>, Natural)> {
        let layers = self.layers(mixture, control)?;
        let (users, deletions) = (self.users(), self.deletions());
        // p(r) / (|X_r| C(n - r, D - r)), and 1 / C(n, D) for all full layers together, over one denominator.
        let all = binomial(users, deletions);
        let mut parts: Vec<(usize, &Natural, Natural)> = Vec::new();
        if let Some(Sizes { first, last }) = layers.partial {
            for r in (first..=last).filter(|&r| !mixture.weight(r).is_zero()) {
                control.check()?;
                let supersets = binomial(users - r, deletions - r);
                parts.push((r, mixture.weight(r), &layers.sizes[r] * supersets));
            }
        }
        let bits = parts.iter().map(|(.., ways)| ways.bits() as f64).sum::<f64>() + 2.0 * all.bits() as f64;
        let vectors = self.rows() as f64;
        let steps =
            layers.partial.map_or(Ok(0.0), |sizes| work(self, sizes))? + vectors * (1 + self.types()) as f64;
        let digits = 1.0 + bits / 64.0;
        if steps * (8.0 + digits) > MAX_EXACT_WORK || vectors * bits > MAX_EXACT_BITS {
            return Err(Error::too_large(format!(
                "the exact distribution of {vectors:.1e} deletion vectors takes {steps:.1e} multiplications of integers of up to \
                 {bits:.0} bits; ask for certified bounds instead"
            )));
        }
        let mut common = all.clone();
        for (.., ways) in &parts {
            control.check()?;
            common = common.lcm(ways);
        }
        let full = &layers.full * (&common / &all);
        let mut sums = Vec::new();
        if let Some(sizes) = layers.partial {
            let mut values = vec![Natural::ZERO; sizes.last + 1];
            for (r, weight, ways) in parts {
                values[r] = weight * (&common / ways);
            }
            sums =
                Transform::new(self, sizes, values, &self.binomial_rows(sizes.last, |x| x)).sums(control)?;
        }
        let choices: Vec<Vec<Natural>> = self
            .counts()
            .iter()
            .map(|&count| binomials(count).take(count.min(deletions) + 1).collect())
            .collect();
        let vectors = self.arranged(control)?;
        let weights: Vec<Natural> = vectors
            .coordinates
            .par_chunks_exact(self.types())
            .enumerate()
            .map(|(rank, vector)| {
                control.check()?;
                let sum = sums.get(rank).map_or_else(|| full.clone(), |sum| sum + &full);
                let ways: Natural =
                    choices.iter().zip(vector).map(|(row, &t)| &row[usize::from(t)]).product();
                Ok(sum * ways)
            })
            .collect::<Result<_>>()?;
        Ok((vectors.arrange(&weights), common * &mixture.total))
    }
}
