"""What a check costs is counted before it is done, and verify loads the standard library alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import userdp
from support.expensive_reports import CRAFTED
from userdp.checker import check, values, work
from userdp.exact import LogRatio
from userdp.report import Certificate

LISTS = ("an event with one hash", "replaceable users with one hash", "90,000 replaceable users")


@pytest.mark.parametrize(
    "name",
    [
        "a composition of 411 bytes",
        "sum with 1,400 states",
        "multisets of users",
        "values with one hash",
        "45,000 statistics with one hash",
    ],
)
def test_what_costs_too_much_is_refused(name: str) -> None:
    try:
        report = check.read(json.dumps(CRAFTED[name]()))
    except values.Problem as problem:
        assert "takes too long" in str(problem)  # noqa: PT017
        return
    found = check.check(report)
    assert found.finding == "refused"
    assert "--seconds" in found.problems[0]


@pytest.mark.parametrize(
    "name", ["64 users of 64 rows", "outputs with one hash", "1,000 laws", "90,000 replaceable users"]
)
def test_what_is_crafted_has_its_form(name: str) -> None:
    """Otherwise it is refused before anything is done, and costs nothing."""
    content = CRAFTED[name]()
    try:
        check.read_form(content)
    except values.Problem as problem:
        assert "fields" not in str(problem)  # noqa: PT017
    made = content if isinstance(content, dict) else json.loads(content)
    assert made["format"].startswith("userdp-")


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_integers_make_no_sets(name: str) -> None:
    """Integers of one hash made sets of them take half a minute; nothing of that kind is left to be counted."""
    report = CRAFTED[name]()
    with work.at_most(1.0):
        found = check.check(report)
    assert found.finding == "wrong"


def test_a_long_fraction_is_not_read() -> None:
    with pytest.raises(values.Problem, match="over 131072 characters"):
        values.fraction("1/" + "3" * 800_000)


def test_zero_has_one_spelling() -> None:
    assert values.hex_float("0x0.0p+0") == 0
    with pytest.raises(values.Problem, match="another way to write"):
        values.hex_float("-0x0.0p+0")


def test_verify_without_site_packages(tmp_path: Path) -> None:
    made = Certificate.of_pair(["2/3", "1/3"], ["1/3", "2/3"], epsilon=LogRatio(2), delta=0)
    (tmp_path / "report.json").write_text(made.to_json())
    source = Path(userdp.__file__).parents[1]
    script = (
        f"import sys; sys.path.insert(0, {str(source)!r}); from userdp.cli import main; "
        f"code = main(['verify', {str(tmp_path / 'report.json')!r}]); "
        "assert not {m.split('.')[0] for m in sys.modules} - {*sys.stdlib_module_names, 'userdp', '__main__'}; "
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("established")
