"""What does attention do for long sentences? Four translators, the same data and as many updates: score against length.

python benchmarks/attention_and_length.py            1,000 updates each (about 20 minutes)
python benchmarks/attention_and_length.py 200 out    fewer, into this folder
"""

import itertools
import sys
import tempfile
from pathlib import Path

from tools.measure import OUT, Row, report

MODELS = {
    "none": {"model": "recurrent", "attention": "none", "layers": 1, "width": 192},
    "Bahdanau": {"model": "recurrent", "attention": "additive", "layers": 1, "width": 192},
    "Luong": {"model": "recurrent", "attention": "general", "layers": 1, "width": 192},
    "Transformer": {"model": "transformer", "layers": 2, "width": 128, "hidden": 384},
}
EDGES = (0, 6, 10, 14, 20, 26, 99)  # words of a source


def trained(name: str, steps: int, folder: Path):
    from regard.tasks.text_translator import open_translator
    from regard.tasks.translate import Translate, TranslateSettings
    from regard.training.fit import fit

    settings = TranslateSettings(
        **MODELS[name], steps=steps, batch_tokens=2000, lr=2e-3, warmup_steps=200, vocab_size=1600, eval_every=steps,
        save_every=max(1, steps // 4),
    )  # fmt: skip
    begun = (folder / name / "run.json").exists()
    if not (folder / name / "model" / "manifest.json").exists():
        fit(Translate(), settings, folder / name, resume=begun)
    return open_translator(folder / name)


def by_length(interpreter, pairs) -> list[float]:
    """BLEU of the sentences between each pair of edges."""
    from regard.tasks.score import score_texts

    found = []
    for low, high in itertools.pairwise(EDGES):
        some = [pair for pair in pairs if low <= len(pair.source_words) < high]
        written = [one.text for one in interpreter.translate([pair.source for pair in some], beams=1)]
        found.append(score_texts(written, [[pair.target] for pair in some], tokenizer="zh").bleu)
    return found


def draw(lines: dict[str, list[float]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    middles = [(low + min(high, 34)) / 2 for low, high in itertools.pairwise(EDGES)]
    for name, values in lines.items():
        axes.plot(middles, values, marker="o", label=name)
    axes.set(title="attention and the length of a sentence", xlabel="words of the source", ylabel="BLEU", ylim=(0, 101))
    axes.legend(frameon=False)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "attention_and_length.png", dpi=120)
    figure.savefig(OUT / "attention_and_length.svg")


def main() -> int:
    from regard.data.grammar import sentences

    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    pairs = sentences(700, seed=0, part="test") + sentences(300, seed=0, part="long")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(made)
        lines = {name: by_length(trained(name, steps, folder), pairs) for name in MODELS}
    draw(lines)
    rows = [
        Row(f"{name}, {low}–{high - 1} words", value, unit="BLEU")
        for name, values in lines.items()
        for low, high, value in zip(EDGES, EDGES[1:], values)
    ]
    rows += [
        Row(f"{name} − none, longest", lines[name][-1] - lines["none"][-1], 5.0, "BLEU", least=True)
        for name in ("Bahdanau", "Luong", "Transformer")
    ]
    return report("attention_and_length", rows)


if __name__ == "__main__":
    raise SystemExit(main())
