"""How long until something happens: importing, first use, help. All in one run, so ratios mean something.

    python benchmarks/start_up.py

Each figure is the best of several fresh processes, with what Python itself takes (and, for first use, what
`import torch` takes) subtracted. Falls short → exit code 1.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROUNDS = 7
OUT = Path(__file__).parent / "out" / "start_up.json"

ASKED = {
    "python": ["-c", "pass"],
    "import regard": ["-c", "import regard"],
    "import torch": ["-c", "import torch"],
    "regard.attend": ["-c", "import regard; regard.attend"],
    "regard --help": ["-m", "regard", "--help"],
}


class Claim(NamedTuple):
    """What is promised: at most so many seconds beyond something else."""

    what: str
    beyond: str | None
    limit: float


CLAIMS = [
    Claim("import regard", "python", 0.1),
    Claim("regard.attend", "import torch", 0.15),
    Claim("regard --help", None, 0.3),
]


def seconds(arguments: list[str]) -> float:
    """One fresh process, from start to end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> int:
    for arguments in ASKED.values():
        seconds(arguments)  # compiled files and the disk's cache are warm from here on
    times: dict[str, list[float]] = {name: [] for name in ASKED}
    for _ in range(ROUNDS):  # in turns, so that a busy minute touches all of them
        for name, arguments in ASKED.items():
            times[name].append(seconds(arguments))
    best = {name: min(each) for name, each in times.items()}

    print(f"best of {ROUNDS} fresh processes, seconds\n")
    print(f"{'':<16}{'whole':>8}{'× python':>10}")
    for name, least in best.items():
        print(f"{name:<16}{least:>8.3f}{least / best['python']:>10.1f}")

    print(f"\n{'promise':<36}{'own cost':>9}{'at most':>9}{'ratio':>8}")
    rows = []
    for what, beyond, limit in CLAIMS:
        under = best[beyond] if beyond else 0.0
        cost = best[what] - under
        rows.append({"what": what, "beyond": beyond, "seconds": cost, "limit": limit, "passes": cost < limit})
        name = f"{what} beyond {beyond}" if beyond else what
        ratio = f"{best[what] / under:.2f} ×" if beyond else ""
        print(f"{name:<36}{cost:>9.3f}{limit:>9.2f}{ratio:>8}  {'pass' if cost < limit else 'FALLS SHORT'}")

    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({"best": best, "times": times, "claims": rows}, indent=2) + "\n")
    print(f"\nwritten to {OUT}")
    return 0 if all(row["passes"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
