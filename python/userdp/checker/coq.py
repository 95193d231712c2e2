"""The file for Coq that a certificate gives: its numbers, and the theorem about privacy that follows from them.

All texts in it are of this module, and all else is digits. Every name of a theorem or a definition is written with the
file of ``proofs`` that it is from, and nothing is defined before the numbers.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NamedTuple

from userdp.checker.certificates import CALIBRATIONS, WHOLE_PARTS, Level, Numbers, read_numbers

SUBJECTS = {
    **{name: f'DelStab, calibration "{name}"' for name in CALIBRATIONS},
    "noise": "truncated discrete Laplace noise",
    "selection": "the exponential mechanism",
    "pair": "two distributions",
}
CLAIMS = {
    **dict.fromkeys(CALIBRATIONS, "what DelStab releases with this table is (epsilon, delta)-DP for users"),
    "noise": "a count that one user moves by at most 1 is (epsilon, delta)-DP with this noise",
    "selection": "what is selected with these weights is epsilon-DP for scores of this sensitivity",
    "pair": "the two distributions are (epsilon, delta)-indistinguishable, both ways",
}
CHECKERS = {
    **dict.fromkeys(CALIBRATIONS, "certificate.check_algorithm1"),
    "optimal": "certificate.check_optimal",
    "noise": "certificate.check_noise",
    "selection": "certificate.check_choice",
    "pair": "certificate.check_pair",
}
"""The checker of each subject in proofs/certificate.v."""
SUCCESS = "Closed under the global context"
"""What Coq prints where it accepts a file, and nothing else."""
SECONDS = 600
"""For coqc; the largest tables take minutes."""

_HEAD = """\
(** Certificate: {title}.

  The claim: {claim},
  at epsilon = {epsilon} and delta = {delta}.

  E stands for e^epsilon: [is_level (Level r x) E] says that E = r e^x, by the power series of e^x. *)
From Coq Require Import NArith.
From mathcomp Require Import all_ssreflect all_algebra.
Require indist users tables delstab certificate.
Local Open Scope ring_scope.

Definition numbers := {record}.

Lemma accepted : {checker} numbers.
Proof. by vm_compute. Qed.

"""
_CALIBRATION = """\
(** I: the users, of whom w are kept; U: what one user may have; A: any algorithm on the kept users. *)
Theorem private_for_users (F : realFieldType) (I : finType) (U : Type) (O : finType) (A : seq U -> O -> F) (w : nat)
    (choice : {{ffun I -> U}} -> nat -> {{set I}} -> F) (E EL : F) :
  certificate.is_level {promise} E ->
  certificate.is_level {inner} EL ->
  (forall v, indist.pmf (A v)) -> (w <= #|I| - nat_of_bin {deletions})%N ->
  certificate.keeps_stable numbers EL A w choice {cap} ->
  users.private E (certificate.value F {delta}) (certificate.delstab_of_{mechanism} numbers EL A w choice).
Proof.
by move=> hE hL pA keeps; exact: (certificate.{mechanism}_private_for_users (c := numbers) hE hL pA keeps accepted).
Qed.
Print Assumptions private_for_users.
"""
_NOISE = """\
(** f: a count that one user moves by at most 1; outputs are 0, ..., K - 1. *)
Theorem private_count (F : realFieldType) (E : F) (I : finType) (U : Type) (f : {{ffun I -> U}} -> nat) (K : nat) :
  certificate.is_level {promise} E ->
  (forall x, f x + certificate.n_width numbers < K)%N ->
  (forall x x', users.neighbors x x' -> (f x <= (f x').+1)%N) ->
  let M x := tables.shifted (K := K) (certificate.n_law F numbers) (certificate.n_width numbers) (f x) in
  (forall x, indist.pmf (M x)) /\\ users.private E (certificate.value F {delta}) M.
Proof. by move=> hE fK sens; exact: (certificate.noise_certified (c := numbers) hE accepted fK sens). Qed.
Print Assumptions private_count.
"""
_SELECTION = """\
(** Up to {candidates} candidates 0, ..., k; no score moves by more than {sensitivity}, and lower is better. *)
Theorem private_selection (F : realFieldType) (E : F) (k : nat) (I : finType) (U : Type)
    (score : {{ffun I -> U}} -> 'I_k.+1 -> nat) :
  certificate.is_level {promise} E -> (k.+1 <= nat_of_bin {candidates})%N ->
  (forall x x' j, users.neighbors x x' -> (score x j <= score x' j + {sensitivity})%N) ->
  let M x := certificate.choice_law F numbers (score x) in (forall x, indist.pmf (M x)) /\\ users.private E 0 M.
Proof. by move=> hE few sens; exact: (certificate.choice_certified (c := numbers) hE few accepted sens). Qed.
Print Assumptions private_selection.
"""
_PAIR = """\
Theorem indistinguishable (F : realFieldType) (E : F) :
  certificate.is_level {promise} E ->
  let k := size (certificate.p_first numbers) in
  let P := certificate.p_law F numbers (k := k) (certificate.p_first numbers) in
  let Q := certificate.p_law F numbers (k := k) (certificate.p_second numbers) in
  let d := certificate.value F {delta} in
  [/\\ indist.pmf P, indist.pmf Q, indist.indist E d P Q & indist.indist E d Q P].
Proof. by move=> hE; exact: (certificate.pair_certified (c := numbers) hE accepted). Qed.
Print Assumptions indistinguishable.
"""
_STATEMENTS = {
    **dict.fromkeys(CALIBRATIONS, _CALIBRATION),
    "noise": _NOISE,
    "selection": _SELECTION,
    "pair": _PAIR,
}


def _pair(value: Fraction) -> str:
    return f"({value.numerator}%num, {value.denominator}%positive)"


def _level(level: Level) -> str:
    return f"(certificate.Level {_pair(level.ratio)} {_pair(level.exponent)})"


def _inner(parts: dict[str, Fraction]) -> Level:
    return Level(parts["inner_ratio"], parts["inner_exponent"])


def _entries(table: Sequence[int]) -> str:
    return "[:: " + ";\n    ".join(map(str, table)) + "]%num"


def _words(level: Level) -> str:
    if level.ratio == 1:
        return str(level.exponent)
    return f"ln({level.ratio})" + (f" + {level.exponent}" if level.exponent else "")


def record_text(subject: str, numbers: Numbers) -> str:
    """The numbers as a record of proofs/certificate.v."""
    parts, promise = numbers.parts, _level(numbers.level)
    common = (promise, _pair(numbers.delta), _pair(numbers.factor))
    tail = (f"{numbers.total}%num", _entries(numbers.table))
    terms = f"{numbers.terms}%N"
    if subject in CALIBRATIONS:
        shares = (_pair(parts["noise_delta"]), _level(_inner(parts)), _pair(parts["inner_delta"]))
        words = ["Calibration", *common, *shares, f"{parts['deletions']}%num", terms, *tail]
    elif subject == "noise":
        words = ["NoiseTable", *common, terms, *tail]
    elif subject == "pair":
        words = ["PairTable", *common, terms, *tail, _entries(numbers.second or ())]
    else:
        whole = {name: str(parts[name]) for name in WHOLE_PARTS & set(parts)}
        words = ["ChoiceTable", promise, _pair(numbers.factor), terms, tail[0], f"{whole['sensitivity']}%N"]
        words += [f"{whole['candidates']}%num", _pair(parts["beta"]), f"{whole['low']}%num", f"{whole['high']}%num"]
        words += [_pair(parts["theta"]), f"{whole['precision']}%num", tail[1]]
    return "certificate." + "\n  ".join(words)


def coq_text(subject: str, numbers: Numbers) -> str:
    """The file for Coq. One of wrong numbers can be written; Coq refuses it."""
    optimal, parts = subject == "optimal", numbers.parts
    said = {
        "title": SUBJECTS[subject],
        "claim": CLAIMS[subject],
        "epsilon": _words(numbers.level),
        "delta": str(numbers.delta),
        "record": record_text(subject, numbers),
        "checker": CHECKERS[subject],
    }
    stated = {
        "promise": _level(numbers.level),
        "delta": _pair(numbers.delta),
        "cap": "(certificate.most numbers)" if optimal else "(certificate.most numbers).+1",
        "mechanism": "optimal" if optimal else "algorithm1",
    }
    if subject == "selection":
        stated |= {name: str(parts[name]) for name in ("candidates", "sensitivity")}
    elif subject in CALIBRATIONS:
        stated |= {"inner": _level(_inner(parts)), "deletions": f"{parts['deletions']}%num"}
    return _HEAD.format(**said) + _STATEMENTS[subject].format(**stated)


class Comparison(NamedTuple):
    """What became of a file for Coq, and the same in words."""

    state: Literal["different", "identical", "refused", "accepted"]
    words: str


def compared(report: Mapping[str, Any], file: Path, proofs: Path | None = None) -> Comparison:
    """Compare a file with the one that a certificate gives, byte for byte, and have coqc check it with given proofs.

    Parameters
    ----------
    report : dict
        A certificate that `check` has not found wrong.
    file : Path
        The file for Coq.
    proofs : Path, optional
        The compiled folder ``proofs`` of the source, which whoever asks has to trust; without it coqc is not run.
    """
    written = coq_text(report["subject"], read_numbers(report)).encode("ascii")
    with file.open("rb") as source:
        found = source.read(len(written) + 1)
    if found != written:
        return Comparison("different", f"{file} is not the file that the report gives; write it again and use that one")
    same = f"{file} is, byte for byte, the file that the report gives"
    command = shutil.which("coqc")
    if proofs is None or command is None or not (proofs / "certificate.vo").exists():
        lacks = "--proofs names no folder of the source's proofs"
        if proofs is not None:
            lacks = "it is not installed" if command is None else f"{proofs} has no compiled proofs (make -C proofs)"
        return Comparison("identical", f"{same}. coqc was not run: {lacks}.")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "table.v").write_bytes(written)
        run = [command, "-q", "-w", "none", "-R", str(proofs.resolve()), "", "table.v"]
        try:
            done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return Comparison("identical", f"{same}. coqc did not end within {SECONDS} seconds.")
    if done.returncode or done.stdout.strip() != SUCCESS:
        return Comparison("refused", f"coqc refuses {file}: {(done.stderr or done.stdout).strip()[-500:]}")
    return Comparison("accepted", f"{same}, and coqc accepts it: {SUCCESS.lower()}.")
