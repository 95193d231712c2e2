"""Files for Coq: one that differs from what its certificate gives is found, also where Coq accepts it."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from checker.test_checker_certificates import MAKERS
from userdp.checker.coq import compared
from userdp.cli import main
from userdp.mechanisms import ExponentialMechanism

PROOFS = Path(__file__).resolve().parents[2] / "proofs"
NAMES = ("optimal", "tight", "paper", "noise", "selection of 3", "pair")
"""A certificate of each subject."""
FILES = {"indist", "users", "tables", "delstab", "certificate"}
IMPORTS = """
From Coq Require Import NArith.
From mathcomp Require Import all_ssreflect all_algebra.
Require indist users tables delstab certificate.
Local Open Scope ring_scope.

"""
needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None or not (PROOFS / "certificate.vo").exists(), reason="needs coqc and make -C proofs"
)

# --- files that differ


def inserted(text: str, source: random.Random) -> str:
    place = source.randrange(len(text) + 1)
    shadows = (
        "Definition pmf := True. ",
        "Module users. End users.\n",
        "x",
        "0",
        " ",
        "\n",
        "\r",
        "\0",
        "(**)",
        ".",
        "\u0430",
    )
    return text[:place] + source.choice(shadows) + text[place:]


def deleted(text: str, source: random.Random) -> str:
    place = source.randrange(len(text))
    return text[:place] + text[place + source.choice((1, 1, 2, 10, 1000)) :]


def replaced(text: str, source: random.Random) -> str:
    place = source.choice([found.start() for found in re.finditer(r"[0-9A-Za-z]", text)])
    return text[:place] + source.choice("0123456789aZ_ ".replace(text[place], "")) + text[place + 1 :]


def exchanged(text: str, source: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    one, other = source.sample([k for k, line in enumerate(lines) if line not in lines[:k]], 2)
    lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def of_another(text: str, source: random.Random) -> str:
    """The file of the same subject with another epsilon, delta or table, as far as it is written."""
    numbers = [found for found in re.finditer(r"[0-9]+", text) if found.start() > text.index("Definition")]
    found = source.choice(numbers)
    return text[: found.start()] + str(int(found[0]) + source.choice((1, 2**64))) + text[found.end() :]


def other_ends(text: str, _: random.Random) -> str:
    return text.replace("\n", "\r\n")


KINDS: tuple[Callable[[str, random.Random], str], ...] = (
    inserted,
    deleted,
    replaced,
    exchanged,
    of_another,
    other_ends,
)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_compared_byte_for_byte(name: str, tmp_path: Path) -> None:
    """180 altered files of each of six subjects."""
    made, source, file = MAKERS[name](), random.Random(name), tmp_path / "file.v"
    report, text = json.loads(made.to_json()), made.to_coq()
    file.write_bytes(text.encode())
    assert compared(report, file, tmp_path).state == "identical"
    for number in range(180):
        altered = KINDS[number % len(KINDS)](text, source)
        assert altered != text
        file.write_bytes(altered.encode())
        assert compared(report, file, tmp_path).state == "different", altered


def test_the_command_says_what_was_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, report, file = MAKERS["pair"](), tmp_path / "report.json", tmp_path / "file.v"
    report.write_text(made.to_json())
    file.write_text(made.to_coq())
    command = ["verify", str(report), "--coq", str(file), "--proofs", str(tmp_path)]
    assert main(command) == 0
    assert "byte for byte" in capsys.readouterr().out
    assert main(command[:4]) == 0
    assert "coqc was not run: --proofs names no folder" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["coq"] == "identical"
    file.write_text(made.to_coq() + "\n")
    assert main(command) == 6
    assert "is not the file that the report gives" in capsys.readouterr().out
    assert main([*command, "--json"]) == 6
    assert json.loads(capsys.readouterr().out)["coq"] == "different"
    assert main(["verify", str(report), "--proofs", str(tmp_path)]) == 2
    assert main(["verify", str(report), "--coq", str(tmp_path / "none.v")]) == 2


@pytest.mark.parametrize("name", NAMES)
def test_names_are_qualified_and_nothing_is_defined_before_the_numbers(name: str) -> None:
    """A definition of the same short name would change nothing, and there is no room for one."""
    text = MAKERS[name]().to_coq()
    assert text[text.index("*)") + 2 : text.index("Definition numbers")] == IMPORTS
    ours = set[str]()
    for file in FILES:
        text_of_file = (PROOFS / f"{file}.v").read_text()
        ours |= set(re.findall(r"^(?:Definition|Theorem|Fixpoint|Record) (\w+)", text_of_file, re.M))
    statement = re.sub(r"\(\*.*?\*\)", "", text, flags=re.S)
    assert {word for word in re.findall(r"(?<![\w.])[a-z_]\w+", statement) if word in ours} <= FILES | {"exact"}
    assert re.search(r"certificate\.check_\w+ numbers", statement)


# --- what Coq accepts


SHADOWS = """\
Module indist. Definition pmf {F O : Type} (P : O -> F) := true.
Definition indist {F O : Type} (E d : F) (P Q : O -> F) := true. End indist.
Module users. Definition private {F X O : Type} (E d : F) (M : X -> O -> F) := true.
Definition neighbors {X : Type} (x y : X) := false. End users.
"""
_STATED = re.compile(r"(Theorem \w+.*?:\n)(.*?)\nProof\..*?Qed\.", re.S)


def with_shadows(text: str) -> str:
    """Another meaning of the short names of the theorem, which would then hold of anything."""
    text = text.replace("Local Open Scope", f"{SHADOWS}Local Open Scope")
    return _STATED.sub(r"\1\2\nProof. by repeat (intros; split). Qed.", text)


def with_a_better_claim(text: str) -> str:
    """A delta of 0 and a level of 1 in the theorem, with the definitions that would make it true."""
    text = with_shadows(text)
    start = text.index("Theorem")
    nothing = "(certificate.Level (1%num, 1%positive) (0%num, 1%positive))"
    said = re.sub(r"\(certificate\.Level .*?\)\)", nothing, text[start:])
    return text[:start] + re.sub(r"(certificate\.value F )\(.*?\)", r"\1(0%num, 1%positive)", said)


def with_a_premise(text: str) -> str:
    """A theorem that says nothing, since its premise is never met."""
    stated = _STATED.sub(r"\1False ->\n\2\nProof. by []. Qed.", text)
    return re.sub(r"(certificate\.value F )\([0-9].*?\)", r"\1(0%num, 1%positive)", stated)


def with_another_theorem(text: str) -> str:
    """A theorem of nothing comes last, with a name that sounds right."""
    return text + "Module claim. Theorem private : True. Proof. by []. Qed. End claim.\n"


def with_another_comment(text: str) -> str:
    return re.sub(r"at epsilon = .* and delta = .*", "at epsilon = 0 and delta = 0.", text, count=1)


ALTERED = {
    with_shadows: False,
    with_a_better_claim: False,
    with_a_premise: True,
    with_another_theorem: True,
    with_another_comment: True,
}
"""Whether Coq accepts them: it masks no absolute name, and the names of the theorem are absolute."""


def run_coqc(file: Path) -> subprocess.CompletedProcess[str]:
    command = ["coqc", "-w", "none", "-R", str(PROOFS), "", file.name]
    return subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)


@needs_coq
@pytest.mark.parametrize("alter", ALTERED, ids=lambda alter: alter.__name__)
@pytest.mark.parametrize("name", ["optimal", "noise", "selection of 3", "pair"])
def test_what_coq_accepts_is_refused_by_the_comparison(name: str, alter: Callable[[str], str], tmp_path: Path) -> None:
    """Twenty files that say something else, or mean something else, than their certificate."""
    made, file = MAKERS[name](), tmp_path / "file.v"
    altered = alter(made.to_coq())
    assert altered != made.to_coq()
    file.write_text(altered)
    assert compared(json.loads(made.to_json()), file, PROOFS).state == "different"
    done = run_coqc(file)
    assert (done.returncode == 0) == ALTERED[alter], done.stderr
    assert ("Closed under the global context" in done.stdout) == ALTERED[alter]


@needs_coq
@pytest.mark.parametrize("name", NAMES)
def test_coqc_is_run_where_there_is_one(name: str, tmp_path: Path) -> None:
    made, file = MAKERS[name](), tmp_path / "file.v"
    file.write_text(made.to_coq())
    assert compared(json.loads(made.to_json()), file, PROOFS).state == "accepted"


@needs_coq
@pytest.mark.parametrize("name", NAMES)
def test_coqc_refuses_wrong_numbers(name: str, tmp_path: Path) -> None:
    made = MAKERS[name]()
    table = (*made.table[:1], made.table[1] * 2 + 3, *made.table[2:])
    wrong, file = replace(made, table=table), tmp_path / "file.v"
    file.write_text(wrong.to_coq())
    assert compared(json.loads(wrong.to_json()), file, PROOFS).state == "refused"
    assert run_coqc(file).returncode != 0


@needs_coq
def test_coq_compares_every_weight_with_the_power_that_it_stands_for(tmp_path: Path) -> None:
    """No weight may be another one."""
    made, file = ExponentialMechanism(epsilon=8, sensitivity=1).certificate(3), tmp_path / "file.v"
    file.write_text(made.to_coq())
    assert run_coqc(file).returncode == 0
    for place in (1, 5, len(made.table) - 1):
        table = (*made.table[:place], made.table[place] + made.table[0] // 1000, *made.table[place + 1 :])
        file.write_text(replace(made, table=table).to_coq())
        assert run_coqc(file).returncode != 0, place
