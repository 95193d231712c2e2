"""The output distribution of a sampler, by running it on all of its randomness, the most probable first.

A sampler draws uniform integers: bits, multiples of 2^-53, dice. What is known of a drawn integer is an interval. A
run follows a *path*, the cuts of intervals that were taken so far; when the program needs to know more, the run is
stopped and its path goes on in two ways, with exact probabilities. So a finished run has an exact mass, and what is not
finished is known as a total: docs/proofs/sampler_laws.md.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

from userdp.algorithms.outputs import class_name, with_arrows, with_causes
from userdp.exact.encoding import ACCEPTED, UnknownValue, Unreadable, code_of, decode, printable
from userdp.exact.numbers import is_integer, short_repr

MOST_SIZE_BITS = 4096
"""Of one drawn integer."""
MOST_TEXT = 200
"""Characters of the message of an exception that are shown."""
UNREAD = "with a message that cannot be read"
REPLAYS = 1024
"""Finished runs of a law that are run again on numbers in place of stand-ins, besides all that raised."""


class Stopped(BaseException):
    """Ends a run. It is no Exception, since the program under audit may catch those."""


class Step(NamedTuple):
    """Of the draw of this number, known to be in range(low, high): it is in range(start, end)."""

    number: int
    low: int
    high: int
    start: int
    end: int

    @property
    def share(self) -> Fraction:
        """Its probability, given what was known before."""
        return Fraction(self.end - self.start, self.high - self.low)


Path = tuple[Step, ...]


class Source:
    """One uniform integer below a size, of which an interval is known."""

    __slots__ = ("_draws", "high", "low", "number")

    def __init__(self, draws: Draws, number: int, size: int) -> None:
        self._draws, self.number, self.low, self.high = draws, number, 0, size

    def cut(self, find: Callable[[], int], fits: Callable[[int], bool]) -> None:
        """Learn on which side of a cut the integer is: that of `find`, which `fits` knows again."""
        self.low, self.high = self._draws.side(self.number, self.low, self.high, find, fits)

    @property
    def given(self) -> int | None:
        """The integer where nobody has to find it out."""
        return self.low if self._draws.numbers_are_given else None

    def settle(self) -> int:
        """The integer itself."""
        self.low = self._draws.settled(self.number, self.low, self.high)
        self.high = self.low + 1
        return self.low


class Draws:
    """The randomness of one run: a path that is written, and a stop where it ends; or numbers that are given."""

    def __init__(self, path: Path, given: Sequence[int] | None = None) -> None:
        self._path, self._at, self._given = path, 0, given
        self._known: list[Source | int] = []
        self.more: tuple[Step, Step, bool] | None = None
        """Both ways to go on where the run was stopped, and whether the integer itself was asked for."""
        self.restarted = False
        self.refusal: str | None = None
        self.stopped = False

    def source(self, size: int) -> Source:
        """A new uniform integer below a size."""
        number = self._number(size)
        source = Source(self, number, size)
        if self._given is not None:
            source.low, source.high = self._given[number], self._given[number] + 1
        self._known[number] = source
        return source

    def integer(self, size: int) -> int:
        """A uniform integer below a size, itself."""
        number = self._number(size)
        value = self.settled(number, 0, size) if self._given is None else self._given[number]
        self._known[number] = value
        return value

    def _number(self, size: int) -> int:
        if size.bit_length() > MOST_SIZE_BITS + 1:
            self.refuse(f"the mechanism draws an integer of over {MOST_SIZE_BITS} bits at once")
        number = len(self._known)
        if self._given is not None and (number >= len(self._given) or self._given[number] >= size):
            self.refuse(NO_FUNCTION)
        self._known.append(0)
        return number

    @property
    def numbers_are_given(self) -> bool:
        """Whether this run has numbers in place of stand-ins."""
        return self._given is not None

    def numbers(self) -> list[tuple[int, int]] | None:
        """What is known of the integers at the end of a run, if a stand-in was among them."""
        if not any(isinstance(one, Source) for one in self._known):
            return None
        return [(one.low, one.high) if isinstance(one, Source) else (one, one + 1) for one in self._known]

    def settled(self, number: int, low: int, high: int) -> int:
        """The draw of this number in range(low, high), by halves."""
        path, at = self._path, self._at
        while high - low > 1:
            if at == len(path) or self.stopped:
                middle, self._at = (low + high) // 2, at
                self._stop(Step(number, low, high, low, middle), Step(number, low, high, middle, high), True)
            same, least, most, start, end = path[at]
            at += 1
            if same != number or least != low or most != high:
                self.refuse(NO_FUNCTION)
            low, high = start, end
        self._at = at
        return low

    def side(
        self, number: int, low: int, high: int, find: Callable[[], int], fits: Callable[[int], bool]
    ) -> tuple[int, int]:
        """The part of range(low, high) with the draw of this number, on one side of a cut."""
        if self._at == len(self._path) or self.stopped:
            cut = low if self.stopped else find()
            self._stop(Step(number, low, high, low, cut), Step(number, low, high, cut, high), False)
        step = self._path[self._at]
        self._at += 1
        inner = step.start if step.start > low else step.end
        if step[:3] != (number, low, high) or not fits(inner):
            self.refuse(NO_FUNCTION)
        return step.start, step.end

    def _stop(self, below: Step, above: Step, itself: bool) -> NoReturn:
        if not self.stopped:
            self.more, self.stopped = (below, above, itself), True
        raise Stopped

    def restart(self) -> NoReturn:
        """The mechanism is where it was at its start, with nothing kept."""
        if not self.stopped:
            self.restarted = self.stopped = True
        raise Stopped

    def refuse(self, reason: str) -> NoReturn:
        """End the audit: no law can be found."""
        self.refusal, self.stopped = self.refusal or reason, True
        raise Stopped

    @property
    def unread(self) -> bool:
        return self._at < len(self._path)


NO_FUNCTION = (
    "the mechanism is no function of the dataset and its random bits: run again with the same bits, it asked for "
    "others. It keeps something between calls, or has other randomness"
)
SWALLOWED = (
    "the mechanism goes on after the exception that interrupts a run, so it catches BaseException or returns from a "
    "`finally`; let it pass"
)


_NOTHING = object()
"""No output of anything."""


class Bits:
    """What a mechanism is given as ``bits``: ``bits(k)`` is a uniform integer of k bits."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws

    def __call__(self, k: int) -> int:
        """A uniform integer in [0, 2^k)."""
        return self._draws.integer(self._size(k))

    def _size(self, k: int) -> int:
        if type(k) is not int and not is_integer(k):
            raise TypeError(f"bits(k) needs an int k >= 0; got {short_repr(k)}")
        if k < 0:
            raise ValueError(f"bits(k) needs an int k >= 0; got {short_repr(k)}")
        return 1 << min(int(k), MOST_SIZE_BITS + 1)

    def restart(self) -> NoReturn:
        """Say that all state is as at the start, as a loop does that draws again what it has rejected."""
        self._draws.restart()


class Outputs:
    """The outputs that were found, numbered in the order of their first appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.values: list[Any] = []
        self.errors: dict[int, BaseException] = {}
        """Of outputs that are exceptions, the first one."""

    def number_of(self, output: Any) -> int:
        try:
            code = code_of(output)
        except UnknownValue as error:
            raise TypeError(
                f"mechanism: an output {error}; accepted are {ACCEPTED}. Return a tuple or a text of it"
            ) from None
        return self._number(repr(code), lambda: decode(code))

    def raised(self, error: BaseException, message: str) -> int:
        """What a mechanism raises is an output; whoever sees the exception sees its message too."""
        text = f"raises {message}"
        number = self._number(f"raises {text}", lambda: Unreadable(text))
        self.errors.setdefault(number, error)
        return number

    def code_at(self, number: int) -> str:
        """What other processes call the output of a number."""
        return tuple(self._numbers)[number]

    def _number(self, key: str, value: Callable[[], Any]) -> int:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.values)
            self.values.append(value())
        return found


def _message(error: BaseException) -> str:
    """What is printed of an exception: its class, message and notes, and those of what it came from."""
    parts = []
    for cause in with_causes(error):
        text = str(cause)
        parts.append(f"{class_name(type(cause))}: {_shown(text)}" if text else class_name(type(cause)))
        parts += [f"note {_shown(str(note))}" for note in getattr(cause, "__notes__", ())]
    return with_arrows(parts)


def _shown(text: str) -> str:
    """A text; what cannot be shown in full has its digest, so that no two become one."""
    shown = printable(text)[:MOST_TEXT]
    if shown == text != UNREAD:
        return shown
    return f"{shown} (SHA-256 {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()})"


@dataclass(frozen=True)
class Ends:
    """Of a path at whose end an integer in range(low, high) is needed: the outputs for some of these."""

    step: Step
    first: int
    last: int


class Exhaustion:
    """The law of a mechanism on one dataset, as far as it is known.

    Parameters
    ----------
    run : callable
        ``draws -> output``: one run of the mechanism on the dataset.
    outputs : Outputs
        Shared by all datasets of an audit.
    monotone : bool
        Whether the output only rises, or only falls, with a drawn number that is asked for itself.
    """

    def __init__(self, run: Callable[[Draws], Any], outputs: Outputs, *, monotone: bool = False) -> None:
        self._run, self._outputs, self._monotone = run, outputs, monotone
        self._order = itertools.count()
        # The most probable first. Floats only order the work; masses that underflow come last.
        self._waiting: list[tuple[float, int, Fraction, Path, Ends | None]] = []
        self._push(Fraction(1), (), None)
        self.masses: dict[int, Fraction] = {}
        self.again = Fraction(0)
        """The mass of runs that start again."""
        self.left = Fraction(1)
        """The mass of what is not explored."""
        self.runs = 0
        self._first: tuple[Path, int] | None = None
        self._replays = 0

    @property
    def finished(self) -> bool:
        return not self._waiting

    @property
    def most_runs(self) -> int:
        """How often one step may run the mechanism."""
        return 3 if self._monotone else 1

    @property
    def unexplored(self) -> Fraction:
        """How much of the law's mass is not known, of 1."""
        return self.left / (1 - self.again)

    def law(self) -> dict[int, Fraction]:
        """The masses that outputs have at least, given that the last round does not start again."""
        whole = 1 - self.again
        return {output: mass / whole for output, mass in self.masses.items()}

    def step(self) -> None:
        """Go on with the most probable path."""
        _, _, mass, path, ends = heapq.heappop(self._waiting)
        if ends is not None:
            self._between(mass, path, ends)
            return
        found = self._output(path)
        if isinstance(found, int):
            self._found(mass, path, found)
        elif found is None:
            self.again += mass
            self.left -= mass
            if self.again == 1:
                raise ValueError("the mechanism starts again on every path, so it has no output")
        else:
            low, high, itself = found
            if itself and self._monotone:
                whole = low._replace(end=low.high)
                first, last = self._at(path, whole, whole.start), self._at(path, whole, whole.end - 1)
                if first is not None and last is not None:
                    self._push(mass, path, Ends(whole, first, last))
                    return
            for way in (low, high):
                self._push(mass * way.share, (*path, way), None)

    def _between(self, mass: Fraction, path: Path, ends: Ends) -> None:
        """Credit an interval with equal outputs at both ends, or halve it."""
        if ends.first == ends.last:
            self._found(mass, (*path, ends.step._replace(end=ends.step.start + 1)), ends.first)
            return
        start, end = ends.step.start, ends.step.end
        middle = (start + end) // 2
        below = ends.first if middle - start == 1 else self._at(path, ends.step, middle - 1)
        above = ends.last if end - middle == 1 else self._at(path, ends.step, middle)
        halves = ends.step._replace(end=middle), ends.step._replace(start=middle)
        for half, sides in zip(halves, ((ends.first, below), (above, ends.last)), strict=True):
            share = mass * Fraction(half.end - half.start, end - start)
            if sides[0] is None or sides[1] is None:
                self._push(share, (*path, half), None)
            else:
                self._push(share, path, Ends(half, sides[0], sides[1]))

    def _at(self, path: Path, step: Step, value: int) -> int | None:
        """The output for one value of the integer; None when more has to be drawn."""
        found = self._output((*path, step._replace(start=value, end=value + 1)))
        return found if isinstance(found, int) else None

    def _push(self, mass: Fraction, path: Path, ends: Ends | None) -> None:
        heapq.heappush(self._waiting, (-float(mass), next(self._order), mass, path, ends))

    def _found(self, mass: Fraction, path: Path, output: int) -> None:
        self.masses[output] = self.masses.get(output, Fraction(0)) + mass
        self.left -= mass
        if self._first is None:
            self._first = path, output

    @property
    def first(self) -> tuple[Path, str] | None:
        """The first finished path, and the code of its output."""
        return None if self._first is None else (self._first[0], self._outputs.code_at(self._first[1]))

    def along(self, path: Path) -> str:
        """The code of the output at the end of a path, or why there is none."""
        try:
            found = self._output(path)
        except ValueError as error:
            return f"refused: {error}"
        return self._outputs.code_at(found) if isinstance(found, int) else "goes on"

    def check_again(self, at_first: Callable[[Draws], Any]) -> None:
        """Run the first finished path once more, and by a copy from before all calls.

        A mechanism that remembers its calls may answer otherwise.
        """
        if self._first is None:
            return
        path, output = self._first
        answers = [self._output(path)]
        usual, self._run = self._run, at_first
        answers.append(self._output(path))
        self._run, self.runs = usual, self.runs - 1  # no run of the mechanism itself
        if answers != [output, output]:
            raise ValueError(
                "the mechanism is no function of the dataset and its random bits: run again with the same bits, it "
                "gave another output. It keeps something between calls, or has other randomness"
            )

    def _output(self, path: Path) -> int | tuple[Step, Step, bool] | None:
        """Run along a path: the output's number, both ways to go on, or None when the run starts again."""
        self.runs += 1
        draws = Draws(path)
        found = self._outcome(draws)
        if isinstance(found, int):
            self._check_stand_ins(draws, found)
        return found

    def _outcome(self, draws: Draws) -> int | tuple[Step, Step, bool] | None:
        """What a run comes to."""
        output: Any = _NOTHING
        error: BaseException | None = None
        said, ended = "", False
        try:
            output = self._run(draws)
            ended = True
        except Stopped:  # of these draws, or of those of another run, which the mechanism has kept
            ended = not draws.stopped
        except MemoryError:
            raise
        except (Exception, SystemExit) as raised:
            error, ended = raised, True
            try:  # a message may hold a stand-in for a drawn number
                said = _message(raised)
            except Stopped:
                ended = not draws.stopped
            except Exception:
                said = f"{class_name(type(raised))}: {UNREAD}"
        if draws.refusal is not None:
            raise ValueError(draws.refusal)
        if ended and draws.stopped:
            raise ValueError(SWALLOWED)
        if draws.unread or (ended and error is None and output is _NOTHING):
            raise ValueError(NO_FUNCTION)
        if draws.stopped:
            return draws.more
        return self._outputs.number_of(output) if error is None else self._outputs.raised(error, said)

    def _check_stand_ins(self, draws: Draws, found: int) -> None:
        """Run again on numbers that the run would have seen: what takes them must not tell them from stand-ins."""
        known = draws.numbers()
        if known is None or (self._replays >= REPLAYS and found not in self._outputs.errors):
            return
        self._replays += 1
        again = Draws((), [high - 1 if self._replays % 2 else low for low, high in known])
        if self._outcome(again) != found:
            raise ValueError(
                "the mechanism does something else with a drawn number than with the stand-in for it: it asks for "
                "type(x), or hands x to compiled code that does; write float(x) or int(x) there"
            )
