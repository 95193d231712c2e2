"""Values of matrix games, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

__all__ = ["game_value"]

Strategy = tuple[Fraction, ...]


def game_value(payoffs: Sequence[Sequence[Fraction | int]]) -> tuple[Fraction, Strategy, Strategy]:
    """The value of a zero-sum game and a best mixed strategy of either side.

    Parameters
    ----------
    payoffs : sequence of rows
        The row player gets ``payoffs[i][j]`` from the column player. At least one row and one column.

    Returns
    -------
    value : Fraction
    rows, columns : tuple of Fraction
        Probabilities. ``rows`` gets at least the value against every column, ``columns`` gives at most the value to
        every row: the two together prove the value.

    Notes
    -----
    With all payoffs shifted to be positive, maximise sum(y) over y >= 0 with A y <= 1 by the simplex method; the
    optimum is 1 / value, y and the dual solution the strategies up to scale. Bland's rule keeps it from going in
    circles.
    """
    shift = 1 - min(min(row) for row in payoffs)
    n_rows, n_columns = len(payoffs), len(payoffs[0])
    # One row for each constraint: coefficients, slacks, right-hand side.
    tableau = [
        [Fraction(entry) + shift for entry in row] + [Fraction(int(i == j)) for j in range(n_rows)] + [Fraction(1)]
        for i, row in enumerate(payoffs)
    ]
    gains = [Fraction(1)] * n_columns + [Fraction(0)] * (n_rows + 1)
    basis = list(range(n_columns, n_columns + n_rows))
    while (entering := next((j for j, gain in enumerate(gains[:-1]) if gain > 0), None)) is not None:
        # The feasible set is bounded, since all coefficients are positive: some row limits the entering variable.
        _, _, leaving = min(
            (row[-1] / row[entering], basis[i], i) for i, row in enumerate(tableau) if row[entering] > 0
        )
        pivot = tableau[leaving][entering]
        tableau[leaving] = [entry / pivot for entry in tableau[leaving]]
        for i, row in enumerate(tableau):
            if i != leaving and row[entering]:
                factor = row[entering]
                tableau[i] = [a - factor * b if b else a for a, b in zip(row, tableau[leaving], strict=True)]
        factor = gains[entering]
        gains = [a - factor * b if b else a for a, b in zip(gains, tableau[leaving], strict=True)]
        basis[leaving] = entering
    scale = -1 / gains[-1]
    columns = [Fraction(0)] * n_columns
    for variable, row in zip(basis, tableau, strict=True):
        if variable < n_columns:
            columns[variable] = row[-1] * scale
    rows = [-gain * scale for gain in gains[n_columns:-1]]
    return scale - shift, tuple(rows), tuple(columns)
