"""Changes that keep most of an input's form: of parsed JSON, and of the numbers and words in it."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

WHOLE = (0, 1, 2, 3, -1, 2**31, 2**53, 2**63, 2**64, 10**30, True, False, None)
WORDS = (
    *("0", "1", "1/2", "2/4", "-1", "-0", "01", "1/0", "1e5", "1.0", "inf", "nan", "", "ln(2)", "٣", "\ud800", "\0"),
    *("0x0.0p+0", "-0x0.0p+0", "0x1.0000000000000p+0", "0x1p0", "9" * 50, "1/" + "9" * 40, "7" * 5000, "1" + "0" * 400),
)
RAW = ("1.0", "-0", "NaN", "1e400", "Infinity", "9" * 5000, "[" * 2000, '{"a": 1, "a": 1}', "", "}", "\ufeff")


def _number(text: str, source: random.Random) -> str:
    """Another fraction, mostly a near one."""
    value = Fraction(text)
    step = Fraction(1, value.denominator * source.choice((1, 1, 10, 10**12)))
    near = (value + step, abs(value - step), value * 2, value / 2, 1 - value, 1 / (value or 1), Fraction(1), -value)
    return str(source.choice(near[: source.choice((4, 7, 8))]))


def _leaf(value: Any, source: random.Random) -> Any:
    """Another number or word, mostly of the same kind."""
    if source.random() < 0.08:
        return source.choice((*WHOLE, *WORDS, [], {}, [[]]))
    if isinstance(value, bool):
        return source.choice((not value, None))
    if isinstance(value, int):
        return source.choice((value + 1, abs(value - 1), 2 * value, source.randrange(4), source.choice(WHOLE)))
    if isinstance(value, float):
        return source.choice((value + 1, -value, value * 2, value / 2, 1e300, 0.1))
    if not isinstance(value, str):
        return source.choice((*WHOLE, "1"))
    if re.fullmatch(r"-?[0-9]+(/[1-9][0-9]*)?", value) and len(value) < 3000:
        return _number(value, source)
    if re.fullmatch(r"-?0x[01]\.[0-9a-f]*p[-+][0-9]{1,3}", value):
        number = float.fromhex(value)
        return source.choice((number * (1 + source.choice((-1, 1)) * 2.0**-52), number * 2, number / 2, 0.0, 1.0)).hex()
    place = source.randrange(len(value) + 1)
    letter = source.choice("0123456789abcdefé\"'.-/ ()%")
    return source.choice((value[:place] + letter + value[place + 1 :], value[:place] + value[place + 1 :], value * 2))


def _moved(numbers: list[Any], source: random.Random) -> None:
    """Some of one entry goes to another: sums stay what they are."""
    a, b = source.sample(range(len(numbers)), 2)
    x, y = Fraction(numbers[a]), Fraction(numbers[b])
    part = x * source.choice((Fraction(1, 2), Fraction(1), Fraction(1, max(1, x.numerator))))
    numbers[a], numbers[b] = str(x - part), str(y + part)


def changed(document: Any, source: random.Random) -> Any:
    """The document with a few changes; it may be spoilt itself."""
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        nodes: list[tuple[Any, Any]] = [([document], 0)]
        for holder, key in nodes:
            node = holder[key]
            nodes += [
                (node, k)
                for k in (node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ())
            ]
        leaves = [(h, k) for h, k in nodes if not isinstance(h[k], (dict, list))]
        holder, key = source.choice(leaves if leaves and source.random() < 0.75 else nodes)
        node = holder[key]
        if not isinstance(node, (dict, list)):
            holder[key] = _leaf(node, source)
            continue
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if (
            len(keys) > 1
            and isinstance(node, list)
            and all(isinstance(n, str) and re.fullmatch("[0-9]{1,99}(/[1-9][0-9]{0,99})?", n) for n in node)
        ):
            _moved(node, source)
        elif len(keys) > 1 and source.random() < 0.5:
            a, b = source.sample(keys, 2)
            node[a], node[b] = node[b], node[a]
        elif keys and source.random() < 0.3:
            del node[source.choice(keys)]
        elif isinstance(node, list):
            other, place = source.choice(nodes)
            new = json.loads(json.dumps(source.choice((other[place], node[source.choice(keys)] if keys else 0))))
            node.insert(source.randrange(len(node) + 1), new)
        elif keys:
            node[source.choice((*keys, "x"))] = source.choice((*WHOLE, *WORDS, node[source.choice(keys)]))
    return document


def sealed(report: dict[str, Any]) -> dict[str, Any]:
    """The report with its digest computed again."""
    content = {name: value for name, value in report.items() if name != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return content | {"digest": "sha256:" + hashlib.sha256(text.encode()).hexdigest()}


def as_bytes(text: str) -> bytes:
    """UTF-8 for texts with halves of characters too."""
    return text.encode("utf-8", "surrogatepass")


def as_text(data: bytes) -> str:
    """The inverse; what is no such text becomes another one."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def refused(error: Exception) -> bool:
    """That an input did not get past the parser, which has to say why."""
    if not str(error):
        raise AssertionError("an error without words") from error
    return False


def altered(data: bytes, source: random.Random, finish: Callable[[Any, random.Random], Any]) -> bytes:
    """JSON with a few changes, finished so that they matter; seldom a change of the text itself."""
    document = changed(json.loads(data), source)
    text = json.dumps(finish(document, source), ensure_ascii=source.random() < 0.9)
    if source.random() < 0.03:
        found = list(re.finditer(r"[0-9]+|[\[\]{},:]|\"[^\"]*\"", text))
        one = source.choice(found)
        text = text[: one.start()] + source.choice(RAW) + text[one.end() :]
    return as_bytes(text)
