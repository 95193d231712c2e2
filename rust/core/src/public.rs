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
        self.hash(Kind::Block, label, &[&i.to_le_bytes(), &j.to_le_bytes()])
    }

    /// The stream of words at an address.
    pub fn words(&self, label: &str, i: u64) -> Words {
        Words(ChaCha20Rng::from_seed(self.hash(Kind::Stream, label, &[&i.to_le_bytes()])))
    }

    /// The word of an item, whatever list it stands in.
    pub fn item_word(&self, label: &str, i: u64, item: &[u8]) -> u64 {
        let hash = self.hash(Kind::Item, label, &[&i.to_le_bytes(), item]);
        u64::from_le_bytes(*hash.first_chunk().unwrap_or(&[0; 8])) // 32 bytes have a first chunk
    }

    fn hash(&self, kind: Kind, label: &str, tail: &[&[u8]]) -> [u8; 32] {
        let mut state = Hmac::<Sha256>::new(&self.padded().into());
        state.update(DOMAIN);
        state.update(&[kind as u8]);
        state.update(&(label.len() as u64).to_le_bytes());
        state.update(label.as_bytes());
        for part in tail {
            state.update(part);
        }
        state.finalize().into_bytes().into()
    }

    /// The key as HMAC pads it, to the 64 bytes of a SHA-256 block.
    fn padded(&self) -> [u8; 64] {
        let mut key = [0; 64];
        key[..32].copy_from_slice(&self.0);
        key
    }
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
