//! What a text or bytes are read as: nothing panics, a spelling is its own spelling, and says the same number and time.

#![no_main]

use libfuzzer_sys::fuzz_target;
use userdp_core::reading::{
    Cell, Owner, Spelling, boolean, number, numbers::Marks, owner, point, time, times::Format, whole,
    write_text,
};

const FORMATS: [&str; 6] =
    ["%m/%d/%Y", "%d.%m.%y %H:%M", "%Y%m%d", "%m%d%Y", "%d %m %Y %H:%M:%S.%f %z", "%y%m%d%H%M%S"];

fn text_of(cell: Cell<'_>, spelling: Spelling) -> Option<String> {
    let mut out = Vec::new();
    write_text(cell, spelling, Marks::default(), &mut out).ok()?;
    Some(String::from_utf8(out).expect("a spelling is a text"))
}

fn owner_of(cell: Cell<'_>, spelling: Spelling) -> Option<(Owner, Vec<u8>)> {
    let mut out = Vec::new();
    owner(&[(cell, spelling, Marks::default())], &mut out).ok().map(|owner| (owner, out))
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let binary = choice & 1 == 1;
    let cell = match str::from_utf8(bytes) {
        Ok(text) if !binary => Cell::Text(text),
        _ => Cell::Bytes(bytes),
    };
    let usual = Marks::default();
    let dialect = Marks {
        decimal: if choice & 2 == 0 { b'.' } else { b',' },
        thousands: [None, Some('.'), Some(','), Some('\u{a0}')][usize::from(choice >> 2) % 4],
        point: choice & 16 == 0,
    };
    let format = Format::new(FORMATS[usize::from(choice >> 5) % FORMATS.len()]).expect("a format");
    let _ =
        (number(cell, dialect), whole(cell, dialect), point(cell), boolean(cell), time(cell, Some(&format)));
    let of_number = number(cell, usual);
    if let Ok(x) = of_number {
        assert!(!x.is_nan() && x.to_bits() != (-0.0_f64).to_bits());
    }
    for spelling in [Spelling::Doubles, Spelling::Digits, Spelling::Written] {
        if let Some(text) = text_of(cell, spelling) {
            let again = Cell::Text(&text);
            assert_eq!(text_of(again, spelling).as_deref(), Some(&*text));
            assert!(owner_of(cell, spelling).is_some());
            if spelling != Spelling::Written {
                assert_eq!(number(again, usual), of_number);
                assert_eq!(time(again, None), time(cell, None));
            }
        }
    }
    // What doubles tell apart, digits tell apart; but for numbers beyond doubles, which are texts there.
    let beyond = of_number.is_ok_and(f64::is_infinite) || bytes.iter().any(|byte| b"([".contains(byte));
    if !beyond
        && let (Some(exact), Some(rough)) =
            (text_of(cell, Spelling::Digits), text_of(cell, Spelling::Doubles))
    {
        assert_eq!(text_of(Cell::Text(&exact), Spelling::Doubles), Some(rough));
    }
});
