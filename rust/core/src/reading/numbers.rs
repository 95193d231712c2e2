//! Numbers in texts, and the one spelling of a number.

use super::Spelling;

/// Doubles tell whole numbers apart that are smaller than this.
pub const TOP: f64 = 9_007_199_254_740_992.0;

/// Longer exact spellings have an exponent.
const MOST_DIGITS: i128 = 40;

/// How a text writes numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Between the whole part and the rest.
    pub decimal: u8,
    /// Between groups of three digits of the whole part.
    pub thousands: Option<char>,
    /// Whether a point is a decimal mark beside another one.
    pub point: bool,
}

impl Default for Marks {
    fn default() -> Self {
        Self { decimal: b'.', thousands: None, point: true }
    }
}

impl Marks {
    fn usual(&self) -> bool {
        self.decimal == b'.' && self.thousands.is_none()
    }
}

/// A finite number as a text has it: its digits are those of the whole part and of the rest.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    negative: bool,
    whole: &'a [u8],
    rest: &'a [u8],
    exponent: i128,
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

/// The parts of a text that is `[+-]digits[.digits][e[+-]digits]` to its end; `5.` and `.5` are numbers too.
pub fn written(text: &[u8]) -> Option<Written<'_>> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (whole, text) = digits(text);
    let (rest, text) = match text {
        [b'.', text @ ..] => digits(text),
        _ => (&[][..], text),
    };
    let exponent = match text {
        [] => 0,
        [b'e' | b'E', text @ ..] => {
            let bare = match text {
                [b'+' | b'-', bare @ ..] => bare,
                _ => text,
            };
            let (found, end) = digits(bare);
            // An exponent of more than 37 digits is none that anybody has: such a text is no number.
            if found.is_empty() || !end.is_empty() || found.len() > 37 {
                return None;
            }
            str::from_utf8(text).ok()?.parse().ok()?
        }
        _ => return None,
    };
    (!whole.is_empty() || !rest.is_empty()).then_some(Written { negative, whole, rest, exponent })
}

/// The text of a number with other marks in the usual grammar, or nothing.
fn usual(text: &[u8], marks: Marks) -> Option<Vec<u8>> {
    let mut found = Vec::with_capacity(text.len());
    let (sign, mut text) = text.split_at(usize::from(matches!(text, [b'+' | b'-', ..])));
    found.extend_from_slice(sign);
    let (whole, rest) = digits(text);
    found.extend_from_slice(whole);
    text = rest;
    if let Some(mark) = marks.thousands
        && (1..=3).contains(&whole.len())
    {
        let mut bytes = [0; 4];
        let mark = mark.encode_utf8(&mut bytes).as_bytes();
        while let Some(rest) = text.strip_prefix(mark)
            && digits(rest).0.len() == 3
        {
            found.extend_from_slice(&rest[..3]);
            text = &rest[3..];
        }
    }
    if let [first, rest @ ..] = text
        && *first == marks.decimal
    {
        found.push(b'.');
        text = rest;
    } else if text.first() == Some(&b'.') {
        return None;
    }
    found.extend_from_slice(text);
    Some(found)
}

/// Calls a function with a text in the usual grammar if it says a finite number by these marks.
pub fn with_number<R>(text: &[u8], marks: Marks, then: impl FnOnce(&[u8], Written<'_>) -> R) -> Option<R> {
    if marks.usual() {
        return written(text).map(|number| then(text, number));
    }
    if marks.point
        && let Some(number) = written(text)
    {
        return Some(then(text, number));
    }
    let made = usual(text, marks)?;
    written(&made).map(|number| then(&made, number))
}

/// The double of a text that [`written`] takes; infinite beyond doubles, and never -0.
pub fn double(text: &[u8]) -> f64 {
    // The standard library's parser takes this grammar, and rounds correctly whatever the length.
    str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok()).unwrap_or(f64::NAN) + 0.0
}

/// The infinite number that a text says, in any case.
pub fn infinite(text: &[u8]) -> Option<f64> {
    let (sign, bare) = match text {
        [b'-', bare @ ..] => (-1.0, bare),
        [b'+', bare @ ..] => (1.0, bare),
        _ => (1.0, text),
    };
    (bare.eq_ignore_ascii_case(b"inf") || bare.eq_ignore_ascii_case(b"infinity"))
        .then_some(sign * f64::INFINITY)
}

/// Writes an integer.
pub fn write_integer(value: i128, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_string().as_bytes());
}

/// Writes the one spelling of a double: digits where it is whole and below 2^53, else its shortest decimal.
#[allow(clippy::cast_possible_truncation)]
pub fn write_double(x: f64, out: &mut Vec<u8>) {
    if x.is_infinite() {
        out.extend_from_slice(if x > 0.0 { b"inf" } else { b"-inf" });
    } else if x.abs() < TOP && x == x.trunc() {
        write_integer(i128::from(x as i64), out);
    } else {
        write_shortest(x, out);
    }
}

/// The shortest decimal of a double with an exponent; of two that are as near the one whose last digit is even.
fn shortest(x: f64) -> String {
    let shortest = format!("{x:e}");
    let digits = shortest.bytes().take_while(|&byte| byte != b'e').filter(u8::is_ascii_digit).count();
    // Rounded to as many digits, which breaks ties to even; where that is another double, the first is the only one.
    let rounded = format!("{x:.*e}", digits.saturating_sub(1));
    if rounded.parse() == Ok(x) { rounded } else { shortest }
}

/// Writes the shortest decimal of a double as Python's `repr` does: 0.1, 9007199254740992.0, 1e+16, 1e-07.
fn write_shortest(x: f64, out: &mut Vec<u8>) {
    let scientific = shortest(x);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("{mantissa}e{sign}{:02}", exponent.abs()).as_bytes());
        return;
    }
    if x < 0.0 {
        out.push(b'-');
    }
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let whole = usize::try_from(exponent + 1).unwrap_or(0);
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend((exponent + 1..0).map(|_| b'0'));
        out.extend_from_slice(&digits);
    } else if digits.len() > whole {
        out.extend_from_slice(&digits[..whole]);
        out.push(b'.');
        out.extend_from_slice(&digits[whole..]);
    } else {
        out.extend_from_slice(&digits);
        out.extend((digits.len()..whole).map(|_| b'0'));
        out.extend_from_slice(b".0");
    }
}

/// Writes the one spelling of an exact number: never rounded, and never expanded beyond 40 digits.
pub fn write_exact(number: Written<'_>, out: &mut Vec<u8>) {
    let all = || number.whole.iter().chain(number.rest).copied();
    let zeros = all().take_while(|&digit| digit == b'0').count();
    let length = number.whole.len() + number.rest.len();
    if zeros == length {
        out.push(b'0');
        return;
    }
    let ending = all().rev().take_while(|&digit| digit == b'0').count();
    let short: Vec<u8> = all().take(length - ending).skip(zeros).collect();
    // Lengths are below 2^63, and exponents below 10^37.
    let exponent = number.exponent - number.rest.len() as i128 + ending as i128;
    if number.negative {
        out.push(b'-');
    }
    let size = short.len() as i128;
    if exponent >= 0 && size + exponent <= MOST_DIGITS {
        out.extend_from_slice(&short);
        out.extend((0..exponent).map(|_| b'0'));
    } else if (-MOST_DIGITS..0).contains(&exponent) {
        let point = size + exponent;
        if point > 0 {
            let (whole, rest) = short.split_at(usize::try_from(point).unwrap_or_default());
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(rest);
        } else {
            out.extend_from_slice(b"0.");
            out.extend((point..0).map(|_| b'0'));
            out.extend_from_slice(&short);
        }
    } else {
        out.extend_from_slice(&short);
        out.extend_from_slice(format!("e{exponent}").as_bytes());
    }
}

/// Writes an integer by a spelling.
#[allow(clippy::cast_precision_loss)]
pub fn write_whole(value: i128, spelling: Spelling, out: &mut Vec<u8>) {
    let bound = 1_i128 << 53;
    if -bound < value && value < bound {
        write_integer(value, out);
    } else if spelling == Spelling::Doubles {
        write_double(value as f64, out);
    } else {
        let text = value.to_string();
        if let Some(number) = written(text.as_bytes()) {
            write_exact(number, out);
        }
    }
}

/// Writes a double by a spelling.
pub fn write_float(x: f64, spelling: Spelling, out: &mut Vec<u8>) {
    if spelling == Spelling::Doubles || x.is_infinite() {
        write_double(x, out);
        return;
    }
    // A whole double is an integer with all its digits, which this writes exactly.
    let text = if x == x.trunc() { format!("{x:.0}") } else { shortest(x) };
    if let Some(number) = written(text.as_bytes()) {
        write_exact(number, out);
    }
}

/// Writes an exact number in the usual grammar by a spelling.
pub fn write_decimal(text: &[u8], number: Written<'_>, spelling: Spelling, out: &mut Vec<u8>) {
    if spelling == Spelling::Doubles {
        write_double(double(text), out);
    } else {
        write_exact(number, out);
    }
}
