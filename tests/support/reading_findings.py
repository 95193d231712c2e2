"""What tests of reading find: counts of what was compared and of what differs, with the first example of each kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

REFUSED = "refused, though it is read"
ACCEPTED = "read, though it is to be refused"
FAILED = "fails while it is read"
WARNED = "warns"
PRINTED = "prints"
VALUE = "another value"
LOST = "a value is lost"
INVENTED = "a value of what has none"
PEOPLE = "one person is several, or several are one"
VISIBLE = "a user decides what is seen"
OTHERS = "a user changes others"
CONTAINERS = "containers differ"


@dataclass
class Findings:
    """Of a run."""

    compared: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By container and kind."""
    found: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By what is wrong, container and kind."""
    examples: dict[tuple[str, str, str], str] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    """By part of the run."""

    def compare(self, container: str, kind: str, part: str, many: int = 1) -> None:
        """Count what is compared."""
        self.compared[container, kind] += many
        self.asked[part] += many

    def add(self, what: str, container: str, kind: str, example: Any) -> None:
        """Count what is wrong."""
        place = (what, container, kind)
        self.found[place] += 1
        self.examples.setdefault(place, str(example))

    def of(self, *whats: str) -> int:
        """How many there are of some kinds."""
        return sum(n for (what, _, _), n in self.found.items() if what in whats)

    def report(self, most: int = 40) -> str:
        """Counts by container and kind, and examples."""
        lines = [f"{part}: {n:,} compared" for part, n in self.asked.items()]
        kinds = list(dict.fromkeys(kind for _, kind in self.compared))
        lines.append("compared".ljust(32) + "".join(kind.rjust(10) for kind in kinds))
        for container in dict.fromkeys(one for one, _ in self.compared):
            counts = "".join(f"{self.compared[container, kind]:,}".rjust(10) for kind in kinds)
            lines.append(container.ljust(32) + counts)
        by_what = Counter[str]()
        for (what, _, _), n in self.found.items():
            by_what[what] += n
        lines.append(f"found: {sum(by_what.values()):,}")
        lines += [f"  {n:>8,} {what}" for what, n in by_what.most_common()]
        for place, n in self.found.most_common(most):
            lines.append(f"{n:>7,} {place[0]} | {place[1]} | {place[2]} | {self.examples[place][:300]}")
        return "\n".join(lines)
