"""OpenDP's Polars measurements without their noise: what they compute is run by OpenDP itself.

Nothing of OpenDP is imported here. A measurement is called, and its `map` says what loss it claims for neighbors at a
distance: for Laplace noise of one scale the loss is the L1 sensitivity over the scale, for Gaussian noise it is half of
the squared L2 sensitivity over the squared scale.
"""

from __future__ import annotations

import io
import json
import pickletools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from userdp.audit.alphabets import numbers_in
from userdp.audit.noise_free import NoiseFree
from userdp.exact.numbers import exact_number, short_repr

PLUGIN = "noise_plugin"
"""What the function that adds noise is called in a plan."""
PURE, CONCENTRATED = "MaxDivergence", "ZeroConcentratedDivergence"


def from_opendp_builder(build: Callable[[float], Any], d_in: Any, *, drop: Sequence[str] = ()) -> NoiseFree:
    """Make the noise-free program of OpenDP measurements that a function builds for a scale.

    Parameters
    ----------
    build : callable
        From a scale to a Measurement made by ``make_private_lazyframe``, in which all noise has this scale.
        ``build(0.0)`` is run, ``build(1.0).map`` asked.
    d_in : object
        The distance of neighbors, as the measurement's ``map`` takes it. In rows, a user of m rows who is replaced is
        at distance 2 m; in ids 2, and who comes or goes 1.
    drop : sequence of str
        Columns of the audited tables that the measurement does not know, such as that of users.

    Returns
    -------
    NoiseFree

    Notes
    -----
    Thresholds are part of the program: with unknown keys the audit finds that keys appear, which is what delta is for.
    """
    if not callable(build):
        raise TypeError(f"build must be a function of a scale; got {short_repr(build)}")
    measurement = build(0.0)
    claim = _claim(build(1.0), d_in, Fraction(1))

    def run(frame: Any) -> Any:
        return measurement(frame.drop(*drop) if drop else frame).collect()

    return NoiseFree(run, claim, {"frame": "lazy", "compare": "values"}, build)


def from_opendp_measurement(measurement: Any, d_in: Any, *, empty: Any, drop: Sequence[str] = ()) -> NoiseFree:
    """Make the noise-free program of one OpenDP measurement, from the plan that it makes of a frame.

    Parameters
    ----------
    measurement : Measurement
        Made by ``make_private_lazyframe``, with noise of one scale; needs ``enable_features("honest-but-curious")``.
    d_in : object
        As for `from_opendp_builder`.
    empty : polars.LazyFrame
        A frame of the measurement's columns, of which a plan is made to read the scale.
    drop : sequence of str
        As for `from_opendp_builder`.

    Returns
    -------
    NoiseFree

    Raises
    ------
    ValueError
        When a plan has no noise that can be read, or noise of several scales.

    Notes
    -----
    The noise of a plan is written as a pickle, which is read and never loaded. Polars promises nothing about how plans
    are written: tried with Polars 1.36.1 and OpenDP 0.16.0.
    """
    scales = {Fraction(scale) for scale in _Plan(measurement, empty).scales}
    if len(scales) != 1:
        raise ValueError(
            f"measurement has noise of {len(scales)} scales, {sorted(map(float, scales))}; audit queries with noise of "
            "one scale, one at a time"
        )
    (scale,) = scales
    claim = _claim(measurement, d_in, scale)

    def run(frame: Any) -> Any:
        plan = _Plan(measurement, frame.drop(*drop) if drop else frame)
        return plan.without_noise().collect()

    return NoiseFree(run, claim, {"frame": "lazy", "compare": "values"}, _Plan(measurement, empty).numbers)


def _claim(measurement: Any, d_in: Any, scale: Fraction) -> dict[str, Fraction]:
    """The sensitivity that a loss stands for, where noise has this scale."""
    measure = str(measurement.output_measure)
    loss = exact_number(measurement.map(d_in))
    if loss is None:
        raise ValueError(f"d_in={short_repr(d_in)}: the measurement's loss is not finite")
    if measure == PURE:
        return {"l1": loss * scale}
    if measure == CONCENTRATED:
        return {"l2_squared": 2 * loss * scale**2}
    raise ValueError(f"the measurement's privacy is {measure:.60}; sensitivities follow from {PURE} and {CONCENTRATED}")


class _Plan:
    """The plan that a measurement makes of a frame, as it is written, and the noise in it."""

    def __init__(self, measurement: Any, frame: Any) -> None:
        try:
            lazy = measurement(frame).lazy()
        except Exception as error:
            raise ValueError(
                f"measurement: its plan cannot be seen ({type(error).__name__}: {str(error)[:200]}); it takes "
                'opendp.prelude.enable_features("honest-but-curious")'
            ) from error
        self._type = type(lazy)
        self._content = json.loads(lazy.serialize(format="json"))
        self._noise = list(_plugins(self._content))
        self._places = [_place_of_scale(bytes(plugin["kwargs"])) for plugin in self._noise]
        if not self._noise:
            raise ValueError("measurement: its plan has no noise that can be taken out")

    @property
    def scales(self) -> list[float]:
        return [scale for _, scale in self._places]

    @property
    def numbers(self) -> tuple[int | float, ...]:
        """The numbers in the plan, but for those of its noise."""
        for plugin in self._noise:
            plugin["kwargs"] = []
        return tuple(numbers_in(json.dumps(self._content)))

    def without_noise(self) -> Any:
        """The plan with noise of scale 0."""
        for plugin, (place, _) in zip(self._noise, self._places, strict=True):
            plugin["kwargs"][place : place + 8] = [0] * 8
        return self._type.deserialize(io.BytesIO(json.dumps(self._content).encode()), format="json")


def _plugins(content: Any) -> Iterator[dict[str, Any]]:
    if isinstance(content, dict):
        if content.get("symbol") == PLUGIN and isinstance(content.get("kwargs"), list):
            yield content
        for part in content.values():
            yield from _plugins(part)
    elif isinstance(content, list):
        for part in content:
            yield from _plugins(part)


def _place_of_scale(pickled: bytes) -> tuple[int, float]:
    """Where the eight bytes of the scale are in a pickle, and the scale; nothing is loaded."""
    named = False
    for code, argument, place in pickletools.genops(pickled):
        if named and code.name == "BINFLOAT" and isinstance(argument, float) and place is not None:
            return place + 1, argument
        if code.name in ("BINUNICODE", "SHORT_BINUNICODE"):
            named = argument == "scale"
    raise ValueError("measurement: the scale of its noise cannot be read from its plan")
