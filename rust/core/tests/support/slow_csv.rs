//! A reader of CSV that steps from character to character, in quadratic time: what the core's must agree with.

use userdp_core::reading::csv::Quote;

/// A cell of the slow reader: its text, and whether anything stands there.
type Slow = (Vec<u8>, bool);

/// The cells of the row that begins at a place, and where the next one begins; nothing where quotes are wrong.
fn slow_row(bytes: &[u8], start: usize, quote: Quote, escape: bool) -> Option<(Vec<Slow>, usize)> {
    let at = |place: usize| bytes.get(place).copied();
    let ends = |place: usize| match (at(place), at(place + 1)) {
        (None, _) => Some(place),
        (Some(b'\n'), _) | (Some(b'\r'), None) => Some(place + 1),
        (Some(b'\r'), Some(b'\n')) => Some(place + 2),
        _ => None,
    };
    let (mut cells, mut place) = (Vec::new(), start);
    loop {
        let mut text = Vec::new();
        let quoted = quote != Quote::None && at(place) == Some(b'"');
        let mut something = quoted;
        if quoted {
            place += 1;
            loop {
                match at(place)? {
                    b'"' if at(place + 1) == Some(b'"') => place += 1,
                    b'"' => break,
                    b'\\' if escape => place += 1,
                    _ => {}
                }
                let character = at(place)?;
                if character == b'\n' && quote == Quote::Line {
                    return None;
                }
                text.push(character);
                place += 1;
            }
            place += 1;
        } else {
            let from = place;
            while at(place) != Some(b',') && ends(place).is_none() {
                if at(place) == Some(b'\\') && escape && quote == Quote::None && place + 1 < bytes.len() {
                    place += 1;
                    if at(place) == Some(b'\r') && at(place + 1) == Some(b'\n') {
                        text.push(b'\r');
                        place += 1;
                    }
                }
                text.push(bytes[place]);
                place += 1;
            }
            if escape && &bytes[from..place] == b"\\N" {
                text.clear();
            }
            something = from < place;
        }
        cells.push((text, something));
        if let Some(next) = ends(place) {
            return Some((cells, next));
        }
        if at(place) != Some(b',') {
            return None;
        }
        place += 1;
    }
}

/// The rows of a file without names, and the lines that are left out, in quadratic time.
pub(crate) fn slow(bytes: &[u8], quote: Quote, escape: bool, width: usize) -> (Vec<Vec<Vec<u8>>>, Vec<u64>) {
    let (mut rows, mut out, mut start) = (Vec::new(), Vec::new(), 0);
    while start < bytes.len() {
        let line = bytes[..start].split(|&byte| byte == b'\n').count() as u64;
        let next_line = bytes[start..]
            .iter()
            .position(|&byte| byte == b'\n')
            .map_or(bytes.len(), |length| start + length + 1);
        if matches!(&bytes[start..next_line], b"\n" | b"\r\n") || &bytes[start..] == b"\r" {
            start = next_line;
            continue;
        }
        let Some((cells, next)) = slow_row(bytes, start, quote, escape) else {
            out.push(line);
            start = next_line;
            continue;
        };
        start = next;
        if cells.iter().skip(width).any(|(_, something)| *something) {
            out.push(line);
            continue;
        }
        let texts = cells.into_iter().map(|(text, _)| text).chain(std::iter::repeat(Vec::new()));
        rows.push(texts.take(width).collect());
    }
    (rows, out)
}
