"""What is missing is named with its extra; what is installed and broken is told as that."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# What is called, the package that it needs, and what is said where that is not installed.
DOORS = {
    "board": ("from regard.training.board import writer_class as f; f()", "tensorboard", "regard[train]"),
    "score": ("from regard.tasks.score import load_sacrebleu as f; f()", "sacrebleu", "regard[train]"),
    "widget": ("from regard.views.explorer.widget import _widget_class as f; f()", "anywidget", "regard[notebook]"),
    "table": ("from regard.trace.measure.table import library as f; f('polars')", "polars", "pip install polars"),
    "picture": ("from regard.data.picture_file import import_pillow as f; f()", "PIL", "regard[vision]"),
    "folder": ("from regard.models.open.library import import_transformers as f; f()", "transformers", "regard[hf]"),
    "hub": ("from regard.models.open.hub import check_reachable as f; f('a/b')", "huggingface_hub", "regard[hf]"),
    "serve": ("from regard.cli.serve import serve as f; f([])", "uvicorn", "regard[app]"),
    "see": ("from regard.cli import explore as e; e.in_terminal = bool(1).__bool__; print(e.why_not())", "fastapi",
            "regard[app]"),
}  # fmt: skip
BROKEN = {
    "no part of its own": "import lxml_that_is_not_there",
    "another library is too old": "raise ImportError('cannot import name array from numpy', name='numpy')",
    "a DLL": "raise ImportError('DLL load failed while importing _core: not found', name='{name}._core')",
}
CATCH = "import sys\ntry:\n    {code}\nexcept Exception as error:\n    print(type(error).__name__, error)\n"


def said(code: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CATCH.format(code=code)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("door", DOORS)
def test_a_missing_extra_is_named(door):
    code, package, wanted = DOORS[door]
    told = said(f"sys.modules[{package!r}] = None; {code}", {})
    assert wanted in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("door", "fault"), [(door, fault) for i, door in enumerate(DOORS) for fault in [list(BROKEN)[i % len(BROKEN)]]]
)
def test_an_extra_that_is_installed_and_broken_is_told_with_the_real_cause(door, fault, tmp_path: Path):
    code, package, blamed = DOORS[door]
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text(BROKEN[fault].format(name=package))
    told = said(code, {"PYTHONPATH": str(tmp_path)})
    cause = {
        "no part of its own": "No module named 'lxml_that_is_not_there'",
        "another library is too old": "cannot import name array from numpy",
        "a DLL": "DLL load failed while importing _core",
    }[fault]
    assert cause in told
    assert blamed not in told
    assert "\n" not in told
