"""Files of CSV: a slow reader made of regular expressions, rows of others, hostile files, encodings and options."""

from __future__ import annotations

import codecs
import csv
import encodings
import gzip
import io
import itertools
import pkgutil
import random
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from userdp import _core
from userdp.tables import read_csv
from userdp.tables.csv_files import BYTES_IN_PAIRS, SEVERAL_BYTES, SINGLE_BYTE, UNITS, CsvTable

ALPHABET = [b"a", b",", b'"', b"\n", b"\r", b"\\", b" ", b"\0"]
DIALECTS = list(itertools.product(("rfc", "line", "none"), (False, True)))
Rows = list[list[bytes]]


# --- the slow reader


def slow(data: bytes, quote: str, escape: bool, width: int) -> tuple[Rows, list[int]]:
    """The rows of a file without names, and the numbers of lines that are left out; in quadratic time."""
    rows, out, start = [], [], 0
    while start < len(data):
        line = data.count(b"\n", 0, start) + 1
        whole = re.compile(rb"[^\n]*\n?").match(data, start)
        assert whole is not None
        next_line = whole.end()
        if re.fullmatch(rb"\r?\n|\r", whole[0]) and (whole[0] != b"\r" or next_line == len(data)):
            start = next_line
            continue
        found = slow_row(data, start, quote, escape)
        if found is None:
            out.append(line)
            start = next_line
            continue
        cells, start = found
        if any(written for _, written in cells[width:]):
            out.append(line)
        else:
            rows.append([text for text, _ in cells[:width]] + [b""] * (width - len(cells)))
    return rows, out


def slow_row(data: bytes, start: int, quote: str, escape: bool) -> tuple[list[tuple[bytes, bytes]], int] | None:
    """The cells from a place on, as they are meant and as they are written, and where the next row begins."""
    within = {
        ("rfc", False): rb'[^"]|""',
        ("rfc", True): rb'[^"\\]|\\.|""',
        ("line", False): rb'[^"\n]|""',
        ("line", True): rb'[^"\\\n]|\\[^\n]|""',
    }.get((quote, escape))
    everywhere = escape and quote == "none"
    token = rb"[^,\n\\]|\\\r\n|\\.|\\\Z" if everywhere else rb"[^,\n]"
    cells = []
    while True:
        if within is not None and data[start : start + 1] == b'"':
            cell = re.compile(rb'"(?:' + within + rb')*"(?=,|\r?\n|\r?\Z)', re.DOTALL).match(data, start)
            if cell is None:
                return None
            pattern = rb'""|\\(.)' if escape else rb'""'
            text = re.sub(
                pattern, lambda one: one[1] if len(one.groups()) and one[1] else b'"', cell[0][1:-1], flags=re.S
            )
            end = re.compile(rb"\r?").match(data, cell.end()).end()  # type: ignore[union-attr]
            cells.append((text, cell[0]))
        else:
            cell = re.compile(rb"(?:" + token + rb")*", re.DOTALL).match(data, start)
            assert cell is not None
            end = cell.end()
            tokens = re.findall(token, cell[0], re.DOTALL)
            if tokens and tokens[-1] == b"\r" and data[end : end + 1] != b",":
                tokens.pop()
            written = b"".join(tokens)
            text = b"".join(one[1:] or one if everywhere and one[:1] == b"\\" else one for one in tokens)
            cells.append((b"" if escape and written == b"\\N" else text, written))
        if data[end : end + 1] != b",":
            return cells, end + 1
        start = end + 1


# --- the reader


def cells_of(content: Any, offsets: Any) -> list[bytes]:
    raw, places = content.tobytes(), offsets.tolist()
    return [raw[start:end] for start, end in itertools.pairwise(places)]


def of_core(data: bytes, quote: str, escape: bool, width: int, rows: int = 2**20) -> tuple[Rows, list[int]]:
    reader = _core.CsvReader(
        np.frombuffer(data, dtype=np.uint8), separator=44, quote=quote, escape=escape, missing=[], width=width
    )
    found: Rows = []
    out: list[int] = []
    while True:
        texts, count, left_out, lines = reader.batch(list(range(width)), rows, lines=True)
        assert left_out == (len(lines[2]), len(lines[3]))
        out += [*lines[2].tolist(), *lines[3].tolist()]
        if not count:
            return found, sorted(out)
        found += map(list, zip(*(cells_of(*text) for text in texts), strict=True))


def rows_of(table: CsvTable) -> list[list[str]]:
    """All cells, as texts; what is no UTF-8 is shown as Python does."""
    rows: list[list[str]] = []
    for batch in table.texts(table.names):
        columns = [cells_of(*text) for text in batch]
        rows += [[cell.decode("utf-8", "backslashreplace") for cell in row] for row in zip(*columns, strict=True)]
    return rows


def read(data: bytes | str, **options: Any) -> list[list[str]]:
    raw = data if isinstance(data, bytes) else data.encode()
    return rows_of(read_csv(io.BytesIO(raw), **options))


# --- both


def test_all_files_of_four_characters_are_read_as_by_the_slow_reader() -> None:
    for length in range(5):
        for characters in itertools.product(ALPHABET, repeat=length):
            data = b"".join(characters)
            for quote, escape in DIALECTS:
                assert of_core(data, quote, escape, 2) == slow(data, quote, escape, 2), (data, quote, escape)


def test_drawn_files_are_read_as_by_the_slow_reader() -> None:
    """Half of them of pieces that open and close quotes over lines; in batches of one row, of two, and of all."""
    random_ = random.Random(2028)
    pieces = [*ALPHABET, b'""', b'",', b',"', b"\r\n", b"\\N", b'"\n', b"a,a\n"]
    for number in range(4000):
        of = pieces if number % 2 else ALPHABET
        data = b"".join(random_.choices(of, k=random_.randrange(40)))
        quote, escape = DIALECTS[number % 6]
        width = random_.randrange(1, 4)
        wanted = slow(data, quote, escape, width)
        for rows in (1, 2, 2**20):
            assert of_core(data, quote, escape, width, rows) == wanted, (data, quote, escape, width)


def written(rows: Sequence[Sequence[str]], end: str) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator=end).writerows(rows)
    return file.getvalue().encode()


def test_rows_of_others_stay_whatever_one_user_has() -> None:
    """By rfc where a writer of that dialect wrote all rows, and by line where u's lines are any bytes."""
    random_ = random.Random(2029)
    texts = ["a", ",", '"', "\n", "\r\n", "\\", " ", "\0", "p1,9", '"\np1,9']
    for number in range(1500):
        end = ("\n", "\r\n")[number % 2]

        def cell() -> str:
            return "".join(random_.choices(texts, k=random_.randrange(4)))

        others = [[f"p{person}", cell(), cell()] for person in range(4)]
        hostile = [["u", cell(), cell()] for _ in range(random_.randrange(1, 3))]
        if number % 3:
            # Python before 3.11.9 writes a bare CR without quotes, which is stripped at the end of a line.
            data = written([["id", "x", "y"]], end) + b"".join(
                written([row], end) for row in random_.sample(others + hostile, len(others + hostile))
            )
            found = [row for row in read(data) if row[0] != "u"]
            wanted = read(written([["id", "x", "y"], *others], end))
            assert sorted(found) == sorted(wanted) == sorted(others), data
        else:
            plain = [f"p{person},{person},x{end}".encode() for person in range(4)]
            lines = [b"u," + bytes(random_.choices(b'a,"\r\\ \0\xff', k=9)) + b"\n" for _ in range(3)]
            place = random_.randrange(5)
            data = b"id,x,y\n" + b"".join([*plain[:place], *lines, *plain[place:]])
            found = [row for row in read(data, quote="line") if row[0] != "u"]
            assert found == [[f"p{person}", str(person), "x"] for person in range(4)], data


OTHERS = [[f"p{person}", str(person)] for person in range(6)]


@pytest.mark.parametrize(
    ("lines", "by_rfc", "by_line"),
    [
        (['u,"a'], [], []),
        (['u,"a', 'u,"b'], [], []),
        (['u,"a"b'], [], []),
        (["u,a\rp9,1"], [], []),  # a cell too many
        (["u,a\rp9"], [["u", "a\rp9"]], [["u", "a\rp9"]]),
        (['u,"a\np9,1"'], [["u", "a\np9,1"]], [["p9", '1"']]),
        (["u,1,,"], [["u", "1"]], [["u", "1"]]),
        (['u,1,""'], [], []),
        (["u"], [["u", ""]], [["u", ""]]),
        ([""], [], []),
        (["u,\0"], [["u", "\0"]], [["u", "\0"]]),
    ],
)
def test_hostile_lines(lines: list[str], by_rfc: list[list[str]], by_line: list[list[str]]) -> None:
    """Each among six others, who stay what they are."""
    plain = [",".join(row) for row in OTHERS]
    for place in range(7):
        data = "\n".join(["id,x", *plain[:place], *lines, *plain[place:], ""])
        for quote, wanted in (("rfc", by_rfc), ("line", by_line)):
            assert read(data, quote=quote) == [*OTHERS[:place], *wanted, *OTHERS[place:]]


def test_two_stray_quotes_are_what_the_dialect_says() -> None:
    """No reader can tell them from a cell with line ends in it."""
    data = 'id,x\nu,"a\np1,1\np2,2\nu,b"\np3,3\n'
    assert read(data) == [["u", "a\np1,1\np2,2\nu,b"], ["p3", "3"]]
    assert read(data, quote="line") == [["p1", "1"], ["p2", "2"], ["u", 'b"'], ["p3", "3"]]
    assert read(data, quote="none") == [["u", '"a'], ["p1", "1"], ["p2", "2"], ["u", 'b"'], ["p3", "3"]]


@pytest.mark.parametrize("line", [b'x",y,"z\n', b'"x",y,"z\n', b'u,"a\n', b'"\n', b'"\n"x\n'])
def test_a_million_lines_that_open_a_quote_are_visited_in_linear_time(line: bytes) -> None:
    data = b"a,b,c\n" + line * 1_000_000
    reader = _core.CsvReader(np.frombuffer(data, dtype=np.uint8), separator=44, quote="rfc", escape=False, missing=[])
    while reader.batch([0], 2**20)[1]:
        pass
    assert reader.steps() <= 4 * len(data)


def test_a_backslash() -> None:
    """What Spark and MySQL write."""
    spark = r"""id,x
a\,1
b,"say \"no\", then \\"
\N,"\N"
"""
    assert read(spark, escape="\\") == [["a\\", "1"], ["b", r'say "no", then ' + "\\"], ["", "N"]]
    mysql = "id\tx\na\\\tb\t1\\\n2\nc\\\r\nd\t\\N\n\\\\N\t\\0\n"
    assert read(mysql, separator="\t", quote="none", escape="\\") == [["a\tb", "1\n2"], ["c\r\nd", ""], ["\\N", "0"]]
    assert read("id,x\n\\N,a\\\n") == [["\\N", "a\\"]]


# --- options


def test_names_and_separators() -> None:
    assert read_csv(io.BytesIO(b'\xef\xbb\xbf id ,"x, y",\r\n')).names == ("id", "x, y")
    table = read_csv(io.BytesIO(b"\xef\xbb\xbfsep=;\r\n\r\nid;x\r\n1;2\r\n"))
    assert (table.names, rows_of(table)) == (("id", "x"), [["1", "2"]])
    assert "separator=';'" in table.dialect
    # In a file without names the first line is a user's.
    table = read_csv(io.BytesIO(b"sep=;\n1,2\n"), names=["id", "x"])
    assert rows_of(table) == [["sep=;", ""], ["1", "2"]]
    # Row numbers of pandas have no name.
    table = read_csv(io.BytesIO(b",id\n0,a\n1,b\n"))
    assert (table.names, rows_of(table)) == (("id",), [["a"], ["b"]])
    assert [list(batch) for batch in table.batches(["id"])] == [["id"]]
    with pytest.raises(ValueError, match="no column 'x'; it has id"):
        next(table.batches(["x"]))


def test_columns_and_their_numbers() -> None:
    table = read_csv(io.BytesIO(b"id;x;y\n1;2,5;3\n"), separator=";", decimal=",", thousands=".")
    (texts,) = table.texts(["y", "id"])
    assert [cells_of(*text) for text in texts] == [[b"3"], [b"1"]]
    (batch,) = table.batches(["x", "y"])
    assert [column.cells.numbers()[0].tolist() for column in batch.values()] == [[2.5], [3.0]]
    assert {column.family for column in batch.values()} == {"text"}
    assert [{name: len(column) for name, column in head.items()} for head in table.heads(["x"])] == [{"x": 0}]
    assert table.backend is None
    assert list(read_csv(io.BytesIO(b"id\n")).batches(["id"])) == []


def test_missing_words() -> None:
    data = 'id,x\n1,NA\n2," NA\u00a0"\n3,NAN\n4,\n5,n/a\nNULL,NA NA\n'
    wanted = [["1", ""], ["2", ""], ["3", "NAN"], ["4", ""], ["5", ""], ["", "NA NA"]]
    assert read(data, missing=["NA", "NULL", "n/a "]) == wanted
    assert (
        read(data.replace("\u00a0", " ").encode("euc_jp"), missing=["NA", "NULL", "n/a"], encoding="euc_jp") == wanted
    )


def test_words_for_missing_are_compared_with_what_a_cell_says() -> None:
    """Not with its bytes, which in UTF-8 would be another text."""
    data = "id,x\n1,\u00e9\n".encode()
    assert read(data, missing=["\u00e9"]) == [["1", ""]]
    assert read(data, missing=["\u00e9"], encoding="gbk") == [["1", "\u8305"]]
    assert read(data, missing=["\u8305"], encoding="gbk") == [["1", ""]]


def test_many_rows_are_the_same_in_batches() -> None:
    cells = [b"x" * (number % 7) for number in range(2**20 + 5)]
    table = read_csv(io.BytesIO(b"id,x\n1," + b"\n1,".join(cells)))
    batches = list(table.texts(["x"]))
    assert [len(offsets) - 1 for ((_, offsets),) in batches] == [2**20, 5]
    assert [cell for (text,) in batches for cell in cells_of(*text)] == cells


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"separator": "::"}, ValueError, "separator must be one ASCII character"),
        ({"separator": "é"}, ValueError, "separator must be one ASCII character"),
        ({"separator": "x"}, ValueError, "separator must be one ASCII character"),
        ({"separator": '"'}, ValueError, "separator must be one ASCII character"),
        ({"separator": 9}, TypeError, "separator must be a text; got 9"),
        ({"separator": "%", "encoding": "cp864"}, ValueError, "separator must be a character of cp864"),
        ({"separator": "|", "encoding": "gbk"}, ValueError, "separator must be one of ',', ';', "),
        ({"separator": ";", "encoding": "johab"}, ValueError, "separator must be one of ',', '\\t' in johab"),
        ({"quote": "'"}, ValueError, "quote must be one of 'rfc', 'line', 'none'; got"),
        ({"quote": 1}, TypeError, "quote must be a text"),
        ({"escape": '"'}, ValueError, "escape must be one of None, "),
        ({"escape": "\\", "encoding": "shift_jis"}, ValueError, "escape must be None in shift_jis"),
        ({"decimal": "x"}, ValueError, "decimal must be one of"),
        ({"decimal": None}, ValueError, "decimal must be one of"),
        ({"thousands": "x"}, ValueError, "thousands must be one of"),
        ({"thousands": "."}, ValueError, "thousands must differ from decimal"),
        ({"encoding": 8}, TypeError, "encoding must be a text"),
        ({"encoding": "klingon"}, ValueError, "encoding must be one in which no cell changes what others say"),
        ({"encoding": "utf-8\0"}, ValueError, "encoding must be one"),
        ({"missing": "NA"}, TypeError, "missing must be a list of texts; got 'NA'"),
        ({"missing": [1]}, TypeError, "missing must be a list of texts; got 1 in it"),
        ({"missing": [" "]}, ValueError, "missing must be texts that are not blank"),
        ({"missing": ["\ud800"]}, ValueError, "missing must be texts that UTF-8 can hold"),
        ({"names": "id"}, TypeError, "names must be a list of texts"),
        ({"names": []}, ValueError, "names must be a name for each column"),
        ({"names": ["a", " a "]}, ValueError, "names must be distinct, without several columns of one name"),
    ],
)
def test_options_are_checked(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        read_csv(io.BytesIO(b"id\n"), **options)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "there is no row of column names"),
        (b"\n\r\n", "there is no row of column names"),
        (b",,\n", "there is no row of column names"),
        (b'"",""\n', "there is no row of column names"),
        (b"a,b,a \n", "has several columns of one name, 'a'; rename them"),
        (b'a,"b\n1,2\n', "a quote in the row of column names is not closed"),
        ("é".encode("latin-1") + b"\n", "the row of column names is not utf-8; give encoding="),
        ("id,x\n".encode("utf-16"), "the row of column names is not utf-8; give encoding="),
    ],
)
def test_files_without_good_names(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_csv(io.BytesIO(data))


# --- files


def test_files(tmp_path: Path) -> None:
    data = b"id,x\n1,2\n"
    plain, packed, broken = tmp_path / "a.csv", tmp_path / "a.csv.gz", tmp_path / "b.csv.gz"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    broken.write_bytes(gzip.compress(data)[:-9])
    for path in (plain, str(plain), packed):
        table = read_csv(path)
        assert rows_of(table) == rows_of(table) == [["1", "2"]]
    with plain.open("rb") as file:
        table = read_csv(file)
    assert rows_of(table) == [["1", "2"]]
    for wrong in (broken, tmp_path / "c.csv.gz"):
        with pytest.raises((ValueError, OSError), match=wrong.name):
            read_csv(wrong)
    with pytest.raises(ValueError, match="is a directory"):
        read_csv(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        read_csv(tmp_path / "none.csv")
    with pytest.raises(TypeError, match="path must be a path or an open binary file"):
        read_csv(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="binary mode"):
        read_csv(io.StringIO("id\n"))  # type: ignore[arg-type]
    table = read_csv(plain)
    plain.write_bytes(data + b"2,3\n")
    with pytest.raises(ValueError, match="was written to after it was opened"):
        list(table.batches(["id"]))


def test_threads_read_one_table_at_a_time() -> None:
    table = read_csv(io.BytesIO(b"id,x\n" + b"1,2\n" * 10_000))
    found: list[int] = []

    def run() -> None:
        found.append(sum(len(batch["id"]) for batch in table.batches(["id"])))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [10_000] * 4


def test_lines_that_are_left_out_are_counted_for_the_owner() -> None:
    data = b'id,x\n1,2\n\n2,"3\n4,5,6\n7\n8,"9\n10"\n11,12,,\n'
    found = read_csv(io.BytesIO(data)).check()
    assert (found.rows, found.short, found.malformed, found.long) == (4, 1, (4,), (5,))
    table = read_csv(io.BytesIO(b'id,x\na,"1\n\n2"\n\nb,3\n'))
    assert list(table.public_rows(["x", "id"])) == [(2, ["1\n\n2", "a"]), (6, ["3", "b"])]
    for wrong, message in (
        (data, "line 4: a quote is not closed"),
        (b"id,x\n1,2\n3\n", "line 3: expected 2 values; got 1"),
        (b"id,x\n1,2,3\n", "line 2: expected 2 values; got more"),
        (b"id,x\n1,\xff\n", "line 2 is not utf-8"),
    ):
        with pytest.raises(ValueError, match=message):
            list(read_csv(io.BytesIO(wrong)).public_rows(["id", "x"]))


# --- encodings


def test_every_text_encoding_is_accepted_or_refused_by_name() -> None:
    """All that Python has: 81 by bytes, and 6 that are decoded before."""
    accepted = SINGLE_BYTE | SEVERAL_BYTES | BYTES_IN_PAIRS | UNITS.keys() | {"utf_8"}
    assert len(accepted) == 71 + 10 + 6
    names = {codecs.lookup(name).name.replace("-", "_") for name in accepted}
    assert names == accepted
    seen = set()
    for name in sorted(module.name for module in pkgutil.iter_modules(encodings.__path__)):
        try:
            known = codecs.lookup(name).name.replace("-", "_").removesuffix("_sig")
        except LookupError:
            continue
        seen.add(known)
        if known in accepted:
            assert read("id\n1\n".encode(name), encoding=name) == [["1"]]
        else:
            with pytest.raises(ValueError, match="encoding must be one in which no cell changes"):
                read_csv(io.BytesIO(b"id\n1\n"), encoding=name)
    assert accepted <= seen


@pytest.mark.parametrize("name", sorted(SINGLE_BYTE | SEVERAL_BYTES | BYTES_IN_PAIRS | {"utf_8"}))
def test_no_byte_of_one_user_changes_what_others_say(name: str) -> None:
    """u's cell is any bytes but those of the dialect; all characters of an encoding come back."""
    random_ = random.Random(name)
    every = [
        chr(point)
        for point in [*range(0x20, 0x600), *range(0x2000, 0x2100), *range(0x3040, 0x30FF), *range(0x4E00, 0x5200)]
    ]
    known = []
    for character in every:
        try:
            known.append((character, character.encode(name)))
        except UnicodeEncodeError:
            continue
    cells = [[], []]  # type: list[list[bytes]]
    for number in range(60):
        text = "".join(character for character, _ in random_.choices(known, k=5))
        cells[number % 2].append(b'"' + text.encode(name).replace(b'"', b'""') + b'"')
        if name in BYTES_IN_PAIRS:
            assert not re.search(rb'[",\n\r]', text.replace('"', "").replace(",", "").encode(name))
    lines = [b"p%d,%s" % (place, cell) for place, cell in enumerate(cells[0] + cells[1])]
    alone = read(b"id,x\n" + b"\n".join(lines), encoding=name)
    texts = [cell[1:-1].replace(b'""', b'"').decode(name) for cell in cells[0] + cells[1]]
    assert [row[1] for row in alone] == texts
    allowed = [byte for byte in range(256) if byte not in b',"\n\r']
    for _ in range(20):
        hostile = b"u," + bytes(random_.choices(allowed, k=random_.randrange(9)))
        place = random_.randrange(len(lines) + 1)
        found = read(b"id,x\n" + b"\n".join([*lines[:place], hostile, *lines[place:]]), encoding=name)
        assert found[:place] + found[place + 1 :] == alone


def test_bytes_without_a_character_stay() -> None:
    assert read(b"id,x\n\xe9\x81,\xe9\n", encoding="cp1252") == [["\\xe9\\x81", "\u00e9"]]
    assert read(b"id,x\n\x81,\x82\xa0\n", encoding="shift_jis") == [["\\x81", "\u3042"]]
    assert read(b"id,x\n\xff,\xc3\xa9\n") == [["\\xff", "\u00e9"]]


@pytest.mark.parametrize("name", sorted(UNITS))
def test_units_are_counted_from_the_start_of_the_file(name: str) -> None:
    """Lone surrogates, units beyond Unicode and a unit that is cut off change their own cell only."""
    order = name if name.endswith("e") else f"{name}_le"
    mark = "" if name.endswith("e") else "\ufeff"
    size = UNITS[name]
    unit = {2: "<H", 4: "<I"}[size] if not name.endswith("be") else {2: ">H", 4: ">I"}[size]
    import struct

    for strange in ([0xD800], [0xDC00], [0xD800, 0x61], [0xDC00, 0xD800], [0x10FFFF + 1] if size == 4 else [0xDFFF]):
        cell = b"".join(struct.pack(unit, one) for one in strange)
        head, tail = (f"{mark}id,x\np1,\U0001f600\nu,".encode(order), "\np2,\u00e9\n".encode(order))
        found = read(head + cell + tail, encoding=name)
        assert [found[0], found[2]] == [["p1", "\U0001f600"], ["p2", "\u00e9"]]
        assert found[1][0] == "u"
        assert found[1][1]
        for cut in range(1, size):
            cut_off = read(head + cell + tail + b"a" * cut, encoding=name)
            assert cut_off[:3] == found
    if mark:
        with pytest.raises(ValueError, match="encoding: the file has no mark of"):
            read("id\n1\n".encode(order), encoding=name)
