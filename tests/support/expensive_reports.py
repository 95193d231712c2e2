"""Reports that are short, or at most 2 MB long, and ask for as much work as their kind of report can."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

from userdp.checker import check, values

MOST = 2_000_000
"""Characters of a report here."""
MERSENNE = 2**61 - 1
"""Integers that differ by a multiple of this have one hash."""


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """The report with the digest of its content."""
    content = {name: value for name, value in content.items() if name != "digest"}
    return content | {"digest": "sha256:" + values.canonical_digest(content)}


def report(kind: str, **fields: Any) -> dict[str, Any]:
    """A report of a kind, sealed."""
    return sealed({"format": check.format_of(kind), "userdp_version": "0", **fields})


def long_fraction(digits: int, step: int = 0) -> str:
    """A fraction of twice so many digits in lowest terms, between 0 and 1; the step makes others."""
    top = 10 ** (digits - 1) // 3 * 2 + 1 + 2 * step
    bottom = 10**digits // 7 * 6 + 1 + 2 * step
    found = values.Fraction(top, bottom)
    return f"{values._digits(found.numerator)}/{values._digits(found.denominator)}"


# --- every field of a report at its ends

_NUMBER = re.compile("-?[0-9]+(/[0-9]+)?")
_FLOAT = re.compile("-?0x[01]\\.")


def ends(value: Any, most: int) -> Iterator[Any]:
    """What could stand in place of a value and cost most: the longest, the largest and the smallest."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int):
        yield from (0, 1, 2, 63, 1000, 2**16, 2**20, 2**31, 10**12, 10**600, 10**3990)
    elif isinstance(value, str) and _NUMBER.fullmatch(value):
        yield from ("9" * 2000, "9" * min(most, 2**17), "9" * most, "1/" + "9" * min(most, 2**17 - 2))
        yield from ("1" + "0" * 300, f"1/1{'0' * 300}", long_fraction(2500), long_fraction(min(most, 2**17) // 2 - 2))
    elif isinstance(value, str) and _FLOAT.match(value):
        yield from ("0x0.0p+0", "0x0.0000000000001p-1022", "0x1.fffffffffffffp+1023", "0x1." + "0" * most + "p+0")
    elif isinstance(value, str):
        yield "a" * most
    elif isinstance(value, list) and value:
        size = max(len(values.text_of(value[-1])) + 1, 2)
        for times in (1000, most // size):
            yield value[:-1] + value[-1:] * times
        if isinstance(value[0], str) and _NUMBER.fullmatch(value[0]):
            for digits in (3, 30, 300, 3000):
                yield [long_fraction(digits, step) for step in range(most // (2 * digits + 4))]
            yield ["1"] + ["0"] * (most // 4)
        if type(value[0]) is int:
            yield list(range(most // 8))
            yield [step * MERSENNE for step in range(most // 26)]


def at_its_ends(content: dict[str, Any], most: int = MOST) -> Iterator[tuple[str, dict[str, Any]]]:
    """The report with one field changed, for every field and every end of it."""
    for path in _paths(content):
        if path[0] in ("format", "digest"):
            continue
        holder = content
        for key in path[:-1]:
            holder = holder[key]
        for place, end in enumerate(ends(holder[path[-1]], most)):
            changed = copy.deepcopy(content)
            inside: Any = changed
            for key in path[:-1]:
                inside = inside[key]
            inside[path[-1]] = end
            yield f"{'.'.join(map(str, path))} {place}", sealed(changed)


def _paths(value: Any) -> Iterator[tuple[Any, ...]]:
    """The places of a report; of longer lists the first two."""
    members = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, member in members:
        yield (key,)
        for path in _paths(member):
            yield (key, *path)


# --- made for what a check does

LEVEL = {"ratio": "1", "exponent": "1"}
RESULT = {"holds": True, "worst_delta": ["0x0.0p+0"] * 2, "epsilon": ["0x0.0p+0"] * 2, "exp_epsilon": "1" + "0" * 300}


def audit(engine: str, size: int, n: int, statistics: list[int] | None = None, **changes: Any) -> dict[str, Any]:
    """An audit of so many users with one of so many values, sampled unless pmfs are given."""
    structure: dict[str, Any] = {"universe": list(range(size)), "n_users": n, "n_examples": 1}
    if engine == "additive":
        structure["statistics"] = statistics or list(range(size))
    digests = dict.fromkeys(("pmfs_digest", "pmf_of_digest", "pmf_pairs_digest"), "0" * 64)
    fields: dict[str, Any] = {
        "mechanism": "m",
        "outputs": [0, 1],
        "assumptions": ["pmf-as-stated", "canonical-users"]
        + {"labeled": [], "symmetric": ["symmetry"], "additive": ["additivity"]}[engine],
        "question": {
            **{"kind": "user-level", "neighbors": "replace", "engine": engine, "epsilon": LEVEL, "delta": "0"},
            **{"pmf_error": "0", "structure": structure},
        },
        "datasets": 1,
        "pairs": 1,
        "result": RESULT | {"witness": None},
        "verification": "sampled",
        **{"pmfs": [], "pmf_of": [], "pmf_pairs": []},
        "sample": {**digests, "pairs": [[0, 1, 0, 1]] * 2000, "pmfs": {"0": ["1", "0"], "1": ["0", "1"]}},
    }
    fields |= changes
    if "pmfs" in changes:
        del fields["sample"]
    return report("audit", **fields)


def of_pmfs(pmfs: list[list[str]], **changes: Any) -> dict[str, Any]:
    """A complete audit of one user, with a pmf for each value."""
    k = len(pmfs)
    pairs = [[i, j] for i in range(k) for j in range(i + 1, k)]
    return audit(
        "labeled", k, 1, pmfs=pmfs, pmf_of=list(range(k)), pmf_pairs=pairs, datasets=k, pairs=len(pairs),
        verification="complete", outputs=list(range(len(pmfs[0]))), **changes,
    )  # fmt: skip


def of_one_dataset(users: int, replaceable: list[int], engine: str = "labeled", **structure: Any) -> dict[str, Any]:
    """An audit of one dataset, in which these users are replaced."""
    made = audit(
        engine, 2, 1, pmfs=[["1", "0"], ["0", "1"]], pmf_of=[0, 1], pmf_pairs=[[0, 1]], verification="complete"
    )
    made["question"] |= {"kind": "dataset", "structure": {"dataset": [[0]] * users, "records": [[0], [1]]}}
    made["question"]["structure"] |= {"replaceable": replaceable} | structure
    return sealed(made)


def composition(*releases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A composition, of a fine resolution."""
    fields = {"bits": 64, "cut": "1", "delta": "1/2", "epsilon": LEVEL, "neighbors": "add-remove"}
    stated = [{"count": 1} | release for release in releases]
    return report("composition", releases=stated, **(fields | {"resolution": "1/1000"} | changes))


def optimum(world: dict[str, Any], unknowns: int, states: int, **changes: Any) -> dict[str, Any]:
    """A certificate of an optimum whose table has so many masses."""
    fields: dict[str, Any] = {"above": "2", "below": "2", "delta": "0", "epsilon": {"ratio": "2", "exponent": "0"}}
    fields |= {"objective": "worst", "prior": None, "total": "1", "scale": str(states), "table": ["1"] * unknowns}
    fields |= {"mu": ["1"] * states, "y": [], "value": "0", "lower_bound": "0", "world": world}
    return report("optimality", **(fields | changes))


def sum_world(states: int, outputs: int = 1) -> dict[str, Any]:
    """All sums are neighbors of each other."""
    losses = [["0"] * outputs] * states
    return {"kind": "sum", "lowest": 0, "reach": states, "outputs": list(range(outputs)), "losses": losses}


def certificate(subject: str, table: list[str], parts: dict[str, str], **changes: Any) -> dict[str, Any]:
    """A certificate of a table."""
    fields: dict[str, Any] = {"subject": subject, "epsilon": {"ratio": "3", "exponent": "0"}, "delta": "0"}
    fields |= {"factor": "3", "terms": 4, "total": "1", "table": table, "second": None, "parts": parts}
    return report("certificate", **(fields | changes))


def guesses(count: list[int], *, fixed: bool, delta: str = "0", **changes: Any) -> dict[str, Any]:
    """Guesses of so many coins, right and wrong and none."""
    part = dict(zip(("right", "wrong", "none"), count, strict=True)) | {"epsilon": {"ratio": "3/2", "exponent": "0"}}
    fields: dict[str, Any] = {"mechanism": "m", "about": "", "neighbors": "replace", "delta": delta, "sides": 2}
    fields |= {"access": "one-run" if fixed else "samples", "test": "fixed" if fixed else "anytime", "raised": 0}
    fields |= {"canaries": sum(count) if fixed else 0, "runs": 1 if fixed else sum(count), "holds": None}
    fields |= {"epsilon_level": {"ratio": "1000", "exponent": "0"}, **changes}
    return report("guesses", verdict=part | {"alpha": "1/1000"}, estimate=part | {"alpha": "1/20"}, **fields)


def sensitivity(**changes: Any) -> dict[str, Any]:
    """An audit of sensitivity in which nothing changed."""
    fields: dict[str, Any] = {"holds": None, "witness": None, "worst": ["0"] * 4, "claim": [None] * 4, "slack": "0"}
    fields |= {"function": "f", "neighbors": "replace", "user": "who", "ids": list(range(64)), "layout": "rows"}
    fields |= {"columns": [["x", "int", list(range(2))]], "keys": None, "missing_is_zero": False, "max_users": 64}
    fields |= {"max_rows": 64, "total_rows": 64, "order": "kept", "complete": False, "form_dependent": False}
    fields |= {"restricted": False, "tables": 1, "all_tables": 1, "excluded": 0, "pairs": 1, "random_tables": 0}
    fields |= {"compare": "form", "memory": "assumed", "needed_seconds": None, "outputs": 2, "left_out": []}
    fields |= {"would_finish": None, "checked": 0, "calls": 1, "libraries": []}
    return report("sensitivity", **(fields | changes))


def entries(numbers: list[str]) -> dict[str, Any]:
    """An output of these numbers."""
    return {"form": "mapping", "entries": [[key, number] for key, number in enumerate(numbers)], "looks": []}


def of_outputs(numbers: list[str]) -> dict[str, Any]:
    """An audit of sensitivity whose witness has these numbers against zeros."""
    witness = {"first": [[0]], "second": [[1]], "user": None, "change": ["1"] * 4}
    outputs = {"first_output": entries(numbers), "second_output": entries(["0"] * len(numbers))}
    alone = {"user": None, "ids": [], "max_users": 1, "max_rows": 1, "total_rows": 1, "all_tables": 3}
    return sensitivity(witness=witness | outputs, worst=["1"] * 4, **alone)


def law(k: int, outputs: int = 1, **changes: Any) -> dict[str, Any]:
    """A law of its own for each of k values of one user."""
    laws = [[f"{i}/{k * outputs}"] * outputs + [f"{k - i}/{k}"] for i in range(1, k + 1)]
    laws = [[_lowest(mass) for mass in masses] for masses in laws]
    fields = {"holds": None, "worst_delta": ["0x0.0p+0", "0x1.0000000000000p+0"], "witness": None, "mechanism": "m"}
    fields |= {"randomness": "bits", "monotone": False, "neighbors": "replace", "epsilon": LEVEL, "delta": "0"}
    fields |= {"universe": list(range(k)), "n_users": 1, "n_examples": 1, "outputs": list(range(outputs))}
    return report(
        "law", **(fields | {"laws": laws, "law_of": list(range(k)), "runs": k, "memory": "assumed"} | changes)
    )


def _lowest(mass: str) -> str:
    return str(values.Fraction(mass))


def lddp(outputs: int) -> dict[str, Any]:
    """A check of deletions whose witness is an event of all outputs."""
    names = sorted(map(str, range(outputs)))
    fields: dict[str, Any] = {"holds": False, "lower": "0x1.0000000000000p-1", "upper": "0x1.0000000000000p-1"}
    fields |= {"witness": [[0], [1], list(map(int, names))], "pairs_evaluated": 1, "engine": "general"}
    fields |= {"algorithm": "m", "outputs": list(range(outputs)), "epsilon": LEVEL, "delta": "0", "pmf_error": "0"}
    return report("lddp", r=1, n_users=2, **fields)


def stability(masses: list[str]) -> dict[str, Any]:
    """Stability of one item on a distribution of these masses."""
    ends = ["1/2", "1/2"]
    fields: dict[str, Any] = {"learner": "m", "m": 1, "alpha": "1", "eta": "1/2", "samples": len(masses), "seeds": []}
    fields |= {"distribution": [[place, mass] for place, mass in enumerate(masses)], "outcomes": 1, "list_size": 1}
    fields |= {"items": [{"item": 0, "probability": ends, "error": None}], "global_stability": ends}
    return report("stability", **fields, method=None, agreement=None, distance=None, nu=None)


def unlike(digits: int, most: int = MOST) -> list[str]:
    """Fractions of different denominators of so many digits."""
    return [f"1/{10 ** (digits - 1) + 2 * step + 1}" for step in range(most // (digits + 5))]


SAMPLED = {"kind": "sampled-gaussian", "mu_squared": "1", "rate": "1/1000"}
CRAFTED: dict[str, Callable[[], dict[str, Any]]] = {
    "one fraction of 2 x 800,000 digits": lambda: guesses([1, 1, 1], fixed=False, delta=long_fraction(800_000)),
    "fractions of 2 x 60,000 digits": lambda: of_pmfs([[long_fraction(60_000, i)] * 2 for i in range(8)]),
    "a composition of 411 bytes": lambda: composition(SAMPLED | {"count": 1000}, resolution="1/100000"),
    "many kinds of releases": lambda: composition(*([SAMPLED | {"rate": f"1/{k}"} for k in range(2, 200)])),
    "compositions of 2048 bits": lambda: composition(SAMPLED, bits=2048, resolution="1/100"),
    "Gaussian noise": lambda: composition({"kind": "gaussian", "mu_squared": "256"}, resolution="1/1000"),
    "discrete Gaussian noise": lambda: composition(
        {"kind": "discrete-gaussian", "sigma_squared": "4194304", "shift": 65536}, resolution=None, neighbors=None
    ),
    "discrete Laplace noise": lambda: composition(
        {"kind": "discrete-laplace", "epsilon_per_unit": {"ratio": "1", "exponent": "1/65536"}, "shift": 65536}
    ),
    "a bounded range": lambda: composition({"kind": "bounded-range", "range": {"ratio": "1", "exponent": "500"}}),
    "a fine step": lambda: composition(
        {"kind": "fixed-sample-gaussian", "mu_squared": "1/1000000", "rate": "1/1000"},
        resolution="1/100000000",
        neighbors="replace",
    ),
    "levels of 16,000 digits": lambda: composition(
        {"kind": "pure", "epsilon": {"ratio": "1" + "0" * 16_000, "exponent": "0"}, "delta": "0", "count": 2**40},
        resolution=None,
    ),
    "a pair of long weights": lambda: composition(
        {"kind": "pair", "p": ["9" * 16_000] * 60, "q": ["7" * 16_000] * 60}, resolution=None
    ),
    "a pair of weights with one hash": lambda: composition(
        {"kind": "pair", "p": [str(k * MERSENNE + 1) for k in range(40_000)], "q": ["1"] * 40_000}
    ),
    "4,096 releases": lambda: composition(
        *[{"kind": "pure", "epsilon": {"ratio": f"{k + 1}/{k}", "exponent": "0"}, "delta": "0"} for k in range(2, 4098)]
    ),
    "sum with 1,400 states": lambda: optimum(sum_world(1400), 1400, 1400),
    "sum with 300 states and 40 outputs": lambda: optimum(sum_world(300, 40), 12_000, 300),
    "selection of 30 users": lambda: optimum(
        {"kind": "selection", "n_users": 30, "n_items": 100, "loss": "regret", "agreement": None}, 28_629, 5604
    ),
    "selection of 1,000 users": lambda: optimum(
        {"kind": "selection", "n_users": 1000, "n_items": 2, "loss": "agreement", "agreement": "1/3"}, 1001, 501
    ),
    "a bound of long numbers": lambda: optimum(
        sum_world(200, 2),
        400,
        200,
        scale="9" * 5400,
        mu=["9" * 5400] + ["0"] * 199,
        y=[[k, "9" * 5400] for k in range(150)],
    ),
    "multisets of users": lambda: optimum(
        {
            **{"kind": "users", "universe": list(range(50)), "n_users": 3, "n_examples": 1, "outputs": [0]},
            **{"losses": [["0"]] * 22_100, "symmetries": []},
        },
        22_100,
        22_100,
    ),
    "symmetries of users": lambda: optimum(
        {
            **{"kind": "users", "universe": [0, 1], "n_users": 999, "n_examples": 1, "outputs": [0, 1]},
            **{"losses": [["0", "0"]] * 1000, "symmetries": [{"examples": [1, 0], "outputs": [1, 0]}] * 1000},
        },
        1000,
        500,
    ),
    "selection by long powers": lambda: certificate(
        "selection",
        ["1"] * 60_000,
        {
            **{"sensitivity": "65536", "candidates": "1", "beta": f"{10**1300}/{10**1300 + 1}", "low": "1"},
            **{"high": "9" * 2700, "theta": "1/2", "precision": "9" * 2700},
        },
    ),
    "a series of many terms": lambda: certificate(
        "noise", ["1"], {}, terms=6500, epsilon={"ratio": "1", "exponent": "1"}, factor="2"
    ),
    "a pair of 65,536 masses": lambda: certificate(
        "pair", ["1"] * 65_536, {}, second=["1"] * 65_536, total="65536", factor="9" * 2600 + "/" + "1" + "0" * 100
    ),
    "200,000 guesses": lambda: guesses([160_000, 40_000, 0], fixed=True),
    "10^9 draws": lambda: guesses([10**9 // 3] * 3, fixed=False),
    "a delta of 8,000 digits": lambda: guesses([100, 10, 5], fixed=False, delta=long_fraction(8_000)),
    "an epsilon of 100,000 digits": lambda: guesses(
        [100, 10, 5], fixed=False, epsilon_level={"ratio": "1", "exponent": long_fraction(60_000)}
    ),
    "64 users of 64 rows": lambda: sensitivity(columns=[["x", "int", list(range(1000))]] * 1),
    "64 columns": lambda: sensitivity(columns=[[str(k), "int", list(range(1000))] for k in range(100)]),
    "outputs of unlike fractions": lambda: of_outputs(unlike(30, 600_000)),
    "outputs of long fractions": lambda: of_outputs(unlike(3000, 600_000)),
    "outputs with one hash": lambda: of_outputs([f"1/{(k + 1) * MERSENNE}" for k in range(20_000)]),
    "1,000 laws": lambda: law(1000),
    "14,000 values and one law": lambda: law(14_000, laws=[["1/2", "1/2"]], law_of=[0] * 14_000, runs=14_000),
    "laws of many outputs": lambda: law(60, 1000),
    "an event of all outputs": lambda: lddp(120_000),
    "masses of unlike fractions": lambda: stability(unlike(30)),
    "masses of long fractions": lambda: stability(unlike(3000)),
    "masses of short fractions": lambda: stability(unlike(6)),
    "pmfs of unlike fractions": lambda: of_pmfs([unlike(1600, 640_000), unlike(1601, 640_000)[: 640_000 // 1605]]),
    "700 pmfs of two outputs": lambda: of_pmfs([[_lowest(f"{i}/701"), _lowest(f"{701 - i}/701")] for i in range(700)]),
    "two pmfs of 100,000 outputs": lambda: of_pmfs([["1"] + ["0"] * 99_999, ["0", "1"] + ["0"] * 99_998]),
    "a ratio of 100,000 digits": lambda: of_pmfs(
        [["1/3", "2/3"], ["2/3", "1/3"]], result=RESULT | {"witness": None, "exp_epsilon": "9" * 100_000}
    ),
    "ratios near e^epsilon": lambda: of_pmfs(
        [[f"{10**3000 // 3}/{10**3000}", f"{10**3000 - 10**3000 // 3}/{10**3000}"], ["1/2", "1/2"]]
    ),
    "a sampled audit of 20,000 values": lambda: audit("labeled", 20_000, 1),
    "a sampled audit of 20 binary users": lambda: audit("labeled", 2, 20),
    "an audit of 6,300 binary users": lambda: audit(
        "symmetric", 2, 6300, pmfs=[["1", "0"]], pmf_of=[0] * 6301, pmf_pairs=[], verification="complete"
    ),
    "an event with one hash": lambda: of_pmfs(
        [["1/3", "2/3"], ["2/3", "1/3"]],
        result=RESULT
        | {"worst_delta": ["0x1.0000000000000p-4"] * 2}
        | {"witness": {"ranks": [0, 1], "event": [k * MERSENNE for k in range(76_000)]}},
    ),
    "replaceable users with one hash": lambda: of_one_dataset(2, [k * MERSENNE for k in range(60_000)]),
    "90,000 replaceable users": lambda: of_one_dataset(90_000, list(range(90_000))),
    "45,000 statistics with one hash": lambda: of_one_dataset(
        45_000, list(range(45_000)), "additive", statistics=[k * MERSENNE for k in range(45_000)]
    ),
    "a sampled audit of multisets": lambda: audit("symmetric", 100, 3),
    "totals of 7,000 users": lambda: audit("additive", 3, 7000, [0, 1, 3]),
    "totals that are far apart": lambda: audit("additive", 4, 60, [0, 10**3, 10**6, 10**9]),
    "totals with one hash": lambda: audit("additive", 3, 1500, [0, MERSENNE, 3 * MERSENNE]),
    "many statistics": lambda: audit("additive", 15_000, 1),
    "values with one hash": lambda: audit("labeled", 2, 2) | {"outputs": [{"set": _sorted_codes(60_000)}]},
    "values in sets in sets": lambda: audit("labeled", 2, 2) | {"outputs": [_deep(31, 60_000)]},
}


def _sorted_codes(size: int) -> list[int]:
    return sorted((k * MERSENNE for k in range(size)), key=str)


def _deep(depth: int, size: int) -> Any:
    value: Any = {"set": sorted(range(size * 4), key=str)}
    for _ in range(depth):
        value = {"set": [value]}
    return value
