"""How fast does SmolLM2-135M write, in float32 on the processor, beside `transformers` with the same weights?

Steps of all contestants are taken in turns, token by token, each step the best of several rounds, so that a busy moment
touches all alike; the read bandwidth is measured in the same run. `generate` is compared call by call.

    python benchmarks/generate.py             every question (about 4 minutes on 2 idle cores)
    python benchmarks/generate.py short       one token after the other, after a prompt of 32
    python benchmarks/generate.py long        the same at a context of 2,000, and reading 2,048 tokens
    python benchmarks/generate.py batch       16 prompts of different lengths at once
    python benchmarks/generate.py profile     where the time of the lean loop goes
"""

import sys
import time
from collections.abc import Callable, Sequence

import torch
from tools.measure import Row, best, report
from tools.smollm2 import open_ours, open_theirs

import regard
from regard.models.engines import ENGINES

THREADS, PROMPT, TOKENS, LONG, READ, BATCH = 2, 32, 128, 2000, 2048, 16
ROUNDS = 4
# What each engine promises to be times as fast as: a forward step of theirs, `generate`, a step at a context of 2,000,
# reading, a step of 16 rows.
PROMISED = {"lean": {"step": 1.15, "generate": 1.4, "long": 1.3, "read": 1.0, "batch": 1.3}}
Step = Callable[[torch.Tensor], torch.Tensor]  # the last token of each row, (b,) → the next


def draw_prompt(length: int, seed: int = 1) -> list[int]:
    """Ids of a text that is none; the time of a step does not depend on them."""
    return torch.randint(100, 40_000, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def begin_ours(model, engine: str, prompts: Sequence[Sequence[int]], steps: int) -> tuple[torch.Tensor, Step]:
    """The first token of each row, and what gives the next."""
    state = model.begin(list(prompts), engine=engine)
    first = state(state.take_prompt(len(prompts), steps)).argmax(-1)
    return first, lambda token: state(token[:, None]).argmax(-1)


def begin_theirs(model, kind: str, prompts: Sequence[Sequence[int]], steps: int) -> tuple[torch.Tensor, Step]:
    """The same by forward calls of `transformers`, with its "dynamic" or "static" cache, padded on the left."""
    import transformers

    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(row)) + list(row) for row in prompts])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * (len(row) + steps) for row in prompts])
    if kind == "static":
        cache = transformers.StaticCache(config=model.config, max_cache_len=longest + steps)
    else:
        cache = transformers.DynamicCache(config=model.config)
    is_padded = not bool(mask[:, :longest].all())
    seen = 0

    def read(ids: torch.Tensor) -> torch.Tensor:
        nonlocal seen
        total = seen + ids.shape[1]
        options = {}
        if is_padded:
            places = (mask[:, :total].cumsum(-1) - 1).clamp(min=0)
            options = {"attention_mask": mask[:, :total], "position_ids": places[:, seen:]}
        out = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1, **options)
        seen = total
        return out.logits[:, -1].argmax(-1)

    return read(ids), lambda token: read(token[:, None])


def race(beginnings: dict[str, Callable[[], tuple[torch.Tensor, Step]]], steps: int, rounds: int = ROUNDS):
    """Seconds of a step of each, and what each wrote; steps are taken in turns, each the best of the rounds."""
    times = {name: [[] for _ in range(steps)] for name in beginnings}
    texts = {}
    for turn in range(rounds):
        running = {name: begin() for name, begin in beginnings.items()}
        tokens = {name: [first] for name, (first, _) in running.items()}
        for at in range(steps):
            for name in running if (turn + at) % 2 else reversed(running):
                start = time.perf_counter()
                token = running[name][1](tokens[name][-1])
                times[name][at].append(time.perf_counter() - start)
                tokens[name].append(token)
        texts = {name: torch.stack(said, 1) for name, said in tokens.items()}
    return {name: sum(map(min, each)) / steps for name, each in times.items()}, texts


def compare_steps(ours, theirs, prompts: Sequence[Sequence[int]], steps: int, what: str, promise: str) -> list[Row]:
    """One row per engine: the quicker of their caches against it."""
    kinds = ["dynamic"] if len(prompts) > 1 else ["dynamic", "static"]
    engines = [name for name in PROMISED if name in ENGINES]
    beginnings = {kind: lambda kind=kind: begin_theirs(theirs, kind, prompts, steps + 1) for kind in kinds}
    beginnings |= {name: lambda name=name: begin_ours(ours, name, prompts, steps + 1) for name in engines}
    seconds, texts = race(beginnings, steps)
    quickest = min(kinds, key=seconds.get)
    rows = []
    for name in engines:
        same = (texts[name] == texts[quickest]).float().mean().item()
        rows += [
            Row(
                f"{what}: {quickest} cache / {name}",
                seconds[quickest] / seconds[name],
                PROMISED[name][promise],
                least=True,
            ),
            Row(f"{what}: {name}", seconds[name] * 1000, unit="ms"),
            Row(f"{what}: {name}, the same tokens", same * 100, unit="%"),
        ]
        if promise == "step":
            weights = sum(parameter.numel() * parameter.element_size() for parameter in ours.parameters())
            speed, most = weights / seconds[name] / 1e9, measure_bandwidth()
            rows.append(Row(f"{what}: {name} of the read bandwidth ({most:.1f} GB/s)", speed / most * 100, unit="%"))
    return rows


def measure_bandwidth() -> float:
    """GB/s of adding up an array that no cache holds, by all threads."""
    numbers = torch.ones(100_000_000)
    parts, _ = best(numbers.sum, numbers.sum, rounds=8)
    return numbers.numel() * 4 / parts / 1e9


def compare_generate(ours, theirs) -> list[Row]:
    """Whole calls, the prompt included."""
    prompt = torch.tensor([draw_prompt(PROMPT)])
    limits = regard.Limits(longest=TOKENS, end=None, never=())
    options = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False, "pad_token_id": 0}
    rows = []
    for name in (name for name in PROMISED if name in ENGINES):
        mine, other = best(
            lambda name=name: regard.greedy(ours.begin(prompt, engine=name), 1, limits=limits),
            lambda: theirs.generate(prompt, attention_mask=torch.ones_like(prompt), **options),
            rounds=ROUNDS,
        )
        title = f"{TOKENS} tokens: generate / {name} with greedy"
        rows.append(Row(title, other / mine, PROMISED[name]["generate"], least=True))
    return rows


def compare_reading(ours, theirs) -> list[Row]:
    """A prompt of 2,048 tokens, up to the logits after it."""
    prompts = [draw_prompt(READ)]
    rows = []
    for name in (name for name in PROMISED if name in ENGINES):
        mine, other = best(
            lambda name=name: begin_ours(ours, name, prompts, 1),
            lambda: begin_theirs(theirs, "dynamic", prompts, 1),
            rounds=ROUNDS,
        )
        what = f"reading {READ:,} tokens: "
        rows.append(Row(f"{what}transformers / {name}", other / mine, PROMISED[name]["read"], least=True))
        rows.append(Row(what + name, mine, unit="s"))
    return rows


def profile(ours) -> None:
    first, step = begin_ours(ours, "lean", [draw_prompt(PROMPT)], TOKENS)
    step(first)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        for _ in range(20):
            first = step(first)
    print(seen.key_averages().table(sort_by="self_cpu_time_total", row_limit=25, max_name_column_width=40))


@torch.no_grad()
def main() -> int:
    torch.set_num_threads(THREADS)
    asked = set(sys.argv[1:]) or {"short", "long", "batch"}
    ours, theirs = open_ours()[0], open_theirs()[0].eval()
    if "profile" in asked:
        profile(ours)
        return 0
    rows: list[Row] = []
    if "short" in asked:
        rows += compare_steps(ours, theirs, [draw_prompt(PROMPT)], TOKENS, "a step after 32", "step")
        rows += compare_generate(ours, theirs)
    if "long" in asked:
        rows += compare_steps(ours, theirs, [draw_prompt(LONG)], 24, "a step at context 2,000", "long")
        rows += compare_reading(ours, theirs)
    if "batch" in asked:
        prompts = [draw_prompt(12 + 5 * row, seed=row) for row in range(BATCH)]
        rows += compare_steps(ours, theirs, prompts, 48, f"a step of {BATCH} prompts", "batch")
    return report("generate", rows)


if __name__ == "__main__":
    raise SystemExit(main())
