"""Models that nobody here has written, watched: nothing verified is wrong, nothing is missed in silence.

docs/survey.md has a line for each; `REGARD_WRITE=1 pytest tests/trace/test_survey.py --slow` writes it anew. Rows are
kept in the folder that REGARD_SURVEY names, and what is there is not computed again.
"""

import importlib.util
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trace.survey.library import Row
from tests.trace.survey.page import line, page
from tests.trace.survey.verdict import RIGHT, SAID, SILENT, UNBUILT, WRONG, tally, verdict

SAMPLE = {"transformers": 24, "x_transformers": 6, "vit_pytorch": 5, "timm": 5}
# What takes more than two seconds is left to the slow test.
SLOW_ROWS = {
    "sam", "sam2_hiera_tiny", "hieradet_small", "mvitv2_tiny", "mvitv2_small_cls", "crossvit_9_240", "gemma4_vit_167m",
    "crossvit_9_dagger_240", "swin_s3_tiny_224", "beit_base_patch16_224", "beit3_base_patch16_224", "csatv2",
    "eca_halonext26ts", "sehalonet33ts", "halonet26t", "coat_tiny", "coat_lite_tiny", "bat_resnext26ts",
    "efficientloftr", "grounding_dino", "rt_detr", "rt_detr_v2", "d_fine", "chameleon", "superglue",
}  # fmt: skip


MISSING = [library for library in SAMPLE if importlib.util.find_spec(library) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")


def compute(library: str, names: list[str], file: Path, repository: Path) -> dict[str, Row]:
    """Rows of a library, computed in a process of their own: what they import and pretend stays there."""
    command = [sys.executable, "-m", "tests.trace.survey.run", library, *names]
    environment = {**os.environ, "REGARD_SURVEY": str(file), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = file.read_text(encoding="utf-8").splitlines()
    return {row["name"]: row for row in map(json.loads, lines)}


def must_hold(rows: dict[str, Row]) -> None:
    wrong = {name: verdict(row) for name, row in rows.items() if verdict(row) in (WRONG, SILENT)}
    assert not wrong


def sections(text: str) -> dict[str, str]:
    """The page, by the names of the libraries."""
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0].replace("-", "_"): part for part in parts}


def names_on(section: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)`", section, flags=re.MULTILINE)


@pytest.mark.parametrize("library", SAMPLE)
def test_a_sample_is_right_and_as_the_page_says(library: str, repository: Path, tmp_path: Path) -> None:
    section = sections((repository / "docs" / "survey.md").read_text(encoding="utf-8"))[library]
    quick = [name for name in names_on(section) if name not in SLOW_ROWS]
    sample = random.Random(18).sample(quick, SAMPLE[library])
    rows = compute(library, sample, tmp_path / "rows.jsonl", repository)
    assert sorted(rows) == sorted(sample)
    must_hold(rows)
    for name, row in rows.items():
        assert verdict(row) in (RIGHT, SAID), row
        assert line(name, row) in section


@pytest.mark.slow
def test_the_survey_is_what_is_seen(repository: Path, tmp_path: Path) -> None:
    folder = Path(os.environ.get("REGARD_SURVEY", tmp_path))
    rows = {library: compute(library, [], folder / f"{library}.jsonl", repository) for library in SAMPLE}
    for found in rows.values():
        must_hold(found)
    everything = [row for found in rows.values() for row in found.values()]
    counts = tally(everything)
    assert counts[RIGHT] >= 0.95 * (counts[RIGHT] + counts[SAID]), counts
    assert counts[UNBUILT] < 0.2 * len(everything), counts
    written = page(rows)
    file = repository / "docs" / "survey.md"
    if os.environ.get("REGARD_WRITE"):
        file.write_text(written, encoding="utf-8")
    committed = file.read_text(encoding="utf-8")
    assert committed == written, "write it anew: REGARD_WRITE=1 pytest tests/trace/test_survey.py --slow"
