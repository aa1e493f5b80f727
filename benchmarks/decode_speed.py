"""How fast is beam search beside `generate` of `transformers`, with the same weights and the same texts found?

The model is an encoder–decoder of 4 + 4 layers, width 128, 4 heads, vocabulary 10,000: ours, and a Marian of the
library that holds the same weights. They are random, so lengths are given: every text of a row ends at its length.

    OMP_NUM_THREADS=1 python benchmarks/decode_speed.py   on a machine that others use
    python benchmarks/decode_speed.py           both questions (about 3 minutes)
    python benchmarks/decode_speed.py equal     batches of equal length only
    python benchmarks/decode_speed.py profile   where the time of ours goes
"""

import gzip
import re
import sys
import time
from pathlib import Path

import torch
from tools.measure import Row, best, report

from regard.decode import Limits, beam
from regard.models.convert import export_config, export_weights
from regard.models.convert.marian import MARIAN
from regard.models.translator import Translator, TranslatorConfig

VOCABULARY, WIDTH, HEADS, LAYERS, HIDDEN, BEAMS = 10_000, 128, 4, 4, 256, 5
MULTI30K = Path(__file__).resolve().parents[2] / "shared" / "data" / "multi30k"


def models():
    """Ours and theirs with the same weights, and the proof that they are."""
    import transformers

    torch.manual_seed(0)
    config = TranslatorConfig(
        VOCABULARY, VOCABULARY, width=WIDTH, heads=HEADS, layers=LAYERS, decoder_layers=LAYERS, hidden=HIDDEN,
        order="post", shared=True, context=256,
    )  # fmt: skip
    ours = config.build()
    marks = {"bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "forced_eos_token_id": None}
    theirs = transformers.MarianMTModel(transformers.MarianConfig(**export_config("marian", config), **marks))
    theirs.load_state_dict(export_weights(MARIAN, ours.state_dict(), config))
    ours, theirs = ours.eval(), theirs.eval()
    source, target = drawn([9, 6], seed=1), drawn([5, 8], seed=2)
    with torch.no_grad():
        torch.testing.assert_close(
            ours(source, target),
            theirs(source, attention_mask=(source != 0).long(), decoder_input_ids=target).logits,
            atol=1e-4, rtol=0,
        )  # fmt: skip
    return ours, theirs


def drawn(lengths: list[int], seed: int) -> torch.Tensor:
    """Random sources of so many tokens with END, padded on the right."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.int64)
    for row, length in enumerate(lengths):
        ids[row, : length - 1] = torch.randint(4, VOCABULARY, (length - 1,), generator=generator)
        ids[row, length - 1] = 2
    return ids


@torch.inference_mode()
def search(model: Translator, source: torch.Tensor, lengths: list[int]) -> list[list[int]]:
    limits = Limits(longest=lengths, shortest=min(lengths))
    found = beam(model.begin(source), len(source), beams=BEAMS, limits=limits)
    return [texts[0].ids for texts in found]


@torch.inference_mode()
def generate(model, source: torch.Tensor, lengths: list[int]) -> list[list[int]]:
    """The same by the library: what `Limits` does, as it lets one do it."""
    import transformers

    class Length(transformers.LogitsProcessor):
        """Only END is left in a row that has its length. Most steps leave all as it is."""

        def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            done = [row for row, length in enumerate(lengths) if length == ids.shape[1] - 1]
            for row in done:
                part = scores[row * BEAMS : (row + 1) * BEAMS]
                end = part[:, 2].clone()
                part.fill_(-torch.inf)
                part[:, 2] = end
            return scores

    out = model.generate(
        source, attention_mask=(source != 0).long(), num_beams=BEAMS, do_sample=False, length_penalty=1.0,
        early_stopping=False, max_new_tokens=max(lengths) + 1, min_new_tokens=min(lengths), suppress_tokens=[0, 1],
        logits_processor=[Length()],
    )  # fmt: skip
    return [row[1 : row.index(2, 1)] for row in out.tolist()]


def same(ours: list[list[int]], theirs: list[list[int]]) -> float:
    """The share of texts that are the same. Two that score the same to the last digit may change places."""
    return sum(mine == other for mine, other in zip(ours, theirs, strict=True)) / len(ours)


def equal_lengths(ours, theirs, rows: int, length: int, promised: float | None) -> list[Row]:
    source, lengths = drawn([length] * rows, seed=rows), [length] * rows
    share = same(search(ours, source, lengths), generate(theirs, source, lengths))
    mine, other = best(lambda: search(ours, source, lengths), lambda: generate(theirs, source, lengths), rounds=20)
    what = f"{rows} texts of {length} tokens, {BEAMS} beams"
    return [
        Row(f"{what}: theirs / ours", other / mine, promised, least=True),
        Row(f"{what}: ours", mine * 1000 / (length + 1), unit="ms/step"),
        Row(f"{what}: the same text", share * 100, 99.0, "%", least=True),
    ]


def test_lengths() -> list[tuple[int, int]]:
    """Tokens of the 1,000 sentence pairs, English and German, each with END."""
    sides = []
    for language in ("en", "de"):
        path = MULTI30K / f"test_2016_flickr.{language}.gz"
        if not path.exists():
            generator = torch.Generator().manual_seed(0)
            lengths = torch.randint(7, 20, (1000,), generator=generator)
            return [(n, max(5, n + shift)) for n, shift in zip(lengths.tolist(), [-2, 0, 1, 3] * 250)]
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            sides.append([len(re.findall(r"\w+|[^\w\s]", line)) + 1 for line in lines])
    return list(zip(*sides, strict=True))


def corpus(ours, theirs, sizes: tuple[int, ...] = (50, 100, 150)) -> list[Row]:
    """Ours sorted by the length of the source, theirs as they stand in the file; batches of so many texts, in turns."""
    pairs = test_lengths()
    whole = drawn([source for source, _ in pairs], seed=3)
    in_file = list(range(len(pairs)))
    by_length = sorted(in_file, key=lambda i: pairs[i][0])
    search(ours, whole[:2], [3, 3]), generate(theirs, whole[:2], [3, 3])
    rows, taken, shares = [], ([], []), []
    name = "1,000 sentences of Multi30k's lengths"
    for size in sizes:
        seconds, texts = [0.0, 0.0], [[[]] * len(pairs), [[]] * len(pairs)]
        for first in range(0, len(pairs), size):
            for which, (translate, model, order) in enumerate(((search, ours, by_length), (generate, theirs, in_file))):
                chosen = order[first : first + size]
                source = whole[chosen, : max(pairs[i][0] for i in chosen)]
                start = time.perf_counter()
                found = translate(model, source, [pairs[i][1] for i in chosen])
                seconds[which] += time.perf_counter() - start
                for i, text in zip(chosen, found):
                    texts[which][i] = text
        for times, one in zip(taken, seconds):
            times.append(one)
        shares.append(same(*texts))
        rows.append(Row(f"{name}, {size} at a time: theirs / ours", seconds[1] / seconds[0]))
    return [
        Row(
            f"{name}, each as many at a time as suit it: theirs / ours", min(taken[1]) / min(taken[0]), 3.0, least=True
        ),
        *rows,
        Row(f"{name}: ours", min(taken[0]), unit="s"),
        Row(f"{name}: the same text", min(shares) * 100, 99.0, "%", least=True),
    ]


def profile(ours) -> None:
    source, lengths = drawn([20] * 16, seed=16), [20] * 16
    search(ours, source, lengths)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as found:
        search(ours, source, lengths)
    print(found.key_averages().table(sort_by="self_cpu_time_total", row_limit=25, max_name_column_width=40))


def main() -> int:
    ours, theirs = models()
    if "profile" in sys.argv:
        profile(ours)
        return 0
    rows = equal_lengths(ours, theirs, 16, 20, 1.8) + equal_lengths(ours, theirs, 64, 20, 1.8)
    if "equal" not in sys.argv:
        rows += corpus(ours, theirs)
    return report("decode_speed", rows)


if __name__ == "__main__":
    raise SystemExit(main())
