"""One report of one client, however many copies the client has."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


class OneReport:
    """The right to report once. Copies within the process share it; it never comes to another process.

    Examples
    --------
    >>> right = OneReport()
    >>> right.use(), right.use()
    (True, False)
    """

    # What is made by `copy` is the right itself. A right that has been used is pickled as such, and one that has not is
    # not pickled: each copy could be used once. A process that was forked cannot know what its parent did, and has
    # none.

    def __init__(self, used: bool = False) -> None:
        self._used = used
        self._process = os.getpid()
        self._lock = threading.Lock()

    def use(self) -> bool:
        """True for the first caller; of threads that call at the same time, for one."""
        if self._process != os.getpid():  # asked first: the lock may have been held when the process was forked
            return False
        with self._lock:
            first = not self._used
            self._used = True
            return first

    def __copy__(self) -> OneReport:
        return self

    def __deepcopy__(self, memo: object) -> OneReport:
        return self

    def __reduce__(self) -> tuple[Callable[[bool], OneReport], tuple[bool]]:
        if not self._used:
            raise TypeError(
                "a client that has not reported is not saved or sent: each copy could report once; send the protocol, "
                "and make the client where it reports"
            )
        return OneReport, (True,)
