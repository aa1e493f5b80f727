"""A small encoder that knows the words of a large one: the best low-rank table of its embeddings, and fewer layers.

    python -m regard.tasks.shrink FOLDER runs/small --vocab-size 16000 --embed-width 96 --width 192 --layers 2
    python -m regard.tasks.shrink FOLDER runs/small --keep-layers 1,3,5 --hidden 384

What a small data set cannot teach is which words mean about the same; a large encoder knows, and its table of
embeddings is most of what it has learned of that. The table is cut to its first rows, which published vocabularies of
word pieces sort by how often they occur, and to its largest directions. Layers are new, or some of the large one's,
with the strongest channels of their feed-forward networks; `regard.tasks.imitate` teaches it what they computed.
`--pretrained runs/small` of any task of texts goes on from there.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from jaxtyping import Float
from tokenizers import Tokenizer
from torch import Tensor

from regard.errors import ConfigError, ModelError
from regard.models import store
from regard.models.bert import Bert
from regard.models.bert_config import BertConfig
from regard.models.open.load_model import LoadedModel, load_model
from regard.models.read_tokenizer import TOKENIZER

SPREAD = 0.05  # the deviation of what is written into the new table: more than that of its positions


def reduce_rank(table: Float[Tensor, "n m"], rank: int) -> Float[Tensor, "n r"]:
    r"""The rows of a table in its `rank` largest directions: $U_r S_r$ of $E - \bar e = U S V^\top$, scaled.

    Of all tables of this width it keeps the distances between the rows best (Eckart & Young 1936).

    >>> flat = torch.tensor([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    >>> made = reduce_rank(flat, 1)[:, 0]
    >>> round(float((made[2] - made[1]) / (made[1] - made[0])), 4)
    2.0
    """
    values = (table - table.mean(0)).double()
    spread, directions = torch.linalg.eigh(values.mT @ values)  # ascending
    made = values @ directions[:, spread.argsort(descending=True)[:rank]]
    return (made * (SPREAD / made.std())).to(table.dtype)


def cut_vocabulary(tokenizer: Any, size: int) -> Tokenizer:
    """A tokenizer of word pieces with the first `size` of its tokens: rarer words become pieces, as unknown ones do."""
    told = json.loads(tokenizer.to_str())
    if told["model"]["type"] != "WordPiece":
        raise ModelError(f"a tokenizer of kind {told['model']['type']} came, but word pieces can be cut; name a BERT")
    told["model"]["vocab"] = {token: at for token, at in told["model"]["vocab"].items() if at < size}
    lost = [one["content"] for one in told["added_tokens"] if one["id"] >= size]
    if lost:
        raise ModelError(f"{lost[0]} is not among the first {size} tokens, but is special; ask for more tokens")
    return Tokenizer.from_str(json.dumps(told))


def shrink_encoder(model: Bert, config: BertConfig, *, keep_layers: Sequence[int] = (), seed: int = 0) -> Bert:
    """An encoder of this config whose embeddings are those of `model`, as far as they fit; all else is drawn anew.

    With `keep_layers` its layers are these of `model` (from 0 on), with the strongest channels of their feed-forward
    networks; width and heads stay.

    >>> large = BertConfig(vocab_size=30, width=16, heads=2, layers=1).build()
    >>> small = shrink_encoder(large, BertConfig(vocab_size=20, width=12, heads=3, layers=2, embed_width=4))
    >>> small.embed.weight.shape, small.embed.weight.std().item()
    (torch.Size([20, 4]), 0.05...)
    """
    table, rank = model.embed.weight.detach(), config.embed_width or config.width
    if config.vocab_size > len(table) or rank > table.shape[1]:
        raise ModelError(
            f"{config.vocab_size} embeddings of width {rank} were asked for, but there are {len(table)} of width "
            f"{table.shape[1]}; ask for fewer"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = config.build()
        if made.project is not None:
            torch.nn.init.orthogonal_(made.project.weight)
    with torch.no_grad():
        made.embed.weight.copy_(reduce_rank(table[: config.vocab_size], rank))
    if keep_layers:
        copy_layers(made, model, keep_layers)
    return made


@torch.no_grad()
def copy_layers(made: Bert, model: Bert, keep: Sequence[int]) -> None:
    """Write layers of `model` into `made`, with as many channels of each feed-forward network as it has.

    Those are kept whose weights in and out are largest, by the product of their norms.
    """
    wrong = [at for at in keep if not 0 <= at < len(model.blocks)]
    if wrong or len(keep) != len(made.blocks):
        raise ModelError(
            f"layers {', '.join(map(str, keep))} were to be kept, but the large model has layers 0 to "
            f"{len(model.blocks) - 1} and the small one {len(made.blocks)} layers; name one for each of these"
        )
    ours, theirs = (f"{one.config.width} channels, {one.config.heads} heads" for one in (made, model))
    if ours != theirs:
        raise ModelError(f"layers of {theirs} cannot be kept in a model of {ours}; leave --width and --heads out")
    for block, at in zip(made.blocks, keep):
        state = model.blocks[at].state_dict()
        inner, outer = "feed_forward.to_hidden", "feed_forward.to_out.weight"
        strength = state[f"{inner}.weight"].norm(dim=1) * state[outer].norm(dim=0)
        size = block.state_dict()[f"{inner}.weight"].shape[0]
        if size > len(strength):
            raise ModelError(f"hidden is {size}, but the layers that are kept have {len(strength)}; ask for fewer")
        strongest = strength.topk(size).indices.sort().values
        cut = {
            f"{inner}.weight": state[f"{inner}.weight"][strongest],
            f"{inner}.bias": state[f"{inner}.bias"][strongest],
        }
        block.load_state_dict(state | cut | {outer: state[outer][:, strongest]})


def open_encoder(name: str) -> LoadedModel:
    """An encoder with its tokenizer."""
    loaded = load_model(name)
    if not isinstance(loaded.model, Bert):
        raise ModelError(f"{name} is a {type(loaded.model).__name__}, but an encoder was wanted; name a BERT")
    return loaded


def command(
    model: Annotated[str, typer.Argument(help="An encoder: a folder of a BERT with word pieces.")],
    out: Annotated[Path, typer.Argument(help="The folder to write.")],
    vocab_size: Annotated[int, typer.Option(help="Vocabulary size.")] = 16_000,
    embed_width: Annotated[int, typer.Option(help="Channels of the embeddings.")] = 96,
    width: Annotated[int | None, typer.Option(help="Model width (hidden size).", show_default="192")] = None,
    heads: Annotated[int | None, typer.Option(help="Attention heads per layer.", show_default="4")] = None,
    layers: Annotated[int, typer.Option(help="Number of layers.")] = 2,
    hidden: Annotated[int, typer.Option(help="Feed-forward size.")] = 384,
    context: Annotated[int, typer.Option(help="Max tokens per row.")] = 384,
    keep_layers: Annotated[str, typer.Option(help="Layers of the large encoder to keep, such as 0,3,5.")] = "",
) -> None:
    """Write a small encoder with the embeddings of a large one."""
    loaded = open_encoder(model)
    old = loaded.model.config
    keep = parse_layers(keep_layers)
    sizes: dict[str, Any] = {
        "width": width or (old.width if keep else 192),
        "heads": heads or (old.heads if keep else 4),
        "layers": len(keep) or layers,
        "hidden": hidden,
        "embed_width": embed_width,
    }
    config = BertConfig(vocab_size=vocab_size, context=context, pad=old.pad, token_types=old.token_types, **sizes)
    tokens = cut_vocabulary(loaded.tokenizer, vocab_size)
    made = shrink_encoder(loaded.model, config, keep_layers=keep)
    about = "the embeddings of a larger encoder, and layers that have learned nothing yet"
    if keep:
        about = f"the embeddings and the layers {keep_layers} of a larger encoder"
    files = {TOKENIZER: tokens.to_str().encode()}
    told = store.write(out, made, config, {"name": out.name, "about": about}, files)
    typer.echo(f"{told['weights']['parameters']:,} parameters in {out}: {about}")


def parse_layers(told: str) -> list[int]:
    """
    >>> parse_layers("0, 3,5")
    [0, 3, 5]
    """
    try:
        return [int(one) for one in told.split(",")] if told else []
    except ValueError:
        raise ConfigError(f"keep_layers is {told!r}, but numbers such as 0,3,5 were wanted") from None


if __name__ == "__main__":
    typer.run(command)
