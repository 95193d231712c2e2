"""The command `table`: questions, public lists of keys, files, and errors that name the option."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from userdp.cli import main

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

SCHEMA = {
    "town": {"type": "key", "kind": "str"},
    "size": {"type": "category", "values": ["s", "m", 3]},
    "year": {"type": "integer", "low": 2000, "high": 2030},
    "member": {"type": "boolean"},
    "day": {"type": "key", "kind": "date"},
    "time": {"type": "key", "kind": "datetime"},
    "paid": {"type": "number", "low": 0, "high": 10},
}
Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run the command on 600 users, of whom a third is in each of three towns, at an epsilon that hides little."""
    import numpy as np
    import pandas as pd

    who = np.arange(600)
    frame = pd.DataFrame(
        {
            "who": who,
            "town": np.array(["north", "south", "a, b"])[who % 3],
            "size": np.array(["s", "m"])[who % 2],
            "year": 2019 + who % 2,
            "member": who % 2 == 0,
            "day": np.array(["2024-01-30", "2024-01-31"], dtype="M8[D]").astype("M8[ms]")[who % 2],
            "time": np.array(["2024-01-30T09:30", "2024-01-31T10:00"], dtype="M8[us]")[who % 2],
            "paid": who % 10,
        }
    )
    monkeypatch.chdir(tmp_path)
    frame.to_parquet("people.parquet")
    Path("schema.json").write_text(json.dumps(SCHEMA))

    def run(*words: str, epsilon: str = "60", file: str = "people.parquet") -> tuple[int, str, str]:
        code = main(["table", file, "--user", "who", "--schema", "schema.json", "--epsilon", epsilon, *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def counts(ask: Ask, *words: str) -> dict[tuple[Any, ...], int]:
    """The counts of users by key: each is within 5 but for a probability below e**-30."""
    code, out, err = ask(*words, "--max-keys", "1", "--json", "n=count_users")
    assert (code, err) == (0, "")
    columns = json.loads(out)["columns"]
    names = [name for name in columns if name not in ("n", "bounded")]
    columns = {name: columns[name] for name in (*names, "n")}
    return {key: count for *key_, count in zip(*columns.values(), strict=True) for key in [tuple(key_)] if names}


def near(found: dict[tuple[Any, ...], int], wanted: dict[tuple[Any, ...], int]) -> None:
    assert list(found) == list(wanted)
    assert all(abs(found[key] - count) <= 5 for key, count in wanted.items())


def test_lists(ask: Ask) -> None:
    """All keys are in the answer, also those that nobody has, in the order of the list; commas go in quotes."""
    near(
        counts(ask, "--group-by", "town", "--keys", 'south, nowhere,"a, b"'),
        {("south",): 200, ("nowhere",): 0, ("a, b",): 200},
    )
    near(counts(ask, "--group-by", "year", "--keys", "2020,2025"), {(2020,): 300, (2025,): 0})
    near(counts(ask, "--group-by", "size", "--keys", "3,m"), {(3,): 0, ("m",): 300})
    near(counts(ask, "--group-by", "member", "--keys", "true"), {(1,): 300})
    near(counts(ask, "--group-by", "day", "--keys", "2024-01-31"), {("2024-01-31",): 300})
    near(counts(ask, "--group-by", "time", "--keys", "2024-01-30 09:30"), {("2024-01-30 09:30:00",): 300})
    near(
        counts(ask, "--group-by", "town, year", "--keys", "north,south", "--keys", "2019,2021"),
        {("north", 2019): 100, ("north", 2021): 0, ("south", 2019): 100, ("south", 2021): 0},
    )


FILES = {
    "keys.csv": "year,town\n2019,north\n\n2020,b\n2021,a\n",
    "crlf.csv": "\ufefftown,year\r\nnorth,2019\r\nb,2020\r\na,2021\r\n",
    "sep.csv": 'sep=;\r\nyear;town\r\n2019;north\r\n2020;"b"\r\n2021;a\r\n',
    "keys.json": '[["north", 2019], ["b", 2020], ["a", 2021]]',
    "objects.json": '[{"year": 2019, "town": "north"}, {"town": "b", "year": "2020"}, {"town": "a", "year": 2021}]',
}


@pytest.mark.parametrize("name", [*FILES, "keys.parquet"])
def test_files_of_keys_of_two_columns(ask: Ask, name: str) -> None:
    if name in FILES:
        Path(name).write_text(FILES[name], encoding="utf-8", newline="")
    else:
        import pandas as pd

        pd.DataFrame({"year": [2019, 2020, 2021], "town": ["north", "b", "a"]}).to_parquet(name)
    near(
        counts(ask, "--group-by", "town,year", "--keys", name),
        {("north", 2019): 100, ("b", 2020): 0, ("a", 2021): 0},
    )


def test_files_of_keys_of_one_column(ask: Ask) -> None:
    for name, text in {
        "towns.txt": "a, b\n\nnorth\n\n",
        "towns.json": '\ufeff["a, b", "north"]',
        "towns.csv": 'town\n"a, b"\nnorth\n',
    }.items():
        Path(name).write_text(text)
        near(counts(ask, "--group-by", "town", "--keys", name), {("a, b",): 200, ("north",): 200})
    Path("days.json").write_text('["2024-01-31"]')
    near(counts(ask, "--group-by", "day", "--keys", "days.json"), {("2024-01-31",): 300})
    import pandas as pd

    pd.DataFrame({"day": pd.to_datetime(["2024-01-31"])}).to_parquet("days.parquet")
    near(counts(ask, "--group-by", "day", "--keys", "days.parquet"), {("2024-01-31",): 300})


def test_other_groups_from_a_threshold_on(ask: Ask) -> None:
    """The listed one first, and then those of 200 users; a threshold is far below 100."""
    words = ("--group-by", "town", "--keys", "nowhere", "--others", "--delta", "1e-6")
    near(counts(ask, *words), {("nowhere",): 0, ("a, b",): 200, ("north",): 200, ("south",): 200})


def test_answers_may_stand_anywhere(ask: Ask) -> None:
    """Before, between and after options; the shares of a CDF are columns of the file that is written."""
    code, out, err = ask("a=count_users", "--output", "out.csv", "b=cdf(paid, [4, 20])", "--group-by", "size")
    assert (code, err) == (0, "")
    lines = Path("out.csv").read_text().splitlines()
    assert lines[0] == "size,a,b_4,b_20"
    assert len(lines) == 4
    assert all(line.endswith(",1.0") for line in lines[1:3])
    assert "b_20" in out


def test_a_plan_reads_nothing_and_has_the_list(ask: Ask) -> None:
    code, out, _ = ask("--group-by", "town", "--keys", "x,y", "--plan", "n=count_users", epsilon="1")
    assert code == 0
    assert "2, all of them are in the answer" in out


def test_in_a_process_of_its_own(ask: Ask) -> None:
    """As a stranger would call it."""
    del ask
    words = (
        "people.parquet n=count_users --user who --schema schema.json --epsilon 50 --group-by town --keys north,east"
    )
    done = subprocess.run(
        [sys.executable, "-m", "userdp", "table", *words.split()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert re.search(r"north +(19[5-9]|20[0-5])\n +east +-?[0-5]\n", done.stdout)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--keys", "a"], "--keys goes with --group-by"),
        (["--others"], "--others goes with --group-by"),
        (["--max-keys", "2"], "--max-keys goes with --group-by"),
        (["--group-by", "town", "--others", "--max-keys", "1"], "--others is for keys"),
        (["--group-by", "street", "--keys", "a"], "--group-by: 'street' is no column"),
        (["--group-by", "town", "--keys", "a,a"], "--keys: values must be distinct; got 'a' twice"),
        (["--group-by", "town", "--keys", "a,,b"], "--keys: 'a,,b' is no list"),
        (["--group-by", "town", "--keys", '"a'], "is no list of values"),
        (["--group-by", "town", "--keys", "a\nb"], "is no list of values"),
        (["--group-by", "town", "--keys", "b" * 200_000], "is no list of values"),
        (["--group-by", "town", "--keys", "none_at_all.txt"], "--keys: values must be from 1"),
        (["--group-by", "town", "--keys", "twice.txt"], "('b',) twice"),
        (["--group-by", "town", "--keys", "latin.csv"], "--keys: latin.csv: the row of column names is not utf-8"),
        (["--group-by", "town", "--keys", ""], "--keys: '' is no list"),
        (["--group-by", "town", "--keys", "a", "--keys", "b"], "that is 1, or one file"),
        (["--group-by", "town,year", "--keys", "a"], "that is 2, or one file"),
        (["--group-by", "town", "--keys", "a.txt", "--keys", "b"], "give one file"),
        (["--group-by", "town", "--keys", "none.txt"], "--keys: none.txt: No such file"),
        (
            ["--group-by", "year", "--keys", "2019,late"],
            "--keys: 'late' is not read as an integer, which the schema says of 'year'",
        ),
        (["--group-by", "size", "--keys", "xl"], "--keys: 'xl' is not read as a category of"),
        (["--group-by", "member", "--keys", "maybe"], "--keys: 'maybe' is not read as a boolean"),
        (["--group-by", "day", "--keys", "31.1.2024"], "--keys: '31.1.2024' is not read as a date"),
        (["--group-by", "time", "--keys", "noon"], "--keys: 'noon' is not read as a timestamp"),
        (["--group-by", "paid", "--keys", "1,2"], "is of kind 'number'"),
        (["--group-by", "town", "--keys", "bad.json"], "--keys: bad.json is not JSON"),
        (["--group-by", "town", "--keys", "deep.json"], "--keys: deep.json is not JSON"),
        (["--group-by", "town", "--keys", "map.json"], "--keys: map.json: expected a JSON list"),
        (["--group-by", "town", "--keys", "mixed.json"], "--keys: mixed.json, key 2: 5 is no text"),
        (["--group-by", "year", "--keys", "halves.json"], "--keys: halves.json, key 1: 0.5 is not read as an integer"),
        (["--group-by", "town,year", "--keys", "mixed.json"], "key 1: expected a value for each of 2 columns; got 1"),
        (["--group-by", "town", "--keys", "wrong.csv"], "--keys: wrong.csv: the columns must be those of --group-by"),
        (["--group-by", "town,year", "--keys", "wrong.csv"], "wrong.csv, line 3: expected 2 values; got 1"),
        (["--group-by", "town", "--keys", "latin.txt"], "--keys: latin.txt is not UTF-8"),
        (
            ["--group-by", "town", "--keys", "open.csv"],
            "--keys: open.csv, line 3: a quote is not closed as it should be",
        ),
        (["--group-by", "town", "--keys", "more.csv"], "--keys: more.csv, line 2: expected 1 values; got more"),
        (["--group-by", "town", "--keys", "twice.csv"], "--keys: twice.csv has several columns of one name, 'town'"),
        (["--group-by", "town", "--keys", "cell.csv"], "--keys: cell.csv, line 3 is not utf-8"),
        (["--group-by", "town", "--keys", "bad.parquet"], "--keys: "),
        (["--group-by", "town", "--keys", "empty.csv"], "--keys: "),
    ],
)
def test_errors_name_the_option(ask: Ask, words: list[str], message: str) -> None:
    for name, text in {
        "bad.json": "[1,",
        "deep.json": "[" * 100_000,
        "map.json": '{"town": ["a"]}',
        "mixed.json": '["a", 5]',
        "halves.json": "[0.5]",
        "wrong.csv": "town,year\na,2019\nb\n",
        "bad.parquet": "no table",
        "empty.csv": "town\n",
        "none_at_all.txt": "",
        "twice.txt": "a\nb\nb\n",
        "open.csv": 'town\na\n"b\nc\n',
        "more.csv": "town\na,b\n",
        "twice.csv": "town,town\na,b\n",
    }.items():
        Path(name).write_text(text)
    for name in ("latin.txt", "latin.csv"):
        Path(name).write_bytes(b"\xe4\n")
    Path("cell.csv").write_bytes(b"town\na\n\xe4\n")
    code, out, err = ask(*words, "n=count_users")
    assert (code, out) == (2, "")
    assert err.startswith("userdp: error: --")
    assert message in err


def test_a_category_of_a_number_and_the_same_text(ask: Ask) -> None:
    """They are one value, however a list or a file of keys has it."""
    schema = {**SCHEMA, "size": {"type": "category", "values": [3, "3", "s"]}}
    Path("schema.json").write_text(json.dumps(schema))
    code, _, err = ask("--group-by", "size", "--keys", "3", "n=count_users")
    assert code == 2
    assert "3 and '3' are one value" in err
    Path("schema.json").write_text(json.dumps(SCHEMA))
    Path("sizes.json").write_text('["03", "m"]')
    near(counts(ask, "--group-by", "size", "--keys", "sizes.json"), {(3,): 0, ("m",): 300})


@pytest.mark.parametrize(
    "where",
    [
        "3 in [1, 2]",
        "1.5 not in [1]",
        "[] in ['a']",
        "3 in {[]}",
        "not " * 2000 + "member",
        "not " * 400 + "member",
        "member" + "[0]" * 2500,
        "year < " + "-" * 5000 + "1",
        "(" * 150 + "member" + ")" * 150 + " and not" * 60 + " member",
        "year in " + "[" * 90 + "]" * 90,
    ],
    ids=lambda where: where[:20],
)
def test_conditions_that_no_person_writes(ask: Ask, where: str) -> None:
    code, out, err = ask("--where", where, "n=count_users", "--plan")
    assert (code, out == "") in ((0, False), (2, True))
    assert code == 0 or err.startswith("userdp: error: --where")
    code, out, err = ask("--plan", f"n=quantile(paid, {where})")
    assert (code, out) == (2, "")
    assert len(err) < 20_000


def test_a_constant_may_be_asked_for(ask: Ask) -> None:
    """`3 in [...]` is a condition as `1 < 2` is one, the same for all rows."""
    for where, expected in (("3 in [1, 3]", 600), ("3 not in [1, 3]", 0)):
        code, out, _ = ask("--where", where, "--json", "n=count_users")
        assert code == 0
        assert abs(json.loads(out)["columns"]["n"][0] - expected) <= 5


@pytest.mark.parametrize("kind", [[], {}, [["str"]], 3, None, "text"])
def test_kinds_of_keys_that_are_none(ask: Ask, kind: Any) -> None:
    Path("schema.json").write_text(json.dumps({"town": {"type": "key", "kind": kind}}))
    code, out, err = ask("n=count_users")
    assert (code, out) == (2, "")
    assert "schema.json: 'town': kind must be" in err


@pytest.mark.parametrize(
    "text", ["x = " + "[" * 10_000, "x = " + "9" * 5000, "x = {}", "x.type = []", "\0", "x.type = 'key'"]
)
def test_schemas_in_toml_that_nobody_writes(ask: Ask, text: str) -> None:
    pytest.importorskip("tomllib")
    Path("schema.toml").write_text(text)
    code, out, err = ask("n=count_users", "--schema", "schema.toml")
    assert (code, out) == (2, "")
    assert "schema.toml" in err


def test_words_that_are_no_question(ask: Ask) -> None:
    for words, message in (
        ([], "nothing is asked for"),
        (["n=count_users", "--bogus"], "--bogus"),
        (["n"], "name=aggregate"),
        (["n=median(paid)"], "the aggregates are"),
        (["n=cdf(paid, 3)"], "edges must be"),
        (["n=count_users", "--n-users", "3"], "--n-users goes with --plan"),
        (["n=count_users", "--output", "x.txt"], "--output: x.txt: the ending must be"),
        (["n=count_users", "--output", "no/x.csv"], "--output: no/x.csv: there is no such directory"),
        (["n=count_users", "--card", "no/x.md"], "--card: no/x.md: there is no such directory"),
    ):
        code, out, err = ask(*words)
        assert (code, out) == (2, "")
        assert message in err


HEADER = "who,town,size,year,member,day,time,paid"


def of_csv(ask: Ask, lines: list[str], *words: str) -> dict[str, list[Any]]:
    """The columns of an answer about a .csv file, at an epsilon that hides nothing."""
    Path("people.csv").write_bytes("\n".join([HEADER, *lines, ""]).encode("latin-1"))
    code, out, err = ask(*words, "--json", epsilon="1e6", file="people.csv")
    assert (code, err) == (0, "")
    found: dict[str, list[Any]] = json.loads(out)["columns"]
    return found


# Strict, so that whoever makes sessions read columns of texts must take the mark away.
GOOD = "1,north,s,2019,true,2024-01-31,2024-01-31T10:00,5"


@pytest.mark.parametrize(
    "line",
    [
        "",
        '2,"north,s,2019,true,2024-01-31,2024-01-31 10:00,5',
        '2,"north"s,2019,true,2024-01-31,2024-01-31 10:00,5',
        "2",
        "2,,,,,,,",
        "2,north,s,late,maybe,31.1.2024,noon,much,and,more",
        "2,north,s,2019.5,2,2024-02-30,24:61,nan",
        "2,\xff,s,1e400,yes,0,0,inf",
        '2,"no""rth",s,2019,true,2024-01-31,2024-01-31 10:00:00.5,5',
        "\xff\xfe,north,s,2019,true,2024-01-31,2024-01-31 10:00,5",
        ",north,s,2019,true,2024-01-31,2024-01-31 10:00,5",
    ],
)
@pytest.mark.parametrize("others", [0, 150])
def test_no_row_of_a_csv_file_decides_whether_it_can_be_read(ask: Ask, line: str, others: int) -> None:
    """First, last and alone; every column of the schema is asked for."""
    rest = [GOOD.replace("1,", f"{100 + place},", 1) for place in range(others)]
    for lines in ([line, *rest], [*rest, line]):
        for column in ("town", "size", "year", "member", "day", "time"):
            listed = {"town": "north", "year": "2019", "day": "2024-01-31", "time": "2024-01-31 10:00"}
            given = ["--keys", listed[column]] if column in listed else []
            found = of_csv(ask, lines, "n=count_users", "--group-by", column, *given)
            assert max(found["n"]) in (others, others + 1)
        of_csv(ask, lines, "a=mean(paid)", "b=cdf(paid, [2, 4])", "c=sum(paid, max_total=10)")


def test_a_csv_file_is_read_as_the_schema_says(ask: Ask) -> None:
    """By hand: four users, one of whom is written in three ways."""
    lines = [
        "7,a,3,2019,TRUE,2024-01-31,2024-01-31T10:00,1",
        "007,a,3,2020.0,False,2024-01-31 09:30,2024-01-31 10:00:00.000,2.5",
        " 7.0 ,b,3,2020, 1 ,2024-01-31,2024-01-31 10:00:00,x",
        "8,03,s,2020,0,2024-01-30,2024-01-31,4",
        "x7,3,m,+2020,no,2024-01-31 ,2024-01-31 10:00:01,100",
        "70,3,m,,,,,",
    ]
    for words, wanted in (
        (["n=count_users"], [4]),
        (["n=count_users", "--group-by", "town", "--keys", "a,b,3"], [1, 1, 3]),
        (["n=count_users", "--group-by", "year", "--keys", "2019,2020"], [1, 3]),
        (["n=count_rows(9)", "--group-by", "year", "--keys", "2019,2020"], [1, 4]),
        (["n=count_users", "--group-by", "member"], [3, 1]),
        (["n=count_users", "--group-by", "day", "--keys", "2024-01-30,2024-01-31"], [1, 2]),
        (["n=count_users", "--group-by", "time", "--keys", "2024-01-31 10:00,2024-01-31"], [1, 1]),
        (["n=sum(paid, max_total=10)"], [17.5]),
    ):
        assert of_csv(ask, lines, *words)["n"] == pytest.approx(wanted, abs=0.01)


def test_a_csv_file_is_read_as_the_options_say(ask: Ask) -> None:
    """In a dialect with all options, packed, and on standard input."""
    text = "7;a;3;2019;1;2024-01-31;;1,5\r\n8;NULL;s;2019;1;2024-01-31;;1.000,5\r\n9;\\N;s;2019;1;2024-01-31;;2\r\n"
    Path("people.csv.gz").write_bytes(gzip.compress(text.encode("utf-16")))
    given = ("--separator", ";", "--decimal", ",", "--thousands", ".", "--encoding", "utf-16", "--missing", "NULL")
    given += ("--escape", "\\", "--quote", "line", "--names", HEADER)
    for words, wanted in (
        (["n=sum(paid, max_total=10)"], [13.5]),
        (["n=count_users", "--group-by", "town", "--keys", "a,b"], [1, 0]),
    ):
        code, out, err = ask(*words, *given, "--json", epsilon="1e6", file="people.csv.gz")
        assert (code, err) == (0, "")
        assert json.loads(out)["columns"]["n"] == pytest.approx(wanted, abs=0.01)


def test_options_of_csv_files_go_with_them_and_may_be_given_once(ask: Ask) -> None:
    for words, message in (
        (
            ["--separator", ";"],
            "--separator goes with files of CSV (.csv, .tsv or .txt, perhaps with .gz, or - for standard input)",
        ),
        (["--names", "a,b"], "--names goes with files of CSV"),
        (["--quote", "rfc", "--quote", "line"], "--quote: may be given once"),
        (["--quote", "single"], "--quote: invalid choice"),
        (["--missing", "NA,,"], "--missing: 'NA,,' is no list"),
    ):
        code, out, err = ask("n=count_users", *words)
        assert (code, out) == (2, "")
        assert message in err
    Path("people.csv").write_text("who,who\n")
    for words, message in (
        ([], "people.csv has several columns of one name, 'who'; rename them"),
        (["--separator", ";;"], "--separator must be one ASCII character"),
        (["--encoding", "utf-7"], "--encoding must be one in which no cell changes"),
        (["--thousands", "."], "--thousands must differ from decimal"),
        (["--names", "a, a"], "--names must be distinct"),
        (["--missing", "\u00a0"], "--missing must be texts that are not blank"),
    ):
        code, out, err = ask("n=count_users", *words, file="people.csv")
        assert (code, out) == (2, "")
        assert message in err


def test_lines_that_are_lost_are_shown_to_the_owner(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = b'id\tx\n1\t2\n2\t"3\n4\t5\t6\n4\t5\t6\n7\n'
    path = tmp_path / "people.csv"
    path.write_bytes(data)
    assert main(["csv-check", str(path), "--separator", "tab"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Diagnostic, NOT private")
    for line in ("columns: id, x", "rows: 2", "are missing: 1", "should be: 1: 3", "than names: 2: 4-5"):
        assert f"{line}\n" in out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main(["csv-check", "-", "--separator", "\\t", "--quote", "none", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "quote='none'" in found.pop("dialect")
    lines = {"rows": 3, "short": 1, "malformed": [], "long": [4, 5]}
    assert found == {"schema_version": 1, "private": False, "columns": ["id", "x"], **lines}
    for words, message in (
        (["people.xls"], "people.xls: the ending must be .csv"),
        ([str(tmp_path / "none.csv")], "none.csv"),
        ([str(path), "--escape", "^"], "--escape must be one of None"),
    ):
        assert main(["csv-check", *words]) == 2
        assert message in capsys.readouterr().err


def test_what_is_no_table(ask: Ask) -> None:
    Path("folder.csv").mkdir()
    Path("none.csv").write_text("")
    Path("bad.parquet").write_text("no table")
    for file, message in (
        ("folder.csv", "folder.csv is a directory"),
        ("none.csv", "none.csv: there is no row of column names"),
        ("bad.parquet", "bad.parquet is no .parquet file"),
    ):
        code, out, err = ask("n=count_users", file=file)
        assert (code, out) == (2, "")
        assert message in err
    for content, message in (
        (b'{"\xe4": 1}', "--schema: schema.json is not UTF-8"),
        (b"[" * 100_000, "schema.json is not JSON"),
    ):
        Path("schema.json").write_bytes(content)
        code, out, err = ask("n=count_users")
        assert (code, out) == (2, "")
        assert message in err


def test_no_release_is_lost(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can be seen before is refused before; where writing fails later the numbers are printed."""
    Path("folder.md").mkdir()
    code, out, err = ask("n=count_users", "--card", "folder.md")
    assert (code, out) == (2, "")
    assert "--card: folder.md is a directory" in err
    words = ("n=count_users", "--group-by", "town", "--keys", "north,south", "--json")

    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("pandas.DataFrame.to_parquet", full)
    code, out, err = ask(*words, "--output", "numbers.parquet", "--card", "card.md")
    assert code == 2
    assert "numbers.parquet was not written" in err
    assert json.loads(out)["columns"]["n"][0] == pytest.approx(200, abs=5)
    assert "north" in Path("card.md").read_text(encoding="utf-8")
