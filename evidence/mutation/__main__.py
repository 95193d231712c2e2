"""Plant mutants and count which are noticed: `make mutation`, or `python -m mutation` in evidence/ (README.md)."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from mutation.covering import cover
from mutation.following import plant_again
from mutation.mutants import all_mutants, sample
from mutation.planting import plant_all
from mutation.results import keep, rates
from mutation.running import preload
from mutation.selecting import Map

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "mutation"
RESULTS = Path(__file__).with_name("results.csv")


def copied(tree: Path, work: Path) -> Path:
    """A copy of what git knows of a tree, with its compiled extension; mutants are planted there and nowhere else."""
    copy = work / "tree"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=tree, check=True, capture_output=True, text=True).stdout
    extensions = [str(path.relative_to(tree)) for path in (tree / "python" / "userdp").glob("_core*.so")]
    for name in (*filter(None, listed.split("\0")), *extensions):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree / name, copy / name)
    return copy


def commit_of(tree: Path) -> str:
    """The commit of a checkout, short."""
    named = subprocess.run(
        ["git", "rev-parse", "--short=7", "HEAD"], cwd=tree, check=True, capture_output=True, text=True
    )
    return named.stdout.strip()


def same_commit(work: Path, commit: str) -> None:
    """Refuse to go on with what another commit left: maps and results of two trees must not mix."""
    noted = work / "commit"
    if noted.exists() and noted.read_text() != commit:
        raise SystemExit(f"{work} has the results of commit {noted.read_text()}; take another --work, or remove it")
    work.mkdir(parents=True, exist_ok=True)
    noted.write_text(commit)


def main() -> None:
    """Run what is asked for; what is there already from an earlier run is not done again."""
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT, help="a checkout with its compiled extension")
    parser.add_argument("--work", type=Path, default=WORK, help="where the copy, the map and the results are kept")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the table that lists every mutant and its fate")
    parser.add_argument("--per-folder", type=int, default=60, help="mutants of each folder")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--cap", type=float, default=20, help="seconds of tests for each mutant")
    parser.add_argument(
        "--before", type=Path, help="the work folder of an earlier tree, whose mutants are planted again"
    )
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    commit = commit_of(arguments.tree)
    same_commit(work, commit)
    tree = copied(arguments.tree.resolve(), work)
    preload(tree)
    kept = work / "results.json"
    if arguments.before:
        before = arguments.before.resolve()
        tests = Map(before / "tree", before / "map")
        plant_again(json.loads((before / "results.json").read_text()), tree, tests, kept, cap=arguments.cap)
    else:
        cover(tree, work / "map")

        def listed(results: dict[str, Any]) -> None:
            keep(results, arguments.results, commit=commit, seed=arguments.seed)

        mutants = list(sample(all_mutants(tree), arguments.per_folder, arguments.seed))
        plant_all(
            tree,
            mutants,
            Map(tree, work / "map"),
            kept,
            cap=arguments.cap,
            first=6,
            after=listed,
        )
        listed(json.loads(kept.read_text()))  # also when nothing was left to plant
    print(rates(json.loads(kept.read_text())))


if __name__ == "__main__":
    main()
