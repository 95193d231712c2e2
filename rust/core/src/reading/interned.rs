//! Texts by their places in a list.

use super::{Cell, Lack, Spelling, numbers::Marks, write_text};
use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};

/// Texts of a column that are told again by all their bytes.
const KNOWN: usize = 1 << 14;

/// Texts by their places in a list.
#[derive(Clone, Debug, Default)]
pub struct Interned {
    /// The place of each row's text; 0 where there is none.
    pub places: Vec<u32>,
    /// Whether a row has a text.
    pub status: Vec<u8>,
    /// The texts, in the order in which they came.
    pub texts: Vec<String>,
}

/// Both halves of a product.
#[allow(clippy::cast_possible_truncation)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Hashes by keys of their own for every column: nobody can choose texts that collide, which would only take longer.
struct Hashing([u64; 2]);

impl Default for Hashing {
    fn default() -> Self {
        let keys = RandomState::new();
        Self([keys.hash_one(0_u8), keys.hash_one(1_u8) | 1])
    }
}

impl Hashing {
    /// Of a number's bits.
    fn word(&self, word: u64) -> u64 {
        let Self([first, second]) = *self;
        fold(word ^ first, second)
    }

    /// Of a text.
    fn hash(&self, text: &[u8]) -> u64 {
        let Self([first, second]) = *self;
        let (words, rest) = text.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let start = fold(text.len() as u64 ^ first, second);
        let mixed = words.iter().fold(start, |mixed, word| fold(mixed ^ u64::from_le_bytes(*word), second));
        fold(mixed ^ u64::from_le_bytes(last), first | 1)
    }
}

/// Texts by their places in a list.
pub(super) struct Interner {
    spelling: Spelling,
    marks: Marks,
    hashing: Hashing,
    table: HashTable<u32>,
    pub(super) list: Vec<String>,
    text: Vec<u8>,
    /// Texts as they stand, and what they were read as: most columns of texts have few.
    texts: Vec<Option<(Box<[u8]>, Found)>>,
    /// The same of numbers, by their bits.
    numbers: Vec<Option<(bool, u64, Found)>>,
}

/// The place of a text, or why there is none.
pub(super) type Found = Result<u32, Lack>;

impl Interner {
    pub(super) fn new(spelling: Spelling, marks: Marks, rows: usize) -> Self {
        let slots = (4 * rows).next_power_of_two().min(KNOWN);
        Self {
            spelling,
            marks,
            hashing: Hashing::default(),
            table: HashTable::new(),
            list: Vec::new(),
            text: Vec::new(),
            texts: vec![None; slots],
            numbers: vec![None; slots],
        }
    }

    /// The place of a cell's text, remembered where the cell stood before.
    pub(super) fn known_place(&mut self, cell: Cell<'_>) -> Found {
        // The number of slots is a power of two: the last bits count.
        let slot = |hash: u64, slots: usize| usize::try_from(hash).unwrap_or_default() & (slots - 1);
        let (float, bits) = match cell {
            Cell::Text(raw) => {
                let slot = slot(self.hashing.hash(raw.as_bytes()), self.texts.len());
                return match &self.texts[slot] {
                    Some((same, found)) if **same == *raw.as_bytes() => *found,
                    Some(_) => self.place(cell),
                    None => {
                        let found = self.place(cell);
                        self.texts[slot] = Some((raw.as_bytes().into(), found));
                        found
                    }
                };
            }
            Cell::Float(value) => (true, value.to_bits()),
            Cell::Whole(value) if let Ok(value) = i64::try_from(value) => (false, value.cast_unsigned()),
            _ => return self.place(cell),
        };
        let slot = slot(self.hashing.word(bits), self.numbers.len());
        match self.numbers[slot] {
            Some((kind, same, found)) if (kind, same) == (float, bits) => found,
            known => {
                let found = self.place(cell);
                if known.is_none() {
                    self.numbers[slot] = Some((float, bits, found));
                }
                found
            }
        }
    }

    fn place(&mut self, cell: Cell<'_>) -> Found {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let found = write_text(cell, self.spelling, self.marks, &mut text).and_then(|()| self.find(&text));
        self.text = text;
        found
    }

    fn find(&mut self, text: &[u8]) -> Found {
        let list = &self.list;
        let hash = self.hashing.hash(text);
        if let Some(&place) = self.table.find(hash, |&place| list[place as usize].as_bytes() == text) {
            return Ok(place);
        }
        // What is written is UTF-8: spellings are ASCII, and texts were texts.
        let text = str::from_utf8(text).map_err(|_| Lack::Unreadable)?;
        self.add(hash, text.to_owned()).ok_or(Lack::Unreadable)
    }

    pub(super) fn place_of(&mut self, text: String) -> u32 {
        let list = &self.list;
        let hash = self.hashing.hash(text.as_bytes());
        let same = |&place: &u32| list[place as usize] == text;
        // There are fewer texts than rows of a batch.
        self.table.find(hash, same).copied().or_else(|| self.add(hash, text)).unwrap_or_default()
    }

    fn add(&mut self, hash: u64, text: String) -> Option<u32> {
        let place = u32::try_from(self.list.len()).ok()?;
        self.list.push(text);
        let (list, hashing) = (&self.list, &self.hashing);
        self.table.insert_unique(hash, place, |&place| hashing.hash(list[place as usize].as_bytes()));
        Some(place)
    }
}
