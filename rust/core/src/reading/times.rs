//! Times: microseconds since 1970, in texts, and by a declared format.

use super::{numbers, texts};

/// Microseconds of a day.
pub const DAY: i64 = 86_400_000_000;

/// Of the first instant of the year 1.
pub const FIRST: i64 = -62_135_596_800_000_000;

/// Behind the last instant of the year 9999.
pub const LAST: i64 = 253_402_300_800_000_000;

/// What one step of a time's integer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// So many nanoseconds.
    Nanoseconds(i64),
    /// So many months.
    Months(i64),
    /// So many milliseconds, of which only the day counts.
    DayOfMilliseconds,
    /// None that can be told to the microsecond.
    Unknown,
}

/// The days since 1970 of a date of the proleptic Gregorian calendar, by counting from the first of March.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// Year, month and day of the days since 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let years = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (years + era * 400 + i64::from(month <= 2), month, day)
}

/// The days of a date that exists in the years 1 to 9999.
fn checked_days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    ((1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=last).contains(&day))
        .then(|| days_of(year, month, day))
}

fn in_range(time: i128) -> Option<i64> {
    i64::try_from(time).ok().filter(|time| (FIRST..LAST).contains(time))
}

/// A time by its integer, cut down to microseconds; none beyond the years 1 to 9999.
pub fn instant(value: i64, unit: Unit) -> Option<i64> {
    match unit {
        Unit::Nanoseconds(1) => in_range(i128::from(value.div_euclid(1000))),
        Unit::Nanoseconds(each) => match value.checked_mul(each / 1000) {
            Some(time) if each % 1000 == 0 => Some(time).filter(|time| (FIRST..LAST).contains(time)),
            _ => in_range((i128::from(value) * i128::from(each)).div_euclid(1000)),
        },
        Unit::Months(each) => {
            let months = i128::from(value) * i128::from(each);
            let year = i64::try_from(1970 + months.div_euclid(12)).ok()?;
            let month = i64::try_from(months.rem_euclid(12)).ok()?;
            (1..=9999).contains(&year).then(|| days_of(year, month + 1, 1) * DAY)
        }
        Unit::DayOfMilliseconds => in_range(i128::from(value.div_euclid(86_400_000)) * i128::from(DAY)),
        Unit::Unknown => None,
    }
}

/// A time of day in microseconds by its integer, below a day.
pub fn clock(value: i64, nanoseconds: i64) -> Option<i64> {
    let time = (i128::from(value) * i128::from(nanoseconds)).div_euclid(1000);
    i64::try_from(time).ok().filter(|time| value >= 0 && (0..DAY).contains(time))
}

fn write_clock(time: i64, out: &mut Vec<u8>) {
    let (seconds, rest) = (time / 1_000_000, time % 1_000_000);
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    out.extend_from_slice(text.as_bytes());
    if rest > 0 {
        out.extend_from_slice(format!(".{rest:06}").trim_end_matches('0').as_bytes());
    }
}

/// Writes a time of day.
pub fn write_time_of_day(time: i64, out: &mut Vec<u8>) {
    write_clock(time, out);
}

/// Writes a time: a date at midnight, else a date and a time of day.
pub fn write_time(time: i64, out: &mut Vec<u8>) {
    let (year, month, day) = date_of(time.div_euclid(DAY));
    out.extend_from_slice(format!("{year:04}-{month:02}-{day:02}").as_bytes());
    let rest = time.rem_euclid(DAY);
    if rest > 0 {
        out.push(b' ');
        write_clock(rest, out);
    }
}

/// The number of the first so many digits, and what follows.
fn field(text: &[u8], width: usize) -> Option<(i64, &[u8])> {
    let (found, rest) = text.split_at_checked(width)?;
    found.iter().all(u8::is_ascii_digit).then(|| (value_of(found), rest))
}

/// The number of at most 18 digits.
fn value_of(found: &[u8]) -> i64 {
    found.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
}

/// Microseconds of the digits after a decimal mark, and what follows; there is at least one.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (found, rest) = text.split_at(count);
    let mut six = [b'0'; 6];
    six.iter_mut().zip(found).for_each(|(place, digit)| *place = *digit);
    (count > 0).then(|| (value_of(&six), rest))
}

/// `HH[:MM[:SS[.digits]]]` at the start of a text, in microseconds, and what follows.
fn hours(text: &[u8], comma: bool) -> Option<(i64, usize, &[u8])> {
    let (hour, mut rest) = field(text, 2)?;
    let (mut minute, mut second, mut part, mut fields) = (0, 0, 0, 1);
    if let [b':', after @ ..] = rest {
        (minute, rest) = field(after, 2)?;
        fields = 2;
        if let [b':', after @ ..] = rest {
            (second, rest) = field(after, 2)?;
            fields = 3;
            if let [mark, after @ ..] = rest
                && (*mark == b'.' || (comma && *mark == b','))
            {
                (part, rest) = fraction(after)?;
            }
        }
    }
    (hour < 24 && minute < 60 && second < 60)
        .then(|| (((hour * 60 + minute) * 60 + second) * 1_000_000 + part, fields, rest))
}

/// The microseconds of a text `HH:MM[:SS[.digits]]`.
pub fn time_of_day(text: &[u8]) -> Option<i64> {
    let (time, fields, rest) = hours(text, false)?;
    (fields > 1 && rest.is_empty()).then_some(time)
}

/// Microseconds of `±HH[[:]MM[[:]SS]]`, to the end of a text.
fn offset(text: &[u8]) -> Option<i64> {
    let (sign, mut rest) = match text {
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hour, after) = field(rest, 2)?;
    rest = after;
    let mut parts = [0; 2];
    for part in &mut parts {
        if rest.is_empty() {
            break;
        }
        (*part, rest) = field(rest.strip_prefix(b":").unwrap_or(rest), 2)?;
    }
    (rest.is_empty() && hour < 24 && parts[0] < 60 && parts[1] < 60)
        .then(|| sign * ((hour * 60 + parts[0]) * 60 + parts[1]) * 1_000_000)
}

fn zone(text: &[u8]) -> Option<i64> {
    match text {
        b"Z" | b"z" | b"UTC" | b"GMT" => Some(0),
        _ => offset(text),
    }
}

/// The microseconds of an ISO text, in UTC where it has an offset.
pub fn time(text: &[u8]) -> Option<i64> {
    let (year, rest) = field(text, 4)?;
    let (month, rest) = field(rest.strip_prefix(b"-")?, 2)?;
    let (day, rest) = field(rest.strip_prefix(b"-")?, 2)?;
    let days = checked_days(year, month, day)?;
    let (mut clock, mut shift) = (0, 0);
    if let [b'T' | b't' | b' ', rest @ ..] = rest {
        let (found, _, after) = hours(rest, true)?;
        clock = found;
        let after = after.strip_prefix(b" ").filter(|after| !after.is_empty()).unwrap_or(after);
        if !after.is_empty() {
            shift = zone(after)?;
        }
    } else if !rest.is_empty() {
        return None;
    }
    in_range(i128::from(days * DAY + clock - shift))
}

/// One part of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A directive: one of Y y m d H M S f z.
    Field(u8),
    /// A byte that stands for itself.
    Literal(u8),
}

/// A declared form of times in texts, such as `%m/%d/%Y`.
#[derive(Clone, Debug)]
pub struct Format {
    parts: Vec<Part>,
    /// The number of digits, where texts are nothing but digits: numbers are filled with zeros to it.
    width: Option<usize>,
}

impl Format {
    /// A format by its text.
    ///
    /// # Errors
    /// In words, for directives that there are not, formats without a year, and such as could be read in two ways: their
    /// texts say numbers, or other times in ISO form.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            parts.push(match byte {
                b'%' => match bytes.next() {
                    Some(b'%') => Part::Literal(b'%'),
                    Some(field) if b"YymdHMSfz".contains(&field) => Part::Field(field),
                    _ => {
                        return Err(
                            "its directives are %Y %y %m %d %H %M %S %f %z, and %% for a percent sign".into(),
                        );
                    }
                },
                _ => Part::Literal(byte),
            });
        }
        let count = |name: u8| parts.iter().filter(|&&part| part == Part::Field(name)).count();
        if b"YymdHMSfz".iter().any(|&name| count(name) > 1) || count(b'Y') + count(b'y') != 1 {
            return Err("it needs one year, %Y or %y, and each directive once at most".into());
        }
        if count(b'd') > count(b'm')
            || count(b'M') > count(b'H')
            || count(b'S') > count(b'M')
            || count(b'f') > count(b'S')
        {
            return Err("%d needs %m, %M needs %H, %S needs %M, and %f needs %S".into());
        }
        let mut width = Some(0);
        for part in &parts {
            width = match (*part, width) {
                (Part::Field(b'Y'), Some(width)) => Some(width + 4),
                (Part::Field(b'f' | b'z') | Part::Literal(_), _) | (_, None) => None,
                (_, Some(width)) => Some(width + 2),
            };
        }
        let made = Self { parts, width };
        let (sample, wanted) = made.sample();
        if texts::bare(&sample) != sample {
            return Err(
                "its texts begin or end with blanks, which are stripped, or are not in the Unicode form NFC"
                    .into(),
            );
        }
        if made.width.is_none() && numbers::written(sample.as_bytes()).is_some() {
            return Err("its texts say numbers, which readers change: 2024.10 becomes 2024.1".into());
        }
        if time(sample.as_bytes()).is_some_and(|found| found != wanted)
            || time_of_day(sample.as_bytes()).is_some()
        {
            return Err("its texts are ISO times with another meaning, which readers make times of".into());
        }
        Ok(made)
    }

    /// A time as this format writes it, and what it is.
    fn sample(&self) -> (String, i64) {
        let has = |name: u8| self.parts.contains(&Part::Field(name));
        let pick = |name: u8, value: i64, other: i64| if has(name) { value } else { other };
        let mut text = Vec::new();
        for part in &self.parts {
            match part {
                Part::Literal(byte) => text.push(*byte),
                Part::Field(field) => text.extend_from_slice(match field {
                    b'Y' => b"2003",
                    b'y' => b"03",
                    b'm' => b"02",
                    b'd' => b"01",
                    b'H' => b"04",
                    b'M' => b"05",
                    b'S' => b"06",
                    b'f' => b"070000",
                    _ => b"+0000",
                }),
            }
        }
        // Literals are the bytes of a text, in its order.
        let text = String::from_utf8(text).unwrap_or_default();
        let days = days_of(2003, pick(b'm', 2, 1), 1);
        let clock = (pick(b'H', 4, 0) * 60 + pick(b'M', 5, 0)) * 60 + pick(b'S', 6, 0);
        (text, days * DAY + clock * 1_000_000 + pick(b'f', 70_000, 0))
    }

    /// The number of digits that numbers are filled to, where texts are nothing but digits.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// The microseconds of a text in this format.
    pub fn time(&self, text: &[u8]) -> Option<i64> {
        let (mut year, mut month, mut day, mut clock, mut shift) = (0, 1, 1, 0, 0);
        let mut rest = text;
        for (place, part) in self.parts.iter().enumerate() {
            let field_name = match part {
                Part::Literal(byte) => {
                    rest = rest.strip_prefix(&[*byte])?;
                    continue;
                }
                Part::Field(name) => *name,
            };
            if field_name == b'z' {
                let length = rest
                    .iter()
                    .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-:".contains(byte))
                    .count();
                let (found, after) = rest.split_at(length);
                shift = zone(found)?;
                rest = after;
                continue;
            }
            if field_name == b'f' {
                let (part, after) = fraction(rest)?;
                clock += part;
                rest = after;
                continue;
            }
            let most = if field_name == b'Y' { 4 } else { 2 };
            // A field may be short only where a mark or the end tells where it ends.
            let beside = matches!(self.parts.get(place + 1), Some(Part::Field(_)));
            let least = if beside || field_name == b'Y' || field_name == b'y' { most } else { 1 };
            let count = rest.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
            let (value, after) = (count >= least).then(|| field(rest, count))??;
            rest = after;
            match field_name {
                b'Y' => year = value,
                // As POSIX has it.
                b'y' => year = value + if value < 69 { 2000 } else { 1900 },
                b'm' => month = value,
                b'd' => day = value,
                b'H' if value < 24 => clock += value * 3_600_000_000,
                b'M' if value < 60 => clock += value * 60_000_000,
                b'S' if value < 60 => clock += value * 1_000_000,
                _ => return None,
            }
        }
        let days = checked_days(year, month, day)?;
        rest.is_empty().then(|| in_range(i128::from(days * DAY + clock - shift)))?
    }
}
