"""Type checkers know the arguments of every public estimator and mechanism: a misspelt one is an error."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("mypy")

from sklearn.base import clone

import userdp
from userdp.estimators.base import UserLevelMechanism
from userdp.mechanisms.base import Mechanism

BEFORE = """
import userdp.concepts
import userdp.distributions
import userdp.estimators
import userdp.learners
import userdp.means
import userdp.mechanisms
import userdp.model_selection
import userdp.optimal
import userdp.optimization
import userdp.stability

thresholds = userdp.concepts.Thresholds(4)
loss = userdp.optimization.SquaredLoss()
ball = userdp.optimization.L2Ball(1.0)
coin = userdp.mechanisms.BiasedCoin(probability="1/3")
lists = userdp.stability.DecisionListQueries(2, alpha=0.1, length=1)
"""
MADE = """
distributions.DiscreteDistribution(epsilon=1, n_symbols=3)
distributions.GaussianDistribution(epsilon=1, mean_bound=2, kappa=3)
distributions.GaussianMean(epsilon=1, mean_bound=10)
distributions.ProductDistribution(epsilon=1, n_symbols=3, n_columns=1)
learners.AgnosticPACClassifier(epsilon=1, concepts=thresholds, classes=(0, 1))
learners.ClippedPairwiseEM(epsilon=1, psi=[[[0, 0], [1, -1]], [[-1, 1], [0, 0]]], m=2)
learners.CorrelatedSamplingClassifier(epsilon=1, delta=1e-6, concepts=thresholds, gamma=300, m=40, classes=(0, 1))
learners.HypothesisSelector(epsilon=1, candidates=[[0.5, 0.5], [0.1, 0.9]])
learners.PrivateCompare(epsilon=1, n_users=1000, alpha=0.1)
learners.PrivateMedian(epsilon=1, m=2, domain_size=8)
learners.PrivateMinError(epsilon=1, n_users=1000, alpha=0.1)
learners.PrivateMistakeTolerance(epsilon=1, n_users=1000)
learners.RealizablePACClassifier(epsilon=1, concepts=thresholds, classes=(0, 1))
learners.StatisticalQueryClassifier(epsilon=1, delta=1e-6, algorithm=lists, classes=(0, 1))
learners.ThresholdClassifier(epsilon=1, domain_size=4, classes=(0, 1))
means.WinsorizedMean(epsilon=1, max_norm=1)
means.WinsorizedQueries(epsilon=1, n_queries=1, dimension=1, max_norm=2)
mechanisms.ApproximatePrivateMode(epsilon=1, delta="1e-6")
mechanisms.BiasedCoin(probability="1/3")
mechanisms.Categorical(weights=[1, 2])
mechanisms.CorrelatedCounts(n_keys=10, max_keys=10, rho="1/50")
mechanisms.DiscreteGaussian(rho="1/50", sensitivity=2)
mechanisms.DiscreteLaplace(epsilon=1, sensitivity=1, bounds=(0, 1))
mechanisms.ExponentialMechanism(epsilon=1, sensitivity=1, maximize=True)
mechanisms.Geometric(p="1/3")
mechanisms.GroupedExponentialMechanism(epsilon=5, sensitivity=1)
mechanisms.NegativeBinomial(r="23.7233", p="0.8187")
mechanisms.PartitionSelection(epsilon=1, delta="1e-5")
mechanisms.PermuteAndFlip(epsilon=1, sensitivity=1, maximize=True)
mechanisms.PlannedPrivateMode(epsilon=1, n_items=2**20, n_users=28, agreement="0.9")
mechanisms.PrivateBestOf(coin, stopping_probability="1/4", most_runs=20)
mechanisms.PrivateRange(epsilon=1, bound=100, width="0.5")
mechanisms.PurePrivateMode(epsilon=1, n_items=4)
mechanisms.RandomSubset(population=52, subset_size=5)
mechanisms.SetUnion(epsilon=1, max_keys=1, rounds=[(100, 60)])
mechanisms.SparseHistogram(epsilon=1, max_keys=1, threshold=20, scale=1)
mechanisms.TruncatedDiscreteLaplace(epsilon=1, delta="1e-6")
mechanisms.UnboundedDiscreteLaplace(epsilon="0.5", sensitivity=2)
mechanisms.UniformInteger(low=1, high=6)
model_selection.UserKFold(n_splits=2, random_state=1)
model_selection.UserShuffleSplit(n_splits=2, random_state=1)
optimal.OptimalSelection(n_items=2, n_users=2, epsilon=1)
optimization.ClippedGradientDescent(epsilon=1, delta=0, loss=loss, constraint=ball, max_norm=1.0, target_bounds=(0, 1))
optimization.FiniteMinimizer(epsilon=1, loss_bounds=(0, 1))
optimization.PhasedERM(epsilon=1, loss=loss, constraint=ball, max_norm=1.0, target_bounds=(0, 1))
optimization.UserLevelLinearRegression(epsilon=1, target_bounds=(0, 1))
optimization.UserLevelLogisticRegression(epsilon=1, classes=(0, 1))
optimization.WinsorizedGradientDescent(epsilon=1, loss=loss, constraint=ball, max_norm=1.0, target_bounds=(0, 1))
""".strip().splitlines()
"""Each is made once rightly, and once with its last keyword misspelt."""


def misspelt(call: str) -> str:
    before, keyword, after = re.fullmatch(r"(.*[(, ])(\w+)(=.*)", call).groups()
    return f"{before}{keyword}_{after}"


def test_all_public_ones_are_here() -> None:
    faces = [name for _, name, is_face in pkgutil.iter_modules(userdp.__path__, "userdp.") if is_face]
    public = {
        f"{face.__name__.removeprefix('userdp.')}.{name}"
        for face in map(importlib.import_module, faces)
        for name in getattr(face, "__all__", ())
        if inspect.isclass(kind := getattr(face, name)) and issubclass(kind, (Mechanism, UserLevelMechanism))
    }
    bases = {"estimators.UserLevelClassifier", "estimators.UserLevelEstimator", "estimators.UserLevelRegressor"}
    assert public - bases <= {call.partition("(")[0] for call in MADE}


def test_a_misspelt_argument_is_an_error_of_types(tmp_path: Path) -> None:
    lines = [*BEFORE.splitlines(), *(f"userdp.{call}" for call in MADE), *(f"userdp.{misspelt(call)}" for call in MADE)]
    wrong = range(len(lines) - len(MADE) + 1, len(lines) + 1)
    (tmp_path / "made.py").write_text("\n".join(lines))
    checked = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--follow-imports=silent", "--hide-error-context", "--no-error-summary"),
            *("--config-file=", f"--cache-dir={tmp_path}", "made.py"),
        ],
        cwd=tmp_path,
        env={"MYPYPATH": str(Path(userdp.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    found = {int(line) for line in re.findall(r"^made\.py:(\d+): error: .*\[call-arg\]$", checked.stdout, re.MULTILINE)}
    others = [line for line in checked.stdout.splitlines() if ": error: " in line and "[call-arg]" not in line]
    assert (found, others) == (set(wrong), []), checked.stdout + checked.stderr


@pytest.mark.parametrize("call", MADE, ids=lambda call: call.partition("(")[0])
def test_they_are_made_as_the_types_say(call: str) -> None:
    names: dict[str, Any] = {}
    exec(BEFORE, names)
    made = eval(f"userdp.{call}", names)
    assert not [one for one in inspect.signature(type(made)).parameters.values() if one.kind is one.VAR_KEYWORD]
    with pytest.raises(TypeError, match=r"unexpected keyword argument|must be given"):
        eval(f"userdp.{misspelt(call)}", names)
    if isinstance(made, UserLevelMechanism):
        copied = clone(made).set_params(epsilon=2)
        assert repr(copied.get_params() | {"epsilon": 1}) == repr(made.get_params())
        assert repr(made).startswith(type(made).__name__ + "(")
