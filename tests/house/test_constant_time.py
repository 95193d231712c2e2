"""What `make constant-time` examines is everything that is claimed. Needs no valgrind; the evidence itself does."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from constant_time import __main__ as command
from constant_time.callgrind import all_equal, branches_of, forbidden_in
from constant_time.cases import CASES, DECIDES, DISORDER, Case
from constant_time.counts import reached_from, read_counts
from constant_time.coverage import claimed, exported, gaps, revealed, written
from constant_time.leaks import plant
from constant_time.memcheck import out_of_place, wrong_in
from constant_time.welch import welch_t
from userdp import _core, delstab, mechanisms
from userdp.protocols import local

ROOT = Path(__file__).parents[2]
LIBRARY = Path(_core.__file__)
PAGE = command.PAGE


def test_kernels_are_written_exported_and_examined() -> None:
    assert not gaps(ROOT / "rust", LIBRARY, PAGE)
    assert "userdp_ct_count" in exported(LIBRARY)


def test_a_kernel_without_a_case_is_a_gap(tmp_path: Path) -> None:
    (tmp_path / "new.rs").write_text("ct::kernel! {\n    pub fn userdp_ct_new(x: u64) -> u64 { x }\n}\n")
    found = gaps(tmp_path, LIBRARY, PAGE)
    assert "userdp_ct_new is not exported" in found
    assert "userdp_ct_new is called by no case" in found
    assert "userdp_ct_count is exported, but not in the sources" in found


def test_every_row_of_the_claim_has_its_case_and_every_case_its_row(tmp_path: Path) -> None:
    rows = claimed(PAGE)
    assert len(rows) == len(set(rows)) >= 14
    assert {case.claim for case in CASES} == set(rows)
    page = tmp_path / "page.md"
    text = PAGE.read_text(encoding="utf-8")
    page.write_text(
        text.replace("| `BiasedCoin.sample` |", "| `OtherCoin.sample` |").replace("| `Categorical.", "| `X.")
    )
    found = gaps(ROOT / "rust", LIBRARY, page)
    assert set(found) == {
        "OtherCoin.sample is claimed, and has no case",
        "X.sample is claimed, and has no case",
        "BiasedCoin.sample has a case, and is not claimed",
        "Categorical.sample has a case, and is not claimed",
    }


def test_every_row_of_the_claim_names_one_call() -> None:
    table = PAGE.read_text(encoding="utf-8").split("| call | public | secret |\n")[1].split("\n\n")[0]
    assert len(claimed(PAGE)) == len(table.splitlines()) - 1


def test_what_is_revealed_is_on_the_page(tmp_path: Path) -> None:
    assert set(revealed(PAGE)) == set(DECIDES)
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text(encoding="utf-8").replace(f"| `{DISORDER}` |", "| `userdp_revealed_all` |"))
    assert set(gaps(ROOT / "rust", LIBRARY, page)) == {
        f"{DISORDER} reveals something, and the page does not say what",
        "userdp_revealed_all is said to reveal something, and is not in the sources",
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases_make_the_public_call_that_they_are_named_after(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, method = case.claim.split(".")
    (owner,) = (getattr(module, kind) for module in (mechanisms, local, delstab) if kind in module.__all__)
    called, public = [], getattr(owner, method)

    def watched(self: Any, *arguments: Any, **options: Any) -> Any:
        called.append(type(self))
        return public(self, *arguments, **options)

    monkeypatch.setattr(owner, method, watched)
    for inputs in list(case.inputs())[:2]:
        assert np.size(case.draw(case.make(), inputs.values)) == case.draws
    assert called == [owner] * 2


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases_have_enough_classes(case: Case) -> None:
    classes = list(case.inputs())
    assert len({inputs.label for inputs in classes}) == len(classes) >= 6
    assert all(inputs.secret_bytes == case.secret_bytes > 0 for inputs in classes)
    assert len({(inputs.values.tobytes(), inputs.random) for inputs in classes}) == len(classes)
    # Words at both ends of their range, and others.
    some = {inputs.random[-16:] for inputs in classes}
    assert b"\xff" * 16 in some
    assert some & {bytes(16), (1).to_bytes(16, "little")}
    assert len(some) >= 6


def test_names_of_cases_differ() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_every_kernel_can_be_made_to_leak(tmp_path: Path) -> None:
    kernels = set(written(ROOT / "rust"))
    assert set(DECIDES) < kernels
    core = tmp_path / "rust" / "core" / "src"
    for path in (ROOT / "rust" / "core" / "src").rglob("*.rs"):
        copy = core / path.relative_to(ROOT / "rust" / "core" / "src")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    assert set(plant(tmp_path)) == kernels
    text = "".join(path.read_text(encoding="utf-8") for path in core.rglob("*.rs"))
    assert set(re.findall(r'crate::planted::leak\("(\w+)", &\w+\);', text)) == kernels


@pytest.mark.parametrize(
    ("system", "arguments", "ci", "status"),
    [
        ("linux", [], "", 1),
        ("linux", ["--if-possible"], "", 0),
        ("linux", ["--if-possible"], "true", 1),
        ("darwin", [], "", 0),
        ("darwin", ["--if-possible"], "true", 1),
    ],
)
def test_evidence_is_never_left_out_silently(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    system: str,
    arguments: list[str],
    ci: str,
    status: int,
) -> None:
    monkeypatch.setattr(command.sys, "platform", system)
    monkeypatch.setattr(command.sys, "argv", ["constant_time", *arguments])
    monkeypatch.setattr(command.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(command.shutil, "which", lambda _: None)
    monkeypatch.setenv("CI", ci)
    assert command.main() == status
    assert "No evidence on constant time: it " in capsys.readouterr().err


COUNTS = """\
version: 1
desc: Trigger: Client Request: {label}

positions: instr
events: Ir

ob=/lib/caller.so
fl=???
fn=caller
0x10 3
cob=/lib/userdp.so
cfn=userdp_ct_kernel
calls=2 0x100
0x14 26

ob=/lib/userdp.so
fl=???
fn=userdp_ct_kernel
0x100 {first}
0x104 {second}
cfn=0x0000000000000200
calls=2 0x200
0x108 10
fi=inlined.rs
0x10c 6

fn=0x0000000000000200
0x200 10
"""


def counted(directory: Path, label: str, first: int, second: int) -> None:
    (directory / f"counts.{label}").write_text(COUNTS.format(label=label, first=first, second=second))


def test_counts_are_read_by_function_with_what_is_called(tmp_path: Path) -> None:
    counted(tmp_path, "run", 4, 6)
    (tmp_path / "counts.end").write_text("version: 1\n")  # written when the program ends, without a label
    runs = read_counts(tmp_path, "counts.*")
    assert set(runs) == {"run"}
    kernel = runs["run"]["userdp_ct_kernel"]
    assert (kernel.calls, kernel.instructions, kernel.file) == (2, 26, "/lib/userdp.so")
    assert kernel.each == {"0x100": 4, "0x104": 6, "0x10c": 6}
    assert reached_from("userdp_ct_kernel", runs["run"], "/lib/userdp.so") == {0x100, 0x104, 0x10C, 0x200}
    assert reached_from("caller", runs["run"], "/lib/caller.so") == {0x10}


def test_counts_differ_when_an_instruction_takes_the_place_of_another(tmp_path: Path) -> None:
    for label, first, second in [("a", 4, 6), ("b", 5, 5), ("c", 4, 6)]:
        counted(tmp_path, label, first, second)
    a, b, c = (run["userdp_ct_kernel"] for _, run in sorted(read_counts(tmp_path, "counts.*").items()))
    assert a.instructions == b.instructions
    assert not all_equal([a, b])
    assert all_equal([a, c])


def test_divisions_and_floats_are_forbidden() -> None:
    code = ["add %rax,%rbx", "divq (%rdi)", "mulsd %xmm0,%xmm1", "idiv %ecx", "movaps %xmm0,%xmm1", "jne 12", "jmp 12"]
    code += ["fld1", "vdivpd %ymm0,%ymm1,%ymm2", "paddd %xmm0,%xmm1", "cvttsd2si %xmm0,%rax", "cmovb %rax,%rbx"]
    listing = dict(enumerate(code))
    assert [int(line.split(" at ")[1], 16) for line in forbidden_in(listing, range(len(code)))] == [1, 2, 3, 7, 8, 10]
    assert branches_of(listing, range(len(code))) == 1


def test_a_single_draw_is_reported_for_its_conversion_only() -> None:
    (case,) = (case for case in CASES if case.name == "ExponentialMechanism.sample, one draw")
    run = {"marked": case.secret_bytes, "draws": 1, "secret_draws": 1, "equal": True, "errors_of_conversion": 2}
    assert not wrong_in(run | {"errors": 2}, case)
    assert wrong_in(run | {"errors": 3}, case) == ["errors is 3, not 2"]
    assert wrong_in(run | {"errors": 0, "errors_of_conversion": 0}, case)


def test_what_is_revealed_is_reported_as_often_as_it_is_decided() -> None:
    (case,) = (case for case in CASES if case.name == "UniformInteger.sample, a word rejected")
    assert case.revealed == 9  # decisions of eight draws, one of which is made again
    run = {"marked": case.secret_bytes, "draws": 8, "secret_draws": 8, "equal": True, "errors_of_conversion": 0}
    assert not wrong_in(run | {"errors": 9}, case)
    for errors in (0, 8, 10):
        assert wrong_in(run | {"errors": errors}, case) == [f"errors is {errors}, not 9"]


LOG = """\
==7== Memcheck, a memory error detector
**7** --- UniformInteger.sample: bits 1
==7== Conditional jump or move depends on uninitialised value(s)
==7==    at 0x5E3: userdp_revealed_uniform_rejection (in /lib/_core.abi3.so)
==7==    by 0x5E4: ??? (in /lib/_core.abi3.so)
==7==
{more}
**7** --- ExponentialMechanism.sample, one draw: any, bits 0
==7== Conditional jump or move depends on uninitialised value(s)
==7==    at 0x4F1: PyLong_FromUnsignedLongLong (in /usr/bin/python3)
"""


@pytest.mark.parametrize(
    ("about", "function"),
    [
        ("Use of uninitialised value of size 8", "userdp_revealed_uniform_rejection"),
        ("Conditional jump or move depends on uninitialised value(s)", "userdp_revealed_coin_tie"),
        ("Conditional jump or move depends on uninitialised value(s)", "userdp_ct_uniform"),
        ("Conditional jump or move depends on uninitialised value(s)", "???"),
    ],
)
def test_reports_are_of_branches_that_reveal(about: str, function: str) -> None:
    assert not out_of_place(LOG.format(more=""), CASES)
    (found,) = out_of_place(LOG.format(more=f"==7== {about}\n==7==    at 0x6: {function} (in /lib/x.so)\n"), CASES)
    assert str(found) == f"UniformInteger.sample: in {function}: {about}"


def test_welch_t() -> None:
    a, b = np.array([1, 2, 3]), np.array([2, 4, 6])  # means 2 and 4, variances 1 and 4
    assert math.isclose(welch_t(a, b), -2 / math.sqrt(1 / 3 + 4 / 3))
    assert welch_t(a, a) == 0
