"""Sentences of two pages that say what is refused, compared or established have tests that are named after them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORDS = re.compile(r"\b(refused|compared|compares|established)\b", re.IGNORECASE)

TESTED = {
    "audit_anything.md": {
        "compares every two tables": "audit/test_sensitivity.py::"
        "test_every_two_tables_that_differ_in_one_user_are_compared",
        "a function that draws is refused": "audit/test_sensitivity.py::test_a_function_that_draws_is_refused",
        "its input is compared afterwards": "audit/test_sensitivity.py::test_the_input_is_compared_after_the_call",
        "with the table that shows it": "audit/test_sensitivity.py::"
        "test_functions_that_draw_remember_write_raise_or_hang_are_refused_with_the_table",
        "are found so, and the function is refused": "audit/test_fresh_processes.py::"
        "test_what_a_call_leaves_behind_is_found_and_refused",
        "The order of a set": "audit/test_sensitivity.py::test_the_order_of_a_set_is_not_compared",
        "raises in every run of the training": "audit/test_samples.py::"
        "test_a_mechanism_that_raises_in_every_run_of_the_training_is_refused",
        "declares that the order of users does not matter": "audit/test_positions.py::"
        "test_a_declared_symmetry_is_tried_in_other_orders_and_refused",
    },
    "certificates.md": {
        "--coq": "checker/test_files_for_coq.py::test_a_file_is_compared_byte_for_byte",
        "The comparison refuses all of them": "checker/test_files_for_coq.py::"
        "test_what_coq_accepts_is_refused_by_the_comparison",
        "Coq refuses the eight": "checker/test_files_for_coq.py::test_what_coq_accepts_is_refused_by_the_comparison",
        "every weight with the power": "checker/test_files_for_coq.py::"
        "test_coq_compares_every_weight_with_the_power_that_it_stands_for",
        "`pmf()` and the drawn bits": "mechanisms/test_exponential_mechanism.py::"
        "test_pmf_and_the_drawn_bits_are_compared",
        "4,096 gaps": "checker/test_checker_certificates.py::"
        "test_a_selection_of_more_than_4096_gaps_or_monotone_is_refused",
        "compares the verdicts": "checker/test_checker_certificates.py::"
        "test_verdicts_of_both_checkers_and_of_the_constructor_are_compared",
        "compares the constructor": "checker/test_checker_certificates.py::"
        "test_verdicts_of_both_checkers_and_of_the_constructor_are_compared",
    },
}
"""Of each page, by words that its sentence has: the test."""


def sentences(page: str) -> Iterator[str]:
    """The sentences of a page, also of lists and tables; blocks of code are none."""
    text = re.sub(r"^```.*?^```", "", (ROOT / "docs" / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n|\n(?=\* |\d+\. |\|)", text):
        yield from re.split(r"(?<=[.!?])\s+(?=[A-Z`*])", " ".join(block.split()))


@pytest.mark.parametrize("page", TESTED)
def test_sentences_about_what_is_refused_or_compared_have_tests(page: str) -> None:
    said = [sentence for sentence in sentences(page) if WORDS.search(sentence)]
    assert len(said) > 5
    assert not [sentence for sentence in said if not any(words in sentence for words in TESTED[page])]


@pytest.mark.parametrize("test", sorted({test for tests in TESTED.values() for test in tests.values()}))
def test_tests_of_sentences_exist(test: str) -> None:
    path, _, name = test.partition("::")
    module = ast.parse((ROOT / "tests" / path).read_text())
    assert name in {node.name for node in module.body if isinstance(node, ast.FunctionDef)}


def test_a_sentence_without_a_test_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    for words in TESTED["audit_anything.md"]:
        fewer = {key: test for key, test in TESTED["audit_anything.md"].items() if key != words}
        monkeypatch.setitem(TESTED, "audit_anything.md", fewer)
        with pytest.raises(AssertionError):
            test_sentences_about_what_is_refused_or_compared_have_tests("audit_anything.md")
        monkeypatch.undo()
