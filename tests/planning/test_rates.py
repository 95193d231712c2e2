"""Every row of the papers' tables, with values worked by hand."""

import math
import re
from fractions import Fraction as F

import pytest

from userdp.planning import RATES, rate

LN2 = math.log(2)
GIVEN = {
    "epsilon": F(1, 2),
    "alpha": F(1, 4),
    "delta": F(1, 1024),
    "beta": F(1, 4),
    "m": 16,
    "representation_dimension": 8,
    "vc_dimension": 3,
    "littlestone_dimension": 2,
    "sq_dimension": 7,
    "power": 2,
    "domain_size": 1024,
    "n_hypotheses": 2**24,
    "n_symbols": 6,
    "dimension": 4,
    "n_choices": 16,
    "n_item_level": 80,
    "n_priv": 3,
    "n_stat": 24,
    "log_power": F(1, 2),
    "n_users": 100,
    "max_norm": 3,
    "max_loss": 2,
    "lipschitz": 4,
    "sigma": F(1, 2),
    "concentration_radius": F(3, 10),
    "radius": 5,
    "smoothness": 2,
    "strong_convexity": F(1, 4),
    "iterations": 10,
    "n_queries": 9,
    "cover_distance": F(1, 8),
}
CLASS, THRESHOLDS = "LWY24: Table 1, arbitrary class, ", "LWY24: Table 1, thresholds, "
PURE, APPROXIMATE = "GKKMMZ23: Table 1, ", "GKKMMZ23: Table 2, "
MODELS = "GKM21: Table 1, "
NOW, BEFORE, ITEM = "users, this paper", "users, previous work", "records, previous work"
HELD, COUNTED = ", one item that nearly all users hold, users", ", error of the item's count, error"
LEVY = "LSAKKMS21: "

# The rows by name, with the value of each term in the row's order; then other parameters than GIVEN.
VALUES: dict[str, list[float | F]] = {
    "LWY24: Theorem 4.6, arbitrary class, users, this paper, any m": [16, 16, 3],
    "LWY24: Theorem 5.2, thresholds, users, this paper, any m": [20 * LN2, 5 * LN2, 2, 1],
    CLASS + "records, lower bound": [64, 48],
    CLASS + "records, previous work, first": [64, 128],
    CLASS + "records, previous work, second": [64, 96],
    CLASS + "records, this paper": [64, 48],
    CLASS + "users, lower bound": [16, 6, 3],
    CLASS + BEFORE: [16, 8],
    CLASS + NOW: [16, 3],
    THRESHOLDS + "users, lower bound": [20 * LN2, 2, 1],
    THRESHOLDS + BEFORE: [20 * LN2, 1],
    THRESHOLDS + NOW: [20 * LN2, 2, 1],
    PURE + "PAC learning, " + NOW: [16, 4],
    PURE + "PAC learning, " + BEFORE: [16],
    PURE + "PAC learning, " + ITEM: [64],
    PURE + "agnostic PAC learning, " + NOW: [16, 16, 8],
    PURE + "agnostic PAC learning, " + ITEM: [64, 128],
    PURE + "discrete distributions, " + NOW: [12, 12, 6],
    PURE + "discrete distributions, " + ITEM: [48, 96],
    PURE + "product distributions, " + NOW: [48, 48, 24],
    PURE + "product distributions, " + ITEM: [192, 384],
    PURE + "Gaussian, known covariance, " + NOW: [8, 8, 4],
    PURE + "Gaussian, known covariance, " + ITEM: [32, 64],
    PURE + "Gaussian, bounded covariance, " + NOW: [32, 32, 16],
    PURE + "Gaussian, bounded covariance, " + ITEM: [128, 256],
    APPROXIMATE + "PAC learning, " + NOW: [2, 1024],
    APPROXIMATE + "PAC learning, " + BEFORE: [2],
    APPROXIMATE + "PAC learning, " + ITEM: [2048],
    APPROXIMATE + "discrete distributions, " + BEFORE: [2, 12, 6],
    APPROXIMATE + "discrete distributions, " + NOW: [2, 24, 6],
    APPROXIMATE + "discrete distributions, " + ITEM: [48, 96],
    APPROXIMATE + "product distributions, " + NOW: [2, 96, 24],
    APPROXIMATE + "product distributions, " + ITEM: [192, 384],
    "GKKMMZ23: Theorem 10, any finite algorithm, users": [20 * LN2, 5],
    "GKKMMZ23: Corollary 3, any finite algorithm, users": [300 * LN2**2, F(3, 2), 20 * LN2],
    "GKKMMZ23: Theorem 11, any finite algorithm, users": [20 * LN2, 40 * (10 * LN2) ** 1.5],
    "GKKMMZ23: Theorem 41, hypothesis selection, users": [52 * LN2, 52 * LN2, 26 * LN2],
    "GKKMMZ23: Theorem 40, agnostic PAC learning, users, lower bound": [16, 6, 3],
    MODELS + "central, pure, users, upper": [16],
    MODELS + "central, pure, users, lower": [16],
    MODELS + "central, pure, records of a user": [64],
    MODELS + "central, pure, records, one of each user": [16],
    MODELS + "local, pure, users, upper": [32],
    MODELS + "local, pure, users, lower": [16],
    MODELS + "local, pure, records of a user": [64],
    MODELS + "local, pure, records, one of each user": [49],
    MODELS + "central, approximate, users, upper": [20 * LN2],
    MODELS + "central, approximate, users, lower": [20 * LN2],
    MODELS + "central, approximate, records of a user": [4],
    MODELS + "central, approximate, records, one of each user, upper": [4],
    MODELS + "central, approximate, records, one of each user, lower": [1],
    "GKM21: Theorem 25" + HELD: [24 * LN2],
    "GKM21: Theorem 30" + HELD: [12 * LN2],
    "GKM21: Theorem 29" + HELD: [24 * LN2],
    "GKM21: Theorem 35" + HELD: [24 * LN2],
    "GKM21: Lemma 11" + COUNTED: [20 * LN2],
    "GKM21: Lemma 12" + COUNTED: [12 * LN2],
    "GKM21: Lemma 36" + COUNTED: [24 * LN2],
    "GKM21: Lemma 13, error of the worst count, error": [20 * math.sqrt(6 * LN2)],
    "GKM21: Lemma 37, error of the worst count, error": [2 * math.log(100) + 24 * LN2],
    LEVY + "Corollary 1, bounded vectors, inverted to users": [9, 12],
    LEVY + "Theorem 1, concentrated numbers, noise alone, inverted to users": [F(12, 5)],
    LEVY + "Theorem 2, concentrated vectors, noise alone, inverted to users": [F(24, 5)],
    LEVY + "Theorem 10, one of several adaptive queries, noise alone, inverted to users": [F(72, 5)],
    LEVY + "Corollary 5, sub-Gaussian vectors, one of each user, inverted to users": [16, 16],
    LEVY + "Theorem 4, convex loss, expected risk, inverted to users": [100, 20],
    LEVY + "Theorem 3 (i), convex loss, empirical risk, inverted to users": [20],
    LEVY + "Theorem 3 (ii), strongly convex loss, empirical risk, inverted to users": [4],
    LEVY + "Theorem 3 (iii), any smooth loss, squared gradient mapping, inverted to users": [160],
    LEVY + "Corollary 2, strongly convex loss, squared distance of the minimizer, inverted to users": [16],
    LEVY + "Theorem 5, convex loss, lower bound, inverted to users": [25, 20],
    LEVY + "Corollary 3, finite class, expected risk, inverted to users": [96 * LN2, 4 * (24 * LN2) ** 1.5],
    LEVY + "Corollary 4, a cover of the parameters, expected risk, inverted to users": [
        96 * LN2,
        4 * (24 * LN2) ** 1.5,
    ],
    LEVY + "Theorem 6, finite class, empirical risk, inverted to users": [4 * (24 * LN2) ** 1.5],
    LEVY + "Remark 1, Lipschitz loss on a cube, expected risk, inverted to users": [16, 32],
    LEVY + "Theorem 7, finite class, lower bound, inverted to users": [96 * LN2, 96 * LN2],
    LEVY + "Theorem 8, few users, bounded numbers, inverted to users": [2 * math.log(144)],
    LEVY + "Theorem 8, few users, linear loss, inverted to users": [2 * math.log(80)],
    LEVY + "Corollary 1, bounded vectors, error": [F(9, 1600), F(9, 10000)],
    LEVY + "Theorem 1, concentrated numbers, noise alone, error": [F(9, 250000)],
    LEVY + "Theorem 2, concentrated vectors, noise alone, error": [F(9, 62500)],
    LEVY + "Theorem 10, one of several adaptive queries, noise alone, error": [F(81, 62500)],
    LEVY + "Corollary 5, sub-Gaussian vectors, one of each user, error": [F(1, 100), F(1, 625)],
    LEVY + "Theorem 4, convex loss, expected risk, error": [F(1, 4), F(1, 20)],
    LEVY + "Theorem 3 (i), convex loss, empirical risk, error": [5, F(1, 20)],
    LEVY + "Theorem 3 (ii), strongly convex loss, empirical risk, error": [20 * math.exp(-1.25), F(1, 2500)],
    LEVY + "Theorem 3 (iii), any smooth loss, squared gradient mapping, error": [10, F(1, 10)],
    LEVY + "Corollary 2, strongly convex loss, squared distance of the minimizer, error": [F(1, 625)],
    LEVY + "Theorem 5, convex loss, lower bound, error": [F(1, 8), F(1, 20)],
    LEVY + "Corollary 3, finite class, expected risk, error": [
        math.sqrt(24 * LN2) / 20,
        (math.log(800) + 24 * LN2) ** 1.5 / 100,
    ],
    LEVY + "Corollary 4, a cover of the parameters, expected risk, error": [
        math.sqrt(24 * LN2) / 20,
        (math.log(800) + 24 * LN2) ** 1.5 / 100,
        F(1, 2),
    ],
    LEVY + "Theorem 6, finite class, empirical risk, error": [0.24 * LN2 * math.sqrt(24 * LN2 + math.log(100))],
    LEVY + "Remark 1, Lipschitz loss on a cube, expected risk, error": [F(1, 10), F(2, 25)],
    LEVY + "Theorem 7, finite class, lower bound, error": [math.sqrt(24 * LN2) / 20, 0.24 * LN2],
    LEVY + "Theorem 8, few users, bounded numbers, error": [9 * math.exp(-2)],
    LEVY + "Theorem 8, few users, linear loss, error": [20 * math.exp(-2)],
}
OTHER = {
    PURE + "PAC learning, " + BEFORE: {"m": 4096},
    APPROXIMATE + "PAC learning, " + BEFORE: {"m": 2**22},
    LEVY + "Theorem 8, few users, bounded numbers, error": {"n_users": 4},
    LEVY + "Theorem 8, few users, linear loss, error": {"n_users": 4},
}
PRIVATE = ("epsilon", "delta")


def needed(name: str) -> dict[str, object]:
    """The parameters of a row."""
    (row,) = (each for each in RATES if each.name == name)
    return {key: value for key, value in (GIVEN | OTHER.get(name, {})).items() if key in row.parameters}


def test_every_row_has_values_by_hand() -> None:
    assert [each.name for each in RATES] == list(VALUES)


def test_rows_of_the_papers() -> None:
    for row in RATES:
        found = rate(row.task, row=row.name, **needed(row.name))
        values = [float(value) for value in VALUES[row.name]]
        assert list(found.terms.values()) == pytest.approx(values, rel=1e-12), row.name
        assert found.value == pytest.approx(sum(values), rel=1e-12)
        assert (found.row, found.measures, found.label) == (row.name, row.measures, "rate: shape only")
        assert [row.terms[formula].formula for formula in found.terms] == list(found.terms)
        assert set(found.parameters) == set(row.parameters)


def test_a_missing_parameter_is_named() -> None:
    for row in RATES:
        for missing in needed(row.name):
            if missing == "delta" and row.direction != "upper" and not row.needs_delta:
                continue
            given = {key: value for key, value in needed(row.name).items() if key != missing}
            with pytest.raises(ValueError if missing == "delta" else TypeError, match=missing):
                rate(row.task, row=row.name, **given)


def test_rows_are_data_that_nothing_else_is_in() -> None:
    """Every formula is of known parameters, and every condition that compares numbers is checked or says why not."""
    for row in RATES:
        assert all(each.parameters or each.formula == "1" for each in row.terms.values())
        unchecked = [
            text for text in row.conditions if text not in row.checks and re.match(r"[a-z_]+ (<|<=|>|>=) ", text)
        ]
        assert not unchecked, (row.name, unchecked)


def test_composed_numbers_in_their_other_ranges() -> None:
    low = rate("agnostic", direction="lower", row=CLASS + "users, lower bound", **(GIVEN | {"m": 2, "delta": 0}))
    assert low.terms["representation_dimension / (min(1, m alpha) * epsilon)"] == 32
    given = GIVEN | {"representation_dimension": 4}
    few = rate("pac", row=MODELS + "central, approximate, users, lower", **given)
    assert few.value == 8  # min(6.93, 4) / (1/2)
    # 65536, 16, 4, 2, 1: four steps.
    name = MODELS + "central, approximate, records, one of each user, lower"
    assert rate("pac", row=name, **(GIVEN | {"littlestone_dimension": 65536})).value == 4
    wide = rate("regression", row=LEVY + "Theorem 5, convex loss, lower bound, error", **(GIVEN | {"sigma": 8}))
    assert list(wide.terms.values()) == pytest.approx([0.5, 0.2], rel=1e-12)  # with min(4, 16) in place of 1


@pytest.mark.parametrize(
    ("task", "changes", "row"),
    [
        ("pac", {}, APPROXIMATE + "PAC learning, " + NOW),
        ("pac", {"delta": 0}, PURE + "PAC learning, " + NOW),
        ("agnostic", {}, "LWY24: Theorem 4.6, arbitrary class, users, this paper, any m"),
        ("threshold", {"delta": None}, "LWY24: Theorem 5.2, thresholds, users, this paper, any m"),
        ("discrete", {}, APPROXIMATE + "discrete distributions, " + NOW),
        ("gaussian", {}, PURE + "Gaussian, bounded covariance, " + NOW),
        ("finite", {}, "GKKMMZ23: Theorem 10, any finite algorithm, users"),
        ("selection", {}, "GKM21: Theorem 25" + HELD),
        ("mean", {}, LEVY + "Corollary 1, bounded vectors, inverted to users"),
        ("regression", {}, LEVY + "Theorem 4, convex loss, expected risk, inverted to users"),
        ("finite-class", {}, LEVY + "Corollary 3, finite class, expected risk, inverted to users"),
    ],
)
def test_the_first_row_that_answers(task: str, changes: dict[str, object], row: str) -> None:
    given = {key: value for key, value in (GIVEN | changes).items() if key != "n_users"}
    assert rate(task, **given).row == row


def test_errors_are_asked_for_by_the_number_of_users() -> None:
    assert rate("mean", **GIVEN).row == LEVY + "Corollary 1, bounded vectors, error"


def test_lower_bounds_for_less_privacy_hold_for_more() -> None:
    given = {key: value for key, value in GIVEN.items() if key not in ("delta", "n_users")}
    assert rate("mean", direction="lower", **given).value == pytest.approx(2 * math.log(144))
    assert rate("regression", direction="lower", **given).value == 45


def test_inverted_rows_meet_the_error() -> None:
    """At the number of users of one term, that term of the error is the power of alpha that was asked for."""
    place = "Corollary 1, bounded vectors, "
    users = rate("mean", row=LEVY + place + "inverted to users", **GIVEN)
    for n, at in zip(users.terms.values(), (0, 1), strict=True):
        error = rate("mean", row=LEVY + place + "error", **(GIVEN | {"n_users": round(n)}))
        assert list(error.terms.values())[at] == F(1, 16)


@pytest.mark.parametrize(
    ("task", "name", "changes", "message"),
    [
        ("pac", PURE + "PAC learning, " + BEFORE, {"m": 4095}, "take at least m = 4096"),
        ("agnostic", CLASS + NOW, {"m": 17}, "take m = 16 of the records"),
        ("agnostic", CLASS + NOW, {"alpha": 1}, "alpha < 1"),
        ("pac", APPROXIMATE + "PAC learning, " + NOW, {"delta": 0.5}, "far below 0.5"),
        ("pac", MODELS + "central, approximate, users, lower", {"delta": 0.05}, "take delta below 0.0467"),
        ("pac", MODELS + "central, pure, users, upper", {"epsilon": 1}, "take epsilon below 1"),
        ("mean", LEVY + "Theorem 8, few users, bounded numbers, error", {}, "take delta below 9.64e-25"),
        ("mean", LEVY + "Theorem 8, few users, bounded numbers, error", {"n_users": 10**6}, "far fewer users"),
        ("mean", LEVY + "Theorem 8, few users, bounded numbers, inverted to users", {"alpha": 3}, "below max_norm"),
        (
            "finite-class",
            LEVY + "Theorem 7, finite class, lower bound, error",
            {"n_hypotheses": 2**22},
            "n_hypotheses = 4753998",
        ),
        ("finite-class", LEVY + "Corollary 3, finite class, expected risk, error", {"epsilon": 1e-12}, "take more"),
    ],
)
def test_conditions(task: str, name: str, changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match="is stated for") as error:
        rate(task, row=name, **(GIVEN | changes))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"task": "means"}, ValueError, "'hypothesis-selection'"),
        ({"task": ["mean"]}, ValueError, "task must be one of"),
        ({"task": "quantile"}, ValueError, "no rate for quantiles"),
        ({"task": "mean", "row": "Theorem 1"}, ValueError, "Corollary 1, bounded vectors"),
        ({"task": "pac", "model": "shuffle"}, ValueError, "no row of 'pac' is a upper bound|no row of 'pac'"),
        ({"task": "pac", "model": "trusted"}, ValueError, "'local'"),
        ({"task": "pac", "level": "row"}, ValueError, "level must be one of 'user', 'item'"),
        ({"task": "pac", "direction": "tight"}, ValueError, "direction must be one of"),
        ({"task": "pac", "users": 3}, TypeError, "unknown parameter 'users'"),
        ({"task": "pac", "m": 0}, ValueError, "m must be at least 1"),
        ({"task": "pac", "m": 2.5}, TypeError, "m must be an int"),
        ({"task": "pac", "m": 10**400}, ValueError, "m must be between"),
        ({"task": "pac", "epsilon": 0}, ValueError, "epsilon must be > 0"),
        ({"task": "pac", "epsilon": "1e9999"}, ValueError, "epsilon must be between"),
        ({"task": "pac", "epsilon": float("nan")}, ValueError, "epsilon must be finite"),
        ({"task": "pac", "delta": 1}, ValueError, "delta must be strictly between 0 and 1"),
        ({"task": "pac", "delta": -1}, ValueError, "delta must be in"),
        ({"task": "pac", "alpha": -0.1}, ValueError, "alpha must be > 0"),
        ({"task": "mean", "max_norm": "1e99999"}, ValueError, "max_norm must be between"),
        ({"task": "pac", "littlestone_dimension": True}, TypeError, "littlestone_dimension must be an int"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    arguments = dict(arguments)
    task = arguments.pop("task")
    with pytest.raises(error, match=message):
        rate(task, **({"epsilon": 1, "alpha": 0.1, "m": 4} | arguments))  # type: ignore[arg-type]


def test_values_beyond_all_floats_are_refused() -> None:
    given = GIVEN | {"littlestone_dimension": 10**30, "power": 10**29, "epsilon": F(1, 2)}
    with pytest.raises(ValueError, match="beyond all floats"):
        rate("pac", row=MODELS + "central, approximate, records of a user", **given)


def test_pages_and_frames() -> None:
    found = rate("agnostic", **(GIVEN | {"delta": 0}))
    assert found.largest == "representation_dimension / epsilon"
    frame = found.to_frame("pandas")
    assert list(frame["value"]) == [16, 16, 3]
    assert "shape only" in found._repr_html_()
    with pytest.raises(TypeError):
        found.terms["x"] = 1.0  # type: ignore[index]
