//! Values of many classes in one column, as foreign objects are taken apart.

use super::{Cell, Spelling, column::no_memory, numbers::Marks, write_text};
use crate::{Result, memory::room};

/// Where some bytes stand among all.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    start: usize,
    len: usize,
}

/// One value of a column of values of many classes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Held {
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
    pub(super) values: Vec<Held>,
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
    /// [`Error::Memory`](crate::Error::Memory).
    pub fn with_room(count: usize) -> Result<Self> {
        Ok(Self { values: room("values", count)?, ..Self::default() })
    }

    /// Adds a cell.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub fn push(&mut self, cell: Cell<'_>) -> Result<()> {
        let held = self.hold_cell(cell)?;
        self.values.try_reserve(1).map_err(no_memory)?;
        self.values.push(held);
        Ok(())
    }

    /// Adds a value that was taken apart.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
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

    pub(super) fn cell(&self, held: Held) -> Cell<'_> {
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
