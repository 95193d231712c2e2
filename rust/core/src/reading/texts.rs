//! Texts: without blanks at the ends, in one Unicode form, and in the one spelling of what they say.

use super::{
    Spelling,
    numbers::{self, Marks},
    times,
};
use std::borrow::Cow;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// What libraries write for missing values when they write texts.
const GONE: [&[u8]; 6] = [b"", b"nan", b"NaN", b"-nan", b"-NaN", b"NaT"];

fn is_blank(character: char) -> bool {
    matches!(character,
        '\0'..=' ' | '\u{7f}' | '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}'
        | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}')
}

/// A text in the Unicode form NFC, without blanks at its ends.
pub fn bare(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc(text) {
        Cow::Borrowed(text.trim_matches(is_blank))
    } else {
        let composed: String = text.nfc().collect();
        Cow::Owned(composed.trim_matches(is_blank).to_owned())
    }
}

/// The text that bytes are, or nothing: NULs at the end are padding, and control characters make them no text.
pub fn of_bytes(bytes: &[u8]) -> Option<&str> {
    let bytes = without_padding(bytes);
    let control = bytes.iter().any(|&byte| byte < 0x20 && !b"\t\n\r".contains(&byte));
    if control { None } else { str::from_utf8(bytes).ok() }
}

/// Bytes without NULs at the end.
pub fn without_padding(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

/// Whether a bare text stands for a missing value, of every kind.
pub fn is_gone(text: &str) -> bool {
    text.len() <= 4 && GONE.contains(&text.as_bytes())
}

/// Whether a bare text says NaN, which is no number.
pub fn is_nan(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    text.eq_ignore_ascii_case("nan")
}

/// True and false in any case, as 1 and 0.
pub fn truth(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// The words for true and false that databases take.
pub fn yes_or_no(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["true", "t", "yes", "y", "on"]) {
        Some(true)
    } else if is(&["false", "f", "no", "n", "off"]) {
        Some(false)
    } else {
        None
    }
}

/// The number that a bare text says; infinite beyond doubles.
pub fn number(text: &str, marks: Marks) -> Option<f64> {
    let bytes = text.as_bytes();
    // All numbers and infinities begin with one of these.
    match bytes.first()? {
        b'0'..=b'9' | b'+' | b'-' | b'.' | b',' | b'i' | b'I' | b'\'' | b'_' => {
            numbers::with_number(bytes, marks, |usual, _| numbers::double(usual))
                .or_else(|| numbers::infinite(bytes))
        }
        b't' | b'T' | b'f' | b'F' => truth(text).map(f64::from),
        first if *first == marks.decimal => {
            numbers::with_number(bytes, marks, |usual, _| numbers::double(usual))
        }
        _ => None,
    }
}

/// Writes the one spelling of a text; false for what stands for a missing value.
pub fn write(text: &str, spelling: Spelling, marks: Marks, out: &mut Vec<u8>) -> bool {
    let bare = bare(text);
    if is_gone(&bare) {
        return false;
    }
    if spelling == Spelling::Written || !write_value(&bare, spelling, marks, out) {
        out.extend_from_slice(bare.as_bytes());
    }
    true
}

/// Writes what a bare text says, if it says a bool, a number, a time or an interval.
fn write_value(text: &str, spelling: Spelling, marks: Marks, out: &mut Vec<u8>) -> bool {
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(b't' | b'T' | b'f' | b'F') => {
            truth(text).inspect(|&truth| out.push(if truth { b'1' } else { b'0' })).is_some()
        }
        Some(b'i' | b'I') => write_infinite(bytes, out),
        Some(b'(' | b'[') => write_interval(text, spelling, marks, out),
        Some(b'0'..=b'9' | b'+' | b'-' | b'.' | b',' | b'\'' | b'_') => {
            let found = numbers::with_number(bytes, marks, |usual, number| {
                // Beyond doubles all would be one: the text stays what it is.
                let kept = spelling != Spelling::Doubles || numbers::double(usual).is_finite();
                if kept {
                    numbers::write_decimal(usual, number, spelling, out);
                }
                kept
            });
            match found {
                Some(kept) => kept,
                None => write_infinite(bytes, out) || write_time(bytes, out),
            }
        }
        _ => false,
    }
}

fn write_infinite(text: &[u8], out: &mut Vec<u8>) -> bool {
    numbers::infinite(text).inspect(|&infinite| numbers::write_double(infinite, out)).is_some()
}

fn write_time(text: &[u8], out: &mut Vec<u8>) -> bool {
    // A digit, and then the mark of a date or of a time of day.
    match (text.first(), text.get(2), text.get(4)) {
        (Some(b'0'..=b'9'), _, Some(b'-')) => {
            times::time(text).inspect(|&time| times::write_time(time, out)).is_some()
        }
        (Some(b'0'..=b'9'), Some(b':'), _) => {
            times::time_of_day(text).inspect(|&time| times::write_time_of_day(time, out)).is_some()
        }
        _ => false,
    }
}

/// Writes an interval such as `(0, 10]`, its ends in their one spelling.
fn write_interval(text: &str, spelling: Spelling, marks: Marks, out: &mut Vec<u8>) -> bool {
    let parts = || {
        let open = text.get(..1)?;
        let (close_at, close) = text.char_indices().next_back()?;
        let inside = text.get(1..close_at)?;
        if !matches!(close, ')' | ']') || inside.contains(['(', ')', '[', ']']) {
            return None;
        }
        let (low, high) = inside.split_once(',')?;
        // The spaces that Unicode and Python agree on; what is left is spelled like any text.
        let (low, high) = (low.trim_matches(is_space), high.trim_matches(is_space));
        (!low.is_empty() && !high.is_empty() && !high.contains(',')).then_some((open, low, high, close))
    };
    let Some((open, low, high, close)) = parts() else { return false };
    let start = out.len();
    out.extend_from_slice(open.as_bytes());
    let whole = write(low, spelling, marks, out) && {
        out.extend_from_slice(b", ");
        write(high, spelling, marks, out)
    };
    if whole {
        out.push(if close == ']' { b']' } else { b')' });
    } else {
        out.truncate(start);
    }
    whole
}

fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// The 32 digits of a UUID in any of its spellings.
pub fn uuid(text: &[u8]) -> Option<[u8; 32]> {
    let prefix = b"urn:uuid:";
    let text = match text.split_at_checked(prefix.len()) {
        Some((start, rest)) if start.eq_ignore_ascii_case(prefix) => rest,
        _ => text,
    };
    let text = text.strip_prefix(b"{").unwrap_or(text);
    let text = text.strip_suffix(b"}").unwrap_or(text);
    let hyphens = match text.len() {
        32 => false,
        36 => true,
        _ => return None,
    };
    let mut found = [0; 32];
    let mut places = found.iter_mut();
    for (at, byte) in text.iter().enumerate() {
        if hyphens && matches!(at, 8 | 13 | 18 | 23) {
            if *byte != b'-' {
                return None;
            }
        } else if byte.is_ascii_hexdigit() {
            *places.next()? = byte.to_ascii_lowercase();
        } else {
            return None;
        }
    }
    Some(found)
}

/// Writes bytes that are no UTF-8, but may have lone surrogates in its form: the texts between those in NFC, without
/// blanks at the ends.
pub fn write_broken(bytes: &[u8], out: &mut Vec<u8>) {
    // A lone surrogate is no part of a composed character, so that its neighbors are composed by themselves.
    let (mut rest, mut first) = (bytes, true);
    while !rest.is_empty() {
        let valid = match str::from_utf8(rest) {
            Ok(text) => text,
            Err(error) => str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
        };
        let composed: String = valid.nfc().collect();
        rest = &rest[valid.len()..];
        let (lone, after) = rest.split_at(rest.len().min(3));
        let mut kept: &str = &composed;
        if first {
            kept = kept.trim_start_matches(is_blank);
        }
        if lone.is_empty() {
            kept = kept.trim_end_matches(is_blank);
        }
        out.extend_from_slice(kept.as_bytes());
        out.extend_from_slice(lone);
        (rest, first) = (after, false);
    }
}

/// Bytes in another encoding as a text with a lone surrogate for each byte that is none of UTF-8.
pub fn with_surrogates(bytes: &[u8]) -> Vec<u8> {
    let mut found = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        found.extend_from_slice(chunk.valid().as_bytes());
        for &byte in chunk.invalid() {
            // U+DC00 and the byte, which is 0x80 or above.
            found.extend_from_slice(&[0xed, 0xb0 | (byte >> 6), 0x80 | (byte & 0x3f)]);
        }
    }
    found
}
