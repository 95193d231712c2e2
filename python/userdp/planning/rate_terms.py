"""What a rate is made of: powers of parameters, conditions, and rows of papers that hold them.

Nothing here sees data, and no privacy rests on these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Literal

from userdp.exact.numbers import check_count, nonzero_level, open_unit_interval, parse_positive, short_repr

Values = Mapping[str, float]
Privacy = Literal["pure", "approximate"]
Direction = Literal["upper", "lower", "tight"]

HALF = Fraction(1, 2)
LARGEST = 1e30
"""Of parameters, and 1 / LARGEST the smallest: products of their powers are floats."""


def count(least: int) -> Callable[[object, str], float]:
    """A reader of integers from a least one on."""
    return lambda value, name: float(min(check_count(value, name, least), 10**31))


def positive(value: object, name: str) -> float:
    """Read a number > 0 to the nearest float, inf beyond them."""
    number = parse_positive(value, name)
    return float(number) if number < 10**31 else math.inf


def level(value: object, name: str) -> float:
    """Read an epsilon > 0."""
    try:
        return float(nonzero_level(value, name))
    except OverflowError:
        return math.inf


PARAMETERS: Mapping[str, tuple[Callable[[object, str], float], str]] = MappingProxyType(
    {
        "epsilon": (level, "> 0: the privacy parameter, for users; of rows at item level, for records"),
        "delta": (open_unit_interval, "in (0, 1)"),
        "m": (count(1), "records of each user"),
        "n_users": (count(1), "users, where the error is asked for"),
        "alpha": (positive, "> 0: the accuracy; its meaning is in `measures` of the row"),
        "beta": (open_unit_interval, "in (0, 1): the probability to fail"),
        "representation_dimension": (positive, "PRDim, the logarithm of the size of a probabilistic representation"),
        "vc_dimension": (count(1), "of the concept class"),
        "littlestone_dimension": (count(1), "of the concept class"),
        "sq_dimension": (count(1), "by statistical queries, of the concept class"),
        "power": (positive, "the exponent that a paper writes as O(1)"),
        "output_bits": (count(1), "bits of a hypothesis"),
        "domain_size": (count(2), "points of the domain"),
        "n_hypotheses": (count(2), "hypotheses to choose from"),
        "n_symbols": (count(2), "values of a record, or of each of its coordinates"),
        "dimension": (count(1), "coordinates of a record, or of the parameter that is learned"),
        "n_choices": (count(2), "items that users may hold"),
        "n_item_level": (positive, "records that the finite algorithm needs at item level"),
        "n_priv": (positive, "what multiplies log(1/delta)^log_power / epsilon in the number of records"),
        "n_stat": (positive, "the part of the number of records that does not depend on privacy"),
        "log_power": (positive, "c, the power of log(1/delta) in the number of records"),
        "max_norm": (positive, "the largest L2 norm of a record"),
        "max_loss": (positive, "the largest absolute value of a loss"),
        "lipschitz": (positive, "the largest L2 norm of a gradient"),
        "sigma": (positive, "the sub-Gaussian constant of a record or a gradient"),
        "concentration_radius": (positive, "tau: users' values are within it of a point that nobody knows"),
        "radius": (positive, "of the set of parameters"),
        "smoothness": (positive, "of the loss"),
        "strong_convexity": (positive, "of the loss"),
        "iterations": (count(1), "steps of the descent"),
        "n_queries": (count(1), "adaptive queries"),
        "cover_distance": (positive, "how far a parameter may be from the nearest of n_hypotheses that are tried"),
    }
)
"""What rates depend on: how each is read, and what it is."""


def iterated_logarithm(x: float) -> float:
    """How often log2 is applied to x until at most 1 is left."""
    times = 0
    while x > 1:
        x, times = math.log2(x), times + 1
    return float(times)


def effective_gradient(values: Values) -> float:
    """The smaller of the Lipschitz constant and sigma sqrt(d)."""
    return min(values["lipschitz"], values["sigma"] * math.sqrt(values["dimension"]))


Base = tuple[tuple[str, ...], Callable[[Values], float]]
BASES: Mapping[str, Base] = MappingProxyType(
    {
        "min(1, m alpha)": (("m", "alpha"), lambda v: min(1.0, v["m"] * v["alpha"])),
        "log(1/delta)": (("delta",), lambda v: -math.log(v["delta"])),
        "log(1/beta)": (("beta",), lambda v: -math.log(v["beta"])),
        "log(1/(delta beta))": (("delta", "beta"), lambda v: -math.log(v["delta"]) - math.log(v["beta"])),
        "log(n_users/(delta beta))": (
            ("n_users", "delta", "beta"),
            lambda v: math.log(v["n_users"]) - math.log(v["delta"]) - math.log(v["beta"]),
        ),
        "log(n_choices/beta)": (("n_choices", "beta"), lambda v: math.log(v["n_choices"]) - math.log(v["beta"])),
        "log(n_hypotheses/beta)": (
            ("n_hypotheses", "beta"),
            lambda v: math.log(v["n_hypotheses"]) - math.log(v["beta"]),
        ),
        "log(1/delta)^(log_power + 3/2)": (
            ("delta", "log_power"),
            lambda v: (-math.log(v["delta"])) ** (v["log_power"] + 1.5),
        ),
        "min(log(1/delta), representation_dimension)": (
            ("delta", "representation_dimension"),
            lambda v: min(-math.log(v["delta"]), v["representation_dimension"]),
        ),
        "representation_dimension^power": (
            ("representation_dimension", "power"),
            lambda v: v["representation_dimension"] ** v["power"],
        ),
        "littlestone_dimension^power": (
            ("littlestone_dimension", "power"),
            lambda v: v["littlestone_dimension"] ** v["power"],
        ),
        "sq_dimension^power": (("sq_dimension", "power"), lambda v: v["sq_dimension"] ** v["power"]),
        "log*(littlestone_dimension)": (
            ("littlestone_dimension",),
            lambda v: iterated_logarithm(v["littlestone_dimension"]),
        ),
        "log(domain_size)": (("domain_size",), lambda v: math.log(v["domain_size"])),
        "log(n_hypotheses)": (("n_hypotheses",), lambda v: math.log(v["n_hypotheses"])),
        "log(n_hypotheses n_users)": (
            ("n_hypotheses", "n_users"),
            lambda v: math.log(v["n_hypotheses"]) + math.log(v["n_users"]),
        ),
        "log(n_hypotheses n_users m epsilon)": (
            ("n_hypotheses", "n_users", "m", "epsilon"),
            lambda v: math.log(v["n_hypotheses"] * v["n_users"] * v["m"] * v["epsilon"]),
        ),
        "min(lipschitz, sigma sqrt(dimension))": (("lipschitz", "sigma", "dimension"), effective_gradient),
        "exp(-n_users epsilon)": (("n_users", "epsilon"), lambda v: math.exp(-v["n_users"] * v["epsilon"])),
        "exp(-iterations strong_convexity/smoothness)": (
            ("iterations", "strong_convexity", "smoothness"),
            lambda v: math.exp(-v["iterations"] * v["strong_convexity"] / v["smoothness"]),
        ),
        "log(max_norm^2/alpha^2)": (("max_norm", "alpha"), lambda v: 2 * math.log(v["max_norm"] / v["alpha"])),
        "log(lipschitz radius/alpha)": (
            ("lipschitz", "radius", "alpha"),
            lambda v: math.log(v["lipschitz"] * v["radius"] / v["alpha"]),
        ),
    }
)
"""What terms are powers of, beside parameters: what each depends on, and its value."""


def read(name: str, value: object) -> float:
    """A parameter as a float, or an error that names it."""
    number = PARAMETERS[name][0](value, name)
    if name != "delta" and not 1 / LARGEST <= number <= LARGEST:
        raise ValueError(f"{name} must be between {1 / LARGEST:.0e} and {LARGEST:.0e}; got {short_repr(value)}")
    return number


@dataclass(frozen=True)
class Term:
    """A product of powers.

    Attributes
    ----------
    powers : mapping from str to Fraction
        The exponent of each parameter or composed number. That of m is the slope of the term on paper with two
        logarithmic axes.
    """

    powers: Mapping[str, Fraction]

    def __post_init__(self) -> None:
        object.__setattr__(self, "powers", MappingProxyType(dict(self.powers)))

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that the term depends on."""
        names = [name for base in self.powers for name in (BASES[base][0] if base in BASES else (base,))]
        return tuple(dict.fromkeys(names))

    @property
    def formula(self) -> str:
        """The term in words, such as ``dimension / (epsilon * sqrt(m))``."""
        above = [_power(base, power) for base, power in self.powers.items() if power > 0]
        below = [_power(base, -power) for base, power in self.powers.items() if power < 0]
        numerator = " * ".join(above) or "1"
        if not below:
            return numerator
        return f"{numerator} / {below[0] if len(below) == 1 else '(' + ' * '.join(below) + ')'}"

    def __call__(self, values: Values) -> float:
        """The value of the term."""
        result = 1.0
        for base, power in self.powers.items():
            size = BASES[base][1](values) if base in BASES else values[base]
            # Whole powers and square roots are exact for numbers that have exact ones.
            doubled = int(2 * power) if (2 * power).denominator == 1 else None
            if doubled is None:
                result *= size ** float(power)
            else:
                result *= size ** (doubled // 2) * (math.sqrt(size) if doubled % 2 else 1.0)
        return result


def _power(base: str, power: Fraction) -> str:
    if power == 1:
        return base
    if power == HALF:
        return f"sqrt({base})"
    exponent = str(power) if power.denominator == 1 else f"({power})"
    return f"({base})^{exponent}" if base in BASES else f"{base}^{exponent}"


def term(composed: Mapping[str, int | Fraction] | None = None, /, **powers: int | Fraction) -> Term:
    """A term by the exponents of its parameters, and of composed numbers."""
    return Term({name: Fraction(power) for name, power in {**(composed or {}), **powers}.items()})


@dataclass(frozen=True)
class Condition:
    """What a paper asks for.

    Attributes
    ----------
    text : str
    holds : callable, optional
        Whether parameters meet it. Absent where the paper hides a constant, so that nobody can tell.
    remedy : callable, optional
        What would do, in words.
    parameters : tuple of str
        What `holds` reads that formulas of its rows may not have.
    """

    text: str
    holds: Callable[[Values], bool] | None = None
    remedy: Callable[[Values], str] | None = None
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rate:
    """A row of a paper as a formula: its shape only, without constants, and without the logarithms that O~ hides.

    Attributes
    ----------
    paper, table, row, column : str
        Where it stands.
    task : str
        Of the planner.
    model : {"central", "local", "shuffle"}
        Who is trusted.
    privacy : {"pure", "approximate"}
    level : {"user", "item"}
        Whom privacy protects.
    direction : {"upper", "lower", "tight"}
        A number that is enough, one that every algorithm needs, or both.
    measures : str
        What the sum of the terms is.
    terms : mapping from str to callable
        By formula. Each takes the parameters by name.
    conditions : tuple of Condition
        Under which the paper states it.
    """

    paper: str
    table: str
    row: str
    column: str
    task: str
    model: str
    privacy: Privacy
    level: str
    direction: Direction
    measures: str
    terms: Mapping[str, Term]
    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", MappingProxyType(dict(self.terms)))

    @property
    def name(self) -> str:
        """The name of the row, as `rate` takes it."""
        return f"{self.paper}: {self.table}, {self.row}, {self.column}"

    @property
    def parameters(self) -> tuple[str, ...]:
        """What the formula and its conditions that can be checked depend on, always with the privacy parameters."""
        names = [name for each in self.terms.values() for name in each.parameters]
        names += [name for each in self.conditions for name in each.parameters]
        return tuple(dict.fromkeys([*names, "epsilon", *(["delta"] if self.privacy == "approximate" else [])]))

    @property
    def needs_delta(self) -> bool:
        """Whether a term depends on delta, so that it has no value for pure privacy."""
        return any("delta" in each.parameters for each in self.terms.values())
