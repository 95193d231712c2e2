//! Values by exact codes.

use super::choice::Digester;
use crate::{Error, Result, control::Control, memory::room};
use hashbrown::HashTable;
use std::{
    fmt,
    hash::{BuildHasher, RandomState},
};

/// Values between two looks at the control.
const CHECK_EVERY: usize = 1 << 16;

/// Bytes in front of a text, which are its length.
const LENGTH: usize = size_of::<u64>();

/// Distinct values, integers and texts, by the codes 0, 1, ... in the order in which they first came.
///
/// Equal values have equal codes and others have others: values are compared, not hashes. Texts are equal when all
/// their bytes are, and no text equals an integer. Codes depend on the order of rows, so no result may depend on codes.
#[derive(Default)]
pub struct TableIndex {
    /// Of every code an integer, or the place of a text.
    words: Vec<u64>,
    /// Whether the value of a code is a text, one bit each.
    kinds: Vec<u64>,
    /// All texts, each behind its length.
    bytes: Vec<u8>,
    integers: HashTable<u32>,
    texts: HashTable<u32>,
    /// A key of its own for every index: nobody can choose values that collide.
    hashing: RandomState,
}

impl fmt::Debug for TableIndex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TableIndex(..)")
    }
}

/// The text at a place.
fn text_at(bytes: &[u8], place: u64) -> &[u8] {
    // Places are of texts that were put there, whose lengths were usize.
    let start = usize::try_from(place).unwrap_or(usize::MAX);
    bytes
        .get(start..)
        .and_then(|rest| rest.split_first_chunk::<LENGTH>())
        .and_then(|(length, rest)| rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?))
        .unwrap_or_default()
}

fn no_memory<E>(_: E) -> Error {
    Error::memory("values: there is no memory for more distinct values")
}

impl TableIndex {
    /// An index without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of distinct values.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The codes of integers; new ones get the next codes.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more than 2^32 - 1 distinct values, [`Error::Memory`], [`Error::Canceled`]. The values so
    /// far keep their codes.
    pub fn integers(&mut self, values: &[i64], control: &Control) -> Result<Vec<u32>> {
        let mut codes = room("values", values.len())?;
        for chunk in values.chunks(CHECK_EVERY) {
            control.check()?;
            for &value in chunk {
                let word = value.cast_unsigned();
                let hash = self.hashing.hash_one(word);
                let found = self.integers.find(hash, |&code| self.words[code as usize] == word).copied();
                codes.push(found.map_or_else(|| self.new_integer(word, hash), Ok)?);
            }
        }
        Ok(codes)
    }

    /// The codes of texts, given by their bytes; new ones get the next codes.
    ///
    /// # Errors
    /// As [`TableIndex::integers`].
    pub fn texts<'a>(
        &mut self,
        values: impl ExactSizeIterator<Item = &'a [u8]>,
        control: &Control,
    ) -> Result<Vec<u32>> {
        let mut codes = room("values", values.len())?;
        for (number, text) in values.enumerate() {
            if number.is_multiple_of(CHECK_EVERY) {
                control.check()?;
            }
            let hash = self.hashing.hash_one(text);
            let (words, bytes) = (&self.words, &self.bytes);
            let found = self.texts.find(hash, |&code| text_at(bytes, words[code as usize]) == text);
            codes.push(found.copied().map_or_else(|| self.new_text(text, hash), Ok)?);
        }
        Ok(codes)
    }

    fn new_integer(&mut self, word: u64, hash: u64) -> Result<u32> {
        let code = self.next_code(false)?;
        let (words, hashing) = (&self.words, &self.hashing);
        let rehash = |&code: &u32| hashing.hash_one(words[code as usize]);
        self.integers.try_reserve(1, rehash).map_err(no_memory)?;
        self.integers.insert_unique(hash, code, rehash);
        self.words.push(word);
        Ok(code)
    }

    fn new_text(&mut self, text: &[u8], hash: u64) -> Result<u32> {
        let code = self.next_code(true)?;
        self.bytes.try_reserve(LENGTH + text.len()).map_err(no_memory)?;
        let place = self.bytes.len() as u64;
        let (words, bytes, hashing) = (&self.words, &self.bytes, &self.hashing);
        let rehash = |&code: &u32| hashing.hash_one(text_at(bytes, words[code as usize]));
        self.texts.try_reserve(1, rehash).map_err(no_memory)?;
        self.texts.insert_unique(hash, code, rehash);
        self.words.push(place);
        self.bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(text);
        Ok(code)
    }

    /// The code of a value that is about to be added, with room for it.
    fn next_code(&mut self, text: bool) -> Result<u32> {
        let code = self.words.len();
        let code = match u32::try_from(code) {
            Ok(code) if code < u32::MAX => code,
            _ => return Err(Error::too_large("values: at most 2^32 - 1 distinct values are taken")),
        };
        self.words.try_reserve(1).map_err(no_memory)?;
        let (word, bit) = (code as usize / 64, code % 64);
        if word == self.kinds.len() {
            self.kinds.try_reserve(1).map_err(no_memory)?;
            self.kinds.push(0);
        }
        // An earlier attempt at this code may have failed after it was marked.
        self.kinds[word] = self.kinds[word] & !(1 << bit) | u64::from(text) << bit;
        Ok(code)
    }

    /// The keyed digest of the value with a code; `None` for a code that no value has.
    ///
    /// The digest is of the kind and the bytes of the value, so it does not depend on the code.
    pub fn digest(&self, code: u32, digester: &Digester) -> Option<[u64; 2]> {
        let code = code as usize;
        let word = *self.words.get(code)?;
        Some(if self.kinds[code / 64] >> (code % 64) & 1 == 1 {
            digester.text(text_at(&self.bytes, word))
        } else {
            digester.integer(word.cast_signed())
        })
    }

    /// The keyed digests of all values, in the order of codes.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::Canceled`].
    pub fn digests(&self, digester: &Digester, control: &Control) -> Result<Vec<[u64; 2]>> {
        let mut digests = room("values", self.len())?;
        // There are fewer than 2^32 values.
        for code in (0..u32::MAX).take(self.len()) {
            if (code as usize).is_multiple_of(CHECK_EVERY) {
                control.check()?;
            }
            digests.extend(self.digest(code, digester));
        }
        Ok(digests)
    }
}
