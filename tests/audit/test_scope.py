"""What reports say of their own scope: neighbors, universes, levels of error, and why a change is infinite."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp.algorithms import finite_algorithm
from userdp.audit import audit_estimator, audit_sampler_law, audit_sensitivity, audit_user_level
from userdp.checker.values import canonical_digest
from userdp.cli import main
from userdp.exact.encoding import encode
from userdp.exact.numbers import PrivacyLevel, parse_level
from userdp.report.guesses import Guesses, GuessReport
from userdp.testing import assert_user_private, check_user_level_learner


@finite_algorithm(outputs=(0, 1))
def constant(dataset: Any) -> list[str]:
    return ["1/2", "1/2"]


WORLD: dict[str, Any] = {"n_users": 2, "n_examples": 1, "epsilon": 1, "delta": 0}


def test_removing_is_from_the_stated_number_of_users() -> None:
    exact = audit_user_level(constant, universe=(0, 1), neighbors="add-remove", **WORLD).summary()
    assert "all datasets of 2 users with 1 example each from {0, 1}; neighbors by removing one user from these" in exact
    law = audit_sampler_law(lambda dataset, bits: bits(1), universe=(0, 1), neighbors="add-remove", **WORLD).summary()
    assert "removing one user from the 2" in law
    assert "adding" not in exact + law
    assert "replacing one user" in audit_sampler_law(lambda dataset, bits: 0, universe=(0, 1), **WORLD).summary()


@pytest.mark.parametrize("universe", [(0, 1), ("\x1b[2J", "b"), (10**600,), tuple(range(300)), ("x" * 500, None)])
def test_universes_are_named_where_short_and_hashed_where_long(universe: Any) -> None:
    audits = (
        audit_user_level(constant, universe=universe, **WORLD | {"n_users": 1}),
        audit_sampler_law(lambda dataset, bits: 0, universe=universe, **WORLD | {"n_users": 1}),
    )
    for report in audits:
        text = " ".join(report.summary().split())
        if len(repr(encode(universe))) < 100:
            shown = ", ".join(map(repr, universe))
            assert f"from {{{shown}}}" in text
        else:
            noun = "value" if len(universe) == 1 else "values"
            start = text.index(f"from {len(universe)} {noun} with the SHA-256 ")
            assert canonical_digest(encode(universe)) in text[start:].replace(" ", "")


def guessed(epsilon: Any, *, verdict: Fraction, estimate: Fraction) -> GuessReport:
    def part(alpha: str, ratio: Fraction) -> Guesses:
        level = parse_level(0)
        return Guesses(alpha=Fraction(alpha), right=60, wrong=5, none=0, epsilon=type(level)(ratio, Fraction(0)))

    return GuessReport(
        mechanism="f",
        access="samples",
        neighbors="replace",
        test="anytime",
        epsilon_level=parse_level(epsilon),
        delta=Fraction(0),
        canaries=0,
        sides=2,
        runs=100,
        raised=0,
        holds=None,
        verdict=part("1e-9", verdict),
        estimate=part("0.05", estimate),
        about="",
    )


@pytest.mark.parametrize("epsilon", [1, "ln(12)", 2.5, "2.6", "ln(13)", 3])
def test_both_levels_of_error_are_told(epsilon: Any) -> None:
    """The counts show ln(1281/100) = 2.5502 at 0.05, and 0.7 at 1e-9."""
    report = guessed(epsilon, verdict=Fraction(2), estimate=Fraction(1281, 100))
    text = " ".join(report.summary().split())
    assert "Epsilon is more than 2.55" in text
    refuted = float(parse_level(epsilon)) < math.log(12.81)
    assert report.doubtful == refuted == ("REFUTED AT AN ERROR OF 0.05 ONLY" in text)
    assert ("NO VIOLATION SHOWN" in text) != refuted
    assert "1e-09" in text
    assert "Nothing that was seen contradicts" not in text
    assert ("The counts contradict the claim at an error of 0.05" in text) == refuted
    assert ("The counts do not refute the claim, neither at an error of 1e-09" in text) != refuted


def test_the_command_line_tells_both_levels(capsys: pytest.CaptureFixture[str]) -> None:
    """60 of 60 right guesses: ln(19.5) at 0.05, ln(2.4) at 1e-9."""
    words = {"0.5": "VIOLATED", "1.5": "REFUTED AT AN ERROR OF 0.05 ONLY", "3.5": "NO VIOLATION SHOWN"}
    for epsilon, word in words.items():
        main(["audit-one-run", "--canaries", "60", "--guesses", "60", "--right", "60", "--epsilon", epsilon])
        assert f"delta 0: {word}\n" in capsys.readouterr().out


def test_a_doubtful_mechanism_is_no_success() -> None:
    def drawn(dataset: Any, rng: Any) -> int:
        return int(dataset[0][0] if rng.random() < 0.8 else 1 - dataset[0][0])

    options: dict[str, Any] = {"training": 400, "draws": 150, "random_state": 2, "how": "samples"}
    with pytest.raises(AssertionError, match=r"REFUTED AT AN ERROR OF 0\.05 ONLY(.|\n)*Draw more"):
        assert_user_private(drawn, universe=(0, 1), n_users=1, epsilon="0.5", rng="numpy", **options)


class Means:
    """Sums of rows by feature, with little noise."""

    def predict(self, X: Any) -> Any:
        return X @ self.coef_

    def _fitted(self, X: Any, y: Any, owners: Any) -> Any:
        if len(owners) != len(X) or len(set(owners)) > 200:
            raise ValueError("owners")
        self.coef_ = (2 * np.asarray(y) - 1) @ X
        return self


def learner(arguments: str, users: str) -> Any:
    """An estimator whose fit has these arguments, of which this one is the users."""
    space: dict[str, Any] = {"Means": Means}
    code = f"class Made(Means):\n    def fit(self, X, y, {arguments}):\n        return self._fitted(X, y, {users})"
    exec(code, space)
    return space["Made"]()


@pytest.mark.parametrize(
    ("arguments", "users"),
    [
        ("groups", "groups"),
        ("groups=None", "groups"),
        ("user_ids", "user_ids"),
        ("users", "users"),
        ("*, user_id", "user_id"),
        ("sample_weight=None, owner=None", "owner"),
        ("**given", "given['groups']"),
    ],
)
def test_the_argument_of_fit_that_takes_users_is_found(arguments: str, users: str) -> None:
    assert audit_estimator(learner(arguments, users), n_canaries=200, n_rows=2, epsilon=1).holds is False
    with pytest.raises(AssertionError, match="breaks its claim"):
        check_user_level_learner(learner(arguments, users), epsilon=1, n_canaries=200, n_rows=2)


@pytest.mark.parametrize(
    ("arguments", "users", "words"),
    [("whose", "whose", "groups: none of the arguments"), ("users=None, groups=None", "groups", "users and groups of")],
)
def test_arguments_of_fit_that_are_none_or_two(arguments: str, users: str, words: str) -> None:
    unclear = learner(arguments, users)
    with pytest.raises(ValueError, match=words):
        audit_estimator(unclear, n_canaries=200, n_rows=2, epsilon=1)
    with pytest.raises(AssertionError, match=words):
        check_user_level_learner(unclear, epsilon=1)
    assert audit_estimator(unclear, n_canaries=200, n_rows=2, epsilon=1, groups=users).holds is False


def by_town(rows: Any) -> dict[str, int]:
    towns = sorted({row["town"] for row in rows if row["town"]})
    return {town: sum(row["town"] == town for row in rows) for town in towns}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (by_town, "a key comes or goes, 'a', "),
        (lambda rows: [1 for row in rows], "the number of entries changes"),
        (lambda rows: float("nan") if rows else 0, "an entry is"),
        (lambda rows: 1 // (1 - (len(rows) == 1)), "what is raised is an output too"),
    ],
)
def test_an_infinite_change_says_why_and_names_a_cure(function: Any, words: str) -> None:
    options: dict[str, Any] = {"schema": {"town": ("a", "b")}, "user": "person", "max_users": 2, "total_rows": 2}
    report = audit_sensitivity(function, l1=1, **options)
    assert (report.holds, report.worst.l1) == (False, math.inf)
    text = " ".join(report.summary().split())
    assert words in text
    assert any(cure in text for cure in ("missing=0", "return as many", "replace it", "return a value"))
    assert "Why infinite" not in audit_sensitivity(len, l1=2, **options).summary()


def test_the_cure_of_keys_that_come_and_go_works() -> None:
    options: dict[str, Any] = {"schema": {"town": ("a", "b")}, "user": "person", "max_users": 2, "total_rows": 2}
    assert audit_sensitivity(by_town, l1=4, missing=0, **options).holds is True


# --- what a search did not look at, and what would end

ITEMS = ("book", "film", "game", "song", "play", "tune", "poem", "tale", "saga", "myth", "epic")


def pays_the_last_twice(rows: Any) -> list[int]:
    counts = np.bincount([ITEMS.index(row["item"]) for row in rows if row["item"] in ITEMS], minlength=len(ITEMS))
    return [int(count) * (1 + (place == len(ITEMS) - 1)) for place, count in enumerate(counts)]


def test_names_of_arguments_are_no_letters_and_what_is_left_out_is_said() -> None:
    """A public list comes before texts that stand alone, and those of it that are no letters are named."""

    def of_four(rows: Any) -> list[int]:
        import collections.abc as imported  # noqa: F401

        items = [row["item"] for row in rows if row["item"] in ("book", "film", "game", "song")]
        return [items.count(one) * (1 + (one == "song")) for one in sorted({"book", "film", "game", "song"}, key=str)]

    asked: dict[str, Any] = {
        "schema": {"item": "str"},
        "user": "user",
        "l1": 1,
        "neighbors": "add-remove",
        "max_rows": 1,
    }
    found = audit_sensitivity(of_four, **asked)
    assert found.holds is False
    assert found.columns[0][2][4:8] == ("book", "film", "game", "song")
    missed = audit_sensitivity(pays_the_last_twice, **asked)
    letters = missed.columns[0][2]
    assert missed.holds is True
    assert not {"minlength", "item"} & set(letters)
    assert missed.left_out == (("item", tuple(one for one in ITEMS if one not in letters)),)
    assert "Left out of 'item'" in missed.summary()
    assert "Constants of the function were left out of 'item'" in missed.summary()
    assert audit_sensitivity(pays_the_last_twice, **asked | {"schema": {"item": ITEMS}}).holds is False


def test_an_option_of_a_partial_function_is_no_letter() -> None:
    def release(rows: Any, *, town: str = "hill", noise: bool = True) -> int:
        return sum(row["town"] == town for row in rows)

    given = functools.partial(release, noise=False, town="lake")
    letters = audit_sensitivity(given, schema={"town": str}, user="user", l1=1).columns[0][2]
    assert {"lake", "hill"} < set(letters)
    assert not {"noise", "town"} & set(letters)
    code = audit_sensitivity(given, schema={"town": str}, user="user", l1=0).witness_code()
    assert "print(function(first))" in code  # there is no function of the name partial


def test_sizes_that_would_finish_finish() -> None:
    def hours(rows: Any) -> float:
        return min(40.0, sum(row["hours"] or 0.0 for row in rows if row["week"] in (1, 2) and row["town"] == "hill"))

    asked: dict[str, Any] = {"schema": {"week": int, "town": str, "hours": float}, "user": "user", "l1": 40}
    asked |= {"domain": lambda rows: all(0 <= (row["hours"] or 0.0) < 100 for row in rows)}
    open_still = audit_sensitivity(hours, **asked, max_users=3, max_rows=2, max_calls=5000)
    assert open_still.holds is None
    assert open_still.would_finish is not None
    sizes = dict(zip(("max_users", "max_rows", "total_rows", "letters"), open_still.would_finish, strict=True))
    said = open_still.summary()
    assert ", ".join(f"{name}={size}" for name, size in sizes.items()) in " ".join(said.split())
    assert audit_sensitivity(hours, **asked, **sizes, max_calls=5000).complete


def test_a_claim_about_one_user_who_comes_is_told_from_a_replaced_one() -> None:
    def users(rows: Any) -> list[int]:
        return [len({row["user"] for row in rows if row["town"] == town}) for town in ("hill", "lake")]

    asked: dict[str, Any] = {"schema": {"town": ("hill", "lake")}, "user": "user", "l1": 1, "max_rows": 1}
    replaced = audit_sensitivity(users, **asked)
    assert replaced.holds is False
    assert "With add-remove" in replaced.summary()
    assert audit_sensitivity(users, **asked, neighbors="add-remove").holds is True
    broken = audit_sensitivity(lambda rows: [3 * count for count in users(rows)], **asked)
    assert "With add-remove" not in broken.summary()


def test_a_constant_is_said_in_the_first_sentence() -> None:
    undecided = audit_sensitivity(
        lambda rows: 7, schema={"a": float, "b": float}, user="u", l1=1, max_users=3, max_calls=99
    )
    assert undecided.holds is None
    assert "one constant on these tables" in undecided.summary()


def test_an_estimate_just_above_the_claim_is_doubtful() -> None:
    """A claim that is below the estimate by less than any float can say."""
    ratio = Fraction(7, 5)
    counts = Guesses(alpha=Fraction(1, 20), right=60, wrong=30, none=0, epsilon=PrivacyLevel(ratio, Fraction(0)))
    for claim, doubtful in ((ratio - Fraction(1, 2**80), True), (ratio, False), (ratio + Fraction(1, 2**80), False)):
        report = GuessReport(
            mechanism="m",
            access="samples",
            neighbors="replace",
            test="anytime",
            epsilon_level=PrivacyLevel(claim, Fraction(0)),
            delta=Fraction(0),
            canaries=0,
            sides=1,
            runs=100,
            raised=0,
            holds=None,
            verdict=replace(counts, alpha=Fraction(1, 10**9), epsilon=PrivacyLevel(Fraction(1), Fraction(0))),
            estimate=counts,
            about="the output",
        )
        assert report.doubtful is doubtful
