"""Patterns of texts, matched in time linear in the text: a small part of regular expressions, run by the core.

Python's `re` goes back and tries again, so one user's text can keep it busy for ever. The core follows all states of a
pattern at once, and looks at a character of a text once.
"""

from __future__ import annotations

from collections.abc import Sequence

from userdp import _core
from userdp.exact.numbers import short_repr
from userdp.users.values import Mask

_LONGEST = 10_000


class Pattern:
    r"""A public pattern that whole texts are compared with, in time linear in the text.

    Parameters
    ----------
    pattern : str
        Characters stand for themselves; ``.`` for any, ``[a-z_]`` and ``[^0-9]`` for sets, ``\d``, ``\w`` and ``\s``
        for digits, letters and white space of ASCII, capitals of these for all else; ``|`` parts alternatives, brackets
        group, and ``*``, ``+``, ``?``, ``{2}``, ``{2,}`` and ``{2,5}`` repeat. There are no references back, no looks
        around and no anchors. With repetitions written out there are at most 1000 characters, and the automaton needs
        at most 32 MiB: sets of very many ranges are not repeated very often.

    Examples
    --------
    >>> postcode = Pattern(r"[A-Z]{1,2}\d+ .*")
    >>> postcode.matches("EC1 London"), postcode.matches("London EC1")
    (True, False)
    """

    def __init__(self, pattern: str) -> None:
        if not isinstance(pattern, str):
            raise TypeError(f"match: pattern must be a text; got a {type(pattern).__name__}")
        if len(pattern) > _LONGEST:
            raise ValueError(f"match: pattern must have at most {_LONGEST} characters; got {len(pattern)}")
        try:
            self._core = _core.Pattern([ord(letter) for letter in pattern])
        except ValueError as error:
            raise ValueError(f"match: pattern {short_repr(pattern)}, {error}") from None
        self._text = pattern

    def __reduce__(self) -> tuple[type[Pattern], tuple[str]]:
        return type(self), (self._text,)

    def matches(self, text: str) -> bool:
        """Whether the whole text is as the pattern says."""
        return bool(self._core.matches([text])[0])

    def matches_each(self, texts: Sequence[str]) -> Mask:
        """Whether each whole text is as the pattern says."""
        return self._core.matches(texts)
