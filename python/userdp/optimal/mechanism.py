"""Mechanisms of least loss on all datasets of a small world, with certificates."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias

from userdp.algorithms.finite import Dataset, Form, SymmetricAlgorithm, private_users
from userdp.exact.encoding import canonical, key_of
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    capped_power,
    check_count,
    parse_exact,
    short_repr,
)
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.optimal.certified import Certified, loaded, read_delta, read_level, solved
from userdp.optimal.worlds import MOST_CONSTRAINTS, Symmetry, UsersWorld, mapping_of, refuse_many_datasets, world_from
from userdp.report import OptimalityCertificate

Objective: TypeAlias = Literal["worst", "bayes"]
Loss: TypeAlias = Callable[[Dataset, Any], Any]
"""What an output costs on a dataset: a number >= 0."""
Relabeling: TypeAlias = Mapping[Any, Any]

MOST_LOSS_BITS = 2**11
MOST_LISTED = 16_000_000
"""Entries of moves, before equal ones are dropped: as in the checker."""
ALL_ORDERS = 10_000
"""With at most so many datasets in order, the loss is tried on all of them, and on so many others beyond."""


class OptimalMechanism(Certified, SymmetricAlgorithm):
    """A private mechanism of least loss in a small world; made by `optimal_mechanism` or read by `from_certificate`.

    It is a finite algorithm that depends on the multiset of users: an audit decides its privacy again.

    Parameters
    ----------
    certificate : OptimalityCertificate or str
        Or its JSON. It is checked first.

    Attributes
    ----------
    outputs : tuple
        The k outputs.
    universe : tuple
        The examples that a user may have.
    n_users, n_examples : int
        Users of a dataset, and examples of each user.

    Notes
    -----
    *Reading users.* A user who has not exactly n_examples examples of the universe counts as one who has the first
    example of the universe n_examples times. Nothing about a user raises. The number of users is public, and a wrong
    one raises.

    *Time.* One draw reads the whole row of masses, and takes the same steps whatever its output is. Which row is read
    follows from the data in Python, whose time may tell about it.

    Examples
    --------
    >>> from userdp import LogRatio
    >>> answer = optimal_mechanism(
    ...     lambda dataset, output: int(dataset[0][0] != output),
    ...     universe=("a", "b", "c"), n_users=1, epsilon=LogRatio(2),
    ... )
    >>> answer.pmf((("a",),)).probabilities.tolist()
    [0.5, 0.25, 0.25]
    """

    _form: ClassVar[Form] = Form("symmetric", ("pmf",))

    def __init__(self, certificate: OptimalityCertificate | str) -> None:
        self._made(loaded(certificate, ("users",)))

    def _made(self, certificate: OptimalityCertificate) -> OptimalMechanism:
        """Take the table of a certificate that was made or checked just now."""
        Certified.__init__(self, certificate)
        world = world_from(certificate.world)
        assert isinstance(world, UsersWorld)
        self._world: UsersWorld = world
        SymmetricAlgorithm.__init__(self, world.outputs, self.pmf, name="optimal mechanism")
        self._places = {key_of(example): place for place, example in enumerate(world.universe)}
        self._type_of = {kind: place for place, kind in enumerate(world.types)}
        return self

    @property
    def universe(self) -> tuple[Any, ...]:
        """The examples that a user may have."""
        return self._world.universe

    @property
    def n_users(self) -> int:
        """Users of a dataset."""
        return self._world.n_users

    @property
    def n_examples(self) -> int:
        """Examples of each user."""
        return self._world.n_examples

    @classmethod
    def from_certificate(cls, certificate: OptimalityCertificate | str) -> OptimalMechanism:
        """Make the mechanism of a certificate again, without a solver.

        Parameters
        ----------
        certificate : OptimalityCertificate or str
            Or its JSON. It is checked first.

        Raises
        ------
        ValueError
            When the certificate is wrong, or is about another kind of world.
        """
        return cls(certificate)

    def _type(self, user: Sequence[Any] | None) -> int:
        """The place of what a user has, or of what stands for anything else."""
        places = [self._places.get(key_of(example), -1) for example in user or ()]
        return self._type_of.get(tuple(sorted(places)), 0)

    def _weights(self, dataset: Any) -> tuple[int, ...]:
        users = private_users(dataset, "dataset")
        if len(users) != self.n_users:
            raise ValueError(
                f"dataset must have {self.n_users} users, for whom the mechanism is made; got {len(users)}"
            )
        place = self._world.place_of[tuple(sorted(map(self._type, users)))]
        return tuple(self._certificate.table[unknown] for unknown in self._world.row(place))

    def pmf(self, dataset: Dataset, /) -> Pmf:
        """The distribution that is drawn from on a dataset: integer weights over one total."""
        return Pmf(self.outputs, self._weights(dataset))

    def sample(self, dataset: Any, random_state: int | None = None) -> Any:
        """Draw an output, once, with the whole of the budget.

        Parameters
        ----------
        dataset : sequence of users
            n_users users, each a sequence of n_examples examples.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draw reproducible,
            for tests only, and warns.

        Returns
        -------
        output
        """
        return self.outputs[self._drawn(self._weights(dataset), random_state)]

    def __repr__(self) -> str:
        return (
            f"<OptimalMechanism with {len(self.outputs)} outputs for {self.n_users} users: loses "
            f"{float(self.value):.6g}, gap {self.gap:.1e}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # A function of the constructor is part of the object, and is made again.
        return _again, (type(self), self._certificate)


def _again(kind: type[OptimalMechanism], certificate: OptimalityCertificate) -> OptimalMechanism:
    """Make a copy from the table, which a solver of another version might not find again."""
    return kind.__new__(kind)._made(certificate)


def optimal_mechanism(
    loss: Loss,
    *,
    universe: Iterable[Hashable],
    outputs: Iterable[Hashable] | None = None,
    n_users: int,
    n_examples: int = 1,
    epsilon: Epsilon,
    delta: Delta = 0,
    objective: Objective = "worst",
    prior: Callable[[Dataset], Any] | None = None,
    symmetries: Literal["auto"] | Sequence[Relabeling | tuple[Relabeling, Relabeling]] = "auto",
    max_constraints: int = MOST_CONSTRAINTS,
) -> OptimalMechanism:
    """The private mechanism of least loss in a small world, with a proof that there is no better one.

    Parameters
    ----------
    loss : callable
        ``(dataset, output) -> number``: what an output costs on a dataset, a tuple of users, each a tuple of examples.
        A finite number >= 0: ints, Fractions and decimal strings exactly, floats as the dyadic numbers they are. It
        must not depend on the order of users or of a user's examples.
    universe : iterable
        The examples that a user may have: distinct values of the kinds that audits take.
    outputs : iterable, optional
        The k outputs; by default those of the universe.
    n_users, n_examples : int
        Every dataset has n_users users with n_examples examples each.
    epsilon, delta : privacy parameters
        For users; neighbors replace one. Epsilon from 2**-20 to 24; where e^epsilon is to be a fraction, give a
        `LogRatio`. Delta 0, or from 1e-8 on. A float is the decimal it prints as.
    objective : {"worst", "bayes"}
        Whether the largest loss over all datasets is to be least, or the mean under `prior`.
    prior : callable, optional
        For "bayes": ``dataset -> weight``, a number >= 0 for each dataset up to order, divided by their sum. All
        datasets up to order weigh the same by default.
    symmetries : "auto" or sequence
        Relabelings that change no loss, and no weight of the prior. Each is a mapping from examples to examples, which
        also relabels those outputs that are examples, or a pair of mappings, one of examples and one of outputs; what a
        mapping leaves out stays. They are checked on every dataset. "auto" finds those that exchange two examples.
    max_constraints : int
        Larger programs are refused.

    Returns
    -------
    OptimalMechanism
        A finite algorithm with `sample`, the loss `value`, the bound `lower_bound` and the `certificate` of both.

    Raises
    ------
    BudgetError
        For worlds with too many datasets or constraints, before anything is solved.
    ValueError
        For losses that are no finite numbers >= 0 or depend on an order, for relabelings that change the loss, for a
        prior without weight, and when no table is proved to be within 1e-6 of the bound.
    ImportError
        Without highspy: ``pip install 'userdp[optimal]'``. Certificates are read and verified without it.

    Notes
    -----
    The least loss over all mechanisms is the value of a linear program, which is solved in floats. What is returned
    rests on no float: masses are integers that satisfy every constraint of privacy exactly, and the multipliers of the
    constraints prove the bound whatever they are. Proofs: docs/proofs/optimal_mechanisms.md.

    *Irrational e^epsilon.* The masses are private at a fraction just below it, and the bound holds at one just above.

    *What the bound is about.* All mechanisms for these datasets, also those that see the order of users.

    Examples
    --------
    >>> from userdp import LogRatio
    >>> count = optimal_mechanism(
    ...     lambda dataset, output: abs(sum(user[0] for user in dataset) - output),
    ...     universe=(0, 1), outputs=range(5), n_users=4, epsilon=LogRatio(2),
    ... )
    >>> round(float(count.value), 6), count.gap < 1e-9, count.verify().finding
    (0.837209, True, 'established')
    """
    if not callable(loss):
        raise TypeError(f"loss must be a function of a dataset and an output; got {type(loss).__name__}")
    check_objective(objective, prior)
    members = distinct_values(universe, "universe")
    answers = members if outputs is None else distinct_values(outputs, "outputs")
    users, examples = check_count(n_users, "n_users"), check_count(n_examples, "n_examples")
    level, slack, most = read_level(epsilon), read_delta(delta), check_count(max_constraints, "max_constraints")
    refuse_many_datasets(len(members), users, examples, len(answers))
    world = UsersWorld(members, users, examples, answers, (), ())
    datasets = [_dataset(world, kinds) for kinds in world.datasets]
    losses = [[_loss(loss, dataset, output) for output in answers] for dataset in datasets]
    _refuse_order(loss, world, losses)
    weights = None if objective == "worst" else _weights_of(prior, datasets)
    world.losses = losses
    world.symmetries = _symmetries(symmetries, world, weights)
    _refuse_many_moves(world, most)
    mass = None if weights is None else _orbit_masses(world, weights)
    return _again(OptimalMechanism, solved(world, level, slack, mass, most))


def distinct_values(given: Any, name: str) -> tuple[Any, ...]:
    """Read distinct values of the kinds that reports hold."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a sequence of distinct values; got {short_repr(given)}")
    members = [canonical(member, name) for member in given]
    if not members:
        raise ValueError(f"{name} is empty; accepted: at least one value")
    if len(set(map(key_of, members))) != len(members) or len(set(members)) != len(members):
        raise ValueError(f"{name} must be distinct; got {short_repr(members)}")
    return tuple(members)


def _dataset(world: UsersWorld, kinds: Sequence[int]) -> Dataset:
    return tuple(tuple(world.universe[place] for place in world.types[kind]) for kind in kinds)


def number_on(given: Any, what: str, where: str) -> Fraction:
    """Read a loss or a weight, exactly."""
    name = f"{what} on {where}"
    number = parse_exact(given, name, "a finite number >= 0")
    if number < 0:
        raise ValueError(f"{name} must be >= 0; got {short_repr(given)}")
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MOST_LOSS_BITS:
        raise ValueError(f"{name} has over {MOST_LOSS_BITS} bits; round it")
    return number


def _loss(loss: Loss, dataset: Dataset, output: Any) -> Fraction:
    return number_on(loss(dataset, output), f"loss of the output {short_repr(output)}", _on(dataset))


def _on(dataset: Dataset) -> str:
    return f"the dataset {short_repr(dataset)}"


def _refuse_order(loss: Loss, world: UsersWorld, losses: Sequence[Sequence[Fraction]]) -> None:
    """Refuse a loss that sees the order of users or of their examples: on all orders, or on many."""
    size, n, m = len(world.universe), world.n_users, world.n_examples
    if capped_power(size, n * m, ALL_ORDERS) <= ALL_ORDERS:
        rows: Iterable[tuple[int, ...]] = itertools.product(range(size), repeat=n * m)
    else:
        source = random.Random(0)
        rows = (tuple(source.randrange(size) for _ in range(n * m)) for _ in range(ALL_ORDERS // len(world.outputs)))
    type_of = {kind: place for place, kind in enumerate(world.types)}
    for flat in rows:
        users = [flat[start : start + m] for start in range(0, n * m, m)]
        kinds = tuple(sorted(type_of[tuple(sorted(user))] for user in users))
        if kinds == tuple(type_of.get(user, -1) for user in users):
            continue
        dataset = tuple(tuple(world.universe[place] for place in user) for user in users)
        for output, known in zip(world.outputs, losses[world.place_of[kinds]], strict=True):
            if _loss(loss, dataset, output) != known:
                raise ValueError(
                    f"loss depends on the order of users or of their examples: the output {short_repr(output)} has "
                    f"another loss on the dataset {short_repr(dataset)} than on {short_repr(_dataset(world, kinds))}; "
                    "accepted: a function of the multiset of users, each a multiset of examples"
                )


def _weights_of(prior: Callable[[Dataset], Any] | None, datasets: Sequence[Dataset]) -> list[Fraction]:
    """The prior of each multiset."""
    if prior is None:
        return [Fraction(1, len(datasets))] * len(datasets)
    return normalized([number_on(prior(dataset), "prior", _on(dataset)) for dataset in datasets])


def normalized(weights: Sequence[Fraction]) -> list[Fraction]:
    """Weights of a prior, divided by their sum."""
    total = sum(weights, Fraction(0))
    if not total:
        raise ValueError("prior is 0 on every dataset; accepted: weights >= 0 with a positive sum")
    return [weight / total for weight in weights]


def check_objective(objective: Any, prior: Any) -> None:
    """Refuse objectives that are none, and priors that go with no objective."""
    if objective not in ("worst", "bayes"):
        raise ValueError(f"objective must be 'worst' or 'bayes'; got {short_repr(objective)}")
    if objective == "worst" and prior is not None:
        raise ValueError("prior goes with objective='bayes'; got one for objective='worst'")
    if prior is not None and not callable(prior):
        raise TypeError(f"prior must be a function of a dataset; got {type(prior).__name__}")


def _orbit_masses(world: UsersWorld, weights: Sequence[Fraction]) -> list[Fraction]:
    """The prior of each orbit."""
    k, place_of = len(world.outputs), {place: index for index, place in enumerate(world.chosen)}
    masses = [Fraction(0)] * len(world.chosen)
    for orbits, weight in zip(world.orbits, weights, strict=True):
        masses[place_of[min(orbits) // k]] += weight
    return masses


def _symmetries(given: Any, world: UsersWorld, weights: Sequence[Fraction] | None) -> tuple[Symmetry, ...]:
    """The relabelings that are asked for, each checked, or those that exchange two examples."""
    if isinstance(given, str):
        if given != "auto":
            raise ValueError(f"symmetries must be 'auto' or a sequence of relabelings; got {short_repr(given)}")
        return _found(world, weights)
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"symmetries must be 'auto' or a sequence of relabelings; got {type(given).__name__}")
    read = []
    for relabeling in given:
        if isinstance(relabeling, Mapping):
            shared = set(world.outputs)
            parts = relabeling, {one: other for one, other in relabeling.items() if one in shared}
        elif isinstance(relabeling, tuple) and len(relabeling) == 2:
            parts = relabeling
        else:
            raise TypeError(
                "symmetries must have mappings, or pairs of a mapping of examples and one of outputs; got "
                f"{short_repr(relabeling)}"
            )
        symmetry = Symmetry(
            mapping_of(parts[0], world.universe, "examples"), mapping_of(parts[1], world.outputs, "outputs")
        )
        broken = _broken(world, symmetry, weights)
        if broken is not None:
            raise ValueError(
                f"symmetries: {short_repr(relabeling)} changes the {broken[1]} of the dataset "
                f"{short_repr(_dataset(world, world.datasets[broken[0]]))}; accepted: relabelings that change none"
            )
        read.append(symmetry)
    return tuple(read)


def _found(world: UsersWorld, weights: Sequence[Fraction] | None) -> tuple[Symmetry, ...]:
    """Exchanges of two examples, and of the two outputs of the same names, that change nothing."""
    place_of = {key_of(output): place for place, output in enumerate(world.outputs)}
    named = [place_of.get(key_of(example)) for example in world.universe]
    same = tuple(range(len(world.outputs)))
    found = []
    for a, b in itertools.combinations(range(len(world.universe)), 2):
        examples = list(range(len(world.universe)))
        examples[a], examples[b] = b, a
        choices = [same]
        first, second = named[a], named[b]
        if first is not None and second is not None:
            exchanged = list(same)
            exchanged[first], exchanged[second] = second, first
            choices.insert(0, tuple(exchanged))
        for choice in choices:
            symmetry = Symmetry(tuple(examples), choice)
            if _broken(world, symmetry, weights) is None:
                found.append(symmetry)
                break
    return tuple(found)


def _broken(world: UsersWorld, symmetry: Symmetry, weights: Sequence[Fraction] | None) -> tuple[int, str] | None:
    """A dataset on which a relabeling changes the loss or the prior."""
    for place, image in enumerate(world.image(symmetry)):
        if any(loss != world.losses[image][symmetry.outputs[o]] for o, loss in enumerate(world.losses[place])):
            return place, "loss"
        if weights is not None and weights[place] != weights[image]:
            return place, "prior"
    return None


def _refuse_many_moves(world: UsersWorld, most: int) -> None:
    """Refuse before constraints are listed, where they are many times what is accepted."""
    k, types = len(world.outputs), len(world.types)
    listed = sum(len(set(world.datasets[place])) for place in world.chosen) * (types - 1) * k
    if listed > min(20 * most, MOST_LISTED):
        raise BudgetError(
            f"the program has {len(world.chosen):,} orbits of datasets and up to {listed:,} constraints, minutes or "
            f"hours of solving; at most max_constraints={most:,} are accepted: take fewer users, examples or outputs, "
            "or state symmetries that the loss has"
        )
