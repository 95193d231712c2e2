"""CSV files as tables: how a file is written is said by the caller, and nothing is found out from its rows.

A reader that guesses a separator, a type or an encoding can be moved by one row. Here every cell is the text that its
own line says, whatever stands in other lines, and what is no row costs itself alone.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import itertools
import mmap
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import short_repr
from userdp.tables.reading import BATCH_ROWS, Table
from userdp.tables.schema import THOUSANDS, first_twice
from userdp.users.values import Column

Bytes: TypeAlias = npt.NDArray[np.uint8]
Places: TypeAlias = npt.NDArray[np.int64]

QUOTES = ("rfc", "line", "none")
BLANKS = "".join(map(chr, [*range(0x21), 0x7F, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)])) + (
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What is stripped from the ends of names and of cells that are compared with the words for missing."""

_SINGLE = """ascii cp1006 cp1125 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp437 cp720 cp737
cp775 cp850 cp852 cp855 cp856 cp857 cp858 cp860 cp861 cp862 cp863 cp864 cp865 cp866 cp869 cp874 hp_roman8 iso8859_1
iso8859_2 iso8859_3 iso8859_4 iso8859_5 iso8859_6 iso8859_7 iso8859_8 iso8859_9 iso8859_10 iso8859_11 iso8859_13
iso8859_14 iso8859_15 iso8859_16 koi8_r koi8_t koi8_u kz1048 mac_arabic mac_croatian mac_cyrillic mac_farsi mac_greek
mac_iceland mac_latin2 mac_roman mac_romanian mac_turkish palmos ptcp154 tis_620"""
SINGLE_BYTE = frozenset(_SINGLE.split())
SEVERAL_BYTES = frozenset(("cp949", "euc_jis_2004", "euc_jisx0213", "euc_jp", "euc_kr", "gb2312"))
"""Whose characters have no byte in them that may separate cells."""
_PAIRS = "big5 big5hkscs cp932 cp950 gb18030 gbk johab shift_jis shift_jis_2004 shift_jisx0213"
BYTES_IN_PAIRS = frozenset(_PAIRS.split())
"""Whose characters may have bytes such as those of a backslash and a bar as their second ones."""
UNITS = {"utf_16": 2, "utf_16_le": 2, "utf_16_be": 2, "utf_32": 4, "utf_32_le": 4, "utf_32_be": 4}
"""Bytes of a unit, in encodings in which a line end is more than one byte."""
ENCODINGS = "utf-8, utf-16, utf-32, ascii, latin-1, cp1252 and other code pages, iso8859, koi8, mac, euc, gb18030, "
ENCODINGS += "gbk, big5, shift_jis, cp932, cp949 and johab"
CHUNK = 2**20


@dataclass(frozen=True)
class CsvCheck:
    """What the lines of a file are: of the data, without noise, and so for their owner alone."""

    rows: int
    short: int
    """Rows with fewer cells than there are names."""
    malformed: tuple[int, ...]
    """Numbers of lines that were left out for a quote that is not closed as it should be."""
    long: tuple[int, ...]
    """Numbers of lines that were left out for further cells."""


class CsvTable(Table):
    """A CSV file that is open, and the public options by which it is read; made by `read_csv`."""

    def __init__(self, mapped: mmap.mmap | None, name: str, options: _Options) -> None:
        # The map holds the file open.
        self._mapped, self._name, self._options = mapped, name, options
        self._content = np.frombuffer(b"" if mapped is None else mapped, dtype=np.uint8)
        reader = self._reader()
        self._separator = chr(reader.separator)
        options.check_separator(self._separator, f"{name}: the separator of its first line")
        given = options.names
        found = [self._name_of(raw) for raw in reader.names] if given is None else list(given)
        self._width = len(found)
        # A column without a name, such as the row numbers of pandas and R, cannot be asked for.
        self.names = tuple(name for name in found if name)
        if not self.names:
            raise ValueError(f"{name}: there is no row of column names")
        if len(set(self.names)) < len(self.names):
            twice = first_twice(self.names)
            raise ValueError(f"{self._name} has several columns of one name, {short_repr(twice)}; rename them")
        self._place = {name: place for place, name in enumerate(found) if name}
        usual = (options.decimal, options.thousands) == (".", None)
        self.marks = None if usual else (options.decimal, options.thousands)

    @property
    def dialect(self) -> str:  # type: ignore[override]
        """One public sentence that says how the file was read."""
        options = self._options
        names = "with names in the first line" if options.names is None else "with names that were given"
        return (
            f"The rows were read from CSV {names}, separator={self._separator!r}, quote={options.quote!r}, "
            f"escape={options.escape!r}, decimal={options.decimal!r}, thousands={options.thousands!r}, "
            f"encoding={options.encoding!r} and missing={short_repr(list(options.missing))}."
        )

    def batches(self, columns: Sequence[str]) -> Iterator[dict[str, Column]]:
        """The rows from the first on, as columns of texts by name; texts are empty where a row has no such cell."""
        for texts in self.texts(columns):
            yield {name: self._column(*text) for name, text in zip(columns, texts, strict=True)}

    def texts(self, columns: Sequence[str]) -> Iterator[list[tuple[Bytes, Places]]]:
        """The same as the bytes of all cells of a column, and where each begins and the last one ends."""
        places = self._places(columns)
        reader = self._reader()
        while True:
            texts, rows, _, _ = reader.batch(places, BATCH_ROWS)
            if not rows:
                return
            yield [self._decoded(*text) for text in texts]

    def heads(self, columns: Sequence[str]) -> list[dict[str, Column]]:  # type: ignore[override]
        """Return columns without rows."""
        self._places(columns)
        nothing = np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
        return [{name: self._column(*nothing) for name in columns}]

    def check(self) -> CsvCheck:
        """What the lines of the file are. It is computed from the data without noise, so do not publish it."""
        reader = self._reader()
        count, short = 0, 0
        malformed: list[int] = []
        long: list[int] = []
        while True:
            _, rows, _, (_, cells, bad, more) = reader.batch([], BATCH_ROWS, lines=True)
            malformed += bad.tolist()
            long += more.tolist()
            if not rows:
                return CsvCheck(count, short, tuple(malformed), tuple(long))
            count += rows
            short += int((cells < self._width).sum())

    def public_rows(self, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
        """The rows of a file that is public, each with the number of its first line.

        Raises
        ------
        ValueError
            For what a private file may have: lines that are no rows, rows with fewer cells than there are names, and
            cells that are not in the encoding; naming the line.
        """
        places = self._places(columns)
        reader = self._reader()
        while True:
            texts, rows, _, (lines, cells, bad, more) = reader.batch(places, BATCH_ROWS, lines=True)
            wrong = [(line, "a quote is not closed as it should be") for line in bad.tolist()]
            wrong += [(line, f"expected {self._width} values; got more") for line in more.tolist()]
            few = zip(lines.tolist(), cells.tolist(), strict=True)
            wrong += [(line, f"expected {self._width} values; got {n}") for line, n in few if n < self._width]
            if wrong:
                line, message = min(wrong)
                raise ValueError(f"{self._name}, line {line}: {message}")
            if not rows:
                return
            found = [self._decoded(*text) for text in texts]
            for row, line in enumerate(lines.tolist()):
                raw = [content[offsets[row] : offsets[row + 1]].tobytes() for content, offsets in found]
                try:
                    yield line, [cell.decode("utf-8") for cell in raw]
                except UnicodeDecodeError:
                    raise ValueError(f"{self._name}, line {line} is not {self._options.encoding}") from None

    def _decoded(self, content: Bytes, offsets: Places) -> tuple[Bytes, Places]:
        """The cells that the core found, in UTF-8 where they can be."""
        several = self._options.codec in SEVERAL_BYTES | BYTES_IN_PAIRS
        return self._options.decoded(content, offsets) if several else (content, offsets)

    def _column(self, content: Bytes, offsets: Places) -> Column:
        """A column of texts, which the schema reads."""
        marks = {"decimal": self._options.decimal, "thousands": self._options.thousands}
        return Column(_core.Column.texts(content, offsets, **marks), "text", "text")  # type: ignore[arg-type]

    def _places(self, columns: Sequence[str]) -> list[int]:
        unknown = next((name for name in columns if name not in self._place), None)
        if unknown is not None:
            raise ValueError(f"{self._name} has no column {short_repr(unknown)}; it has {', '.join(self.names)}")
        return [self._place[name] for name in columns]

    def _reader(self) -> Any:
        if self._mapped is not None and self._mapped.size() != len(self._content):
            raise ValueError(f"{self._name} was written to after it was opened; open it again")
        return self._options.reader(self._content, self._name)

    def _name_of(self, raw: bytes) -> str:
        try:
            return self._options.text(raw).strip(BLANKS)
        except UnicodeDecodeError:
            raise ValueError(
                f"{self._name}: the row of column names is not {self._options.encoding}; give encoding=, such as "
                "'cp1252' or 'utf-16'"
            ) from None


def read_csv(
    path: str | os.PathLike[str] | IO[bytes],
    *,
    separator: str = ",",
    quote: str = "rfc",
    escape: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    encoding: str = "utf-8",
    missing: Sequence[str] = (),
    names: Sequence[str] | None = None,
) -> CsvTable:
    r"""Open a CSV file as a table, in a dialect that is said and not guessed.

    A line that is malformed, or has more cells than there are names, is left out and costs no other line. Fewer cells
    are missing ones. All cells are texts, which are read by the schema. The file stays open, and is read anew by each
    release; do not write to it in the meantime.

    Parameters
    ----------
    path : path or binary file
        A file, which may end in ``.gz``, or an open one such as ``sys.stdin.buffer``, which is copied to a temporary
        file without a name.
    separator : str
        One ASCII character between cells. A first line such as ``sep=;`` above the names goes before it.
    quote : {"rfc", "line", "none"}
        What a double quote means. By "rfc" a cell may be in quotes and hold line ends. By "line" it may be in quotes,
        and every line end ends a row. By "none" a quote is a character. Choose what the file's writer does: no reader
        can be right for all.
    escape : {None, "\\"}
        With a backslash, as MySQL and Spark write it, the next byte is a character: inside quotes, or everywhere with
        ``quote="none"``. A bare cell ``\N`` is missing.
    decimal : {".", ","}
        What stands before the decimals of numbers.
    thousands : str, optional
        What may stand between groups of three digits: one of ``. , ' _``, a space, a no-break space or an apostrophe.
    encoding : str
        Such as "utf-8", "cp1252" or "utf-16". Encodings in which one cell can change what others say are refused. A
        cell that cannot be decoded stays as bytes.
    missing : sequence of str
        Texts of whole cells, blanks at the ends apart, that stand for nothing, such as ``["NA", "NULL"]``.
    names : sequence of str, optional
        Names of the columns of a file that has no row of names.

    Returns
    -------
    CsvTable
        For `Session`, with the `names` of its columns and a sentence about its `dialect`.

    Raises
    ------
    ValueError, TypeError
        Naming the argument; for a file without a row of names, or with several columns of one name.
    OSError
        Where there is no file that can be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "people.csv"
    >>> _ = path.write_text('id;wage\n1;2,5\n2;"3\n')
    >>> table = read_csv(path, separator=";", decimal=",")
    >>> table.names
    ('id', 'wage')
    >>> [len(batch["id"]) for batch in table.batches(["id"])]  # the quote of user 2 is never closed
    [1]
    >>> folder.cleanup()
    """
    options = _options(separator, quote, escape, decimal, thousands, encoding, missing, names)
    file, name = _opened(path)
    with file:
        if options.codec not in UNITS:
            return CsvTable(_mapped(file), name, options)
        with _transcoded(file, name, options.codec) as narrow:
            return CsvTable(_mapped(narrow), name, options)


# --- options


@dataclass(frozen=True)
class _Options:
    """The options of `read_csv`, checked."""

    separator: str
    quote: str
    escape: str | None
    decimal: str
    thousands: str | None
    encoding: str
    codec: str
    missing: tuple[str, ...]
    names: tuple[str, ...] | None

    def check_separator(self, separator: str, what: str) -> None:
        """Refuse a separator that may be a part of a character."""
        if self.codec in BYTES_IN_PAIRS:
            accepted = ",\t" if self.codec == "johab" else ",;\t"
            if separator not in accepted:
                raise ValueError(
                    f"{what} must be one of {', '.join(map(repr, accepted))} in {self.encoding}, whose characters may "
                    f"have others as a part; got {separator!r}"
                )
        elif self.codec in SINGLE_BYTE and separator.encode().decode(self.codec) != separator:
            raise ValueError(f"{what} must be a character of {self.encoding}; got {separator!r}")

    def reader(self, content: Bytes, name: str) -> Any:
        """A reader of the core, which stands before the first row."""
        try:
            return _core.CsvReader(
                content,
                separator=ord(self.separator),
                quote=self.quote,
                escape=self.escape is not None,
                # Cells that are not UTF-8 yet are compared when they are.
                missing=[]
                if self.codec in SEVERAL_BYTES | BYTES_IN_PAIRS
                else [word.encode() for word in self.missing],
                letters=_letters(self.codec) if self.codec in SINGLE_BYTE else None,
                width=None if self.names is None else len(self.names),
            )
        except ValueError as error:
            # Of the row of names alone: the options have been checked.
            raise ValueError(f"{name}: {str(error).removeprefix('names: ')}") from None

    def text(self, raw: bytes) -> str:
        """What a cell says; single-byte encodings are UTF-8 already."""
        return raw.decode(self.codec if self.codec in SEVERAL_BYTES | BYTES_IN_PAIRS else "utf-8")

    def decoded(self, content: Bytes, offsets: Places) -> tuple[Bytes, Places]:
        """Cells as UTF-8, each decoded by itself; what cannot be decoded stays as it is."""
        raw, cells = content.tobytes(), []
        ends = offsets.tolist()
        words = set(self.missing)
        for start, end in itertools.pairwise(ends):
            cell = raw[start:end]
            try:
                text = self.text(cell)
            except UnicodeDecodeError:
                cells.append(cell)
            else:
                cells.append(b"" if words and text.strip(BLANKS) in words else text.encode())
        lengths = np.fromiter(map(len, cells), dtype=np.int64, count=len(cells))
        places = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        return np.frombuffer(b"".join(cells), dtype=np.uint8), places


def _options(
    separator: Any, quote: Any, escape: Any, decimal: Any, thousands: Any, encoding: Any, missing: Any, names: Any
) -> _Options:
    """The options, or an error that names the one that is wrong."""
    _one_of("quote", quote, QUOTES)
    _one_of("escape", escape, (None, "\\"))
    _one_of("decimal", decimal, (".", ","))
    _one_of("thousands", thousands, (None, *THOUSANDS))
    if thousands == decimal:
        raise ValueError(f"thousands must differ from decimal; got {thousands!r} for both")
    if not isinstance(separator, str):
        raise TypeError(f"separator must be a text; got {short_repr(separator)}")
    if len(separator) != 1 or not separator.isascii() or separator.isalnum() or separator in '"\\\r\n':
        raise ValueError(
            "separator must be one ASCII character that is no letter, digit, quote, backslash or line end, such as "
            f"',', ';' or a tab; got {short_repr(separator)}"
        )
    codec = _codec(encoding)
    words = tuple(word.strip(BLANKS) for word in _texts("missing", missing))
    if "" in words:
        raise ValueError("missing must be texts that are not blank (blank cells are missing anyway); got a blank one")
    given = None if names is None else tuple(name.strip(BLANKS) for name in _texts("names", names))
    if given is not None and (not given or "" in given):
        raise ValueError(f"names must be a name for each column; got {short_repr(list(names))}")
    if given is not None and len(set(given)) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise ValueError(f"names must be distinct, without several columns of one name; got {short_repr(twice)} twice")
    options = _Options(separator, quote, escape, decimal, thousands, encoding, codec, words, given)
    options.check_separator(separator, "separator")
    if codec in BYTES_IN_PAIRS and escape is not None:
        raise ValueError(f"escape must be None in {encoding}, whose characters may have it as a part; got {escape!r}")
    return options


def _one_of(name: str, value: Any, accepted: Sequence[str | None]) -> None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be a text; got {short_repr(value)}")
    if value not in accepted:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}; got {short_repr(value)}")


def _texts(name: str, values: Any) -> list[str]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise TypeError(f"{name} must be a list of texts; got {short_repr(values)}")
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a list of texts; got {short_repr(value)} in it")
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise ValueError(f"{name} must be texts that UTF-8 can hold; got {short_repr(value)}")
    return list(values)


def _codec(encoding: Any) -> str:
    """The name by which an encoding is in one of the lists above."""
    if not isinstance(encoding, str):
        raise TypeError(f"encoding must be a text; got {short_repr(encoding)}")
    try:
        name = codecs.lookup(encoding).name.replace("-", "_")
    except (LookupError, ValueError):
        name = ""
    if name in ("utf_8", "utf_8_sig"):
        return "utf_8"
    if name not in SINGLE_BYTE | SEVERAL_BYTES | BYTES_IN_PAIRS | UNITS.keys():
        raise ValueError(
            f"encoding must be one in which no cell changes what others say, such as {ENCODINGS}; got "
            f"{short_repr(encoding)}"
        )
    return name


def _letters(codec: str) -> list[bytes | None]:
    """The character of each byte, as UTF-8."""
    letters: list[bytes | None] = []
    for byte in range(256):
        try:
            letters.append(bytes([byte]).decode(codec).encode())
        except UnicodeDecodeError:
            letters.append(None)
    return letters


# --- files


def _opened(path: Any) -> tuple[IO[bytes], str]:
    """A file whose places can be read again and again, and its name."""
    if hasattr(path, "read"):
        if isinstance(path.read(0), str):
            raise TypeError("path must be a file that is open in binary mode; got one of texts")
        return _copied(path), "the file"
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be a path or an open binary file; got {short_repr(path)}")
    where = Path(path)
    if where.is_dir():
        raise ValueError(f"path: {where} is a directory; give the name of a file")
    name = str(where)
    if where.suffix.lower() == ".gz":
        try:
            with gzip.open(where) as packed:
                return _copied(packed), name  # type: ignore[arg-type]
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise ValueError(f"path: {name} is no gzip file that can be read to its end") from None
    file = where.open("rb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file, name
    with file:
        return _copied(file), name


def _mapped(file: IO[bytes]) -> mmap.mmap | None:
    """What is in a file, in memory only where it is looked at; an empty one cannot be mapped."""
    size = os.fstat(file.fileno()).st_size
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else None


def _copied(source: IO[bytes]) -> IO[bytes]:
    """A copy without a name, which goes when it is closed."""
    with contextlib.ExitStack() as stack:
        copy = stack.enter_context(tempfile.TemporaryFile())
        shutil.copyfileobj(source, copy, CHUNK)
        copy.flush()
        stack.pop_all()  # it stays open
    return copy


def _transcoded(source: IO[bytes], name: str, codec: str) -> IO[bytes]:
    """A copy as UTF-8, made unit by unit from the start, so that no cell moves the units of others.

    What is no character stays what it is: lone surrogates, and of all else a surrogate for each byte.
    """
    source.seek(0)
    if codec in ("utf_16", "utf_32"):
        # Without a mark the bytes of the first cell would decide.
        size = UNITS[codec]
        mark = source.read(size)
        order = {codecs.BOM_UTF16_LE: "le", codecs.BOM_UTF16_BE: "be"}
        order |= {codecs.BOM_UTF32_LE: "le", codecs.BOM_UTF32_BE: "be"}
        if mark not in order:
            shown = codec.replace("_", "-")
            raise ValueError(f"encoding: {name} has no mark of {shown} at its beginning; give {shown}-le or {shown}-be")
        codec = f"{codec}_{order[mark]}"
    size = UNITS[codec]
    decoder = codecs.getincrementaldecoder(codec)(_ERRORS)
    with contextlib.ExitStack() as stack:
        copy = stack.enter_context(tempfile.TemporaryFile())
        while chunk := source.read(CHUNK):
            copy.write(decoder.decode(chunk).encode("utf-8", "surrogatepass"))
        copy.write(decoder.decode(b"", True).encode("utf-8", "surrogatepass"))
        copy.flush()
        stack.pop_all()  # it stays open
    return copy


def _kept(error: UnicodeError) -> tuple[str, int]:
    """What stands for a unit that is no character."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    size = UNITS[error.encoding.replace("-", "_")]
    unit = error.object[error.start : error.start + size]
    number = int.from_bytes(unit, "big" if error.encoding.endswith("be") else "little")
    if len(unit) == size and 0xD800 <= number <= 0xDFFF:
        return chr(number), error.start + size
    # As surrogateescape does, also of low bytes.
    return "".join(chr(0xDC00 + byte) for byte in unit), error.start + len(unit)


_ERRORS = "userdp.csv"
codecs.register_error(_ERRORS, _kept)
