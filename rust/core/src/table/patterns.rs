//! Patterns of whole texts: a small part of regular expressions, in time linear in the text.
//!
//! A pattern is public and texts are private, so that all that can be refused is refused when a pattern is read. It is
//! read here, character by character, and written out for the crate `regex-automata`, whose lazy automaton is followed here
//! byte by byte, all states at once and never back. That crate's own grammar is larger and means other things: in a set `[`, `&&`, `--` and `~~`, and `\<`
//! outside. So what is written has no names of sets and no signs: every set is written as the ranges of its characters.
//!
//! Characters are the code points of Python's texts, lone surrogates among them. Texts come as UTF-8 in which a
//! surrogate is the three bytes that its number would have, `ED A0 80` to `ED BF BF`. No other character has them.

use crate::control::Control;
use regex_automata::{
    Anchored, MatchKind,
    hybrid::{
        LazyStateID,
        dfa::{Cache, DFA},
    },
    nfa::thompson,
    util::{start, syntax},
};
use std::fmt::Write;

/// The most characters that a pattern has, with repetitions written out.
pub const MOST_STATES: usize = 1000;

/// The most parts of any kind, with repetitions written out.
const MOST_READ: usize = 10 * MOST_STATES;

/// The most brackets within each other.
const DEEPEST: usize = 50;

/// The most bytes of an automaton: patterns that need more are refused.
const MOST_BYTES: usize = 1 << 25;

/// The most bytes that a thread keeps of what it has seen of an automaton. What has no room is computed again.
const CACHE_BYTES: usize = 1 << 23;

/// Levels in what is written out: a bracket is at most four.
const NEST_LIMIT: u32 = 400;

/// Bytes of texts between two looks at the control. A byte takes a tenth of a millisecond at most.
const CHECK_EVERY: usize = 1 << 10;

/// Code points from one to another, both among them.
type Range = (u32, u32);

const LAST: u32 = char::MAX as u32;
const SURROGATES: Range = (0xD800, 0xDFFF);
const DIGITS: &[Range] = &[(0x30, 0x39)];
const LETTERS: &[Range] = &[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];
const SPACES: &[Range] = &[(0x09, 0x0D), (0x20, 0x20)];

/// What is read, or why there is none, in words.
type Read<T> = Result<T, String>;

/// A public pattern that whole texts are compared with.
#[derive(Clone, Debug)]
pub struct Pattern(DFA);

impl Pattern {
    /// A pattern by its code points.
    ///
    /// Characters stand for themselves, `.` for any; there are sets, `\d \w \s` of ASCII and the rest `\D \W \S`,
    /// alternatives by `|`, brackets, and the repetitions `* + ? {2} {2,} {2,5}`.
    ///
    /// # Errors
    /// In words, after how many characters, for everything else, and for what is too large.
    pub fn new(pattern: &[u32]) -> Result<Self, String> {
        let mut reader = Reader { pattern, at: 0, depth: 0, states: 0, read: 0, out: "(?:".into() };
        reader.alternatives()?;
        if reader.ahead(0).is_some() {
            return Err(reader.error("a bracket is closed that was not opened"));
        }
        // All ways to read a text are followed to its end, and nothing is given up: where the cache has no room, it is emptied.
        DFA::builder()
            .configure(
                DFA::config()
                    .match_kind(MatchKind::All)
                    .cache_capacity(CACHE_BYTES)
                    .skip_cache_capacity_check(true),
            )
            .syntax(syntax::Config::new().utf8(false).nest_limit(NEST_LIMIT))
            .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(MOST_BYTES)))
            .build(&(reader.out.clone() + ")"))
            .map(Self)
            .map_err(|_| {
                let room = MOST_BYTES >> 20;
                reader.error(format!("its sets, with repetitions written out, need over {room} MiB"))
            })
    }

    /// Whether each text is as the pattern says, as a whole.
    ///
    /// # Errors
    /// [`crate::Error::Canceled`].
    pub fn matches<T: AsRef<[u8]>>(&self, texts: &[T], control: &Control) -> crate::Result<Vec<bool>> {
        let mut work = 0;
        let mut cache = self.0.create_cache();
        let mut found = crate::memory::room("texts", texts.len())?;
        for text in texts.iter().map(AsRef::as_ref) {
            work += 1 + text.len();
            if work >= CHECK_EVERY {
                control.check()?;
                work = 0;
            }
            found.push(self.matches_one(&mut cache, text, control)?);
        }
        Ok(found)
    }

    fn matches_one(&self, cache: &mut Cache, text: &[u8], control: &Control) -> crate::Result<bool> {
        let start = start::Config::new().anchored(Anchored::Yes);
        let mut state = known(self.0.start_state(cache, &start))?;
        for part in text.chunks(CHECK_EVERY) {
            for &byte in part {
                state = known(self.0.next_state(cache, state, byte))?;
                if state.is_dead() {
                    return Ok(false);
                }
            }
            control.check()?;
        }
        Ok(known(self.0.next_eoi_state(cache, state))?.is_match())
    }
}

/// A state; automata as they are made here have them all.
fn known<E>(state: Result<LazyStateID, E>) -> crate::Result<LazyStateID> {
    state.map_err(|_| crate::Error::too_large("pattern: its automaton has a state that does not fit"))
}

/// A member of a set: a character, which a range can begin or end with, or a set.
enum Member {
    Point(u32),
    Set(Vec<Range>),
}

/// One reading of a pattern, from left to right.
struct Reader<'a> {
    pattern: &'a [u32],
    at: usize,
    depth: usize,
    /// Characters so far, with repetitions written out.
    states: usize,
    /// Parts so far, with repetitions written out.
    read: usize,
    /// The same for the crate.
    out: String,
}

impl Reader<'_> {
    /// One of the next characters. None of the grammar's is a surrogate.
    fn ahead(&self, by: usize) -> Option<char> {
        let point = self.pattern.get(self.at + by)?;
        Some(char::from_u32(*point).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn skip(&mut self, letter: char) -> bool {
        let found = self.ahead(0) == Some(letter);
        self.at += usize::from(found);
        found
    }

    fn take(&mut self) -> Read<(u32, char)> {
        let letter = self.ahead(0).ok_or_else(|| self.error("it ends too early"))?;
        self.at += 1;
        Ok((self.pattern[self.at - 1], letter))
    }

    fn error(&self, why: impl AsRef<str>) -> String {
        format!("at character {}: {}", self.at, why.as_ref())
    }

    fn alternatives(&mut self) -> Read<()> {
        loop {
            while !matches!(self.ahead(0), None | Some('|' | ')')) {
                self.repeated()?;
            }
            if !self.skip('|') {
                return Ok(());
            }
            self.out.push('|');
        }
    }

    fn repeated(&mut self) -> Read<()> {
        let repeats = |letter| matches!(letter, Some('*' | '+' | '?' | '{'));
        let (states, read) = (self.states, self.read);
        self.atom()?;
        if !repeats(self.ahead(0)) {
            return Ok(());
        }
        let (least, most) = self.counts()?;
        if repeats(self.ahead(0)) {
            return Err(self.error("a repetition is repeated; put brackets around it"));
        }
        let copies = most.unwrap_or(least).max(1) - 1;
        self.states += copies * (self.states - states);
        self.read += copies * (self.read - read);
        self.check_size()?;
        let most = most.map_or(String::new(), |most| most.to_string());
        self.write(format_args!("{{{least},{most}}}"));
        Ok(())
    }

    /// How often a part is repeated at least and at most.
    fn counts(&mut self) -> Read<(usize, Option<usize>)> {
        match self.take()?.1 {
            '*' => return Ok((0, None)),
            '+' => return Ok((1, None)),
            '?' => return Ok((0, Some(1))),
            _ => {}
        }
        let mut inside = String::new();
        while !self.skip('}') {
            inside.push(self.take()?.1);
        }
        let (low, high) = inside.split_once(',').map_or((&*inside, None), |(low, high)| (low, Some(high)));
        let digits = [low, high.unwrap_or_default()].concat();
        let read = |number: &str| number.parse::<usize>().ok();
        let least =
            read(low).filter(|_| digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(least) = least else {
            return Err(self.error("a number of repetitions is written {2}, {2,} or {2,5}"));
        };
        let most = high.map_or(Some(least), read);
        if most.is_some_and(|most| most < least) {
            return Err(self.error("the least number of repetitions is above the greatest"));
        }
        if least.max(most.unwrap_or(0)) > MOST_STATES {
            return Err(self.error(format!("repetitions are limited to {MOST_STATES}")));
        }
        Ok((least, most))
    }

    fn atom(&mut self) -> Read<()> {
        self.read += 1;
        self.check_size()?;
        let (point, letter) = self.take()?;
        let set = match letter {
            '(' => return self.brackets(),
            '.' => vec![(0, LAST)],
            '[' => self.set()?,
            '\\' => match self.escaped()? {
                Member::Point(point) => vec![(point, point)],
                Member::Set(set) => set,
            },
            '^' | '$' => {
                let why = "the whole text is matched; begin or end with .* where the rest may be anything";
                return Err(self.error(why));
            }
            '*' | '+' | '?' | '{' | '}' | ']' => {
                return Err(self.error(format!(
                    "'{letter}' has nothing before it that it could stand for; write \\{letter} for itself"
                )));
            }
            _ => vec![(point, point)],
        };
        self.states += 1;
        self.check_size()?;
        self.write_set(&set);
        Ok(())
    }

    fn check_size(&self) -> Read<()> {
        if self.states > MOST_STATES {
            let limit =
                format!("patterns are limited to {MOST_STATES} characters, with repetitions written out");
            return Err(self.error(limit));
        }
        if self.read > MOST_READ {
            return Err(self.error("its repetitions, written out, are too long"));
        }
        Ok(())
    }

    fn brackets(&mut self) -> Read<()> {
        if self.ahead(0) == Some('?') {
            if self.ahead(1) != Some(':') {
                return Err(self.error("of the brackets with a question mark only (?:...) is known"));
            }
            self.at += 2;
        }
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error(format!("brackets are limited to {DEEPEST} within each other")));
        }
        self.out.push_str("(?:");
        self.alternatives()?;
        if !self.skip(')') {
            return Err(self.error("a bracket is not closed"));
        }
        self.out.push(')');
        self.depth -= 1;
        Ok(())
    }

    /// What a backslash makes of the next character.
    fn escaped(&mut self) -> Read<Member> {
        let (point, letter) = self.take()?;
        Ok(match letter {
            'd' => Member::Set(DIGITS.to_vec()),
            'w' => Member::Set(LETTERS.to_vec()),
            's' => Member::Set(SPACES.to_vec()),
            'D' => Member::Set(without(DIGITS.to_vec())),
            'W' => Member::Set(without(LETTERS.to_vec())),
            'S' => Member::Set(without(SPACES.to_vec())),
            'n' => Member::Point('\n'.into()),
            'r' => Member::Point('\r'.into()),
            't' => Member::Point('\t'.into()),
            'f' => Member::Point(0x0C),
            'v' => Member::Point(0x0B),
            '_' | '\u{80}'.. => return Err(self.unknown(letter)),
            _ if letter.is_ascii_alphanumeric() => return Err(self.unknown(letter)),
            _ => Member::Point(point),
        })
    }

    fn unknown(&self, letter: char) -> String {
        let known = r"\d, \w, \s, \D, \W, \S, \n, \r, \t, \f, \v";
        self.error(format!(r"\{letter} is not known; there are {known}"))
    }

    /// What stands between square brackets.
    fn set(&mut self) -> Read<Vec<Range>> {
        let negated = self.skip('^');
        let (begin, mut set) = (self.at, Vec::new());
        while self.at == begin || !self.skip(']') {
            match self.member()? {
                Member::Set(ranges) => set.extend(ranges),
                Member::Point(low)
                    if self.ahead(0) == Some('-') && !matches!(self.ahead(1), None | Some(']')) =>
                {
                    self.at += 1;
                    match self.member()? {
                        Member::Point(high) if low <= high => set.push((low, high)),
                        _ => return Err(self.error("a range goes from a character to a later one")),
                    }
                }
                Member::Point(point) => set.push((point, point)),
            }
        }
        Ok(if negated { without(set) } else { set })
    }

    fn member(&mut self) -> Read<Member> {
        match self.take()? {
            (_, '\\') => self.escaped(),
            (point, _) => Ok(Member::Point(point)),
        }
    }

    fn write(&mut self, what: std::fmt::Arguments<'_>) {
        // A text takes everything.
        let _ = self.out.write_fmt(what);
    }

    /// Writes a set: its characters that UTF-8 has, or the bytes of its surrogates.
    fn write_set(&mut self, set: &[Range]) {
        self.out.push_str("(?:[");
        let start = self.out.len();
        for &(low, high) in set {
            for (low, high) in
                [(low, high.min(SURROGATES.0 - 1)), (low.max(SURROGATES.1 + 1), high.min(LAST))]
            {
                if low <= high {
                    self.write(format_args!(r"\x{{{low:X}}}-\x{{{high:X}}}"));
                }
            }
        }
        if self.out.len() == start {
            self.out.push_str(r"^\x{0}-\x{10FFFF}"); // none
        }
        self.out.push(']');
        for &(low, high) in set {
            self.write_surrogates(low.max(SURROGATES.0), high.min(SURROGATES.1));
        }
        self.out.push(')');
    }

    /// Writes the bytes of the surrogates of a range: those with the same second byte are together.
    fn write_surrogates(&mut self, mut low: u32, high: u32) {
        let second = |point: u32| 0x80 | ((point >> 6) & 0x3F);
        let third = |point: u32| 0x80 | (point & 0x3F);
        while low <= high {
            // As many whole blocks of 64 as there are, or what is in the first block.
            let blocks = ((high + 1) & !0x3F).max(low) - 1;
            let end = if low.is_multiple_of(64) && blocks > low { blocks } else { high.min(low | 0x3F) };
            self.write(format_args!(
                r"|(?-u:\xED[\x{:X}-\x{:X}][\x{:X}-\x{:X}])",
                second(low),
                second(end),
                third(low),
                third(end),
            ));
            low = end + 1;
        }
    }
}

/// All characters that are in none of these ranges.
fn without(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let (mut gaps, mut next) = (Vec::new(), 0);
    for (low, high) in ranges {
        if low > next {
            gaps.push((next, low - 1));
        }
        next = next.max(high.saturating_add(1));
    }
    if next <= LAST {
        gaps.push((next, LAST));
    }
    gaps
}
