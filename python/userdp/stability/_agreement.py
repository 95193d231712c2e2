"""How often two users agree who draw from given laws with shared randomness, exactly, and what that says of stability.

Closed forms: docs/proofs/correlated_sampling.md. Conversions: docs/proofs/stability.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

from userdp._numbers import Delta, parse_delta
from userdp.stability._laws import disagreement_of_darts, race_terms

__all__ = ["Enclosure", "Method", "agreement_from_stability", "pair_agreement", "stability_from_agreement"]

Method: TypeAlias = Literal["race", "darts"]
Enclosure: TypeAlias = tuple[int, int]
"""Integers around a number times 2**PRECISION."""

PRECISION = 256


def pair_agreement(p: Sequence[int], q: Sequence[int], method: Method) -> Enclosure:
    """The probability that draws from two laws by the same randomness are equal.

    Parameters
    ----------
    p, q : sequences of int
        Weights of the same outputs, non-negative and not all zero.
    method : {"race", "darts"}

    Returns
    -------
    tuple of int
        Around 2**256 times the probability, at most len(p) apart.
    """
    if method == "race":
        terms = race_terms(p, q)
    else:
        agreement = 1 - disagreement_of_darts(p, q)
        terms = [(agreement.numerator, agreement.denominator)]
    low = high = 0
    for top, bottom in terms:
        whole, rest = divmod(top << PRECISION, bottom)
        low, high = low + whole, high + whole + (rest > 0)
    return low, high


def stability_from_agreement(agreement: Delta, eta: Delta) -> Fraction:
    """How much of the public randomness is stable, from how often two users agree.

    Parameters
    ----------
    agreement : number in [0, 1]
        rho, the probability that two users of independent samples agree, over samples and public randomness; or a lower
        bound on it.
    eta : number in [0, 1)
        The stability asked for.

    Returns
    -------
    Fraction
        nu: with probability at least nu over the public randomness r, some hypothesis h_r is what a user gets with
        probability at least eta.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    nu = 1 - (1 - rho) / max(1 - eta, 2 eta (1 - eta)), or 0. For given r let p_1 >= p_2 >= ... be the probabilities of
    hypotheses. Users disagree with probability 1 - sum p_i**2 >= 1 - p_1, and >= 2 p_1 (1 - p_1) for p_1 >= 1/2, which
    two hypotheses attain. Where p_1 < eta this is at least the maximum above; then Markov's inequality.

    Examples
    --------
    >>> stability_from_agreement("0.99", "0.9")
    Fraction(17, 18)
    """
    rho, threshold = parse_delta(agreement, "agreement"), parse_delta(eta, "eta")
    if threshold == 1:
        return Fraction(int(rho == 1))
    return max(Fraction(0), 1 - (1 - rho) / ((1 - threshold) * max(Fraction(1), 2 * threshold)))


def agreement_from_stability(eta: Delta, nu: Delta) -> Fraction:
    """How often two users agree at least, from (eta, nu)-pseudo-global stability: nu eta**2.

    Parameters
    ----------
    eta, nu : numbers in [0, 1]

    Returns
    -------
    Fraction

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Examples
    --------
    >>> agreement_from_stability("0.9", "0.9")
    Fraction(729, 1000)
    """
    return parse_delta(nu, "nu") * parse_delta(eta, "eta") ** 2
