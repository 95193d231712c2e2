"""``userdp plan``: every task once, pages that are whole, and words that make no sense."""

from __future__ import annotations

import html.parser
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from userdp.cli import main
from userdp.planning.problem import REQUIRED
from userdp.planning.tasks import TASKS

Captured = pytest.CaptureFixture[str]


def example(name: str) -> list[str]:
    """Words that ask a question of a task: for what is needed, the first value that it accepts."""
    task = TASKS[name]
    words = [name, "--epsilon", "1", "--delta", "1e-6", "--m", "4"]
    words += ["--alpha", str(min(task.largest_alpha, 1) / 2)] if task.has_alpha else []
    for each in task.parameters:
        if each.default is REQUIRED:
            words.append(f"{each.name}={next(value for value in VALUES if accepted(each, value))}")
    return [*words, *MORE.get(name, [])]


VALUES: list[Any] = [8, "0.5", 2, 100, 1000]
MORE = {"group_by": ["max_keys=2"]}
"""What a task asks for where something else is left out."""


def accepted(parameter: Any, value: Any) -> bool:
    try:
        parameter.read(value, parameter.name)
    except (TypeError, ValueError):
        return False
    return True


class Whole(html.parser.HTMLParser):
    """Checks that all elements are closed, and that nothing is fetched."""

    VOID = ("meta", "br", "line", "path", "circle")

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        assert not any(name in ("src", "onload") for name, _ in attrs)
        if tag not in self.VOID:
            self.opened.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        assert tag in self.VOID

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag


@pytest.mark.parametrize("name", TASKS)
def test_every_task_once(name: str, tmp_path: Path, capsys: Captured) -> None:
    page = tmp_path / "plan.html"
    code = main(["plan", *example(name), "--json", "--output", str(page)])
    said = json.loads(capsys.readouterr().out)
    assert code == (4 if said["needed"] is None else 0)
    assert said["task"] == name
    assert {"one record per person", "group privacy", "per-user clipping"} <= {way["method"] for way in said["ways"]}
    for way in said["ways"]:
        assert (way["users"] is None) == way["note"].startswith("not planned"), way
    text = page.read_text()
    whole = Whole()
    whole.feed(text)
    assert not whole.opened
    # No method is better than what is proved of all methods.
    assert all(said["lower_bound"] <= way["users"] for way in said["ways"] if said["lower_bound"] and way["users"])
    if said["needed"] is not None:
        assert f"{said['needed']:,} people are needed" in text
        assert said["needed"] == min(
            way["users"] for way in said["ways"] if way["users"] and way["method"] == said["method"]
        )
        # A change that halves the number, halves it.
        for change in said["halves"]:
            assert (
                change["users"] is None
                or change["what"] not in ("m", "epsilon", "alpha")
                or (change["users"] <= max(1, said["needed"] // 2))
            )
    assert "audited" not in text  # that is of other pages


def test_numbers_of_a_selection_by_hand(tmp_path: Path, capsys: Captured) -> None:
    """With one item of two and all users of one mind, the exponential weights of n users are 1 and e^(-n eps / 2)."""
    words = ["plan", "selection", "--epsilon", "1", "--alpha", "0.999999999", "--beta", "0.01", "n_items=2", "--json"]
    assert main(words) == 0
    ways = {way["method"]: way["users"] for way in json.loads(capsys.readouterr().out)["ways"]}
    # 1 / (1 + e^(n/2)) <= 0.01 from n = 2 ln 99 = 9.19 on.
    assert ways["central, exponential"] == math.ceil(2 * math.log(99))


def test_enough_people_or_not(tmp_path: Path, capsys: Captured) -> None:
    words = ["plan", "selection", "--epsilon", "1", "n_items=100"]
    assert main([*words, "--alpha", "0.5", "--json"]) == 0
    needed = json.loads(capsys.readouterr().out)["needed"]
    page = tmp_path / "plan.html"
    assert main([*words, "--alpha", "0.5", "--n-users", str(needed), "--output", str(page)]) == 0
    assert f"people there are: {needed}, enough" in capsys.readouterr().out
    assert f"{needed} people are enough" in page.read_text()
    assert main([*words, "--alpha", "0.5", "--n-users", str(needed - 1), "--output", str(page)]) == 1
    assert f"people there are: {needed - 1}, not enough" in capsys.readouterr().out
    assert f"{needed - 1} people are not enough" in page.read_text()
    # What fewer are enough for, they are enough for.
    fewer = ["--n-users", str(needed - 3), "--json"]
    assert main([*words, "--alpha", "0.5", *fewer]) == 1
    said = json.loads(capsys.readouterr().out)
    reached, method = said["reached"], said["method"]
    assert 0.5 < reached < 1
    assert main([*words, "--alpha", str(reached), *fewer]) == 0
    capsys.readouterr()
    # A tenth below, the method needs more; another one may not.
    main([*words, "--alpha", str(reached / 1.1), *fewer])
    ways = {way["method"]: way["users"] for way in json.loads(capsys.readouterr().out)["ways"]}
    assert ways[method] > needed - 3
    # Without alpha, for the accuracy that so many are enough for.
    assert main([*words, "--n-users", str(needed), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["enough"]
    assert said["sizes"]["alpha"] <= 0.5 * 1.1
    assert main([*words, "--n-users", "2"]) == 2
    assert "not enough for any alpha" in capsys.readouterr().err


def test_nothing_can_be_planned(tmp_path: Path, capsys: Captured) -> None:
    page = tmp_path / "plan.html"
    words = ["plan", "mean", "--epsilon", "1e-12", "--alpha", "1e-6", "--m", "3", "--output", str(page)]
    assert main(words) == 4
    said = capsys.readouterr().out
    assert "no method can be planned here" in said
    assert "more than 2**32 users" in said
    assert "No number of people can be given" in page.read_text()


def test_tasks_are_listed(capsys: Captured) -> None:
    assert main(["plan"]) == 0
    said = capsys.readouterr().out
    for task in TASKS.values():
        assert f"{task.name}: {task.question}" in said
    assert "dimension: columns (default 1)" in said
    assert "come from one distribution (default no)" in said
    assert main(["plan", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["tasks"]
    assert [each["task"] for each in listed] == list(TASKS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["median", "--epsilon", "1"], "task must be one of 'mean'"),
        (["mean", "--alpha", "0.1"], "--epsilon is needed"),
        (["mean", "--epsilon", "0", "--alpha", "0.1"], "--epsilon"),
        (["mean", "--epsilon", "-1", "--alpha", "0.1"], "--epsilon"),
        (["mean", "--epsilon", "1"], "--alpha is needed"),
        (["mean", "--epsilon", "1", "--alpha", "0"], "--alpha must be > 0"),
        (["mean", "--epsilon", "1", "--alpha", "nan"], "alpha"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "--m", "0"], "--m"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "--m", "9" * 30], "--m must be at most"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "--delta", "2"], "--delta"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "--beta", "1"], "--beta must be strictly between"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "--n-users", "1"], "--n-users"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "--n-users", str(2**33)], "--n-users must be at most"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "dimension"], "'dimension' is not name=value"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "=3"], "is not name=value"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "dimension=" + "9" * 400], "is not name=value"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "dimension=2", "dimension=3"], "dimension is given twice"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "dimension=two"], "dimension must be an int"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "dimension=-2"], "dimension must be at least 1"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "m=4"], "m is an option: --m"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "task=x"], "task is an option"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "colour=red"], "colour is no parameter of task 'mean'"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "homogeneous=maybe"], "homogeneous must be a bool"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "homogeneous=yes", "user_std=0.1"], "promise the same thing"),
        (["selection", "--epsilon", "1", "--alpha", "1.5", "n_items=4"], "--alpha must be below 1"),
        (["selection", "--epsilon", "1", "--alpha", "0.5"], "n_items is needed"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "--output", "/nowhere/at/all.html"], "--output"),
        (["mean", "--epsilon", "1", "--alpha", "0.1", "--output", "."], "is a directory"),
    ],
)
def test_what_is_refused(words: list[str], message: str, capsys: Captured) -> None:
    assert main(["plan", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("userdp: error:")
    assert message in printed.err


def test_a_page_escapes_what_it_shows(tmp_path: Path, capsys: Captured) -> None:
    page = tmp_path / "<b>&.html"
    assert main(["plan", "selection", "--epsilon", "ln(3)", "--alpha", "1/2", "n_items=3", "--output", str(page)]) == 0
    capsys.readouterr()
    text = page.read_text()
    assert "a factor of at most 3." in text  # e^ln(3)
    assert re.search(r"<svg role=\"img\" aria-label=\"People needed", text)
