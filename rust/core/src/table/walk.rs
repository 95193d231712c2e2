//! Users who raise sums one after the other, each by a bounded length: the policy of a set union.
//!
//! A sum is raised towards a public cap and never beyond. The user whose turn it is has a gap to the cap in each of their
//! keys, and closes all of them in proportion, by `length` in Euclidean length at most. In exact numbers that is the
//! proximal map of a norm, so a difference that another user made before does not grow. In integers each turn may add
//! less than sqrt(keys of the user) + sqrt(2) to it (`docs/proofs/set_union.md`).

use crate::{Error, Result, control::Control, memory::room};

/// The largest cap: gaps are not negative in 64 bits.
pub const MOST_CAP: i64 = 1 << 61;
/// Users between two looks at the control.
const CHECK_EVERY: usize = 1 << 12;

/// How far sums are raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// The most that one user raises all sums by, in Euclidean length.
    pub length: u64,
    /// What no sum is raised beyond.
    pub cap: i64,
}

impl Reach {
    /// Refuses numbers whose squares, of so many keys of a user, do not fit 127 bits.
    ///
    /// # Errors
    /// For a length of 0, a cap that is not from 1 to [`MOST_CAP`], and too many keys for it.
    pub fn check(&self, max_keys: usize) -> Result<()> {
        if self.length == 0 || self.length > MOST_CAP.unsigned_abs() {
            return Err(Error::invalid("length", "must be from 1 to 2^61"));
        }
        if !(1..=MOST_CAP).contains(&self.cap) {
            return Err(Error::invalid("cap", "must be from 1 to 2^61"));
        }
        let square = u128::from(self.cap.unsigned_abs()).pow(2);
        if square.checked_mul(max_keys as u128).is_none_or(|sum| sum >= 1 << 127) {
            return Err(Error::invalid("max_keys", "keys times the square of the cap must be below 2^127"));
        }
        Ok(())
    }

    /// Raises the sums of one user's keys, which are distinct and no more than were checked.
    fn turn(&self, keys: &[u32], sums: &mut [i64]) {
        let square: u128 = keys.iter().map(|&key| u128::from(self.gap(sums[key as usize])).pow(2)).sum();
        let length = u128::from(self.length);
        if square <= length * length {
            for &key in keys {
                sums[key as usize] = self.cap;
            }
            return;
        }
        let root = square.isqrt();
        // Rounded up, so that all moves together are not longer than they may be.
        let root = root + u128::from(root * root < square);
        for &key in keys {
            let sum = &mut sums[key as usize];
            // Products of 61 bits each; the quotient is below the gap, as the root is above the length.
            *sum += i64::try_from(u128::from(self.gap(*sum)) * length / root).unwrap_or_default();
        }
    }

    fn gap(&self, sum: i64) -> u64 {
        // Both are from 0 to 2^62.
        (self.cap - sum).max(0).unsigned_abs()
    }
}

/// The sums of so many keys after all turns, from 0 on. A turn has the distinct keys of a user.
///
/// # Errors
/// As [`Reach::check`]; for keys that are not below their number; [`Error::Memory`], [`Error::Canceled`].
pub fn walked<'a>(
    turns: impl Iterator<Item = &'a [u32]>,
    keys: usize,
    max_keys: usize,
    reach: Reach,
    control: &Control,
) -> Result<Vec<i64>> {
    reach.check(max_keys)?;
    let mut sums = room("keys", keys)?;
    sums.resize(keys, 0);
    for (number, turn) in turns.enumerate() {
        if number.is_multiple_of(CHECK_EVERY) {
            control.check()?;
        }
        if turn.len() > max_keys || turn.iter().any(|&key| key as usize >= keys) {
            return Err(Error::invalid("keys", "a turn has at most max_keys keys, all below their number"));
        }
        reach.turn(turn, &mut sums);
    }
    Ok(sums)
}

/// The turns of users, who come in an order of their own.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// What users are ordered by, the code, and where their keys are.
    users: Vec<([u64; 2], u32, usize, usize)>,
    keys: Vec<u32>,
}

impl Turns {
    /// Adds a user.
    pub(super) fn add(
        &mut self,
        digest: [u64; 2],
        user: u32,
        keys: impl ExactSizeIterator<Item = u32>,
    ) -> Result<()> {
        let (start, len) = (self.keys.len(), keys.len());
        let reserved = self.keys.try_reserve(len).and_then(|()| self.users.try_reserve(1));
        reserved.map_err(|_| Error::memory("rows: there is no memory for the keys of users"))?;
        self.keys.extend(keys);
        self.users.push((digest, user, start, start + len));
        Ok(())
    }

    /// The keys of users in the order of their digests; equal ones by what `compare` says of their codes.
    pub(super) fn in_order(
        &mut self,
        compare: impl Fn(u32, u32) -> std::cmp::Ordering,
    ) -> impl Iterator<Item = &[u32]> {
        self.users.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| compare(a.1, b.1)));
        self.users.iter().map(|&(_, _, start, end)| &self.keys[start..end])
    }
}
