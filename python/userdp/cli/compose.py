"""``userdp compose``: what many releases leak together, as certified bounds and as a certificate."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from userdp.cli.arguments import UsageError, content, distribution, whole
from userdp.cli.rows import Answer, Commands, ends, exit_code, group, holds_word, option
from userdp.display.numbers import bounded, enclosed_text
from userdp.exact.encoding import fraction_text
from userdp.exact.numbers import check_count, parse_positive, short_repr
from userdp.exceptions import BudgetError

if TYPE_CHECKING:
    from userdp.accounting import PrivacyLossDistribution

T = TypeVar("T")
TIMES = "*"
_LISTED: dict[str, Any] = {"action": "append", "default": []}
"""Of options that may be given several times."""
KINDS = {
    "gaussian": ("SIGMA", "Gaussian noise of SIGMA times a user's part of the sum"),
    "laplace": ("RATE[:SHIFT]", "discrete Laplace noise of epsilon RATE for each unit, and a sensitivity of SHIFT (1)"),
    "discrete-gaussian": (
        "VARIANCE[:SHIFT]",
        "discrete Gaussian noise with sigma^2 = VARIANCE on an integer of sensitivity SHIFT (1)",
    ),
    "pure": ("EPSILON[:DELTA]", "any (EPSILON, DELTA)-DP release (DELTA = 0)"),
    "bounded-range": ("EPSILON", "an exponential mechanism that is EPSILON-DP"),
}


COMMANDS = Commands()


@COMMANDS.add(
    "compose",
    "bound what many releases leak together",
    "The epsilon that releases on the same users have together at --delta, or their delta at "
    "--epsilon, certified from both sides; with both, a verdict on the claim. Each release may be listed any "
    f"number of times and be followed by {TIMES}N for N of it; --steps repeats all. Exit code 0: bounds were "
    "found, or the claim holds; 1: it is violated; 4: it is undecided.",
    "userdp compose --gaussian 1.0 --steps 1000 --sampling 0.01 --delta 1e-6\n"
    "userdp compose --pure '0.1*200' --laplace '1/20:3*50' --delta 1e-6 --certificate claim.json\n"
    "userdp compose --pmf 3/4,1/4 1/4,3/4 --steps 10 --epsilon 'ln(9)' --delta 1e-3 --json",
    group(
        "releases",
        *(option(f"--{name}", None, text, metavar=form, **_LISTED) for name, (form, text) in KINDS.items()),
        option(
            "--pmf",
            distribution,
            "output distributions on two neighbors (with a user and without, for --sampling), as lists or files",
            nargs=2,
            metavar=("P", "Q"),
            **_LISTED,
        ),
        option("--saved", content, "a file that --save wrote", metavar="FILE", **_LISTED),
    ),
    group(
        "how they are made",
        option("--steps", whole(1), "how often all of it is made (default 1)", default=1),
        option(
            "--sampling", None, "each release is on a fresh sample, with each user at this probability", metavar="RATE"
        ),
        option(
            "--sample-size",
            whole(1),
            "each release is on a fresh sample of M of all N users, one of whom is replaced",
            nargs=2,
            metavar=("M", "N"),
        ),
        option("--records", whole(1), "the releases are about one record, and users have R of them", metavar="R"),
    ),
    group(
        "the question",
        "--delta --epsilon",
        option("--width", float, "how far the bounds of epsilon may be apart (0.001)", default=1e-3),
    ),
    option("--certificate", Path, "write a claim for userdp verify", metavar="FILE"),
    option("--save", Path, "write the releases, for --saved", metavar="FILE"),
    "--json",
)
def compose(options: argparse.Namespace) -> Answer:
    """Run the command."""
    if options.delta is None and options.epsilon is None and options.save is None:
        raise UsageError("give --delta, --epsilon or both: there is no question yet")
    if options.sampling is not None and options.sample_size is not None:
        raise UsageError("--sampling goes with adding and removing users, --sample-size with replacing one: give one")
    if options.records is not None and (options.sampling is not None or options.sample_size is not None):
        raise UsageError(
            "--records: nothing is known about groups on samples; give the noise for all records of a user"
        )
    whole_loss = _composed(options)
    result: dict[str, Any] = {
        "releases": repr(whole_loss),
        "neighbors": whole_loss.neighbors,
        "attained": whole_loss.attained,
        "distance": fraction_text(whole_loss.distance),
    }
    holds, code = None, 0
    if options.delta is not None:
        result |= {"delta": options.delta}
    if options.delta is not None and options.epsilon is None:
        result["epsilon"] = ends(whole_loss.epsilon(options.delta, width=options.width))
    elif options.epsilon is not None:
        result["at_epsilon"] = options.epsilon
        if options.delta is not None:
            holds = whole_loss.is_private(options.epsilon, options.delta)
            result["holds"], code = holds, exit_code(holds)
        result["delta_at_epsilon"] = ends(whole_loss.delta(options.epsilon))
    if options.save is not None:
        options.save.write_text(whole_loss.to_json(), encoding="utf-8")
    if options.certificate is not None and code == 0:
        claim = whole_loss.certificate(epsilon=options.epsilon, delta=options.delta)
        options.certificate.write_text(claim, encoding="utf-8")
    return Answer("\n".join(_lines(result)), result, code)


RELATIONS = {"add-remove": "one user more or less", "replace": "one user replaced", None: "not stated"}


def _lines(result: dict[str, Any]) -> Iterator[str]:
    """The numbers in a few digits first, and then what they are about."""
    if "epsilon" in result:
        low, high = map(float, result["epsilon"])
        yield f"epsilon    at most {bounded(high)} at delta {result['delta']}"
        yield f"certified  {enclosed_text(low, high, digits=8)}"
    if "delta_at_epsilon" in result:
        low, high = map(float, result["delta_at_epsilon"])
        yield f"delta      at most {bounded(high)} at epsilon {result['at_epsilon']}"
        yield f"certified  {enclosed_text(low, high, digits=8)}"
    if "holds" in result:
        yield f"claim      ({result['at_epsilon']}, {result['delta']})-DP: {holds_word(result['holds'])}"
    yield f"releases   {result['releases'].removeprefix('PrivacyLossDistribution(').removesuffix(')')}"
    yield f"neighbors  {RELATIONS[result['neighbors']]}"
    if not result["attained"]:
        yield "           lower ends are about a pair that dominates the releases, and not about one of them"


def _composed(options: argparse.Namespace) -> PrivacyLossDistribution:
    """All releases that are listed, in the order of the help."""
    from userdp.accounting import PrivacyLossDistribution

    # What is drawn on a sample says by which theorem; the rest is about whichever neighbors the numbers are.
    neighbors = "add-remove" if options.sampling is not None else None if options.sample_size is None else "replace"
    parts: list[tuple[PrivacyLossDistribution, int]] = []
    for name in KINDS:
        for text in getattr(options, name.replace("-", "_")):
            parts.append(_named(name, text, partial(_release, name, text, neighbors)))
    for p, q in options.pmf:
        parts.append((_named("pmf", "", partial(_pair, p, q, neighbors)), 1))
    for text in options.saved:
        parts.append((_named("saved", "", partial(PrivacyLossDistribution.from_json, text)), 1))
    if not parts:
        raise UsageError(f"list a release: {', '.join(f'--{name}' for name in KINDS)}, --pmf or --saved")
    made = [(_used(loss, options), count) for loss, count in parts]
    return PrivacyLossDistribution.composed(made).self_compose(options.steps)


def _named(name: str, text: str, make: Callable[[], T]) -> T:
    """A release, or an error that names its option."""
    try:
        return make()
    except BudgetError:
        raise
    except ValueError as error:
        shown = f" {short_repr(text)}" if text else ""
        raise UsageError(f"--{name}{shown}: {error}") from None


def _pair(p: Any, q: Any, neighbors: Any) -> PrivacyLossDistribution:
    from userdp.accounting import PrivacyLossDistribution

    if neighbors == "add-remove":
        return PrivacyLossDistribution.from_pmfs(p, q, neighbors=neighbors)
    return PrivacyLossDistribution.from_pairs([(p, q)], neighbors=neighbors)


def _release(name: str, text: str, neighbors: Any) -> tuple[PrivacyLossDistribution, int]:
    """One release by its parameters, and how often it is made."""
    from userdp.accounting import PrivacyLossDistribution as Loss

    given, star, times = text.partition(TIMES)
    count = check_count(_integer(times, f"the number behind {TIMES}"), "count") if star else 1
    first, colon, second = (part.strip() for part in given.partition(":"))
    if colon and name in ("gaussian", "bounded-range"):
        raise ValueError(f"takes one number; accepted: {KINDS[name][0]}")
    if name == "gaussian":
        return Loss.gaussian(parse_positive(first, "sigma"), neighbors=neighbors), count
    if name == "bounded-range":
        return Loss.bounded_range(first, neighbors=neighbors), count
    if name == "pure":
        return Loss.pure(first, second or 0, neighbors=neighbors), count
    shift = _integer(second, "the sensitivity behind :") if colon else 1
    if name == "laplace":
        return Loss.discrete_laplace(first, shift, neighbors=neighbors), count
    return Loss.discrete_gaussian(first, shift, neighbors=neighbors), count


def _integer(text: str, name: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise ValueError(f"{name} must be a whole number; got {short_repr(text)}")
    return int(digits)


def _used(loss: PrivacyLossDistribution, options: argparse.Namespace) -> PrivacyLossDistribution:
    """A release on a sample, or about all records of a user, where that is asked."""
    if options.records is not None:
        return _named("records", str(options.records), lambda: loss.group(options.records))
    if options.sampling is not None:
        return _named("sampling", options.sampling, lambda: loss.poisson(options.sampling))
    if options.sample_size is not None:
        sampled, total = options.sample_size
        return _named("sample-size", "", lambda: loss.without_replacement(sampled, total))
    return loss
