"""The rows of the papers' tables, and the rates of theorems that stand in no table, as formulas.

Errata are followed: where a text prints sqrt(m alpha epsilon), the table's sqrt(m) alpha epsilon is meant, and where it
prints sqrt(m epsilon), sqrt(m) epsilon. Nothing here sees data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from userdp.planning.rate_terms import HALF, Condition, Direction, Privacy, Rate, Term, Values, term

ROUNDING = 1e-9
"""Of the checks: parameters are floats."""

USERS = "users"
RECORDS = "records of each user"
ITEMS = "records, one of each user"
SQUARE = "mean squared error"
RISK = "excess risk"
ERROR_OF_COUNTS = "error of a count of users"

NEW = "this paper"
OLD = "previous work"
INVERTED = "inverted to users"

# --- Conditions.

BELOW_ONE = Condition(
    "alpha < 1", lambda v: v["alpha"] < 1, lambda v: "take an accuracy below 1", parameters=("alpha",)
)
SMALL = Condition("alpha and epsilon are sufficiently small; the paper does not say how small")
SMALL_LEVEL = Condition("epsilon and delta are sufficiently small; the paper does not say how small")
CONSTANTS = Condition("alpha and beta are constants; what depends on them is left out")
UNIT_EPSILON = Condition("epsilon < 1", lambda v: v["epsilon"] < 1, lambda v: "take epsilon below 1")
AT_MOST_ONE = Condition("epsilon <= 1", lambda v: v["epsilon"] <= 1, lambda v: "take epsilon at most 1")
SMALL_DELTA = Condition(
    "delta is far below epsilon",
    lambda v: v["delta"] < v["epsilon"],
    lambda v: f"take delta far below {v['epsilon']:.4g}",
)
FEW_RECORDS = Condition(
    "m <= 1/alpha^2; more records of each user do not lower the number of users further",
    lambda v: v["m"] * v["alpha"] ** 2 <= 1 + ROUNDING,
    lambda v: f"take m = {max(1, math.floor(v['alpha'] ** -2 * (1 + ROUNDING)))} of the records of each user",
)
IID = Condition("records of all users are drawn independently from one distribution")
MANY_USERS = Condition("n_users is above a threshold with a constant that the paper does not state")
GROWING = Condition(
    "n_hypotheses n_users m epsilon > 1",
    lambda v: v["n_hypotheses"] * v["n_users"] * v["m"] * v["epsilon"] > 1,
    lambda v: "take more users, records or epsilon",
)
MANY_HYPOTHESES = Condition(
    "log2(n_hypotheses) >= 32 ln 2",
    lambda v: math.log2(v["n_hypotheses"]) >= 32 * math.log(2),
    lambda v: f"the theorem begins at n_hypotheses = {math.ceil(2 ** (32 * math.log(2)))}",
)


def _cap(v: Values) -> float:
    """What [LSAKKMS21, Theorem 8] asks delta to be below."""
    exponent = v["n_users"] * v["epsilon"] + math.log(2 * v["n_users"])
    return math.exp(-exponent) if exponent < 700 else 0.0


TINY_DELTA = Condition(
    "delta < exp(-n_users epsilon) / (2 n_users)",
    lambda v: v["delta"] < _cap(v),
    lambda v: f"take delta below {_cap(v):.3g}" if _cap(v) else "take far fewer users, or a far smaller epsilon",
)
LEMMA_4 = Condition(
    "delta < 0.1 epsilon^1.1",
    lambda v: v["delta"] < 0.1 * v["epsilon"] ** 1.1,
    lambda v: f"take delta below {0.1 * v['epsilon'] ** 1.1:.3g}",
)


def _long_enough(threshold: Term) -> Condition:
    """That m is at or above a term of the other parameters."""
    return Condition(
        f"m >= {threshold.formula}",
        lambda v: v["m"] >= threshold(v) * (1 - ROUNDING),
        lambda v: f"take at least m = {math.ceil(threshold(v) * (1 - ROUNDING))}",
        parameters=("m", *threshold.parameters),
    )


def _row(
    place: tuple[str, str, str, str],
    task: str,
    terms: Sequence[Term],
    *,
    privacy: Privacy = "pure",
    model: str = "central",
    level: str = "user",
    direction: Direction = "upper",
    measures: str = USERS,
    conditions: Sequence[Condition] = (),
) -> Rate:
    """A row; its terms are named by their formulas."""
    by_name = {each.formula: each for each in terms}
    return Rate(*place, task, model, privacy, level, direction, measures, by_name, tuple(conditions))


# --- [GKKMMZ23, Table 1] and [GKKMMZ23, Table 2].

Size = Mapping[str, int | Fraction]


def _with(size: Size, **powers: int | Fraction) -> Term:
    return term({**size}, **powers)


def _items(size: Size) -> list[Term]:
    """The two terms of most problems at item level."""
    return [_with(size, epsilon=-1, alpha=-1), _with(size, alpha=-2)]


def _users(first: Term, size: Size, epsilon: int = -1) -> list[Term]:
    """The three terms of most problems at user level."""
    return [first, _with(size, epsilon=epsilon, alpha=-1, m=-HALF), _with(size, alpha=-2, m=-1)]


REPRESENTATION: Size = {"representation_dimension": 1}
LITTLESTONE: Size = {"littlestone_dimension": 6}
SYMBOLS: Size = {"n_symbols": 1}
CELLS: Size = {"n_symbols": 1, "dimension": 1}
COORDINATES: Size = {"dimension": 1}
PAIRS: Size = {"dimension": 2}
VC: Size = {"vc_dimension": 1}
DOMAIN: Size = {"log(domain_size)": 1}
ONE: Size = {}

LEARNING = (BELOW_ONE, SMALL)


def _pure_table() -> Iterator[Rate]:
    """The rows of the table for pure privacy."""
    key, table = "GKKMMZ23", "Table 1"
    row = "PAC learning"
    d, per_error = term(REPRESENTATION, epsilon=-1), _with(REPRESENTATION, epsilon=-1, alpha=-1)
    new = [d, _with(REPRESENTATION, epsilon=-1, alpha=-1, m=-1)]
    yield _row((key, table, row, f"users, {NEW}"), "pac", new, direction="tight", conditions=LEARNING)
    enough = _long_enough(term({"representation_dimension": 2}, epsilon=-2, alpha=-2))
    yield _row((key, table, row, f"users, {OLD}"), "pac", [d], direction="tight", conditions=(BELOW_ONE, enough))
    item = (key, table, row, f"records, {OLD}")
    yield _row(item, "pac", [per_error], level="item", direction="tight", measures=ITEMS, conditions=(BELOW_ONE,))
    problems: list[tuple[str, str, Size, Direction]] = [
        ("agnostic PAC learning", "agnostic", REPRESENTATION, "upper"),
        ("discrete distributions", "discrete", SYMBOLS, "tight"),
        ("product distributions", "product", CELLS, "tight"),
        ("Gaussian, known covariance", "gaussian-mean", COORDINATES, "tight"),
        ("Gaussian, bounded covariance", "gaussian", PAIRS, "tight"),
    ]
    for row, task, size, direction in problems:
        place = (key, table, row, f"users, {NEW}")
        yield _row(place, task, _users(_with(size, epsilon=-1), size), direction=direction, conditions=LEARNING)
        place = (key, table, row, f"records, {OLD}")
        yield _row(place, task, _items(size), level="item", direction="tight", measures=ITEMS, conditions=(BELOW_ONE,))


def _approximate_table() -> Iterator[Rate]:
    """The rows of the table for approximate privacy."""
    key, table = "GKKMMZ23", "Table 2"
    common = (BELOW_ONE, SMALL_DELTA)
    fixed = term(epsilon=-1)

    def row(name: str, column: str, task: str, terms: Sequence[Term], direction: Direction, *more: Condition) -> Rate:
        item = column.startswith("records")
        return _row(
            (key, table, name, column),
            task,
            terms,
            privacy="approximate",
            level="item" if item else "user",
            direction=direction,
            measures=ITEMS if item else USERS,
            conditions=(*common, *more),
        )

    name = "PAC learning"
    new = [fixed, _with(LITTLESTONE, epsilon=-2, alpha=-2, m=-HALF)]
    yield row(name, f"users, {NEW}", "pac", new, "upper", SMALL)
    enough = _long_enough(term({"littlestone_dimension": 12}, epsilon=-2, alpha=-4))
    yield row(name, f"users, {OLD}", "pac", [fixed], "upper", enough)
    yield row(name, f"records, {OLD}", "pac", [_with(LITTLESTONE, epsilon=-1, alpha=-2)], "upper")
    name = "discrete distributions"
    yield row(name, f"users, {OLD}", "discrete", _users(fixed, SYMBOLS), "tight")
    yield row(name, f"users, {NEW}", "discrete", _users(fixed, SYMBOLS, epsilon=-2), "upper", SMALL)
    yield row(name, f"records, {OLD}", "discrete", _items(SYMBOLS), "tight")
    name = "product distributions"
    yield row(name, f"users, {NEW}", "product", _users(fixed, CELLS, epsilon=-2), "upper", SMALL)
    yield row(name, f"records, {OLD}", "product", _items(CELLS), "upper")


def _general_reductions() -> Iterator[Rate]:
    """[GKKMMZ23, Theorem 10], [GKKMMZ23, Theorem 11], [GKKMMZ23, Corollary 3], and what stands in no table."""
    key, row = "GKKMMZ23", "any finite algorithm"
    fixed = term({"log(1/delta)": 1}, epsilon=-1)
    at = Condition(
        "n_item_level is at item level, at epsilon' = epsilon^2 / (log(1/delta) sqrt(m log(m/delta))) and delta' of the"
        " order of delta epsilon / (m log(1/delta))"
    )
    terms = [fixed, term(n_item_level=1, m=-1)]
    place = (key, "Theorem 10", row, "users")
    yield _row(place, "finite", terms, privacy="approximate", conditions=(SMALL_LEVEL, at))
    place = (key, "Corollary 3", row, "users")
    terms = [
        term({"log(1/delta)^(log_power + 3/2)": 1}, n_priv=1, epsilon=-2, m=-HALF),
        term(n_stat=1, m=-1),
        fixed,
    ]
    of_form = Condition("the algorithm needs log(1/delta)^log_power n_priv / epsilon + n_stat records at item level")
    yield _row(place, "finite", terms, privacy="approximate", conditions=(SMALL_LEVEL, of_form))
    at = Condition(
        "n_item_level is at item level, at the same epsilon and delta' of the order of delta epsilon / (m log(1/delta))"
    )
    terms = [fixed, term({"log(1/delta)": Fraction(3, 2)}, n_item_level=1, epsilon=-1, m=-HALF)]
    place = (key, "Theorem 11", row, "users")
    yield _row(place, "finite", terms, privacy="approximate", conditions=(SMALL_LEVEL, at))

    size: Size = {"log(n_hypotheses/beta)": 1}
    near = Condition("some hypothesis is within 0.1 alpha of the truth, in total variation")
    place = (key, "Theorem 41", "hypothesis selection", "users")
    terms = _users(_with(size, epsilon=-1), size)
    yield _row(place, "hypothesis-selection", terms, conditions=(BELOW_ONE, SMALL, near))
    place = (key, "Theorem 40", "agnostic PAC learning", "users, lower bound")
    terms = _users(term(REPRESENTATION, epsilon=-1), VC)
    yield _row(place, "agnostic", terms, direction="lower", conditions=LEARNING)


# --- [GKM21, Table 1].


def _correlated_sampling_table() -> Iterator[Rate]:
    """Three models, each with bounds from both sides."""
    key, table = "GKM21", "Table 1"
    conditions = (CONSTANTS, UNIT_EPSILON)
    open_power = Condition("the exponent, which the paper writes as O(1), is the caller's guess: power")
    rows: list[tuple[str, Privacy, str, str, str, Direction, Term]] = [
        ("central", "pure", "users, upper", "user", USERS, "upper", term(REPRESENTATION, epsilon=-1)),
        ("central", "pure", "users, lower", "user", USERS, "lower", term(REPRESENTATION, epsilon=-1)),
        ("central", "pure", "records of a user", "user", RECORDS, "upper", term({"representation_dimension^power": 1})),
        ("central", "pure", "records, one of each user", "item", ITEMS, "tight", term(REPRESENTATION, epsilon=-1)),
        ("local", "pure", "users, upper", "user", USERS, "upper", term(REPRESENTATION, epsilon=-2)),
        ("local", "pure", "users, lower", "user", USERS, "lower", term(REPRESENTATION, epsilon=-1)),
        ("local", "pure", "records of a user", "user", RECORDS, "upper", term({"representation_dimension^power": 1})),
        ("local", "pure", "records, one of each user", "item", ITEMS, "upper", term({"sq_dimension^power": 1})),
        ("central", "approximate", "users, upper", "user", USERS, "upper", term({"log(1/delta)": 1}, epsilon=-1)),
        (
            "central",
            "approximate",
            "users, lower",
            "user",
            USERS,
            "lower",
            term({"min(log(1/delta), representation_dimension)": 1}, epsilon=-1),
        ),
        (
            "central",
            "approximate",
            "records of a user",
            "user",
            RECORDS,
            "upper",
            term({"littlestone_dimension^power": 1}),
        ),
        (
            "central",
            "approximate",
            "records, one of each user, upper",
            "item",
            ITEMS,
            "upper",
            term({"littlestone_dimension^power": 1}),
        ),
        (
            "central",
            "approximate",
            "records, one of each user, lower",
            "item",
            ITEMS,
            "lower",
            term({"log*(littlestone_dimension)": 1}),
        ),
    ]
    for model, privacy, column, level, measures, direction, each in rows:
        more = [open_power] if "power" in each.parameters else []
        more += [LEMMA_4] if privacy == "approximate" and (measures, direction) == (USERS, "lower") else []
        yield _row(
            (key, table, f"{model}, {privacy}", column),
            "pac",
            [each],
            privacy=privacy,
            model=model,
            level=level,
            direction=direction,
            measures=measures,
            conditions=(*conditions, *more),
        )


def _selection() -> Iterator[Rate]:
    """[GKM21, Theorem 25], [GKM21, Theorem 29] and [GKM21, Theorem 30], and the lemmas on counts."""
    key, row = "GKM21", "one item that nearly all users hold"
    most = Condition("a share of 0.9 of the users holds the item")
    small = (UNIT_EPSILON, most)
    fail, sure = term({"log(1/(delta beta))": 1}, epsilon=-1), {"log(n_choices/beta)": 1}
    rows: list[tuple[str, str, Privacy, Term]] = [
        ("Theorem 25", "central", "approximate", fail),
        ("Theorem 30", "central", "pure", term(sure, epsilon=-1)),
        ("Theorem 29", "local", "pure", term(sure, epsilon=-2)),
        ("Theorem 35", "shuffle", "approximate", fail),
    ]
    for table, model, privacy, each in rows:
        place = (key, table, row, "users")
        yield _row(place, "selection", [each], privacy=privacy, model=model, conditions=small)
    row = "error of the item's count"
    rows = [
        ("Lemma 11", "central", "approximate", term({"log(1/delta)": 1}, epsilon=-1)),
        ("Lemma 12", "central", "pure", term(sure, epsilon=-1)),
        ("Lemma 36", "shuffle", "approximate", fail),
    ]
    for table, model, privacy, each in rows:
        place = (key, table, row, "error")
        yield _row(place, "selection", [each], privacy=privacy, model=model, measures=ERROR_OF_COUNTS)
    histogram = {"log(n_choices/beta)": HALF}
    place = (key, "Lemma 13", "error of the worst count", "error")
    each = term(histogram, n_users=HALF, epsilon=-1)
    yield _row(place, "group_by", [each], model="local", measures=ERROR_OF_COUNTS, conditions=(UNIT_EPSILON,))
    place = (key, "Lemma 37", "error of the worst count", "error")
    each = term({"log(n_users/(delta beta))": 1}, epsilon=-1)
    yield _row(
        place,
        "group_by",
        [each],
        privacy="approximate",
        model="shuffle",
        measures=ERROR_OF_COUNTS,
        conditions=(UNIT_EPSILON,),
    )


# --- [LWY24, Table 1].


def _agnostic_table() -> Iterator[Rate]:
    """Arbitrary classes, at both levels, and thresholds; before them the theorems, which need no bound of m."""
    key, table = "LWY24", "Table 1"
    seen = {"min(1, m alpha)": -1}
    middle, last = term(epsilon=-1, alpha=-1, m=-HALF), term(alpha=-2, m=-1)
    wide = _with(REPRESENTATION, epsilon=-1, alpha=-1, m=-HALF)
    place = (key, "Theorem 4.6", "arbitrary class", f"users, {NEW}, any m")
    terms = [term(REPRESENTATION, epsilon=-1), wide, _with(VC, alpha=-2, m=-1)]
    yield _row(place, "agnostic", terms, conditions=(BELOW_ONE,))
    place = (key, "Theorem 5.2", "thresholds", f"users, {NEW}, any m")
    terms = [term(DOMAIN, epsilon=-1), _with(DOMAIN, m=-1, alpha=-1, epsilon=-1), middle, last]
    yield _row(place, "threshold", terms, direction="tight", conditions=(BELOW_ONE,))

    item = [_with(REPRESENTATION, epsilon=-1, alpha=-1), _with(VC, alpha=-2)]
    first = [item[0], _with(REPRESENTATION, alpha=-2)]
    second = [item[0], _with(VC, alpha=-2, epsilon=-1)]
    rows: list[tuple[str, Direction, list[Term]]] = [
        ("records, lower bound", "lower", item),
        (f"records, {OLD}, first", "upper", first),
        (f"records, {OLD}, second", "upper", second),
        (f"records, {NEW}", "upper", item),
    ]
    for column, direction, terms in rows:
        place = (key, table, "arbitrary class", column)
        yield _row(place, "agnostic", terms, level="item", direction=direction, measures=ITEMS, conditions=(BELOW_ONE,))
    few = (BELOW_ONE, FEW_RECORDS)
    low = [
        term({**REPRESENTATION, **seen}, epsilon=-1),
        _with(VC, epsilon=-1, alpha=-1, m=-HALF),
        _with(VC, alpha=-2, m=-1),
    ]
    rows = [
        ("users, lower bound", "lower", low),
        (f"users, {OLD}", "upper", [wide, _with(REPRESENTATION, alpha=-2, m=-1)]),
        (f"users, {NEW}", "upper", [wide, _with(VC, alpha=-2, m=-1)]),
    ]
    for column, direction, terms in rows:
        yield _row((key, table, "arbitrary class", column), "agnostic", terms, direction=direction, conditions=few)
    both = [term({**DOMAIN, **seen}, epsilon=-1), middle, last]
    rows = [
        ("users, lower bound", "lower", both),
        (f"users, {OLD}", "upper", [_with(DOMAIN, epsilon=-1, alpha=-1, m=-HALF), last]),
        (f"users, {NEW}", "upper", both),
    ]
    for column, direction, terms in rows:
        yield _row((key, table, "thresholds", column), "threshold", terms, direction=direction, conditions=few)


# --- The rates of [LSAKKMS21], which has no table.


def _error_rates() -> Iterator[Rate]:
    """Errors of means, of descents and of finite classes."""
    key = "LSAKKMS21"
    approximate = (AT_MOST_ONE,)

    def row(
        table: str,
        name: str,
        task: str,
        measures: str,
        terms: Sequence[Term],
        conditions: Sequence[Condition] = (),
        *,
        privacy: Privacy = "approximate",
        direction: Direction = "upper",
    ) -> Rate:
        place = (key, table, name, "error")
        return _row(place, task, terms, privacy=privacy, direction=direction, measures=measures, conditions=conditions)

    private = {"n_users": -2, "m": -1, "epsilon": -2}
    yield row(
        "Corollary 1",
        "bounded vectors",
        "mean",
        SQUARE,
        [term(max_norm=2, m=-1, n_users=-1), term({"dimension": 1, "max_norm": 2, **private})],
        (IID, MANY_USERS),
    )
    yield row(
        "Theorem 1",
        "concentrated numbers, noise alone",
        "mean",
        SQUARE,
        [term(concentration_radius=2, n_users=-2, epsilon=-2)],
        (Condition("no user is farther than concentration_radius from one point"), MANY_USERS),
        privacy="pure",
    )
    yield row(
        "Theorem 2",
        "concentrated vectors, noise alone",
        "mean",
        SQUARE,
        [term(dimension=1, concentration_radius=2, n_users=-2, epsilon=-2)],
        (Condition("no user is farther than concentration_radius from one point"), MANY_USERS, *approximate),
    )
    yield row(
        "Theorem 10",
        "one of several adaptive queries, noise alone",
        "mean",
        SQUARE,
        [term(dimension=1, n_queries=1, concentration_radius=2, n_users=-2, epsilon=-2)],
        (Condition("no user is farther than concentration_radius from one point, in any query"), *approximate),
    )
    yield row(
        "Corollary 5",
        "sub-Gaussian vectors, one of each user",
        "mean",
        SQUARE,
        [
            term(dimension=1, sigma=2, n_users=-1),
            term(dimension=2, sigma=2, n_users=-2, epsilon=-2),
        ],
        (IID, MANY_USERS),
    )
    width = {"min(lipschitz, sigma sqrt(dimension))": 1}
    yield row(
        "Theorem 4",
        "convex loss, expected risk",
        "regression",
        RISK,
        [
            term({"min(lipschitz, sigma sqrt(dimension))": HALF}, radius=1, lipschitz=HALF, m=-HALF, n_users=-HALF),
            term(radius=1, sigma=1, dimension=1, n_users=-1, m=-HALF, epsilon=-1),
        ],
        (IID, MANY_USERS, *approximate),
    )
    yield row(
        "Theorem 3 (i)",
        "convex loss, empirical risk",
        "regression",
        RISK,
        [
            term(radius=2, smoothness=1, iterations=-1),
            term(radius=1, sigma=1, dimension=1, n_users=-1, m=-HALF, epsilon=-1),
        ],
        (IID, MANY_USERS, *approximate),
    )
    square = term({"sigma": 2, "dimension": 2, "strong_convexity": -1, **private})
    yield row(
        "Theorem 3 (ii)",
        "strongly convex loss, empirical risk",
        "regression",
        RISK,
        [term({"exp(-iterations strong_convexity/smoothness)": 1}, lipschitz=1, radius=1), square],
        (IID, MANY_USERS, *approximate),
    )
    yield row(
        "Theorem 3 (iii)",
        "any smooth loss, squared gradient mapping",
        "regression",
        "squared gradient mapping",
        [
            term(smoothness=2, radius=2, iterations=-1),
            term(smoothness=1, radius=1, sigma=1, dimension=1, n_users=-1, m=-HALF, epsilon=-1),
        ],
        (IID, MANY_USERS, *approximate),
    )
    yield row(
        "Corollary 2",
        "strongly convex loss, squared distance of the minimizer",
        "regression",
        "squared distance",
        [term({"sigma": 2, "dimension": 2, "strong_convexity": -2, **private})],
        (IID, MANY_USERS, *approximate),
    )
    yield row(
        "Theorem 5",
        "convex loss, lower bound",
        "regression",
        RISK,
        [
            term(width, radius=1, m=-HALF, n_users=-HALF),
            term(width, radius=1, dimension=HALF, n_users=-1, m=-HALF, epsilon=-1),
        ],
        (MANY_USERS,),
        direction="lower",
    )
    chosen = {"log(n_hypotheses)": HALF}
    yield row(
        "Corollary 3",
        "finite class, expected risk",
        "finite-class",
        RISK,
        [
            term(chosen, max_loss=1, m=-HALF, n_users=-HALF),
            term({"log(n_hypotheses n_users m epsilon)": Fraction(3, 2)}, max_loss=1, n_users=-1, m=-HALF, epsilon=-1),
        ],
        (IID, MANY_USERS, GROWING),
        privacy="pure",
    )
    yield row(
        "Corollary 4",
        "a cover of the parameters, expected risk",
        "finite-class",
        RISK,
        [
            term(chosen, max_loss=1, m=-HALF, n_users=-HALF),
            term({"log(n_hypotheses n_users m epsilon)": Fraction(3, 2)}, max_loss=1, n_users=-1, m=-HALF, epsilon=-1),
            term(lipschitz=1, cover_distance=1),
        ],
        (IID, MANY_USERS, GROWING),
        privacy="pure",
    )
    yield row(
        "Theorem 6",
        "finite class, empirical risk",
        "finite-class",
        RISK,
        [
            term(
                {"log(n_hypotheses)": 1, "log(n_hypotheses n_users)": HALF},
                max_loss=1,
                n_users=-1,
                m=-HALF,
                epsilon=-1,
            )
        ],
        (IID, MANY_USERS),
        privacy="pure",
    )
    yield row(
        "Remark 1",
        "Lipschitz loss on a cube, expected risk",
        "regression",
        RISK,
        [
            term(max_loss=1, dimension=HALF, m=-HALF, n_users=-HALF),
            term(max_loss=1, dimension=Fraction(3, 2), n_users=-1, m=-HALF, epsilon=-1),
        ],
        (IID, MANY_USERS, Condition("parameters are in the cube [-1, 1]^dimension")),
        privacy="pure",
    )
    yield row(
        "Theorem 7",
        "finite class, lower bound",
        "finite-class",
        RISK,
        [
            term(chosen, max_loss=1, m=-HALF, n_users=-HALF),
            term({"log(n_hypotheses)": 1}, max_loss=1, n_users=-1, m=-HALF, epsilon=-1),
        ],
        (MANY_HYPOTHESES,),
        privacy="pure",
        direction="lower",
    )
    few = {"exp(-n_users epsilon)": 1}
    for task, name, measures, each in (
        ("mean", "few users, bounded numbers", SQUARE, term(few, max_norm=2)),
        ("regression", "few users, linear loss", RISK, term(few, lipschitz=1, radius=1)),
    ):
        yield row("Theorem 8", name, task, measures, [each], (TINY_DELTA,), direction="lower")


# --- Errors, solved for the number of users.

TARGETS = {SQUARE: 2, RISK: 1, "squared gradient mapping": 2, "squared distance": 2}
"""Which power of alpha an error may reach."""

WITHOUT_USERS = {
    "log(n_hypotheses n_users m epsilon)": "log(n_hypotheses)",
    "log(n_hypotheses n_users)": "log(n_hypotheses)",
}
"""Logarithms of the number of users, and what is left of them."""

FEW_USERS: Mapping[str, tuple[Term, Condition]] = {
    SQUARE: (
        term({"log(max_norm^2/alpha^2)": 1}, epsilon=-1),
        Condition("alpha < max_norm", lambda v: v["alpha"] < v["max_norm"], lambda v: "take alpha below max_norm"),
    ),
    RISK: (
        term({"log(lipschitz radius/alpha)": 1}, epsilon=-1),
        Condition(
            "alpha < lipschitz radius",
            lambda v: v["alpha"] < v["lipschitz"] * v["radius"],
            lambda v: "take alpha below lipschitz radius",
        ),
    ),
}
"""The solutions of error = exp(-n_users epsilon)."""


def _solved(each: Term, target: int) -> Term:
    """The number of users at which a term falls to alpha^target."""
    falls = -each.powers["n_users"]
    powers: dict[str, Fraction] = {}
    for base, power in each.powers.items():
        if base != "n_users":
            name = WITHOUT_USERS.get(base, base)
            powers[name] = powers.get(name, Fraction(0)) + power / falls
    return Term({**powers, "alpha": -target / falls})


def inverted(rate: Rate) -> Rate:
    """The number of users for an accuracy: each term solved by itself, and summed."""
    fixed = [each for each in rate.terms.values() if not any("n_users" in name for name in each.powers)]
    conditions = [each for each in rate.conditions if each not in (GROWING, TINY_DELTA)]
    if rate.table == "Theorem 8":
        only, more = FEW_USERS[rate.measures]
        solved, conditions = [only], [*conditions, Condition(TINY_DELTA.text), more]
    else:
        solved = [_solved(each, TARGETS[rate.measures]) for each in rate.terms.values() if each not in fixed]
    meaning = {1: f"alpha is the {rate.measures}", 2: f"alpha is the root of the {rate.measures}"}
    conditions.append(Condition(meaning[TARGETS[rate.measures]]))
    conditions += [
        Condition(f"{each.formula}, which users do not lower, is below the error asked for") for each in fixed
    ]
    if any(base in WITHOUT_USERS for each in rate.terms.values() for base in each.powers):
        conditions.append(Condition("logarithms of n_users, m and epsilon are left out"))
    return replace(
        rate,
        column=INVERTED,
        measures=USERS,
        terms={each.formula: each for each in solved},
        conditions=tuple(conditions),
    )


def _rows() -> Iterator[Rate]:
    errors = list(_error_rates())
    yield from _agnostic_table()
    yield from _pure_table()
    yield from _approximate_table()
    yield from _general_reductions()
    yield from _correlated_sampling_table()
    yield from _selection()
    yield from map(inverted, errors)
    yield from errors


RATES: tuple[Rate, ...] = tuple(_rows())
"""All rows. Of those that answer a question, the first is the default of `userdp.planning.rate`."""
