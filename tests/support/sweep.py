"""Public functions with numbers at the ends of what they accept, one at a time and in pairs: `make sweep`.

Each call runs in a process of its own, with limits of time and memory. Answers and refusals are fine; any other
exception is a finding, and so is what runs into a limit. The table has processor seconds, worst first.
"""

from __future__ import annotations

import inspect
import itertools
import os
import pickle
import resource
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from userdp import accounting, item_to_user, mechanisms, optimal, planning
from userdp.accounting import PrivacyCost, PrivacyLedger, PrivacyLossDistribution
from userdp.exceptions import BudgetError
from userdp.means import WinsorizedMean
from userdp.tables import Schema, Session, count_rows, count_users, key, mean, number, quantile

SECONDS, MEMORY = 20, 3 * 2**30
SLOW = 10.0
EPSILONS: tuple[Any, ...] = (0, 1e-300, 1e-9, 1e-3, 8, 60, 1e3, 1e9, Fraction(1, 10**400))
DELTAS: tuple[Any, ...] = (0, 1e-300, 1e-30, 1e-9, 0.5, 1 - 1e-9, 1)
COUNTS: tuple[Any, ...] = (0, 1, 100, 4096, 10**5, 2**31, 10**9, 2**63, 10**30)
NUMBERS: tuple[Any, ...] = (0, 1e-300, 1e-9, 1e-3, 100, 1e9, 1e300)
OF_EPSILON = {"epsilon", "epsilon1", "epsilon2", "epsilon_each", "range", "epsilon_per_unit", "rho", "mu2"}
OF_DELTA = {
    "delta",
    "delta1",
    "delta2",
    "added_delta",
    "distance",
    "delta_each",
    "delta_slack",
    "agreement",
    "beta",
    "rate",
}

PLD = PrivacyLossDistribution
Call = tuple[Callable[..., Any], dict[str, Any]]


def losses(part: str, count: int, asked: str, **arguments: Any) -> Any:
    at = arguments.pop("at")
    if part == "poisson":
        once = PLD.gaussian(arguments["sigma"], neighbors="add-remove").poisson(arguments["rate"])
    else:
        once = getattr(PLD, part)(**arguments)
    return getattr(once.self_compose(count), asked)(at)


def ledger(composition: str, **arguments: Any) -> Any:
    made = PrivacyLedger(arguments["epsilon"], arguments["delta"], composition, added_delta=arguments["added_delta"])
    return made.can_spend(PrivacyCost(arguments["spent"], mu2=arguments["mu2"]))


def slots(epsilon: Any, delta: Any, each: Any, count: Any) -> Any:
    return PrivacyLedger(epsilon, delta, "exact", slots=[(PLD.pure(each), count)])


def plan(composition: str, kind: str, **given: Any) -> Any:
    frame = {"u": [1, 2], "town": ["a", "b"], "x": [1.0, 2.0]}
    schema = Schema(town=key(str), x=number(0, 10))
    keys = given.pop("max_keys")
    session = Session(frame, user="u", schema=schema, composition=composition, **given)
    asked: dict[str, Any] = {
        "users": {"n": count_users()},
        "sums": {"n": count_rows(3), "m": mean("x")},
        "quantile": {"q": quantile("x", "1/2")},
    }
    query = session.query()
    if kind == "keys":
        return session.plan(query.group_by("town", max_keys=keys).keys_only())
    if kind == "known":
        return session.plan(query.group_by("town", keys=["a", "b"], max_keys=min(keys, 2)).agg(**asked["sums"]))
    return session.plan(query.group_by("town", max_keys=keys).agg(**asked[kind]))


def calls() -> dict[str, Call]:
    """By name: what is called, and arguments that are fine."""
    one: dict[str, Any] = {"epsilon": 1, "delta": "1e-6"}
    found: dict[str, Call] = {
        "gaussian_delta": (accounting.gaussian_delta, {"mu2": 1, "epsilon": 1}),
        "largest_mu2": (accounting.largest_mu2, dict(one)),
        "zcdp_delta": (accounting.zcdp_delta, {"rho": 1, "epsilon": 1}),
        "zcdp_epsilon": (accounting.zcdp_epsilon, {"rho": 1, "delta": "1e-6"}),
        "largest_rho": (accounting.largest_rho, dict(one)),
        "bounded_range_to_zcdp": (accounting.bounded_range_to_zcdp, {"range": 1}),
        "pure_to_zcdp": (accounting.pure_to_zcdp, {"epsilon": 1}),
        "compose_optimal": (
            accounting.compose_optimal,
            {"epsilon": "0.1", "count": 10, "delta": "1e-6", "delta_each": 0},
        ),
        "group_privacy": (accounting.group_privacy, {**one, "k": 3}),
        "user_epsilon": (accounting.user_epsilon, {"mechanism": PLD.pure("0.01", "1e-9"), "size": 3, "delta": "1e-6"}),
        "ledger slots": (slots, {**one, "each": "1e-3", "count": 3}),
        "SparseHistogram.calibrated": (mechanisms.SparseHistogram.calibrated, {**one, "max_keys": 3}),
        "SetUnion.calibrated": (mechanisms.SetUnion.calibrated, {**one, "max_keys": 3}),
        "SetUnion.within": (mechanisms.SetUnion.within, {"rho": 1, "added_delta": "1e-6", "max_keys": 3}),
        "PartitionSelection": (mechanisms.PartitionSelection, dict(one)),
        "CorrelatedCounts": (mechanisms.CorrelatedCounts, {**one, "n_keys": 9, "max_keys": 3}),
        "DiscreteLaplace": (
            lambda epsilon, sensitivity: mechanisms.DiscreteLaplace(
                epsilon=epsilon, sensitivity=sensitivity, bounds=(0, 2**40)
            ).tail(3),
            {"epsilon": 1, "sensitivity": 1},
        ),
        "DiscreteGaussian": (
            lambda rho, sensitivity: mechanisms.DiscreteGaussian(rho=rho, sensitivity=sensitivity).tail(3),
            {"rho": 1, "sensitivity": 1},
        ),
        "TruncatedDiscreteLaplace": (
            lambda **given: mechanisms.TruncatedDiscreteLaplace(**given).half_width,
            dict(one),
        ),
        "ExponentialMechanism": (mechanisms.ExponentialMechanism, {"epsilon": 1, "sensitivity": 1}),
        "PermuteAndFlip": (mechanisms.PermuteAndFlip, {"epsilon": 1, "sensitivity": 1}),
        "PurePrivateMode": (mechanisms.PurePrivateMode, {"epsilon": 1, "n_items": 9}),
        "ApproximatePrivateMode": (lambda **given: mechanisms.ApproximatePrivateMode(**given).half_width, dict(one)),
        "PlannedPrivateMode": (
            mechanisms.PlannedPrivateMode,
            {"epsilon": 1, "n_items": 9, "n_users": 9, "agreement": "0.9"},
        ),
        "PrivateRange": (mechanisms.PrivateRange, {"epsilon": 1, "bound": 9, "width": 1}),
        "WinsorizedMean": (
            lambda epsilon, delta, max_norm, m, n_users, n_features: WinsorizedMean(
                epsilon=epsilon, delta=delta, max_norm=max_norm, m=m
            ).privacy_cost(n_users=n_users, n_features=n_features),
            {**one, "max_norm": 1, "m": 3, "n_users": 100, "n_features": 2},
        ),
    }
    parts: dict[str, dict[str, Any]] = {
        "pure": {"epsilon": "0.1", "delta": 0},
        "discrete_laplace": {"epsilon_per_unit": "0.1", "shift": 2},
        "discrete_gaussian": {"sigma_squared": 9, "shift": 2},
        "bounded_range": {"range": "0.1"},
        "gaussian": {"sigma": 3, "sensitivity": 1},
        "laplace": {"scale": 3, "sensitivity": 1},
        "poisson": {"sigma": 3, "rate": "0.01"},
    }
    for (part, given), (asked, at) in itertools.product(parts.items(), (("delta", 1), ("epsilon", "1e-6"))):

        def call(part: str = part, asked: str = asked, **arguments: Any) -> Any:
            return losses(part, arguments.pop("count"), asked, **arguments)

        found[f"{part}.{asked}"] = (call, {**given, "count": 10, "at": at})
    for composition in ("basic", "zcdp", "exact"):

        def spend(composition: str = composition, **given: Any) -> Any:
            return ledger(composition, **given)

        beside = 0 if composition == "basic" else "1e-7"
        found[f"ledger {composition}"] = (spend, {**one, "added_delta": beside, "spent": "0.1", "mu2": "0.01"})
        for kind in ("users", "sums", "quantile", "keys", "known"):

            def planned(composition: str = composition, kind: str = kind, **given: Any) -> Any:
                return plan(composition, kind, **given)

            found[f"plan {composition} {kind}"] = (planned, {**one, "max_keys": 3})
    for module in (accounting, planning, optimal, item_to_user):
        for name, function in vars(module).items():
            if name in found or name[0] == "_" or not inspect.isfunction(function):
                continue
            known = {
                "epsilon": 1,
                "delta": "1e-6",
                "rho": 1,
                "k": 3,
                "count": 3,
                "m": 3,
                "n_users": 9,
                "n": 9,
                "beta": "0.1",
            }
            known |= {
                "epsilon1": 1,
                "delta1": 0,
                "epsilon2": 1,
                "delta2": 0,
                "n_sampled": 3,
                "n_total": 9,
                "target": "0.1",
            }
            needed = [
                name
                for name, parameter in inspect.signature(function).parameters.items()
                if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
            ]
            if needed and set(needed) <= set(known):
                found[name] = (function, {name: known[name] for name in needed})
    return found


def ends_of(name: str, value: Any) -> tuple[Any, ...]:
    if name in OF_EPSILON or name in ("spent", "each"):
        return EPSILONS
    if name in OF_DELTA or (name == "at" and value != 1):
        return DELTAS
    if name == "at":
        return EPSILONS
    if name in ("sigma", "sensitivity", "scale", "sigma_squared", "max_norm", "bound", "width", "target"):
        return NUMBERS
    return COUNTS if isinstance(value, int) else ()


def variants(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments with one of them at an end, and with epsilon and delta, or a count, at two."""
    ends = {name: ends_of(name, value) for name, value in arguments.items()}
    for name, values in ends.items():
        yield from (arguments | {name: value} for value in values)
    for first, second in itertools.combinations([name for name, values in ends.items() if values], 2):
        for one, other in itertools.product(ends[first][1:-1:3], ends[second][1:-1:3]):
            yield arguments | {first: one, second: other}


def tried(call: Callable[..., Any], arguments: dict[str, Any]) -> tuple[str, float, str]:
    """What comes of a call, in a process of its own: its kind, its processor seconds, and what it says."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.alarm(3 * SECONDS)
        start = time.process_time()
        try:
            warnings.simplefilter("ignore")
            call(**arguments)
            found = "answer", ""
        except (ValueError, TypeError, BudgetError) as error:
            found = "refusal", f"{type(error).__name__}: {error}"
        except BaseException as error:
            found = "FINDING", f"{type(error).__name__}: {error}"
        os.write(write, pickle.dumps((found[0], time.process_time() - start, found[1][:160])))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        content = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(content) if content else ("FINDING", float(SECONDS), "a limit of time or memory")


def main() -> None:
    only = sys.argv[1:]
    kinds: Counter[str] = Counter()
    rows = []
    found = {name: made for name, made in calls().items() if not only or any(part in name for part in only)}
    for name, (call, arguments) in found.items():
        for given in variants(arguments):
            kind, seconds, says = tried(call, given)
            kinds[kind] += 1
            changed = ", ".join(f"{key}={given[key]!r:.24}" for key in given if given[key] != arguments[key])
            rows.append((kind, seconds, f"{name}({changed})", says))
            if kind == "FINDING" or seconds > SLOW:
                print(f"... {seconds:.1f} s  {kind}  {name}({changed})  {says}", file=sys.stderr, flush=True)
    rows.sort(key=lambda row: (row[0] != "FINDING", -row[1]))
    for kind, seconds, what, says in rows:
        if kind == "FINDING" or seconds > 1:
            print(f"{seconds:7.2f} s  {kind:8} {what}  {says}")
    slow = sum(seconds > SLOW for _, seconds, _, _ in rows)
    total = sum(kinds.values())
    used = sum(seconds for _, seconds, _, _ in rows)
    print(f"{len(found)} functions, {total} calls: {dict(kinds)}; {slow} above {SLOW:g} s, {used:.0f} s")


if __name__ == "__main__":
    main()
