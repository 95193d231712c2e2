"""How much one user moves a score: over whole tiny universes, attained, and exceeded by what is planted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from oracle import user_scores as oracle
from support.scored_users import User, above, named, rows_of, surrogate, table
from userdp import _core
from userdp.learners.scores import clipped_pairwise_scores


def largest_change(score: Callable[[list[User]], Sequence[int]], universe: Sequence[User], users: int) -> int:
    """Over all datasets, up to order, and all replacements of one user."""
    largest = 0
    for others in itertools.combinations_with_replacement(universe, users - 1):
        found = np.array([score([*others, user]) for user in universe])
        largest = max(largest, int((found.max(axis=0) - found.min(axis=0)).max()))
    return largest


def people(points: int, m: int) -> list[User]:
    """All users with up to m rows."""
    rows = list(itertools.product(range(points), (0, 1)))
    return [user for size in range(m + 1) for user in itertools.combinations_with_replacement(rows, size)]


ALL = list(itertools.product((0, 1), repeat=2))


@pytest.mark.parametrize(("m", "t"), [(1, 0), (2, 0), (2, 1), (3, 1)])
def test_one_user_moves_a_number_of_users_by_one(m: int, t: int) -> None:
    assert largest_change(lambda users: above(users, ALL, t, m), people(2, m), 2) == 1


@pytest.mark.parametrize(("m", "t"), [(2, 0), (2, 1)])
def test_one_user_moves_a_sum_over_rows_by_more(m: int, t: int) -> None:
    # The planted bug: mistakes are added up over rows, where users should be counted.
    def rows_wrong(users: Sequence[User]) -> list[int]:
        return [sum(h[point] != label for user in users for point, label in user) for h in named(ALL)]

    assert largest_change(rows_wrong, people(2, m), 2) == m


@pytest.mark.parametrize(("m", "tau"), [(1, 1), (2, 1), (2, 2), (2, 3), (3, 2)])
def test_one_user_moves_a_clipped_score_by_twice_the_clip_and_that_is_attained(m: int, tau: int) -> None:
    def score(users: Sequence[User]) -> list[int]:
        labels, rows = rows_of(users, m)
        return clipped_pairwise_scores(_core.user_errors(table(ALL), labels, rows, False), tau).tolist()

    assert largest_change(score, people(2, m), 2) == 2 * min(tau, m)


def test_one_user_moves_more_where_sums_of_users_are_clipped_or_nothing_is() -> None:
    # The planted bugs: the clip is forgotten, or comes after summing over users, too late for a difference in one user.
    def forgotten(users: Sequence[User]) -> list[int]:
        mistakes = np.array([[sum(h[point] != label for point, label in user) for user in users] for h in named(ALL)])
        return [max(int((a - b).sum()) for b in np.delete(mistakes, i, axis=0)) for i, a in enumerate(mistakes)]

    def too_late(users: Sequence[User]) -> list[int]:
        labels, rows = rows_of(users, 3)
        totals = _core.user_errors(table(ALL), labels, rows, False).sum(axis=1, dtype=np.int64)
        return clipped_pairwise_scores(totals[:, None], 4).tolist()

    def right(users: Sequence[User]) -> list[int]:
        labels, rows = rows_of(users, 3)
        return clipped_pairwise_scores(_core.user_errors(table(ALL), labels, rows, False), 1).tolist()

    universe = people(2, 3)
    assert largest_change(right, universe, 2) == 2
    assert largest_change(forgotten, universe, 2) == 6
    # A clip of 4 for two users together is no stricter than one of 2 for each, by which scores would move by 4.
    assert largest_change(too_late, universe, 2) == 6


def test_a_minimum_over_concepts_that_fit_moves_a_surrogate_score_by_more() -> None:
    # The planted bug: only the concepts with the least errors are looked at, as a heuristic would.
    concepts, others = [(0, 0), (1, 1)], [(1, 1), (0, 1)]
    universe = [((point, label),) for point in range(2) for label in (0, 1)]

    def among_the_best(users: Sequence[User]) -> list[int]:
        errors = above(users, concepts, 0, 1)
        best = [concept for concept, error in zip(concepts, errors, strict=True) if error == min(errors)]
        return surrogate(users, best[:1], others, 0, 0, 1)

    assert largest_change(lambda users: surrogate(users, concepts, others, 0, 0, 1), universe, 3) == 2
    assert largest_change(among_the_best, universe, 3) > 2


def test_one_user_moves_a_surrogate_score_by_two_and_inside_the_class_by_one() -> None:
    concepts, others = [(0, 1, 1), (1, 0, 0)], [(0, 0, 1), (0, 0, 0)]
    universe = [((point, label),) for point in range(3) for label in (0, 1)]
    assert largest_change(lambda users: surrogate(users, concepts, others, 0, 0, 1), universe, 3) == 2
    assert largest_change(lambda users: surrogate(users, concepts, concepts, 0, 0, 1), universe, 3) == 1


@pytest.mark.parametrize("t", [0, 1])
def test_surrogate_scores_inside_the_class_are_numbers_of_users(t: int) -> None:
    for users in itertools.combinations_with_replacement(people(2, 2), 2):
        assert surrogate(users, ALL[1:], ALL[1:], t, 0, 2) == above(users, ALL[1:], t, 2)


def test_surrogate_scores_of_single_rows_count_mistakes_of_h_and_twice_what_c_adds() -> None:
    # A row that h gets wrong costs 1 whatever c says: LWY24, Theorem 3.4.
    rows = list(itertools.product(range(2), (0, 1)))
    for chosen in itertools.combinations_with_replacement(rows, 3):
        for concepts in itertools.combinations(ALL, 2):
            expected = [
                sum(h[x] != y for x, y in chosen) + 2 * min(sum(h[x] == y != c[x] for x, y in chosen) for c in concepts)
                for h in ALL
            ]
            assert surrogate([(row,) for row in chosen], concepts, ALL, 0, 0, 1) == expected


def test_surrogate_scores_are_the_definition_for_users_with_few_rows() -> None:
    concepts, scored = ALL[:2], ALL[1:]
    for users in itertools.combinations_with_replacement(people(2, 3), 2):
        for t, s in ((0, 0), (1, 1), (0, 2)):
            expected = [oracle.surrogate(users, h, named(concepts), t, s, 3) for h in named(scored)]
            assert surrogate(users, concepts, scored, t, s, 3) == expected
