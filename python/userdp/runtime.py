"""What every package needs of its surroundings: random bits, progress bars, sizes of draws, optional packages."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from userdp.exact.numbers import is_integer, short_repr
from userdp.exceptions import InsecureRandomnessWarning

if TYPE_CHECKING:
    from userdp import _core


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the line outside this package that led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "userdp":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def source_of(random_state: Any) -> _core.Source:
    """Read ``random_state``: None for the system's generator, or the key of a ChaCha20 stream in [0, 2**256)."""
    from userdp import _core

    if random_state is None:
        return _core.Source()
    if not is_integer(random_state):
        kind = type(random_state).__name__
        raise TypeError(
            f"random_state must be None or an int in [0, 2**256); got {short_repr(random_state)} of type {kind}"
        )
    seed = int(random_state)
    if not 0 <= seed < 2**256:
        raise ValueError(f"random_state must be None or an int in [0, 2**256); got {short_repr(random_state)}")
    warn(
        f"random_state={short_repr(random_state)} makes the draws reproducible, so they protect nobody; "
        "leave it out (None) for a release",
        InsecureRandomnessWarning,
    )
    return _core.Source(seed)


Progress: TypeAlias = "bool | Callable[[int, int], object] | None"
ProgressCallback: TypeAlias = Callable[[int, int], object]

DELAY_SECONDS = 2.0


@contextmanager
def progress_bar(wish: Progress, description: str) -> Iterator[ProgressCallback]:
    """Yield a callback (done, total): a bar on a terminal after two seconds (None), at once (True), never (False)."""
    if callable(wish):
        yield wish
        return
    if wish is not None and not isinstance(wish, bool):
        raise TypeError(f"progress must be a bool, None or a callable (done, total); got {wish!r}")
    if wish is False:
        yield lambda done, total: None
        return
    bar = _Bar(wish, description)
    if wish:
        bar.open()
    try:
        yield bar.update
    finally:
        bar.close()


class _Bar:
    """A bar that is made when there is something to show: to make one takes longer than most calls."""

    def __init__(self, wish: bool | None, description: str) -> None:
        self._wish, self._description, self._start = wish, description, time.monotonic()
        self._bar: Any = None
        self._missing = False

    def open(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._missing = True
            return
        if self._wish:
            options: dict[str, Any] = {"disable": False, "delay": 0.0}
        else:
            # disable=None is tqdm's word for "unless stderr is a terminal".
            waited = time.monotonic() - self._start
            options = {"disable": None, "delay": max(DELAY_SECONDS - waited, 0.0)}
        self._bar = tqdm(total=0, desc=self._description, leave=False, **options)

    def update(self, done: int, total: int) -> None:
        if self._bar is None and not self._missing:
            self.open()
        if self._bar is not None:
            self._bar.total = total
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def shape_of(size: Any) -> tuple[int, ...]:
    """Read ``size``: an int >= 0, or a tuple of these."""
    lengths = size if isinstance(size, tuple) else (size,)
    for length in lengths:
        if not is_integer(length):
            raise TypeError(f"size must be None, an int >= 0 or a tuple of these; got {short_repr(size)}")
        if length < 0:
            raise ValueError(f"size must be None, an int >= 0 or a tuple of these; got {short_repr(size)}")
    return tuple(int(length) for length in lengths)


def number_of(shape: tuple[int, ...]) -> int:
    """How many draws an array of this shape holds; the core refuses too many, and what is beyond its integers is."""
    return min(math.prod(shape), sys.maxsize)


def loader(
    package: str, modules: Mapping[str, str], *, needs: str, distribution: str, extra: str
) -> Callable[[str], Any]:
    """A ``__getattr__`` for a package, which imports the module that has a name.

    Parameters
    ----------
    package : str
        The package that it is for.
    modules : mapping from str to str
        The names, and the module of the package that each is in.
    needs, distribution, extra : str
        The package without which these modules cannot be imported, what it is called where it is installed from, and
        the extra of userdp that installs it.

    Returns
    -------
    callable
        From a name to what it stands for. It raises AttributeError for other names, and ImportError where the package
        is missing.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = import_module(f"{package}.{modules[name]}")
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != needs:
                raise
            raise ImportError(f"{package}.{name} needs {distribution}: pip install 'userdp[{extra}]'") from None
        return getattr(module, name)

    return load
