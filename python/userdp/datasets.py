"""Real users' data for examples and tests.

The data sets are read from packages that ship them; nothing is downloaded.
"""

from __future__ import annotations

import bz2
import csv
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["WagePanel", "load_wage_panel"]

_N_PERSONS = 545
_YEARS = tuple(range(1980, 1988))


@dataclass(frozen=True, eq=False)
class WagePanel:
    """The wage panel of Vella and Verbeek (1998): 545 young men, each observed in 1980 to 1987.

    Made by `load_wage_panel`. One user contributes eight records, which is what user-level privacy is for.

    Attributes
    ----------
    person_ids : tuple of int
        The 545 user identifiers, increasing; row i of every column belongs to ``person_ids[i]``.
    years : tuple of int
        The 8 years, increasing; column j of every array belongs to ``years[j]``.
    names : tuple of str
        The variables, in the order of the source: ``black``, ``exper``, ``hisp``, ``hours``, ``married``,
        ``educ``, ``union``, ``lwage``, ``expersq`` and ``occupation``.
    """

    person_ids: tuple[int, ...]
    years: tuple[int, ...]
    _columns: Mapping[str, npt.NDArray[Any]] = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return tuple(self._columns)

    def column(self, name: str) -> npt.NDArray[Any]:
        """One variable as a read-only array.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        ndarray of shape (545, 8)
            Persons by years; int64, or float64 for ``lwage``.

        Raises
        ------
        KeyError
            If there is no such variable.
        """
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"no variable {name!r} in the panel; it has {', '.join(self.names)}") from None

    def users(self, name: str) -> tuple[tuple[int | float, ...], ...]:
        """One variable as a dataset of users, the form that finite algorithms take.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        tuple of 545 tuples of 8 int or float
            One tuple for each user, in the order of `person_ids`, with the values in year order.

        Raises
        ------
        KeyError
            If there is no such variable.

        Examples
        --------
        >>> from userdp.datasets import load_wage_panel
        >>> load_wage_panel().users("union")[0]
        (0, 1, 0, 0, 0, 0, 0, 0)
        """
        return tuple(map(tuple, self.column(name).tolist()))


def load_wage_panel() -> WagePanel:
    """Read the wage panel of Vella and Verbeek from the installed package ``linearmodels``.

    A balanced panel of 545 men from the National Longitudinal Survey of Youth, 1980 to 1987, with
    union membership, log hourly wage, schooling and six more variables. ``linearmodels`` itself is
    not imported.

    Returns
    -------
    WagePanel

    Raises
    ------
    ImportError
        If ``linearmodels`` is not installed, or ships no such file.

    References
    ----------
    F. Vella and M. Verbeek (1998), "Whose wages do unions raise? A dynamic model of unionism and wage rate
    determination for young men", Journal of Applied Econometrics 13(2), 163-183.

    Examples
    --------
    >>> from userdp.datasets import load_wage_panel
    >>> panel = load_wage_panel()
    >>> panel.column("union").shape
    (545, 8)
    >>> round(float(panel.column("union").mean()), 3)
    0.244
    """
    path = _wage_panel_path()
    with bz2.open(path, "rt", encoding="utf-8", newline="") as file:
        return _parse(csv.DictReader(file), str(path))


def _wage_panel_path() -> Path:
    advice = "the wage panel ships inside the package linearmodels: pip install 'userdp[demo]'"
    spec = importlib.util.find_spec("linearmodels")
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError(f"linearmodels is not installed; {advice}")
    for folder in spec.submodule_search_locations:
        path = Path(folder) / "datasets" / "wage_panel" / "wage_panel.csv.bz2"
        if path.is_file():
            return path
    raise ImportError(f"the installed linearmodels has no datasets/wage_panel/wage_panel.csv.bz2; {advice}")


def _parse(reader: csv.DictReader[str], source: str) -> WagePanel:
    header = list(reader.fieldnames or ())
    if not {"nr", "year"} <= set(header):
        raise ValueError(f"{source}: expected the columns nr and year, found {header}")
    rows: dict[tuple[int, int], dict[str, str]] = {}
    for row in reader:
        key = int(row["nr"]), int(row["year"])
        if key in rows:
            raise ValueError(f"{source}: user {key[0]} has two records for {key[1]}")
        rows[key] = row

    person_ids = tuple(sorted({person for person, _ in rows}))
    years = tuple(sorted({year for _, year in rows}))
    if len(person_ids) != _N_PERSONS or years != _YEARS or len(rows) != _N_PERSONS * len(_YEARS):
        raise ValueError(
            f"{source}: expected {_N_PERSONS} users with one record for each of the years {_YEARS[0]} to "
            f"{_YEARS[-1]}, found {len(rows)} records of {len(person_ids)} users in the years {list(years)}"
        )

    columns: dict[str, npt.NDArray[Any]] = {}
    for name in header:
        if name in ("nr", "year"):
            continue
        texts = [rows[person, year][name] for person in person_ids for year in years]
        values: npt.NDArray[Any]
        try:
            values = np.array([int(text) for text in texts], dtype=np.int64)
        except ValueError:
            values = np.array([float(text) for text in texts], dtype=np.float64)
        values = values.reshape(len(person_ids), len(years))
        values.setflags(write=False)
        columns[name] = values
    return WagePanel(person_ids, years, MappingProxyType(columns))
