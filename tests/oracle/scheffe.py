"""Slow reference for selections by clipped pairwise scores, from the definitions, in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import product


def clip(number, bound):
    return max(-bound, min(bound, number))


def pairwise_scores(users, n_candidates, psi, tau):
    """psi(a, b, example) and tau are fractions; users are lists of examples."""
    scores = []
    for a in range(n_candidates):
        totals = []
        for b in range(n_candidates):
            if a != b:
                totals.append(sum(clip(sum(Fraction(psi(a, b, x)) for x in user), tau) for user in users))
        scores.append(max(totals))
    return scores


def scheffe_psi(distributions):
    """P_a(W) - [z in W] for W = {z : P_a(z) > P_b(z)}; distributions are lists of fractions."""

    def psi(a, b, z):
        inside = [w for w in range(len(distributions[a])) if distributions[a][w] > distributions[b][w]]
        return sum((Fraction(distributions[a][w]) for w in inside), Fraction(0)) - (1 if z in inside else 0)

    return psi


def midpoint_psi(points):
    """1/2 - [x is on a's side of the midpoint of a and b]; what is at the midpoint is on the lower side."""

    def psi(a, b, x):
        lower = x <= (Fraction(points[a]) + Fraction(points[b])) / 2
        return Fraction(1, 2) - (1 if lower == (points[a] < points[b]) else 0)

    return psi


def total_variation(left, right):
    return sum(abs(Fraction(p) - Fraction(q)) for p, q in zip(left, right, strict=True)) / 2


def grid_distributions(n, n_symbols):
    """All tuples of n_symbols integers >= 0 with the sum n."""
    return [masses for masses in product(range(n + 1), repeat=n_symbols) if sum(masses) == n]


def largest_change(scores_of, examples, m, n_users):
    """The most that one candidate's score changes when one user's examples, up to m, are replaced."""
    contents = [user for size in range(m + 1) for user in product(examples, repeat=size)]
    # Scores do not depend on the order of a user's examples.
    contents = sorted({tuple(sorted(user)) for user in contents})
    scores = {users: scores_of(users) for users in product(contents, repeat=n_users)}
    change = Fraction(0)
    for users, before in scores.items():
        for other in contents:
            after = scores[(other, *users[1:])]
            change = max([change, *(abs(x - y) for x, y in zip(before, after, strict=True))])
    return change
