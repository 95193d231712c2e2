//! What a cell of a table is read as: one rule for every kind of value, and one relation for "the same person".
//!
//! A reader of files makes other cells of a cell for reasons that lie in other rows: `05` becomes 5, and 5.0 beside a
//! missing value, and "5.0" beside a text. So a rule is local, and one person's value moves nobody else's, only if it is
//! the same for all cells that readers make of one. That is why numbers are doubles, texts that say a number are that
//! number, and nothing that is read asks which of these a cell was.

pub mod column;
pub mod csv;
pub mod interned;
pub mod numbers;
pub mod objects;
pub mod texts;
pub mod times;

use numbers::Marks;
use objects::Parts;
use times::Format;

/// How the one spelling of numbers and texts is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// By the nearest doubles: what readers make of a column moves nothing.
    Doubles,
    /// With all digits: for columns whose types no value can change.
    Digits,
    /// A text is itself, and all else has all digits: for columns that were read as texts, by promise.
    Written,
}

/// Why a cell has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// There is none.
    Missing,
    /// It is of no form that the kind reads.
    Unreadable,
}

/// One cell, by what it physically is.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'a> {
    /// Nothing, in whatever way a library says that.
    Missing,
    /// Of a class that nothing reads.
    Odd,
    /// True or false.
    Bool(bool),
    /// An integer.
    Whole(i128),
    /// A double, infinite ones too; NaN is missing.
    Float(f64),
    /// An exact number as a text of the usual grammar.
    Decimal(&'a str),
    /// A text.
    Text(&'a str),
    /// A text with lone surrogates, in the form of UTF-8.
    Broken(&'a [u8]),
    /// Bytes of which nobody has said that they are a text.
    Bytes(&'a [u8]),
    /// Microseconds since 1970, in the years 1 to 9999.
    Time(i64),
    /// Microseconds of a day.
    Clock(i64),
    /// A month, a quarter or a year: its spelling, and where it begins.
    Period(&'a str, Option<i64>),
    /// A tuple, which may be an id.
    Tuple(Parts<'a>),
}

/// Whose row it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// Nobody's.
    #[default]
    Nobody,
    /// That of a person whose identity is the digits of an integer.
    Integer(i64),
    /// That of a person whose identity was written as bytes.
    Bytes,
}

/// Tuples in tuples, at most.
const MOST_DEPTH: usize = 4;

/// Parts of a tuple, at most.
pub const MOST_PARTS: usize = 64;

fn unreadable<T>(found: Option<T>) -> Result<T, Lack> {
    found.ok_or(Lack::Unreadable)
}

/// The text of a cell that is one, in its Unicode form and without blanks.
fn with_text<T>(text: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<T, Lack> {
    let bare = texts::bare(text);
    if texts::is_gone(&bare) || texts::is_nan(&bare) {
        return Err(Lack::Missing);
    }
    unreadable(read(&bare))
}

/// The number of a cell as a double, perhaps infinite, never -0.
///
/// # Errors
/// Why there is none.
#[allow(clippy::cast_precision_loss)]
pub fn number(cell: Cell<'_>, marks: Marks) -> Result<f64, Lack> {
    match cell {
        Cell::Missing => Err(Lack::Missing),
        Cell::Bool(truth) => Ok(f64::from(truth)),
        Cell::Whole(value) => Ok(value as f64),
        Cell::Float(value) => Ok(value + 0.0),
        Cell::Decimal(text) => Ok(numbers::double(text.as_bytes())),
        Cell::Text(text) => with_text(text, |bare| texts::number(bare, marks)),
        Cell::Bytes(bytes) => unreadable(texts::of_bytes(bytes))
            .and_then(|text| with_text(text, |bare| texts::number(bare, marks))),
        _ => Err(Lack::Unreadable),
    }
}

/// The whole number of a cell, saturated at 2^53.
///
/// # Errors
/// Why there is none.
#[allow(clippy::cast_possible_truncation)]
pub fn whole(cell: Cell<'_>, marks: Marks) -> Result<i64, Lack> {
    unreadable(whole_of(number(cell, marks)?))
}

/// The whole number that a double is, saturated at 2^53.
#[allow(clippy::cast_possible_truncation)]
pub fn whole_of(x: f64) -> Option<i64> {
    (x == x.trunc()).then(|| x.clamp(-numbers::TOP, numbers::TOP) as i64)
}

/// The number of a cell as a whole number from 0 to 2^64 - 1: rounded up, clamped, and with all its digits where it is
/// an integer or a text that says one.
///
/// # Errors
/// Why there is none.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn point(cell: Cell<'_>) -> Result<u64, Lack> {
    let exact = |value: i128| u64::try_from(value.max(0)).unwrap_or(u64::MAX);
    let of_text = |text: &str| {
        let bare = texts::bare(text);
        // As decimals without a part below 1 are written.
        bare.strip_suffix("e0").unwrap_or(&bare).parse().ok().map(exact)
    };
    let found = match cell {
        Cell::Whole(value) => Some(exact(value)),
        Cell::Decimal(text) | Cell::Text(text) => of_text(text),
        Cell::Bytes(bytes) => texts::of_bytes(bytes).and_then(of_text),
        _ => None,
    };
    // Casts of doubles saturate.
    found.map_or_else(|| number(cell, Marks::default()).map(|x| x.ceil() as u64), Ok)
}

/// Whether a cell says true or false.
///
/// # Errors
/// Why it does not.
pub fn boolean(cell: Cell<'_>) -> Result<bool, Lack> {
    let text = match cell {
        Cell::Text(text) => Some(text),
        Cell::Bytes(bytes) => texts::of_bytes(bytes),
        _ => None,
    };
    if let Some(truth) = text.and_then(|text| texts::yes_or_no(&texts::bare(text))) {
        return Ok(truth);
    }
    let x = number(cell, Marks::default())?;
    unreadable((x == 0.0 || x == 1.0).then_some(x == 1.0))
}

/// The microseconds of a cell since 1970, in UTC where it has an offset; by a declared format too.
///
/// # Errors
/// Why there are none.
pub fn time(cell: Cell<'_>, format: Option<&Format>) -> Result<i64, Lack> {
    let of_text = |text| {
        with_text(text, |bare| {
            let filled = format.and_then(|format| by_digits(format, texts::number(bare, Marks::default())?));
            filled.or_else(|| times::time(bare.as_bytes())).or_else(|| format?.time(bare.as_bytes()))
        })
    };
    match cell {
        Cell::Missing => Err(Lack::Missing),
        Cell::Time(time) => Ok(time),
        Cell::Period(_, time) => unreadable(time),
        Cell::Text(text) => of_text(text),
        Cell::Bytes(bytes) => unreadable(texts::of_bytes(bytes)).and_then(of_text),
        _ => {
            let x = number(cell, Marks::default());
            unreadable(format.and_then(|format| by_digits(format, x.ok()?)))
        }
    }
}

/// The time that the digits of a whole number say, with zeros in front, where a format has nothing but digits.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn by_digits(format: &Format, x: f64) -> Option<i64> {
    let width = format.width()?;
    if !(0.0..numbers::TOP).contains(&x) || x != x.trunc() {
        return None;
    }
    let digits = format!("{:0width$}", x as u64);
    (digits.len() == width).then(|| format.time(digits.as_bytes()))?
}

/// Writes the one text of a cell: for categories, keys, and what is compared with them.
///
/// # Errors
/// Why there is none; what was written then means nothing.
pub fn write_text(cell: Cell<'_>, spelling: Spelling, marks: Marks, out: &mut Vec<u8>) -> Result<(), Lack> {
    let mut of_text =
        |text: &str| if texts::write(text, spelling, marks, out) { Ok(()) } else { Err(Lack::Missing) };
    match cell {
        Cell::Missing => return Err(Lack::Missing),
        Cell::Odd | Cell::Broken(_) | Cell::Tuple(_) => return Err(Lack::Unreadable),
        Cell::Text(text) => return of_text(text),
        Cell::Bytes(bytes) => return unreadable(texts::of_bytes(bytes)).and_then(of_text),
        Cell::Bool(truth) => out.push(if truth { b'1' } else { b'0' }),
        Cell::Whole(value) => numbers::write_whole(value, spelling, out),
        Cell::Float(value) => numbers::write_float(value, spelling, out),
        Cell::Decimal(text) => {
            if let Some(number) = numbers::written(text.as_bytes()) {
                numbers::write_decimal(text.as_bytes(), number, spelling, out);
            }
        }
        Cell::Time(time) => times::write_time(time, out),
        Cell::Clock(time) => times::write_time_of_day(time, out),
        Cell::Period(text, _) => out.extend_from_slice(text.as_bytes()),
    }
    Ok(())
}

/// The integer whose digits an identity is, if it is one: the one spelling of it.
fn integer_of(identity: &[u8]) -> Option<i64> {
    let digits = identity.strip_prefix(b"-").unwrap_or(identity);
    let plain = (1..=19).contains(&digits.len())
        && digits.iter().all(u8::is_ascii_digit)
        && (digits[0] != b'0' || identity == b"0");
    if plain { str::from_utf8(identity).ok()?.parse().ok() } else { None }
}

/// Whose row it is by one cell, or by several of a row; the identity of who is no integer is written, in the form that
/// hashes take: length, tag, length, content, with the tag `s` for texts and `t` for tuples.
///
/// # Errors
/// Why it is nobody's.
pub fn owner(cells: &[(Cell<'_>, Spelling, Marks)], out: &mut Vec<u8>) -> Result<Owner, Lack> {
    if let [(cell, spelling, marks)] = cells {
        let (mut cell, mut depth) = (*cell, 0);
        // A tuple of one is its part.
        while let Cell::Tuple(parts) = cell {
            let mut held = parts.cells();
            let (Some(first), None, true) = (held.next(), held.next(), depth <= MOST_DEPTH) else {
                return write_owner(cell, *spelling, *marks, depth, out).map(|()| Owner::Bytes);
            };
            (cell, depth) = (first, depth + 1);
        }
        if depth > 0 && matches!(cell, Cell::Missing) {
            return Err(Lack::Unreadable);
        }
        // The usual ones at once: integers, and texts that are the digits of one.
        let usual = match cell {
            Cell::Whole(value) => i64::try_from(value).ok(),
            Cell::Text(text) => integer_of(text.as_bytes()),
            _ => None,
        };
        if let Some(value) =
            usual.filter(|value| value.unsigned_abs() < 1 << 53 || *spelling != Spelling::Doubles)
        {
            return Ok(Owner::Integer(value));
        }
        let start = out.len();
        write_identity(cell, *spelling, *marks, out)?;
        if let Some(value) = integer_of(&out[start..]) {
            out.truncate(start);
            return Ok(Owner::Integer(value));
        }
        tag(b's', start, out);
        return Ok(Owner::Bytes);
    }
    let start = out.len();
    for (cell, spelling, marks) in cells {
        write_owner(*cell, *spelling, *marks, 1, out)?;
    }
    tag(b't', start, out);
    Ok(Owner::Bytes)
}

/// Puts the tag and the length of what stands from a place on before it.
fn tag(kind: u8, start: usize, out: &mut Vec<u8>) {
    let (mut head, mut at, mut len) = ([0; 24], 24, out.len() - start);
    at -= 1;
    head[at] = b':';
    while {
        at -= 1;
        // A digit.
        head[at] = b'0' + u8::try_from(len % 10).unwrap_or_default();
        len /= 10;
        len > 0
    } {}
    head[at - 3..at].copy_from_slice(&[b'1', b':', kind]);
    let head = &head[at - 3..];
    let end = out.len();
    out.extend_from_slice(head);
    out.copy_within(start..end, start + head.len());
    out[start..start + head.len()].copy_from_slice(head);
}

/// Writes an identity in the form that hashes take.
fn write_owner(
    cell: Cell<'_>,
    spelling: Spelling,
    marks: Marks,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), Lack> {
    let start = out.len();
    let Cell::Tuple(parts) = cell else {
        write_identity(cell, spelling, marks, out)?;
        tag(b's', start, out);
        return Ok(());
    };
    if depth > MOST_DEPTH || !(1..=MOST_PARTS).contains(&parts.len()) {
        return Err(Lack::Unreadable);
    }
    // A part without an identity makes a person of nobody.
    for part in parts.cells() {
        write_owner(part, spelling, marks, depth + 1, out).map_err(|_| Lack::Unreadable)?;
    }
    if parts.len() > 1 {
        tag(b't', start, out);
    }
    Ok(())
}

/// Writes the identity of a cell that is no tuple: its one text, UUIDs as their digits; texts that cannot be shown and
/// packed bytes have one too.
fn write_identity(cell: Cell<'_>, spelling: Spelling, marks: Marks, out: &mut Vec<u8>) -> Result<(), Lack> {
    let start = out.len();
    match cell {
        Cell::Broken(text) => {
            texts::write_broken(text, out);
            return Ok(());
        }
        Cell::Bytes(bytes) => {
            let Some(text) = texts::of_bytes(bytes) else {
                let bytes = texts::without_padding(bytes);
                if bytes.iter().any(|&byte| byte < 0x20) {
                    out.extend_from_slice(b"bytes:");
                    out.extend(bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
                } else {
                    texts::write_broken(&texts::with_surrogates(bytes), out);
                }
                return Ok(());
            };
            write_text(Cell::Text(text), spelling, marks, out)?;
        }
        _ => write_text(cell, spelling, marks, out)?,
    }
    if spelling != Spelling::Written
        && matches!(cell, Cell::Text(_) | Cell::Bytes(_))
        && let Some(digits) = texts::uuid(&out[start..])
        && let Ok(digits) = str::from_utf8(&digits)
    {
        out.truncate(start);
        texts::write(digits, spelling, marks, out);
    }
    Ok(())
}
