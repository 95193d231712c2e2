"""How results are shown: numbers in words, tables as data frames, pages by templates.

Everything that a notebook shows as a table is a `Shown`: reports, privacy records, plans and ledgers.
"""

from __future__ import annotations

from userdp.display.frames import Shown, Told, axes_or_new
from userdp.display.pages import Curve, Fact, Lines, Section, Table, Tone, render_page

__all__ = ["Curve", "Fact", "Lines", "Section", "Shown", "Table", "Told", "Tone", "axes_or_new", "render_page"]
