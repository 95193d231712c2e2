"""The mean log wage of 545 men over eight years, private for each man with all of his years.

The wage panel of Vella and Verbeek (1998). Who knows only about private rows has two ways: to protect single years,
which says nothing about a man with eight of them, or to take eight times less budget per row (group privacy). Its noise
is that of one number between the ends of the public range, however many years there are. `WinsorizedMean` protects the
man. Without a promise its noise is the same, and nobody is clipped. Who vouches for how far men are from each other
gets noise for that distance: a generous range then costs next to nothing. How far a mean is moved by men who are
farther away is not bounded by this method, and its worst error is not known.

Here men differ more than their years do, so that more years make no one's mean much more certain, and the noise hardly
falls with them. It would if men differed by chance only: the dotted line of the plot.

Run with ``python examples/panel_wages.py``; it needs ``pip install 'userdp[demo,learn]'``, and for ``--plot wages.png``
also ``userdp[plot]``. Only what a single fit releases is private. The errors below are averages over many fits against
the panel's own mean, and they are there to explain; showing them for private data would cost a budget of its own.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from userdp.datasets import load_wage_panel
from userdp.means import WinsorizedMean
from userdp.planning import compare_methods

YEARS = (1, 2, 4, 8)
EPSILON = 1
REPEATS = 200
# Public numbers, which nobody looked up in the data: dollars an hour, from a narrow and from a generous idea of what is
# possible. In surveys of the time, log wages of men had a standard deviation of about one half: that is how far men are
# from their mean, however many years they report.
RANGES = {"1 to 30": (1.0, 30.0), "0.1 to 1000": (0.1, 1000.0)}
USER_STD = 0.5

Floats = npt.NDArray[np.float64]


def panel(years: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """The last years of everybody: log wages as one column, and who each row is about."""
    wages = load_wage_panel()
    return wages.column("lwage")[:, -years:].reshape(-1, 1), np.repeat(np.array(wages.person_ids), years)


def ends(dollars: str) -> tuple[float, float]:
    """The middle of a range in log wages, and how far its ends are from there."""
    low, high = map(math.log, RANGES[dollars])
    return (low + high) / 2, (high - low) / 2


def mean_of_means(wages: Floats, years: int, dollars: str) -> float:
    """What is estimated, without privacy: clipped to the public range, and everybody has the same weight."""
    center, bound = ends(dollars)
    return float(np.clip(wages, center - bound, center + bound).reshape(-1, years).mean(axis=1).mean())


def user_level(dollars: str, years: int) -> WinsorizedMean:
    """Private for each man."""
    center, bound = ends(dollars)
    ends_of_range = (center - bound, center + bound)
    return WinsorizedMean(epsilon=EPSILON, bounds=ends_of_range, user_std=USER_STD, method="practical", m=years)


def group_privacy(dollars: str, years: int) -> WinsorizedMean:
    """A mean of rows with so little budget that all rows of a man together have epsilon."""
    center, bound = ends(dollars)
    return WinsorizedMean(
        epsilon=EPSILON / years, max_norm=bound, center=center, m=1, method="laplace", require_groups=False
    )


def measured(learner: WinsorizedMean, wages: Floats, people: npt.NDArray[np.int64] | None, truth: float) -> float:
    """Root mean square of the error by privacy, over many fits."""
    errors = [learner.fit(wages, groups=people).mean_[0] - truth for _ in range(REPEATS)]
    return float(np.sqrt(np.mean(np.square(errors))))


def errors(dollars: str, years: Sequence[int]) -> dict[str, list[float]]:
    """Errors for the last so many years of everybody: of both ways measured, and of ours predicted."""
    found: dict[str, list[float]] = {"group privacy": [], "user level": [], "user level, predicted": []}
    for m in years:
        wages, people = panel(m)
        truth = mean_of_means(wages, m, dollars)
        learner = user_level(dollars, m)
        found["group privacy"].append(measured(group_privacy(dollars, m), wages, None, truth))
        found["user level"].append(measured(learner, wages, people, truth))
        found["user level, predicted"].append(learner.noise_[0])
    return found


def plot(path: str) -> None:
    """Error against the number of years: measured, and predicted for users who differ only by chance."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(RANGES), figsize=(9, 4), layout="constrained", sharey=True)
    for ax, dollars in zip(axes, RANGES, strict=True):
        for name, values in errors(dollars, YEARS).items():
            ax.plot(YEARS, values, "--" if "predicted" in name else "o-", label=name)
        alike = [
            compare_methods("mean", n_users=545, m=m, max_norm=ends(dollars)[1], epsilon=EPSILON)["practical"].noise
            for m in YEARS
        ]
        ax.plot(YEARS, alike, ":", label="predicted for men who differ by chance only")
        ax.set(title=f"{dollars} dollars an hour", xlabel="years of each man", ylabel="error of the mean", yscale="log")
        ax.legend()
    figure.savefig(path)
    print(f"Wrote {path}")


def main(arguments: Sequence[str] | None = None) -> None:
    """The table, one release, and the plot when it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", metavar="FILE", help="draw error against years into this file")
    asked = parser.parse_args(arguments)
    wages, people = panel(8)
    spread = float(np.std(wages.reshape(-1, 8).mean(axis=1)))
    print(f"{len(wages)} log wages of {len(set(people.tolist()))} men; the mean of their means is {wages.mean():.3f}")
    print(f"Not private, to check the promise of {USER_STD}: men are {spread:.2f} from it with all 8 years\n")
    print(f"Error by privacy at epsilon = {EPSILON}, root mean square of {REPEATS} fits, x 1000")
    print(
        f"{'dollars an hour':<16} {'years':>5} {'group privacy':>14} {'user level':>11} {'predicted':>10} {'ratio':>6}"
    )
    for dollars in RANGES:
        for years, *row in zip(YEARS, *errors(dollars, YEARS).values(), strict=True):
            group, user, predicted = (1000 * value for value in row)
            print(f"{dollars:<16} {years:>5} {group:>14.1f} {user:>11.1f} {predicted:>10.1f} {user / group:>6.2f}")
    wide = "0.1 to 1000"
    longest = ends(wide)[1]
    print()
    print(compare_methods("mean", n_users=545, m=8, max_norm=longest, user_std=USER_STD, epsilon=EPSILON))
    released = user_level(wide, 8).fit(wages, groups=people)
    print(f"\nOne release: {released.mean_[0]:.3f}, by the method {released.method_!r}, private for each man")
    if asked.plot:
        plot(asked.plot)


if __name__ == "__main__":
    main()
