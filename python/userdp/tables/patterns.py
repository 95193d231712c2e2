"""Patterns of texts, matched in time linear in the text: a small part of regular expressions, run as an automaton.

Python's `re` goes back and tries again, so one user's text can keep it busy for ever. Here each place of the pattern
that asks for a character is a state, all states are followed at once (Glushkov's automaton), and a character of the
text is looked at once. Sets of states are integers, one bit for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from userdp.exact.numbers import bits_of, short_repr

MOST_STATES = 1000
_MOST_KEPT = 2**12
_MOST_READ = 10 * MOST_STATES
_DIGITS = frozenset("0123456789")
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") | _DIGITS
_SPACES = frozenset(" \t\n\r\f\v")
_CLASSES = {"d": _DIGITS, "w": _LETTERS, "s": _SPACES}
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
_SPECIAL = frozenset(r".^$*+?{}[]\|()")
_DEEPEST = 50


@dataclass(frozen=True)
class _Letters:
    """A set of characters: single ones, ranges of code points, and complements of sets."""

    single: frozenset[str] = frozenset()
    ranges: tuple[tuple[str, str], ...] = ()
    without: tuple[frozenset[str], ...] = ()
    negated: bool = False

    def __contains__(self, letter: str) -> bool:
        held = (
            letter in self.single
            or any(low <= letter <= high for low, high in self.ranges)
            or any(letter not in others for others in self.without)
        )
        return held is not self.negated


_ANY = _Letters(negated=True)


@dataclass(frozen=True)
class _Piece:
    """A part of a pattern: whether it matches nothing, and the states it can begin and end in."""

    empty: bool
    first: int
    last: int


@dataclass
class _Reader:
    """One reading of a pattern, from left to right."""

    pattern: str
    at: int = 0
    depth: int = 0
    read: int = 0
    letters: list[_Letters] = field(default_factory=list)
    follow: list[int] = field(default_factory=list)

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        letter = self.peek()
        if not letter:
            raise self.error("it ends too early")
        self.at += 1
        return letter

    def error(self, why: str) -> ValueError:
        return ValueError(f"match: pattern {short_repr(self.pattern)}, at character {self.at}: {why}")

    # --- the grammar

    def alternatives(self) -> _Piece:
        piece = self.sequence()
        while self.peek() == "|":
            self.at += 1
            other = self.sequence()
            piece = _Piece(piece.empty or other.empty, piece.first | other.first, piece.last | other.last)
        return piece

    def sequence(self) -> _Piece:
        piece = _Piece(True, 0, 0)
        while self.peek() not in ("", "|", ")"):
            piece = self.joined(piece, self.repeated())
        return piece

    def repeated(self) -> _Piece:
        start = self.at
        piece = self.atom()
        stop, sign = self.at, self.peek()
        if sign not in ("*", "+", "?", "{"):
            return piece
        low, high = self.counts()
        if self.peek() in ("*", "+", "?", "{"):
            raise self.error("a repetition is repeated; put brackets around it")
        # Copies are made by reading the part again. The first one is there.
        pieces = [piece]
        end = self.at
        copies = max(low, 1) if high is None else high
        if copies == 0:
            return _Piece(True, 0, 0)
        while len(pieces) < copies:
            self.at = start
            pieces.append(self.atom())
            assert self.at == stop
        self.at = end
        if high is None:
            self.link(pieces[-1], pieces[-1])
        joined = _Piece(True, 0, 0)
        for place in range(copies - 1, -1, -1):  # from the right: what is left out is at the end
            tail = self.joined(pieces[place], joined)
            joined = _Piece(True, tail.first, tail.last) if place >= low else tail
        return joined

    def counts(self) -> tuple[int, int | None]:
        sign = self.take()
        if sign != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        inside = ""
        while self.peek() != "}":
            inside += self.take()
        self.at += 1
        low, comma, high = inside.partition(",")
        if not set(low + high) <= _DIGITS or not low or len(low + high) > 8:
            raise self.error("a number of repetitions is written {2}, {2,} or {2,5}")
        least, most = int(low), int(high) if high else None if comma else int(low)
        if most is not None and most < least:
            raise self.error("the least number of repetitions is above the greatest")
        if max(least, most or 0) > MOST_STATES:
            raise self.error(f"repetitions are limited to {MOST_STATES}")
        return least, most

    def atom(self) -> _Piece:
        self.read += 1
        if self.read > _MOST_READ:
            raise self.error("its repetitions, written out, are too long")
        letter = self.take()
        if letter == "(":
            if self.peek() == "?":
                if self.pattern[self.at : self.at + 2] != "?:":
                    raise self.error("of the brackets with a question mark only (?:...) is known")
                self.at += 2
            self.depth += 1
            if self.depth > _DEEPEST:
                raise self.error(f"brackets are limited to {_DEEPEST} within each other")
            piece = self.alternatives()
            if self.peek() != ")":
                raise self.error("a bracket is not closed")
            self.at += 1
            self.depth -= 1
            return piece
        if letter == ".":
            return self.state(_ANY)
        if letter == "[":
            return self.state(self.set_of_letters())
        if letter == "\\":
            single, several = self.escaped()
            return self.state(_Letters(frozenset(single)) if several is None else several)
        if letter in ("^", "$"):
            raise self.error("the whole text is matched; begin or end with .* where the rest may be anything")
        if letter in _SPECIAL:
            raise self.error(f"{letter!r} has nothing before it that it could stand for; write \\{letter} for itself")
        return self.state(_Letters(frozenset(letter)))

    def escaped(self) -> tuple[str, _Letters | None]:
        letter = self.take()
        if letter.lower() in _CLASSES:
            letters = _CLASSES[letter.lower()]
            return "", _Letters(letters) if letter.islower() else _Letters(letters, negated=True)
        if letter in _ESCAPES:
            return _ESCAPES[letter], None
        if letter in _LETTERS or not letter.isascii():
            raise self.error(
                f"\\{letter} is not known; there are \\d, \\w, \\s, \\D, \\W, \\S, \\n, \\r, \\t, \\f, \\v"
            )
        return letter, None

    def set_of_letters(self) -> _Letters:
        negated = self.peek() == "^"
        self.at += negated
        single: set[str] = set()
        ranges: list[tuple[str, str]] = []
        without: list[frozenset[str]] = []
        begin = self.at
        while self.peek() != "]" or self.at == begin:
            low, several = self.member()
            if several is not None:
                if several.negated:
                    without.append(several.single)
                else:
                    single |= several.single
                continue
            if self.peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high, others = self.member()
                if others is not None or high < low:
                    raise self.error("a range goes from a character to a later one")
                ranges.append((low, high))
            else:
                single.add(low)
        self.at += 1
        return _Letters(frozenset(single), tuple(ranges), tuple(without), negated)

    def member(self) -> tuple[str, _Letters | None]:
        letter = self.take()
        return self.escaped() if letter == "\\" else (letter, None)

    # --- the automaton

    def state(self, letters: _Letters) -> _Piece:
        if len(self.letters) >= MOST_STATES:
            raise self.error(f"patterns are limited to {MOST_STATES} characters, with repetitions written out")
        self.letters.append(letters)
        self.follow.append(0)
        bit = 1 << (len(self.letters) - 1)
        return _Piece(False, bit, bit)

    def link(self, before: _Piece, after: _Piece) -> None:
        for state in bits_of(before.last):
            self.follow[state] |= after.first

    def joined(self, before: _Piece, after: _Piece) -> _Piece:
        self.link(before, after)
        return _Piece(
            before.empty and after.empty,
            before.first | after.first if before.empty else before.first,
            before.last | after.last if after.empty else after.last,
        )


class Pattern:
    r"""A public pattern that whole texts are compared with, in time linear in the text.

    Parameters
    ----------
    pattern : str
        Characters stand for themselves; ``.`` for any, ``[a-z_]`` and ``[^0-9]`` for sets, ``\d``, ``\w`` and ``\s``
        for digits, letters and white space of ASCII, capitals of these for all else; ``|`` parts alternatives, brackets
        group, and ``*``, ``+``, ``?``, ``{2}``, ``{2,}`` and ``{2,5}`` repeat. There are no references back, no looks
        around and no anchors. With repetitions written out there are at most 1000 characters.

    Examples
    --------
    >>> postcode = Pattern(r"[A-Z]{1,2}\d+ .*")
    >>> postcode.matches("EC1 London"), postcode.matches("London EC1")
    (True, False)
    """

    def __init__(self, pattern: str) -> None:
        if not isinstance(pattern, str):
            raise TypeError(f"match: pattern must be a text; got a {type(pattern).__name__}")
        if len(pattern) > _MOST_READ:
            raise ValueError(f"match: pattern must have at most {_MOST_READ} characters; got {len(pattern)}")
        reader = _Reader(pattern)
        piece = reader.alternatives()
        if reader.peek():
            raise reader.error("a bracket is closed that was not opened")
        self._letters, self._follow, self._piece = reader.letters, reader.follow, piece
        self._next: dict[tuple[int, str], tuple[int, int]] = {}

    def matches(self, text: str) -> bool:
        """Whether the whole text is as the pattern says."""
        if not text:
            return self._piece.empty
        states, ahead = 0, self._piece.first
        for letter in text:
            states, ahead = self._next.get((ahead, letter)) or self._step(ahead, letter)
            if not states:
                return False
        return bool(states & self._piece.last)

    def _step(self, ahead: int, letter: str) -> tuple[int, int]:
        """The states that take this character, of those that can, and the states that can take the one after it."""
        held = after = 0
        for state in bits_of(ahead):
            if letter in self._letters[state]:
                held |= 1 << state
                after |= self._follow[state]
        if len(self._next) < _MOST_KEPT:
            self._next[ahead, letter] = held, after
        return held, after
