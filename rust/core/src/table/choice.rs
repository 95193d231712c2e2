//! Which keys a user keeps.

use super::index::{Digester, KEY_BYTES, TableIndex, halves};
use crate::{Error, Result};
use siphasher::sip::SipHasher24 as Sip64;
use std::fmt;

/// How the kept keys of a user with more than the most are chosen.
#[derive(Clone, Copy)]
pub enum Rule<'a> {
    /// Those that come first in the canonical order of keys.
    First,
    /// Those with the least keyed hash of the user's value and the key's.
    Random {
        /// The values of users.
        users: &'a TableIndex,
        /// The digests of keys by their codes.
        key_digests: &'a [[u64; 2]],
        /// The key of the hash.
        key: &'a [u8; KEY_BYTES],
    },
}

impl fmt::Debug for Rule<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::First => "First",
            Self::Random { .. } => "Random(..)",
        })
    }
}

/// A rule, and the most keys.
#[derive(Clone)]
pub(super) struct Choice<'a> {
    most: usize,
    coins: Option<Coins<'a>>,
}

/// The keyed hashes of pairs: SipHash-2-4 of 64 bits, of the digest of the user and that of the key, little-endian.
#[derive(Clone)]
struct Coins<'a> {
    users: &'a TableIndex,
    digester: Digester,
    pairs: Sip64,
    key_digests: &'a [[u64; 2]],
    /// The codes of keys by rank.
    codes: &'a [u32],
}

impl<'a> Choice<'a> {
    /// Of at most so many keys, whose codes are listed by rank; of all of them for `None`.
    pub(super) fn new(rule: Rule<'a>, most: Option<usize>, codes: &'a [u32]) -> Self {
        let coins = match rule {
            Rule::First => None,
            Rule::Random { users, key_digests, key } => Some(Coins {
                users,
                digester: Digester::new(key),
                pairs: Sip64::new_with_key(&halves(key).1),
                key_digests,
                codes,
            }),
        };
        Self { most: most.unwrap_or(usize::MAX), coins }
    }

    /// Lists which of a user's keys the user keeps, by their place among these, in any order.
    ///
    /// The keys are given by their ranks, which increase. The choice depends on the values of the user and of the keys,
    /// and on the canonical order of the keys.
    pub(super) fn choose(
        &self,
        user: u32,
        len: usize,
        rank: impl Fn(usize) -> u32,
        ranked: &mut Vec<(u64, usize)>,
        kept: &mut Vec<usize>,
    ) -> Result<()> {
        let no_memory = |_| Error::memory("rows: there is no memory for the keys of a user");
        let most = self.most;
        kept.clear();
        kept.try_reserve(len.min(most)).map_err(no_memory)?;
        let Some(coins) = self.coins.as_ref().filter(|_| len > most) else {
            kept.extend(0..len.min(most));
            return Ok(());
        };
        if most == 0 {
            return Ok(());
        }
        let missing = || Error::invalid("users", "must have the values of all users of the rows");
        let user = coins.users.digest(user, &coins.digester).ok_or_else(missing)?;
        ranked.clear();
        ranked.try_reserve(len).map_err(no_memory)?;
        let mut message = [0; 32];
        write_digest(&mut message[..16], user);
        for index in 0..len {
            let code = coins.codes[rank(index) as usize];
            write_digest(&mut message[16..], coins.key_digests[code as usize]);
            ranked.push((coins.pairs.hash(&message), index));
        }
        // Keys are in the order of ranks, which the index therefore stands for among equal hashes.
        ranked.select_nth_unstable(most - 1);
        kept.extend(ranked[..most].iter().map(|&(_, index)| index));
        Ok(())
    }
}

fn write_digest(bytes: &mut [u8], digest: [u64; 2]) {
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(digest) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}
