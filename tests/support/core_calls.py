"""One small valid call of everything in the compiled core, and extreme arguments in place of each of its arguments.

``python core_calls.py NAME ...`` makes the calls of these names, with 4 GiB of addresses and two minutes of processor.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from userdp import _core

F = Fraction
Call = tuple[Callable[..., Any], tuple[Any, ...]]

LEVEL = _core.Level(F(1), F(1))
SOURCE = _core.Source(1)
SEED = _core.PublicSeed(bytes(32))
P, Q = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.5, 0.25])
WEIGHTS = ([1, 2, 1], 4)
MATRIX = _core.PmfMatrix.from_floats(np.array([P, Q, Q]))
SCORES = np.array([1, 2, 3], np.int64)
STARTS = np.array([0, 2, 4], np.uint64)
ROWS = (np.array([0, 1, 1], np.uint32), np.array([0, 0, 1], np.uint32), 2, 2)
BITS = np.array([[0, 1], [1, 1]], np.uint8)
LABELS = np.array([0, 1, 1], np.uint8)
FAMILY = [P, Q, WEIGHTS]
RATE = _core.ExponentialRate(LEVEL, 1, False)
GROUPED = _core.GroupedExponentialRate(LEVEL, 1, False)
FLIPS = _core.PermuteAndFlipRate(LEVEL, 1, False)
GRID = _core.Granularity(F(1, 4))
SELECTION = _core.ScoreSelection(LEVEL, 1)
SPACES = _core.VersionSpaces(np.array([[0, 1, 0], [1, 1, 0], [0, 0, 1]], np.uint8))
REFUSAL = _core.RefusalTable(LEVEL, F(1, 100))
TDLAP = _core.TruncatedDiscreteLaplaceTable(LEVEL, F(1, 100), False)
GAUSSIAN = _core.DiscreteGaussian(F(4))
LAPLACE = _core.DiscreteLaplaceTables(LEVEL, 0, 5)
SWEEP = _core.ThresholdSweep(np.array([1, 2, 3], np.uint64), LABELS, ROWS[1], 2, 2, 5)
USERS = _core.RowsOfUsers(ROWS[1], 2)
POINTS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
MEANS = _core.UserVectors.means(POINTS, USERS, "euclidean", 1.0, [0.0, 0.0], None)
GRADIENTS = {"loss": "logistic", "parameter": 1.0, "theta": [0.0, 0.0], "bound": 1.0, "intercept": False}
JOINT = _core.JointRows(POINTS, None, USERS, "max")
WHITENED = JOINT.whitened(np.array([1.0, 0.0, 1.0]), [0.0, 0.0], [1.0, 1.0], np.eye(2), False, 9.0)
TARGETED = _core.JointRows(POINTS, np.array([1.0, -1.0, 1.0]), USERS, "max")
VECTOR = np.array([0.0, 1.0])
DIRECT = _core.LocalRandomizer.randomized_response(LEVEL, 4, 0)
NOISE = _core.ShuffleNoise(F(2), F(1, 2), 10, False)


def stable_family() -> _core.StableFamily:
    family = _core.StableFamily([2, 2], 2, 2)
    family.mark([2, 0], [0, 2])
    return family


def stable_search(values: Any = None) -> _core.StableSearch:
    return _core.StableSearch([1, 2, 1], 0, 2, 1, 2, 9, LEVEL, F(1, 100), values is not None, values)


def asked_search() -> _core.StableSearch:
    search = _core.StableSearch([2, 2], 0, 2, 1, 2, 9, LEVEL, F(1, 100), False)
    search.step()
    return search


def gradients(records: Any, targets: Any, *values: Any) -> Any:
    vectors = _core.UserVectors.gradients(records, targets, USERS, **dict(zip(GRADIENTS, values, strict=True)))
    return vectors.clipped_sum(VECTOR, 1.0, 0.25)


def means(*arguments: Any) -> Any:
    return _core.UserVectors.means(*arguments).clipped_sum(VECTOR, 1.0, 0.25)


RELEASE = _core.Release.pure(LEVEL, F(0), 2)
COMPOSED = _core.Composed([RELEASE], [3], limbs=2, resolution=F(1, 100), cut=0, max_terms=100, reach=10.0)

RESPONSES = _core.Responses(3, 1, 4)


BETWEEN = [F(1, 100)] * (len(_core.key_groups_between(2)) - 1)
UNION = _core.UnionRounds(
    [(F(9), F(0), [F(1, 100), F(1, 200)], [])],
    weight=2,
    max_keys=2,
    replace=True,
    walk=False,
    slack=0,
    moved=4,
)


def keys_delta(
    max_keys: Any, replace: Any, hidden: Any, distance: Any, low: Any, high: Any, limit: Any, own: Any, common: Any
) -> Any:
    asked = {"max_keys": max_keys, "replace": replace, "hidden": hidden, "distance": distance, "limit": limit}
    return _core.keys_delta(**asked, low=low, high=high, own=own, common=common)


def keys_delta_by(max_keys: Any, hidden: Any, low: Any, curve: Any) -> Any:
    asked = {"max_keys": max_keys, "replace": True, "hidden": hidden, "distance": F(0), "low": low, "high": low}
    return _core.keys_delta(**asked, own=F(0), curve=lambda *_: curve)


def union_rounds(
    variance: Any,
    distance: Any,
    shown: Any,
    between: Any,
    weight: Any,
    max_keys: Any,
    walk: Any,
    slack: Any,
    moved: Any,
) -> Any:
    asked = {"weight": weight, "max_keys": max_keys, "replace": True, "walk": walk, "slack": slack, "moved": moved}
    return _core.UnionRounds([(variance, distance, shown, between)], **asked).delta(F(2), F(2))


def propose_union(max_keys: Any, walk: Any, epsilon: Any, delta: Any, parts: Any) -> Any:
    return _core.propose_union(max_keys, replace=True, walk=walk, epsilon=epsilon, delta=delta, parts=parts)


def propose_histogram(
    max_keys: Any, laplace: Any, epsilon: Any, delta: Any, share: Any, common: Any, probability: Any
) -> Any:
    asked = {"laplace": laplace, "epsilon": epsilon, "delta": delta, "share": share, "common": common}
    return _core.propose_histogram(max_keys, replace=True, **asked, probability=probability)


def composed(releases: Any, counts: Any, limbs: Any, resolution: Any, cut: Any, max_terms: Any, reach: Any) -> Any:
    options = {"limbs": limbs, "resolution": resolution, "cut": cut, "max_terms": max_terms, "reach": reach}
    whole = _core.Composed(releases, counts, **options)
    return whole.delta(LEVEL), whole.epsilon(F(1, 100))


CODES = np.array([0, 1, 1, 0], np.uint32)
NUMBERS = np.array([3, -1, 2**40, 0], np.int64)


CSV = np.frombuffer(b'id,x\n1,"2"\n2,3,\n3,"4\n', dtype=np.uint8)


def csv_reader(
    content: Any,
    separator: Any = 44,
    quote: Any = "line",
    escape: Any = False,
    missing: Any = (),
    letters: Any = None,
    width: Any = None,
) -> _core.CsvReader:
    return _core.CsvReader(
        content, separator=separator, quote=quote, escape=escape, missing=missing, letters=letters, width=width
    )


def table_index() -> _core.TableIndex:
    index = _core.TableIndex()
    index.integers(np.array([7, 8], np.int64))
    return index


INDEX = table_index()


def table_sums(n_values: Any = 2, memory: Any = 2**16) -> _core.TableSums:
    sums = _core.TableSums(n_values, memory=memory)
    sums.add(CODES, CODES, [NUMBERS, NUMBERS])
    return sums


TABLE = table_sums()


def bounded(order: Any, most: Any, columns: Any, digests: Any, key: Any) -> Any:
    options = {"key_order": order, "max_keys": most, "columns": columns, "key_digests": digests, "prf_key": key}
    return TABLE.bounded(users=INDEX, rule="random", **options)


CELLS = np.array([0, 1], np.uint32)


def split_by_key(order: Any, keys: Any, inside: Any, weight: Any) -> Any:
    options = {"key_order": CELLS, "max_keys": 1, "rule": "first", "key_digests": None, "prf_key": None}
    flags = inside != 0 if isinstance(inside, np.ndarray) else inside
    return TABLE.split_by_key(users=INDEX, cell_order=order, keys=keys, inside=flags, weight=weight, **options)


def walked(order: Any, most: Any, digests: Any, key: Any, length: Any, cap: Any) -> Any:
    options = {"key_order": order, "max_keys": most, "key_digests": digests, "prf_key": key}
    return TABLE.walked(users=INDEX, **options, length=length, cap=cap)


def walked_sums(starts: Any, keys: Any, n_keys: Any, length: Any, cap: Any) -> Any:
    return _core.walked_sums(starts, keys, n_keys, length=length, cap=cap)


def packed_texts(content: Any, offsets: Any) -> Any:
    return _core.TableIndex().packed_texts(content, offsets)


TABLE_COLUMNS = [("rows", 3), ("sum", 1, -9, 9, 1), ("mean", 0, 8, 4), ("weighted", 1, 8, 3, 4), ("weight", 9)]
BOUNDED = (np.array([1, 0], np.uint32), 1, TABLE_COLUMNS, INDEX.digests(bytes(32)), bytes(32))


COLUMN = _core.Column.integers(np.array([7, 8, 2**60], np.int64))
TEXTS = np.frombuffer(b"7a2024-01-31", np.uint8)
OFFSETS = np.array([0, 1, 2, 12], np.int64)


def texts(content: Any, offsets: Any, decimal: Any = ".", thousands: Any = None) -> _core.Column:
    return _core.Column.texts(content, offsets, decimal=decimal, thousands=thousands)


def objects(values: Any) -> _core.Column:
    held = np.fromiter(values, dtype=object, count=len(values))
    return _core.Column.objects(held, lambda value: ("text", repr(value)))


CALLS: dict[str, Call] = {
    "Column.bools": (lambda flags: _core.Column.bools(flags != 0), (NUMBERS,)),
    "Column.integers": (_core.Column.integers, (NUMBERS,)),
    "Column.unsigned": (_core.Column.unsigned, (NUMBERS.astype(np.uint64),)),
    "Column.floats": (_core.Column.floats, (NUMBERS.astype(np.float64),)),
    "Column.times": (lambda *given: _core.Column.times(*given).microseconds(), (NUMBERS, "D", 7)),
    "Column.clocks": (lambda *given: _core.Column.clocks(*given).interned("digits"), (NUMBERS, 1000)),
    "Column.decimals": (
        lambda *given: _core.Column.decimals(*given).interned("digits"),
        (np.zeros(32, np.uint8), 16, 2),
    ),
    "Column.texts": (texts, (TEXTS, OFFSETS, ",", ".")),
    "Column.objects": (objects, ([7, "a", None],)),
    "Column.coded": (
        lambda codes: _core.Column.coded(codes, COLUMN).interned("digits"),
        (np.array([0, 2, -1], np.int64),),
    ),
    "Column.joined": (lambda columns: _core.Column.joined(columns).numbers(), ([COLUMN, COLUMN],)),
    "Column.unreadable": (_core.Column.unreadable, (3,)),
    "Column.as_numbers": (COLUMN.as_numbers, ()),
    "Column.numbers": (COLUMN.numbers, (",", ".")),
    "Column.wholes": (COLUMN.wholes, (",", ".")),
    "Column.points": (COLUMN.points, ()),
    "Column.booleans": (COLUMN.booleans, ()),
    "Column.microseconds": (COLUMN.microseconds, ("%m/%d/%Y",)),
    "Column.interned": (COLUMN.interned, ("digits", ",", ".")),
    "check_time_format": (_core.check_time_format, ("%m/%d/%Y",)),
    "owner_codes": (
        lambda columns, spellings: _core.owner_codes(_core.TableIndex(), columns, spellings),
        ([COLUMN, COLUMN], ["digits", "doubles"]),
    ),
    "TableIndex.values": (INDEX.values, ()),
    "TableIndex.ranks": (INDEX.ranks, ()),
    "CsvReader": (csv_reader, (CSV, 44, "rfc", True, [b"NA"], [bytes([byte % 128]) for byte in range(256)], 2)),
    "CsvReader.batch": (lambda columns, rows: csv_reader(CSV).batch(columns, rows, lines=True), ([1, 0], 5)),
    "CsvReader.steps": (lambda: csv_reader(CSV).steps(), ()),
    "TableIndex": (_core.TableIndex, ()),
    "TableIndex.integers": (lambda values: _core.TableIndex().integers(values), (NUMBERS,)),
    "TableIndex.texts": (lambda values: _core.TableIndex().texts(values), ([b"a", b"b"],)),
    "TableIndex.packed_texts": (packed_texts, (np.zeros(4, np.uint8), np.array([0, 1, 4], np.int64))),
    "TableIndex.digests": (INDEX.digests, (bytes(32),)),
    "Pattern": (_core.Pattern, ([97, 43],)),
    "Pattern.matches": (_core.Pattern([97, 43]).matches, (["aa", "b", "\ud800"],)),
    "TableSums": (table_sums, (2, 2**16)),
    "TableSums.add": (lambda *columns: _core.TableSums(2).add(*columns), (CODES, CODES, [NUMBERS, NUMBERS])),
    "TableSums.bounded": (bounded, BOUNDED),
    "TableSums.walked": (walked, (*BOUNDED[:2], *BOUNDED[3:], 2**40, 2**44)),
    "walked_sums": (walked_sums, (np.array([0, 2], np.int64), np.array([0, 1], np.uint32), 2, 2**40, 2**44)),
    "TableSums.split": (TABLE.split, (2, 2**20)),
    "TableSums.split_by_key": (split_by_key, (CELLS, CELLS, np.ones(2, np.int64), 2**20)),
    "Release": (_core.Release.from_weights, ([1, 2, 1], [2, 1, 1], 2)),
    "Release.from_weights": (_core.Release.from_weights, ([1, 2, 1], [2, 1, 1], 2)),
    "Release.pure": (_core.Release.pure, (LEVEL, F(1, 100), 2)),
    "Release.discrete_laplace": (_core.Release.discrete_laplace, (LEVEL, 3, 2)),
    "Release.discrete_gaussian": (_core.Release.discrete_gaussian, (F(4), 2, 2)),
    "Release.bounded_range": (_core.Release.bounded_range, (LEVEL,)),
    "Release.laplace": (_core.Release.laplace, (LEVEL,)),
    "Release.gaussian": (_core.Release.gaussian, (F(1, 4), F(1, 10), True, False)),
    "Release.from_table": (_core.Release.from_table, ([1, 2, 1], 1, -1, F(1, 10), 2)),
    "Composed": (composed, ([RELEASE], [3], 2, F(1, 10), 1, 100, 10.0)),
    "Composed.losses": (COMPOSED.losses, ()),
    "Composed.delta": (COMPOSED.delta, (LEVEL,)),
    "Composed.epsilon": (COMPOSED.epsilon, (F(1, 100),)),
    "Responses": (_core.Responses, (3, 1, 4)),
    "Responses.least_multiplier": (RESPONSES.least_multiplier, (1, 10)),
    "divergence_of_responses": (_core.divergence_of_responses, ([RESPONSES], 5, 2)),
    "grouped_pair": (_core.grouped_pair, ([1, 2, 1], [2, 1, 1], 3)),
    "pair_dominates": (_core.pair_dominates, ([1, 2, 1], [2, 1, 1], [1, 1], [1, 1])),
    "largest_loss": (_core.largest_loss, ([RELEASE], [3])),
    "largest_loss_at_most": (_core.largest_loss_at_most, ([RELEASE], [3], LEVEL)),
    "Level": (_core.Level, (F(2), F(1))),
    "Level.root_below": (LEVEL.root_below, (3,)),
    "ExponentialRate": (_core.ExponentialRate, (LEVEL, 1, False)),
    "ExponentialRate.sample": (RATE.sample, (SCORES, SOURCE, True)),
    "ExponentialRate.sample_many": (RATE.sample_many, (SCORES, SOURCE, 3, True)),
    "ExponentialRate.numerators": (RATE.numerators, (SCORES, True)),
    "ExponentialRate.weights": (RATE.weights, (SCORES, True)),
    "PermuteAndFlipRate": (_core.PermuteAndFlipRate, (LEVEL, 1, False)),
    "PermuteAndFlipRate.sample": (FLIPS.sample, (SCORES, SOURCE, True)),
    "PermuteAndFlipRate.sample_many": (FLIPS.sample_many, (SCORES, SOURCE, 3, True)),
    "PermuteAndFlipRate.numerators": (FLIPS.numerators, (SCORES, True)),
    "PermuteAndFlipRate.bounds": (FLIPS.bounds, (SCORES, True)),
    "check_groups": (_core.check_groups, (STARTS, SCORES, 9)),
    "GroupedExponentialRate": (_core.GroupedExponentialRate, (LEVEL, 1, False)),
    "GroupedExponentialRate.sample": (GROUPED.sample, (STARTS, SCORES, 9, SOURCE)),
    "GroupedExponentialRate.sample_many": (GROUPED.sample_many, (STARTS, SCORES, 9, SOURCE, 3)),
    "GroupedExponentialRate.numerators": (GROUPED.numerators, (STARTS, SCORES, 9)),
    "GroupedExponentialRate.group_numerators": (GROUPED.group_numerators, (STARTS, SCORES, 9)),
    "Granularity": (_core.Granularity, (F(1, 4),)),
    "Granularity.sensitivity": (GRID.sensitivity, (F(1),)),
    "Granularity.of_floats": (GRID.of_floats, (VECTOR, True)),
    "Granularity.of_integers": (GRID.of_integers, (SCORES, True)),
    "PmfMatrix.from_floats": (_core.PmfMatrix.from_floats, (np.array([P, Q]),)),
    "PmfMatrix.from_normalized": (_core.PmfMatrix.from_normalized, (np.array([P, Q]),)),
    "PmfMatrix.from_masses": (_core.PmfMatrix.from_masses, (FAMILY,)),
    "PmfMatrix.row": (MATRIX.row, (1,)),
    "StableFamily": (_core.StableFamily, ([2, 2], 2, 2)),
    "StableFamily.vectors": (stable_family().vectors, ()),
    "StableFamily.mark": (stable_family().mark, ([2, 0], [0, 2])),
    "StableFamily.mark_rows": (stable_family().mark_rows, ([0, 1], [1, 2])),
    "StableFamily.mark_bad_pairs": (stable_family().mark_bad_pairs, (MATRIX, LEVEL, F(1, 100), [1])),
    "StableFamily.is_stable": (stable_family().is_stable, ([1, 1],)),
    "StableFamily.smallest_stable_size": (stable_family().smallest_stable_size, ()),
    "StableFamily.layer_sizes": (stable_family().layer_sizes, ()),
    "StableFamily.draw": (stable_family().draw, (2, MATRIX, SOURCE)),
    "StableFamily.sample": (stable_family().sample, (2, SOURCE.below)),
    "StableFamily.exact_distribution": (stable_family().exact_distribution, ([0, 1, 1], 2)),
    "StableFamily.distribution": (stable_family().distribution, ([0, 1, 1], 2)),
    "StableFamily.exact_output_distribution": (stable_family().exact_output_distribution, ([0, 1, 1], 2, MATRIX)),
    "StableFamily.output_bounds": (stable_family().output_bounds, ([0, 1, 1], 2, MATRIX)),
    "StableSearch": (_core.StableSearch, ([1, 2, 1], 0, 2, 1, 2, 9, LEVEL, F(1, 100), True, [5, 7, 8])),
    "StableSearch.step": (stable_search([5, 7, 8]).step, ()),
    "StableSearch.answer": (lambda *arguments: asked_search().answer(*arguments), (MATRIX, [1])),
    "StableSearch.found": (stable_search().found, ()),
    "StableSearch.work": (stable_search().work, ()),
    "outside_smallest_cover": (_core.outside_smallest_cover, (FAMILY, LEVEL, F(1, 100), 1)),
    "draw_of_rows": (_core.draw_of_rows, (MATRIX, SOURCE)),
    "draw_of_window": (_core.draw_of_window, ([0, 1, 1], 1, MATRIX, SOURCE)),
    "Source": (_core.Source, (7,)),
    "Source.listed": (_core.Source.listed, (b"bytes",)),
    "Source.bits": (SOURCE.bits, ()),
    "Source.below": (SOURCE.below, (5,)),
    "Source.index_below": (SOURCE.index_below, (5,)),
    "Source.subset": (SOURCE.subset, (5, 2)),
    "Source.weighted": (SOURCE.weighted, ([1, 2],)),
    "PublicSeed": (_core.PublicSeed, (bytes(32),)),
    "PublicSeed.block": (SEED.block, ("label", 1, 2)),
    "PublicSeed.race_keys": (SEED.race_keys, ("label", 1, 3)),
    "PublicSeed.race": (SEED.race, ("label", 1, P, False, [b"a", b"b", b"c"])),
    "PublicSeed.darts": (SEED.darts, ("label", 1, [1, 2, 1], 4, 100)),
    "TruncatedDiscreteLaplaceTable": (_core.TruncatedDiscreteLaplaceTable, (LEVEL, F(1, 100), True)),
    "TruncatedDiscreteLaplaceTable.sample": (TDLAP.sample, (SOURCE,)),
    "TruncatedDiscreteLaplaceTable.sample_many": (TDLAP.sample_many, (SOURCE, 3)),
    "DiscreteGaussian": (_core.DiscreteGaussian, (F(4),)),
    "DiscreteGaussian.weights": (GAUSSIAN.weights, ()),
    "DiscreteGaussian.release": (GAUSSIAN.release, (3, SOURCE)),
    "DiscreteGaussian.release_many": (GAUSSIAN.release_many, (SCORES, SOURCE)),
    "DiscreteLaplaceTables": (_core.DiscreteLaplaceTables, (LEVEL, 0, 5, 2)),
    "DiscreteLaplaceTables.numerators": (LAPLACE.numerators, (3,)),
    "DiscreteLaplaceTables.release": (LAPLACE.release, (3, SOURCE)),
    "DiscreteLaplaceTables.release_many": (LAPLACE.release_many, (SCORES, SOURCE)),
    "RefusalTable": (_core.RefusalTable, (LEVEL, F(1, 100))),
    "RefusalTable.refuses": (REFUSAL.refuses, (3, SOURCE)),
    "Coin.rational": (_core.Coin.rational, (F(1, 3),)),
    "Coin.exp_of_minus": (_core.Coin.exp_of_minus, (F(1, 3),)),
    "Coin.sample": (_core.Coin.rational(F(1, 3)).sample, (SOURCE,)),
    "Coin.sample_many": (_core.Coin.rational(F(1, 3)).sample_many, (SOURCE, 3)),
    "UniformInteger": (_core.UniformInteger, (3, 5)),
    "UniformInteger.sample": (_core.UniformInteger(3, 5).sample, (SOURCE,)),
    "UniformInteger.sample_many": (_core.UniformInteger(3, 5).sample_many, (SOURCE, 3)),
    "VersionSpaces": (_core.VersionSpaces, (BITS,)),
    "VersionSpaces.shattered": (SPACES.shattered, (1000,)),
    "VersionSpaces.growth": (SPACES.growth, (2, 1000)),
    "VersionSpaces.littlestone": (SPACES.littlestone, (1000,)),
    "VersionSpaces.mistake_tree": (SPACES.mistake_tree, (1000,)),
    "VersionSpaces.standard_optimal": (SPACES.standard_optimal, ([(0, True), (1, True)],)),
    "VersionSpaces.explanations": (SPACES.explanations, ([(0, True), (1, True)],)),
    "Categorical": (_core.Categorical, ([1, 2],)),
    "Categorical.sample": (_core.Categorical([1, 2]).sample, (SOURCE,)),
    "Categorical.sample_many": (_core.Categorical([1, 2]).sample_many, (SOURCE, 3)),
    "NegativeBinomialTable": (_core.NegativeBinomialTable, (F(2), F(1, 2))),
    "NegativeBinomialTable.sample": (_core.NegativeBinomialTable(F(2), F(1, 2)).sample, (SOURCE,)),
    "NegativeBinomialTable.sample_many": (_core.NegativeBinomialTable(F(2), F(1, 2)).sample_many, (SOURCE, 3)),
    "ShuffleNoise": (_core.ShuffleNoise, (F(2), F(1, 2), 10, False)),
    "ShuffleNoise.calibrated": (_core.ShuffleNoise.calibrated, (LEVEL, F(1, 100), 10, 12, False, F(1, 20))),
    "ShuffleNoise.delta": (NOISE.delta, (LEVEL,)),
    "ShuffleNoise.quantile": (NOISE.quantile, (F(1, 20), 12)),
    "ShuffleNoise.reports": (NOISE.reports, (SCORES, 5, False, SOURCE)),
    "Geometric": (_core.Geometric, (F(1, 2),)),
    "Geometric.sample": (_core.Geometric(F(1, 2)).sample, (SOURCE,)),
    "Geometric.sample_many": (_core.Geometric(F(1, 2)).sample_many, (SOURCE, 3)),
    "TwoSidedGeometric": (_core.TwoSidedGeometric, (LEVEL, F(2))),
    "TwoSidedGeometric.probability": (_core.TwoSidedGeometric(LEVEL, F(2)).probability, (3,)),
    "TwoSidedGeometric.sample": (_core.TwoSidedGeometric(LEVEL, F(2)).sample, (SOURCE,)),
    "TwoSidedGeometric.sample_many": (_core.TwoSidedGeometric(LEVEL, F(2)).sample_many, (SOURCE, 3)),
    "random_subsets": (_core.random_subsets, (SOURCE, 5, 2, 3)),
    "kappa": (_core.kappa, (LEVEL, F(1, 100))),
    "ScoreSelection": (_core.ScoreSelection, (LEVEL, 1)),
    "ScoreSelection.pmf": (SELECTION.pmf, (SCORES,)),
    "ScoreSelection.matrix_of_totals": (SELECTION.matrix_of_totals, (np.array([SCORES, SCORES]),)),
    "ScoreSelection.matrix_of_subsets": (SELECTION.matrix_of_subsets, (np.array([SCORES, SCORES]), 1)),
    "ScoreSelection.matrix_of_vectors": (
        SELECTION.matrix_of_vectors,
        (np.array([SCORES, SCORES]), [2, 2], np.array([[1, 1], [0, 2]], np.uint16)),
    ),
    "count_subsets": (_core.count_subsets, (5, 2)),
    "subsets": (_core.subsets, (5, 2, 0, 3)),
    "count_vectors_number": (_core.count_vectors_number, ([2, 3], 3)),
    "count_vectors": (_core.count_vectors, ([2, 3], 3, 0, 2)),
    "deleted_sums": (_core.deleted_sums, ([3, -1, 5], [2, 1, 4], 3)),
    "deleted_parts": (_core.deleted_parts, ([3, -1, 5], [2, 1, 4], 3, 10)),
    "smallest_window": (_core.smallest_window, ([1, 2, 3, 9], 2, 1, 3)),
    "window_total_weights": (_core.window_total_weights, ([1, 2, 3, 9], 2, 0, 1)),
    "window_total_distribution": (_core.window_total_distribution, ([1, 2, 3, 9], 2, 0, 1)),
    "hockey_stick_float64": (_core.hockey_stick_float64, (P, Q, 1.0)),
    "hockey_stick_bounds_float64": (_core.hockey_stick_bounds_float64, (P, Q, 1.0)),
    "is_indistinguishable_float64": (_core.is_indistinguishable_float64, (P, Q, 1.0, 0.5)),
    "hockey_stick": (_core.hockey_stick, (P, WEIGHTS, LEVEL)),
    "hockey_stick_bounds": (_core.hockey_stick_bounds, (WEIGHTS, Q, LEVEL)),
    "is_indistinguishable": (_core.is_indistinguishable, (P, Q, LEVEL, F(1, 100))),
    "privacy_profile": (_core.privacy_profile, (P, Q, [LEVEL, LEVEL])),
    "epsilon_at_delta": (_core.epsilon_at_delta, (P, Q, F(1, 100))),
    "max_divergence": (_core.max_divergence, (P, WEIGHTS)),
    "total_variation": (_core.total_variation, (P, WEIGHTS)),
    "kl_divergence": (_core.kl_divergence, (P, WEIGHTS)),
    "chi2_divergence": (_core.chi2_divergence, (P, WEIGHTS)),
    "renyi_divergence": (_core.renyi_divergence, (P, WEIGHTS, F(2))),
    "exp_bounds": (_core.exp_bounds, (LEVEL, 64)),
    "gaussian_delta_above": (_core.gaussian_delta_above, (F(1, 20), LEVEL)),
    "gaussian_hockey_stick": (_core.gaussian_hockey_stick, (F(1), F(1, 2))),
    "key_groups": (_core.key_groups, (40,)),
    "key_groups_between": (_core.key_groups_between, (40,)),
    "vanishing_delta": (_core.vanishing_delta, (F(9, 10), 3)),
    "keys_delta": (keys_delta, (2, True, F(9, 10), F(1, 10**9), F(2), F(2), F(1, 2), F(1), F(1))),
    "keys_delta.curve": (keys_delta_by, (2, F(9, 10), F(2), F(1, 100))),
    "UnionRounds": (union_rounds, (F(9), F(0), [F(1, 100), F(1, 200)], BETWEEN, 2, 2, True, 0, 4)),
    "UnionRounds.delta": (UNION.delta, (F(2), F(2))),
    "propose_union": (propose_union, (2, False, 1.0, 1e-5, [0.5, 0.5])),
    "union_threshold": (
        lambda keys, sigma, shown: _core.union_threshold(keys, sigma=sigma, shown=shown),
        (2, 1.0, 0.1),
    ),
    "propose_histogram": (propose_histogram, (2, True, 1.0, 1e-5, 1.0, 0.0, 0.5)),
    "normal_tail_above": (_core.normal_tail_above, (F(4),)),
    "ln_bounds": (_core.ln_bounds, (F(2),)),
    "exp_weights": (_core.exp_weights, ([F(0), F(-1)], 64)),
    "family_worst": (_core.family_worst, (FAMILY, [(0, 1), (2, 1)], LEVEL, F(1, 100))),
    "family_band": (_core.family_band, (FAMILY, [(0, 1), (2, 1)], LEVEL, F(1, 100), F(1, 8))),
    "family_exceeding": (_core.family_exceeding, (FAMILY, [(0, 1), (2, 1)], LEVEL, F(1, 100))),
    "family_epsilon": (_core.family_epsilon, (FAMILY, [(0, 1), (2, 1)], F(1, 100))),
    "family_profile": (_core.family_profile, (FAMILY, [(0, 1), (2, 1)], [LEVEL])),
    "pairwise_exhaustive": (_core.pairwise_exhaustive, (MATRIX, LEVEL, "float64")),
    "largest_shift": (_core.largest_shift, (MATRIX, LEVEL, F(1, 100), 2)),
    "pairwise_maximum": (_core.pairwise_maximum, (MATRIX, LEVEL, F(1, 100))),
    "pairwise_band": (_core.pairwise_band, (MATRIX, LEVEL, F(1, 100), F(1, 8))),
    "pairwise_verdict": (_core.pairwise_verdict, (MATRIX, LEVEL, F(1, 100))),
    "ThresholdSweep": (_core.ThresholdSweep, (np.array([1, 2, 3], np.uint64), LABELS, ROWS[1], 2, 2, 5)),
    "ThresholdSweep.minimal_errors": (SWEEP.minimal_errors, ()),
    "ThresholdSweep.groups": (SWEEP.groups, (1, 2)),
    "ThresholdSweep.median_groups": (SWEEP.median_groups, (0, 4, 1)),
    "quantized_masses": (_core.quantized_masses, (P, 8)),
    "range_minimum": (_core.range_minimum, (STARTS, SCORES, 1, 3)),
    "separating_threshold": (_core.separating_threshold, (10, 0.25, 0.75)),
    "binomial_tail": (_core.binomial_tail, (10, 0.25, 3)),
    "user_codes": (_core.user_codes, (SCORES,)),
    "first_rows": (_core.first_rows, (ROWS[1], 2, 1)),
    "user_errors": (_core.user_errors, (BITS, LABELS, ROWS, True)),
    "user_errors_above": (_core.user_errors_above, (BITS, LABELS, ROWS, 1)),
    "least_errors_above": (_core.least_errors_above, (BITS, LABELS, ROWS)),
    "surrogate_scores": (_core.surrogate_scores, (BITS, BITS, LABELS, ROWS, 1, 1)),
    "clipped_pairwise_scores": (_core.clipped_pairwise_scores, (np.array([[1, 2], [2, 1]], np.int32), 1)),
    "psi_scores": (_core.psi_scores, (np.ones((2, 2, 2), np.int64), ROWS, 1)),
    "scheffe_scores": (_core.scheffe_scores, (np.array([[1, 2], [2, 1]]), np.array([[1, 2]], np.uint32), 1)),
    "LocalRandomizer.randomized_response": (_core.LocalRandomizer.randomized_response, (LEVEL, 4, 0)),
    "LocalRandomizer.subset_selection": (_core.LocalRandomizer.subset_selection, (LEVEL, 4, 2, 0)),
    "LocalRandomizer.hadamard_response": (_core.LocalRandomizer.hadamard_response, (LEVEL, 4, 0)),
    "LocalRandomizer.report_many": (DIRECT.report_many, (SOURCE, SCORES)),
    "bits_of_rows": (_core.bits_of_rows, (BITS.astype(np.int64), np.array([1, 0], np.uint64))),
    "hadamard_transform": (_core.hadamard_transform, (np.arange(4),)),
    "negative_binomial_divergence": (_core.negative_binomial_divergence, (F(2), F(1, 2), LEVEL, False)),
    "random_permutation": (_core.random_permutation, (SOURCE, 5)),
    "RowsOfUsers": (_core.RowsOfUsers, (ROWS[1], 2)),
    "UserVectors.means": (means, (POINTS, USERS, "max", 1.0, [0.0, 0.0], [1, -1])),
    "UserVectors.gradients": (gradients, (POINTS, np.array([1.0, -1.0, 1.0]), *GRADIENTS.values())),
    "UserVectors.subset": (lambda users: MEANS.subset(users).clipped_sum(VECTOR, 1.0, 0.25), ([1],)),
    "UserVectors.rotated": (lambda signs: MEANS.rotated(signs).clipped_sum(VECTOR, 1.0, 0.25), ([1, -1],)),
    "UserVectors.filled": (lambda: MEANS.filled().clipped_sum(VECTOR, 1.0, 0.25), ()),
    "UserVectors.clipped_moments": (MEANS.clipped_moments, (VECTOR, 1.0, 0.25, 16)),
    "UserVectors.clipping_excess": (MEANS.clipping_excess, (VECTOR, 0.5, 2.0, 0.25, 2)),
    "UserVectors.clipped_sum": (MEANS.clipped_sum, (VECTOR, 1.0, 0.25)),
    "UserVectors.winsorized_sum": (MEANS.winsorized_sum, (VECTOR, 8, 0.25)),
    "UserVectors.bin_counts": (MEANS.bin_counts, (4, 1.0)),
    "UserVectors.occupied_bins": (MEANS.occupied_bins, (0, 2, 4, 1.0)),
    "UserVectors.counts_within": (MEANS.counts_within, (VECTOR, np.array([0.5, 1.0]))),
    "UserVectors.counts_at_most": (MEANS.counts_at_most, (np.array([[0.5, 1.0], [0.0, 2.0]]),)),
    "JointRows": (
        _core.JointRows,
        (POINTS, np.array([1.0, -1.0, 1.0]), USERS, "max", [0.0] * 2, [1.0] * 2, True, 0.5),
    ),
    "JointRows.means": (lambda: JOINT.means().counts_within(VECTOR, VECTOR), ()),
    "JointRows.spreads": (lambda center: JOINT.spreads(center).counts_within(VECTOR, VECTOR), ([0.0, 0.0],)),
    "JointRows.whitened": (
        lambda *arguments: JOINT.whitened(*arguments).shares_within(VECTOR),
        (np.array([1.0, -1.0, 1.0]), [0.0] * 2, [1.0] * 2, np.eye(2), False, 9.0),
    ),
    "WhitenedRows.shares_within": (WHITENED.shares_within, (VECTOR,)),
    "WhitenedRows.gradients": (
        lambda *arguments: WHITENED.gradients(*arguments).clipped_sum(VECTOR, 1.0, 0.25),
        ([0.0, 0.0], 1.0),
    ),
    "JointRows.norm_counts": (JOINT.norm_counts, (np.array([0.5, 1.0]),)),
    "JointRows.moment_sum": (TARGETED.moment_sum, (64, 0.25, (1.0, 2.0, 4.0))),
    "JointRows.products": (lambda radius: TARGETED.products(radius).counts_within(VECTOR, VECTOR), (4.0,)),
}

INTEGERS = [-1, 0, 1, *(2**bits + off for bits in (30, 31, 32, 40, 53, 62, 63, 64) for off in (-1, 0))]
FLOATS = [0.0, -0.0, -1.0, 5e-324, 1e-300, 1e300, 1.7e308, math.inf, -math.inf, math.nan]
HUGE = 10**4000
FRACTIONS = [
    F(0),
    F(-1),
    F(1),
    F(1, HUGE),
    F(HUGE),
    F(HUGE, HUGE - 1),
    F(10**61 + 1, 10**61),
    F(1, 10**300),
    F(2**40),
    F(2**64),
]


def extremes(valid: Any) -> Iterator[Any]:
    """What can stand in place of a valid argument and has its type."""
    if isinstance(valid, bool):
        return
    if isinstance(valid, int):
        yield from [*INTEGERS, HUGE]
    elif isinstance(valid, float):
        yield from FLOATS
    elif isinstance(valid, Fraction):
        yield from FRACTIONS
    elif isinstance(valid, str):
        yield from ["", "\0", "é" * 1000]
    elif isinstance(valid, bytes):
        yield from [b"", bytes(10**5)]
    elif isinstance(valid, np.ndarray):
        yield from extreme_arrays(valid)
    elif isinstance(valid, _core.Level):
        yield from levels()
    elif isinstance(valid, _core.PmfMatrix):
        yield from [_core.PmfMatrix.from_floats(np.ones((rows, 1))) for rows in (1, 7)]
        yield _core.PmfMatrix.from_masses([([HUGE - 1, 1], HUGE), ([1, HUGE - 1], HUGE)])
    elif isinstance(valid, list):
        yield []
        yield valid * 1000
        yield range(2**40)
        yield from ([extreme, *valid[1:]] for extreme in extremes(valid[0]))
        yield from ([*valid[:-1], extreme] for extreme in extremes(valid[-1]))
    elif isinstance(valid, tuple):
        for place, part in enumerate(valid):
            yield from ((*valid[:place], extreme, *valid[place + 1 :]) for extreme in extremes(part))


def extreme_arrays(valid: np.ndarray[Any, Any]) -> Iterator[Any]:
    """Arrays of the same type and number of axes: empty ones, long ones, of extreme numbers, in another order."""
    yield np.zeros((0,) * valid.ndim, valid.dtype)
    for axis in range(valid.ndim):
        yield np.zeros((*valid.shape[:axis], 0, *valid.shape[axis + 1 :]), valid.dtype)
        yield np.concatenate([valid] * 50, axis=axis)
    if valid.ndim == 1:
        yield valid[::-1]
    if valid.dtype.kind == "f":
        numbers = FLOATS
    else:
        bounds = np.iinfo(valid.dtype)
        numbers = [bounds.min, bounds.max, bounds.max // 2 + 1, 0, 1]
    for number in numbers:
        yield np.full_like(valid, number)
        one = valid.copy()
        one.flat[-1:] = number
        yield one


def levels() -> Iterator[Any]:
    for ratio in FRACTIONS:
        for exponent in FRACTIONS:
            if ratio > 0 and exponent >= 0 and (ratio == 1 or exponent == 0):
                yield _core.Level(ratio, exponent)


def variants(call: Call) -> Iterator[tuple[Any, ...]]:
    """The arguments with each one replaced, and with all integers replaced at once."""
    arguments = call[1]
    yield arguments
    for place, valid in enumerate(arguments):
        for extreme in extremes(valid):
            yield (*arguments[:place], extreme, *arguments[place + 1 :])
    for number in INTEGERS:
        yield tuple(number if type(valid) is int else valid for valid in arguments)


def described(argument: Any) -> str:
    text = repr(argument) if not isinstance(argument, _core.Level) else "Level"
    return text if len(text) < 80 else f"{text[:60]}... ({type(argument).__name__})"


def make(name: str) -> None:
    """Makes all calls of a name; whatever is no error about an argument ends the process."""
    call = CALLS[name]
    for arguments in variants(call):
        print(name, *map(described, arguments), sep=" | ", flush=True)
        with contextlib.suppress(ValueError, TypeError, OverflowError, MemoryError):
            call[0](*arguments)


if __name__ == "__main__":
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
    for name in sys.argv[1:]:
        make(name)
