"""``userdp certificate``: numbers from which a machine-checked theorem proves privacy, for Coq or for userdp verify."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from userdp.cli.arguments import UsageError, delta, distribution, require_writable, whole
from userdp.cli.rows import Answer, Commands, option

if TYPE_CHECKING:
    from userdp.report import Certificate

ENDINGS = (".v", ".json")
OPTIONS = {
    "delstab": ("delta", "calibration", "inner_budget"),
    "noise": ("delta", "half_width"),
    "selection": ("sensitivity", "granularity", "n_candidates"),
    "pair": ("delta", "p", "q"),
}
"""What goes with which subject, beside --epsilon."""
NEEDED = {"delstab": ("delta",), "noise": ("delta",), "selection": ("sensitivity",), "pair": ("delta", "p", "q")}


COMMANDS = Commands()


@COMMANDS.add(
    "certificate",
    "write the proof of a table, for Coq or for verify",
    "Write the numbers that a table is private by: of DelStab's calibration, of truncated discrete "
    "Laplace noise, of the exponential mechanism, or of two distributions. A .v file ends in the theorem about "
    "privacy, and Coq checks it next to the folder proofs of the source; a .json file is for userdp verify.",
    "userdp certificate delstab --epsilon 1 --delta 1e-6 --output optimal.v\n"
    "userdp certificate noise --epsilon 'ln(2)' --delta 1e-9 --output noise.json\n"
    "userdp certificate selection --epsilon 1 --sensitivity 1 --output selection.v\n"
    "userdp certificate pair --p 2/3,1/3 --q 1/3,2/3 --epsilon 'ln(2)' --delta 0 --output pair.json",
    option("subject", tuple(OPTIONS), "what the table is of"),
    "--epsilon!",
    option("--delta", delta, "probability: 1e-6 or 1/1000000, exactly"),
    option("--calibration", ("optimal", "tight", "paper"), "delstab: default optimal"),
    option("--inner-budget", None, "delstab, optimal: shares such as 1/10,1/2", metavar="E,D"),
    option("--half-width", ("paper", "tight"), "noise: default paper"),
    option("--sensitivity", None, "selection: how much a user changes a score at most", metavar="S"),
    option("--granularity", None, "selection: a power of two; by default integer scores", metavar="G"),
    option("--n-candidates", whole(1), "selection: at most so many (2^24)", metavar="K"),
    option("--p", distribution, "pair: a list, or a file"),
    option("--q", distribution, "pair: a list, or a file"),
    option("--output", Path, "the .v or .json file to write", required=True, metavar="FILE"),
    "--json",
)
def certificate(options: argparse.Namespace) -> Answer:
    """Run the command."""
    ending = options.output.suffix
    if ending not in ENDINGS:
        raise UsageError(f"--output must end in .v, for Coq, or in .json, for userdp verify; got {ending!r}")
    for name in sorted({name for names in OPTIONS.values() for name in names}):
        given, option = getattr(options, name) is not None, "--" + name.replace("_", "-")
        if given and name not in OPTIONS[options.subject]:
            raise UsageError(f"{option} does not go with {options.subject}")
        if not given and name in NEEDED[options.subject]:
            raise UsageError(f"{option} is needed for {options.subject}")
    require_writable(options.output, "output")
    made = _made(options)
    text = made.to_coq() if ending == ".v" else made.to_json()
    options.output.write_text(text, encoding="ascii")
    return Answer(f"{made.summary()}\nwritten to {options.output}", made)


def _made(options: argparse.Namespace) -> Certificate:
    if options.subject == "delstab":
        from userdp.delstab.delstab import calibrate

        shares = None
        if options.inner_budget is not None:
            shares = tuple(options.inner_budget.split(","))
        return calibrate(options.calibration or "optimal", options.epsilon, options.delta, shares).certificate()
    if options.subject == "noise":
        from userdp.mechanisms import TruncatedDiscreteLaplace

        width: Literal["paper", "tight"] = options.half_width or "paper"
        return TruncatedDiscreteLaplace(epsilon=options.epsilon, delta=options.delta, half_width=width).certificate()
    if options.subject == "selection":
        from userdp.mechanisms import ExponentialMechanism

        chooser = ExponentialMechanism(
            epsilon=options.epsilon, sensitivity=options.sensitivity, granularity=options.granularity
        )
        return chooser.certificate() if options.n_candidates is None else chooser.certificate(options.n_candidates)
    from userdp.report import Certificate

    return Certificate.of_pair(options.p, options.q, epsilon=options.epsilon, delta=options.delta)
