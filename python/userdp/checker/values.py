"""Reading what a report holds: every value has one encoding, and no other is read.

Only the standard library: the checker shares no code with the audits, compiled or not, so that a mistake
there cannot hide here.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import math
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from userdp.checker import work
from userdp.checker.work import Problem as Problem

# The sizes that a report may have are those of audits, so that none is written that cannot be checked. `userdp.audit`
# has the same numbers in its own code; tests/checker/test_checker_limits.py compares them.
MAX_DATASETS = 2_000_000
"""Datasets of an audit, users of a dataset, and examples of all values of a user."""
MAX_PAIRS = 200_000_000
"""Unordered pairs of neighboring datasets."""
MAX_PMF_PAIRS = 5_000_000
"""Distinct pairs of pmfs that neighbors have."""
MAX_USERS = 20 * MAX_DATASETS
"""Users of all datasets together, for the engines that list them."""
MAX_SUMS = 50 * MAX_DATASETS
"""Additive engine: sums of a total and a statistic, for all numbers of users."""
MAX_STEPS = 100_000_000
"""Additive engine: steps between values of a user, and totals times pairs of statistics that a step connects."""
MOST_BITS = 2048
"""Of an integer, and of both parts of a Fraction, among users' values and outputs."""
MOST_DEPTH = 32
"""Of tuples in tuples there."""
MOST_SIZE = 1 << 20
"""Of one value of a user: parts and characters."""
COMPLETE_PAIRS = 1_000_000
"""Reports on more pairs hold a sample of them."""
SAMPLE_SIZE = 2_000
"""Pairs of a sample, and pairs that a check with the mechanism draws for itself."""
ALL_DATASETS = 100_000
"""With at most so many datasets, the digests of a sample are computed again from the mechanism."""
ALL_ORDERS = 10_000
"""Datasets in every order of their users: with more, a declared symmetry is tried on drawn ones."""
MOST_SUM_BITS = 2**31
"""Of the terms of a sum, over their common denominator."""

MOST_DIGITS = 2**17
"""Characters of a fraction. Reading one takes its square, a quarter of a second at most."""
USES = 12
"""How often a fraction is taken to be computed with, and paid for when it is read."""

BLOCK_DIGITS = 4000
"""Python refuses to read and write longer integers in decimal, and exact masses may need them."""
_BLOCK = 10**BLOCK_DIGITS
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)E(0|-?[1-9][0-9]*)|-?Infinity|NaN", re.ASCII)
_DECIMAL_NAN = Decimal("NaN")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FRACTION = re.compile(r"(-?)(0|[1-9][0-9]*)(?:/([1-9][0-9]*))?", re.ASCII)


def need(condition: bool, problem: str) -> None:
    if not condition:
        raise Problem(problem)


def canonical_digest(value: Any) -> str:
    """SHA-256, in hex, of the canonical JSON of a value."""
    return hashlib.sha256(text_of(value).encode("ascii")).hexdigest()


def text_of(value: Any) -> str:
    """The canonical JSON of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def parsed(text: str) -> Any:
    """JSON in which nothing can be written in two ways: no member twice, no number but integers, no NaN."""
    return json.loads(
        text,
        object_pairs_hook=_members,
        parse_float=_no_number,
        parse_constant=_no_number,
        parse_int=_integer,
    )


def _members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    need(len(found) == len(members), "a JSON object names one member twice")
    return found


def _no_number(text: str) -> None:
    raise Problem(f"{text:.40} is a number that no report has: numbers are integers, or strings of a stated form")


def _integer(text: str) -> int:
    need(text != "-0", "-0 is another way to write 0")
    work.afford(len(text) <= 4300, "an integer has over 4300 digits")  # what Python itself reads
    return int(text)


def rising(numbers: Sequence[int]) -> bool:
    """Whether each is above the one before; without a set, which hashes of somebody's choice make slow."""
    return all(before < after for before, after in itertools.pairwise(numbers))


def count(value: Any, name: str, least: int = 0) -> int:
    need(type(value) is int and value >= least, f"{name} must be an integer >= {least}")
    return int(value)


def fraction(text: Any) -> Fraction:
    """The fraction that "n" or "n/d" is in lowest terms."""
    match = _FRACTION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise Problem(f"{text!r:.60} is not a fraction written as 'n' or 'n/d'")
    work.afford(len(text) <= MOST_DIGITS, f"a fraction has over {MOST_DIGITS} characters; round it to fewer digits")
    work.spend(5000 + 0.007 * USES * len(text) ** 2, "numbers of fewer digits take less")
    sign, top, bottom = match.groups()
    denominator = _natural(bottom or "1")
    value = Fraction(_natural(top), denominator)
    one_way = value.denominator == denominator and bottom != "1" and (top != "0" or not sign)
    need(one_way, f"{text!r:.60} is not a fraction in lowest terms")
    return -value if sign else value


def denominators(numbers: Iterable[Fraction]) -> set[int]:
    """Those of some fractions."""
    return work.spread(found for found, _ in itertools.groupby(sorted(number.denominator for number in numbers)))


def summed(numbers: Iterable[Fraction]) -> Fraction:
    """The sum, over one denominator: adding fractions one by one takes long where their denominators differ."""
    terms, bottom = list(numbers), 1
    for denominator in denominators(terms):
        work.spend(3 * work.product(bottom.bit_length(), denominator.bit_length()))
        bottom = math.lcm(bottom, denominator)
        work.afford(
            bottom.bit_length() * len(terms) <= MOST_SUM_BITS, "the common denominator of a sum is too long to check"
        )
    wide = max((max(map(int.bit_length, term.as_integer_ratio())) for term in terms), default=0)
    work.spend(len(terms) * 2 * work.product(bottom.bit_length(), wide) + work.product(bottom.bit_length()))
    return Fraction(sum(term.numerator * (bottom // term.denominator) for term in terms), bottom)


def fraction_text(value: Fraction) -> str:
    """Write a fraction >= 0."""
    top = _digits(value.numerator)
    return top if value.denominator == 1 else f"{top}/{_digits(value.denominator)}"


def _digits(number: int) -> str:
    blocks: list[str] = []
    while number >= _BLOCK:
        number, last = divmod(number, _BLOCK)
        blocks.append(f"{last:0{BLOCK_DIGITS}d}")
    return "".join([str(number), *reversed(blocks)])


def _natural(digits: str) -> int:
    value = 0
    for start in range(0, len(digits), BLOCK_DIGITS):
        block = digits[start : start + BLOCK_DIGITS]
        value = value * 10 ** len(block) + int(block)
    return value


def hex_float(text: Any) -> float:
    """The float that float.hex() writes so; zero without a sign, and no NaN."""
    value = _signed_float(text)
    need(not math.isnan(value), "nan is no number, which every float of a report is")
    need(text != "-0x0.0p+0", "-0x0.0p+0 is another way to write 0x0.0p+0")
    return value


def _signed_float(text: Any) -> float:
    if not isinstance(text, str) or float.fromhex(text).hex() != text:
        raise Problem(f"{text!r:.60} is not a float as float.hex() writes it")
    return float.fromhex(text)


# Values of users and outputs -------------------------------------------------------------------------------


def decode(encoded: Any, stand_in: Callable[[str], Any] | None = None, depth: int = 0) -> Any:
    """The value of an encoding; `Problem` for what no value is encoded as.

    What is left of an object is its text: an object again with `stand_in`, and otherwise a problem.
    """
    work.afford(depth <= MOST_DEPTH, f"a value is nested over {MOST_DEPTH} deep")
    if encoded is None or type(encoded) in (bool, int):
        _check_bits(encoded or 0)
        return encoded
    if isinstance(encoded, str):
        need(not _SURROGATE.search(encoded), f"{encoded!r:.60} encodes no text: it has surrogates")
        return encoded
    if isinstance(encoded, list):
        return tuple(decode(member, stand_in, depth + 1) for member in encoded)
    if not isinstance(encoded, dict) or len(encoded) != 1:
        raise Problem(f"{encoded!r:.60} encodes no value")
    ((tag, content),) = encoded.items()
    if tag == "set":
        return _frozenset(content, stand_in, depth)
    need(isinstance(content, str) and tag in {"repr", *_OF_TEXT}, f"{encoded!r:.60} encodes no value")
    if tag != "repr":
        try:
            return _OF_TEXT[tag](content)
        except Problem:
            raise
        except (ArithmeticError, ValueError):
            raise Problem(f"{encoded!r:.60} is not how a value is encoded") from None
    if stand_in is not None:
        return stand_in(content)
    raise Problem(f"the stored value {content!r:.60} is no value of users: no object is left of it")


def size_of(value: Any) -> int:
    """Parts and characters of a value."""
    if isinstance(value, (tuple, frozenset)):
        return 1 + sum(map(size_of, value))
    characters = value.as_tuple().digits if isinstance(value, Decimal) else value
    return 1 + len(characters) if isinstance(characters, (str, bytes, tuple)) else 1


def _check_bits(number: int) -> None:
    work.afford(number.bit_length() <= MOST_BITS, f"a number among the values has over {MOST_BITS} bits")


def _fraction(text: str) -> Fraction:
    value = fraction(text)
    _check_bits(value.numerator)
    _check_bits(value.denominator)
    return value


def _frozenset(content: Any, stand_in: Callable[[str], Any] | None, depth: int) -> frozenset[Any]:
    if not isinstance(content, list):
        raise Problem(f"{content!r:.60} encodes no set")
    texts = list(map(text_of, content))
    members = frozenset(work.spread(decode(member, stand_in, depth + 1) for member in content))
    need(texts == sorted(set(texts)) and len(members) == len(texts), f"{texts[:3]!r:.60} encodes no set")
    return members


def _float(text: str) -> float:
    value = _signed_float(text)
    return math.nan if math.isnan(value) else value


def _text(digits: str) -> str:
    value = _bytes(digits).decode("utf-8", "surrogatepass")
    need(_SURROGATE.search(value) is not None, f"{digits!r:.60} encodes a text that is encoded as itself")
    return value


def _bytes(digits: str) -> bytes:
    value = bytes.fromhex(digits)
    need(value.hex() == digits, f"{digits!r:.60} are not bytes in lower-case hexadecimal digits")
    return value


def _decimal(text: str) -> Decimal:
    need(_DECIMAL.fullmatch(text) is not None, f"{text!r:.60} is not how a Decimal is encoded")
    return _DECIMAL_NAN if text == "NaN" else Decimal(text)


def _date(text: str) -> datetime.date:
    value = datetime.date.fromisoformat(text)
    need(value.isoformat() == text, f"{text!r:.60} is not how a date is encoded")
    return value


def _datetime(text: str) -> datetime.datetime:
    value = datetime.datetime.fromisoformat(text)
    need(value.tzinfo is None and value.isoformat() == text, f"{text!r:.60} is not how a time is encoded")
    return value


def _uuid(digits: str) -> uuid.UUID:
    need(len(_bytes(digits)) == 16, f"{digits!r:.60} is not how a UUID is encoded")
    return uuid.UUID(hex=digits)


_OF_TEXT: dict[str, Callable[[str], Any]] = {
    "float": _float,
    "fraction": _fraction,
    "text": _text,
    "bytes": _bytes,
    "decimal": _decimal,
    "date": _date,
    "datetime": _datetime,
    "uuid": _uuid,
}
