"""How fast is a training step? Target tokens per second beside plain loops around torch and transformers.

A step is forward, loss, backward and update. All contestants have 4 + 4 layers, width 128, 4 heads, feed-forward 256,
8,000 words in one table for both sides and the head, dropout 0.3 on embeddings, attention weights, hidden layers and
sublayers, label smoothing 0.1, float32, two threads, and see the same batches of some 2,500 padded target tokens,
sorted by length like Multi30k's sentences. Ours is a `Translator` with `smoothed_loss` and fused AdamW; the others are
written as one writes them, with `F.cross_entropy` and AdamW as it comes. Every contestant takes each batch in turn;
what counts is the least time of each batch.

    python benchmarks/train_speed.py              everything (about 2 minutes)
    python benchmarks/train_speed.py --rounds 3   quicker
    python benchmarks/train_speed.py --cpu        processor time of one thread: for a machine that others use, too
    python benchmarks/train_speed.py --profile    where the time of ours goes
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from tools.measure import Row, report
from torch import Tensor, nn

from regard.models.translator import TranslatorConfig
from regard.training.loss import smoothed_loss

WORDS, WIDTH, HEADS, LAYERS, HIDDEN, DROPOUT, SMOOTHING = 8000, 128, 4, 4, 256, 0.3, 0.1
PAD, BEGIN, END = 0, 1, 2
Batch = tuple[Tensor, Tensor, Tensor]  # what is read, what the decoder is fed, what it must say
Step = Callable[[Batch], None]
Clock = Callable[[], float]


def batches(count: int, tokens: int = 2500) -> list[Batch]:
    """Batches of pairs of about equal length: 8 to 25 tokens, the target up to 3 longer or shorter."""
    draw = torch.Generator().manual_seed(0)
    lengths = torch.randint(8, 26, (count * 400,), generator=draw)
    others = (lengths + torch.randint(-3, 4, lengths.shape, generator=draw)).clamp(min=4)
    pairs = sorted(zip(lengths.tolist(), others.tolist()))
    made: list[Batch] = []
    first = 0
    while first < len(pairs):
        rows = first
        longest = 0
        while rows < len(pairs) and max(longest, *pairs[rows]) * (rows - first + 1) <= tokens:
            longest = max(longest, *pairs[rows])
            rows += 1
        made.append(batch_of(pairs[first:rows], draw))
        first = rows
    return made[:: max(1, len(made) // count)][:count]  # of every length some


def batch_of(pairs: list[tuple[int, int]], draw: torch.Generator) -> Batch:
    """Random words, BEGIN and END where they belong, padded on the right."""
    shape = (len(pairs), max(length for length, _ in pairs)), (len(pairs), max(length for _, length in pairs))
    source, said = (torch.full(each, PAD) for each in shape)
    for row, sizes in enumerate(pairs):
        for ids, length in zip((source, said), sizes):
            ids[row, : length - 1] = torch.randint(4, WORDS, (length - 1,), generator=draw)
            ids[row, length - 1] = END
    fed = F.pad(said, (1, -1), value=BEGIN)
    return source, fed.masked_fill(fed == END, PAD), said


def ours() -> tuple[nn.Module, Step]:
    model = TranslatorConfig(
        WORDS, WORDS, width=WIDTH, heads=HEADS, layers=LAYERS, hidden=HIDDEN, shared=True, dropout=DROPOUT
    ).build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(batch: Batch) -> None:
        source, fed, said = batch
        hidden = model.hidden(source, fed)
        loss = smoothed_loss(hidden, model.head_weight, model.head_bias, said, smoothing=SMOOTHING)
        optimizer.zero_grad()
        (loss.sum / loss.count).backward()
        optimizer.step()

    return model, step


def of_torch() -> tuple[nn.Module, Step]:
    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(WORDS, WIDTH)
            nn.init.normal_(self.embed.weight, std=WIDTH**-0.5)
            places, turns = torch.arange(512)[:, None], torch.arange(0, WIDTH, 2) * (-math.log(10_000.0) / WIDTH)
            angles = places * turns.exp()
            self.register_buffer("table", torch.stack((angles.sin(), angles.cos()), -1).flatten(1))
            self.dropout = nn.Dropout(DROPOUT)
            self.transformer = nn.Transformer(
                WIDTH, HEADS, LAYERS, LAYERS, HIDDEN, DROPOUT, batch_first=True, norm_first=True
            )

        def read(self, ids: Tensor) -> Tensor:
            return self.dropout(self.embed(ids) * math.sqrt(WIDTH) + self.table[: ids.shape[1]])

        def forward(self, source: Tensor, fed: Tensor) -> Tensor:
            unseen = source == PAD
            later = torch.ones(fed.shape[1], fed.shape[1], dtype=torch.bool).triu(1)
            hidden = self.transformer(
                self.read(source), self.read(fed), tgt_mask=later, tgt_is_causal=True,
                src_key_padding_mask=unseen, memory_key_padding_mask=unseen,
            )  # fmt: skip
            return F.linear(hidden, self.embed.weight)

    model = Plain()
    return model, plain_step(model, lambda source, fed: model(source, fed))


def of_transformers() -> tuple[nn.Module, Step]:
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=WORDS, d_model=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=HIDDEN, decoder_ffn_dim=HIDDEN, activation_function="relu",
        dropout=DROPOUT, attention_dropout=DROPOUT, activation_dropout=DROPOUT, scale_embedding=True,
        pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=BEGIN, forced_eos_token_id=END,
        max_position_embeddings=512,
    )  # fmt: skip
    model = MarianMTModel(config)

    def logits(source: Tensor, fed: Tensor) -> Tensor:
        given = {"input_ids": source, "attention_mask": source != PAD, "decoder_input_ids": fed}
        return model(**given, use_cache=False).logits

    return model, plain_step(model, logits)


def plain_step(model: nn.Module, logits: Callable[[Tensor, Tensor], Tensor]) -> Step:
    """A step as one writes it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step(batch: Batch) -> None:
        source, fed, said = batch
        loss = F.cross_entropy(
            logits(source, fed).flatten(0, 1), said.flatten(), label_smoothing=SMOOTHING, ignore_index=PAD
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def loss_alone() -> tuple[Step, Step]:
    """Ours and the plain one, on random numbers instead of a model."""
    weight = (torch.randn(WORDS, WIDTH) * WIDTH**-0.5).requires_grad_()
    hidden = torch.randn(4000, WIDTH).requires_grad_()

    def fast(batch: Batch) -> None:
        said = batch[2].flatten()
        smoothed_loss(hidden[: len(said)], weight, None, said, smoothing=SMOOTHING).sum.backward()

    def plain(batch: Batch) -> None:
        said = batch[2].flatten()
        logits = F.linear(hidden[: len(said)], weight)
        F.cross_entropy(logits, said, label_smoothing=SMOOTHING, ignore_index=PAD, reduction="sum").backward()

    return fast, plain


def seconds(contestants: dict[str, Step], seen: list[Batch], rounds: int, clock: Clock) -> dict[str, float]:
    """For each contestant the least time of each batch, added up; they take turns, in an order that turns too."""
    least: dict[tuple[str, int], float] = {}
    names = list(contestants)
    for turn in range(rounds + 1):
        for at, batch in enumerate(seen):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                start = clock()
                contestants[name](batch)
                taken = clock() - start
                if turn:  # the first time is for warming up
                    least[name, at] = min(taken, least.get((name, at), math.inf))
    return {name: sum(least[name, at] for at in range(len(seen))) for name in names}


def size(model: nn.Module) -> float:
    return sum(p.numel() for p in model.parameters()) / 1e6


def parts(step: Step, seen: list[Batch]) -> Iterator[str]:
    """Where the time of a step goes, operator by operator."""
    from torch.profiler import ProfilerActivity, profile

    for batch in seen:
        step(batch)
    with profile(activities=[ProfilerActivity.CPU]) as found:
        for batch in seen:
            step(batch)
    yield found.key_averages().table(sort_by="self_cpu_time_total", row_limit=40, max_name_column_width=40)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1 if given.cpu else 2)
    clock = time.process_time if given.cpu else time.perf_counter
    seen = batches(given.batches)
    model, step = ours()
    if given.profile:
        print(*parts(step, seen))
        return 0
    others = {"torch": of_torch(), "transformers": of_transformers()}
    fast, plain = loss_alone()
    alone = seconds({"ours": fast, "plain": plain}, seen, given.rounds, clock)
    whole = seconds({"ours": step} | {name: each for name, (_, each) in others.items()}, seen, given.rounds, clock)
    tokens = sum(int((said != PAD).sum()) for _, _, said in seen)
    padded = 1 - tokens / sum(said.numel() for _, _, said in seen)
    rows = [
        Row("nn.Transformer / ours, time of a step", whole["torch"] / whole["ours"], 1.5, least=True),
        Row("MarianMTModel / ours, time of a step", whole["transformers"] / whole["ours"], 1.4, least=True),
        Row("F.cross_entropy / smoothed_loss, both with the head", alone["plain"] / alone["ours"], 1.5, least=True),
        *(Row(f"target tokens per second, {name}", tokens / taken, unit="/s") for name, taken in whole.items()),
        Row("milliseconds of a step, ours", 1000 * whole["ours"] / len(seen), unit="ms"),
        Row("of which smoothed_loss", 1000 * alone["ours"] / len(seen), unit="ms"),
        Row("target tokens of a batch", tokens / len(seen), unit=""),
        Row("padding of the targets", 100 * padded, unit="%"),
        Row("parameters, ours", size(model), unit="M"),
        *(Row(f"parameters, {name}", size(other), unit="M") for name, (other, _) in others.items()),
    ]
    return report("train_speed", rows)


if __name__ == "__main__":
    raise SystemExit(main())
