"""Where random draws come from: the operating system, or an integer for tests."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from userdp._numbers import is_integer, shown
from userdp.exceptions import InsecureRandomnessWarning

if TYPE_CHECKING:
    from userdp import _core

__all__ = ["source_of"]


def source_of(random_state: Any, *, stacklevel: int = 3) -> _core.Source:
    """Read ``random_state``.

    Parameters
    ----------
    random_state : None or int
        None draws from the operating system's cryptographic generator. An integer in [0, 2**256) is the key of a
        ChaCha20 stream: reproducible, for tests only.
    stacklevel : int
        The frame that a warning is about: 3 for the caller of the function that calls this one.

    Returns
    -------
    _core.Source

    Raises
    ------
    TypeError, ValueError
        For anything else.

    Warns
    -----
    InsecureRandomnessWarning
        For an integer: who knows it can undo the privacy of the draws.
    """
    from userdp import _core

    if random_state is None:
        return _core.Source()
    if not is_integer(random_state):
        kind = type(random_state).__name__
        raise TypeError(f"random_state must be None or an int in [0, 2**256); got {shown(random_state)} of type {kind}")
    seed = int(random_state)
    if not 0 <= seed < 2**256:
        raise ValueError(f"random_state must be None or an int in [0, 2**256); got {shown(random_state)}")
    warnings.warn(
        f"random_state={shown(random_state)} makes the draws reproducible, so they protect nobody; "
        "leave it out (None) for a release",
        InsecureRandomnessWarning,
        stacklevel=stacklevel,
    )
    return _core.Source(seed)
