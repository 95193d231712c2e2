"""The wage panel, against the file read another way and against published figures."""

import bz2
import csv
import importlib.util
import itertools
import subprocess
import sys
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from userdp.datasets import WagePanel, load_wage_panel


@pytest.fixture(scope="module")
def panel() -> WagePanel:
    return load_wage_panel()


@pytest.fixture(scope="module")
def rows() -> list[list[str]]:
    """The records as the csv module gives them, header first."""
    folder = importlib.util.find_spec("linearmodels").submodule_search_locations[0]
    with bz2.open(f"{folder}/datasets/wage_panel/wage_panel.csv.bz2", "rt", newline="") as file:
        return list(csv.reader(file))


def fake_linearmodels(monkeypatch, folder, lines):
    """Make `folder` look like an installed linearmodels whose wage panel has these lines."""
    target = folder / "datasets" / "wage_panel"
    target.mkdir(parents=True)
    with bz2.open(target / "wage_panel.csv.bz2", "wt", newline="") as file:
        csv.writer(file).writerows(lines)
    spec = SimpleNamespace(submodule_search_locations=[str(folder)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)


def test_is_the_published_balanced_panel(panel):
    assert len(panel.person_ids) == 545
    assert len(set(panel.person_ids)) == 545
    assert panel.years == (1980, 1981, 1982, 1983, 1984, 1985, 1986, 1987)


def test_published_means(panel):
    # Vella and Verbeek, table of sample means: 24.4 % of user-years unionised, 11.8 years of schooling,
    # 11.6 % black, 15.6 % Hispanic.
    assert round(float(panel.column("union").mean()), 3) == 0.244
    assert round(float(panel.column("educ").mean()), 1) == 11.8
    assert round(float(panel.column("black").mean()), 3) == 0.116
    assert round(float(panel.column("hisp").mean()), 3) == 0.156


def test_union_share_equals_a_count_over_the_raw_file(panel, rows):
    where = rows[0].index("union")
    count = sum(row[where] == "1" for row in rows[1:])
    assert Fraction(int(panel.column("union").sum()), panel.column("union").size) == Fraction(count, 545 * 8)


def test_every_cell_is_the_cell_of_the_raw_file(panel, rows):
    header = rows[0]
    assert set(header) - {"nr", "year"} == set(panel.names)
    row_of = {person: i for i, person in enumerate(panel.person_ids)}
    for row in rows[1:]:
        cells = dict(zip(header, row, strict=True))
        i, j = row_of[int(cells["nr"])], int(cells["year"]) - 1980
        for name in panel.names:
            assert panel.column(name)[i, j] == float(cells[name])


def test_users_are_plain_python_numbers_in_person_and_year_order(panel):
    union = panel.users("union")
    assert len(union) == 545
    assert {len(user) for user in union} == {8}
    assert {type(value) for user in union for value in user} == {int}
    assert {value for user in union for value in user} == {0, 1}
    assert {type(value) for user in panel.users("lwage") for value in user} == {float}
    assert np.array_equal(np.array(union), panel.column("union"))
    hash(union)


def test_what_cannot_change_within_a_person_does_not(panel):
    for name in ("black", "hisp", "educ"):
        assert all(len(set(user)) == 1 for user in panel.users(name))
    assert all(b - a == 1 for user in panel.users("exper") for a, b in itertools.pairwise(user))
    assert np.array_equal(panel.column("expersq"), panel.column("exper") ** 2)


def test_columns_are_read_only(panel):
    assert panel.column("union").dtype == np.int64
    assert panel.column("lwage").dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        panel.column("union")[0, 0] = 1
    with pytest.raises(AttributeError):
        panel.years = ()


def test_unknown_variable_names_the_known_ones(panel):
    with pytest.raises(KeyError, match=r"no variable 'wage'.*lwage"):
        panel.column("wage")
    with pytest.raises(KeyError, match="no variable 'nr'"):
        panel.users("nr")


def test_does_not_import_linearmodels():
    code = (
        "import sys, userdp.datasets as d; d.load_wage_panel();"
        "print(sorted({'linearmodels', 'pandas', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'userdp\[demo\]'"):
        load_wage_panel()


def test_package_without_the_file_says_what_to_install(monkeypatch, tmp_path):
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(ImportError, match=r"wage_panel.csv.bz2.*userdp\[demo\]"):
        load_wage_panel()


def test_record_order_does_not_matter(monkeypatch, tmp_path, panel, rows):
    fake_linearmodels(monkeypatch, tmp_path, [rows[0], *reversed(rows[1:])])
    assert load_wage_panel().users("lwage") == panel.users("lwage")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda body: body[1:], "4359 records of 545 users"),
        (lambda body: body[8:], "4352 records of 544 users"),
        (lambda body: [*body, body[0]], "two records for 1980"),
        (lambda body: [[body[0][0], "1979", *body[0][2:]], *body[1:]], r"years \[1979"),
    ],
    ids=["record missing", "user missing", "record twice", "wrong year"],
)
def test_unbalanced_panel_is_refused(monkeypatch, tmp_path, rows, change, message):
    fake_linearmodels(monkeypatch, tmp_path, [rows[0], *change(rows[1:])])
    with pytest.raises(ValueError, match=message):
        load_wage_panel()


def test_other_file_is_refused(monkeypatch, tmp_path):
    fake_linearmodels(monkeypatch, tmp_path, [["a", "b"], ["1", "2"]])
    with pytest.raises(ValueError, match="expected the columns nr and year"):
        load_wage_panel()
