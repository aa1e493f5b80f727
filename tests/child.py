"""A test in a process of its own: for bf16 products, which end the process on processors whose units for them fault."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SAFE = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}  # leaves AMX alone; torch reads it when it loads
INSIDE = "REGARD_TEST_IN_CHILD"


def in_child(test: Callable[..., None]) -> Callable[..., None]:
    """The same test, run by a pytest that starts with `SAFE` in its environment; a failure shows what that printed."""

    @wraps(test)
    def told(*args: Any, **named: Any) -> None:
        if os.environ.get(INSIDE):
            test(*args, **named)
            return
        name = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        checked = ["--jaxtyping-packages=regard,beartype.beartype"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        run = subprocess.run(
            [*command, *checked, name],
            cwd=ROOT, env=environment | SAFE | {INSIDE: "1"}, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
        assert "1 passed" in run.stdout, run.stdout[-2000:]

    return told
