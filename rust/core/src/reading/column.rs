//! Columns by what they physically are, read value by value.

use super::{
    Cell, Lack, Owner, Spelling, boolean, number,
    numbers::Marks,
    owner, point, time,
    times::{self, Format, Unit},
    whole, whole_of, write_text,
};
use crate::{Error, Result, control::Control, memory::room};
use hashbrown::HashTable;
use num_bigint::BigInt;
use rayon::prelude::*;
use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

/// Rows between two looks at the control.
const CHECK_EVERY: usize = 1 << 16;

/// Rows of texts that one thread reads at a time.
const TEXTS: usize = 1 << 17;

/// Texts of a column that are told again by all their bytes.
const KNOWN: usize = 1 << 14;

/// Rows that one thread reads at a time.
const PIECE: usize = 1 << 12;

/// Fewer rows than this are read by the calling thread.
const PARALLEL: usize = 1 << 15;

/// Of a row with a value.
pub const VALUE: u8 = 0;

/// Of a row in which there is none.
pub const MISSING: u8 = 1;

/// Of a row with something that the kind does not read.
pub const UNREADABLE: u8 = 2;

/// Where some bytes stand among all.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    start: usize,
    len: usize,
}

/// One value of a column of values of many classes.
#[derive(Clone, Copy, Debug)]
enum Held {
    Missing,
    Odd,
    Bool(bool),
    Whole(i64),
    Float(f64),
    Decimal(Span),
    Text(Span),
    Broken(Span),
    Bytes(Span),
    Time(i64),
    Clock(i64),
    /// The number of a period.
    Period(usize),
    /// So many of the parts, from a place on.
    Tuple(Span),
}

/// Values of many classes, one after the other, as foreign objects are taken apart.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    values: Vec<Held>,
    parts: Vec<Held>,
    periods: Vec<(Span, Option<i64>)>,
    bytes: Vec<u8>,
}

/// The parts of a tuple.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    objects: &'a Objects,
    span: Span,
}

impl<'a> Parts<'a> {
    /// How many there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.span.len
    }

    /// Each of them.
    pub fn cells(self) -> impl Iterator<Item = Cell<'a>> {
        let held = &self.objects.parts[self.span.start..][..self.span.len];
        held.iter().map(move |&part| self.objects.cell(part))
    }
}

/// One foreign value, taken apart, for what no [`Cell`] is made of at once.
#[derive(Clone, Debug)]
pub enum Taken {
    /// A cell without a text.
    Plain(Cell<'static>),
    /// An exact number as a text of the usual grammar.
    Decimal(String),
    /// A text.
    Text(String),
    /// A text with lone surrogates, in the form of UTF-8.
    Broken(Vec<u8>),
    /// Bytes of which nobody has said that they are a text.
    Bytes(Vec<u8>),
    /// A month, a quarter or a year: its spelling, and where it begins.
    Period(String, Option<i64>),
    /// An interval: its ends, and whether they belong to it.
    Interval(Box<(Taken, Taken)>, bool, bool),
    /// A tuple.
    Tuple(Vec<Taken>),
}

impl Objects {
    /// No values yet, and room for so many.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn with_room(count: usize) -> Result<Self> {
        Ok(Self { values: room("values", count)?, ..Self::default() })
    }

    /// Adds a cell.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn push(&mut self, cell: Cell<'_>) -> Result<()> {
        let held = self.hold_cell(cell)?;
        self.values.try_reserve(1).map_err(no_memory)?;
        self.values.push(held);
        Ok(())
    }

    /// Adds a value that was taken apart.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn push_taken(&mut self, value: &Taken) -> Result<()> {
        let held = self.hold(value)?;
        self.values.try_reserve(1).map_err(no_memory)?;
        self.values.push(held);
        Ok(())
    }

    fn hold(&mut self, value: &Taken) -> Result<Held> {
        let cell = match value {
            Taken::Plain(cell) => *cell,
            Taken::Decimal(text) => Cell::Decimal(text),
            Taken::Text(text) => Cell::Text(text),
            Taken::Broken(text) => Cell::Broken(text),
            Taken::Bytes(bytes) => Cell::Bytes(bytes),
            Taken::Period(text, time) => Cell::Period(text, *time),
            Taken::Interval(ends, with_low, with_high) => {
                // With all digits: as a text it is read by the doubles of its ends, where that is asked for.
                let mut text = vec![if *with_low { b'[' } else { b'(' }];
                let low = Self::write_end(&ends.0, &mut text)?;
                text.extend_from_slice(b", ");
                let high = Self::write_end(&ends.1, &mut text)?;
                text.push(if *with_high { b']' } else { b')' });
                return Ok(if low && high { Held::Text(self.copy(&text)?) } else { Held::Odd });
            }
            Taken::Tuple(parts) => {
                let held = parts.iter().map(|part| self.hold(part)).collect::<Result<Vec<_>>>()?;
                let span = Span { start: self.parts.len(), len: held.len() };
                self.parts.try_reserve(held.len()).map_err(no_memory)?;
                self.parts.extend(held);
                return Ok(Held::Tuple(span));
            }
        };
        self.hold_cell(cell)
    }

    fn write_end(end: &Taken, text: &mut Vec<u8>) -> Result<bool> {
        let mut alone = Self::default();
        alone.push_taken(end)?;
        let cell = alone.values.first().map_or(Cell::Missing, |&held| alone.cell(held));
        Ok(write_text(cell, Spelling::Digits, Marks::default(), text).is_ok())
    }

    fn hold_cell(&mut self, cell: Cell<'_>) -> Result<Held> {
        Ok(match cell {
            Cell::Missing => Held::Missing,
            Cell::Odd | Cell::Tuple(_) => Held::Odd,
            Cell::Bool(truth) => Held::Bool(truth),
            Cell::Whole(value) => match i64::try_from(value) {
                Ok(value) => Held::Whole(value),
                Err(_) => Held::Decimal(self.copy(value.to_string().as_bytes())?),
            },
            Cell::Float(value) if value.is_nan() => Held::Missing,
            Cell::Float(value) => Held::Float(value),
            Cell::Decimal(text) => Held::Decimal(self.copy(text.as_bytes())?),
            Cell::Text(text) => Held::Text(self.copy(text.as_bytes())?),
            Cell::Broken(text) => Held::Broken(self.copy(text)?),
            Cell::Bytes(bytes) => Held::Bytes(self.copy(bytes)?),
            Cell::Time(time) => Held::Time(time),
            Cell::Clock(time) => Held::Clock(time),
            Cell::Period(text, time) => {
                let text = self.copy(text.as_bytes())?;
                self.periods.try_reserve(1).map_err(no_memory)?;
                self.periods.push((text, time));
                Held::Period(self.periods.len() - 1)
            }
        })
    }

    fn copy(&mut self, bytes: &[u8]) -> Result<Span> {
        let span = Span { start: self.bytes.len(), len: bytes.len() };
        self.bytes.try_reserve(bytes.len()).map_err(no_memory)?;
        self.bytes.extend_from_slice(bytes);
        Ok(span)
    }

    fn at(&self, span: Span) -> &[u8] {
        &self.bytes[span.start..][..span.len]
    }

    fn text_at(&self, span: Span) -> &str {
        str::from_utf8(self.at(span)).unwrap_or_default()
    }

    fn cell(&self, held: Held) -> Cell<'_> {
        match held {
            Held::Missing => Cell::Missing,
            Held::Odd => Cell::Odd,
            Held::Bool(truth) => Cell::Bool(truth),
            Held::Whole(value) => Cell::Whole(i128::from(value)),
            Held::Float(value) => Cell::Float(value),
            Held::Decimal(text) => Cell::Decimal(self.text_at(text)),
            Held::Text(text) => Cell::Text(self.text_at(text)),
            Held::Broken(text) => Cell::Broken(self.at(text)),
            Held::Bytes(bytes) => Cell::Bytes(self.at(bytes)),
            Held::Time(time) => Cell::Time(time),
            Held::Clock(time) => Cell::Clock(time),
            Held::Period(number) => {
                let (text, time) = self.periods[number];
                Cell::Period(self.text_at(text), time)
            }
            Held::Tuple(span) => Cell::Tuple(Parts { objects: self, span }),
        }
    }
}

/// What a text is that stands between two offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text, if it is UTF-8.
    Text,
    /// Bytes of which nobody has said that they are a text.
    Bytes,
    /// An exact number, in the usual grammar.
    Number,
}

/// Values of one physical form.
#[derive(Clone, Debug)]
pub enum Values {
    /// Bools.
    Bools(Vec<bool>),
    /// Integers.
    Integers(Vec<i64>),
    /// Integers that are not negative.
    Unsigned(Vec<u64>),
    /// Doubles; NaN is missing.
    Floats(Vec<f64>),
    /// Times; the least integer is missing.
    Times(Vec<i64>, Unit),
    /// Times of day, in so many nanoseconds.
    Clocks(Vec<i64>, i64),
    /// Integers of so many bytes in little-endian order, to be divided by a power of ten.
    Decimals {
        /// All of them.
        bytes: Vec<u8>,
        /// Bytes of each.
        width: usize,
        /// The power of ten.
        scale: i32,
    },
    /// Texts, from one offset to the next.
    Texts {
        /// All of them.
        bytes: Vec<u8>,
        /// One more than there are texts.
        offsets: Vec<i64>,
        /// What they are.
        kind: Kind,
    },
    /// Values of many classes.
    Objects(Objects),
    /// Places in a list of values; negative ones are missing.
    Coded(Vec<i64>, Arc<Column>),
    /// Columns one after the other.
    Joined(Joined),
    /// So many values that nothing reads.
    Odd(usize),
}

/// Columns one after the other.
#[derive(Clone, Debug)]
pub struct Joined {
    columns: Vec<Arc<Column>>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl Joined {
    /// Columns in their order.
    pub fn new(columns: Vec<Arc<Column>>) -> Self {
        let mut end = 0;
        let ends = columns.iter().map(|column| {
            end += column.len();
            end
        });
        Self { ends: ends.collect(), columns }
    }

    /// The column that has a row, and the row's place in it.
    fn place(&self, row: usize) -> (&Column, usize) {
        let number = self.ends.partition_point(|&end| end <= row);
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        (&self.columns[number], row - start)
    }
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    values: Values,
    /// Which rows have no value, whatever stands there.
    missing: Option<Vec<bool>>,
    /// How texts write numbers.
    marks: Marks,
}

/// What each row is read as, and whether it has a value.
pub type ReadRows<T> = (Vec<T>, Vec<u8>);

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

/// Whose rows they are.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    /// Of each row.
    pub owners: Vec<Owner>,
    /// Of the rows whose owner is no integer, in their order: where the bytes end.
    pub ends: Vec<usize>,
    /// The bytes, one after the other.
    pub bytes: Vec<u8>,
    /// Whether a row has an owner.
    pub status: Vec<u8>,
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

fn no_memory<E>(_: E) -> Error {
    Error::memory("values: there is no memory for the values of a column")
}

fn status_of<T>(found: std::result::Result<T, Lack>) -> (Option<T>, u8) {
    match found {
        Ok(value) => (Some(value), VALUE),
        Err(Lack::Missing) => (None, MISSING),
        Err(Lack::Unreadable) => (None, UNREADABLE),
    }
}

impl Column {
    /// A column of values of one physical form.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if lengths or offsets do not fit.
    pub fn new(values: Values, missing: Option<Vec<bool>>, marks: Marks) -> Result<Self> {
        let wrong = |argument, message: &str| Err(Error::invalid(argument, message));
        match &values {
            Values::Texts { bytes, offsets, .. } => {
                let inside = offsets.first().is_some_and(|&first| first >= 0)
                    && offsets
                        .last()
                        .and_then(|&last| usize::try_from(last).ok())
                        .is_some_and(|last| last <= bytes.len())
                    && offsets.is_sorted();
                if !inside {
                    return wrong("offsets", "must not decrease, and be from 0 to the length of the bytes");
                }
            }
            Values::Decimals { bytes, width, .. } if *width == 0 || bytes.len() % width != 0 => {
                return wrong("width", "must divide the number of bytes");
            }
            Values::Coded(codes, of)
                if codes.iter().any(|&code| usize::try_from(code).is_ok_and(|code| code >= of.len())) =>
            {
                return wrong("codes", "must be places in the list");
            }
            _ => {}
        }
        let made = Self { values, missing, marks };
        if made.missing.as_ref().is_some_and(|missing| missing.len() != made.len()) {
            return wrong("missing", "must have as many entries as there are values");
        }
        Ok(made)
    }

    /// The same texts as exact numbers, which they must be.
    #[must_use]
    pub fn as_numbers(&self) -> Self {
        let mut made = self.clone();
        if let Values::Texts { kind, .. } = &mut made.values {
            *kind = Kind::Number;
        }
        made
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Bools(values) => values.len(),
            Values::Integers(values)
            | Values::Times(values, _)
            | Values::Clocks(values, _)
            | Values::Coded(values, _) => values.len(),
            Values::Unsigned(values) => values.len(),
            Values::Floats(values) => values.len(),
            Values::Decimals { bytes, width, .. } => bytes.len() / width,
            Values::Texts { offsets, .. } => offsets.len() - 1,
            Values::Objects(objects) => objects.values.len(),
            Values::Joined(joined) => joined.ends.last().copied().unwrap_or(0),
            Values::Odd(len) => *len,
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls a function with the cell of a row.
    fn with_cell<R>(&self, row: usize, then: impl FnOnce(Cell<'_>) -> R) -> R {
        if self.is_missing(row) {
            return then(Cell::Missing);
        }
        match &self.values {
            Values::Bools(values) => then(Cell::Bool(values[row])),
            Values::Integers(values) => then(Cell::Whole(i128::from(values[row]))),
            Values::Unsigned(values) => then(Cell::Whole(i128::from(values[row]))),
            Values::Floats(values) if values[row].is_nan() => then(Cell::Missing),
            Values::Floats(values) => then(Cell::Float(values[row])),
            Values::Times(values, _) if values[row] == i64::MIN => then(Cell::Missing),
            Values::Times(values, unit) => {
                then(times::instant(values[row], *unit).map_or(Cell::Odd, Cell::Time))
            }
            Values::Clocks(values, unit) => {
                then(times::clock(values[row], *unit).map_or(Cell::Odd, Cell::Clock))
            }
            Values::Decimals { bytes, width, scale } => {
                let unscaled = BigInt::from_signed_bytes_le(&bytes[row * width..][..*width]);
                let text = format!("{unscaled}e{}", -i64::from(*scale));
                then(Cell::Decimal(&text))
            }
            Values::Texts { bytes, offsets, kind } => {
                let place = |row: usize| usize::try_from(offsets[row]).unwrap_or_default();
                let found = &bytes[place(row)..place(row + 1)];
                match (kind, str::from_utf8(found)) {
                    (Kind::Text, Ok(text)) => then(Cell::Text(text)),
                    (Kind::Number, Ok(text)) => then(Cell::Decimal(text)),
                    _ => then(Cell::Bytes(found)),
                }
            }
            Values::Objects(objects) => then(objects.cell(objects.values[row])),
            Values::Coded(codes, of) => match usize::try_from(codes[row]) {
                Ok(code) => of.with_cell(code, then),
                Err(_) => then(Cell::Missing),
            },
            Values::Joined(joined) => {
                let (column, row) = joined.place(row);
                column.with_cell(row, then)
            }
            Values::Odd(_) => then(Cell::Odd),
        }
    }

    /// Reads all rows by one rule, in their order; each value of a list of categories once.
    fn read<T: Copy + Default>(
        &self,
        control: &Control,
        rule: &mut dyn FnMut(Cell<'_>) -> std::result::Result<T, Lack>,
    ) -> Result<ReadRows<T>> {
        let len = self.len();
        let (mut found, mut status) = (room("values", len)?, room("values", len)?);
        match &self.values {
            Values::Joined(joined) if self.missing.is_none() => {
                for column in &joined.columns {
                    let (values, lacks) = column.read(control, rule)?;
                    found.extend(values);
                    status.extend(lacks);
                }
            }
            Values::Coded(codes, of) => {
                // Each value that is used, once.
                let mut known: Vec<Option<(T, u8)>> = room("values", of.len())?;
                known.resize(of.len(), None);
                for (row, &code) in codes.iter().enumerate() {
                    if row % CHECK_EVERY == 0 {
                        control.check()?;
                    }
                    let (value, lack) = match usize::try_from(code) {
                        Ok(code) if !self.is_missing(row) => *known[code].get_or_insert_with(|| {
                            let (value, lack) = status_of(of.with_cell(code, &mut *rule));
                            (value.unwrap_or_default(), lack)
                        }),
                        _ => (T::default(), MISSING),
                    };
                    found.push(value);
                    status.push(lack);
                }
            }
            _ => {
                for row in 0..len {
                    if row % CHECK_EVERY == 0 {
                        control.check()?;
                    }
                    let (value, lack) = status_of(self.with_cell(row, &mut *rule));
                    found.push(value.unwrap_or_default());
                    status.push(lack);
                }
            }
        }
        Ok((found, status))
    }

    /// As [`Column::read`], by several threads where each cell is read by itself.
    fn read_apart<T: Copy + Default + Send>(
        &self,
        control: &Control,
        rule: &(dyn Fn(Cell<'_>) -> std::result::Result<T, Lack> + Sync),
    ) -> Result<ReadRows<T>> {
        if self.len() < PARALLEL || matches!(self.values, Values::Joined(_) | Values::Coded(..)) {
            return self.read(control, &mut |cell| rule(cell));
        }
        let (mut found, mut status) = (room("values", self.len())?, room("values", self.len())?);
        found.resize(self.len(), T::default());
        status.resize(self.len(), VALUE);
        let pieces = found.par_chunks_mut(PIECE).zip(status.par_chunks_mut(PIECE)).enumerate();
        pieces.try_for_each(|(piece, (found, status))| {
            control.check()?;
            for (at, (value, lack)) in found.iter_mut().zip(status).enumerate() {
                let (read, why) = status_of(self.with_cell(piece * PIECE + at, rule));
                (*value, *lack) = (read.unwrap_or_default(), why);
            }
            Ok(())
        })?;
        Ok((found, status))
    }

    fn is_missing(&self, row: usize) -> bool {
        self.missing.as_ref().is_some_and(|missing| missing[row])
    }

    /// Values of one machine type that need no look at each cell; those of rows without one are the default.
    fn usual<T: Copy + Default>(&self, len: usize, value: impl Fn(usize) -> Option<T>) -> ReadRows<T> {
        let lack = |row: usize, found: Option<T>| u8::from(found.is_none() || self.is_missing(row));
        let mut status = vec![VALUE; len];
        let found = (0..len).map(|row| {
            let found = value(row);
            status[row] = lack(row, found);
            if status[row] == VALUE { found.unwrap_or_default() } else { T::default() }
        });
        (found.collect(), status)
    }

    fn marks_of(&self, given: Option<Marks>) -> Marks {
        given.unwrap_or(self.marks)
    }

    /// The numbers of all rows.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::Canceled`].
    #[allow(clippy::cast_precision_loss)]
    pub fn numbers(&self, marks: Option<Marks>, control: &Control) -> Result<ReadRows<f64>> {
        let marks = self.marks_of(marks);
        Ok(match &self.values {
            Values::Integers(values) => self.usual(values.len(), |row| Some(values[row] as f64)),
            Values::Floats(values) => {
                self.usual(values.len(), |row| (!values[row].is_nan()).then_some(values[row] + 0.0))
            }
            _ => self.read_apart(control, &|cell| number(cell, marks))?,
        })
    }

    /// Whole numbers of all rows, saturated at 2^53.
    ///
    /// # Errors
    /// As [`Column::numbers`].
    pub fn wholes(&self, marks: Option<Marks>, control: &Control) -> Result<ReadRows<i64>> {
        let marks = self.marks_of(marks);
        Ok(match &self.values {
            // As doubles: those beyond 2^53 round to it or are saturated.
            Values::Integers(values) => {
                self.usual(values.len(), |row| Some(values[row].clamp(-(1 << 53), 1 << 53)))
            }
            Values::Floats(values) => {
                let (found, mut status) = self.usual(values.len(), |row| whole_of(values[row]));
                let odd = |row: usize| !self.is_missing(row) && !values[row].is_nan();
                status
                    .iter_mut()
                    .enumerate()
                    .filter(|(row, lack)| **lack == MISSING && odd(*row))
                    .for_each(|(_, lack)| *lack = UNREADABLE);
                (found, status)
            }
            _ => self.read_apart(control, &|cell| whole(cell, marks))?,
        })
    }

    /// Whole numbers from 0 to 2^64 - 1 with all their digits.
    ///
    /// # Errors
    /// As [`Column::numbers`].
    pub fn points(&self, control: &Control) -> Result<ReadRows<u64>> {
        self.read_apart(control, &point)
    }

    /// Whether each row says true.
    ///
    /// # Errors
    /// As [`Column::numbers`].
    pub fn booleans(&self, control: &Control) -> Result<ReadRows<bool>> {
        match &self.values {
            Values::Bools(values) => Ok(self.usual(values.len(), |row| Some(values[row]))),
            _ => self.read_apart(control, &boolean),
        }
    }

    /// Microseconds since 1970.
    ///
    /// # Errors
    /// As [`Column::numbers`].
    pub fn times(&self, format: Option<&Format>, control: &Control) -> Result<ReadRows<i64>> {
        match &self.values {
            Values::Times(values, unit) if format.is_none() => {
                let gone = |row: usize| self.is_missing(row) || values[row] == i64::MIN;
                let (found, mut status) = self.usual(values.len(), |row| {
                    times::instant(values[row], *unit).filter(|_| values[row] != i64::MIN)
                });
                status
                    .iter_mut()
                    .enumerate()
                    .filter(|(row, lack)| **lack == MISSING && !gone(*row))
                    .for_each(|(_, lack)| *lack = UNREADABLE);
                Ok((found, status))
            }
            _ => self.read_apart(control, &|cell| time(cell, format)),
        }
    }

    /// The integers whose digits are the identities of all rows, and which rows have one; nothing where some might have
    /// another form.
    pub fn owned_by_integers(&self, spelling: Spelling) -> Option<(&[i64], Vec<u8>)> {
        let Values::Integers(values) = &self.values else { return None };
        let exact = spelling != Spelling::Doubles;
        // Whatever stands in rows without an id would be a person.
        let plain = !self.missing.iter().flatten().any(|&missing| missing)
            && (exact || values.iter().all(|value| value.unsigned_abs() < 1 << 53));
        plain.then(|| (&values[..], vec![VALUE; values.len()]))
    }

    /// The texts of all rows, each once.
    ///
    /// # Errors
    /// As [`Column::numbers`].
    pub fn texts(&self, spelling: Spelling, marks: Option<Marks>, control: &Control) -> Result<Interned> {
        let fresh = || Interner::new(spelling, self.marks_of(marks), self.len().min(TEXTS));
        if self.len() <= TEXTS || matches!(self.values, Values::Joined(_) | Values::Coded(..)) {
            let mut own = fresh();
            let (places, status) = self.read(control, &mut |cell| own.known_place(cell))?;
            return Ok(Interned { places, status, texts: own.list });
        }
        let parts = (0..self.len().div_ceil(TEXTS)).into_par_iter().map(|part| {
            let mut own = fresh();
            let rows = part * TEXTS..self.len().min((part + 1) * TEXTS);
            let (mut places, mut status) = (room("values", rows.len())?, room("values", rows.len())?);
            for row in rows {
                if row % CHECK_EVERY == 0 {
                    control.check()?;
                }
                let (place, lack) = status_of(self.with_cell(row, |cell| own.known_place(cell)));
                places.push(place.unwrap_or_default());
                status.push(lack);
            }
            Ok((places, status, own.list))
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let mut all = fresh();
        let (mut places, mut status) = (room("values", self.len())?, room("values", self.len())?);
        for (own, lacks, list) in parts {
            // Texts that were told apart in one part are told apart in all.
            let of: Vec<u32> = list.into_iter().map(|text| all.place_of(text)).collect();
            places.extend(own.iter().map(|&place| of.get(place as usize).copied().unwrap_or_default()));
            status.extend(lacks);
        }
        Ok(Interned { places, status, texts: all.list })
    }
}

/// Texts by their places in a list.
struct Interner {
    spelling: Spelling,
    marks: Marks,
    hashing: Hashing,
    table: HashTable<u32>,
    list: Vec<String>,
    text: Vec<u8>,
    /// Texts as they stand, and what they were read as: most columns of texts have few.
    texts: Vec<Option<(Box<[u8]>, Found)>>,
    /// The same of numbers, by their bits.
    numbers: Vec<Option<(bool, u64, Found)>>,
}

/// The place of a text, or why there is none.
type Found = std::result::Result<u32, Lack>;

impl Interner {
    fn new(spelling: Spelling, marks: Marks, rows: usize) -> Self {
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
    fn known_place(&mut self, cell: Cell<'_>) -> Found {
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

    fn place_of(&mut self, text: String) -> u32 {
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

/// Whose rows they are, by one column or by several.
///
/// # Errors
/// [`Error::InvalidArgument`] for columns of several lengths; [`Error::Memory`], [`Error::Canceled`].
pub fn owners(columns: &[(&Column, Spelling)], control: &Control) -> Result<Owners> {
    let len = columns.first().map_or(0, |(column, _)| column.len());
    if columns.iter().any(|(column, _)| column.len() != len) {
        return Err(Error::invalid("columns", "must have one length"));
    }
    let mut found = Owners {
        owners: room("values", len)?,
        ends: Vec::new(),
        bytes: Vec::new(),
        status: room("values", len)?,
    };
    for row in 0..len {
        if row % CHECK_EVERY == 0 {
            control.check()?;
        }
        let start = found.bytes.len();
        let read = match columns {
            [(column, spelling)] => {
                column.with_cell(row, |cell| owner(&[(cell, *spelling, column.marks)], &mut found.bytes))
            }
            _ => owner_of_several(columns, row, &mut found.bytes),
        };
        let (owner, lack) = status_of(read);
        match owner {
            Some(Owner::Bytes) => {
                found.ends.try_reserve(1).map_err(no_memory)?;
                found.ends.push(found.bytes.len());
            }
            _ => found.bytes.truncate(start),
        }
        found.owners.push(owner.unwrap_or(Owner::Nobody));
        found.status.push(lack);
    }
    Ok(found)
}

/// The owner of a row by several columns: cells are borrowed one inside the other.
fn owner_of_several(
    columns: &[(&Column, Spelling)],
    row: usize,
    out: &mut Vec<u8>,
) -> std::result::Result<Owner, Lack> {
    fn nested(
        columns: &[(&Column, Spelling)],
        row: usize,
        cells: &mut Vec<(Cell<'_>, Spelling, Marks)>,
        out: &mut Vec<u8>,
    ) -> std::result::Result<Owner, Lack> {
        let Some(((column, spelling), rest)) = columns.split_first() else {
            return owner(cells, out);
        };
        column.with_cell(row, |cell| {
            let mut longer = cells.clone();
            longer.push((cell, *spelling, column.marks));
            nested(rest, row, &mut longer, out)
        })
    }
    nested(columns, row, &mut Vec::new(), out)
}
