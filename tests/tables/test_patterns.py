"""Patterns: the same as Python's where both know them, and linear in the text where Python's are not."""

from __future__ import annotations

import random
import re
from itertools import product

import pytest

from userdp.tables.patterns import Pattern


def random_pattern(draw: random.Random, depth: int) -> str:
    if depth == 0 or draw.random() < 0.15:
        return draw.choice(
            ["a", "b", "c", ".", "[ab]", "[^a]", "[a-c]", r"\d", r"\W", r"[\Wa]", r"[^\w]", "1", r"\.", ""]
        )
    one, other = random_pattern(draw, depth - 1), random_pattern(draw, draw.randrange(depth))
    repeat = draw.choice(["*", "+", "?", "{2}", "{1,}", "{0,2}", "{0}", "{2,3}"])
    return draw.choice(
        [one + other, f"{one}|{other}", f"({one}){repeat}{other}", f"(?:{other}|{one}){repeat}", f"({one})"]
    )


def test_patterns_are_those_of_python() -> None:
    draw = random.Random(9)
    texts = ["".join(letters) for length in range(5) for letters in product("abc1", repeat=length)]
    texts += ["\n", "a.b", "é", "ab\n", "aaaabbbbcccc"]
    found = 0
    for _ in range(300):
        pattern = random_pattern(draw, draw.randrange(1, 5))
        ours = Pattern(pattern)
        theirs = re.compile(pattern, re.ASCII | re.DOTALL)
        for text in draw.sample(texts, 60):
            expected = theirs.fullmatch(text) is not None
            assert ours.matches(text) is expected, (pattern, text)
            found += expected
    assert found > 1000


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("", [""], ["a"]),
        ("a{0}", [""], ["a"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[^]]", ["a"], ["]"]),
        ("[a-]", ["a", "-"], ["b"]),
        (r"[\]\-]", ["]", "-"], ["\\"]),
        (r"\$\{x\}", ["${x}"], ["x"]),
        (r"\n\t", ["\n\t"], ["nt"]),
        ("[é-ü]+", ["éü"], ["e"]),
        ("[0-9]{4}(-[0-9]{2}){2}", ["2024-02-29"], ["2024-2-29", "2024-02-29 "]),
        ("(a|b){3,5}c?", ["aba", "babab", "aaac"], ["ab", "ababab", "c"]),
        (r"\D\S\d", ["ab1"], ["1b1", "a 1", "ab٣"]),
    ],
)
def test_pattern(pattern: str, yes: list[str], no: list[str]) -> None:
    assert all(Pattern(pattern).matches(text) for text in yes)
    assert not any(Pattern(pattern).matches(text) for text in no)


@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*a){12}b", "((a?){20}a{20})*b", "([a-z]+)+[0-9]"]
)
def test_time_is_linear(pattern: str) -> None:
    # Engines that go back and try again take 2**20000 steps and more.
    assert not Pattern(pattern).matches("a" * 20_000)


def test_long_texts_cost_as_much_for_each_character() -> None:
    """Characters in no order, of which a pattern has as many sets of states as there are places."""
    text = "".join(random.Random(1).choices("ab", k=100_000))
    assert not Pattern("(a|b|ab)*(a?){50}c").matches(text)
    assert Pattern(".*a.{200}").matches(text) is (text[-201] == "a")


def test_lone_surrogates_are_characters() -> None:
    """Texts that UTF-8 cannot hold match as all others do, and are no errors."""
    texts = ["\ud800", "\udfff", "\ud83d\ude00", "a\udc80b", "\ud7ff", "\ue000", "\U0001f600", "\ufffd"]
    patterns = [
        ".",
        "..",
        "a.b",
        r"\D",
        r"\d",
        "[^a]",
        "[^\ud800]",
        "\ud800",
        "[\ud800-\udfff]",
        "[a-\ue000]",
        "[^\x00-\uffff]",
    ]
    for pattern in patterns:
        theirs = re.compile(pattern, re.ASCII | re.DOTALL)
        expected = [theirs.fullmatch(text) is not None for text in texts]
        assert Pattern(pattern).matches_each(texts).tolist() == expected, pattern


def test_sets_have_no_signs_of_other_languages() -> None:
    """What libraries of regular expressions read as sets within sets, names and ends of words."""
    for pattern, yes in [
        ("[a&&b]", "&ab"),
        ("[a--b]", None),
        ("[--/]", "-./"),
        ("[a~~b]", "~ab"),
        ("[[a]", "[a"),
        ("[[:d:]", "[:d"),
        (r"\<", "<"),
        (r"\>", ">"),
        (r"[\d-z]", "0123456789-z"),
        ("[#x ]", "# x"),
    ]:
        if yes is None:
            with pytest.raises(ValueError, match="range"):
                Pattern(pattern)
            continue
        letters = [chr(point) for point in range(128)]
        assert [
            letter for letter, found in zip(letters, Pattern(pattern).matches_each(letters), strict=True) if found
        ] == sorted(yes)


class Shouting(str):
    def encode(self, *arguments: object) -> bytes:
        raise AssertionError("texts are read by what Python keeps of them")


def test_texts_are_read_by_what_python_keeps_of_them() -> None:
    assert Pattern("a.").matches_each([Shouting("ab"), Shouting("a\ud800"), Shouting("b")]).tolist() == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("^a", "whole text"),
        ("a$", "whole text"),
        ("(a", "not closed"),
        ("a)", "not opened"),
        ("*a", "nothing before"),
        ("a**", "repeated"),
        ("a*?", "repeated"),
        ("[a", "ends too early"),
        ("a\\", "ends too early"),
        ("[b-a]", "range"),
        (r"[a-\d]", "range"),
        (r"(a)\1", "not known"),
        (r"\bword", "not known"),
        ("(?=a)", r"\(\?:"),
        ("(?P<x>a)", r"\(\?:"),
        ("a{2", "ends too early"),
        ("a{x}", "repetitions is written"),
        ("a{,3}", "repetitions is written"),
        ("a{3,2}", "above the greatest"),
        ("a{2000}", "limited to 1000"),
        ("(a{40}){40}", "limited to 1000"),
        ("((){1000}){1000}", "too long"),
        ("(" * 60 + ")" * 60, "limited to 50"),
        ("a" * 1001, "limited to 1000"),
        ("a" * 100_000, "at most 10000"),
        ("{2}", "nothing before"),
        ("[" + "".join(chr(0x10000 + 97 * place) for place in range(9000)) + "]{1000}", "over 32 MiB"),
    ],
)
def test_other_patterns_are_refused(pattern: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"^match: pattern .*{words}"):
        Pattern(pattern)


def test_messages_name_the_pattern_and_the_place() -> None:
    with pytest.raises(ValueError, match=r"^match: pattern 'ab\*\*', at character 3: a repetition is repeated; put "):
        Pattern("ab**")


def test_the_longest_pattern() -> None:
    longest = Pattern("(ab){500}")
    assert longest.matches("ab" * 500)
    assert not longest.matches("ab" * 499)
