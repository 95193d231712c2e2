//! The distribution of permute-and-flip: the integers that are drawn from, and floats with a proved error. Not constant
//! time.
//!
//! With S the number of other candidates whose coins succeed, candidate i is returned with probability `q_i` E[1 / (S +
//! 1)], up to the rounding of the place J. Sums and products of positive numbers only: nothing cancels.

use crate::{
    Error, Result,
    control::Control,
    exact::{
        Integer, Natural, Rational,
        rounding::{Direction, rational_to_f64},
    },
};
use num_integer::Integer as _;
use num_traits::{One, ToPrimitive, Zero};

/// The most candidates whose exact distribution is made.
pub const EXACT_CANDIDATES: usize = 64;
/// The most candidates whose probabilities are enclosed.
pub const MOST_BOUNDED: usize = 1 << 12;
/// The bits of a weight, and of the word that the place is drawn from.
const WEIGHT_BITS: u32 = 103;
const PLACE_BITS: u32 = 128;

/// How many of the 2^(103 k + 128) values of the coins and of the place's bits lead to each of k candidates.
///
/// # Errors
/// [`Error::TooLarge`] beyond [`EXACT_CANDIDATES`]; [`Error::Canceled`].
pub fn numerators(weights: &[u128], control: &Control) -> Result<Vec<Natural>> {
    let k = weights.len();
    if k > EXACT_CANDIDATES {
        return Err(Error::too_large(format!(
            "scores: the exact distribution of {k} candidates has integers of more than {} bits, where at most \
             {EXACT_CANDIDATES} candidates are accepted; pmf_bounds encloses that of up to {MOST_BOUNDED}",
            k * WEIGHT_BITS as usize
        )));
    }
    // The numbers of successes before each candidate, and after it.
    let before = counts(weights.iter());
    let after = counts(weights.iter().rev());
    let shares: Vec<Vec<Natural>> = (0..=k).map(shares).collect();
    weights
        .iter()
        .enumerate()
        .map(|(i, &weight)| {
            control.check()?;
            let mut sum = Natural::zero();
            for (x, first) in before[i].iter().enumerate() {
                for (y, second) in after[k - 1 - i].iter().enumerate() {
                    sum += first * second * &shares[x + y + 1][x];
                }
            }
            Ok(sum * weight)
        })
        .collect()
}

/// For every number of candidates, from none, the distribution of how many of these first ones succeed.
fn counts<'a>(weights: impl Iterator<Item = &'a u128>) -> Vec<Vec<Natural>> {
    let mut distributions = vec![vec![Natural::one()]];
    for &weight in weights {
        let last = &distributions[distributions.len() - 1];
        let (yes, no) = (Natural::from(weight), (Natural::one() << WEIGHT_BITS) - weight);
        let mut next: Vec<Natural> = last.iter().map(|mass| mass * &no).collect();
        next.push(Natural::zero());
        for (into, mass) in next[1..].iter_mut().zip(last) {
            *into += mass * &yes;
        }
        distributions.push(next);
    }
    distributions
}

/// How many of the 2^128 values v have floor(v n / 2^128) = j, for each j below n.
fn shares(n: usize) -> Vec<Natural> {
    let end = |j: usize| (Natural::from(j) << PLACE_BITS).div_ceil(&Natural::from(n));
    (0..n).map(|j| end(j + 1) - end(j)).collect()
}

/// Masses of 0, 1, ... as floats, each within a factor (1 + 2^-53)^`roundings` of its value either way.
#[derive(Clone)]
struct Masses {
    masses: Vec<f64>,
    roundings: usize,
}

impl Masses {
    /// The distribution of a sum of independent numbers.
    fn sum(&self, other: &Self) -> Self {
        let mut masses = vec![0.0; self.masses.len() + other.masses.len() - 1];
        let (long, short) =
            if self.masses.len() >= other.masses.len() { (self, other) } else { (other, self) };
        for (shift, &factor) in short.masses.iter().enumerate() {
            for (into, &mass) in masses[shift..].iter_mut().zip(&long.masses) {
                *into += factor * mass;
            }
        }
        // A product, and as many additions as there are terms at most.
        Self { masses, roundings: self.roundings + other.roundings + short.masses.len() + 1 }
    }
}

/// Floats at most and at least the probabilities of the candidates.
///
/// # Numerics
/// A tree of the candidates: upward the distributions of how many succeed below each node, downward of how many succeed
/// elsewhere. All terms are positive, so that a rounding changes a result by a relative 2^-53 at most, and they are
/// counted on the way. What underflows is below 2^-1000 of the result, and is covered by one more.
///
/// # Errors
/// [`Error::TooLarge`] beyond [`MOST_BOUNDED`]; [`Error::Canceled`].
pub fn bounds(weights: &[u128], control: &Control) -> Result<(Vec<f64>, Vec<f64>)> {
    let k = weights.len();
    if k > MOST_BOUNDED {
        return Err(Error::too_large(format!(
            "scores: enclosing the probabilities of {k} candidates takes about {k}^2 steps, where at most \
             {MOST_BOUNDED} candidates are accepted"
        )));
    }
    // Weights have 39 bits of mantissa: these floats are exact.
    let chances: Vec<f64> =
        weights.iter().map(|weight| weight.to_f64().unwrap_or(1.0) / 2_f64.powi(103)).collect();
    let mut levels = vec![
        chances
            .iter()
            .map(|&chance| Masses { masses: vec![1.0 - chance, chance], roundings: 1 })
            .collect::<Vec<_>>(),
    ];
    while levels[levels.len() - 1].len() > 1 {
        control.check()?;
        let pairs = levels[levels.len() - 1].chunks(2);
        levels.push(pairs.map(|pair| if let [a, b] = pair { a.sum(b) } else { pair[0].clone() }).collect());
    }
    let mut elsewhere = vec![Masses { masses: vec![1.0], roundings: 0 }];
    for level in levels.iter().rev().skip(1) {
        let mut next = Vec::with_capacity(level.len());
        for (pair, others) in level.chunks(2).zip(&elsewhere) {
            control.check()?;
            if let [a, b] = pair {
                next.extend([others.sum(b), others.sum(a)]);
            } else {
                next.push(others.clone());
            }
        }
        elsewhere = next;
    }
    Ok(chances
        .iter()
        .zip(&elsewhere)
        .map(|(&chance, others)| {
            let mut mean = 0.0;
            for (number, mass) in others.masses.iter().enumerate() {
                mean += mass / (number as f64 + 1.0);
            }
            // A division, the additions, the product, the place's own 2^-104, and what underflows.
            let roundings = others.roundings + others.masses.len() + 4;
            enclosed(chance * mean, roundings)
        })
        .unzip())
}

/// Floats around a positive number that is known up to this many roundings.
fn enclosed(value: f64, roundings: usize) -> (f64, f64) {
    // (1 + u)^n <= 1 + 2 n u for n u <= 1, and its reciprocal is at least 1 - 2 n u.
    let spread = Rational::new(Integer::from(roundings), Integer::one() << 52_u32);
    let value = Rational::from_float(value).unwrap_or_else(Rational::zero);
    let one = Rational::one();
    let below = rational_to_f64(&(&value * (&one - &spread)), Direction::Down);
    let above = rational_to_f64(&(&value * (one + spread)), Direction::Up);
    (below, above.min(1.0))
}
