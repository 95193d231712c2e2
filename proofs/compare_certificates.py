"""The checkers of certificates compared: Coq's, Python's, and the functions by which the core certifies its tables.

    python proofs/compare_certificates.py [--tampered 1250] [--tables 10000] [--write FOLDER]

Needs `make -C proofs` and coqc. First, every certificate of a list is written as a file, which Coq must accept to the
end. Then tampered ones: numbers moved by a little or by much, entries exchanged or lost; Coq computes the verdicts of
some hundred in one file. Last come random tables of refusals and of noise near the boundary, for the constructor of
DelStab's calibrations and, with --write, for the core's `certify`: its test `tables_that_coq_decided` reads the file.
Every draw has a fixed seed. With differences, the exit code is 1.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from userdp import LogRatio
from userdp.checker import check as checker
from userdp.checker import values
from userdp.checker.certificates import WHOLE_PARTS, check_numbers, read_numbers
from userdp.checker.coq import CHECKERS, record_text
from userdp.delstab import delstab
from userdp.delstab.delstab import calibrate
from userdp.exact.numbers import PrivacyLevel
from userdp.mechanisms import ExponentialMechanism, TruncatedDiscreteLaplace
from userdp.report import Certificate
from userdp.report.certificate import table_factor

PROOFS = Path(__file__).resolve().parent
HEAD = """\
From Coq Require Import NArith.
From mathcomp Require Import all_ssreflect all_algebra.
Require Import indist users tables delstab certificate.
"""
TOTAL = 1 << 128


def certificates() -> dict[str, Certificate]:
    """Three calibrations at epsilon 1 and delta 10^-6, and ten tables."""
    made = {name: calibrate(name, 1, "1e-6").certificate() for name in ("optimal", "tight", "paper")}
    noise: list[tuple[Any, Any, Any]] = [
        (1, "1e-6", "paper"),
        ("0.1", "1e-3", "tight"),
        (LogRatio(2), "1e-9", "tight"),
        (8, "1e-2", "paper"),
    ]
    for place, (epsilon, delta, width) in enumerate(noise):
        made[f"noise{place}"] = TruncatedDiscreteLaplace(epsilon=epsilon, delta=delta, half_width=width).certificate()
    choices: list[tuple[Any, int, int]] = [(1, 1, 2**24), (8, 1, 3), (LogRatio(3), 2, 100)]
    for place, (epsilon, sensitivity, most) in enumerate(choices):
        made[f"selection{place}"] = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity).certificate(most)
    pairs: list[tuple[Sequence[str], Sequence[str], Any, Any]] = [
        (["2/3", "1/3"], ["1/3", "2/3"], LogRatio(2), 0),
        (["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], "1/10", "1/4"),
        (["1", "0"], ["0.999", "0.001"], "1e-3", "1e-2"),
    ]
    for place, (p, q, epsilon, delta) in enumerate(pairs):
        made[f"pair{place}"] = Certificate.of_pair(p, q, epsilon=epsilon, delta=delta)
    return made


# --- tampering: what Coq's numbers can say, so that both checkers see the same


def _near(source: random.Random, value: Fraction) -> Fraction:
    """Another number >= 0: by one unit, by a little, by much, or something else."""
    unit = Fraction(1, value.denominator)
    changed = source.choice(
        (
            value + unit,
            value - unit,
            value * Fraction(source.randrange(900, 1100), 1000),
            value * 2,
            value / 2,
            1 / value if value else Fraction(1),
            Fraction(0),
            Fraction(source.getrandbits(40), 1 << 30),
        )
    )
    return max(changed, Fraction(0))


def tampered(source: random.Random, made: Certificate) -> Certificate:
    """The certificate with one field that is something else."""
    while True:
        changed = _tampered(source, made)
        if changed != made:
            return changed


def _tampered(source: random.Random, made: Certificate) -> Certificate:
    what = source.randrange(8)
    if what == 0:
        return replace(made, epsilon=PrivacyLevel(made.epsilon.ratio, _near(source, made.epsilon.exponent)))
    if what == 1 and made.subject != "selection":
        return replace(made, delta=_near(source, made.delta))
    if what == 2:
        return replace(made, factor=_near(source, made.factor))
    if what == 3 and made.parts:
        name = source.choice(sorted(made.parts))
        value = _near(source, made.parts[name])
        return replace(made, parts=dict(made.parts) | {name: Fraction(round(value)) if name in WHOLE_PARTS else value})
    if what == 4:
        return replace(made, total=round(_near(source, Fraction(made.total))))
    table = list(made.table)
    place = source.randrange(len(table))
    if what == 5:
        other = source.randrange(len(table))
        table[place], table[other] = table[other], table[place]
    elif what == 6 and len(table) > 1:
        del table[place]
    else:
        table[place] = round(_near(source, Fraction(table[place])))
    return replace(made, table=tuple(table))


def python_verdict(made: Certificate) -> bool:
    """Whether the checker in Python accepts the numbers."""
    try:
        check_numbers(made.subject, read_numbers(made._content()))
    except values.Problem:
        return False
    return True


def sealed(made: Certificate) -> dict[str, Any]:
    """The certificate as a report with a digest that fits."""
    content = {"format": checker.format_of("certificate"), "userdp_version": "0"} | made._content()
    return content | {"digest": "sha256:" + values.canonical_digest(content)}


# --- Coq


def coq(text: str, folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Check a file."""
    (folder / f"{name}.v").write_text(text, encoding="ascii")
    command = ["coqc", "-w", "none", "-R", str(PROOFS), "", f"{name}.v"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def booleans(terms: Sequence[str], folder: Path, name: str) -> list[bool]:
    """What Coq computes of these terms, each a boolean."""
    lines = [HEAD]
    for place, term in enumerate(terms):
        lines.append(f"Definition b{place} := Eval vm_compute in {term}.")
        lines.append(f"Definition s{place} := if b{place} then true else false. Eval cbv in s{place}.")
    done = coq("\n".join(lines), folder, name)
    if done.returncode:
        raise SystemExit(f"coqc fails on {name}: {done.stderr[-2000:]}")
    return [word == "true" for word in re.findall(r"= (true|false)", done.stdout)]


def term(made: Certificate) -> str:
    """Coq's checker on the numbers."""
    return f"{CHECKERS[made.subject]} ({record_text(made.subject, read_numbers(made._content()))})"


# --- random tables near the boundary


def refusals(source: random.Random, low: Fraction, delta: Fraction) -> list[int]:
    """The fastest rise, with now and then an entry that is a unit too high or too low."""
    slack, table = int(delta * TOTAL), [0]
    wrong = source.randrange(2)
    while table[-1] < TOTAL and len(table) < 60:
        last = table[-1]
        rise = int(low * last) + slack
        rest = TOTAL - (last + slack)
        answers = TOTAL if rest <= 0 else TOTAL - -int(-rest / low // 1)
        entry = min(rise, answers, TOTAL)
        if wrong and not source.randrange(4) and entry < TOTAL:
            entry += source.choice((1, 2, -1))
        table.append(max(entry, 0))
    return table


def exact_noise(source: random.Random, low: Fraction) -> tuple[list[int], Fraction]:
    """A table that the core would make, at the least delta it has, and what a unit more or less makes of both."""
    kappa = source.randrange(1, 24)

    def climbed(end: int) -> list[int]:
        ladder = [end]
        for _ in range(kappa):
            ladder.append(int(low * ladder[-1]))
        return ladder[::-1]

    below, above = 1, TOTAL
    while below < above:
        middle = (below + above) // 2
        half = climbed(middle)
        if 2 * sum(half[1:]) + half[0] >= TOTAL:
            above = middle
        else:
            below = middle + 1
    half = climbed(below)
    half[0] = TOTAL - 2 * sum(half[1:])
    delta = Fraction(half[-1], TOTAL)
    if source.randrange(3):
        what = source.randrange(3)
        if what == 0:
            delta -= Fraction(1, TOTAL)
        else:
            place = source.randrange(len(half))
            half[place] += source.choice((1, -1))
            if what == 2 and place:
                half[0] -= 2 * source.choice((1, -1))
    return half, delta


def constructor_verdict(kappa: int | None, chain: Sequence[int], level: PrivacyLevel, delta: Fraction) -> bool:
    """Whether the constructor of a calibration accepts the table."""
    stated = SimpleNamespace(refusal=tuple(chain), noise_level=level, noise_delta=delta, kappa=kappa)
    try:
        delstab._check_refusal(stated)  # type: ignore[arg-type]
    except (ArithmeticError, IndexError, ValueError):
        return False
    return True


Case = tuple[str, PrivacyLevel, Fraction, list[int], tuple[str, str]]
"""Kind, level, delta and entries, and Coq's terms with the core's factor below e^epsilon and with e^epsilon itself."""


def cases(source: random.Random, number: int) -> Iterator[Case]:
    """Random tables with Coq's term for each: of refusals, and of noise by halves."""
    for place in range(number):
        # ln(a / b), which the core, the constructor and Coq then have exactly.
        b = source.randrange(3, 1000)
        level = PrivacyLevel(Fraction(b + source.randrange(1, b), b), Fraction(0))
        factor = table_factor(level)
        if place % 2:
            half, delta = exact_noise(source, factor)
            table = half[:0:-1] + half
            if delta <= 0:
                continue
        else:
            delta = Fraction(source.randrange(1, 1 << 40), 1 << 42)
            half = table = refusals(source, factor, delta)
        kind = "laplace" if place % 2 else "refusal"
        terms = (_check_term(kind, table, factor, delta), _check_term(kind, table, level.ratio, delta))
        yield kind, level, delta, half, terms


def _check_term(kind: str, table: Sequence[int], factor: Fraction, delta: Fraction) -> str:
    slack = delta * TOTAL * factor.denominator // 1
    first, rest = table[0], ";".join(map(str, table[1:]))
    return f"(check_{kind} {TOTAL} {factor.numerator} {slack} {factor.denominator} {first} [:: {rest}])%num"


def core_file(found: Sequence[tuple[Case, bool]]) -> str:
    """The tables as the core's test reads them: kind, ratio, delta, verdict and entries."""
    return "".join(
        f"{kind} {level.ratio.numerator} {level.ratio.denominator} {delta.numerator} {delta.denominator} "
        f"{'accepted' if verdict else 'refused'} {' '.join(map(str, half))}\n"
        for (kind, level, delta, half, _), verdict in found
    )


def of_constructor(case: Case) -> bool:
    """Whether the constructor of a calibration accepts a random table."""
    kind, level, delta, half, _ = case
    if kind == "refusal":
        return constructor_verdict(None, half, level, delta)
    sums = itertools.accumulate(half[:0:-1] + half, initial=0)
    return constructor_verdict(len(half) - 1, list(sums), level, delta)


# --- all of it


def in_batches(terms: Sequence[str], size: int, folder: Path, name: str) -> list[bool]:
    """The verdicts, some hundred in a file."""
    found = list[bool]()
    for start in range(0, len(terms), size):
        found += booleans(terms[start : start + size], folder, f"{name}{start}")
    return found


def report(name: str, differences: int, accepted: int, number: int) -> bool:
    """Print a line and say whether it is good."""
    print(f"{name}: {number} compared, {accepted} accepted, {number - accepted} refused, {differences} differences")
    return differences == 0


def main() -> int:
    """Compare, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--tampered", type=int, default=1250)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--write", type=Path, help="also write the random tables, for the core's test")
    options = parser.parse_args()
    good, made = True, certificates()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, certificate in made.items():
            done = coq(certificate.to_coq(), folder, title)
            closed = done.returncode == 0 and "Closed under the global context" in done.stdout
            established = checker.check(sealed(certificate)).finding == "established"
            print(
                f"{title}: Coq {'accepts' if closed else 'REFUSES'}, Python {'accepts' if established else 'REFUSES'}"
            )
            good &= closed and established
        source = random.Random(23)
        changed = [tampered(source, source.choice(list(made.values()))) for _ in range(options.tampered)]
        coqs = in_batches([term(one) for one in changed], 250, folder, "tampered")
        mine = [python_verdict(one) for one in changed]
        differ = sum(a != b for a, b in zip(coqs, mine, strict=True))
        good &= report("tampered certificates, Coq and Python", differ, sum(coqs), len(coqs))
        drawn = list(cases(source, options.tables))
        # The constructor has e^epsilon itself where it is a fraction; the core has 128 binary places of it.
        coqs = in_batches([case[4][1] for case in drawn], 500, folder, "exact")
        differ = sum(a != of_constructor(case) for case, a in zip(drawn, coqs, strict=True))
        good &= report("random tables, Coq and the constructor", differ, sum(coqs), len(coqs))
        if options.write is not None:
            coqs = in_batches([case[4][0] for case in drawn], 500, folder, "tables")
            options.write.write_text(core_file(list(zip(drawn, coqs, strict=True))), encoding="ascii")
    return 0 if good else 1


if __name__ == "__main__":
    os.nice(10)
    sys.exit(main())
