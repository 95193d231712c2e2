//! Rows of CSV files in all dialects, beside the slow reader.

#![no_main]

#[path = "../../core/tests/support/slow_csv.rs"]
mod slow_csv;

use libfuzzer_sys::fuzz_target;
use userdp_core::{
    control::Control,
    reading::csv::{Dialect, Quote, Reader},
};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return; // a mark of UTF-8 is no part of the rows, which the slow reader does not know
    }
    let quote = [Quote::Rfc, Quote::Line, Quote::None][usize::from(choice % 3)];
    let (escape, width) = (choice & 8 != 0, 1 + usize::from(choice >> 4) % 4);
    let at_a_time = if choice & 4 == 0 { 1 << 20 } else { 1 };
    let dialect = Dialect::new(b',', quote, escape, Vec::new(), None).expect("a dialect");
    let mut reader = Reader::without_names(dialect, width, bytes);
    let columns: Vec<usize> = (0..width).collect();
    let (mut rows, mut out) = (Vec::new(), Vec::new());
    loop {
        let batch = reader.batch(bytes, &columns, at_a_time, true, &Control::new()).expect("memory");
        out.extend(batch.lines.malformed.iter().chain(&batch.lines.long));
        if batch.rows == 0 {
            break;
        }
        let place = |offset: i64| usize::try_from(offset).expect("a place");
        rows.extend((0..batch.rows).map(|row| {
            let cells = batch.columns.iter().map(|texts| {
                texts.content[place(texts.offsets[row])..place(texts.offsets[row + 1])].to_vec()
            });
            cells.collect::<Vec<_>>()
        }));
    }
    out.sort_unstable();
    assert_eq!((rows, out), slow_csv::slow(bytes, quote, escape, width));
    // Linear: a few looks at each byte, whatever stands there.
    assert!(reader.steps() <= 4 * bytes.len() as u64 + 16);
});
