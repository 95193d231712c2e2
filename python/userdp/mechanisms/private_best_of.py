"""The best of a hidden random number of runs of a private mechanism."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

from userdp import _core
from userdp.exact.numbers import Delta, check_count, check_flag, parse_delta, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.base import Mechanism, SupportsDraw
from userdp.mechanisms.distributions import Geometric
from userdp.runtime import source_of

PMF_BITS = 2**31
"""Exact distributions with more bits than this are refused: they take minutes."""


class PrivateBestOf(Mechanism):
    """Run a private mechanism a random number of times on the same data, and release the least outcome only.

    Three times the epsilon of one run pays for all of them, however many there are: selection from candidates that are
    themselves private, by random stopping.

    Parameters
    ----------
    mechanism : mechanism
        What is run, such as one of this package's. Its outcomes must have a total order, `<`, that is fixed in advance:
        pairs (value, index) for example. The least is the best.
    stopping_probability : float, int, Fraction or decimal string
        gamma, in [2**-52, 1]: after every run the runs end with this probability, so that 1 / gamma runs are expected.
    most_runs : int, optional
        N: the number K of runs is drawn given K <= N. It costs no privacy. N >= 1.
    hide_time : bool
        True always makes all of `most_runs` runs, and ignores those after the K-th: the time then does not tell K.

    Notes
    -----
    *Guarantee.* When one run is epsilon-DP, pure, the outcome is 3 epsilon-DP, for the same neighbors, whatever gamma
    and N are. Proof, and why no smaller factor than 3 is true: docs/proofs/private_selection.md.

    *K is secret.* The pair (K, outcome) is only K epsilon-DP. K is not returned, kept or logged. **The time of a draw
    tells K** unless hide_time.

    *Distribution.* K - 1 is drawn by `Geometric`, modulo N, which has the distribution of K - 1 given K <= N. (Stopping
    a single run at N instead would cost delta = (1 - gamma)**N; nothing here does that.)

    References
    ----------
    Liu, Talwar (STOC 2019), Theorem 3.2. [LSAKKMS21, Algorithm 5]. [LSAKKMS21, Theorem 6].

    Examples
    --------
    The best of a few noisy counts of 3:

    >>> from userdp.mechanisms import DiscreteLaplace, PrivateBestOf
    >>> noisy = DiscreteLaplace(epsilon=1, sensitivity=1, bounds=(0, 6))
    >>> best = PrivateBestOf(noisy, stopping_probability="1/4", most_runs=20)
    >>> 0 <= best.sample(3) <= 6
    True
    >>> best.pmf(3).probabilities.round(3)
    array([0.13 , 0.173, 0.291, 0.321, 0.058, 0.017, 0.009])
    """

    def __init__(
        self,
        mechanism: SupportsDraw,
        *,
        stopping_probability: Delta,
        most_runs: int | None = None,
        hide_time: bool = False,
    ) -> None:
        self.mechanism = mechanism
        self.stopping_probability = parse_delta(stopping_probability, "stopping_probability")
        if self.stopping_probability < Fraction(1, 2**52):
            raise ValueError(f"stopping_probability must be from 2**-52 to 1; got {short_repr(stopping_probability)}")
        self.most_runs = None if most_runs is None else check_count(most_runs, "most_runs")
        self.hide_time = check_flag(hide_time, "hide_time")
        if self.hide_time and most_runs is None:
            raise ValueError("hide_time makes a public number of runs: give it as most_runs")
        self._failures = Geometric(p=self.stopping_probability)
        super().__init__(
            mechanism=mechanism,
            stopping_probability=self.stopping_probability,
            most_runs=self.most_runs,
            hide_time=self.hide_time,
        )

    def sample(self, *arguments: Any, random_state: int | None = None) -> Any:
        """The least outcome of the runs.

        Parameters
        ----------
        *arguments
            What the mechanism is run on, the same each time.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draws reproducible,
            for tests only, and warns.

        Returns
        -------
        object
            An outcome of the mechanism.
        """
        return self._draw(source_of(random_state), *arguments)

    def _draw(self, source: _core.Source, *arguments: Any) -> Any:
        runs = self._number_of_runs(source)
        best = self.mechanism._draw(source, *arguments)
        for done in range(1, (self.most_runs or runs) if self.hide_time else runs):
            outcome = self.mechanism._draw(source, *arguments)
            if done < runs and outcome < best:
                best = outcome
        return best

    def _number_of_runs(self, source: _core.Source) -> int:
        """K, which nobody may learn. It does not depend on data."""
        failures = self._failures._draw(source)
        # The distribution of failures modulo N is that of failures given that they are below N.
        return 1 + (failures if self.most_runs is None else failures % self.most_runs)

    def pmf(self, *arguments: Any) -> Pmf:
        """The exact distribution of the outcome.

        Parameters
        ----------
        *arguments
            What the mechanism is run on.

        Returns
        -------
        Pmf
            Over the outcomes of one run, from the best to the worst.

        Raises
        ------
        BudgetError
            For distributions of more than 2**31 bits.
        """
        return self.pmf_from(self.mechanism.pmf(*arguments))

    def pmf_from(self, one_run: Pmf) -> Pmf:
        """The exact distribution of the least outcome, from that of one run.

        Parameters
        ----------
        one_run : Pmf
            Its outcomes in any order; they are sorted.

        Returns
        -------
        Pmf
            Over the same outcomes, from the best to the worst.

        Raises
        ------
        BudgetError
            For distributions of more than 2**31 bits.

        Examples
        --------
        >>> from userdp.mechanisms import DiscreteLaplace, Pmf, PrivateBestOf
        >>> noise = DiscreteLaplace(epsilon=1, sensitivity=1, bounds=(0, 3))
        >>> half = PrivateBestOf(noise, stopping_probability="1/2")
        >>> [str(part) for part in half.pmf_from(Pmf((0, 1, 2, 3), (1, 3, 2, 4))).fractions()]
        ['2/11', '30/77', '5/28', '1/4']
        """
        weight_of = dict(zip(one_run.outputs, one_run.weights, strict=True))
        outputs: tuple[Any, ...] = tuple(sorted(weight_of))
        weights = [weight_of[output] for output in outputs]
        return Pmf.from_weights(self._weights(weights, one_run.total), outputs)

    def _weights(self, weights: list[int], total: int) -> list[Fraction]:
        """Weights of the least outcome, from those of one run in order; see docs/proofs/private_selection.md."""
        a, b = self.stopping_probability.numerator, self.stopping_probability.denominator
        bits = (b * total).bit_length() * len(weights) * (self.most_runs or 2 * len(weights))
        if bits > PMF_BITS:
            raise BudgetError(
                f"the exact distribution would have about {bits} bits, and at most {PMF_BITS} are "
                "written out; audit fewer "
                "outcomes of one run, a coarser stopping_probability, or most_runs below this"
            )
        best = [0, *accumulate(weights)]
        if self.most_runs is None:
            parts = [a * total + (b - a) * mass for mass in best]
            return [
                Fraction(weight, before * after)
                for weight, before, after in zip(weights, parts[:-1], parts[1:], strict=True)
            ]
        # x**(N - 1) times the probability that all runs are beyond the best, up to a constant.
        x, most = b * total, self.most_runs
        beyond = []
        for mass in best:
            y = (b - a) * (total - mass)
            beyond.append((total - mass) * ((x**most - y**most) // (x - y)))
        return [Fraction(before - after) for before, after in pairwise(beyond)]
