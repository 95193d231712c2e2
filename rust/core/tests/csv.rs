//! Rows of CSV files: a slow reader that steps from character to character, hostile files, and the bytes visited.

#[path = "support/slow_csv.rs"]
mod slow_csv;

use proptest::prelude::*;
use slow_csv::slow;
use userdp_core::{
    Error,
    control::Control,
    reading::csv::{Batch, Dialect, Quote, Reader},
};

const QUOTES: [Quote; 3] = [Quote::Rfc, Quote::Line, Quote::None];

fn dialect(quote: Quote, escape: bool) -> Dialect {
    Dialect::new(b',', quote, escape, Vec::new(), None).expect("a dialect")
}

/// The rows of a file without names, and the steps taken, in batches of so many rows.
fn rows_of(
    bytes: &[u8],
    dialect: Dialect,
    width: usize,
    at_a_time: usize,
) -> (Vec<Vec<Vec<u8>>>, Vec<u64>, u64) {
    let mut reader = Reader::without_names(dialect, width, bytes);
    let (mut rows, mut out) = (Vec::new(), Vec::new());
    let columns: Vec<usize> = (0..width).collect();
    loop {
        let batch = reader.batch(bytes, &columns, at_a_time, true, &Control::new()).expect("memory");
        out.extend(batch.lines.malformed.iter().chain(&batch.lines.long));
        assert_eq!(
            batch.left_out.0 + batch.left_out.1,
            (batch.lines.malformed.len() + batch.lines.long.len()) as u64
        );
        if batch.rows == 0 {
            break;
        }
        rows.extend((0..batch.rows).map(|row| (0..width).map(|column| cell(&batch, column, row)).collect()));
    }
    out.sort_unstable();
    (rows, out, reader.steps())
}

fn cell(batch: &Batch, column: usize, row: usize) -> Vec<u8> {
    let texts = &batch.columns[column];
    let place = |number: usize| usize::try_from(texts.offsets[number]).expect("a place");
    texts.content[place(row)..place(row + 1)].to_vec()
}

fn check(bytes: &[u8], width: usize) {
    for quote in QUOTES {
        for escape in [false, true] {
            let (wanted, wanted_out) = slow(bytes, quote, escape, width);
            for at_a_time in [1, 1 << 20] {
                let (rows, out, steps) = rows_of(bytes, dialect(quote, escape), width, at_a_time);
                assert_eq!((&rows, &out), (&wanted, &wanted_out), "{bytes:?} {quote:?} {escape}");
                assert!(steps <= 4 * bytes.len() as u64 + 4, "{steps} steps in {bytes:?} {quote:?} {escape}");
            }
        }
    }
}

const ALPHABET: &[u8] = b"a,\"\n\r\\ \0";

#[test]
fn every_file_of_five_characters_is_read_as_by_the_slow_reader() {
    for length in 0..=5_u32 {
        for number in 0..ALPHABET.len().pow(length) {
            let bytes: Vec<u8> = (0..length)
                .map(|place| ALPHABET[number / ALPHABET.len().pow(place) % ALPHABET.len()])
                .collect();
            check(&bytes, 2);
        }
    }
}

/// Pieces of lines, of which files are drawn that often have quotes that cross lines.
const PIECES: [&str; 12] = ["a", ",", "\"", "\"\"", "\n", "\r\n", "\r", "\\", "\\N", ",\"", "\",", "\0"];

proptest! {
    // USERDP_CSV_CASES=1000000 cargo test --release --test csv for a long run.
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("USERDP_CSV_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2000)
    ))]

    #[test]
    fn drawn_files_are_read_as_by_the_slow_reader(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..60),
        width in 1..4_usize,
    ) {
        check(pieces.concat().as_bytes(), width);
    }

    #[test]
    fn repeated_patterns_take_linear_time(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 1..8),
        ends in prop::sample::select(&["", "\"", "\"\n", "\"x"][..]),
    ) {
        let bytes = [pieces.concat().repeat(400), ends.to_owned()].concat().into_bytes();
        for quote in QUOTES {
            for escape in [false, true] {
                let (_, _, steps) = rows_of(&bytes, dialect(quote, escape), 3, 1 << 20);
                prop_assert!(steps <= 4 * bytes.len() as u64 + 4, "{} steps in {} bytes", steps, bytes.len());
            }
        }
    }
}

#[test]
fn a_million_lines_that_each_open_a_quote_take_linear_time() {
    for line in ["x\",y,\"z\n", "\"x\",y,\"z\n", "u,\"a\n", "\"\n", "\"\"\",\"\n", ",\"\\\n"] {
        let bytes = line.repeat(1_000_000).into_bytes();
        for escape in [false, true] {
            let (_, _, steps) = rows_of(&bytes, dialect(Quote::Rfc, escape), 3, 1 << 20);
            assert!(steps <= 4 * bytes.len() as u64, "{line:?}: {steps} steps in {} bytes", bytes.len());
        }
    }
}

/// What is read of a file in one dialect, as texts.
fn texts(file: &str, quote: Quote, escape: bool) -> Vec<Vec<String>> {
    let (rows, ..) = rows_of(file.as_bytes(), dialect(quote, escape), 2, 1 << 20);
    rows.into_iter()
        .map(|row| row.into_iter().map(|text| String::from_utf8(text).expect("UTF-8")).collect())
        .collect()
}

#[test]
fn a_backslash_acts_inside_quotes_alone_or_everywhere() {
    // What Spark writes bare is a character; the separator and the line end after it stay what they are.
    assert_eq!(texts("a\\,1\nb,\\\nc,3\n", Quote::Rfc, true), [["a\\", "1"], ["b", "\\"], ["c", "3"]]);
    assert_eq!(texts("\"a\\\",\\\\\",1\n\\N,\"\\N\"\n", Quote::Rfc, true), [["a\",\\", "1"], ["", "N"]]);
    // MySQL's files.
    assert_eq!(texts("a\\,b,1\\\n2\nc\\\r\nd,\\N\n", Quote::None, true), [["a,b", "1\n2"], ["c\r\nd", ""]]);
    assert_eq!(texts("\\\\N,\\Nx\na,b\\", Quote::None, true), [["\\N", "Nx"], ["a", "b\\"]]);
    // Without it a backslash is a character.
    assert_eq!(texts("\"a\\\",\\N\n", Quote::Rfc, false), [["a\\", "\\N"]]);
}

#[test]
fn names_are_the_first_row() {
    let names = |file: &str| Reader::with_names(dialect(Quote::Rfc, false), file.as_bytes());
    let (mut reader, found) =
        names("\u{feff}sep=;\r\n\r\nid;\"a \"\"b\"\"\";;\r\n1;2;;\r\n1;2;3\r\n").expect("names");
    assert_eq!((reader.separator(), found), (b';', vec![b"id".to_vec(), b"a \"b\"".to_vec()]));
    let file = "\u{feff}sep=;\r\n\r\nid;\"a \"\"b\"\"\";;\r\n1;2;;\r\n1;2;3\r\n".as_bytes();
    let batch = reader.batch(file, &[1], 10, true, &Control::new()).expect("a batch");
    assert_eq!((batch.rows, batch.lines.rows, batch.lines.long), (1, vec![4], vec![5]));
    for (file, message) in [
        ("", "there is no row"),
        ("\n\r\n", "there is no row"),
        (",,\n", "there is no row"),
        ("a,\"b\nc,d\n", "a quote in the row of column names"),
    ] {
        assert!(
            matches!(names(file), Err(Error::InvalidArgument { message: found, .. }) if found.contains(message))
        );
    }
}

#[test]
fn missing_words_and_letters() {
    let letters: Vec<Option<Vec<u8>>> =
        (0..=255_u8).map(|byte| (byte != 0x81).then(|| char::from(byte).to_string().into_bytes())).collect();
    let of = |missing: &[&str]| {
        let missing = missing.iter().map(|word| word.as_bytes().to_vec()).collect();
        Dialect::new(b',', Quote::Rfc, false, missing, Some(letters.clone())).expect("a dialect")
    };
    let (rows, ..) = rows_of(b"\xe9,NA\n\" NA \",\xa0\xe9 \n\xe9\x81,NAN\n", of(&["NA", "\u{e9}"]), 2, 10);
    assert_eq!(
        rows,
        [[b"".to_vec(), b"".to_vec()], [b"".to_vec(), b"".to_vec()], [b"\xe9\x81".to_vec(), b"NAN".to_vec()]]
    );
    assert!(Dialect::new(b'a', Quote::Rfc, false, Vec::new(), None).is_err());
    assert!(Dialect::new(b',', Quote::Rfc, false, Vec::new(), Some(vec![None; 256])).is_err());
}
