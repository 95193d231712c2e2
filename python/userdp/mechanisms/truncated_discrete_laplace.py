"""Truncated discrete Laplace noise: a certified table of integers over 2^128, drawn by scanning it whole."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from userdp.exact.numbers import (
    Delta,
    Epsilon,
    Neighbors,
    PrivacyLevel,
    nonzero_level,
    parse_delta,
    short_repr,
    stated_neighbors,
)
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.base import TableDistribution

if TYPE_CHECKING:
    from userdp import _core
    from userdp.accounting import PrivacyLossDistribution
    from userdp.report import Certificate

IDEAL_BITS = 2**30
"""The ideal pmf is refused when its weights have more bits than this together."""


def tdlap_half_width(epsilon: Epsilon, delta: Delta) -> int:
    """Half the width of truncated discrete Laplace noise: 1 + ceil(ln(1/delta) / epsilon), exactly.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, positive. A float is the decimal it prints as.
    delta : float, int, Fraction or decimal string
        A probability strictly between 0 and 1.

    Returns
    -------
    int
        1 + min{c : e**(c epsilon) >= 1 / delta}, decided exactly, ties included.

    Raises
    ------
    BudgetError
        When the result would be above 2**60.

    Notes
    -----
    [GKKMMZ23, Definition 8]: Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang, "User-Level Differential Privacy With Few
    Examples Per User" (NeurIPS 2023).

    Examples
    --------
    >>> from userdp import LogRatio
    >>> tdlap_half_width(1.0, "1e-6")
    15
    >>> tdlap_half_width(LogRatio(2), "1/8"), tdlap_half_width(LogRatio(2), "0.1249")  # 2**3 = 8 exactly
    (4, 5)
    """
    from userdp import _core
    from userdp.exact.epsilon import core_level

    level, probability = noise_parameters(epsilon, delta)
    return _core.kappa(core_level(level), probability)


def noise_parameters(epsilon: Any, delta: Any) -> tuple[PrivacyLevel, Fraction]:
    """Read epsilon > 0 and 0 < delta < 1."""
    level, probability = nonzero_level(epsilon), parse_delta(delta)
    if not 0 < probability < 1:
        raise ValueError(f"delta must be in (0, 1) here, ends excluded; got {short_repr(delta)}")
    return level, probability


class TruncatedDiscreteLaplace(TableDistribution):
    """Truncated discrete Laplace noise, shifted to the support 0, 1, ..., 2 kappa.

    The ideal noise has P[x] proportional to e**(-epsilon |x - kappa|) ([GKKMMZ23, Definition 8]). What is drawn here,
    and what `pmf` returns, is an exact table of integers over 2**128 next to it.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, positive. A float is the decimal it prints as.
    delta : float, int, Fraction or decimal string
        A probability strictly between 0 and 1, at least 2**-128.
    half_width : {"paper", "tight"}
        "paper": kappa = 1 + ceil(ln(1/delta) / epsilon), exactly. "tight": the least kappa whose table has ends of at
        most delta; about 1 + ln(coth(epsilon / 2)) / epsilon smaller, with the same guarantee.
    neighbors : {"replace", "add-remove"}, optional
        For which neighboring datasets the sensitivity was found: those that the cost is about. None does not say.

    Raises
    ------
    BudgetError
        When the table is built: for kappa above 2**20.

    Notes
    -----
    *Neighbors and sensitivity.* For an integer statistic that changes by at most 1 between neighbors, its sum with this
    noise is (epsilon, delta)-DP, and the whole budget is spent on the one sum. The table is certified in
    integers when it is built: P[x] <= e**epsilon P[x +- 1] on the support, and P[0] = P[2 kappa] <= delta. Proof:
    docs/proofs/truncated_discrete_laplace.md.

    *Time.* A draw takes 128 random bits and reads the whole table, whatever the bits are. The table is built on first
    use.

    References
    ----------
    [GKKMMZ23, Definition 8] and [GKKMMZ23, Lemma 18].

    Examples
    --------
    >>> noise = TruncatedDiscreteLaplace(epsilon=1, delta="1e-6")
    >>> noise.half_width
    15
    >>> noise.pmf().total == 2**128
    True
    >>> noise.certified_epsilon <= 1 and noise.certified_delta <= 1e-6
    True
    >>> 0 <= noise.sample() <= 30
    True
    >>> TruncatedDiscreteLaplace(epsilon=1, delta="1e-6", half_width="tight").half_width
    14
    """

    _cost_from: ClassVar[dict[str, str]] = {"epsilon": "epsilon", "delta": "delta"}

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        delta: Delta,
        half_width: Literal["paper", "tight"] = "paper",
        neighbors: Neighbors | None = None,
    ) -> None:
        if half_width not in ("paper", "tight"):
            raise ValueError(f"half_width must be 'paper' or 'tight'; got {short_repr(half_width)}")
        self._level, self._delta = noise_parameters(epsilon, delta)
        relation = stated_neighbors(neighbors)
        super().__init__(epsilon=epsilon, delta=delta, half_width=half_width, neighbors=relation)

    @cached_property
    def _core_sampler(self) -> _core.TruncatedDiscreteLaplaceTable:
        from userdp import _core
        from userdp.exact.epsilon import core_level

        tight = self._arguments["half_width"] == "tight"
        return _core.TruncatedDiscreteLaplaceTable(core_level(self._level), self._delta, tight)

    @property
    def half_width(self) -> int:
        """Half the width, kappa: the noise takes the values 0, 1, ..., 2 kappa, with mean kappa."""
        return self._core_sampler.kappa

    @property
    def certified_epsilon(self) -> float:
        """The largest |ln P[x] - ln P[x + 1]| of the table, rounded up; at most epsilon rounded up to a float."""
        from userdp import _core
        from userdp.exact.epsilon import float_above

        # The certificate has the ratios at most e^epsilon exactly, where the enclosure of ln has some width.
        return min(_core.ln_bounds(self._core_sampler.largest_ratio)[1], float_above(self._level))

    @property
    def certified_delta(self) -> Fraction:
        """P[0] = P[2 kappa], exactly: the mass that a shift by 1 moves out of the common support."""
        return Fraction(self._core_sampler.numerators[0], 2**128)

    def certificate(self) -> Certificate:
        """The table and its claim as a certificate, which `verify` and Coq check: docs/certificates.md."""
        from userdp.report.certificate import certified, table_factor

        return certified(
            subject="noise",
            epsilon=self._level,
            delta=self._delta,
            factor=table_factor(self._level),
            total=2**128,
            table=tuple(self._core_sampler.numerators),
            second=None,
            parts={},
        )

    def privacy_loss(self, sensitivity: int = 1) -> PrivacyLossDistribution:
        """The privacy loss of an integer statistic plus this noise.

        Parameters
        ----------
        sensitivity : int
            The most by which the statistic changes between neighbors, at least 1.

        Returns
        -------
        PrivacyLossDistribution
            Of (epsilon, `certified_delta`)-DP for a change by 1, and of a group of so many such changes.
        """
        from userdp.accounting import PrivacyLossDistribution
        from userdp.exact.epsilon import as_epsilon

        once = PrivacyLossDistribution.pure(as_epsilon(self._level), self.certified_delta, neighbors=self.neighbors)
        return once.group(sensitivity)

    def ideal_pmf(self) -> Pmf:
        """[GKKMMZ23, Definition 8] with this kappa, exactly, for comparison; nothing is drawn from it.

        Raises
        ------
        BudgetError
            When the weights are too long to be written out.
        """
        if self._level.exponent:
            epsilon = self._arguments["epsilon"]
            raise ValueError(
                f"epsilon={short_repr(epsilon)}: the ideal probabilities are rational only for a LogRatio, where "
                "e**epsilon is"
            )
        a, b, kappa = self._level.ratio.numerator, self._level.ratio.denominator, self.half_width
        bits = a.bit_length() * kappa * (2 * kappa + 1)
        if bits > IDEAL_BITS:
            raise BudgetError(
                f"the ideal weights have about {bits:.3g} bits together, above {IDEAL_BITS:.3g}; use pmf(), or a "
                "larger epsilon or delta"
            )
        side = [a**j * b ** (kappa - j) for j in range(kappa + 1)]  # E^(j - kappa) at distance kappa - j, times a^kappa
        return Pmf(tuple(range(2 * kappa + 1)), tuple(side + side[-2::-1]))
