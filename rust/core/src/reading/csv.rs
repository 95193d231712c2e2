//! Rows of CSV files, where a malformed line costs that line and nobody else's.
//!
//! No reader is right for all files: two stray quotes on two lines, and one cell in quotes with a line break in it, are
//! the same bytes. So a public [`Dialect`] says what a quote means, and nothing is found out from the file.
//!
//! *Recovery.* A quote that is never closed, or that something else than a separator or a line end follows, condemns
//! the line in which its row began. Reading goes on with the next line, whatever the failed row had reached.
//!
//! *Linear time.* Going back could make this quadratic: in a file of lines `x",y,"z` every line opens a quote that runs to
//! the end of the file. What follows from being inside quotes at the start of some line depends on nothing that stands
//! before that line. A failed row was inside quotes at all line starts that it passed, and the rows that are tried after
//! it begin further on; so a row that comes, inside quotes, to a line start no further than the furthest of failed rows
//! must fail too, and does so at once. Every byte is visited at most three times. Failed rows come to a line but once from
//! before it, and then either one more row fails that begins there, the end of whose first line is searched for, or the
//! line is of a row that is read.

use crate::{Error, Result, control::Control, memory::room};
use memchr::{memchr, memchr_iter, memchr2, memchr3};

/// The most columns that a row of names may have.
pub const MOST_COLUMNS: usize = 1 << 20;

/// Bytes of cells after which a batch ends.
const BATCH_BYTES: usize = 1 << 26;

/// Lines between two looks whether the work was canceled.
const CHECK_EVERY: u64 = 1 << 12;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What a double quote means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quote {
    /// Cells may be in quotes, and line ends inside them belong to the cell (RFC 4180).
    Rfc,
    /// Cells may be in quotes, and every line end ends a row.
    Line,
    /// A quote is a character like others.
    None,
}

/// The characters of a single-byte encoding, as UTF-8; a byte may stand for none.
pub type Letters = Vec<Option<Vec<u8>>>;

/// What is public of a file.
#[derive(Debug, Clone)]
pub struct Dialect {
    separator: u8,
    quote: Quote,
    escape: bool,
    missing: Vec<Vec<u8>>,
    letters: Option<Letters>,
    /// Whether bytes below 128 are the characters of ASCII.
    plain: bool,
}

impl Dialect {
    /// A dialect. With `escape` a backslash makes the next byte a character: inside quotes, and everywhere (before line
    /// ends too) where quotes mean nothing; a bare cell `\N` is missing. A cell that is one of the UTF-8 texts `missing`,
    /// blanks at its ends apart, is empty.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a separator that is a letter, a digit, a quote, a backslash, a line end or no
    /// ASCII, and for letters that are not 256 or move one of the bytes that have a meaning.
    pub fn new(
        separator: u8,
        quote: Quote,
        escape: bool,
        missing: Vec<Vec<u8>>,
        letters: Option<Letters>,
    ) -> Result<Self> {
        if !separates(separator) {
            return Err(Error::invalid("separator", "must be one ASCII character that no cell needs"));
        }
        let is_itself =
            |letters: &Letters, byte: u8| letters[usize::from(byte)].as_deref() == Some(&[byte][..]);
        let mut plain = true;
        if let Some(letters) = &letters {
            if letters.len() != 256
                || ![separator, b'"', b'\n', b'\r'].iter().all(|&byte| is_itself(letters, byte))
            {
                return Err(Error::invalid(
                    "letters",
                    "must be 256, and leave separators, quotes and line ends",
                ));
            }
            plain = (0..128).all(|byte| is_itself(letters, byte));
        }
        Ok(Self { separator, quote, escape, missing, letters, plain })
    }
}

/// Whether a byte can separate cells.
fn separates(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric() && !matches!(byte, b'"' | b'\\' | b'\n' | b'\r')
}

/// A cell of the row at hand, by its place in the file.
#[derive(Debug, Clone, Copy)]
struct Cell {
    start: usize,
    end: usize,
    quoted: bool,
    /// Whether a quote or a backslash in it stands for another character.
    escaped: bool,
}

/// The cells of one column, one after another: cell i is `content[offsets[i]..offsets[i + 1]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// Their bytes.
    pub content: Vec<u8>,
    /// One more than there are cells.
    pub offsets: Vec<i64>,
}

/// Where rows and lines that are none stand, by the numbers of lines from 1 on.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Lines {
    /// The first line of each row.
    pub rows: Vec<u64>,
    /// How many cells each row has.
    pub cells: Vec<u64>,
    /// Lines with a quote that is not closed as it should be.
    pub malformed: Vec<u64>,
    /// First lines of rows with more cells than names.
    pub long: Vec<u64>,
}

/// Some rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// For each column that was asked for.
    pub columns: Vec<Texts>,
    /// How many there are; 0 at the end of the file.
    pub rows: usize,
    /// How many lines were left out since the last batch, as malformed and as too long.
    pub left_out: (u64, u64),
    /// Their numbers, if asked for.
    pub lines: Lines,
}

/// What a line turned out to be.
enum Found {
    /// A row of so many cells, and where the next line begins.
    Row(usize, usize),
    /// A row with further cells that are not empty, and where the next line begins.
    Long(usize),
    /// Its quotes are wrong; where the next line begins.
    Malformed(usize),
}

/// A place in a file, and what is known of what follows. All calls must be given the bytes of the same file.
#[derive(Debug)]
pub struct Reader {
    dialect: Dialect,
    width: usize,
    position: usize,
    /// The furthest line start at which a row that failed was inside quotes.
    failed: usize,
    /// The number of the line at `position`, if lines are counted.
    line: u64,
    steps: u64,
    cells: Vec<Cell>,
    scratch: Vec<u8>,
}

impl Reader {
    /// A reader of a file without a row of names, whose rows have `width` cells.
    pub fn without_names(dialect: Dialect, width: usize, bytes: &[u8]) -> Self {
        let position = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        Self {
            dialect,
            width,
            position,
            failed: 0,
            line: 1,
            steps: 0,
            cells: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// A reader that stands behind the row of names, and the names, neither stripped nor checked. A first line such as
    /// `sep=;` is no row and says the separator. Empty and bare cells at the end of the row are no names.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there is no row of names; [`Error::Memory`].
    pub fn with_names(dialect: Dialect, bytes: &[u8]) -> Result<(Self, Vec<Vec<u8>>)> {
        let mut reader = Self::without_names(dialect, MOST_COLUMNS, bytes);
        reader.read_separator(bytes);
        reader.skip_empty_lines(bytes, true);
        let next = match reader.line_at(bytes)? {
            Found::Row(_, next) => next,
            Found::Long(_) => return Err(Error::invalid("names", "there are more than 2^20 columns")),
            Found::Malformed(_) => {
                return Err(Error::invalid(
                    "names",
                    "a quote in the row of column names is not closed as it should be",
                ));
            }
        };
        while reader.cells.last().is_some_and(|cell| !cell.quoted && cell.start == cell.end) {
            reader.cells.pop();
        }
        if reader.cells.is_empty() {
            return Err(Error::invalid("names", "there is no row of column names"));
        }
        let mut names = room("names", reader.cells.len())?;
        for place in 0..reader.cells.len() {
            let mut name = Vec::new();
            reader.write(bytes, place, false, &mut name)?;
            names.push(name);
        }
        reader.width = names.len();
        reader.go_to(bytes, next);
        Ok((reader, names))
    }

    /// The separator, which the file may have said.
    pub fn separator(&self) -> u8 {
        self.dialect.separator
    }

    /// How many bytes were visited up to now, each as often as it was.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The next rows, at most `most_rows` of them, with the cells of some columns. Cells that a row does not have are
    /// empty.
    ///
    /// # Errors
    /// [`Error::Memory`], after which the reader is to be thrown away; [`Error::Canceled`].
    pub fn batch(
        &mut self,
        bytes: &[u8],
        columns: &[usize],
        most_rows: usize,
        number_lines: bool,
        control: &Control,
    ) -> Result<Batch> {
        // A row takes a byte at least.
        let most_rows = most_rows.min(bytes.len().saturating_sub(self.position));
        let mut batch = Batch {
            columns: room("columns", columns.len())?,
            rows: 0,
            left_out: (0, 0),
            lines: Lines::default(),
        };
        for _ in columns {
            let mut offsets = room("offsets", most_rows.saturating_add(1))?;
            offsets.push(0);
            batch.columns.push(Texts { content: Vec::new(), offsets });
        }
        let (mut size, mut lines) = (0, 0);
        while batch.rows < most_rows && size < BATCH_BYTES {
            if lines % CHECK_EVERY == 0 {
                control.check()?;
            }
            lines += 1;
            self.skip_empty_lines(bytes, number_lines);
            if self.position >= bytes.len() {
                break;
            }
            let next = match self.line_at(bytes)? {
                Found::Malformed(next) => {
                    batch.left_out.0 += 1;
                    if number_lines {
                        push(&mut batch.lines.malformed, self.line)?;
                    }
                    next
                }
                Found::Long(next) => {
                    batch.left_out.1 += 1;
                    if number_lines {
                        push(&mut batch.lines.long, self.line)?;
                    }
                    next
                }
                Found::Row(count, next) => {
                    batch.rows += 1;
                    if number_lines {
                        push(&mut batch.lines.rows, self.line)?;
                        push(&mut batch.lines.cells, count as u64)?;
                    }
                    for (&column, texts) in columns.iter().zip(&mut batch.columns) {
                        let before = texts.content.len();
                        if column < self.cells.len() {
                            self.write(bytes, column, true, &mut texts.content)?;
                        }
                        size += texts.content.len() - before;
                        // A Vec has at most i64::MAX bytes.
                        texts.offsets.push(i64::try_from(texts.content.len()).unwrap_or(i64::MAX));
                    }
                    next
                }
            };
            if number_lines {
                self.go_to(bytes, next);
            } else {
                self.position = next;
            }
        }
        Ok(batch)
    }

    /// Goes on to a place, counting lines.
    fn go_to(&mut self, bytes: &[u8], next: usize) {
        let passed = &bytes[self.position.min(bytes.len())..next.min(bytes.len())];
        self.line += memchr_iter(b'\n', passed).count() as u64;
        self.position = next;
    }

    /// Reads a first line that says the separator.
    fn read_separator(&mut self, bytes: &[u8]) {
        let rest = &bytes[self.position..];
        let end = line_end(rest, 0);
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        if let Some(&[separator]) = line.strip_prefix(b"sep=")
            && separates(separator)
        {
            self.dialect.separator = separator;
            self.go_to(bytes, self.position + end + 1);
        }
    }

    /// Goes to the next line that has a character.
    fn skip_empty_lines(&mut self, bytes: &[u8], counted: bool) {
        loop {
            let passed = match bytes.get(self.position..) {
                Some([b'\n', ..] | [b'\r']) => 1,
                Some([b'\r', b'\n', ..]) => 2,
                _ => return,
            };
            self.steps += 1;
            self.position += passed;
            self.line += u64::from(counted);
        }
    }

    /// Reads the row that begins at this place, and leaves its first `width` cells behind.
    fn line_at(&mut self, bytes: &[u8]) -> Result<Found> {
        let start = self.position;
        self.cells.clear();
        let (mut at, mut count, mut more) = (start, 0, false);
        // The furthest line start inside quotes.
        let mut inside = 0;
        loop {
            let (cell, end) = if self.dialect.quote != Quote::None && bytes.get(at) == Some(&b'"') {
                if let Some(found) = self.quoted(bytes, at + 1, &mut inside) {
                    found
                } else {
                    self.failed = self.failed.max(inside);
                    let next = line_end(bytes, start) + 1;
                    self.steps += (next - start) as u64;
                    return Ok(Found::Malformed(next));
                }
            } else {
                self.bare(bytes, at)
            };
            self.steps += (end - at + 1) as u64;
            if count < self.width {
                push(&mut self.cells, cell)?;
            } else {
                more |= cell.quoted || cell.start < cell.end;
            }
            count += 1;
            at = end + 1;
            if bytes.get(end) != Some(&self.dialect.separator) {
                return Ok(if more { Found::Long(at) } else { Found::Row(count, at) });
            }
        }
    }

    /// A cell without quotes around it, and where its separator or line feed stands.
    fn bare(&self, bytes: &[u8], start: usize) -> (Cell, usize) {
        let separator = self.dialect.separator;
        let escapes = self.dialect.escape && self.dialect.quote == Quote::None;
        // What a backslash makes a character ends before this place.
        let mut free = start;
        let end = loop {
            let rest = &bytes[free.min(bytes.len())..];
            let found = if escapes {
                memchr3(separator, b'\n', b'\\', rest)
            } else {
                memchr2(separator, b'\n', rest)
            };
            let Some(length) = found else { break bytes.len() };
            let at = free + length;
            if bytes[at] != b'\\' || !escapes {
                break at;
            }
            free = match bytes.get(at + 1..) {
                // A line end of two characters is made one of the cell as a whole.
                Some([b'\r', b'\n', ..]) => at + 3,
                Some([_, ..]) => at + 2,
                _ => at + 1,
            };
        };
        let of_line_end = bytes.get(end) != Some(&separator) && end > free && bytes[end - 1] == b'\r';
        let cell = Cell { start, end: end - usize::from(of_line_end), quoted: false, escaped: free > start };
        (cell, end)
    }

    /// A cell whose text begins behind a quote, and where its separator or line feed stands; nothing if the quotes are
    /// wrong.
    fn quoted(&mut self, bytes: &[u8], start: usize, inside: &mut usize) -> Option<(Cell, usize)> {
        let (rfc, escape) = (self.dialect.quote == Quote::Rfc, self.dialect.escape);
        let (mut at, mut escaped) = (start, false);
        let mut fail = |at: usize| {
            self.steps += (at - start) as u64;
            None
        };
        loop {
            let rest = &bytes[at.min(bytes.len())..];
            let found = if escape { memchr3(b'"', b'\n', b'\\', rest) } else { memchr2(b'"', b'\n', rest) };
            let Some(length) = found else { return fail(bytes.len()) };
            at += length;
            let mut byte = bytes[at];
            if byte == b'\\' {
                escaped = true;
                at += 1;
                byte = *bytes.get(at).unwrap_or(&b'\\');
                if byte != b'\n' {
                    at += 1;
                    continue;
                }
            }
            if byte == b'\n' {
                at += 1;
                if !rfc || at <= self.failed {
                    return fail(at);
                }
                *inside = at;
                continue;
            }
            match bytes.get(at + 1..).unwrap_or_default() {
                [b'"', ..] => {
                    escaped = true;
                    at += 2;
                }
                [] | [b'\n', ..] => return Some((Cell { start, end: at, quoted: true, escaped }, at + 1)),
                [b'\r'] | [b'\r', b'\n', ..] => {
                    return Some((Cell { start, end: at, quoted: true, escaped }, at + 2));
                }
                [next, ..] if *next == self.dialect.separator => {
                    return Some((Cell { start, end: at, quoted: true, escaped }, at + 1));
                }
                _ => return fail(at),
            }
        }
    }

    /// Adds the text of a cell to others.
    fn write(&mut self, bytes: &[u8], place: usize, may_be_missing: bool, texts: &mut Vec<u8>) -> Result<()> {
        let Cell { start, end, quoted, escaped } = self.cells[place];
        let mut raw = &bytes[start..end];
        if self.dialect.escape && !quoted && raw == b"\\N" {
            return Ok(());
        }
        if escaped {
            self.scratch.clear();
            unescape(raw, quoted, self.dialect.escape, &mut self.scratch)?;
            raw = &self.scratch;
        }
        let before = texts.len();
        match &self.dialect.letters {
            Some(letters) if !(self.dialect.plain && raw.is_ascii()) => decode(raw, letters, texts)?,
            _ => extend(texts, raw)?,
        }
        if may_be_missing && !self.dialect.missing.is_empty() {
            // What is no UTF-8 is none of the texts.
            let word =
                std::str::from_utf8(&texts[before..]).map(|text| text.trim_matches(is_blank).as_bytes());
            if word.is_ok_and(|word| self.dialect.missing.iter().any(|one| one == word)) {
                texts.truncate(before);
            }
        }
        Ok(())
    }
}

/// Where the line feed behind a place stands, or the end.
fn line_end(bytes: &[u8], from: usize) -> usize {
    memchr(b'\n', &bytes[from..]).map_or(bytes.len(), |length| from + length)
}

/// Whether a character at an end of a cell says nothing.
fn is_blank(character: char) -> bool {
    character.is_whitespace() || character <= ' ' || matches!(character, '\u{7f}' | '\u{feff}')
}

/// Adds an item, if there is memory.
fn push<T>(list: &mut Vec<T>, item: T) -> Result<()> {
    if list.len() == list.capacity() {
        list.try_reserve(1).map_err(|_| no_memory())?;
    }
    list.push(item);
    Ok(())
}

/// Adds bytes, if there is memory.
fn extend(list: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    list.try_reserve(bytes.len()).map_err(|_| no_memory())?;
    list.extend_from_slice(bytes);
    Ok(())
}

fn no_memory() -> Error {
    Error::memory("there is no memory for a batch of cells")
}

/// Adds the text that is meant: of two quotes one, and of a backslash and what follows that alone.
fn unescape(raw: &[u8], quoted: bool, escape: bool, text: &mut Vec<u8>) -> Result<()> {
    text.try_reserve(raw.len()).map_err(|_| no_memory())?;
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        let stands_for_next = (byte == b'"' && quoted) || (byte == b'\\' && escape);
        at += usize::from(stands_for_next && at + 1 < raw.len());
        text.push(raw[at]);
        at += 1;
    }
    Ok(())
}

/// Adds a text in a single-byte encoding as UTF-8; as it is, if a byte of it stands for no character.
fn decode(raw: &[u8], letters: &Letters, text: &mut Vec<u8>) -> Result<()> {
    if raw.iter().any(|&byte| letters[usize::from(byte)].is_none()) {
        return extend(text, raw);
    }
    for letter in raw.iter().filter_map(|&byte| letters[usize::from(byte)].as_deref()) {
        extend(text, letter)?;
    }
    Ok(())
}
