//! The search for good noise in float64. What it finds is certified elsewhere; nothing rests on it but usefulness.

// Floats become positions in vectors, within their lengths or far beyond them.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use super::{Change, Goal};
use crate::{Result, control::Control};

/// P[Y = k] and P[Y >= k] of NB(r, p).
struct FloatDistribution {
    masses: Vec<f64>,
    tails: Vec<f64>,
}

/// Masses below this times the largest are left out.
const NEGLIGIBLE: f64 = 1e-45;
/// Rates lambda, p = e^-lambda, of the first round of the search, as multiples of epsilon.
const RATES: [f64; 14] = [0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25];
/// Rounds of the search after the first, each on a finer grid around the best rate so far.
const ROUNDS: u32 = 3;
/// For rates beyond this, NB(r, p) is a Poisson distribution for all that matters.
const LARGEST_RATE: f64 = 8.0;
/// How close to 1 the search goes with r.
const LEAST_R: f64 = 1.0 + 1.0 / 1024.0;
/// The most steps toward one r.
const STEPS: u32 = 60;
/// How close to delta the search comes before rates are compared.
const COARSE: f64 = 1e-3;
/// Distributions with more values than about this are not looked at: none of them could be certified.
const LARGEST_LENGTH: f64 = 2e6;

impl FloatDistribution {
    /// Relative to the most probable value, so that nothing large is lost to underflow.
    fn new(r: f64, p: f64) -> Self {
        let mode = ((r - 1.0) * p / (1.0 - p)).max(0.0).floor();
        let mut below = Vec::new();
        let (mut mass, mut k) = (1.0, mode);
        while k > 0.0 {
            // Denormal numbers are slow, and 0 is as good.
            mass = if mass < f64::MIN_POSITIVE { 0.0 } else { mass };
            mass *= k / (p * (k + r - 1.0));
            k -= 1.0;
            below.push(mass);
        }
        let mut masses: Vec<f64> = below.into_iter().rev().collect();
        (mass, k) = (1.0, mode);
        while mass > NEGLIGIBLE {
            masses.push(mass);
            mass *= p * (k + r) / (k + 1.0);
            k += 1.0;
        }
        let mut tails = vec![0.0; masses.len() + 1];
        for k in (0..masses.len()).rev() {
            tails[k] = tails[k + 1] + masses[k];
        }
        let total = tails[0];
        masses.iter_mut().chain(&mut tails).for_each(|x| *x /= total);
        Self { masses, tails }
    }

    /// As the certified divergence, which explains it.
    fn divergence(&self, r: f64, p: f64, e: f64, change: Change) -> f64 {
        let (f, tail) = (&self.masses, &self.tails);
        let mut sum = f[0];
        match change {
            Change::OneCount => {
                // Not only up to the first that is not positive: the smallest masses may have become 0.
                sum += f.windows(2).map(|pair| (pair[1] - e * pair[0]).max(0.0)).sum::<f64>();
                if e * p < 1.0
                    && let Some(first) = first_above(e * p * (r - 1.0) / (1.0 - e * p), tail)
                {
                    sum = sum.max(tail[first - 1] - e * tail[first]);
                }
            }
            Change::TwoCounts => {
                for b in 1..f.len() {
                    let count = b as f64;
                    let room = r - 1.0 - (e - 1.0) * count;
                    if room <= 0.0 {
                        break;
                    }
                    let Some(first) = first_above(e * count * (r - 1.0) / room, tail) else { break };
                    sum += f[b] * tail[first - 1] - e * f[b - 1] * tail[first];
                }
            }
        }
        sum
    }

    /// Whether there are so many values that none is looked at: the mean and what follows it.
    fn is_long(r: f64, p: f64) -> bool {
        (r * p - NEGLIGIBLE.ln()) / (1.0 - p) > LARGEST_LENGTH
    }

    fn quantile(&self, beta: f64) -> f64 {
        self.tails[1..].iter().take_while(|&&tail| tail > beta).count() as f64
    }
}

/// The least integer above x >= 0, if it is a position of the slice.
fn first_above(x: f64, slice: &[f64]) -> Option<usize> {
    let first = x.floor() + 1.0;
    (first < slice.len() as f64).then_some(first as usize)
}

/// The least r > 1 that is enough with p, up to a relative `tolerance` in delta; `None` for too much noise.
///
/// ln delta is about linear in r: the secant, with the weight of an end that stays halved (the Illinois method).
pub(super) fn least_r(p: f64, e: f64, delta: f64, change: Change, guess: f64, tolerance: f64) -> Option<f64> {
    let mut high = guess.max(2.0 * LEAST_R);
    if FloatDistribution::is_long(high, p) {
        return None;
    }
    let excess = |r: f64| (FloatDistribution::new(r, p).divergence(r, p, e, change) / delta).ln().max(-1e3);
    let (mut low, mut over) = (LEAST_R, excess(LEAST_R));
    if over <= 0.0 {
        return Some(low);
    }
    let mut under = excess(high);
    while under > 0.0 {
        (low, over) = (high, under);
        high *= 2.0;
        if FloatDistribution::is_long(high, p) {
            return None;
        }
        under = excess(high);
    }
    let (mut found, mut best, mut rose) = (high, under, None);
    for _ in 0..STEPS {
        if best > -tolerance || high - low <= high * f64::EPSILON {
            break;
        }
        let middle = (low + (high - low) * over / (over - under)).clamp(low, high);
        let value = excess(middle);
        let rises = value > 0.0;
        let weight = if rose == Some(rises) { 0.5 } else { 1.0 };
        if rises {
            (low, over, under) = (middle, value, under * weight);
        } else {
            (high, under, over) = (middle, value, over * weight);
            (found, best) = (middle, value);
        }
        rose = Some(rises);
    }
    Some(found)
}

/// (r, lambda) with the least quantile or mean of NB(share r, e^-lambda), and among equal quantiles the least mean.
///
/// # Errors
/// [`crate::Error::Canceled`].
pub(super) fn best(
    epsilon: f64,
    e: f64,
    delta: f64,
    change: Change,
    goal: Goal,
    surplus: f64,
    control: &Control,
) -> Result<Option<(f64, f64)>> {
    let mut found: Option<([f64; 2], f64, f64)> = None;
    let look = |rate: f64, found: &mut Option<([f64; 2], f64, f64)>| -> Result<()> {
        control.check()?;
        let rate = rate.min(LARGEST_RATE);
        let p = (-rate).exp();
        let guess = found.map_or(4.0, |(_, r, _)| r);
        if let Some(r) = least_r(p, e, delta, change, guess, COARSE) {
            let mean = surplus * r * p / (1.0 - p);
            let first = match goal {
                Goal::Mean => mean,
                Goal::Quantile(_) if FloatDistribution::is_long(surplus * r, p) => f64::INFINITY,
                Goal::Quantile(beta) => FloatDistribution::new(surplus * r, p).quantile(beta),
            };
            if found.is_none_or(|(least, ..)| [first, mean] < least) {
                *found = Some(([first, mean], r, rate));
            }
        }
        Ok(())
    };
    for multiple in RATES {
        look(multiple * epsilon, &mut found)?;
    }
    let mut width = 0.1;
    for _ in 0..ROUNDS {
        width /= 3.0;
        if let Some((.., center)) = found {
            for step in [-2.0, -1.0, 1.0, 2.0] {
                look(center * (1.0 + step * width), &mut found)?;
            }
        }
    }
    Ok(found.map(|(_, r, rate)| (r, rate)))
}
