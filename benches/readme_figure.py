"""Draw the README's figure: the error of a private mean against records per user, beside group privacy.

Lines are predicted from public numbers by `compare_methods`; dots are the root mean square error of fits on users
whose records are alike. Run from the top: ``python benches/readme_figure.py docs/images/error-by-records.svg``.
"""

import sys

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from userdp.means import WinsorizedMean
from userdp.planning import compare_methods

N_USERS, DIMENSION, RECORDS, REPETITIONS = 500, 16, (1, 4, 16, 64, 256), 100
METHODS = {"group privacy": ("laplace", "#b3541e"), "userdp, homogeneous=True": ("auto", "#1f5f8b")}


def measured(m: int, method: str) -> float:
    """The root mean square error of fits, in Euclidean length."""
    rng, truth = np.random.default_rng(m), np.full(DIMENSION, 0.1)
    users = np.repeat(np.arange(N_USERS), m)
    errors = []
    for _ in range(REPETITIONS):
        records = truth + rng.uniform(-1, 1, size=(len(users), DIMENSION)) * 0.15
        given = {"homogeneous": True} if method == "auto" else {}
        mean = WinsorizedMean(epsilon=1, max_norm=1, m=m, method=method, **given).fit(records, groups=users)
        errors.append(np.sum((mean.mean_ - truth) ** 2))
    return float(np.sqrt(np.mean(errors)))


def main(path: str) -> None:
    """Fit, draw and write the figure."""
    mpl.rcParams.update({"svg.hashsalt": "userdp", "font.size": 11})
    tables = {
        m: compare_methods("mean", n_users=N_USERS, m=m, epsilon=1, dimension=DIMENSION, homogeneous=True)
        for m in RECORDS
    }
    figure, axes = plt.subplots(figsize=(7, 3.8))
    for name, (method, color) in METHODS.items():
        row = "group privacy" if name == "group privacy" else None
        noise = [tables[m][row or tables[m].best].noise for m in RECORDS]
        axes.plot(RECORDS, noise, color=color, linewidth=2, label=f"{name}: noise, predicted")
        axes.plot(RECORDS, [measured(m, method) for m in RECORDS], "o", color=color, label=f"{name}: error, measured")
    axes.set(xscale="log", yscale="log", xlabel="records per user", ylabel="error of the mean (Euclidean)")
    axes.set_xticks(RECORDS, [str(m) for m in RECORDS])
    axes.set_yticks([0.03, 0.05, 0.1], ["0.03", "0.05", "0.1"])
    axes.minorticks_off()
    axes.set_title(f"A private mean: {N_USERS} users, {DIMENSION} columns, ε = 1, records within 1", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.endswith("svg") else None, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
