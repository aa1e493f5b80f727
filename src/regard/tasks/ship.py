"""A finished run as a model that comes with the package: small, scored, and with the command that made it."""

import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from regard.data.grammar import sentences
from regard.models import store
from regard.models.kinds import kind_named
from regard.tasks.alignment import score_alignment
from regard.tasks.evaluate import evaluate
from regard.tasks.text_translator import open_translator
from regard.tasks.translate import SOURCE, TARGET
from regard.training.run import RunFolder

PARTS = ("test", "unseen", "long")
COUNT = 300  # sentences of each part, greedy: what a test computes again in seconds


def score_parts(where: str) -> dict[str, dict[str, float]]:
    """BLEU, chrF and the share of sentences without a fault, on three parts of the grammar that were never seen."""
    found = {}
    for part in PARTS:
        one = evaluate(where, part=part, count=COUNT, beams=1, samples=0, alignment=False)
        found[part] = {key: round(float(one[key]), 4) for key in ("bleu", "chrf", "exact")}
    return found


def ship(run: Path, out: Path, about: str) -> dict[str, Any]:
    """The manifest, after the model of a run was written to `out` in half precision."""
    opened = open_translator(run)
    facts = {key: opened.facts[key] for key in ("task", "settings", "weights_of", "steps")}
    environment = json.loads((RunFolder.open(run).folder / "environment.json").read_text())
    made = environment.pop("command").replace(str(run), f"runs/{out.name}")  # where folders lie is nobody's business
    files = {SOURCE: opened.source.json.encode(), TARGET: opened.target.json.encode()}
    config = kind_named(opened.facts["kind"]).config_class(**opened.facts["config"])
    facts |= {"name": out.name, "about": about, "command": made, "environment": environment}
    store.write(out, opened.model, config, facts, files, dtype=torch.float16)
    measured = score_alignment(
        open_translator(out), sentences(COUNT, seed=opened.facts["settings"]["seed"], part="test")
    )
    aligned = {"layer": measured.layer, "error_rate": round(measured.error_rate, 4)}
    facts |= {"scores": score_parts(str(out)), "alignment": aligned | {"straight_line": round(measured.chance, 4)}}
    return store.write(out, opened.model, config, facts, files, dtype=torch.float16)


def command(
    run: Annotated[Path, typer.Argument(help="The folder of a run that came to its end.")],
    out: Annotated[Path, typer.Option(help="Where the model goes; its last part is its name.")],
    about: Annotated[str, typer.Option(help="What it is, in a sentence.")],
) -> None:
    """Write the model of a run with its scores, in half precision."""
    made = ship(run, out, about)
    typer.echo(f"{made['weights']['bytes'] / 1e6:.2f} MB; {made['scores']}; {made['alignment']}")


if __name__ == "__main__":
    typer.run(command)
