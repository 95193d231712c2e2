"""Counting behind a shuffler: nobody sees who sent what, and everybody sends a little noise.

A protocol object is the public description that all parties share. Its `client` turns one user's item into messages,
its `shuffler` mixes the messages of all users, and its `server` counts them. Messages say nothing about their sender:
two users that send the same thing send the same bytes.

Neighbors: one user's item is replaced by another; the number of users is public.
"""

from userdp.protocols.shuffle.counts import Histogram, Mode, NegativeBinomialSum
from userdp.protocols.shuffle.noise import Theorem39Parameters, negative_binomial_divergence, theorem_39_parameters
from userdp.protocols.shuffle.protocol import Client, CountServer, HistogramServer, ModeServer, Shuffler

__all__ = [
    "Client",
    "CountServer",
    "Histogram",
    "HistogramServer",
    "Mode",
    "ModeServer",
    "NegativeBinomialSum",
    "Shuffler",
    "Theorem39Parameters",
    "negative_binomial_divergence",
    "theorem_39_parameters",
]
