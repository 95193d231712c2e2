"""Stability by public randomness: users who draw from similar laws by the same public seed agree.

Everything here is about how often users agree. Privacy never rests on it: see `userdp.selection` and `userdp.protocols`
for what protects them.
"""

from __future__ import annotations

from userdp.stability._seed import PublicSeed

__all__ = ["PublicSeed"]
