"""Open faults of OpenDP's Polars plans, found by OpenDP itself without its noise; and right plans without an alarm.

Needs opendp[polars], and a Polars that it goes with. Which pairs of tables show a fault is said nowhere: values come
from the types of columns and from constants of the plans.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

dp = pytest.importorskip("opendp.prelude")
pl = pytest.importorskip("polars")

from userdp.audit.adapters import from_opendp_builder, from_opendp_measurement  # noqa: E402

if not pl.__version__.startswith("1."):
    pytest.skip("OpenDP goes with Polars 1", allow_module_level=True)
dp.enable_features("contrib", "honest-but-curious")

Build = Callable[[float], Any]
ROW_AND_ROW = [dp.polars.Bound(per_group=2)] if hasattr(dp, "polars") else []
ONE_ROW = [dp.polars.Bound(per_group=1)] if hasattr(dp, "polars") else []


def plan_of_x(query: Callable[[Any, float], Any], cells: Any, **margin: Any) -> Build:
    """A plan over one column of floats."""

    def build(scale: float) -> Any:
        domain = dp.with_margin(
            dp.lazyframe_domain([dp.series_domain("x", cells)]), dp.polars.Margin(**{"max_length": 8, **margin})
        )
        asked = pl.LazyFrame(schema={"x": pl.Float64}).select(query(pl.col("x"), scale))
        distance = dp.frame_distance(dp.symmetric_distance())
        return dp.m.make_private_lazyframe(domain, distance, dp.max_divergence(), asked, global_scale=scale)

    return build


def holes(**of: Any) -> Any:
    return dp.option_domain(dp.atom_domain(T=float, **of))


LENGTHS_PUBLIC: dict[str, Any] = {"schema": {"x": float}, "neighbors": "replace", "invariant": len}
ROWS: dict[str, Any] = {"schema": {"x": float}, "neighbors": "add-remove", "null": False, "nan": False}
COUNTED = {"invariant": "lengths"}
BY_X: dict[str, tuple[Build, Any, dict[str, Any], bool]] = {
    "2938: casts that fail are nulls": (
        plan_of_x(lambda x, s: x.fill_null(0.0).cast(pl.Int64, strict=False).count().dp.noise(), holes(), **COUNTED),
        ROW_AND_ROW,
        LENGTHS_PUBLIC,
        False,
    ),
    "2939: cut makes nulls of NaN": (
        plan_of_x(lambda x, s: x.fill_null(0.0).cut([1.5]).count().dp.noise(), holes(), **COUNTED),
        ROW_AND_ROW,
        LENGTHS_PUBLIC,
        False,
    ),
    "2944: codes of cut by arrival": (
        plan_of_x(lambda x, s: x.cut([1.0]).to_physical().dp.sum((0, 1), scale=s), dp.atom_domain(T=float, nan=False)),
        ONE_ROW,
        ROWS,
        False,
    ),
    "2936: null filled by NaN": (
        plan_of_x(lambda x, s: x.fill_null(float("nan")).clip(0.0, 1.0).sum().dp.noise(scale=s), holes(nan=False)),
        ONE_ROW,
        ROWS | {"null": True},
        False,
    ),
    "count of rows that are filled": (
        plan_of_x(lambda x, s: x.fill_null(0.0).count().dp.noise(), holes(), **COUNTED),
        ROW_AND_ROW,
        LENGTHS_PUBLIC,
        True,
    ),
    "clipped sum": (
        plan_of_x(lambda x, s: x.dp.sum((0.0, 1.0), scale=s), dp.atom_domain(T=float, nan=False)),
        ONE_ROW,
        ROWS,
        True,
    ),
}


@pytest.mark.parametrize("name", BY_X)
def test_plans_of_rows(name: str) -> None:
    build, d_in, asked, right = BY_X[name]
    program = from_opendp_builder(build, d_in)
    report = program.audit(**asked, letters=6)
    assert report.holds is right
    if not right:
        assert report.verify(program).refuted
        assert report.witness is not None
        # As few rows as show it: beside two others, or one alone.
        rows = len(report.witness.first) + len(report.witness.second)
        assert rows == (5 if d_in is ONE_ROW else 2)


def counts(merged: bool) -> Build:
    """Rows of a user bounded in each of three groups; and groups merged after that."""

    def build(scale: float) -> Any:
        ids = {"id": pl.Int64, "g": pl.Int64}
        bounded = (
            pl.LazyFrame(schema=ids)
            .filter(pl.int_range(pl.len()).over("id", "g") < 1)
            .filter(pl.struct("g").rank("dense").over("id") < 4)
        )
        if merged:
            bounded = bounded.with_columns(g=pl.lit(0, dtype=pl.Int64))
        listed = pl.LazyFrame({"g": [0] if merged else [0, 1, 2]})
        query = listed.join(bounded.group_by("g").agg(dp.len(scale=scale, signed=True)), on="g", how="left")
        domain = dp.lazyframe_domain([dp.series_domain(name, dp.atom_domain(T="i64")) for name in ids])
        distance = dp.symmetric_id_distance(identifier=pl.col("id"))
        return dp.m.make_private_lazyframe(domain, distance, dp.zero_concentrated_divergence(), query)

    return build


@pytest.mark.parametrize("merged", [True, False])
def test_2949_bounds_by_a_column_that_is_redefined(merged: bool) -> None:
    program = from_opendp_builder(counts(merged), 1)
    report = program.audit(
        schema={"g": int},
        user="id",
        neighbors="add-remove",
        null=False,
        keys="g",
        letters=3,
        max_users=2,
        total_rows=2 if merged else 3,
    )
    assert report.holds is not merged
    if merged:
        assert report.witness is not None
        assert report.verify(program).refuted
        assert report.witness.change.l2_squared == 4
        assert [row[0] for row in report.witness.first] == [0, 0]


def sums(max_length: int) -> Build:
    """A sum by group where a group has at most so many rows."""

    def build(scale: float) -> Any:
        schema = {"town": pl.String, "y": pl.Int32}
        query = pl.LazyFrame(schema=schema).group_by("town").agg(pl.col("y").dp.sum((-7, 7), scale=scale))
        columns = [dp.series_domain("town", dp.atom_domain(T=str)), dp.series_domain("y", dp.atom_domain(T="i32"))]
        margin = dp.polars.Margin(by=["town"], max_length=max_length, max_groups=1, invariant="keys")
        domain = dp.with_margin(dp.lazyframe_domain(columns), margin)
        return dp.m.make_private_lazyframe(domain, dp.symmetric_distance(), dp.max_divergence(), query)

    return build


@pytest.mark.parametrize("max_length", [2, 8])
def test_2945_rows_that_are_replaced_count_on_both_sides(max_length: int) -> None:
    """A user of two rows who is replaced: the sum changes by 4 times 7, of which a small group is charged half."""
    plan = from_opendp_builder(sums(max_length), 4, drop=["who"])

    def narrowed(frame: Any) -> Any:
        return plan(frame.with_columns(pl.col("y").cast(pl.Int32)))

    report = type(plan)(narrowed, plan.claim, plan.options, plan.source).audit(
        schema={"town": ("a",), "y": int},
        user="who",
        keys="town",
        null=False,
        bounds={"y": (-7, 7)},
        alphabets={"town": ["a"]},
        constants=(),
        letters=6,
        max_users=1,
        max_rows=2,
        domain=lambda rows: 0 < len(rows) <= 2,
    )
    assert report.worst.l1 == 28 if max_length == 8 else report.worst.l1 > 14
    assert report.holds is (max_length == 8)


@pytest.mark.filterwarnings("ignore:'json' serialization format")
def test_the_noise_of_a_plan_is_taken_out() -> None:
    """The same numbers as from the builder, and the claim at the plan's own scale."""
    cells = dp.atom_domain(T=float, nan=False)
    build = plan_of_x(lambda x, s: x.dp.sum((0.0, 1.0), scale=s), cells)
    empty = pl.LazyFrame(schema={"x": pl.Float64})
    whole = from_opendp_measurement(build(3.0), ONE_ROW, empty=empty)
    built = from_opendp_builder(build, ONE_ROW)
    assert 0 <= whole.claim["l1"] - built.claim["l1"] < 1e-9
    frame = pl.LazyFrame({"x": [0.25, 7.0, -1.0]})
    assert whole(frame).item() == built(frame).item() == 1.25
    assert whole.audit(**ROWS, letters=4).holds is True
    codes = plan_of_x(lambda x, s: x.cut([1.0]).to_physical().dp.sum((0, 1), scale=s), cells)
    found = from_opendp_measurement(codes(5.0), ONE_ROW, empty=empty).audit(**ROWS)
    assert (found.holds, found.worst.l1) == (False, 2)


@pytest.mark.filterwarnings("ignore:'json' serialization format")
def test_noise_that_cannot_be_read_is_refused() -> None:
    cells = dp.atom_domain(T=float, nan=False)
    empty = pl.LazyFrame(schema={"x": pl.Float64})
    free = plan_of_x(lambda x, s: x.count().dp.noise(), cells, **COUNTED)(1.0)
    # What costs nothing has noise of scale 0, and must not change.
    assert from_opendp_measurement(free, ROW_AND_ROW, empty=empty).claim == {"l1": 0}
    with pytest.raises(ValueError, match="its plan cannot be seen"):
        from_opendp_measurement(lambda frame: 0, ONE_ROW, empty=empty)
    domain = dp.with_margin(dp.lazyframe_domain([dp.series_domain("x", cells)]), dp.polars.Margin(max_length=8))
    x = pl.col("x")
    query = pl.LazyFrame(schema={"x": pl.Float64}).select(
        x.dp.sum((0.0, 1.0), scale=2.0).alias("a"), x.dp.sum((0.0, 2.0), scale=3.0).alias("b")
    )
    two = dp.m.make_private_lazyframe(domain, dp.frame_distance(dp.symmetric_distance()), dp.max_divergence(), query)
    with pytest.raises(ValueError, match="2 scales"):
        from_opendp_measurement(two, ONE_ROW, empty=empty)
    with pytest.raises(TypeError, match="build must be"):
        from_opendp_builder(3, ONE_ROW)  # type: ignore[arg-type]
