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
from types import SimpleNamespace

import pytest

from tests.trace.survey import page as survey_page
from tests.trace.survey.libraries import LIBRARIES
from tests.trace.survey.library import Row
from tests.trace.survey.page import add_rows, line, page, read_numbers, read_section
from tests.trace.survey.verdict import NONE, RIGHT, SAID, SILENT, UNBUILT, WRONG, tally, verdict

SAMPLE = {"transformers": 24, "x_transformers": 6, "vit_pytorch": 5, "timm": 5}
# What takes more than two seconds is left to the slow test.
SLOW_ROWS = {
    "sam", "sam2_hiera_tiny", "hieradet_small", "mvitv2_tiny", "mvitv2_small_cls", "crossvit_9_240", "gemma4_vit_167m",
    "crossvit_9_dagger_240", "swin_s3_tiny_224", "beit_base_patch16_224", "beit3_base_patch16_224", "csatv2",
    "eca_halonext26ts", "sehalonet33ts", "halonet26t", "coat_tiny", "coat_lite_tiny", "bat_resnext26ts",
    "swin2sr", "vjepa2", "efficientloftr", "grounding_dino", "rt_detr", "rt_detr_v2", "d_fine", "chameleon",
    "superglue",
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


def test_rows_that_are_added_later_make_the_same_page(monkeypatch: pytest.MonkeyPatch) -> None:
    attends = {
        "built": True, "class": "Model", "same": True, "attention": 1, "raised": "", "refused": {}, "missed": [],
        "silent": [], "unmatched": [], "complete": True,
        "layers": [{"exact": True, "status": "verified", "axes": "right", "names": "input_ids / patches", "why": ""}],
    }  # fmt: skip
    partly = {**attends, "unmatched": ["one"], "missed": ["a was heard of"], "refused": {"a": "why: so"}}
    none, unbuilt = {**attends, "attention": 0, "layers": []}, {"built": False, "why": "no module: `flash`, sorry"}
    rows: dict[str, Row] = dict(zip("fbdaegc", (attends, partly, none, unbuilt, unbuilt, none, attends), strict=True))
    two = {key: SimpleNamespace(title=f"{key}-models", names=lambda: list("abcdefgh")) for key in ("x", "y")}
    monkeypatch.setattr(survey_page, "LIBRARIES", two)
    whole = page({"x": rows, "y": rows})
    assert whole.count("Not looked at yet: `h`.") == 2
    half = add_rows(page({"y": rows}), {"x": {name: rows[name] for name in "fae"}, "y": rows})
    assert add_rows(half, {"x": rows}) == whole != half
    assert add_rows(whole, {"x": {"a": attends, "c": none}}) == whole  # what is there stays


def test_the_page_is_read_as_it_was_written(repository: Path) -> None:
    text = (repository / "docs" / "survey.md").read_text(encoding="utf-8")
    known = {title: read_section(part) for title, part in re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", text, re.M | re.S)}
    for library, counted in ((one, read_numbers(text, one.title)) for one in LIBRARIES.values()):
        found = known[library.title]
        assert counted["looked at"] == sum(map(len, found)) > 40
        assert (counted[NONE], counted[UNBUILT]) == (len(found.none), len(found.unbuilt))


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
