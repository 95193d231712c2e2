//! Columns by what they physically are, read value by value.

use super::{
    Cell, Lack, Owner, Spelling, boolean,
    interned::{Interned, Interner},
    number,
    numbers::Marks,
    objects::Objects,
    owner, point, time,
    times::{self, Format, Unit},
    whole, whole_of,
};
use crate::{Error, Result, control::Control, memory::room};
use num_bigint::BigInt;
use rayon::prelude::*;
use std::sync::Arc;

/// Rows between two looks at the control.
const CHECK_EVERY: usize = 1 << 16;

/// Rows of texts that one thread reads at a time.
const TEXTS: usize = 1 << 17;

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

pub(super) fn no_memory<E>(_: E) -> Error {
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
