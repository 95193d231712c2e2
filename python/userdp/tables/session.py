"""A session: one table with a user-id column, and a privacy budget that all releases of it share."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

from userdp.accounting import PrivacyCost, PrivacyLedger, largest_mu2, largest_rho
from userdp.audit.noise_free import NoiseFree
from userdp.display.numbers import apart
from userdp.exact.epsilon import as_epsilon, at_most, rational_below, value_enclosure
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    LogRatio,
    Neighbors,
    check_count,
    check_neighbors,
    nonzero_level,
    parse_delta,
    parse_level,
    parse_positive,
    short_repr,
)
from userdp.exceptions import PrivacyBudgetError
from userdp.runtime import source_of
from userdp.tables.audits import KeysAlgorithm, TableAlgorithm, paths_before_noise
from userdp.tables.compiled import Compiled, compiled
from userdp.tables.drawing import draw, draw_keys
from userdp.tables.noise import Budget, allot
from userdp.tables.plans import Plan
from userdp.tables.queries import Query
from userdp.tables.reading import Heads, table_of
from userdp.tables.reading import Table as Rows
from userdp.tables.release import Release
from userdp.tables.rows import Sums, UserColumns, add_up, keys_of_users
from userdp.tables.schema import Category, Key, Schema, check_spelled
from userdp.tables.suggestions import Suggestion, bound_of, noise_of, search_of
from userdp.users.values import READS, Marks, Spelling, refused

_T = TypeVar("_T")

MEMORY = 2**30
LEAST_MEMORY = 2**16
WORTHLESS = 2**20
"""A default release does not take what is left where that is below this part of the budget."""
LEAST_EPSILON = 2.0**-100
SPENT = "the budget is spent: nothing is left for another release"
IDS: dict[Spelling, str] = {
    "doubles": f"{READS['id']}; 5, 5.0 and '05' are one, and so are whole numbers above 2**53 that doubles cannot tell "
    "apart (exact_ids=True if the column was read as integers or texts)",
    "digits": f"{READS['id']}; 5, 5.0 and '05' are one, and whole numbers are told apart by all their digits",
    "written": "texts as they are written, and the digits of numbers",
}
"""What is read of a column of ids, in words."""
FAILED = (
    "the table could not be read to its end. The release is charged all the same, because whether it fails may depend "
    "on the data; why it failed is not shown for the same reason"
)


class Session:
    """A table with a user-id column, and the privacy budget of all releases from it.

    Parameters
    ----------
    frame : data frame
        Of pandas, polars (lazy ones too), pyarrow (tables, datasets, lists of batches) or Dask, a relation of DuckDB, a
        table of Ibis, a file by `read_csv`, or a dict of columns. It is read anew by each release, and only the columns
        that the release uses. How values are read: docs/reading.md.
    user : str or list of str
        The column of user ids, or several whose values together are an id. 5, 5.0 and "05" are one id. Rows without an
        id belong to nobody and are left out. What is protected are all rows of one id: if a person has several ids,
        that is less than the person, and if people share one, they are protected together.
    schema : Schema
        The columns that queries may use, with their public types and bounds.
    epsilon, delta : privacy parameters
        The promise for all releases together. Groups that are not known beforehand need a positive delta.
    neighbors : {"add-remove", "replace"}
        Whether one user is added or removed, so that the number of users is private, or replaced by another, so that
        the list of ids is public.
    composition : {"zcdp", "exact", "basic"}, optional
        How the ledger counts: by default "zcdp" with a delta, which lasts longer where there are several releases, and
        otherwise "basic". "exact" counts Gaussian noise by its exact composition: 5 to 8 % less of it than with "zcdp"
        for counts, sums and means at epsilons about 1, and 15 to 20 % more users in the errors of quantiles. For one
        release with unknown groups "basic" shows groups of somewhat fewer users.
    added_delta : float, Fraction or decimal string, optional
        With "zcdp" and "exact": the part of delta for groups that are not known beforehand. By default a half if the
        schema has a `key`, otherwise none.
    n_users : int, optional
        Public: for plans, how many users there are about.
    ledger : PrivacyLedger, optional
        In place of epsilon, delta and composition: a ledger that other releases of the same users share, those of other
        programs if it is in a file.
    exact_ids : bool
        Promise that the column of ids has been of integers, or of texts, from the start. Then whole numbers above 2**53
        are told apart by all their digits; so they are in Arrow, polars and databases without a promise. Otherwise a
        missing value of one person could have made doubles of all.
    written_ids : bool
        Promise that the column of ids was read as texts, so that "007" and "7" are two people.
    memory : int
        About how many bytes a release may fill with rows before it goes on in a temporary file without a name.
    directory : str, optional
        Where such files are; they hold private data while a release runs.

    Notes
    -----
    Nothing that depends on rows is raised, warned, logged or shown as progress; errors are about the schema, the names
    and types of columns, and arguments. `release` charges before it reads a row, in full also where reading fails.
    Proofs: docs/proofs/tables.md.

    Examples
    --------
    >>> import pandas as pd
    >>> from userdp.tables import Schema, Session, category, col, count_users, mean, number
    >>> visits = pd.DataFrame({"who": list(range(900)) * 2, "town": ["Ulm", "Bonn", "Ulm"] * 600, "spent": 20.0})
    >>> people = Session(visits, user="who", epsilon=1, schema=Schema(
    ...     town=category(["Bonn", "Ulm"]), spent=number(0, 100)))
    >>> query = people.query().group_by("town").agg(visitors=count_users(), spent=mean("spent"))
    >>> release = people.release(query, epsilon="1/2")
    >>> [key for key, in release.keys]
    ['Bonn', 'Ulm']
    >>> people.remaining()["epsilon"]
    Fraction(1, 2)
    """

    def __init__(
        self,
        frame: Any,
        *,
        user: str | Sequence[str],
        schema: Schema,
        epsilon: Epsilon | None = None,
        delta: Delta = 0,
        neighbors: Neighbors = "add-remove",
        composition: str | None = None,
        added_delta: Delta | None = None,
        n_users: int | None = None,
        ledger: PrivacyLedger | None = None,
        exact_ids: bool = False,
        written_ids: bool = False,
        memory: int = MEMORY,
        directory: str | None = None,
    ) -> None:
        if not isinstance(schema, Schema):
            raise TypeError(f"schema must be a Schema; got {short_repr(schema)}")
        relation = check_neighbors(neighbors)
        self._table = table_of(frame)
        columns = _user_columns(user)
        for name, given in (("exact_ids", exact_ids), ("written_ids", written_ids)):
            if not isinstance(given, bool):
                raise TypeError(f"{name} must be True or False; got {short_repr(given)}")
        for name in columns:
            if name not in self._table.names:
                raise ValueError(f"user={name!r} is no column of the frame, whose columns are {_names(self._table)}")
            # A part of an id, such as a shop that has its own customers, may be a column like others.
            if name in schema and len(columns) == 1:
                raise ValueError(
                    f"schema: {name!r} is the column of user ids, of which nothing is released; leave it out"
                )
        missing = next((name for name in schema if name not in self._table.names), None)
        if missing is not None:
            raise ValueError(f"schema: {missing!r} is no column of the frame, whose columns are {_names(self._table)}")
        twice = next((name for name in (*columns, *schema) if self._table.names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"frame has several columns of the name {twice!r}; rename them")
        heads = self._table.heads(list(dict.fromkeys((*schema, *columns))))
        for head in heads:
            for name in columns:
                if name not in head:
                    raise ValueError(f"user={name!r}: a file of the dataset has no such column")
                error = refused(head[name], f"user={name!r}", "id", "ids")
                if error is not None:
                    raise error
            for name, kind in schema.items():
                if name in head:
                    kind.read(head[name], name)
        # Digits beyond doubles tell values apart only where no value can have made doubles of them.
        exact = {name for name in (*schema, *columns) if all(name not in one or one[name].declared for one in heads)}
        digits = exact_ids or exact.issuperset(columns)
        spelling: Spelling = "written" if written_ids else "digits" if digits else "doubles"
        resolved = {name: _resolved(kind, name, name in exact, self._table.marks) for name, kind in schema.items()}
        self._user, self._schema = UserColumns(columns, spelling), Schema(resolved)
        self._where: dict[str, Any] = {"memory": _memory(memory), "directory": _directory(directory)}
        self._heads = Heads(heads)
        self._n_users = None if n_users is None else check_count(n_users, "n_users")
        self.neighbors: Neighbors = relation
        self.ledger = _ledger(schema, epsilon, delta, relation, composition, added_delta, ledger)

    @property
    def schema(self) -> Schema:
        """The columns that queries may use."""
        return self._schema

    def query(self) -> Query:
        """Begin a query: all rows, and nothing asked yet."""
        return Query()

    def remaining(self) -> Mapping[str, Fraction | LogRatio]:
        """What is left of the budget, in the ledger's currencies."""
        return self.ledger.remaining()

    def __repr__(self) -> str:
        columns = ", ".join(self._schema)
        user = self._user.columns[0] if len(self._user.columns) == 1 else list(self._user.columns)
        return f"Session(user={user!r}, columns: {columns}; neighbors={self.neighbors!r})\n{self.ledger!r}"

    def plan(
        self,
        query: Query,
        *,
        epsilon: Epsilon | None = None,
        delta: Delta | None = None,
        rho: Delta | None = None,
        mu2: Delta | None = None,
        n_users: int | None = None,
    ) -> Plan:
        """Say what a release would cost and how wrong it would be; nothing is read or spent.

        Parameters
        ----------
        query : Query
        epsilon, delta, rho, mu2
            As for `release`.
        n_users : int, optional
            How many users to assume for the errors of means; by default the session's.

        Raises
        ------
        TypeError, ValueError, PrivacyBudgetError
            As `release`.
        """
        budget = self._budget(query, epsilon, delta, rho, mu2)
        meant = compiled(query, self._schema)
        noise = allot(meant, self.neighbors, budget)
        # What is refused of how rows are read is refused here, and not after a charge.
        self._read(meant, self._heads)
        users = self._n_users if n_users is None else check_count(n_users, "n_users")
        reads = {"Ids": IDS[self._user.spelling], **_reads(meant, self._schema, self._table)}
        return Plan(meant, noise, users, self.neighbors, reads)

    def release(
        self,
        query: Query,
        *,
        epsilon: Epsilon | None = None,
        delta: Delta | None = None,
        rho: Delta | None = None,
        mu2: Delta | None = None,
        name: str | None = None,
        random_state: int | None = None,
    ) -> Release:
        """Answer a query with privacy for users, and charge it.

        Parameters
        ----------
        query : Query
            With agg.
        epsilon : privacy parameter, optional
            How much of the budget it may take. With composition "zcdp" and "exact" it is what the release would cost
            alone, at the session's delta. By default all that is left.
        delta : float, Fraction or decimal string, optional
            With "basic": of this release; by default epsilon's share of the session's. Otherwise: for groups that are
            not known beforehand; by default the share of `added_delta` that it takes of rho or mu2.
        rho : float, Fraction or decimal string, optional
            With "zcdp": in place of epsilon.
        mu2 : float, Fraction or decimal string, optional
            With "exact": in place of epsilon, the mu^2 of Gaussian noise, as in `PrivacyCost`.
        name : str, optional
            For the ledger.
        random_state : int, optional
            For tests only: reproducible noise, and a reproducible choice of the groups of a user, protect nobody. It
            warns.

        Returns
        -------
        Release

        Raises
        ------
        TypeError, ValueError
            For a query that the schema does not allow.
        PrivacyBudgetError
            When it would cost more than is left. Not a row has been read then.
        RuntimeError
            When the table cannot be read to its end. It is charged.
        """
        source = source_of(random_state)
        plan = self.plan(query, epsilon=epsilon, delta=delta, rho=rho, mu2=mu2)
        names = (*plan.query.group, *query.aggregates)
        label = (", ".join(names) or "keys") if name is None else str(name)
        finder = plan.noise.finder
        if finder is None:
            # What chooses the keys that count is of the same stream, so that the whole release can be repeated.
            coins = None if random_state is None else source.below(2**256).to_bytes(32, "big")
            drawn = self._charged(
                plan.cost, label, plan.query, lambda sums: draw(plan.query, plan.noise, sums, source), coins
            )
        else:
            drawn = self._charged(
                plan.cost, label, plan.query, lambda held: draw_keys(plan.query, finder, held[0], held[1], source)
            )
        caveats = () if random_state is None else ("The noise was reproducible (random_state): it protects nobody.",)
        return Release(plan.query, plan.noise, drawn, self._facts(plan), self.neighbors, caveats, self._table.backend)

    def suggest_bound(
        self,
        query: Query,
        *,
        epsilon: Epsilon | None = None,
        rho: Delta | None = None,
        mu2: Delta | None = None,
        then: Epsilon,
        name: str | None = None,
        random_state: int | None = None,
    ) -> Suggestion:
        """Choose a bound privately: how many rows of a user should count, or to what a total should be clamped.

        Parameters
        ----------
        query : Query
            All rows or a filter, and agg with one ``count_rows(most)`` or one ``sum(column, max_total=most)`` of what
            is never negative. The bound is at most what is given there.
        epsilon, rho, mu2
            As for `release`: what the choice costs. A fifth of what the release afterwards takes is a good part.
        then : privacy parameter
            The epsilon that the release with the bound will take: how much noise there will be decides which bound is
            best. Public, and not spent here.
        name, random_state
            As for `release`.

        Returns
        -------
        Suggestion
            With `bound`, about a power of the square root of 2 times the lowest candidate, and `cost`.

        Notes
        -----
        How many users are between each two candidates is released with noise; one user is in one of these bins. What is
        made of these numbers costs nothing more. The noise hides some users, so few of them cannot be seen well: give a
        bound where users times `then` is below about 200. The bound is most often within twice of the best one's error,
        rarely within 1.3 times (docs/tables.md).

        Examples
        --------
        >>> import pandas as pd
        >>> from userdp.tables import Schema, Session, count_rows, number
        >>> visits = pd.DataFrame({"who": [i for i in range(2000) for _ in range(1 + i % 8)], "spent": 1.0})
        >>> people = Session(visits, user="who", schema=Schema(spent=number(0, 9)), epsilon=2)
        >>> query = people.query().agg(rows=count_rows(1000))
        >>> people.suggest_bound(query, epsilon="1/2", then=1).cost
        PrivacyCost(epsilon=Fraction(1, 2), neighbors='add-remove')
        """
        source = source_of(random_state)
        search = search_of(query, self._schema)
        noise = noise_of(search, self.neighbors, self._budget(query, epsilon, None, rho, mu2))
        # Beside any smaller one no total counts.
        deviation = math.sqrt(2) / max(float(nonzero_level(then, "then")), LEAST_EPSILON)
        label = f"bound of {', '.join(query.aggregates)}" if name is None else str(name)

        def drawn(sums: Sums) -> int:
            return bound_of(search, noise.released(search.users_between(sums), source), noise, deviation)

        self._read(search.query, self._heads)
        bound = search.candidates[self._charged(noise.cost, label, search.query, drawn)]
        return Suggestion(bound if search.unit == 1.0 else bound * search.unit, noise.cost)

    def _read(self, query: Compiled, table: Rows, coins: bytes | None = None) -> Any:
        """What a release draws on: what users add up to, or which keys they have."""
        if query.query.union is not None:
            return keys_of_users(query, table, self._user, self._schema, **self._where)
        return add_up(query, table, self._user, self._schema, coins=coins, **self._where)

    def _charged(
        self, cost: PrivacyCost, label: str, query: Compiled, draws: Callable[[Any], _T], coins: bytes | None = None
    ) -> _T:
        """Charge, then read the table, add up, and draw."""
        return self._after_charge(cost, label, lambda: draws(self._read(query, self._table, coins)))

    def _after_charge(self, cost: PrivacyCost, label: str, reads: Callable[[], _T]) -> _T:
        """Charge, then read the table and draw; whatever goes wrong then is one error without a reason."""
        self.ledger.spend(cost, label)
        drawn = None
        try:
            drawn = reads()
        except KeyboardInterrupt:
            raise
        except BaseException:  # polars' panics, and whatever a lazy frame runs, are of the rows as well
            pass
        if drawn is None:
            # Outside of any handler: an exception keeps the one that was being handled, and that one shows rows.
            raise RuntimeError(FAILED)
        return drawn

    def as_finite_algorithm(
        self,
        query: Query,
        *,
        n_users: int,
        keys: Sequence[Any] | None = None,
        epsilon: Epsilon | None = None,
        delta: Delta | None = None,
        rho: Delta | None = None,
        mu2: Delta | None = None,
    ) -> TableAlgorithm | KeysAlgorithm:
        """Return what `release` would draw on small worlds, for exact audits; the session's table is not looked at.

        Parameters
        ----------
        query : Query
            With agg, or of keys only.
        n_users : int
            How many users the worlds have at most.
        keys : sequence, optional
            Where keys are unknown: those that the worlds may have, as tuples of one value for each column.
        epsilon, delta, rho, mu2
            As for `release`.

        Returns
        -------
        TableAlgorithm or KeysAlgorithm
            For `userdp.audit.audit_user_level`. An example is a row, as a tuple of the values of its `columns`, or None
            for no row.
        """
        plan = self.plan(query, epsilon=epsilon, delta=delta, rho=rho, mu2=mu2)
        if plan.noise.finder is not None:
            return KeysAlgorithm(plan.query, plan.noise.finder, self._schema, keys=keys)
        return TableAlgorithm(plan.query, plan.noise, self._schema, n_users=n_users, keys=keys)

    def before_noise(self, query: Query, *, coins: bytes = bytes(32)) -> dict[str, NoiseFree]:
        """Return what `release` adds noise to, as functions of a table; the session's table is not looked at.

        Parameters
        ----------
        query : Query
            With agg. Quantiles and histograms are not in the answer.
        coins : bytes
            32 bytes that decide which keys of a user count, where there are more than `max_keys`.

        Returns
        -------
        dict from str to NoiseFree
            For each statistic (users, rows, sums) the function of a table, by the code that `release` runs, and the
            sensitivity that its noise is made for. ``before_noise(query)["users"].audit(schema=...)`` audits one.
        """
        if not isinstance(coins, bytes) or len(coins) != 32:
            raise ValueError("coins must be 32 bytes")
        return paths_before_noise(compiled(query, self._schema), self._schema, self._user, self.neighbors, coins)

    def _budget(self, query: Query, epsilon: Any, delta: Any, rho: Any, mu2: Any) -> Budget:
        composition = self.ledger.composition
        for name, value, own in (("rho", rho, "zcdp"), ("mu2", mu2, "exact")):
            if value is not None and composition != own:
                others = {"zcdp": " or rho", "exact": " or mu2"}.get(composition, "")
                raise ValueError(
                    f"{name} is for a session with composition={own!r}, and this one has {composition!r}: pass "
                    f"epsilon{others}"
                )
        unknown = compiled(query, self._schema).unknown
        left, limits = self.ledger.remaining(), self.ledger.limits
        if composition == "basic":
            if epsilon is None and _number(left["epsilon"]) <= _number(limits["epsilon"]) / WORTHLESS:
                raise PrivacyBudgetError(SPENT)
            level = as_epsilon(nonzero_level(left["epsilon"] if epsilon is None else epsilon))
            if not at_most(parse_level(level), parse_level(left["epsilon"])):
                needed, rest = apart(value_enclosure(parse_level(level))[1], rational_below(left["epsilon"]))
                raise PrivacyBudgetError(f"the release needs epsilon {needed}, and {rest} is left")
            if delta is None:
                share = rational_below(level) / rational_below(self.ledger.epsilon)
                part = min(_number(limits["delta"]) * min(share, Fraction(1)), _number(left["delta"]))
            else:
                part = parse_delta(delta)
            return Budget("basic", level, part)
        # What is counted: rho or mu2, and the most of it that one release alone may have.
        currency, alone = ("rho", largest_rho) if composition == "zcdp" else ("mu2", largest_mu2)
        given = rho if composition == "zcdp" else mu2
        if given is not None and epsilon is not None:
            raise TypeError(f"pass epsilon or {currency}, not both")
        most, limit = _number(left[currency]), _number(limits[currency])
        if not limit:
            raise PrivacyBudgetError("the ledger was made with gaussian=0, and a session draws from a budget of mu2")
        if given is not None:
            wanted = parse_positive(given, currency, printed=True)
        elif epsilon is not None:
            level = as_epsilon(nonzero_level(epsilon))
            beside = _number(limits["delta"])
            wanted = alone(level, self.ledger.delta - beside)
            # The whole promise at once is what the ledger has, up to what it sets aside for distances.
            wanted = min(wanted, limit) if level == self.ledger.epsilon else wanted
        elif most <= limit / WORTHLESS:
            raise PrivacyBudgetError(SPENT)
        else:
            wanted = most
        if wanted > most:
            needed, rest = apart(wanted, most)
            raise PrivacyBudgetError(f"the release needs {currency} {needed}, and {rest} is left")
        counted = {currency: wanted, "distance": _number(left["distance"])}
        if not unknown:
            if delta is not None:
                raise ValueError("delta is for groups that are not known beforehand; this query has none")
            return Budget(composition, None, Fraction(0), **counted)
        share = wanted / limit
        part = min(_number(limits["delta"]) * share, _number(left["delta"])) if delta is None else parse_delta(delta)
        if part == 0:
            raise PrivacyBudgetError(
                "groups that are not known beforehand need a part of delta, and none is left for them: make the "
                "session with added_delta=, or give the public list of keys"
            )
        return Budget(composition, None, part, **counted)

    def _facts(self, plan: Plan) -> dict[str, str]:
        """What the card says of the query; of public objects only."""
        change = (
            "added or removed; the number of users is private"
            if self.neighbors == "add-remove"
            else "replaced by any others; the list of ids is public"
        )
        meant = plan.query
        user = " and ".join(map(repr, self._user.columns))
        facts = {"Protected": f"all rows of one {user}, which are {change}", "Ids": IDS[self._user.spelling]}
        if self.ledger.composition != "basic":
            # Neither a rho nor a mu2 is a promise by itself.
            facts["Promise"] = (
                "all releases of the session together are (epsilon, delta)-private: epsilon "
                f"{float(parse_level(self.ledger.epsilon)):.6g}, delta {float(self.ledger.delta):.6g}"
            )
        steps = [
            f"{step!r}" if not isinstance(step, tuple) else f"{step[0]} = {step[1]!r}" for step in meant.query.steps
        ]
        if steps:
            facts["Rows"] = "; ".join(steps)
        if meant.group:
            keys = f"a public list of {meant.n_keys}"
            if meant.unknown:
                keys = "private: groups of too few users are not shown"
            if meant.listed:
                keys = f"a public list of {meant.listed}, and others that are {keys}"
            rule = "drawn anew" if meant.rule == "random" else "the first in order"
            every = meant.n_keys is not None and meant.max_keys >= meant.n_keys
            facts["Groups"] = f"by {', '.join(meant.group)}; the keys are {keys}"
            facts["Groups of a user"] = "all count" if every else f"at most {meant.max_keys} count, {rule}"
        for column in dict.fromkeys(meant.used):
            if column not in meant.group:
                facts[f"Column {column}"] = repr(meant.types[column])
        facts |= _reads(meant, self._schema, self._table)
        return facts


def _names(table: Rows) -> str:
    return ", ".join(map(repr, table.names))


def _memory(memory: Any) -> int:
    if not LEAST_MEMORY <= check_count(memory, "memory") < 2**63:
        raise ValueError(f"memory must be from 2**16 to below 2**63 bytes; got {short_repr(memory)}")
    return int(memory)


def _directory(directory: Any) -> str:
    """A directory in which a file can be made, by making one; by its whole name, as a process may go elsewhere."""
    if directory is not None and not isinstance(directory, (str, os.PathLike)):
        raise TypeError(f"directory must be the name of a directory, a str; got {short_repr(directory)}")
    try:
        place = os.path.abspath(tempfile.gettempdir() if directory is None else os.fsdecode(directory))
        with tempfile.TemporaryFile(dir=place):
            return place
    except (OSError, ValueError) as error:
        raise ValueError(
            f"directory must be one in which files can be made; got {short_repr(directory)}: {error}"
        ) from None


def _user_columns(user: Any) -> tuple[str, ...]:
    """The columns of ids."""
    columns = (user,) if isinstance(user, str) else tuple(user) if isinstance(user, (list, tuple)) else ()
    if not 1 <= len(columns) <= 64 or not all(isinstance(name, str) for name in columns):
        raise TypeError(f"user must be the name of a column, or a list of names; got {short_repr(user)}")
    if len(set(columns)) < len(columns):
        raise ValueError(f"user: names must be distinct; got {short_repr(user)}")
    return columns


def _resolved(kind: Any, name: str, exact: bool, marks: Marks | None) -> Any:
    """A column's type with all digits, where its values cannot have lost some, and with the marks of its texts."""
    if not isinstance(kind, (Category, Key)):
        return kind
    spelling = "digits" if exact and kind.spelling == "doubles" else kind.spelling
    made = replace(kind, spelling=spelling, marks=marks)
    if isinstance(made, Category):
        check_spelled(made.values, f"schema: {name!r}", made.spelling, marks=marks)
    return made


def _reads(query: Compiled, schema: Schema, table: Rows) -> dict[str, str]:
    """What is read of the table's columns, in public sentences."""
    facts = {f"Read of {name}": schema[name].sentence for name in query.columns}
    return facts if table.dialect is None else {**facts, "Read by": table.dialect}


def _number(value: Fraction | LogRatio) -> Fraction:
    return value if isinstance(value, Fraction) else rational_below(value)


def _ledger(
    schema: Schema,
    epsilon: Epsilon | None,
    delta: Delta,
    neighbors: Neighbors,
    composition: str | None,
    added_delta: Delta | None,
    ledger: PrivacyLedger | None,
) -> PrivacyLedger:
    if ledger is not None:
        if epsilon is not None or composition is not None or added_delta is not None or delta != 0:
            raise TypeError("pass a ledger, or epsilon, delta and composition; not both")
        if not isinstance(ledger, PrivacyLedger):
            raise TypeError(f"ledger must be a PrivacyLedger; got {short_repr(ledger)}")
        if (ledger.unit, ledger.neighbors) != ("user", neighbors):
            raise ValueError(
                f"ledger: it protects one {ledger.unit} with neighbors {ledger.neighbors!r}, and the session a user "
                f"with {neighbors!r}; they do not add up"
            )
        return ledger
    if epsilon is None:
        raise TypeError("a session needs epsilon, or a ledger")
    exact = parse_delta(delta)
    kind = ("zcdp" if exact else "basic") if composition is None else composition
    if not isinstance(kind, str) or kind not in ("zcdp", "exact", "basic"):
        raise ValueError(f"composition must be 'zcdp', 'exact' or 'basic'; got {short_repr(composition)}")
    if kind == "exact" and not exact:
        raise ValueError("composition='exact' counts Gaussian noise, which needs a positive delta; 'basic' has no need")
    if kind != "basic":
        if added_delta is None:
            added_delta = exact / 2 if any(isinstance(column, Key) for column in schema.values()) else Fraction(0)
        return PrivacyLedger(epsilon, delta, kind, neighbors=neighbors, added_delta=added_delta)  # type: ignore[arg-type]
    if added_delta is not None:
        raise ValueError("added_delta is for composition='zcdp' and 'exact'; 'basic' counts every delta")
    return PrivacyLedger(epsilon, delta, neighbors=neighbors)
