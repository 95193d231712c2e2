"""Assertions about privacy: what passes, what fails, and what the failure says."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from userdp.algorithms import finite_algorithm
from userdp.report import AuditReport, GuessReport, Report, SamplerLawReport
from userdp.testing import assert_sensitivity, assert_user_private, check_user_level_learner


@finite_algorithm(outputs=("no", "yes"))
def answer(dataset: Any) -> list[str]:
    return ["1/4", "3/4"] if dataset[0][0] else ["3/4", "1/4"]


def tossed(dataset: Any, bits: Any) -> int:
    """Right with probability 3/4."""
    return dataset[0][0] ^ (bits(2) == 0)


def drawn(dataset: Any, rng: Any) -> int:
    return dataset[0][0] ^ int(rng.random() < 0.25)


WORLD: dict[str, Any] = {"universe": (0, 1), "n_users": 1}


def test_the_strongest_way_is_taken() -> None:
    assert type(assert_user_private(answer, **WORLD, epsilon="ln(3)")) is AuditReport
    assert type(assert_user_private(tossed, **WORLD, epsilon="ln(3)")) is SamplerLawReport
    small: dict[str, Any] = {"draws": 2000, "training": 400, "allow_undecided": True}
    assert type(assert_user_private(drawn, **WORLD, epsilon="ln(3)", **small)) is GuessReport
    assert type(assert_user_private(lambda dataset: 0, **WORLD, epsilon=0, how="samples", **small)) is GuessReport
    with pytest.raises(ValueError, match="raises in all of 400 runs, TypeError"):
        assert_user_private(lambda dataset, generator: 0, **WORLD, epsilon=0, how="samples", **small)


@pytest.mark.parametrize("mechanism", [answer, tossed, drawn])
def test_claims_that_are_false(mechanism: Any) -> None:
    with pytest.raises(AssertionError) as failed:
        assert_user_private(mechanism, **WORLD, epsilon="ln(2)", **({"random_state": 1} if mechanism is drawn else {}))
    text = str(failed.value)
    assert text.startswith(f"{mechanism.name if mechanism is answer else mechanism.__name__} breaks its claim (")
    assert "VIOLATED" in text


def test_draws_acquit_nobody() -> None:
    with pytest.raises(AssertionError, match="Draws never show that a claim holds: pass allow_undecided=True"):
        assert_user_private(drawn, **WORLD, epsilon=2, draws=1000, training=200)


def test_what_is_undecided_for_lack_of_work() -> None:
    def geometric(dataset: Any, bits: Any) -> int:
        count = dataset[0][0]
        for step in (1, -1):
            while not bits(1):
                count += step
        return count

    with pytest.raises(AssertionError, match="Allow more work"):
        assert_user_private(geometric, **WORLD, epsilon=3, delta="1e-30", max_runs=50)


def clipped_sum(rows: Any) -> float:
    return sum(min(max(row["hours"], 0.0), 1.0) for row in rows if row["hours"] is not None)


def test_sensitivities() -> None:
    schema: dict[str, Any] = {"schema": {"hours": float}, "neighbors": "add-remove"}
    assert assert_sensitivity(clipped_sum, **schema, l1=1, nan=False, float_slack="1e-9").holds
    with pytest.raises(AssertionError) as failed:
        assert_sensitivity(clipped_sum, **schema, l1=1, float_slack="1e-9")
    text = str(failed.value)
    assert "Run it again:" in text
    code = text.partition("Run it again:")[2]
    assert "nan" in code
    # The shown code runs as it is.
    exec(textwrap.dedent(code), {"clipped_sum": clipped_sum})
    with pytest.raises(TypeError, match="needs a claim"):
        assert_sensitivity(clipped_sum, **schema)


class Learner:
    """Means by feature, with noise, of users who are clipped or not."""

    def __init__(self, *, keeps: bool = False, noise: float = 100.0) -> None:
        self.keeps, self.noise = keeps, noise

    def fit(self, X: Any, y: Any, groups: Any) -> Learner:
        if len(groups) != len(X):
            raise ValueError("groups")
        self.coef_ = (2 * np.asarray(y) - 1) @ X + np.random.default_rng(1).laplace(0, self.noise, X.shape[1])
        if self.keeps:
            self.residuals_ = np.asarray(y) - X @ self.coef_
        return self

    def predict(self, X: Any) -> Any:
        return X @ self.coef_


class Careless(Learner):
    """Does not look whose rows it has."""

    def fit(self, X: Any, y: Any, groups: Any = None) -> Learner:
        return super().fit(X, y, np.zeros(len(X)))


def test_learners() -> None:
    assert check_user_level_learner(Learner(), epsilon=1, n_canaries=100).holds is None
    with pytest.raises(AssertionError, match="Learner breaks its claim"):
        check_user_level_learner(Learner(noise=1.0), epsilon=1, n_canaries=200)
    with pytest.raises(AssertionError, match="'residuals_' has a number for each row"):
        check_user_level_learner(Learner(keeps=True), epsilon=1, n_canaries=100)
    with pytest.raises(AssertionError, match="took users for 799 of 800 rows"):
        check_user_level_learner(Careless(), epsilon=1, n_canaries=100)
    with pytest.raises(AssertionError, match="no argument 'people'"):
        check_user_level_learner(Learner(), epsilon=1, groups="people")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"how": "proof"}, ValueError, "how must be"),
        ({"mechanism": 7}, TypeError, "must have pmf or be callable"),
        ({"neighbors": "row"}, ValueError, "neighbors"),
        ({"n_users": 0}, ValueError, "n_users"),
    ],
)
def test_arguments_that_do_not_fit(options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        assert_user_private(**{"mechanism": answer, **WORLD, "epsilon": 1, **options})


THEIRS = """
import pytest
from userdp.testing import assert_sensitivity, assert_user_private
from userdp.testing.assertions import CURRENT

@pytest.mark.userdp
def test_rows():
    assert_sensitivity(len, schema={"town": str}, user="person", l1=1, neighbors="add-remove")

def test_users():
    print("alpha", CURRENT.alpha, "seconds", CURRENT.seconds)
    schema = {"town": ["a", "b"]}
    assert_sensitivity(lambda rows: len({row["person"] for row in rows}), schema=schema, user="person", l1=1)
"""


def pytest_run(folder: Path, *words: str) -> str:
    (folder / "test_theirs.py").write_text(THEIRS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "userdp.pytest_plugin", "-p", "no:cacheprovider", "-rP", *words, "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**__import__("os").environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    return done.stdout + done.stderr


def test_the_plugin(tmp_path: Path) -> None:
    found = pytest_run(tmp_path, "--userdp-reports", "reports", "--userdp-alpha", "1e-6", "--userdp-seconds", "30")
    assert "1 failed, 1 passed" in found
    assert "alpha 1/1000000 seconds 30.0" in found
    assert "len breaks its claim" in found
    reports = [Report.from_json(path.read_text()) for path in (tmp_path / "reports").iterdir()]
    assert sorted(report.holds for report in reports) == [False, True]  # type: ignore[attr-defined]
    assert "1 failed, 1 deselected" in pytest_run(tmp_path, "-m", "userdp", "--strict-markers")
    assert "--userdp-alpha: alpha must be in" in pytest_run(tmp_path, "--userdp-alpha", "2")


def test_an_unused_plugin_imports_nothing() -> None:
    code = "import sys, userdp.pytest_plugin; print(sorted({'numpy', 'hypothesis', 'userdp._core'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
