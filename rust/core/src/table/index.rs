//! Values by exact codes, and keyed digests of them.

use crate::{
    Error, Result,
    control::Control,
    memory::room,
    reading::{Owner, column::Owners},
};
use hashbrown::HashTable;
use rayon::prelude::*;
use siphasher::sip128::SipHasher24 as Sip128;
use std::{
    cmp::Ordering,
    fmt,
    hash::{BuildHasher, RandomState},
};

/// The length of a key of hashes, in bytes: half for digests of values, half for pairs of digests.
pub const KEY_BYTES: usize = 32;

/// Values between two looks at the control.
const CHECK_EVERY: usize = 1 << 16;

/// Fewer values than this are looked up by the calling thread. The binding hands calls of half as many to its pool.
const PARALLEL: usize = 1 << 15;

/// Values looked up by one thread at a time.
const PIECE: usize = 1 << 12;

/// The code of a value that is not there yet: no code is as large.
const MISSING: u32 = u32::MAX;

/// Bytes in front of a text, which are its length.
const LENGTH: usize = size_of::<u64>();

/// Keyed digests of values: SipHash-2-4 of 128 bits, of a byte for the kind and the bytes of the value.
///
/// An integer is a zero byte and its 8 bytes in little-endian order, a text a one byte and its own bytes.
#[derive(Clone)]
pub struct Digester(Sip128);

/// A key of hashes in its two halves.
pub(super) fn halves(key: &[u8; KEY_BYTES]) -> ([u8; 16], [u8; 16]) {
    let (mut first, mut second) = ([0; 16], [0; 16]);
    first.copy_from_slice(&key[..16]);
    second.copy_from_slice(&key[16..]);
    (first, second)
}

impl fmt::Debug for Digester {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Digester(..)")
    }
}

impl Digester {
    /// Digests by the first half of a key.
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self(Sip128::new_with_key(&halves(key).0))
    }

    /// Of an integer.
    pub fn integer(&self, value: i64) -> [u64; 2] {
        let mut bytes = [0; 9];
        bytes[1..].copy_from_slice(&value.to_le_bytes());
        self.digest(&bytes)
    }

    /// Of a text.
    pub fn text(&self, value: &[u8]) -> [u64; 2] {
        use std::hash::Hasher;
        let mut hasher = self.0;
        hasher.write(&[1]);
        hasher.write(value);
        let digest = siphasher::sip128::Hasher128::finish128(&hasher);
        [digest.h1, digest.h2]
    }

    fn digest(&self, bytes: &[u8]) -> [u64; 2] {
        let digest = self.0.hash(bytes);
        [digest.h1, digest.h2]
    }
}

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
    integers: HashTable<Entry>,
    texts: HashTable<Entry>,
    hashing: Hashing,
}

/// A value of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value<'a> {
    /// An integer.
    Integer(i64),
    /// A text, by its bytes.
    Text(&'a [u8]),
}

/// A value in a table of hashes.
#[derive(Clone, Copy)]
struct Entry {
    hash: u32,
    code: u32,
}

impl Entry {
    /// Where tables look for it: both ends of the word count.
    fn place(self) -> u64 {
        u64::from(self.hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// Hashes by keys of their own for every index: nobody can choose values that collide, which would only take longer.
struct Hashing {
    texts: RandomState,
    integers: [u64; 2],
}

impl Default for Hashing {
    fn default() -> Self {
        let texts = RandomState::new();
        let integers = [texts.hash_one(0_u8), texts.hash_one(1_u8) | 1];
        Self { texts, integers }
    }
}

#[allow(clippy::cast_possible_truncation)]
impl Hashing {
    fn integer(&self, word: u64) -> u32 {
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        let [a, b] = self.integers;
        (fold(fold(word ^ a, b), a | 1) >> 32) as u32
    }

    fn text(&self, text: &[u8]) -> u32 {
        (self.texts.hash_one(text) >> 32) as u32
    }
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
        self.codes(
            values.len(),
            |index, number| index.find_integer(values[number].cast_unsigned()),
            |index, number| index.add_integer(values[number].cast_unsigned()),
            control,
        )
    }

    /// The codes of `len` texts, given by their bytes; new ones get the next codes.
    ///
    /// # Errors
    /// As [`TableIndex::integers`].
    pub fn texts<'a>(
        &mut self,
        len: usize,
        text: impl Fn(usize) -> &'a [u8] + Sync,
        control: &Control,
    ) -> Result<Vec<u32>> {
        self.codes(
            len,
            |index, number| index.find_text(text(number)),
            |index, number| index.add_text(text(number)),
            control,
        )
    }

    /// The codes of rows' owners; that of a row of nobody means nothing.
    ///
    /// # Errors
    /// As [`TableIndex::integers`].
    pub fn owners(&mut self, owners: &Owners, control: &Control) -> Result<Vec<u32>> {
        let integers: Vec<i64> = owners
            .owners
            .iter()
            .filter_map(|owner| if let Owner::Integer(value) = owner { Some(*value) } else { None })
            .collect();
        let integers = self.integers(&integers, control)?;
        let start = |number: usize| if number == 0 { 0 } else { owners.ends[number - 1] };
        let text = |number: usize| &owners.bytes[start(number)..owners.ends[number]];
        let texts = self.texts(owners.ends.len(), text, control)?;
        let (mut integers, mut texts) = (integers.into_iter(), texts.into_iter());
        Ok(owners
            .owners
            .iter()
            .map(|owner| match owner {
                Owner::Integer(_) => integers.next(),
                Owner::Bytes => texts.next(),
                Owner::Nobody => None,
            })
            .map(Option::unwrap_or_default)
            .collect())
    }

    /// The value of a code below [`TableIndex::len`].
    pub fn value(&self, code: usize) -> Value<'_> {
        let word = self.words[code];
        if self.kinds[code / 64] >> (code % 64) & 1 == 1 {
            Value::Text(text_at(&self.bytes, word))
        } else {
            Value::Integer(word.cast_signed())
        }
    }

    /// The rank of each code's value among all: integers by size, then texts by their bytes.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn ranks(&self) -> Result<Vec<u32>> {
        let mut order: Vec<u32> = room("values", self.len())?;
        // There are fewer than 2^32 codes.
        order.extend((0..u32::MAX).take(self.words.len()));
        order.par_sort_unstable_by_key(|&code| self.value(code as usize));
        let mut ranks = room("values", self.len())?;
        ranks.resize(self.len(), 0);
        for (rank, &code) in (0..).zip(&order) {
            ranks[code as usize] = rank;
        }
        Ok(ranks)
    }

    /// The codes of values by number: what is there already is found in parallel, and what is new is added in order.
    fn codes(
        &mut self,
        len: usize,
        find: impl Fn(&Self, usize) -> Option<u32> + Sync,
        add: impl Fn(&mut Self, usize) -> Result<u32>,
        control: &Control,
    ) -> Result<Vec<u32>> {
        let mut codes = room("values", len)?;
        codes.resize(len, MISSING);
        for (chunk, codes) in codes.chunks_mut(CHECK_EVERY).enumerate() {
            control.check()?;
            if len >= PARALLEL {
                let index = &*self;
                codes.par_chunks_mut(PIECE).enumerate().for_each(|(piece, codes)| {
                    for (number, code) in (chunk * CHECK_EVERY + piece * PIECE..).zip(codes) {
                        *code = find(index, number).unwrap_or(MISSING);
                    }
                });
            }
            for (number, code) in (chunk * CHECK_EVERY..).zip(codes) {
                if *code == MISSING {
                    // It may have come earlier in this chunk.
                    *code = find(self, number).map_or_else(|| add(self, number), Ok)?;
                }
            }
        }
        Ok(codes)
    }

    fn find_integer(&self, word: u64) -> Option<u32> {
        let entry = Entry { hash: self.hashing.integer(word), code: MISSING };
        let same = |other: &Entry| other.hash == entry.hash && self.words[other.code as usize] == word;
        self.integers.find(entry.place(), same).map(|found| found.code)
    }

    fn find_text(&self, text: &[u8]) -> Option<u32> {
        let entry = Entry { hash: self.hashing.text(text), code: MISSING };
        let same = |other: &Entry| {
            other.hash == entry.hash && text_at(&self.bytes, self.words[other.code as usize]) == text
        };
        self.texts.find(entry.place(), same).map(|found| found.code)
    }

    /// Adds an integer that is not there.
    fn add_integer(&mut self, word: u64) -> Result<u32> {
        let entry = Entry { hash: self.hashing.integer(word), code: self.next_code(false)? };
        self.integers.try_reserve(1, |entry| entry.place()).map_err(no_memory)?;
        self.integers.insert_unique(entry.place(), entry, |entry| entry.place());
        self.words.push(word);
        Ok(entry.code)
    }

    /// Adds a text that is not there.
    fn add_text(&mut self, text: &[u8]) -> Result<u32> {
        let entry = Entry { hash: self.hashing.text(text), code: self.next_code(true)? };
        self.bytes.try_reserve(LENGTH + text.len()).map_err(no_memory)?;
        self.texts.try_reserve(1, |entry| entry.place()).map_err(no_memory)?;
        self.texts.insert_unique(entry.place(), entry, |entry| entry.place());
        self.words.push(self.bytes.len() as u64);
        self.bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(text);
        Ok(entry.code)
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

    /// The canonical order of the values with two codes: integers first, then texts by their bytes.
    pub fn compare(&self, code: u32, other: u32) -> Ordering {
        let value = |code: u32| ((code as usize) < self.len()).then(|| self.value(code as usize));
        value(code).cmp(&value(other))
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
