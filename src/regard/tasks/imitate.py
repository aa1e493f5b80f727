"""A small encoder learns to give the states that a large one gives, layer by layer (Jiao et al. 2020, TinyBERT).

    python -m regard.tasks.imitate FOLDER runs/small runs/taught --layers 1,3,5 --text train.txt --steps 1000

No label is needed: any text will do. Both read the same ids, so the vocabulary of the small one is a part of the large
one's.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import typer
from torch import Tensor, nn

from regard.data.batches import batches
from regard.data.examples import RaggedArray
from regard.data.lines import stream_lines
from regard.data.squad import read_squad
from regard.errors import ConfigError, DataError
from regard.models import store
from regard.models.bert import Bert
from regard.models.read_tokenizer import TOKENIZER
from regard.tasks.answer_questions import AskedQuestions
from regard.tasks.answer_windows import WindowEncoder
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.tasks.shrink import open_encoder, parse_layers
from regard.trace.census.census import eval_mode
from regard.trace.measure.bar import bar
from regard.training.schedule import rate_at

LEAST = 8  # tokens of a row: shorter lines are left out
WARMUP = 0.05  # share of the steps


class ImitationRows(NamedTuple):
    """What both encoders read: rows of ids, and of which text each token is."""

    ids: RaggedArray
    types: RaggedArray | None = None  # all of the first, unless given


def read_rows(path: Path, tokens: EncoderTokenizer, longest: int, *, match: bool = False) -> ImitationRows:
    """The lines of a text as rows of ids between special tokens, long lines cut into several; or, of a SQuAD file
    (.json, .json.gz), questions with their passages, with `match` as a model that answers reads them."""
    if path.name.endswith((".json", ".json.gz")):
        encoder = WindowEncoder(tokens, max_length=longest, match=match)
        asked = [row for one in AskedQuestions(read_squad(path), encoder).asked for row in one.rows]
        return ImitationRows(
            *(
                RaggedArray([np.asarray(one, np.int32) for one in some])
                for some in ([row.ids for row in asked], [row.types for row in asked])
            )
        )
    most = longest - len(tokens.before) - len(tokens.after)
    rows: list[np.ndarray] = []
    for ids in tokens.encode_ids([line for line in stream_lines(path) if line.strip()]):
        pieces = (ids[start : start + most] for start in range(0, len(ids), most))
        rows += [np.asarray(tokens.frame(piece).ids, dtype=np.int32) for piece in pieces if len(piece) >= LEAST]
    if not rows:
        raise DataError(f"{path} has no line of {LEAST} tokens to learn from; name a longer text")
    return ImitationRows(RaggedArray(rows))


def imitate(
    small: Bert,
    large: Bert,
    rows: ImitationRows,
    layers: Sequence[tuple[int, int]],
    *,
    steps: int,
    lr: float = 1e-3,
    batch_tokens: int = 2048,
    seed: int = 0,
) -> float:
    r"""Train `small` to give the states of `large`: each pair of `layers` is one of small's, and the one it imitates.

    The loss is the mean of $(h_\mathrm{small} - h_\mathrm{large})^2$ over the pairs, the tokens and the channels;
    where the widths differ, after a linear map that is thrown away. Returns its mean over the last tenth of the steps.

    >>> from regard.models.bert_config import BertConfig
    >>> _ = torch.manual_seed(0)
    >>> large, small = (BertConfig(vocab_size=30, width=8, heads=2, layers=n).build() for n in (3, 1))
    >>> rows = ImitationRows(RaggedArray([np.arange(3 + n, 20, dtype=np.int32) for n in range(5)]))
    >>> first = imitate(small, large, rows, [(0, 2)], steps=1, lr=1e-9)
    >>> imitate(small, large, rows, [(0, 2)], steps=40, lr=1e-2) < first / 2
    True
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        widths = small.config.width, large.config.width
        maps = nn.ModuleList(nn.Identity() if widths[0] == widths[1] else nn.Linear(*widths) for _ in layers)
    weights = [*small.parameters(), *maps.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=lr, betas=(0.9, 0.98), weight_decay=0.01)
    warmup = round(WARMUP * steps)
    lost: list[float] = []
    drawn = draw_batches(rows.ids, batch_tokens, seed)
    with eval_mode(large), hear_blocks(small) as ours, hear_blocks(large) as theirs, bar("imitate", steps) as advance:
        small.train()
        for step in range(steps):
            batch = next(drawn)
            ids, lengths = torch.from_numpy(rows.ids.pad(batch)), torch.from_numpy(rows.ids.lengths[batch])
            types = None if rows.types is None else torch.from_numpy(rows.types.pad(batch))
            with torch.no_grad():
                large.hidden(ids, types, lengths=lengths)
            small.hidden(ids, types, lengths=lengths)
            there = torch.arange(ids.shape[1]) < lengths[:, None]
            loss = torch.stack(
                [
                    (turn(ours[one][there]) - theirs[other][there]).square().mean()
                    for turn, (one, other) in zip(maps, layers)
                ]
            ).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(weights, 1.0)
            for group in optimizer.param_groups:
                group["lr"] = rate_at(step, kind="linear", peak=lr, warmup=warmup, steps=steps)
            optimizer.step()
            lost.append(float(loss.detach()))
            advance(1)
        small.eval()
    return float(np.mean(lost[-max(1, steps // 10) :]))


def draw_batches(rows: RaggedArray, batch_tokens: int, seed: int) -> Iterator[np.ndarray]:
    """Batches of rows, epoch after epoch, without end."""
    tokens = max(batch_tokens, int(rows.lengths.max()))
    for epoch in count():
        yield from batches({"ids": rows.lengths}, tokens=tokens, seed=seed, epoch=epoch)


@contextmanager
def hear_blocks(model: Bert) -> Iterator[dict[int, Tensor]]:
    """What each block of a model gave when it last ran."""
    heard: dict[int, Tensor] = {}

    def hook_for(at: int) -> Any:
        def hear(_: nn.Module, __: Any, given: Tensor) -> None:
            heard[at] = given

        return hear

    with ExitStack() as stack:
        for at, block in enumerate(model.blocks):
            stack.callback(block.register_forward_hook(hook_for(at)).remove)
        yield heard


def pair_layers(told: str, small: Bert, large: Bert) -> list[tuple[int, int]]:
    """Each layer of the small encoder with the one it imitates; the last with the last unless told.

    >>> from regard.models.bert_config import BertConfig
    >>> large, small = (BertConfig(vocab_size=30, width=8, heads=2, layers=n).build() for n in (3, 2))
    >>> pair_layers("1,2", small, large), pair_layers("", small, large)
    ([(0, 1), (1, 2)], [(1, 2)])
    """
    wanted = parse_layers(told)
    if not wanted:
        return [(len(small.blocks) - 1, len(large.blocks) - 1)]
    if len(wanted) != len(small.blocks) or any(not 0 <= at < len(large.blocks) for at in wanted):
        raise ConfigError(
            f"layers is {told!r}, but one of 0 to {len(large.blocks) - 1} was wanted for each of the "
            f"{len(small.blocks)} layers of the small encoder"
        )
    return list(enumerate(wanted))


def command(
    large: Annotated[str, typer.Argument(help="The encoder to imitate: a folder or a run.")],
    small: Annotated[str, typer.Argument(help="The encoder that learns, such as `regard.tasks.shrink` writes.")],
    out: Annotated[Path, typer.Argument(help="The folder to write.")],
    text: Annotated[Path, typer.Option(help="A text file, or a SQuAD file with questions.")],
    layers: Annotated[str, typer.Option(help="The layer that each of the small encoder imitates, such as 1,3,5.")] = "",
    match: Annotated[bool, typer.Option("--match", help="Mark words as `regard train answer --match` does.")] = False,
    steps: Annotated[int, typer.Option(help="Training steps.")] = 1000,
    lr: Annotated[float, typer.Option(help="Peak learning rate.")] = 8e-4,
    batch_tokens: Annotated[int, typer.Option(help="Tokens per batch.")] = 2048,
) -> None:
    """Teach a small encoder the states of a large one."""
    teacher, pupil = open_encoder(large).model, open_encoder(small)
    rows = read_rows(text, EncoderTokenizer.wrap(pupil.tokenizer), pupil.model.longest, match=match)
    pairs = pair_layers(layers, pupil.model, teacher)
    lost = imitate(pupil.model, teacher, rows, pairs, steps=steps, lr=lr, batch_tokens=batch_tokens)
    about = f"learned to give the states of a larger encoder (mean square of the difference {lost:.3f})"
    files = {TOKENIZER: pupil.tokenizer.to_str().encode()}
    told = store.write(out, pupil.model, pupil.model.config, {"name": out.name, "about": about}, files)
    typer.echo(f"{told['weights']['parameters']:,} parameters in {out}: {about}")


if __name__ == "__main__":
    typer.run(command)
