"""How many users every private selection needs, by certified optima of small worlds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from userdp.exact.numbers import Delta, Epsilon, check_count, parse_delta, short_repr
from userdp.exceptions import BudgetError
from userdp.optimal import agreement_certificate
from userdp.optimal.worlds import MOST_CONSTRAINTS
from userdp.report import OptimalityCertificate


@dataclass(frozen=True)
class SelectionUsers:
    """How many users a private selection needs at least; made by `selection_users`.

    Attributes
    ----------
    n_users : int
        No mechanism with this privacy does with fewer users.
    enough : bool
        Whether some mechanism does with n_users: the certified optimum is at most the failure that is accepted.
    failure : Fraction
        The probability to miss the common item that is accepted.
    certificate : OptimalityCertificate or None
        That with one user fewer every mechanism misses it more often; None for one user.
    """

    n_users: int
    enough: bool
    failure: Fraction
    certificate: OptimalityCertificate | None


def selection_users(
    *,
    n_items: int,
    agreement: float | Fraction | str,
    epsilon: Epsilon,
    delta: Delta = 0,
    beta: Delta,
    max_constraints: int = MOST_CONSTRAINTS,
) -> SelectionUsers:
    """The number of users below which every private selection misses the common item too often.

    Parameters
    ----------
    n_items : int
        From 2 to 2**24. What holds for fewer items holds for more.
    agreement : float, int, Fraction or decimal string
        The probability p in (1/2, 1] with which each user, independently, has the common item. All others have one
        other item. A float is the decimal it prints as.
    epsilon, delta : privacy parameters
        For replacing one user; epsilon from 2**-20 to 24, delta 0 or from 1e-8 on.
    beta : float, int, Fraction or decimal string
        In (0, 1): the probability with which a learner may fail, a third of it here, as in ``users_needed`` of
        `userdp.mechanisms.PurePrivateMode`.
    max_constraints : int
        Larger programs are refused.

    Returns
    -------
    SelectionUsers

    Raises
    ------
    BudgetError
        When programs become too large before a number of users is found that is enough. The message has the number up
        to which all are certified to be too few.
    ImportError
        Without highspy: ``pip install 'userdp[optimal]'``.

    Notes
    -----
    A mechanism for n users is one for n + 1 that ignores one of them, and misses the item as often, since users are
    independent. So the least probability to miss never grows, and one certificate excludes all smaller numbers. Proof:
    docs/proofs/optimal_mechanisms.md. `enough` is about a mechanism that knows the agreement.

    Examples
    --------
    >>> least = selection_users(n_items=2, agreement="0.9", epsilon=1, beta="0.1")
    >>> least.n_users, least.enough
    (8, True)
    """
    items, share = check_count(n_items, "n_items", 2), parse_delta(agreement, "agreement")
    if not Fraction(1, 2) < share <= 1:
        raise ValueError(f"agreement must be in (1/2, 1]; got {short_repr(agreement)}")
    accepted = parse_delta(beta, "beta") / 3
    if not 0 < accepted < Fraction(1, 3):
        raise ValueError(f"beta must be in (0, 1), ends excluded; got {short_repr(beta)}")

    def at(n: int) -> OptimalityCertificate:
        return agreement_certificate(n, items, share, epsilon, delta, max_constraints)

    # The largest number that is excluded, and the least that is not, by doubling and halving.
    excluded: tuple[int, OptimalityCertificate | None] = (0, None)
    open_at: tuple[int, OptimalityCertificate] | None = None
    step = 1
    while open_at is None or open_at[0] - excluded[0] > 1:
        n = excluded[0] + step if open_at is None else (excluded[0] + open_at[0]) // 2
        try:
            found = at(n)
        except BudgetError as error:
            if open_at is None and step > 1:
                step = 1
                continue
            raise BudgetError(
                f"every selection misses the common item too often with up to {excluded[0]} users, and larger worlds "
                f"are too large to decide: {error}"
            ) from None
        if found.lower_bound > accepted:
            excluded = (n, found)
            step *= 2
        else:
            open_at = (n, found)
    return SelectionUsers(open_at[0], open_at[1].value <= accepted, accepted, excluded[1])
