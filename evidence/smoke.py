"""An installed userdp used as people use it: one audit, its verification, one release, one fit, and the demo.

Run it with the interpreter of an environment that has userdp: ``python -I evidence/smoke.py``. What the environment
has no package for is left out with a message.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import subprocess
import sys
import tempfile
from importlib.metadata import requires, version
from pathlib import Path

MECHANISM = """
from fractions import Fraction
from userdp.algorithms import finite_algorithm

@finite_algorithm(outputs=("no", "yes"))
def respond(dataset):
    return [Fraction(1, 4), Fraction(3, 4)] if dataset[0][0] else [Fraction(3, 4), Fraction(1, 4)]
"""


def main() -> None:
    """Raise unless the installed package works."""
    import numpy as np

    import userdp
    from userdp.accounting import PrivacyLedger
    from userdp.mechanisms import DiscreteLaplace, ExponentialMechanism
    from userdp.report import Report

    place = Path(userdp.__file__).resolve()
    if Path(sys.prefix).resolve() not in place.parents:
        raise SystemExit(f"userdp is imported from {place}, which is not installed in {sys.prefix}")
    required = [line for line in requires("userdp") or () if "extra ==" not in line]
    print(f"userdp {version('userdp')} on Python {sys.version.split()[0]}; requires {', '.join(required)}")

    for name in dir(userdp):
        try:
            getattr(userdp, name)
        except ImportError as error:  # an extra that is not installed says which one
            print(f"  userdp.{name}: {error}")

    assert Report.schema()["oneOf"]
    assert importlib.resources.files("userdp.display").joinpath("templates", "page.html").is_file()
    noise = DiscreteLaplace(epsilon=1, sensitivity=1, bounds=(0, 10))
    ledger = PrivacyLedger(epsilon="ln(3)")
    ledger.spend(noise.cost, "noise")
    drawn = noise.sample(np.full(100, 5))
    assert len(set(drawn.tolist())) > 1
    assert ExponentialMechanism(epsilon=1, sensitivity=1, maximize=True).sample([0, 10**6]) == 1

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "response.py").write_text(MECHANISM)
        space = ("--universe", "0,1", "--n-users", "2", "--delta", "0")
        if importlib.util.find_spec("jinja2") is None:
            print("  no pages: jinja2 is not installed")
        else:
            space += ("--html", "audit.html")
        audit = ("audit", "response.py:respond", *space, "--certificate", "audit.json", "--epsilon")
        run(folder, 0, *audit, "ln(3)")
        run(folder, 0, "verify", "audit.json", "--mechanism", "response.py:respond")
        run(folder, 5, "verify", "audit.json")
        run(folder, 1, *audit, "1")
        if importlib.util.find_spec("linearmodels"):
            run(folder, 0, "demo", "--output", "panel.html", "--certificates", "certificates")
            for certificate in sorted(Path(folder, "certificates").iterdir()):
                run(folder, 5, "verify", str(certificate))
        else:
            print("  without linearmodels: no demo")


def run(folder: str, code: int, *words: str) -> None:
    """Run one command in a folder; it must leave with this code."""
    done = subprocess.run(
        [sys.executable, "-I", "-m", "userdp", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    print(f"  userdp {words[0]}: {done.returncode}")
    if done.returncode != code:
        raise SystemExit(
            f"userdp {' '.join(words)} left with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}"
        )


if __name__ == "__main__":
    main()
