//! Public randomness: bits that everybody who holds a seed finds at the same address.
//!
//! A seed is published before data are read, so nothing here is secret and nothing here protects anybody: noise comes
//! from [`crate::rng`]. Bits are found by an address, a label and numbers, never by the position in a stream that other
//! draws move: what one user draws cannot depend on how much another one drew.
//!
//! # Derivation
//! `hash(kind, label, tail) = HMAC-SHA256(key = seed, "userdp/public/1" | kind | le64(|label|) | label | tail)`, where
//! `kind` is one byte, `le64` a little-endian integer of 64 bits and `|x|` the length in bytes. No two addresses give
//! the same message.
//!
//! * a block of 32 bytes: `hash(0, label, le64(i) | le64(j))`
//! * word x of stream i: bytes 8x, ..., 8x + 7, as a little-endian integer, of the `ChaCha20` key stream (RFC 8439 up to
//!   2^32 blocks; a 64-bit block counter from 0 and a zero nonce) whose key is `hash(1, label, le64(i))`
//! * the word of an item: the first 8 bytes, as a little-endian integer, of `hash(2, label, le64(i) | item)`

use chacha20::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

const DOMAIN: &[u8] = b"userdp/public/1";
const WORDS_IN_BLOCK: u64 = 8;

/// 32 public bytes that address public random bits.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PublicSeed([u8; 32]);

impl fmt::Debug for PublicSeed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicSeed({:02x?})", self.0)
    }
}

/// The kinds of addresses.
#[derive(Clone, Copy)]
enum Kind {
    Block = 0,
    Stream = 1,
    Item = 2,
}

impl PublicSeed {
    /// The seed of these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The block of 32 bytes at an address.
    pub fn block(&self, label: &str, i: u64, j: u64) -> [u8; 32] {
        self.hash(Kind::Block, label, &[i.to_le_bytes(), j.to_le_bytes()].concat())
    }

    /// The stream of words at an address.
    pub fn words(&self, label: &str, i: u64) -> Words {
        Words(ChaCha20Rng::from_seed(self.hash(Kind::Stream, label, &i.to_le_bytes())))
    }

    /// The words of items at an address, whatever list they stand in.
    pub fn items(&self, label: &str, i: u64) -> Items {
        Items(self.hashing(Kind::Item, label).chain_update(i.to_le_bytes()))
    }

    fn hash(&self, kind: Kind, label: &str, tail: &[u8]) -> [u8; 32] {
        self.hashing(kind, label).chain_update(tail).finalize().into_bytes().into()
    }

    fn hashing(&self, kind: Kind, label: &str) -> Hmac<Sha256> {
        // HMAC itself pads keys with zeros to the 64 bytes of a SHA-256 block.
        let mut key = [0; 64];
        key[..32].copy_from_slice(&self.0);
        Hmac::new(&key.into())
            .chain_update(DOMAIN)
            .chain_update([kind as u8])
            .chain_update((label.len() as u64).to_le_bytes())
            .chain_update(label.as_bytes())
    }
}

/// The words of items by their bytes.
#[derive(Clone)]
pub struct Items(Hmac<Sha256>);

impl fmt::Debug for Items {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Items(..)")
    }
}

impl Items {
    /// The word of an item.
    pub fn word(&self, item: &[u8]) -> u64 {
        let hash = self.0.clone().chain_update(item).finalize().into_bytes();
        hash.iter().take(8).rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }
}

/// A uniform integer below `bound` from a uniform word; `None` for the few words that would make some likelier.
///
/// # Numerics
/// word * bound = 2^64 q + r with q < bound. For each q, r runs through the numbers below 2^64 of one residue class modulo
/// `bound`, which are as many for every q once those below 2^64 mod `bound` are left out.
#[allow(clippy::cast_possible_truncation)]
pub fn below(word: u64, bound: u64) -> Option<u64> {
    let product = u128::from(word) * u128::from(bound);
    let (low, high) = (product as u64, (product >> 64) as u64);
    (low >= bound.wrapping_neg() % bound).then_some(high)
}

/// A stream of 64-bit words by index.
pub struct Words(ChaCha20Rng);

impl fmt::Debug for Words {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Words(..)")
    }
}

impl Words {
    /// The words from index `start` on, through a buffer of as many bytes.
    ///
    /// # Panics
    /// When `start` is not a multiple of 8, or the buffer has not 8 bytes for every word.
    pub fn read(&mut self, start: u64, bytes: &mut [u8], words: &mut [u64]) {
        assert!(start.is_multiple_of(WORDS_IN_BLOCK) && bytes.len() == 8 * words.len());
        self.0.set_block_pos(start / WORDS_IN_BLOCK);
        self.0.fill_bytes(bytes);
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
    }
}
