"""What a ledger with composition="exact" may be spent on: slots that are fixed in advance, and what fits into one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from userdp.accounting.composition import optimal_delta_of_groups
from userdp.accounting.cost import PrivacyCost
from userdp.accounting.domination import release_dominates
from userdp.accounting.gaussian_budget import gaussian_delta, largest_mu2
from userdp.accounting.losses import (
    BoundedRangeLoss,
    GaussianLoss,
    PairLoss,
    PureLoss,
    ReleaseLoss,
    largest_pair,
)
from userdp.accounting.privacy_loss import MAX_TERMS, PrivacyLossDistribution, _twos
from userdp.accounting.zcdp import bounded_range_to_mu2, parse_rho
from userdp.exact.epsilon import as_epsilon
from userdp.exact.numbers import Delta, PrivacyLevel, check_count, parse_level, short_repr
from userdp.exceptions import BudgetError

Gaussian: TypeAlias = "Literal['rest'] | Delta"
Slots: TypeAlias = "Iterable[tuple[PrivacyLossDistribution, int]]"

MOST_SLOTS = 2**10
"""Kinds of slots: each is looked at whenever something is spent."""
MOST_TERMS = 2**16
"""Of a release, to see whether it is as private as a pure slot."""


@dataclass(frozen=True)
class LedgerSlot:
    """Slots of one kind in a ledger.

    Attributes
    ----------
    loss : PrivacyLossDistribution
        Each of them is for one release that this dominates.
    count : int
        How many there are.
    used : int
        How many of them are used.
    """

    loss: PrivacyLossDistribution
    count: int
    used: int


class Form(NamedTuple):
    """One of the ways to see a release: up to a delta and a distance, this dominates it."""

    loss: ReleaseLoss
    delta: Fraction = Fraction(0)
    distance: Fraction = Fraction(0)


@dataclass(frozen=True)
class Kind:
    """Slots of one kind."""

    loss: PrivacyLossDistribution
    count: int

    @property
    def part(self) -> ReleaseLoss:
        return self.loss._parts[0][0]

    @property
    def composed(self) -> tuple[PrivacyLossDistribution, int]:
        """What is composed: without the distance, for which a ledger has a limit of its own."""
        return PrivacyLossDistribution._of([(self.part, 1)], self.loss.neighbors), self.count


def kinds_of(slots: Slots, neighbors: Any) -> tuple[Kind, ...]:
    """The slots of a ledger, each in the order in which it may be composed."""
    if isinstance(slots, Sequence) and not slots:
        return ()
    read = []
    for loss, count in _twos(slots, "slots", "pairs of a PrivacyLossDistribution and an int"):
        if not isinstance(loss, PrivacyLossDistribution):
            raise TypeError(f"slots must be pairs of a PrivacyLossDistribution and an int; got {short_repr(loss)}")
        if loss.neighbors not in (None, neighbors):
            raise ValueError(
                f"slots: {loss!r} is about the neighbors {loss.neighbors!r} and this ledger about {neighbors!r}"
            )
        read.append(Kind(one_release(loss, "slots"), check_count(count, "slots: count")))
    if len(read) > MOST_SLOTS:
        raise ValueError(f"slots must be of at most {MOST_SLOTS} kinds; got {len(read)}")
    return tuple(read)


def one_release(loss: PrivacyLossDistribution, name: str) -> PrivacyLossDistribution:
    """What must be one release, in one form: where neighbors have no sides, its pair is above both orders."""
    (part, count), *more = loss._parts or ((None, 0),)
    if more or count != 1 or part is None:
        raise ValueError(f"{name}: {loss!r} is not one release; a slot is for one, so give each, with its count")
    if isinstance(part, PairLoss):
        # Where a user is replaced, the changed user has no side: one release may see the datasets in one order and the
        # next in the other.
        part = _one_form(part.p, part.q, loss.neighbors != "add-remove")
    elif isinstance(part, GaussianLoss):
        part = GaussianLoss(part.mu_squared)
    return PrivacyLossDistribution._of([(part, 1)], loss.neighbors, loss.distance)


@lru_cache(maxsize=2**8)
def _one_form(p: tuple[int, ...], q: tuple[int, ...], both: bool) -> PairLoss:
    """The one pair that has this curve, or the larger one of both orders."""
    return PairLoss(*largest_pair([(p, q), (q, p)] if both else [(p, q)]), attained=False, symmetric=both)


def forms_of(item: PrivacyCost | PrivacyLossDistribution) -> tuple[Form, ...]:
    """All that is known of a release; each of these holds."""
    if isinstance(item, PrivacyLossDistribution):
        return (Form(item._parts[0][0], distance=item.distance),)
    known = []
    if item.mu2 is not None:
        known.append(Form(GaussianLoss(item.mu2), item.added_delta, item.distance))
    if item.bounded_range is not None:
        known.append(Form(BoundedRangeLoss(parse_level(item.bounded_range))))
    if item.epsilon is not None:
        level = parse_level(item.epsilon)
        if item.delta < 1:
            known.append(Form(PureLoss(level, item.delta)))
        if item.delta:
            known.append(Form(PureLoss(level, Fraction(0)), delta=item.delta))
    return tuple(known)


@lru_cache(maxsize=2**12)
def covers(slot: ReleaseLoss, release: ReleaseLoss) -> bool:
    """Whether the pair of a slot is certain to dominate a release, at all levels."""
    if slot == release or _without_loss(release) or release_dominates(slot, release) is True:
        return True
    if not isinstance(slot, PureLoss):
        return False
    # The curve of (epsilon, delta)-DP is the largest of all that are at most delta there, in both orders.
    once = PrivacyLossDistribution._of([(release, 1)], "replace")
    return once.is_private(as_epsilon(slot.epsilon), slot.delta, max_terms=MOST_TERMS) is True


def _without_loss(release: ReleaseLoss) -> bool:
    """Whether a release tells nothing of which neighbor it was made on."""
    if isinstance(release, GaussianLoss):
        return release.mu_squared == 0
    nothing = PrivacyLevel(Fraction(1), Fraction(0))
    return release in (PureLoss(nothing, Fraction(0)), BoundedRangeLoss(nothing))


class Way(NamedTuple):
    """How a release may be charged: to a slot or to the Gaussian budget, with what beside it."""

    slot: int | None
    mu2: Fraction
    delta: Fraction
    distance: Fraction


def ways_of(forms: Sequence[Form], kinds: Sequence[Kind], slot: int | None) -> list[Way]:
    """All ways to charge a release, the best ones first."""
    first, last = [], []
    if slot is None:
        for loss, delta, distance in forms:
            if isinstance(loss, GaussianLoss):
                first.append(Way(None, loss.mu_squared, delta, distance))
            elif _without_loss(loss):
                first.append(Way(None, Fraction(0), delta, distance))
            elif isinstance(loss, BoundedRangeLoss):
                last.append(Way(None, bounded_range_to_mu2(as_epsilon(loss.range)), delta, distance))
    places = range(len(kinds)) if slot is None else (slot,)
    fitting = [
        (kinds[place].part != form.loss, form.delta, max(form.distance, kinds[place].loss.distance), place)
        for place in places
        for form in forms
        if covers(kinds[place].part, form.loss)
    ]
    return [*first, *(Way(place, Fraction(0), delta, distance) for _, delta, distance, place in sorted(fitting)), *last]


def what_would_do(item: PrivacyCost | PrivacyLossDistribution, forms: Sequence[Form], slot: int | None) -> str:
    """Why there is no way to charge a release, and what would be one."""
    if not forms:
        return (
            "its cost is in rho only, from which no pair of distributions follows: give it a mu2 if its noise is "
            "Gaussian, or use composition='zcdp'"
        )
    losses = " or ".join(str(form.loss) for form in forms if not form.delta) or str(forms[0].loss)
    if slot is not None:
        return f"slot {slot} is not known to dominate it ({losses})"
    such = "PrivacyLossDistribution.pure(...)" if isinstance(item, PrivacyCost) else repr(item)
    hint = f"make the ledger with one, such as slots=[({such}, 1)], as none can be added later"
    if isinstance(item, PrivacyCost):
        hint += "; or use composition='zcdp' or 'basic'"
    return f"it is {losses}, which no slot is known to dominate: {hint}"


def certified_mu2(
    kinds: Sequence[Kind],
    gaussian: Any,
    level: PrivacyLevel,
    *,
    delta: Fraction,
    added_delta: Fraction,
    distance: Fraction,
    noise: Fraction,
) -> Fraction:
    """The Gaussian budget beside the slots; `noise` is what is left of delta beside added_delta and distance."""
    slots = [kind.composed for kind in kinds]
    epsilon = as_epsilon(level)
    if isinstance(gaussian, str) and gaussian == "rest":
        if noise <= 0:
            raise ValueError(
                "delta must be above added_delta + (1 + e^epsilon) distance for a Gaussian budget; gaussian=0 has none"
            )
        return largest_mu2(epsilon, delta, slots=slots, distance=distance, added_delta=added_delta)
    mu2 = parse_rho(gaussian, "gaussian")
    if noise < 0:
        raise ValueError("delta must be at least added_delta + (1 + e^epsilon) distance")
    if not slots and not mu2:
        return mu2
    if not slots:
        if gaussian_delta(mu2, epsilon, distance=distance) + added_delta > delta:
            raise ValueError(
                f"gaussian: mu2 must be within the promise; {float(mu2):.9g} is not, and 'rest' is the largest that is"
            )
        return mu2
    verdict = None
    if not mu2 and all(isinstance(kind.part, PureLoss) for kind in kinds):
        # Exact, ties included, as of slots that were chosen to fill the promise.
        pure = [(kind.part, kind.count) for kind in kinds if isinstance(kind.part, PureLoss)]
        groups = [(as_epsilon(one.epsilon), count, one.delta) for one, count in pure]
        with suppress(BudgetError):
            verdict = optimal_delta_of_groups(groups, epsilon) <= noise
    if verdict is None:
        noisy = PrivacyLossDistribution._of([(GaussianLoss(mu2), 1)] if mu2 else [], kinds[0].loss.neighbors)
        verdict = PrivacyLossDistribution.composed([*slots, (noisy, 1)])._verdict(level, noise, MAX_TERMS)
    if verdict is not True:
        known = "is above" if verdict is False else "is not certain to be within"
        raise ValueError(
            f"slots and gaussian: the delta of all of them together {known} the {float(noise):.6g} that are left of it "
            "beside added_delta and distance; take fewer or smaller slots, a smaller gaussian, or a larger promise"
        )
    return mu2


# --- text


def loss_text(loss: PrivacyLossDistribution) -> dict[str, Any]:
    """One release as JSON."""
    return dict(json.loads(loss.to_json()))


def read_loss(content: Mapping[str, Any]) -> PrivacyLossDistribution:
    """What `loss_text` wrote."""
    return PrivacyLossDistribution.from_json(json.dumps(content))
