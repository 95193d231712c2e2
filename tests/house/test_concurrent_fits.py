"""Fits in many threads: nothing that the process shares is touched, and its warnings still show."""

from __future__ import annotations

import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from support.hostile_values import VALUES
from userdp.exceptions import InsecureRandomnessWarning
from userdp.learners import ThresholdClassifier
from userdp.means import WinsorizedMean, WinsorizedQueries
from userdp.optimization import ClippedGradientDescent, CustomLoss, L2Ball

THREADS, FITS = 8, 6
PEOPLE = np.arange(60) // 2
X = np.fromiter((list(VALUES.values())[row % len(VALUES)] for row in range(60)), dtype=object, count=60)[:, None]
Y = np.fromiter((list(VALUES.values())[row % len(VALUES)] for row in range(1, 61)), dtype=object, count=60)


def gradient(theta: Any, X: Any, y: Any) -> Any:
    return np.full((len(X), len(theta)), 1e-300) * 1e-300


def fits(start: threading.Barrier) -> None:
    """Rows of hostile values, and callbacks whose arithmetic underflows."""
    loss = CustomLoss(gradient, lipschitz=1, smoothness=1)
    start.wait()
    for _ in range(FITS):
        ThresholdClassifier(epsilon=1, domain_size=10, m=2, exact_integers=True, classes=(0, 1)).fit(
            X, Y, groups=PEOPLE
        )
        WinsorizedMean(epsilon=1, max_norm=1, m=2, method="laplace").fit(X, groups=PEOPLE)
        ClippedGradientDescent(
            epsilon=1,
            delta=1e-6,
            loss=loss,
            constraint=L2Ball(1),
            max_norm=1.0,
            m=2,
            n_iterations=2,
            step_size=0.1,
            target_bounds=(-1, 1),
        ).fit(X, Y, groups=PEOPLE)
        with WinsorizedQueries(epsilon=1, n_queries=1, max_norm=1, m=2).open(X, Y, groups=PEOPLE) as session:
            session.release(lambda rows, y: np.exp(np.full(1, -1e4)) * rows.sum())


@pytest.mark.serial
@pytest.mark.filterwarnings("ignore:.*users:UserWarning")
def test_fits_in_threads_touch_nothing_that_the_process_shares() -> None:
    filters, shown = list(warnings.filters), warnings.showwarning
    seen: list[bool] = []
    stop, start = threading.Event(), threading.Barrier(THREADS + 1)

    def watch() -> None:
        while not stop.is_set():
            seen.append(list(warnings.filters) == filters and warnings.showwarning is shown)
            threading.Event().wait(0.0005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(THREADS) as pool, np.errstate(all="raise"):
            jobs = [pool.submit(fits, start) for _ in range(THREADS)]
            start.wait()
            for job in jobs:
                job.result()
            # The error state of this thread is its own.
            with pytest.raises(FloatingPointError):
                np.exp(np.full(1, -1e4))
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        watcher.join()
    assert len(seen) > 10
    assert all(seen)
    assert warnings.filters == filters
    with pytest.warns(InsecureRandomnessWarning):
        ThresholdClassifier(epsilon=1, domain_size=10, m=2, random_state=1, classes=(0, 1)).fit(X, Y, groups=PEOPLE)


@pytest.mark.serial
def test_warnings_of_other_threads_show_during_fits() -> None:
    """Who draws from an integer seed is told, whatever is being fitted beside it."""
    caught: list[type[Warning]] = []
    start = threading.Barrier(3)

    def seeded() -> None:
        start.wait()
        for _ in range(20):
            ThresholdClassifier(epsilon=1, domain_size=10, m=2, random_state=1, classes=(0, 1)).fit(X, Y, groups=PEOPLE)

    def plain() -> None:
        start.wait()
        for _ in range(20):
            ThresholdClassifier(epsilon=1, domain_size=10, m=2, classes=(0, 1)).fit(X, Y, groups=PEOPLE)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, *_: caught.append(category)
        threads = [threading.Thread(target=target) for target in (seeded, plain, plain)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert caught == [InsecureRandomnessWarning] * 20
