"""The best private choice of the item that most users have, for one number of users."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from userdp.accounting.cost import PrivacyCost
from userdp.algorithms.finite import Dataset, SymmetricAlgorithm, private_users
from userdp.exact.numbers import Delta, Epsilon, check_count, is_integer, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.mode import Counts, PrivateMode
from userdp.optimal.certified import Certified, loaded, read_delta, read_level, solved
from userdp.optimal.worlds import MOST_CONSTRAINTS, SelectionWorld, refuse_many_orbits, world_from
from userdp.report import OptimalityCertificate
from userdp.users.containers import item_of

if TYPE_CHECKING:
    from userdp import _core

SelectionLoss: TypeAlias = Literal["regret", "error"]
MOST_ITEMS = 2**10
"""Of a release, whose row has a mass for each."""
MOST_BOUNDED = 2**24
"""Of a bound, in whose program the items that nobody has are one class with this coefficient."""
LARGEST_GAP_OF_BOUNDS = 1e-2
"""A bound is true whatever the gap is; with a larger one nothing was found."""


class OptimalSelection(Certified, PrivateMode[int, int]):
    """Choose the item of most users with the least worst loss that privacy allows.

    Everybody has one of the items 0, ..., n_items - 1. The distribution of the choice is a table that was solved for
    this number of users, with a certificate that no mechanism with the same privacy has a smaller worst loss.

    Parameters
    ----------
    n_items : int
        From 1 to 1024.
    n_users : int
        Every release is on the items of exactly so many users. Public.
    epsilon, delta : privacy parameters
        For replacing one user. As for `optimal_mechanism`.
    loss : {"regret", "error"}
        What is least in the worst case: how many more users the winner has than the choice, on average, or the
        probability that the choice is no winner.
    default : int
        The item that anything which is no item counts as.
    max_constraints : int
        Larger programs are refused.

    Raises
    ------
    BudgetError
        For programs that are too large, before anything is solved, with their number of sorted counts.

    Notes
    -----
    *Privacy.* The table's integers satisfy every constraint exactly, and `certificate` proves it. The whole of
    (epsilon, delta) is spent on the one draw. Proofs: docs/proofs/optimal_mechanisms.md.

    *Which to take.* For two items and an even number of users `userdp.mechanisms` has this distribution without a
    solver; for more, the gain in the number of users is small: docs/optimal.md has the figures.

    *Time.* A draw takes the same steps whatever comes out of it. Which row of the table is read follows from the
    counts in Python, whose time may tell about them.

    Examples
    --------
    >>> from userdp import LogRatio
    >>> selection = OptimalSelection(n_items=3, n_users=6, epsilon=LogRatio(4))
    >>> selection.value, selection.lower_bound
    (Fraction(7, 20), Fraction(7, 20))
    >>> selection.release([0, 0, 0, 1, 2, 0]) in range(3)
    True
    """

    def __init__(
        self,
        *,
        n_items: int,
        n_users: int,
        epsilon: Epsilon,
        delta: Delta = 0,
        loss: SelectionLoss = "regret",
        default: int = 0,
        max_constraints: int = MOST_CONSTRAINTS,
    ) -> None:
        items, users = check_count(n_items, "n_items"), check_count(n_users, "n_users")
        if items > MOST_ITEMS:
            raise ValueError(
                f"n_items must be at most {MOST_ITEMS}; got {short_repr(n_items)}: a draw reads a mass for each"
            )
        if loss not in ("regret", "error"):
            raise ValueError(f"loss must be 'regret' or 'error'; got {short_repr(loss)}")
        level, slack, most = read_level(epsilon), read_delta(delta), check_count(max_constraints, "max_constraints")
        refuse_many_orbits(users, items)
        if not is_integer(default) or not 0 <= default < items:
            raise ValueError(f"default must be an item from 0 to {items - 1}; got {short_repr(default)}")
        self._made(solved(SelectionWorld(users, items, loss), level, slack, None, most), int(default))

    def _made(self, certificate: OptimalityCertificate, default: int) -> None:
        Certified.__init__(self, certificate)
        world = world_from(certificate.world)
        assert isinstance(world, SelectionWorld)
        self._world: SelectionWorld = world
        self._largest = world.n_items - 1
        sizes = {"n_items": world.n_items, "n_users": world.n_users, "loss": world.loss}
        PrivateMode.__init__(
            self, neighbors="replace", default=default, epsilon=self.epsilon, delta=self.delta, **sizes
        )

    @classmethod
    def from_certificate(cls, certificate: OptimalityCertificate | str, *, default: int = 0) -> OptimalSelection:
        """Make the selection of a certificate again, without a solver.

        Parameters
        ----------
        certificate : OptimalityCertificate or str
            Or its JSON. It is checked first.
        default : int
            As for the class.

        Raises
        ------
        ValueError
            When the certificate is wrong, or is about another kind of world.
        """
        found = loaded(certificate, ("selection",))
        items = found.world["n_items"]
        if found.world["loss"] == "agreement" or items > MOST_ITEMS:
            raise ValueError("certificate is about a bound, and not about a selection from at most 1024 items")
        if not is_integer(default) or not 0 <= default < items:
            raise ValueError(f"default must be an item from 0 to {items - 1}; got {short_repr(default)}")
        made = cls.__new__(cls)
        made._made(found, int(default))
        return made

    @property
    def n_items(self) -> int:
        """The items are 0, ..., n_items - 1."""
        return self._world.n_items

    @property
    def n_users(self) -> int:
        """How many users every release is about."""
        return self._world.n_users

    @property
    def cost(self) -> PrivacyCost:
        """What one draw costs."""
        return PrivacyCost(self.epsilon, self.delta, neighbors=self.neighbors)

    def _accepted(self, item: object) -> int | None:
        number = item_of(item)
        return number if isinstance(number, int) and 0 <= number < self.n_items else None

    def _weights(self, counts: Counts) -> tuple[int, ...]:
        found = dict(self._present(counts))
        users = sum(found.values()) + counts.get(None, 0)
        if users != self.n_users or sum(found.values()) != users:
            # The number of users is public; whatever they have is counted under an item.
            raise ValueError(f"counts must be those of n_users={self.n_users} users; got {users} of them")
        state = tuple(sorted(found.values(), reverse=True))
        place = self._world.place_of[state]
        masses = dict(
            zip(self._world.counts_of(state), self._certificate.table[self._world.first[place] :], strict=False)
        )
        return tuple(masses[found.get(item, 0)] for item in range(self.n_items))

    def _draw(self, source: _core.Source, counts: Counts) -> int:
        from userdp import _core

        return _core.Categorical(list(self._weights(counts))).sample(source)

    def pmf(self, counts: Counts) -> Pmf:
        """The distribution of the outcome of a release, exactly. Not private: for audits.

        Parameters
        ----------
        counts : mapping
            How many of the n_users users have each item, as from `tally`.

        Returns
        -------
        Pmf
            Outputs 0, ..., n_items - 1 and integer weights of one total.
        """
        return Pmf(tuple(range(self.n_items)), self._weights(counts))

    def as_finite_algorithm(self) -> SymmetricAlgorithm:
        """The selection as a finite algorithm on datasets of users, each a tuple with one item, for audits."""

        def distribution(dataset: Dataset) -> Pmf:
            users = private_users(dataset, "dataset")
            return self.pmf(self.tally([user[0] if user is not None and len(user) == 1 else None for user in users]))

        return SymmetricAlgorithm(tuple(range(self.n_items)), distribution, name="OptimalSelection")

    def __reduce__(self) -> Any:
        return _again, (type(self), self._certificate, self._default)


def _again(kind: type[OptimalSelection], certificate: OptimalityCertificate, default: int) -> OptimalSelection:
    """Make a copy from the table, which a solver of another version might not find again."""
    made = kind.__new__(kind)
    made._made(certificate, default)
    return made


def agreement_certificate(
    n_users: int,
    n_items: int,
    agreement: Fraction,
    epsilon: Epsilon,
    delta: Delta = 0,
    max_constraints: int = MOST_CONSTRAINTS,
) -> OptimalityCertificate:
    """How likely every private selection misses the common item, at least, where users agree so much.

    Parameters
    ----------
    n_users, n_items : int
        Users, and items from 2 to 2**24. What holds for fewer items holds for more.
    agreement : Fraction
        The probability in [0, 1] with which each user, independently, has the common item, which is any. All others
        have one other item.
    epsilon, delta : privacy parameters
        For replacing one user.
    max_constraints : int
        Larger programs are refused.

    Returns
    -------
    OptimalityCertificate
        Whose `lower_bound` is about every mechanism with this privacy, and whose `value` is reached by one. They are
        within a relative 1e-9 of each other, or, for 2**20 items and more than 20 users, 1e-5.

    Examples
    --------
    >>> certificate = agreement_certificate(7, 2, Fraction(9, 10), 1)
    >>> round(float(certificate.lower_bound), 6), certificate.verify().finding
    (0.040414, 'established')
    """
    users, items = check_count(n_users, "n_users"), check_count(n_items, "n_items", 2)
    if items > MOST_BOUNDED:
        raise ValueError(
            f"n_items must be at most 2**24, where floats are precise enough; got {short_repr(n_items)}. A bound "
            "for fewer items holds for more"
        )
    if not isinstance(agreement, Fraction) or not 0 <= agreement <= 1:
        raise ValueError(f"agreement must be a Fraction in [0, 1]; got {short_repr(agreement)}")
    level, slack = read_level(epsilon), read_delta(delta)
    if agreement.denominator.bit_length() > 64:
        raise ValueError("agreement must have a denominator of at most 64 bits; round it")
    try:
        refuse_many_orbits(users, items)
    except BudgetError as error:
        raise BudgetError(f"{error}. A smaller n_users gives a bound as well") from None
    world = SelectionWorld(users, items, "agreement", agreement)
    return solved(world, level, slack, world.prior, max_constraints, LARGEST_GAP_OF_BOUNDS)
