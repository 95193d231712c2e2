"""One identity of what users give to finite algorithms: injective codes, and nothing shown but what they decode to."""

from __future__ import annotations

import datetime
import enum
import ipaddress
import itertools
import json
import math
import pathlib
import random
import struct
import uuid
from collections import Counter, OrderedDict, namedtuple
from decimal import Decimal
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from userdp.algorithms import AdditiveAlgorithm, SummedScoreEM, SymmetricAlgorithm, finite_algorithm
from userdp.algorithms.distributions import read_distribution, read_universe
from userdp.algorithms.finite import private_users, read_users
from userdp.audit import audit_dataset, audit_item_level, audit_pair, audit_user_level
from userdp.checker import values as checked
from userdp.delstab import BOTTOM, DelStab
from userdp.exact import encoding
from userdp.exact.encoding import (
    INTEGER_TYPES,
    MOST_BITS,
    MOST_DEPTH,
    UnknownValue,
    canonical,
    code_of,
    decode,
    encode,
    key_of,
)
from userdp.exceptions import InsecureRandomnessWarning
from userdp.item_to_user import SubsampledAlgorithm
from userdp.lddp import check_lddp
from userdp.report import AuditReport

SMALL: dict[str, Any] = {"epsilon": 8, "delta": "0.01"}


# --- an independent notion of what a value is


def identity(value: Any) -> Any:
    """What a value is, by its type and content; plain tuples and texts, compared by Python."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (np.integer, np.floating, np.bool_, np.str_, np.bytes_)):
        value = value.item()
    if isinstance(value, (list, tuple)):
        return "tuple", tuple(map(identity, value))
    if isinstance(value, frozenset):
        return "set", frozenset(map(identity, value))
    if isinstance(value, float):
        return "float", b"nan" if math.isnan(value) else struct.pack(">d", value)
    if isinstance(value, str):
        return "str", tuple(map(ord, value))
    if isinstance(value, F):
        return "Fraction", value.numerator, value.denominator
    if isinstance(value, Decimal):
        return "Decimal", "nan" if value.is_nan() else tuple(value.as_tuple())
    if isinstance(value, datetime.datetime):
        parts = value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond
        return "datetime", parts
    if isinstance(value, datetime.date):
        return "date", value.toordinal()
    if isinstance(value, uuid.UUID):
        return "UUID", value.int
    return type(value).__name__, value


TEXTS = [
    "",
    "a",
    "ab",
    "1",
    "1.0",
    "é",
    "\ud83d\ude00",
    "\U0001f600",
    "\ud83d",
    "\ude00",
    "\0",
    '"',
    "\\",
    "nan",
    "null",
]
DAYS = [datetime.date(2026, 1, 1), datetime.date.min, datetime.date.max]
PLAIN: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**53, 2**53 + 1, 2**64, -(2**64), (1 << MOST_BITS) - 1),
    *(0.0, -0.0, 1.0, 0.1, 5e-324, 1e308, math.inf, -math.inf, math.nan, float(2**53)),
    *TEXTS,
    *(b"", b"a", b"1", "a".encode("utf-16"), b"\0"),
    *(F(0), F(1), F(-1, 3), F(1, 10), F(0.1), F(2**53)),
    *map(
        Decimal,
        ["0", "-0", "1", "1.0", "1.00", "1E+2", "100", "0.1", "Infinity", "-Infinity", "NaN", "sNaN12", "1E-400"],
    ),
    *(Decimal(f"1E+{MOST_BITS}"), Decimal(f"1E-{MOST_BITS}"), Decimal("9" * 60)),
    *DAYS,
    *(datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 1, 0, 0, 0, 1), datetime.datetime.max),
    *(uuid.UUID(int=0), uuid.UUID(int=1), uuid.UUID(int=2**128 - 1)),
    *(kind(1) for kind in INTEGER_TYPES),
    *(np.longlong(3), np.int64(3), 3, np.uint64(2**64 - 1), np.float16(0.1), np.float32(0.1), np.float64(0.1)),
    *(
        np.bool_(True),
        np.bool_(False),
        np.str_("a"),
        np.str_("1"),
        np.bytes_(b"a"),
        np.float32("nan"),
        -np.float64("nan"),
    ),
    *(np.array([1, 2]), np.array([[1.5]], dtype=np.float32), np.array(["a"]), np.array([None, 1], dtype=object)),
    *((), [], ((),), frozenset(), (frozenset(),), frozenset({()})),
]


def values(count: int, seed: int) -> list[Any]:
    """Plain values, and random tuples, lists and sets of them, nested."""
    source, found = random.Random(seed), list(PLAIN)
    while len(found) < count:
        members = source.choices(found, k=source.randrange(4))
        kind = source.choice([tuple, list, tuple, frozenset])
        try:
            found.append(kind(members))
        except TypeError:  # lists and arrays are not hashable
            found.append(tuple(members))
    return found


def test_codes_are_equal_exactly_for_the_same_values() -> None:
    by_code: dict[str, Any] = {}
    by_identity: dict[Any, str] = {}
    refused = 0
    for value in values(6000, 1):
        try:
            key = key_of(value)
        except UnknownValue:  # two members that Python takes for one
            refused += 1
            continue
        own = identity(value)
        assert by_code.setdefault(key, own) == own
        assert by_identity.setdefault(own, key) == key
    assert len(by_code) > 3000
    assert refused < 100


def test_decoding_gives_the_same_value_again_in_plain_types() -> None:
    allowed = {type(None), bool, int, float, str, bytes, F, Decimal, uuid.UUID, tuple, frozenset}
    allowed |= {datetime.date, datetime.datetime}

    def plain(value: Any) -> bool:
        members = value if isinstance(value, (tuple, frozenset)) else ()
        return type(value) in allowed and all(map(plain, members))

    for value in values(3000, 2):
        try:
            code = code_of(value)
        except UnknownValue:
            continue
        stored = json.loads(json.dumps(code))
        assert stored == code
        shown = decode(stored)
        assert plain(shown)
        assert identity(shown) == identity(value)
        assert code_of(shown) == code
        assert encode(value) == code
        again = checked.decode(stored)  # the checker's own code
        assert identity(again) == identity(value)
        assert plain(again)


def test_equal_sets_are_listed_in_one_order() -> None:
    one, other = frozenset([0, 8]), frozenset([8, 0])
    assert list(one) != list(other)
    assert list(canonical(one, "")) == list(canonical(other, ""))
    nans = canonical((frozenset({math.nan, 1.0}), math.nan, float("nan")), "")
    assert nans == (frozenset({math.nan, 1.0}), math.nan, math.nan)  # one object, which Python finds by its address
    assert len(canonical(frozenset({float("nan"), float("nan")}), "")) == 1


# --- what is refused


class Loud:
    """Every method of it raises or exits, and it says that it is a tuple."""

    def _exit(self, *_: Any) -> Any:
        raise SystemExit("private")

    __eq__ = __hash__ = __repr__ = __str__ = __reduce__ = __reduce_ex__ = __iter__ = __len__ = __bool__ = _exit  # type: ignore[assignment]
    __float__ = __int__ = __index__ = __lt__ = __array__ = __getattr__ = __format__ = __getstate__ = _exit

    @property
    def __class__(self) -> Any:
        return tuple

    @__class__.setter
    def __class__(self, kind: Any) -> None: ...


class LoudType(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise SystemExit("private")

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(int)

    def __instancecheck__(cls, instance: Any) -> bool:
        return True


class OfLoudType(metaclass=LoudType):
    pass


def subclass(kind: type, *arguments: Any) -> Any:
    """An instance of a subclass that carries an attribute and lies about its value."""
    lies = dict.fromkeys(("__eq__", "__hash__", "__repr__", "__iter__", "__len__", "as_tuple", "item"), Loud._exit)
    value = type(f"Own{kind.__name__}", (kind,), lies)(*arguments)
    object.__setattr__(value, "mark", 1)
    return value


def broken_fraction() -> F:
    value = F(1, 2)
    value._numerator = Loud()  # type: ignore[attr-defined]
    return value


def broken_uuid() -> uuid.UUID:
    value = uuid.UUID(int=1)
    object.__setattr__(value, "int", Loud())
    return value


def box(value: Any) -> Any:
    found = np.empty(1, dtype=object)
    found[0] = value
    return found


def cycle() -> list[Any]:
    value: list[Any] = []
    value.extend((value, value))
    return value


def no_text() -> Any:
    """An array of texts of which one is none: NumPy raises when it is looked at."""
    return np.array([97, 1 << 30], dtype=np.uint32).view("U1")


def doubled(times: int) -> Any:
    value: Any = (0,)
    for _ in range(times):
        value = (value, value)
    return value


class Color(enum.IntEnum):
    RED = 1


Point = namedtuple("Point", "x y")
REFUSED: list[Any] = [
    *(
        Loud(),
        OfLoudType(),
        OfLoudType,
        object(),
        int,
        len,
        lambda: 0,
        Color.RED,
        Point(1, 2),
        Counter(),
        OrderedDict(),
    ),
    *(1j, np.complex128(1), np.longdouble(1), np.datetime64(1, "s"), np.timedelta64(3, "ns"), np.void(b"ab")),
    *({1}, {1: 2}, bytearray(b"a"), memoryview(b"a"), range(3), iter(())),
    *(pathlib.PurePosixPath("a"), ipaddress.ip_address(1), ipaddress.ip_network("10.0.0.0/8")),
    *(datetime.timedelta(1), datetime.time(1), datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)),
    *(subclass(int, 3), subclass(float, 1.0), subclass(str, "a"), subclass(bytes, b"a"), subclass(tuple, (1,))),
    *(
        subclass(list, [1]),
        subclass(frozenset, {1}),
        subclass(F, 1),
        subclass(Decimal, 1),
        subclass(uuid.UUID, "0" * 32),
    ),
    *(subclass(datetime.date, 2026, 1, 1), subclass(datetime.datetime, 2026, 1, 1)),
    *(subclass(np.int64, 3), subclass(np.longlong, 3), subclass(np.float64, 1.0), subclass(np.str_, "a")),
    *(subclass(np.float32, 1.0), subclass(np.bytes_, b"a"), subclass(ipaddress.IPv4Address, 1)),
    np.array([1, 2]).view(type("Own", (np.ndarray,), {"tolist": Loud._exit})),
    *(np.ma.masked_array([1, 2]), np.array([1], dtype="m8[s]"), np.array([1], dtype="M8[s]"), np.array([1j])),
    *(np.array([1], dtype=np.longdouble), np.zeros(2, dtype="i4,i4"), box(Loud())),
    *(Decimal("1E+999999999999999999"), Decimal("1E-1999999999999999997"), Decimal(f"0E{MOST_BITS + 1}")),
    *(broken_fraction(), broken_uuid(), uuid.UUID.__new__(uuid.UUID), 1 << MOST_BITS, F(1, 1 << MOST_BITS)),
    *(cycle(), doubled(MOST_DEPTH - 1), doubled(25), "a" * 5001, ("a" * 600,) * 10),
    *(no_text(), no_text()[1:].reshape(()), no_text().reshape(2, 1), box(no_text())),
    # Of no size, and larger than any memory when written out.
    *(np.empty((10**12, 0)), np.broadcast_to(np.array("a" * 600), 10**12)),
    np.broadcast_to(np.zeros(1), (10**6, 10**6)),
]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_everything_else_is_refused_without_a_look(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MOST_SIZE", 5000)
    value = REFUSED[place]
    for given in (value, (1, value), ((value,),)):
        with pytest.raises(UnknownValue):
            code_of(given)
    with pytest.raises(TypeError, match=r"^dataset: the user at position 1 (is|must) .*UUIDs") as caught:
        read_users([(1,), (value,)], "dataset")
    assert "private" not in str(caught.value)
    assert private_users([(1,), (value,), (2,)], "dataset") == ((1,), None, (2,))
    if type(value) not in (list, tuple):
        assert private_users([value], "dataset") == (None,)
    with pytest.raises(TypeError, match=r"^universe: example 1 is .*UUIDs"):
        read_universe((1, value))


def test_an_array_counts_like_the_tuple_that_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for array in (np.arange(6.0).reshape(2, 3), np.array([["a", "bc"]]), np.empty((3, 0)), box((1, 2))):
        listed = array.tolist()
        for size in range(1, 20):
            monkeypatch.setattr(encoding, "MOST_SIZE", size)
            found = private_users([array, listed], "dataset")
            assert found[0] == found[1]
        assert found[0] is not None


def test_no_array_of_a_person_raises_in_a_release() -> None:
    algorithm = SymmetricAlgorithm((0, 1), lambda users: ["1/2", "1/2"])
    people = [(0,)] * 5 + [no_text(), (no_text(),), np.empty((10**12, 0))]
    with pytest.warns(InsecureRandomnessWarning):
        assert DelStab(algorithm, **SMALL).release(people, random_state=1) is BOTTOM


def test_members_that_python_takes_for_one_are_refused() -> None:
    pair = frozenset({np.float64(2**53), np.int64(2**53)})
    assert len(pair) == 1
    two = frozenset({(float("nan"),), (float("nan"),)})
    assert len(two) == 2
    assert len(canonical(two, "")) == 1


def test_a_reduced_fraction_is_all_there_is() -> None:
    value = F(1, 2)
    value._numerator, value._denominator = 2, -4  # type: ignore[attr-defined]
    assert canonical(value, "") == F(-1, 2)
    tagged = uuid.UUID(int=5, is_safe=uuid.SafeUUID.safe)
    assert canonical(tagged, "").is_safe is uuid.SafeUUID.unknown
    assert canonical(datetime.datetime(2026, 1, 1, fold=1), "").fold == 0


# --- what algorithms are shown

MIXED = [
    (np.longlong(3), [np.float32(0.5)]),
    (np.int64(3), (0.5,)),
    (np.str_("a"), np.array([1, 2])),
    (np.bool_(True),),
]
SHOWN = [(3, (0.5,)), (3, (0.5,)), ("a", (1, 2)), (True,)]


def types_in(value: Any) -> set[type]:
    inner = map(types_in, value) if isinstance(value, (tuple, list, frozenset)) else ()
    return {type(value)}.union(*inner)


class Spy:
    """Notes everything that an algorithm is shown."""

    def __init__(self) -> None:
        self.users: list[Any] = []

    def note(self, dataset: Any) -> list[F]:
        self.users.extend(dataset)
        return [F(1, 2), F(1, 2)]

    def one(self, user: Any) -> int:
        self.users.append(user)
        return 0

    def algorithms(self) -> list[Any]:
        return [
            finite_algorithm((0, 1))(self.note),
            SymmetricAlgorithm((0, 1), self.note),
            AdditiveAlgorithm((0, 1), self.one, lambda total, n: [F(1, 2), F(1, 2)], statistic_range=(0, 1)),
            SummedScoreEM((0, 1), lambda user: (self.one(user), 0), epsilon=1, sensitivity=1),
        ]


@pytest.mark.parametrize("form", range(4))
def test_every_engine_shows_canonical_values_only(form: int) -> None:
    spy = Spy()
    algorithm = spy.algorithms()[form]
    people = [*MIXED, (1,), (2,)]
    audit_pair(algorithm, people[:2], people[2:4], epsilon=1, delta=0)
    for engine in ("labeled", "symmetric", "additive")[: form + 1 if form < 3 else 2]:
        audit_dataset(algorithm, people, records=MIXED, epsilon=1, delta=0, engine=engine)  # type: ignore[arg-type]
        universe = [np.longlong(3), np.float32(0.5), (np.int8(1),)]
        audit_user_level(
            algorithm,
            universe=universe,
            n_users=2,
            n_examples=1,
            epsilon=1,
            delta=0,
            engine=engine,  # type: ignore[arg-type]
        )
        audit_item_level(
            algorithm,
            universe=universe,
            n_users=2,
            n_examples=2,
            epsilon=1,
            delta=0,
            engine=engine,  # type: ignore[arg-type]
        )
    check_lddp(algorithm, people, r=2, epsilon=1, delta=0)
    relations = ("auto", "exact") if form == 2 else ("auto",)
    for relation in relations:
        delstab = DelStab(algorithm, **SMALL, compatibility=relation)
        delstab.release(people)
        delstab.pmf(people)
        delstab.explain(people)
    assert spy.users
    assert not types_in(spy.users) & {np.longlong, np.int64, np.int8, np.float32, np.str_, np.bool_, np.ndarray}
    assert {user for user in spy.users if user in SHOWN}


LOOKALIKES = {
    "two classes of one integer": (np.longlong(3), np.int64(3)),
    "an attribute on an integer": (3, subclass(np.int64, 3)),
    "an attribute on a date": (datetime.date(2026, 1, 1), subclass(datetime.date, 2026, 1, 1)),
    "an attribute on a Fraction": (F(1), subclass(F, 1)),
    "an attribute on a Decimal": (Decimal(1), subclass(Decimal, 1)),
    "an attribute on an address": (ipaddress.ip_address("0.0.0.1"), subclass(ipaddress.IPv4Address, 1)),
    "paths": (pathlib.PurePosixPath("a"), type("Own", (pathlib.PurePosixPath,), {})("a")),
    "an enumeration and its number": (1, Color.RED),
    "a duration and its number": (np.int64(3), np.timedelta64(3, "ns")),
    "equal texts of two objects": tuple(type("Same", (), {"__repr__": lambda self: "same"})() for _ in range(2)),
}


@pytest.mark.parametrize("name", LOOKALIKES)
def test_lookalikes_cannot_be_told_apart_behind_delstab(name: str) -> None:
    """An algorithm that knows one of them from the other by anything at all does not see it."""
    usual, odd = LOOKALIKES[name]

    def pmf(kept: Any) -> list[int]:
        marked = any(
            example is odd or (type(example) is type(odd) and type(odd) is not int) for user in kept for example in user
        )
        return [0, 1] if marked else [1, 0]

    for algorithm in (SymmetricAlgorithm((0, 1), pmf), finite_algorithm((0, 1))(pmf)):
        delstab = DelStab(algorithm, **SMALL)
        for people in ([(usual,)] * 6, [(usual,)] * 5 + [(odd,)], [(0,)] * 5 + [(odd,)], [(0,)] * 6):
            for seed in range(5):
                with pytest.warns(InsecureRandomnessWarning):
                    assert delstab.release(people, random_state=seed) in (0, BOTTOM)


@pytest.mark.parametrize(
    "name", ["an enumeration and its number", "a duration and its number", "equal texts of two objects"]
)
def test_lookalikes_are_refused_in_audits(name: str) -> None:
    usual, odd = LOOKALIKES[name]
    algorithm = SymmetricAlgorithm((0, 1), lambda dataset: [1, 0])
    for given in ([(usual,), (odd,)], [(0,), (odd,)]):
        with pytest.raises(TypeError, match=r"^dataset: the user at position [01] is of the type"):
            check_lddp(algorithm, given, r=1, epsilon=1, delta=0)
        with pytest.raises(TypeError, match=r"^dataset: the user at position [01] is of the type"):
            audit_dataset(algorithm, given, records=[(0,)], epsilon=1, delta=0)
        with pytest.raises(TypeError, match=r"^dataset: the user at position [01] is of the type"):
            SubsampledAlgorithm(algorithm, 1).pmf(tuple(given))


# --- universes

ONES = [
    1.0,
    np.float64(1),
    np.float32(1),
    np.float16(1),
    1,
    np.int64(1),
    np.longlong(1),
    True,
    np.bool_(True),
    F(1),
    Decimal(1),
]


def test_spellings_of_one_are_the_same_by_one_rule() -> None:
    algorithm = finite_algorithm((0, 1))(lambda dataset: [F(1, 2), F(1, 2)])
    for one, other in itertools.combinations(ONES, 2):
        same = identity(one) == identity(other)
        asked: dict[str, Any] = {"n_users": 1, "n_examples": 1, "epsilon": 1, "delta": 0}
        if same:
            with pytest.raises(ValueError, match="distinct examples; examples 0 and 1 are both"):
                audit_user_level(algorithm, universe=(one, other), **asked)
        else:
            assert audit_user_level(algorithm, universe=(one, other), **asked).datasets == 2
    assert sum(identity(a) == identity(b) for a, b in itertools.combinations(ONES, 2)) == 6 + 3 + 1
    with pytest.raises(ValueError, match="distinct examples"):
        read_distribution({float("nan"): 1, float("nan"): 2}, None, "pmf")
    pmf = read_distribution({1.0: 1, F(1, 2): 3}, (F(1, 2), np.float32(1)), "pmf")
    assert pmf.weights == (3, 1)


def test_reports_hold_the_codes_and_the_checker_reads_them_itself() -> None:
    universe = [value for value in PLAIN if not isinstance(value, np.generic) or isinstance(value, np.float32)]
    by_key = {key_of(value): value for value in universe}

    def pmf(dataset: Any) -> list[F]:
        weight = 1 + sum(map(ord, key_of(dataset))) % 7
        return [F(weight, 10), F(10 - weight, 10)]

    algorithm = finite_algorithm((0, 1))(pmf)
    report = audit_user_level(
        algorithm, universe=list(by_key.values()), n_users=1, n_examples=1, epsilon="0.1", delta=0
    )
    assert report.verify(mechanism=algorithm).finding == "established"
    loaded = AuditReport.from_json(report.to_json())
    assert loaded.verify(mechanism=algorithm).finding == "established"
    assert [identity(value) for value in loaded.structure["universe"]] == [identity(v) for v in by_key.values()]
    for stored, value in zip(loaded.to_dict()["question"]["structure"]["universe"], by_key.values(), strict=True):
        assert stored == code_of(value)


# --- datasets that lose users


@pytest.mark.parametrize(
    "dataset", [{(0,), (1,)}, frozenset([(0,)]), {(0,): 1}, {0: (0,)}.keys(), OrderedDict(), Counter([(0,), (0,)])]
)
def test_sets_and_dicts_of_users_are_refused(dataset: Any) -> None:
    algorithm = finite_algorithm((0, 1))(lambda users: [1, 0])
    text = "must be a sequence of users.* keeps one of several users who gave the same"
    asked: dict[str, Any] = {"epsilon": 1, "delta": 0}
    calls = {
        "x": lambda: audit_pair(algorithm, dataset, [(0,)], **asked),
        "x2": lambda: audit_pair(algorithm, [(0,)], dataset, **asked),
        "dataset": lambda: audit_dataset(algorithm, dataset, records=[(0,)], **asked),
        "records": lambda: audit_dataset(algorithm, [(0,)], records=dataset, **asked),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=f"^{name} {text}"):
            call()
    delstab = DelStab(algorithm, **SMALL)
    for call in (
        lambda: check_lddp(algorithm, dataset, r=0, **asked),
        lambda: delstab.release(dataset),
        lambda: delstab.pmf(dataset),
        lambda: delstab.explain(dataset),
        lambda: delstab.smallest_stable_size(dataset),
    ):
        with pytest.raises(TypeError, match=f"^dataset {text}"):
            call()


@pytest.mark.parametrize(
    "dataset",
    [np.array([1, 2]), np.array(["a"]), np.zeros((2, 2), dtype="M8[s]"), np.zeros((2, 2), dtype="m8[s]")]
    + [np.zeros((2, 2), dtype=kind) for kind in (complex, np.longdouble, "i4,i4")],
    ids=str,
)
def test_arrays_whose_type_holds_no_users_are_refused(dataset: Any) -> None:
    for read in (read_users, private_users):
        with pytest.raises(TypeError, match=r"dataset must be a sequence of users.*got an array of shape"):
            read(dataset, "dataset")
    assert private_users(np.array([["a" * 4]]), "dataset") == (("aaaa",),)
    assert private_users(np.array([None, 1], dtype=object), "dataset") == (None, None)


def test_generators_and_columns_of_users_are_taken_in_their_order() -> None:
    people = ((0,), (0,), (1,))
    for dataset in (iter(people), (user for user in people), {7: (0,), 8: (0,), 9: (1,)}.values(), np.array(people)):
        assert read_users(dataset, "dataset") == people
