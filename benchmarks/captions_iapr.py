"""Does attention help captions of photographs? BLEU-4 of soft attention and of its twin without, on IAPR TC-12.

    python benchmarks/captions_iapr.py FOLDER_OF_CAPTIONS [--steps N]

FOLDER_OF_CAPTIONS holds images64.zip and {train,val,test}.jsonl.gz (`image`, `en`). A caption is the first clause of a
description. Both models are trained by the same command, seed and number of steps, and differ in `--attention` alone.
"""

import gzip
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SETTINGS = "--validation-size 1 --vocab-size 1500 --max-length 16 --batch-size 32 --dropout 0.3 --features 24,48,64,96"
SETTINGS += " --strides 2,2,2,1 --coverage-loss 0.1 --shift 3 --brightness 0.2 --lr 1e-3 --warmup-steps 100"
SETTINGS += " --eval-every 500 --save-every 500"


def write_part(folder: Path, part: str, out: Path) -> Path:
    """A .jsonl of pictures with the first clause of their descriptions."""
    text = gzip.decompress((folder / f"{part}.jsonl.gz").read_bytes()).decode()
    lines = [json.loads(line) for line in text.splitlines()]
    rows = [{"file": one["image"], "caption": one["en"].split(";")[0].strip()} for one in lines]
    place = out / f"{part}.jsonl"
    place.write_text("".join(json.dumps(row) + "\n" for row in rows if row["caption"]), encoding="utf-8")
    return place


def run(*words: str) -> str:
    return subprocess.run([sys.executable, "-m", "regard", *words], check=True, capture_output=True, text=True).stdout


def main() -> None:
    folder = Path(next(one for one in sys.argv[1:] if not one.startswith("-")))
    steps = sys.argv[sys.argv.index("--steps") + 1] if "--steps" in sys.argv else "2000"
    with tempfile.TemporaryDirectory() as made:
        out = Path(made)
        zipfile.ZipFile(folder / "images64.zip").extractall(out)
        train, validation, test = (write_part(folder, part, out) for part in ("train", "val", "test"))
        print("| attention | parameters | BLEU-4, greedy | BLEU-4, 5 beams |\n|---|---|---|---|")
        for attention in ("soft", "none"):
            place = out / attention
            run(
                "train", "caption", "--data", str(train), "--validation", str(validation), "--out", str(place),
                "--attention", attention, "--steps", steps, *SETTINGS.split(),
            )  # fmt: skip
            told = json.loads((place / "model" / "manifest.json").read_text())
            scores = [
                json.loads(run("evaluate", str(place), "--data", str(test), "--beams", beams, "--json"))["scores"][
                    "bleu"
                ]
                for beams in ("1", "5")
            ]
            print(f"| {attention} | {told['weights']['parameters']:,} | {scores[0]:.2f} | {scores[1]:.2f} |")


if __name__ == "__main__":
    main()
