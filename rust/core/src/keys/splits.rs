//! Counts and sums by key: which of a user's keys vanish with the user and which move, over all splits.
//!
//! Nothing is paid twice, and the worst split is searched, the one of the largest bound first. Proofs:
//! `docs/proofs/sparse_histogram.md`.

use super::{curve::At, larger, one, quotient, rest, rounded, smaller, zero};
use crate::{
    Error, Result,
    composition::{DEEP, Depth},
    control::Control,
    exact::{Integer, Rational, dyadic::Dyadic},
};
use num_traits::{One, Signed, Zero};
use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap},
};

/// Of powers and levels, rounded against the claim.
const BITS: i64 = 264;
/// Curves are computed down to so many bits below a part of the delta, and `BITS`.
const LOST: i64 = 64;
const MOST_NODES: usize = 20_000;
/// Up to so many keys the largest delta is found to the last bit, beyond that to a part in `SHARE`.
const EXACT_KEYS: u64 = 16;
const SHARE: u32 = 1_000_000;
/// Numbers of keys in common are looked at in so many ranges at first.
const RANGES: u64 = 64;
/// The most keys of a user.
const MOST_KEYS: u64 = 1 << 32;
/// Powers below 2^LEAST are taken as 0 from below, and as that from above.
const LEAST: i64 = -4096;

/// What one user changes: keys of their own, keys in common with who replaces them, and what hides a new key.
#[derive(Debug)]
pub struct Keys {
    /// How many keys a user has at most.
    most: u64,
    replace: bool,
    /// Whether numbers move in keys that both have.
    common: bool,
    /// The probability that a key of a single user is not shown.
    hidden: Rational,
    /// How far the drawn numbers of one key are from those that are accounted, in total variation.
    distance: Rational,
    /// Bounds of powers of `hidden`.
    powers: HashMap<u64, (Dyadic, Dyadic)>,
}

/// Numbers of keys from ... to ....
type Range = (u64, u64);

/// Splits whose numbers of keys are in ranges: in common, vanishing with one user, and new with the other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Splits {
    common: Range,
    vanishing: Range,
    new: Range,
}

#[derive(Debug)]
struct Node {
    bound: Dyadic,
    order: usize,
    splits: Splits,
}

impl Ord for Node {
    /// The largest bound first, and of equal ones that which is older.
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.compare(&other.bound).then_with(|| other.order.cmp(&self.order))
    }
}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Node {}

impl Keys {
    /// A user's keys, and what hides them.
    ///
    /// # Errors
    /// Where an argument is out of range.
    pub fn new(
        max_keys: u64,
        replace: bool,
        common: bool,
        hidden: Rational,
        distance: Rational,
    ) -> Result<Self> {
        check(max_keys, &hidden)?;
        if distance.is_negative() {
            return Err(Error::invalid("distance", "must not be negative"));
        }
        Ok(Self {
            most: max_keys,
            replace,
            common: common && replace,
            hidden,
            distance,
            powers: HashMap::new(),
        })
    }

    /// At or above the least delta at a level E, which is enclosed, by less than a part in a million.
    ///
    /// With a limit: any number on the same side of it. `moved` is at or above the sum of [P - E Q]_+ for so many of a user's own keys
    /// and so many in common, at a level that may be below 1; or anything, where that is shown to be at most its last argument.
    ///
    /// # Errors
    /// Those of `moved`; [`Error::TooLarge`] where there are too many splits to search.
    pub fn delta<E: From<Error>>(
        &mut self,
        level: (&Rational, &Rational),
        limit: Option<&Rational>,
        mut moved: impl FnMut(u64, u64, &Dyadic, &Dyadic) -> std::result::Result<Dyadic, E>,
    ) -> std::result::Result<Rational, E> {
        let (low, high) = level;
        if !low.is_positive() || high < low {
            return Err(Error::invalid("level", "must be positive").into());
        }
        let whole = Rational::one();
        let extra = (high + Integer::one()) * Integer::from(self.moved_keys()) * &self.distance;
        if self.hidden.is_zero() || extra >= whole {
            return Ok(whole);
        }
        let level = rounded(low, BITS, false);
        // A part in 10^7 of the delta of keys that vanish.
        let vanishing = vanishing(&self.hidden, self.most)?.to_rational();
        let negligible = rounded(&(vanishing / Integer::from(10 * SHARE)), BITS, false);
        let share = if self.most > EXACT_KEYS { SHARE } else { 0 };
        let mut nodes = BinaryHeap::new();
        // All of a user's keys vanish, and nothing that moves counts.
        let (mut order, mut best) = (0, rest(&self.power(self.most).1));
        for splits in self.roots() {
            let bound = self.bound(&level, &splits, &negligible, &mut moved)?;
            nodes.push(Node { bound, order, splits });
            order += 1;
        }
        let sum = |bound: &Dyadic| (bound.to_rational() + &extra).min(Rational::one());
        for _ in 0..MOST_NODES {
            let Some(Node { bound, splits, .. }) = nodes.pop() else { return Ok(sum(&best)) };
            let largest = sum(&bound);
            if limit.is_some_and(|limit| largest <= *limit) {
                return Ok(largest);
            }
            if splits.is_single() || at_most(&bound, &best, share) {
                return Ok(largest);
            }
            // A value that is taken.
            best = larger(best, self.bound(&level, &splits.first(), &negligible, &mut moved)?);
            if limit.is_some_and(|limit| best.to_rational() + &extra > *limit) {
                return Ok(sum(&best));
            }
            for splits in splits.halves(self.most) {
                let bound = self.bound(&level, &splits, &negligible, &mut moved)?;
                nodes.push(Node { bound, order, splits });
                order += 1;
            }
        }
        Err(Error::too_large(format!(
            "max_keys={} with these sums has too many splits of keys to search; use fewer keys or sums",
            self.most
        ))
        .into())
    }

    /// The same where all numbers have continuous Gaussian noise, by mu^2 of all numbers of a key of one's own, and in common.
    ///
    /// # Errors
    /// Where a mu^2 is negative; as [`Keys::delta`]; [`Error::Canceled`].
    pub fn gaussian_delta(
        &mut self,
        level: (&Rational, &Rational),
        limit: Option<&Rational>,
        own: &Rational,
        common: &Rational,
        control: &Control,
    ) -> Result<Rational> {
        if own.is_negative() || common.is_negative() {
            return Err(Error::invalid("mu2", "must not be negative"));
        }
        self.delta(level, limit, |single, both, level, negligible| {
            control.check()?;
            let mu2 = own * Integer::from(single) + common * Integer::from(both);
            // What is smaller by so much is lost where it is added to the delta of keys that vanish.
            let depth = if negligible.mantissa.is_zero() {
                DEEP
            } else {
                let magnitude = negligible.mantissa.bits().cast_signed() + negligible.exponent;
                Depth::of(BITS + LOST - magnitude)
            };
            Ok(At::new(level.clone()).curve(&mu2, depth))
        })
    }

    fn moved_keys(&self) -> u64 {
        if self.replace { 2 * self.most } else { self.most }
    }

    /// What all splits are in.
    fn roots(&self) -> Vec<Splits> {
        let (none, all) = ((0, 0), (0, self.most));
        if !self.replace {
            return [(all, none), (none, all)]
                .map(|(vanishing, new)| Splits { common: none, vanishing, new })
                .to_vec();
        }
        if !self.common {
            return vec![Splits { common: none, vanishing: all, new: all }];
        }
        let step = self.most / (RANGES + 1) + 1;
        (0..=self.most / step)
            .map(|place| {
                let first = place * step;
                let ends = (0, self.most - first);
                Splits { common: (first, (first + step - 1).min(self.most)), vanishing: ends, new: ends }
            })
            .collect()
    }

    /// At or above all values of splits: what is left to show falls as more keys are split off, and grows with numbers that move.
    fn bound<E: From<Error>>(
        &mut self,
        level: &Dyadic,
        splits: &Splits,
        negligible: &Dyadic,
        moved: &mut impl FnMut(u64, u64, &Dyadic, &Dyadic) -> std::result::Result<Dyadic, E>,
    ) -> std::result::Result<Dyadic, E> {
        let (fewest, most) = splits.vanishing;
        let total = self.moved_keys() - if self.replace { 2 * splits.common.0 } else { 0 };
        let own = total - fewest - splits.new.0;
        let (low, high) = (self.power(splits.new.1).0, self.power(fewest).1);
        let lowered = quotient(&level.times(&low), &high, BITS, false);
        let kept = if lowered.mantissa.is_zero() {
            high
        } else {
            high.times(&moved(own, splits.common.1, &lowered, negligible)?)
        };
        if kept.mantissa.is_zero() && most == 0 {
            return Ok(kept);
        }
        Ok(smaller(rest(&self.power(most).0).plus(&kept).rounded(BITS, true), one()))
    }

    /// Bounds of the probability that so many keys are all hidden.
    fn power(&mut self, exponent: u64) -> (Dyadic, Dyadic) {
        let hidden = &self.hidden;
        self.powers
            .entry(exponent)
            .or_insert_with(|| (power(hidden, exponent, false, BITS), power(hidden, exponent, true, BITS)))
            .clone()
    }
}

impl Splits {
    fn is_single(&self) -> bool {
        [self.common, self.vanishing, self.new].iter().all(|(low, high)| low == high)
    }

    /// The one split of the least numbers.
    fn first(&self) -> Self {
        let point = |(low, _): Range| (low, low);
        Self { common: point(self.common), vanishing: point(self.vanishing), new: point(self.new) }
    }

    /// The same splits in two or more parts, by the longest range.
    fn halves(&self, max_keys: u64) -> Vec<Self> {
        let length = |(low, high): Range| high - low;
        let widest = length(self.vanishing).max(length(self.new));
        if length(self.common) > 0 && length(self.common) >= widest {
            return halves(self.common)
                .into_iter()
                .map(|common| {
                    let most = max_keys - common.0;
                    let within = |(low, high): Range| (low, high.min(most));
                    Self { common, vanishing: within(self.vanishing), new: within(self.new) }
                })
                .filter(|splits| splits.vanishing.0 <= splits.vanishing.1 && splits.new.0 <= splits.new.1)
                .collect();
        }
        let (a, b) = (length(self.vanishing), length(self.new));
        let parts = if a >= b { halves(self.vanishing) } else { vec![self.vanishing] };
        let others = if b > a { halves(self.new) } else { vec![self.new] };
        parts
            .iter()
            .flat_map(|&vanishing| {
                others.iter().map(move |&new| Self { common: self.common, vanishing, new })
            })
            .collect()
    }
}

fn halves((low, high): Range) -> Vec<Range> {
    if low == high {
        return vec![(low, high)];
    }
    let middle = u64::midpoint(low, high);
    vec![(low, middle), (middle + 1, high)]
}

/// Whether x is at most y, or by a part in `share` more; exactly where that is 0.
fn at_most(x: &Dyadic, y: &Dyadic, share: u32) -> bool {
    let times = |x: &Dyadic, factor: u32| x.times(&Dyadic::integer(Integer::from(factor)));
    let above = if share == 0 { x.compare(y) } else { times(x, share).compare(&times(y, share + 1)) };
    above != Ordering::Greater
}

/// A power of a number from 0 to 1, by squares that are rounded to twice the bits and more.
fn power(x: &Rational, exponent: u64, up: bool, bits: i64) -> Dyadic {
    let base = rounded(x, 2 * bits + 64, up);
    let mut found = one();
    for place in (0..u64::BITS - exponent.leading_zeros()).rev() {
        found = found.times(&found);
        if exponent >> place & 1 == 1 {
            found = found.times(&base);
        }
        found = found.rounded(2 * bits, up);
        if found.mantissa.bits().cast_signed() + found.exponent < LEAST {
            found = if up { Dyadic { mantissa: Integer::one(), exponent: LEAST } } else { zero() };
        }
    }
    let found = found.rounded(bits, up);
    if up && found.compare(&one()) == Ordering::Greater { one() } else { found }
}

fn check(max_keys: u64, hidden: &Rational) -> Result<()> {
    if !(1..=MOST_KEYS).contains(&max_keys) {
        return Err(Error::invalid(
            "max_keys",
            format!("{max_keys} is out of range; from 1 to 2^32 are accepted"),
        ));
    }
    if hidden.is_negative() || *hidden > Rational::one() {
        return Err(Error::invalid("hidden", "must be a probability"));
    }
    Ok(())
}

/// The probability that a user's own keys, each hidden with this one, are not all hidden, rounded up.
///
/// # Errors
/// Where there is no key, or `hidden` is no probability.
pub fn vanishing(hidden: &Rational, max_keys: u64) -> Result<Dyadic> {
    check(max_keys, hidden)?;
    if hidden.is_one() {
        return Ok(zero());
    }
    Ok(rest(&power(hidden, max_keys, false, 2 * BITS)).rounded(BITS, true))
}
