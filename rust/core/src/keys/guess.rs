//! Noise and thresholds of keys, proposed in floats.
//!
//! Nothing here is a claim: accounts decide what is proposed, and a proposal that is a little off costs a little noise, or is refused.

use super::shares::{approximate, groups, listed_singly, shares};
use crate::{Error, Result, control::Control};
use std::f64::consts::SQRT_2;

/// How much wider noise is tried than the least that pays for keys which are not new.
const WIDER: [f64; 6] = [1.003, 1.01, 1.02, 1.035, 1.06, 1.1];
/// Of the delta, for what predictions are off.
const SPARE: f64 = 0.985;
/// Steps of shares.
const SHARES: u64 = 48;
/// Of losses.
const POINTS: usize = 65;
/// Halvings of how much of the delta is for new keys.
const HALVINGS: usize = 14;
/// So many splits of keys are looked at for a threshold.
const SPLITS: u64 = 33;
/// Between the widths that are proposed, up to twice the least one.
const STEP: f64 = 1.004;
const HIGHEST: f64 = (1_u64 << 30) as f64;
/// The most keys of a user with discrete Laplace noise: its account composes so many losses.
pub const MOST_LAPLACE_KEYS: u64 = 1 << 12;

/// The delta of Gaussian noise whose means are mu standard deviations apart.
pub fn gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    if mu <= 0.0 {
        return 0.0;
    }
    let above = tail(epsilon / mu - mu / 2.0);
    let below = tail(epsilon / mu + mu / 2.0);
    (above - epsilon.min(700.0).exp() * below).max(0.0)
}

/// P[Z >= x] for normal Z.
fn tail(x: f64) -> f64 {
    0.5 * libm::erfc(x / SQRT_2)
}

/// The x with P[Z >= x] = p for normal Z, p in (0, 1), by Newton's method on the logarithm, from a guess on.
fn quantile_above(p: f64, guess: f64) -> f64 {
    let mut x = guess.clamp(-37.0, 37.0);
    for _ in 0..64 {
        let mass = tail(x).max(f64::MIN_POSITIVE);
        let density = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let step = ((mass / p).ln() * mass / density.max(f64::MIN_POSITIVE)).clamp(-2.0, 2.0);
        x = (x + step).clamp(-38.5, 38.5);
        if step.abs() <= 1e-15 * x.abs().max(1.0) {
            break;
        }
    }
    x
}

/// About the least x from e^low to e^high that fits.
fn least(fits: impl Fn(f64) -> bool, mut low: f64, mut high: f64, steps: usize) -> f64 {
    for _ in 0..steps {
        let middle = f64::midpoint(low, high);
        if fits(middle.exp()) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high.exp()
}

/// Set unions by weights, in units of a user's weight.
#[derive(Debug)]
pub struct Union {
    /// The squared length between neighbors.
    lengths: f64,
    groups: Vec<(u64, u64)>,
    single: bool,
    shares: Vec<f64>,
    /// For each share, how many new keys a user of each group has, at most, and what each of them weighs.
    new_keys: Vec<Vec<(f64, f64)>>,
}

/// The noise's standard deviation and the threshold of one round.
pub type Proposal = (f64, f64);

impl Union {
    /// What users may have.
    ///
    /// # Errors
    /// Unless there is a key, and at most 2^24.
    pub fn new(max_keys: u64, replace: bool, walk: bool) -> Result<Self> {
        let groups = groups(max_keys)?;
        let all = shares(max_keys, walk, SHARES);
        let few = 2 * usize::try_from(SHARES).unwrap_or(0);
        let chosen: Vec<(u64, u64)> = if all.len() <= few {
            all
        } else {
            let apart = (all.len() - 1) as f64 / (few - 1) as f64;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an index
            let place = |index: usize| ((index as f64 * apart).round_ties_even() as usize).min(all.len() - 1);
            (0..few).map(|index| all[place(index)]).collect()
        };
        Ok(Self {
            lengths: if replace { 2.0 } else { 1.0 },
            single: listed_singly(max_keys, walk),
            new_keys: chosen
                .iter()
                .map(|&share| groups.iter().map(|&group| new_keys(group, share, max_keys, walk)).collect())
                .collect(),
            shares: chosen.into_iter().map(approximate).collect(),
            groups,
        })
    }

    /// About the least threshold at which a user's new keys are shown with at most this probability.
    pub fn threshold(&self, sigma: f64, shown: f64) -> f64 {
        let (mut highest, mut x) = (0.0_f64, 0.0);
        for &(first, last) in &self.groups {
            x = quantile_above((shown / last as f64).clamp(f64::MIN_POSITIVE, 1.0 - 1e-16), x);
            highest = highest.max(1.0 / (first as f64).sqrt() + sigma * x);
        }
        highest
    }

    /// Distances of means, and how likely new keys are shown, for shares of new keys; a range of shares has the ends of both.
    fn split(&self, (sigma, threshold): Proposal) -> Vec<(f64, f64)> {
        let expected = |(number, weight): &(f64, f64)| {
            if *number > 0.0 { number * tail((threshold - weight) / sigma) } else { 0.0 }
        };
        let most = |row: &Vec<(f64, f64)>| row.iter().map(expected).fold(0.0_f64, f64::max);
        let shown = self.new_keys.iter().map(|row| most(row).min(1.0 - 1e-12));
        let mus = self.shares.iter().map(|share| (self.lengths - share).sqrt() / sigma);
        mus.zip(shown.skip(usize::from(!self.single))).collect()
    }

    /// About the delta of two rounds.
    fn both(&self, first: Proposal, second: Proposal, epsilon: f64) -> f64 {
        let split = self.split(second);
        let widest = self.lengths.sqrt() / first.0;
        let away = 8.0 * widest + widest * widest;
        // New keys of the first round move the level by ln(1 - shown), which is next to nothing.
        let away = away + away.min(0.01);
        let last = (POINTS - 1) as f64;
        let spread = |place: usize, low: f64, high: f64| low + (high - low) * place as f64 / last;
        let values: Vec<f64> =
            (0..POINTS).map(|place| largest(&split, spread(place, epsilon - away, epsilon + away))).collect();
        let normal: Vec<f64> = (0..POINTS).map(|place| spread(place, -8.0, 8.0)).collect();
        let masses: Vec<f64> = normal.iter().map(|x| (-x * x / 2.0).exp()).collect();
        let whole: f64 = masses.iter().sum();
        let at = |loss: f64| {
            let place = ((loss - (epsilon - away)) / (2.0 * away) * last).clamp(0.0, last);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an index
            let low = (place as usize).min(POINTS - 2);
            values[low] + (values[low + 1] - values[low]) * (place - low as f64)
        };
        let first = self.split(first);
        let step = (first.len() / 16).max(1);
        let end = first.last().copied();
        first
            .iter()
            .step_by(step)
            .copied()
            .chain(end)
            .map(|(mu, one)| {
                let base = epsilon - (-one).ln_1p() - mu * mu / 2.0;
                let kept: f64 = normal.iter().zip(&masses).map(|(x, mass)| mass * at(base - mu * x)).sum();
                one + (1.0 - one) * kept / whole
            })
            .fold(0.0, f64::max)
    }

    /// Noise and threshold of each round, of which each has a part of the budget, with the lowest threshold of the last one.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for other numbers of parts than one or two, or what is no number; [`Error::Canceled`].
    pub fn proposed(
        &self,
        epsilon: f64,
        delta: f64,
        parts: &[f64],
        control: &Control,
    ) -> Result<Option<Vec<Proposal>>> {
        if !(1..=2).contains(&parts.len()) || parts.iter().any(|part| !(*part > 0.0 && *part <= 1.0)) {
            return Err(Error::invalid("parts", "must be one or two numbers in (0, 1]"));
        }
        if !(epsilon.is_finite() && epsilon >= 0.0 && delta > 0.0 && delta < 1.0) {
            return Err(Error::invalid("epsilon, delta", "must be a positive number and one in (0, 1)"));
        }
        let root = self.lengths.sqrt();
        let narrowest =
            least(|sigma| gaussian_delta(root / sigma, epsilon) <= delta, 1e-3_f64.ln(), 1e9_f64.ln(), 60);
        let mut best: Option<Vec<Proposal>> = None;
        for wider in WIDER {
            control.check()?;
            let rounds = |more: f64| -> Vec<Proposal> {
                let shown = (delta / more).min(0.9) / parts.len() as f64;
                let sigma = |part: &f64| narrowest * wider / part.sqrt();
                parts.iter().map(sigma).map(|sigma| (sigma, self.threshold(sigma, shown))).collect()
            };
            let fits = |more: f64| {
                let made = rounds(more);
                let found = match made[..] {
                    [first, second] => self.both(first, second, epsilon),
                    _ => largest(&self.split(made[0]), epsilon),
                };
                found <= delta * SPARE
            };
            if !fits(1e6) {
                continue;
            }
            let found = rounds(least(fits, 0.05_f64.ln(), 1e6_f64.ln(), HALVINGS));
            let last = |made: &[Proposal]| made.last().map_or(f64::INFINITY, |(_, threshold)| *threshold);
            if best.as_ref().is_none_or(|best| last(&found) < last(best)) {
                best = Some(found);
            }
        }
        Ok(best)
    }
}

/// How many new keys a user of a group has with a share, at most, and what each weighs; with a walk that is not that of the group.
fn new_keys((first, last): (u64, u64), share: (u64, u64), most: u64, walk: bool) -> (f64, f64) {
    let (part, whole) = share;
    if walk {
        // No other key weighs more than a new one: t new keys of at most `most` have a share of t / most at least.
        let number = last.min(most * part / whole);
        return (
            if first <= number { number as f64 } else { 0.0 },
            (approximate(share) / first as f64).sqrt(),
        );
    }
    ((last * part / whole) as f64, 1.0 / (first as f64).sqrt())
}

/// About the largest 1 - q + q H(epsilon - ln q) of all shares, of which each has a mu and 1 - q.
fn largest(split: &[(f64, f64)], epsilon: f64) -> f64 {
    let kept = |place: usize| {
        let (mu, shown) = split[place];
        (1.0 - shown) * gaussian_delta(mu, epsilon - (-shown).ln_1p())
    };
    // What is kept falls, and what is shown rises: from a place to another it is at most the sum of both ends.
    let Some(last) = split.len().checked_sub(1) else { return 1.0 };
    let (mut best, mut ranges) = (split[last].1 + kept(last), vec![(0, last, kept(0))]);
    while let Some((low, high, most)) = ranges.pop() {
        best = best.max(split[low].1 + most);
        if high - low > 1 && split[high - 1].1 + most > best {
            let middle = usize::midpoint(low, high);
            ranges.push((low, middle, most));
            ranges.push((middle, high, kept(middle)));
        }
    }
    best
}

/// Counts and sums by key.
#[derive(Debug, Clone, Copy)]
pub struct Histogram {
    /// What is promised.
    pub epsilon: f64,
    /// What is promised.
    pub delta: f64,
    /// How many keys a user has.
    pub max_keys: u64,
    /// Whether a user is replaced, and not added or removed.
    pub replace: bool,
    /// The count's part of the budget.
    pub share: f64,
    /// What a key that both users have is worth beside one's own, at most: sums alone move there.
    pub common: f64,
    /// How likely a key with the wanted number of users is to be shown.
    pub probability: f64,
}

/// A proposal: how many users a key needs, about, the threshold, and the noise of a unit of a key's whole part.
pub type Candidate = (f64, u64, f64);

impl Histogram {
    fn moved(&self) -> f64 {
        if self.replace { 2.0 * self.max_keys as f64 } else { self.max_keys as f64 }
    }

    /// Numbers of keys that vanish.
    fn splits(&self) -> Vec<f64> {
        let many = self.max_keys.min(SPLITS - 1) + 1;
        let apart = self.max_keys as f64 / (many - 1).max(1) as f64;
        let mut found: Vec<f64> = (0..many)
            .map(|place| (place as f64 * apart).round_ties_even().min(self.max_keys as f64))
            .collect();
        found.dedup();
        found
    }

    /// About the least threshold, by the probability that one user's key is shown and the delta of what moves for each split.
    fn threshold(&self, splits: &[f64], shown: impl Fn(f64) -> f64, moves: &[f64]) -> Option<u64> {
        let delta = |threshold: f64| {
            let left = (-shown(threshold).min(1.0 - 1e-16)).ln_1p();
            let value = |(split, kept): (&f64, &f64)| -(split * left).exp_m1() + (split * left).exp() * kept;
            splits.iter().zip(moves).map(value).fold(f64::NEG_INFINITY, f64::max)
        };
        let (mut low, mut high) = (0.0, 2.0);
        while delta(high) > self.delta {
            high *= 2.0;
            if high > HIGHEST {
                return None;
            }
        }
        while high - low > 1.0 {
            let middle = f64::midpoint(low, high).floor();
            if delta(middle) <= self.delta {
                high = middle;
            } else {
                low = middle;
            }
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an integer below 2^31
        Some(high as u64)
    }

    /// Variances of Gaussian noise, or scales of Laplace noise, from the least one on.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for what is out of range; [`Error::Canceled`].
    pub fn proposed(&self, laplace: bool, control: &Control) -> Result<Vec<Candidate>> {
        let open = |x: f64| x > 0.0 && x < 1.0;
        let finite = self.epsilon.is_finite() && self.epsilon > 0.0;
        let shares = self.common >= 0.0 && self.common.is_finite() && self.share > 0.0 && self.share <= 1.0;
        if !(finite && shares && open(self.delta) && open(self.probability)) {
            return Err(Error::invalid("epsilon, delta, share, probability", "are out of range"));
        }
        if self.max_keys == 0 || (laplace && self.max_keys > MOST_LAPLACE_KEYS) {
            return Err(Error::invalid("max_keys", format!("{} is out of range", self.max_keys)));
        }
        let (moved, splits) = (self.moved(), self.splits());
        let narrowest = if laplace {
            // The scale for a unit of a key's whole part; basic composition always does.
            least(|x| laplace_delta(1.0 / x, moved, self.epsilon) <= self.delta, -60.0, 80.0, 60)
                .min(moved / self.epsilon)
        } else {
            let most = moved.max(self.max_keys as f64 * self.common);
            least(|x| gaussian_delta((most / x).sqrt(), self.epsilon) <= self.delta, -60.0, 80.0, 60)
        };
        let power = if laplace { 1.0 } else { 2.0 };
        let normal = quantile_above(1.0 - self.probability, 0.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 174
        let many = (2.0_f64.ln() / STEP.ln()).ceil() as u32;
        let mut found = Vec::new();
        for index in 0..=many {
            control.check()?;
            let size = narrowest * STEP.powf(power * f64::from(index)) * (1.0 + 1e-9);
            let (threshold, more) = if laplace {
                let rate = self.share / size;
                let moves: Vec<f64> = splits
                    .iter()
                    .map(|split| laplace_delta(1.0 / size, moved - split, self.epsilon))
                    .collect();
                let shown = |x: f64| {
                    if x > 1.0 { (-rate * (x - 1.0)).exp() / (1.0 + (-rate).exp()) } else { 0.9 }
                };
                (self.threshold(&splits, shown, &moves), laplace_quantile(rate, self.probability))
            } else {
                let sigma = (size / self.share).sqrt();
                let moves: Vec<f64> = splits
                    .iter()
                    .map(|split| gaussian_delta(((moved - split) / size).sqrt(), self.epsilon))
                    .collect();
                (self.threshold(&splits, |x| tail((x - 1.5) / sigma), &moves), sigma * normal)
            };
            if let Some(threshold) = threshold {
                found.push((threshold as f64 + more, threshold, size));
            }
        }
        Ok(found)
    }
}

/// How many users above the threshold a key needs, with discrete Laplace noise.
fn laplace_quantile(rate: f64, probability: f64) -> f64 {
    let ratio = (-rate).exp();
    if probability > 0.5 {
        (-((1.0 - probability) * (1.0 + ratio)).ln() / rate - 1.0).max(0.0)
    } else {
        ((probability * (1.0 + ratio)).ln() / rate).min(0.0)
    }
}

/// About the delta of so many randomized responses: of binomial masses within sixteen standard deviations.
fn laplace_delta(rate: f64, times: f64, epsilon: f64) -> f64 {
    if rate * times <= epsilon {
        return 0.0;
    }
    if rate > 50.0 {
        return 1.0;
    }
    // So many of the responses are against: loss (times - 2 i) rate, which is to be above epsilon.
    let against = 1.0 / (1.0 + rate.exp());
    let mean = times * against;
    let reach = 16.0 * (mean * (1.0 - against)).sqrt() + 64.0;
    let end = ((times - epsilon / rate) / 2.0).ceil().min(mean + reach).min(times);
    let start = (mean - reach).floor().clamp(0.0, times);
    let choose = libm::lgamma(times + 1.0) - libm::lgamma(start + 1.0) - libm::lgamma(times - start + 1.0);
    let mut mass = (choose + (times - start) * rate - times * (rate + (-rate).exp().ln_1p())).exp();
    let (mut sum, mut i) = (0.0, start);
    while i <= end {
        let loss = (times - 2.0 * i) * rate;
        sum += mass * (-(epsilon - loss).min(700.0).exp_m1()).max(0.0);
        mass *= (times - i) / (i + 1.0) * (-rate).exp();
        i += 1.0;
    }
    sum
}
