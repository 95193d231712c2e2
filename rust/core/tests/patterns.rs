//! Patterns of texts: against a plain search of all places where parts can end, and what is refused.

#![allow(clippy::unwrap_used)]

use proptest::{prelude::*, sample::select};
use std::collections::BTreeSet;
use userdp_core::{
    Error,
    control::Control,
    table::patterns::{MOST_STATES, Pattern},
};

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(&text.chars().map(u32::from).collect::<Vec<_>>())
}

fn matches(pattern: &Pattern, texts: &[Vec<u8>]) -> Vec<bool> {
    pattern.matches(texts, &Control::new()).unwrap()
}

/// The bytes of code points, surrogates among them.
fn bytes(points: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &point in points {
        if let Some(letter) = char::from_u32(point) {
            bytes.extend(letter.to_string().into_bytes());
        } else {
            let last = |shift: u32| u8::try_from(0x80 | ((point >> shift) & 0x3F)).unwrap();
            bytes.extend([0xED, last(6), last(0)]);
        }
    }
    bytes
}

fn is_match(pattern: &[u32], text: &[u32]) -> bool {
    matches(&Pattern::new(pattern).unwrap(), &[bytes(text)])[0]
}

/// A part of a pattern.
#[derive(Clone, Debug)]
enum Part {
    /// Ranges, and whether all else is meant.
    Set(Vec<(u32, u32)>, bool),
    All(Vec<Part>),
    Any(Vec<Part>),
    Repeated(Box<Part>, usize, Option<usize>),
}

impl Part {
    fn write(&self, out: &mut Vec<u32>) {
        let put = |text: &str, out: &mut Vec<u32>| out.extend(text.chars().map(u32::from));
        match self {
            Self::Set(ranges, negated) => {
                put(if *negated { "[^" } else { "[" }, out);
                for &(low, high) in ranges {
                    // Every second one by a backslash, where there may be one.
                    for (point, sign) in [(low, "-"), (high, "")] {
                        if point < 0x30 {
                            put("\\", out);
                        }
                        out.push(point);
                        put(sign, out);
                    }
                }
                put("]", out);
            }
            Self::All(parts) => parts.iter().for_each(|part| part.write(out)),
            Self::Any(parts) => {
                put("(", out);
                for (number, part) in parts.iter().enumerate() {
                    put(if number > 0 { "|" } else { "" }, out);
                    part.write(out);
                }
                put(")", out);
            }
            Self::Repeated(part, least, most) => {
                put("(?:", out);
                part.write(out);
                let most = most.map_or(String::new(), |most| most.to_string());
                put(&format!("){{{least},{most}}}"), out);
            }
        }
    }

    /// Where the part can end that begins in one of these places.
    fn ends(&self, text: &[u32], from: &BTreeSet<usize>) -> BTreeSet<usize> {
        match self {
            Self::Set(ranges, negated) => {
                let holds =
                    |point: &u32| ranges.iter().any(|(low, high)| low <= point && point <= high) != *negated;
                from.iter().filter(|&&at| text.get(at).is_some_and(holds)).map(|at| at + 1).collect()
            }
            Self::All(parts) => parts.iter().fold(from.clone(), |from, part| part.ends(text, &from)),
            Self::Any(parts) => parts.iter().flat_map(|part| part.ends(text, from)).collect(),
            Self::Repeated(part, least, most) => {
                let mut from = from.clone();
                for _ in 0..*least {
                    from = part.ends(text, &from);
                }
                for _ in 0..most.map_or(text.len() + 1, |most| most - least) {
                    from = from.union(&part.ends(text, &from)).copied().collect();
                }
                from
            }
        }
    }
}

/// Ends of the ranges in which code points are written by so many bytes, and of surrogates; signs of sets.
const POINTS: [u32; 24] = [
    0, 0xA, 0x21, 0x26, 0x2D, 0x30, 0x39, 0x41, 0x5B, 0x61, 0x7E, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xD800,
    0xD83F, 0xD840, 0xDFFF, 0xE000, 0xFFFF, 0x1_0000, 0x10_FFFF,
];

fn part() -> impl Strategy<Value = Part> {
    let range =
        (select(&POINTS[..]), select(&POINTS[..])).prop_map(|(one, other)| (one.min(other), one.max(other)));
    // No backslash: it would not stand for itself.
    let set = (prop::collection::vec(range, 1..3), any::<bool>())
        .prop_map(|(ranges, negated)| Part::Set(ranges, negated));
    set.prop_recursive(4, 24, 3, |inner| {
        let several = || prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            several().prop_map(Part::All),
            several().prop_map(|parts| Part::Any(if parts.is_empty() {
                vec![Part::All(vec![])]
            } else {
                parts
            })),
            (inner.clone(), 0_usize..3, prop::option::of(0_usize..3)).prop_map(|(part, least, more)| {
                Part::Repeated(Box::new(part), least, more.map(|more| least + more))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn whole_texts_match_as_by_a_plain_search(
        part in part(),
        texts in prop::collection::vec(prop::collection::vec(select(&POINTS[..]), 0..6), 1..12),
    ) {
        let mut written = Vec::new();
        part.write(&mut written);
        let pattern = Pattern::new(&written).unwrap();
        let expected: Vec<bool> = texts
            .iter()
            .map(|text| part.ends(text, &BTreeSet::from([0])).contains(&text.len()))
            .collect();
        let texts: Vec<Vec<u8>> = texts.iter().map(|text| bytes(text)).collect();
        prop_assert_eq!(matches(&pattern, &texts), expected);
    }

    #[test]
    fn no_pattern_panics(points in prop::collection::vec(
        prop_oneof![select(r"()[]{}|*+?\^$.-:,0123dwsn".chars().map(u32::from).collect::<Vec<_>>()), any::<u32>()],
        0..40,
    )) {
        let _ = Pattern::new(&points);
    }
}

#[test]
fn classes_are_those_of_ascii() {
    let ascii = (0..0x300_u32).chain([0x663, 0x2028, 0xD800, 0xFF11]);
    for point in ascii {
        let letter = char::from_u32(point).filter(char::is_ascii);
        let classes = [
            ('d', letter.is_some_and(|letter| letter.is_ascii_digit())),
            ('w', letter.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_')),
            ('s', letter.is_some_and(|letter| letter.is_ascii_whitespace() || letter == '\x0B')),
        ];
        for (class, inside) in classes {
            for (name, expected) in [(class, inside), (class.to_ascii_uppercase(), !inside)] {
                let name = [u32::from('\\'), name.into()];
                assert_eq!(is_match(&name, &[point]), expected, "{name:?} {point:x}");
                let set = [&[u32::from('[')], &name[..], &[u32::from(']')]].concat();
                assert_eq!(is_match(&set, &[point]), expected);
            }
        }
        assert!(is_match(&[u32::from('.')], &[point]));
    }
}

#[test]
fn every_surrogate_is_a_character() {
    let (low, high) = (0xD812, 0xD913);
    let set = ['['.into(), low, '-'.into(), high, ']'.into()];
    let texts: Vec<_> = (0xD7F0..=0xE010).map(|point| bytes(&[point])).collect();
    let expected: Vec<_> = (0xD7F0..=0xE010).map(|point| (low..=high).contains(&point)).collect();
    assert_eq!(matches(&Pattern::new(&set).unwrap(), &texts), expected);
    // What is beyond Unicode matches nothing, and is no error.
    assert!(!is_match(&[u32::MAX], &[0x10_FFFF]));
    // Two halves are two characters.
    let dot = u32::from('.');
    assert!(!is_match(&[dot], &[0xD83D, 0xDE00]) && is_match(&[dot, dot], &[0xD83D, 0xDE00]));
    assert!(is_match(&[dot], &[0x1_F600]));
    let all_but_the_last = ['['.into(), '^'.into(), 0, '-'.into(), 0x10_FFFE, ']'.into()];
    assert!(is_match(&all_but_the_last, &[0x10_FFFF]) && !is_match(&all_but_the_last, &[0x10_FFFE]));
}

#[test]
fn what_is_too_large_is_refused() {
    assert!(pattern(&"a".repeat(MOST_STATES)).is_ok());
    assert!(pattern(&"a".repeat(MOST_STATES + 1)).unwrap_err().contains("limited to 1000"));
    assert!(pattern("(a{40}){25}").is_ok() && pattern("(a{40}){25}a").is_err());
    assert!(pattern("(a{40}){26}").unwrap_err().contains("limited to 1000"));
    assert!(pattern("(a{0}){1000}").is_ok() && pattern("(a{0}){1000}b").is_err());
    assert!(pattern("((){9}){1000}").is_ok());
    assert!(pattern("((){9}){1000}()").unwrap_err().contains("too long"));
    assert!(pattern("((){10}){1000}").unwrap_err().contains("too long"));
    // The deepest pattern, with as many levels as there can be in what is written out.
    let levels = |depth| "(a|b".repeat(depth) + "[^a]" + &"){0,1}".repeat(depth);
    assert!(pattern(&levels(9)).is_ok());
    let deep = |depth| "(|".repeat(depth) + "[^a]c" + &"){0,1}".repeat(depth);
    assert!(pattern(&deep(50)).is_ok());
    assert!(pattern(&"(a)".repeat(60)).is_ok());
    assert!(pattern(&deep(51)).unwrap_err().contains("limited to 50"));
    let wide: String = (0..9000).filter_map(|place| char::from_u32(0x1_0000 + 97 * place)).collect();
    assert!(pattern(&format!("[{wide}]")).is_ok());
    assert!(pattern(&format!("[{wide}]{{1000}}")).unwrap_err().contains("over 32 MiB"));
}

#[test]
fn sets_have_only_their_own_signs() {
    let letters: Vec<_> = (0..128).map(|byte| vec![byte]).collect();
    for (set, expected) in [
        ("[]a]", "]a"),
        ("[a-]", "-a"),
        ("[--/]", "-./"),
        ("[a&&b]", "&ab"),
        ("[[:d]", ":[d"),
        (r"[\d-z]", "-0123456789z"),
        (r"[\]\n]", "\n]"),
        (r"\<", "<"),
        (r"[\t\r\f\v]", "\t\x0B\x0C\r"),
    ] {
        let found = matches(&pattern(set).unwrap(), &letters);
        let wanted: Vec<_> = (0..128_u8).map(|byte| expected.as_bytes().contains(&byte)).collect();
        assert_eq!(found, wanted, "{set}");
    }
    assert!(pattern("[]").is_err() && pattern("[^]").is_err() && pattern(r"[a-\d]").is_err());
}

#[test]
fn signs_repeat() {
    for (sign, expected) in [
        ("*", [true, true, true, true]),
        ("+", [false, true, true, true]),
        ("?", [true, true, false, false]),
        ("{2}", [false, false, true, false]),
        ("{2,}", [false, false, true, true]),
        ("{0,2}", [true, true, true, false]),
    ] {
        let texts: Vec<_> = (0..4).map(|count| "a".repeat(count).into_bytes()).collect();
        assert_eq!(matches(&pattern(&format!("a{sign}")).unwrap(), &texts), expected, "{sign}");
    }
}

#[test]
fn messages_say_where() {
    for (text, message) in [
        ("a**", "at character 2: a repetition is repeated; put brackets around it"),
        ("ab(", "at character 3: a bracket is not closed"),
        ("ab)c", "at character 2: a bracket is closed that was not opened"),
        (r"a\q", r"at character 3: \q is not known; there are \d, \w, \s, \D, \W, \S, \n, \r, \t, \f, \v"),
        ("a]", r"at character 2: ']' has nothing before it that it could stand for; write \] for itself"),
        ("a{+2}", "at character 5: a number of repetitions is written {2}, {2,} or {2,5}"),
        ("a{000000002}", "at character 12: a number of repetitions is written {2}, {2,} or {2,5}"),
    ] {
        assert_eq!(pattern(text).unwrap_err(), message);
    }
}

#[test]
fn it_can_be_stopped() {
    let (pattern, control) = (pattern(".*").unwrap(), Control::new());
    control.cancel();
    assert_eq!(pattern.matches(&vec!["a"; 1 << 16], &control), Err(Error::Canceled));
    // Within one text, too: hard patterns take long for each character.
    assert_eq!(pattern.matches(&["a".repeat(1 << 16)], &control), Err(Error::Canceled));
}
