//! Shares of a user's squared length that new keys may have, and how likely these are all hidden.

use super::{quotient, rest, rounded, smaller, zero};
use crate::{
    Error, Result,
    exact::{Integer, Rational, dyadic::Dyadic},
};
use num_traits::{Signed, ToPrimitive};
use std::cmp::Ordering;

/// Up to so many keys of a user all shares of keys are looked at, one by one; above it on a grid.
const SINGLE: u64 = 32;
/// Steps of the grid.
const SHARES: u64 = 512;
/// Between the numbers of keys for which probabilities are given, from the largest of 32 on.
const NEARER: f64 = 1.02;
/// Of a key, between whole numbers of keys.
const FINE: u64 = 64;
/// Of probabilities, rounded up.
const BITS: i64 = 128;
/// The most keys of a user: sums of weights are of 64 bits.
pub(super) const MOST_KEYS: u64 = 1 << 24;

/// Whether all shares of new keys are listed, one by one.
pub(super) fn listed_singly(max_keys: u64, walk: bool) -> bool {
    max_keys <= SINGLE && !walk
}

/// Shares t / d of new keys as (t, d), rising: all that there are, or a grid of so many steps.
pub(super) fn shares(max_keys: u64, walk: bool, steps: u64) -> Vec<(u64, u64)> {
    if !listed_singly(max_keys, walk) {
        return (0..=steps).map(|place| (place, steps)).collect();
    }
    let mut found: Vec<(u64, u64)> = (1..=max_keys)
        .flat_map(|whole| (0..=whole).map(move |part| (part, whole)))
        .filter(|&(part, whole)| num_integer::gcd(part, whole) == 1)
        .collect();
    found.sort_unstable_by(|x, y| (x.0 * y.1).cmp(&(y.0 * x.1)));
    found
}

/// The share as a number.
pub(super) fn fraction((part, whole): (u64, u64)) -> Rational {
    Rational::new(Integer::from(part), Integer::from(whole))
}

/// Numbers of keys from ... to ..., of which the first has the largest weights.
///
/// # Errors
/// Unless there is a key, and at most 2^24.
pub fn groups(max_keys: u64) -> Result<Vec<(u64, u64)>> {
    if !(1..=MOST_KEYS).contains(&max_keys) {
        return Err(Error::invalid(
            "max_keys",
            format!("{max_keys} is out of range; from 1 to 2^24 are accepted"),
        ));
    }
    let (mut found, mut first) = (Vec::new(), 1);
    while first <= max_keys {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below 2^25
        let next = (first as f64 * NEARER).floor() as u64 + 1;
        let last = if first < SINGLE { first } else { next.min(max_keys) };
        found.push((first, last));
        first = last + 1;
    }
    Ok(found)
}

/// Weights of a walk between those of whole numbers of keys: new keys of a share s that weigh W / sqrt(y) each are s y of them, for a
/// real y from 1 to `max_keys`. These are such y in units of 1 / 64, rising, from 1 to `max_keys` or more.
///
/// # Errors
/// As [`groups`].
pub fn fine_groups(max_keys: u64) -> Result<Vec<u64>> {
    groups(max_keys)?;
    let mut found = vec![FINE];
    while let Some(&last) = found.last()
        && last < max_keys * FINE
    {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below 2^31
        let next = (last as f64 * NEARER).floor() as u64;
        found.push(next.max(last + 1));
    }
    Ok(found)
}

/// For each share, at or above the expected number of new keys that are shown.
///
/// A group is its largest number of keys, and the probability that a key of its largest weight is shown.
fn most_shown(groups: &[(u64, Dyadic)], between: &[(u64, Dyadic)], shares: &[(u64, u64)]) -> Vec<Dyadic> {
    let listed = |groups: &[(u64, Dyadic)]| -> (i64, Vec<(u64, Integer)>) {
        let lowest = groups.iter().map(|(_, shown)| shown.exponent).min().unwrap_or(0);
        let places = |shown: &Dyadic| usize::try_from(shown.exponent - lowest).unwrap_or(0);
        (lowest, groups.iter().map(|(last, shown)| (*last, &shown.mantissa << places(shown))).collect())
    };
    let ((lowest, whole_keys), (lowest_between, real_keys)) = (listed(groups), listed(between));
    let most = |numbers: &mut dyn Iterator<Item = Integer>| numbers.max().unwrap_or_default();
    let of_whole_keys = |part: u64, whole: u64| {
        let number = most(&mut whole_keys.iter().map(|(last, shown)| shown * (last * part / whole)));
        Dyadic { mantissa: number, exponent: lowest }
    };
    // So many keys are shown more often where they weigh more: none more often than at the share 1.
    let all = of_whole_keys(1, 1);
    shares
        .iter()
        .map(|&(part, whole)| {
            if between.is_empty() || part == whole {
                return of_whole_keys(part, whole);
            }
            // t new keys with the share s weigh W sqrt(s / t) each: y = t / s is from 1 / s on, and they are s y.
            let fits = |last: u64| last * part >= whole * FINE;
            let rate = most(
                &mut real_keys.iter().filter(|(last, _)| fits(*last)).map(|(last, shown)| shown * *last),
            );
            let product = Dyadic { mantissa: rate * part, exponent: lowest_between };
            let found = quotient(&product, &Dyadic::integer(Integer::from(whole * FINE)), 4 * BITS, true);
            smaller(found, all.clone())
        })
        .collect()
}

/// Each end of a group with its probability, rounded up.
fn probabilities(argument: &'static str, ends: &[u64], given: &[Rational]) -> Result<Vec<(u64, Dyadic)>> {
    if given.len() != ends.len() || given.iter().any(|x| x.is_negative() || x.numer() > x.denom()) {
        let message = format!("must have a probability for each of {} groups of keys", ends.len());
        return Err(Error::invalid(argument, message));
    }
    Ok(ends.iter().zip(given).map(|(&last, x)| (last, rounded(x, BITS, true))).collect())
}

/// Shares of new keys, rising, and the least probability that none of them is shown.
///
/// # Errors
/// Unless there is a probability in [0, 1] for each of the [`groups`].
pub(super) fn hidden(
    max_keys: u64,
    walk: bool,
    shown: &[Rational],
    between: &[Rational],
) -> Result<(Vec<Rational>, Vec<Dyadic>)> {
    let lasts: Vec<u64> = groups(max_keys)?.into_iter().map(|(_, last)| last).collect();
    let ends = if walk { fine_groups(max_keys)?.split_off(1) } else { Vec::new() };
    let listed = probabilities("shown", &lasts, shown)?;
    let real = probabilities("between", &ends, between)?;
    let shares = shares(max_keys, walk, SHARES);
    let single = listed_singly(max_keys, walk);
    let (mut found, mut least): (Vec<Rational>, Vec<Dyadic>) = (Vec::new(), Vec::new());
    for (share, expected) in shares.iter().zip(most_shown(&listed, &real, &shares)) {
        // (1 - p)^t is at least 1 - t p.
        let hidden = rest(&expected);
        let hidden = if hidden.sign() == Ordering::Less { zero() } else { hidden };
        // A larger share that hides as much is no worse than the smaller one.
        if single && least.last().is_some_and(|last| hidden.compare(last) != Ordering::Less) {
            continue;
        }
        found.push(fraction(*share));
        least.push(hidden);
    }
    Ok((found, least))
}

/// The share as a float.
pub(super) fn approximate(share: (u64, u64)) -> f64 {
    fraction(share).to_f64().unwrap_or(0.0)
}
