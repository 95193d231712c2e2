"""Mechanisms of least loss among those that see the number of users and a sum of integers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from userdp.algorithms.finite import AdditiveAlgorithm, Form, User, integer_of, listed_users
from userdp.exact.numbers import Delta, Epsilon, check_count, short_repr
from userdp.exact.pmf import Pmf, PmfLike
from userdp.exceptions import BudgetError
from userdp.optimal.certified import Certified, loaded, read_delta, read_level, solved
from userdp.optimal.mechanism import Objective, check_objective, distinct_values, normalized, number_on
from userdp.optimal.worlds import MOST_CONSTRAINTS, SumWorld, world_from
from userdp.report import OptimalityCertificate


class OptimalSumMechanism(Certified, AdditiveAlgorithm):
    """A mechanism of least loss among those that see a sum; made by `optimal_sum_mechanism` or `from_certificate`.

    It is an additive algorithm: an audit decides its privacy again.

    Parameters
    ----------
    certificate : OptimalityCertificate or str
        Or its JSON. It is checked first.
    statistic : callable
        ``user -> int``, as it was when the mechanism was made.

    Notes
    -----
    *Reading users.* A user for whom `statistic` raises, or is no integer, counts as the lower end of its range. The
    number of users is public, and a wrong one raises.

    *Time.* One draw reads the whole row of masses. Which row is read follows from the data in Python, whose time may
    tell about it.

    Examples
    --------
    >>> from userdp import LogRatio
    >>> total = optimal_sum_mechanism(
    ...     lambda total, output: abs(total - output), statistic_range=(0, 2), outputs=range(5), n_users=2,
    ...     epsilon=LogRatio(2),
    ... )
    >>> len(total.pmf(((0, 1), (1, 1))))
    5
    """

    _form: ClassVar[Form] = Form("additive", ("pmf", "total_of", "statistic_of"))

    def __init__(self, certificate: OptimalityCertificate | str, statistic: Callable[[User], int] = sum) -> None:
        found = loaded(certificate, ("sum",))
        states, reach, lowest = len(found.world["losses"]), found.world["reach"], found.world["lowest"]
        if states == 1 or (states - 1) % reach or lowest % ((states - 1) // reach):
            raise ValueError("certificate is about sums that no whole number of equal ranges has")
        self._made(found, statistic)

    def _made(self, certificate: OptimalityCertificate, statistic: Callable[[User], int]) -> OptimalSumMechanism:
        """Take the table of a certificate that was made or checked just now."""
        Certified.__init__(self, certificate)
        world = world_from(certificate.world)
        assert isinstance(world, SumWorld)
        self._world: SumWorld = world
        self.n_users = (len(world.losses) - 1) // world.reach
        low = world.lowest // self.n_users
        AdditiveAlgorithm.__init__(
            self, world.outputs, statistic, self._pmf_of_total, statistic_range=(low, low + world.reach)
        )
        return self

    @classmethod
    def from_certificate(
        cls, certificate: OptimalityCertificate | str, statistic: Callable[[User], int] = sum
    ) -> OptimalSumMechanism:
        """Make the mechanism of a certificate again, without a solver.

        Parameters
        ----------
        certificate : OptimalityCertificate or str
            Or its JSON. It is checked first.
        statistic : callable
            ``user -> int``, as it was when the mechanism was made.
        """
        return cls(certificate, statistic)

    def _weights(self, total: int) -> Sequence[int]:
        state = total - self._world.lowest
        return self._certificate.table[self._world.first[state] : self._world.first[state + 1]]

    def _pmf_of_total(self, total: int, n_users: int) -> PmfLike:
        if n_users != self.n_users:
            raise ValueError(f"dataset must have {self.n_users} users, for whom the mechanism is made; got {n_users}")
        return Pmf(self.outputs, tuple(self._weights(total)))

    def sample(self, dataset: Any, random_state: int | None = None) -> Any:
        """Draw an output, once, with the whole of the budget.

        Parameters
        ----------
        dataset : sequence of users
            n_users users, each of whom `statistic` makes an integer of.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draw reproducible,
            for tests only, and warns.
        """
        users = listed_users(dataset, "dataset")
        if len(users) != self.n_users:
            raise ValueError(
                f"dataset must have {self.n_users} users, for whom the mechanism is made; got {len(users)}"
            )
        return self.outputs[self._drawn(self._weights(sum(map(self.statistic_of, users))), random_state)]

    def statistic_of(self, user: Any) -> int:
        """The user's statistic, clamped to the public range; the lower end of it for whoever has none."""
        low, high = self.statistic_range
        try:
            return min(max(integer_of(self.statistic(user), "statistic"), low), high)
        except Exception:
            return low

    def __repr__(self) -> str:
        return (
            f"<OptimalSumMechanism with {len(self.outputs)} outputs for {self.n_users} users: loses "
            f"{float(self.value):.6g}, gap {self.gap:.1e}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self._certificate, self.statistic)


def _again(
    kind: type[OptimalSumMechanism], certificate: OptimalityCertificate, statistic: Callable[[User], int]
) -> OptimalSumMechanism:
    """Make a copy from the table, which a solver of another version might not find again."""
    return kind.__new__(kind)._made(certificate, statistic)


def optimal_sum_mechanism(
    loss: Callable[[int, Any], Any],
    *,
    statistic_range: Sequence[int],
    outputs: Iterable[Hashable],
    n_users: int,
    epsilon: Epsilon,
    delta: Delta = 0,
    objective: Objective = "worst",
    prior: Callable[[int], Any] | None = None,
    statistic: Callable[[User], int] = sum,
    max_constraints: int = MOST_CONSTRAINTS,
) -> OptimalSumMechanism:
    """The private mechanism of least loss among those that see a sum over the users, with a proof.

    Parameters
    ----------
    loss : callable
        ``(total, output) -> number``: a finite number >= 0 for every total, as for `optimal_mechanism`.
    statistic_range : (int, int)
        The public range (lo, hi), lo < hi, of what each user adds.
    outputs : iterable
        The k outputs.
    n_users : int
        Every dataset has n_users users, so that totals are from n_users lo to n_users hi.
    epsilon, delta, objective : privacy parameters, and "worst" or "bayes"
        As for `optimal_mechanism`.
    prior : callable, optional
        For "bayes": ``total -> weight``; all totals weigh the same by default.
    statistic : callable
        ``user -> int``, what a user adds: by default the sum of the user's examples.
    max_constraints : int
        Larger programs are refused.

    Returns
    -------
    OptimalSumMechanism

    Notes
    -----
    Replacing a user moves the total by at most hi - lo, and all such pairs of totals are neighbors. `lower_bound` is
    about mechanisms that see the total alone: one that sees the users may do better, even for a loss that depends on
    the total alone. `optimal_mechanism` is about all. See docs/proofs/optimal_mechanisms.md.

    Examples
    --------
    >>> from userdp import LogRatio
    >>> mechanism = optimal_sum_mechanism(
    ...     lambda total, output: abs(total - output), statistic_range=(0, 2), outputs=range(7), n_users=3,
    ...     epsilon=LogRatio(3),
    ... )
    >>> mechanism.value
    Fraction(413, 386)
    """
    if not callable(loss):
        raise TypeError(f"loss must be a function of a total and an output; got {type(loss).__name__}")
    if not callable(statistic):
        raise TypeError(f"statistic must be a function of a user; got {type(statistic).__name__}")
    check_objective(objective, prior)
    if not isinstance(statistic_range, (tuple, list)) or len(statistic_range) != 2:
        raise TypeError(f"statistic_range must be (lo, hi); got {short_repr(statistic_range)}")
    low, high = (integer_of(bound, "statistic_range") for bound in statistic_range)
    if low >= high:
        raise ValueError(f"statistic_range must be (lo, hi) with lo < hi; got {statistic_range!r}")
    answers, users = distinct_values(outputs, "outputs"), check_count(n_users, "n_users")
    level, slack, most = read_level(epsilon), read_delta(delta), check_count(max_constraints, "max_constraints")
    reach, states = high - low, users * (high - low) + 1
    constraints = 2 * min(reach, states) * states * len(answers)
    if constraints > most * 2:
        raise BudgetError(
            f"{short_repr(states)} totals with {len(answers)} outputs have some {short_repr(constraints)} constraints; "
            f"at most max_constraints={most:,} are accepted: take fewer users or outputs, or a smaller range"
        )
    totals = range(users * low, users * high + 1)
    losses = [
        [
            number_on(loss(total, output), f"loss of the output {short_repr(output)}", f"the total {total}")
            for output in answers
        ]
        for total in totals
    ]
    weights = None
    if objective == "bayes":
        given = [Fraction(1)] * states
        if prior is not None:
            given = [number_on(prior(total), "prior", f"the total {total}") for total in totals]
        weights = normalized(given)
    world = SumWorld(users * low, reach, answers, losses)
    return _again(OptimalSumMechanism, solved(world, level, slack, weights, most), statistic)
