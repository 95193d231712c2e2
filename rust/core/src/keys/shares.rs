//! Shares of a user's squared length that new keys may have, and how likely these are all hidden.

use super::{rest, rounded, zero};
use crate::{
    Error, Result,
    exact::{Integer, Rational, dyadic::Dyadic},
};
use num_traits::{Signed, ToPrimitive, Zero};
use std::cmp::Ordering;

/// Up to so many keys of a user all shares of keys are looked at, one by one; above it on a grid.
const SINGLE: u64 = 32;
/// Steps of the grid.
const SHARES: u64 = 512;
/// Between the numbers of keys for which probabilities are given, from the largest of 32 on.
const NEARER: f64 = 1.02;
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

/// For each share, at or above the expected number of new keys that are shown.
///
/// A group is its largest number of keys, and the probability that a key of its largest weight is shown.
fn most_shown(groups: &[(u64, Dyadic)], shares: &[(u64, u64)], walk: bool) -> Vec<Dyadic> {
    let lowest = groups.iter().map(|(_, shown)| shown.exponent).min().unwrap_or(0);
    let listed: Vec<(u64, Integer)> = groups
        .iter()
        .map(|(last, shown)| {
            let places = usize::try_from(shown.exponent - lowest).unwrap_or(0);
            (*last, &shown.mantissa << places)
        })
        .collect();
    let most = |numbers: &mut dyn Iterator<Item = Integer>| numbers.max().unwrap_or_default();
    shares
        .iter()
        .map(|&(part, whole)| {
            let expected = if walk {
                // t new keys with the share s weigh sqrt(s / t) each, and t p(sqrt(s / t)) = s p(sqrt(x)) / x for x = s / t. A
                // group has the x from 1 / last to 1 / first. The whole is a power of two: a grid's.
                let rate = most(
                    &mut listed
                        .iter()
                        .filter(|(last, _)| last * part >= whole)
                        .map(|(last, shown)| shown * *last),
                );
                let product = Dyadic { mantissa: rate * part, exponent: lowest };
                super::quotient(&product, &Dyadic::integer(Integer::from(whole)), 4 * BITS, true)
            } else {
                let number = most(&mut listed.iter().map(|(last, shown)| shown * (last * part / whole)));
                Dyadic { mantissa: number, exponent: lowest }
            };
            if expected.mantissa.is_zero() { zero() } else { expected }
        })
        .collect()
}

/// Shares of new keys, rising, and the least probability that none of them is shown.
///
/// # Errors
/// Unless there is a probability in [0, 1] for each of the [`groups`].
pub(super) fn hidden(max_keys: u64, walk: bool, shown: &[Rational]) -> Result<(Vec<Rational>, Vec<Dyadic>)> {
    let groups = groups(max_keys)?;
    if shown.len() != groups.len() || shown.iter().any(|x| x.is_negative() || x.numer() > x.denom()) {
        return Err(Error::invalid(
            "shown",
            format!("must have a probability for each of {} groups of keys", groups.len()),
        ));
    }
    let listed: Vec<(u64, Dyadic)> =
        groups.iter().zip(shown).map(|(&(_, last), x)| (last, rounded(x, BITS, true))).collect();
    let shares = shares(max_keys, walk, SHARES);
    let single = listed_singly(max_keys, walk);
    let (mut found, mut least): (Vec<Rational>, Vec<Dyadic>) = (Vec::new(), Vec::new());
    for (share, expected) in shares.iter().zip(most_shown(&listed, &shares, walk)) {
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

/// How many new keys a user of a group has with a share, at most; with a walk a user's keys need not be whole.
pub(super) fn new_keys(last: u64, (part, whole): (u64, u64), walk: bool) -> f64 {
    let number = if walk { (last * part) as f64 / whole as f64 } else { (last * part / whole) as f64 };
    if number >= 1.0 { number } else { 0.0 }
}

/// The share as a float.
pub(super) fn approximate(share: (u64, u64)) -> f64 {
    fraction(share).to_f64().unwrap_or(0.0)
}
