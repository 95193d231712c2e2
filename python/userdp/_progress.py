"""Progress bars: none for short work, tqdm where it is installed and somebody looks at the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

__all__ = ["Progress", "ProgressCallback", "progress_bar"]

Progress: TypeAlias = "bool | Callable[[int, int], object] | None"
ProgressCallback: TypeAlias = Callable[[int, int], object]

DELAY_SECONDS = 2.0


@contextmanager
def progress_bar(wish: Progress, description: str) -> Iterator[ProgressCallback]:
    """Yield a callback (done, total).

    Parameters
    ----------
    wish : bool, callable or None
        A callable is called itself; None shows a bar on a terminal when the work takes over two seconds; True shows
        it at once wherever stderr goes; False never. Bars need tqdm.
    description : str
        What is being done.
    """
    if callable(wish):
        yield wish
        return
    if wish is not None and not isinstance(wish, bool):
        raise TypeError(f"progress must be a bool, None or a callable (done, total); got {wish!r}")
    bar = None if wish is False else _tqdm(wish, description)
    if bar is None:
        yield lambda done, total: None
        return
    try:

        def update(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield update
    finally:
        bar.close()


def _tqdm(wish: bool | None, description: str) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    # disable=None is tqdm's word for "unless stderr is a terminal".
    shown = {"disable": False, "delay": 0.0} if wish else {"disable": None, "delay": DELAY_SECONDS}
    return tqdm(total=0, desc=description, leave=False, **shown)
