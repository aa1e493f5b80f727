"""How surprised a causal language model is by a text: its perplexity, over windows that slide along the text."""

import inspect
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.errors import ConfigError, DataError, ModelError
from regard.models.context import max_tokens
from regard.models.kinds import kind_of
from regard.tokens.protocol import as_tokenizer
from regard.trace.census.census import eval_mode
from regard.trace.census.corpus import encode
from regard.trace.measure.bar import bar

WINDOW = 1024  # tokens read at once, where the model takes so many
CHUNK = 2**22  # logits held at once: 16 MB in float32
PROBED = 8  # tokens by which a model is seen to look back only


@dataclass(frozen=True)
class Perplexity:
    r"""The negative log-likelihood of a text, $-\sum_i \log p(x_i \mid x_{<i})$, and what it is divided by.

    `per_token` depends on the tokenizer; `per_word` and `bits_per_byte` do not, so models can be compared by them.
    A word is what stands between white space, a line is what a line feed ends: WikiText's published figures count an
    end of each line as one more word, `per_word_and_line`.

    >>> found = Perplexity(nll=8 * math.log(2), tokens=4, words=2, lines=2, bytes=16, window=8, stride=4, start=None)
    >>> [round(one, 6) for one in (found.per_token, found.per_word, found.per_word_and_line, found.bits_per_byte)]
    [4.0, 16.0, 4.0, 0.5]
    """

    nll: float  # of all tokens that count, in nats
    tokens: int  # that count, each once
    words: int  # of the whole text, separated by white space
    lines: int  # line feeds in it
    bytes: int  # of it in UTF-8
    window: int  # tokens that the model reads at once, at most
    stride: int  # tokens from one window to the next
    start: int | None  # the id that stood before the text; None: its first token was given, and does not count

    @property
    def per_token(self) -> float:
        """$e$ to the mean negative log-likelihood of a token."""
        return exp_mean(self.nll, self.tokens)

    @property
    def per_word(self) -> float:
        """The same, divided by words: $e^{\\mathrm{nll} / \\mathrm{words}}$."""
        return exp_mean(self.nll, self.words)

    @property
    def per_word_and_line(self) -> float:
        """The same, where the end of each line is a word, too."""
        return exp_mean(self.nll, self.words + self.lines)

    @property
    def bits_per_byte(self) -> float:
        """What the text costs with the best code that this model gives, per byte of its UTF-8."""
        return self.nll / math.log(2) / self.bytes

    def to_json(self) -> dict[str, Any]:
        """Everything counted and computed, as plain values."""
        names = ("per_token", "per_word", "per_word_and_line", "bits_per_byte")
        return {name: getattr(self, name) for name in names} | asdict(self)

    def __str__(self) -> str:
        first = "the first token is given" if self.start is None else f"id {self.start} stands before the text"
        return (
            f"perplexity {self.per_token:.4f} per token, {self.per_word:.4f} per word, {self.per_word_and_line:.4f} "
            f"per word with line ends; {self.bits_per_byte:.5f} bits per byte\n"
            f"{self.tokens:,} tokens, {self.words:,} words (white space between them), {self.lines:,} line ends, "
            f"{self.bytes:,} bytes; windows of {self.window:,} tokens, stride {self.stride:,}; {first}"
        )


def exp_mean(nll: float, count: int) -> float:
    try:
        return math.exp(nll / count) if count else math.nan
    except OverflowError:
        return math.inf


def perplexity(
    model: nn.Module,
    tokenizer: Any,
    text: str,
    *,
    window: int | None = None,
    stride: int | None = None,
    start: int | None = None,
    progress: bool = False,
) -> Perplexity:
    """How surprised a causal model is by a text, one of ours or of `transformers`.

    The model reads `window` tokens at once (1,024, or its context, unless given), then goes on by `stride` (half a
    window). Each token counts once, in the first window that reaches it, so that all but those of the first window
    have `window - stride` tokens before them at least. With a stride as long as the window nothing is read twice, and
    the first tokens of each window know little: the figure is higher.

    `start` is an id that stands before the text, so that its first token counts, too; where it is not given it is what
    the tokenizer puts there by itself. Without either the first token is only read. Logits are made a few rows at a
    time where the model is ours, and only for the tokens that count elsewhere, so memory does not grow with the text.

    >>> import regard
    >>> model, tokenizer = regard.open_model("induction")
    >>> found = perplexity(model, tokenizer, "A B C D " * 64)
    >>> found.tokens, found.words, found.bytes, found.per_token < 2
    (255, 256, 512, True)
    """
    ids, start = with_start(as_tokenizer(tokenizer).encode(text), tokenizer, start)
    if len(ids) < 2:
        raise DataError(f"the text has {len(ids)} tokens, and nothing to predict; give at least two words")
    size, step = sizes(model, tokenizer, window, stride)
    losses = torch.cat(list(token_losses(model, ids, window=size, stride=step, progress=progress)))
    wrong = int(losses.isfinite().logical_not().sum())
    if wrong:
        raise ModelError(
            f"the model gives {wrong:,} of {len(losses):,} tokens no finite log-likelihood; compute in float32"
        )
    counts = {"words": len(text.split()), "lines": text.count("\n"), "bytes": len(text.encode())}
    return Perplexity(float(losses.sum()), len(losses), **counts, window=size, stride=step, start=start)


def with_start(ids: list[int], tokenizer: Any, start: int | None) -> tuple[list[int], int | None]:
    """The ids after the one that stands before a text, and that one: as given, or as the tokenizer has it."""
    around = encode("", tokenizer)[0] if start is None else [start]
    return (ids, None) if not around else ([around[0], *ids], around[0])


def sizes(model: nn.Module, tokenizer: Any, window: int | None, stride: int | None) -> tuple[int, int]:
    """Window and stride, as they came or by default; refused where they do not fit the model or each other."""
    most = max_tokens(model, tokenizer)
    size = min(WINDOW, most or WINDOW) if window is None else window
    step = max(1, size // 2) if stride is None else stride
    if size < 1 or step < 1:
        raise ConfigError(f"window is {size} and stride {step}, but both count tokens; give 1 or more")
    if step > size:
        raise ConfigError(
            f"stride is {step} and window {size}, so tokens between windows would never count; "
            f"give a stride of at most {size}"
        )
    if most is not None and size > most:
        raise ModelError(f"window is {size:,}, but the model takes at most {most:,} tokens; give a smaller window")
    return size, step


class Span(NamedTuple):
    """One window: the tokens that are read, and how many of the last predictions count."""

    first: int
    stop: int
    counted: int


def spans(predictions: int, window: int, stride: int) -> Iterator[Span]:
    """The windows over so many predictions, each of which counts once.

    >>> [tuple(one) for one in spans(7, 4, 2)]
    [(0, 4, 4), (2, 6, 2), (4, 7, 1)]
    """
    done, first = 0, 0
    while done < predictions:
        stop = min(first + window, predictions)
        yield Span(first, stop, stop - done)
        done, first = stop, first + stride


def token_losses(
    model: nn.Module, ids: Sequence[int], *, window: int, stride: int, progress: bool = False
) -> Iterator[Float[Tensor, " t"]]:
    """The negative log-likelihood of each token but the first, in float64, window by window."""
    whole = torch.tensor(ids)
    with eval_mode(model) as device, bar("perplexity", len(ids) - 1, rate="tokens", shown=progress) as advance:
        must_look_back(model, whole[None, :PROBED].to(device))
        for first, stop, counted in spans(len(ids) - 1, window, stride):
            read, wanted = whole[None, first:stop].to(device), whole[stop - counted + 1 : stop + 1].to(device)
            yield losses_of_last(model, read, wanted).cpu()
            advance(counted)


@torch.no_grad()
def losses_of_last(model: nn.Module, ids: Int[Tensor, "1 q"], wanted: Int[Tensor, " t"]) -> Float[Tensor, " t"]:
    """What the last tokens of a window expect, against what came, in float64."""
    own: Any = model
    if hasattr(own, "hidden") and hasattr(own, "head_weight"):
        hidden, weight, bias = own.hidden(ids)[0, -len(wanted) :], own.head_weight, own.head_bias  # t m, n m, n
        rows = max(1, CHUNK // len(weight))
        made = (F.linear(some, weight, bias) for some in hidden.split(rows))
    else:
        logits = logits_of(model, ids, len(wanted))
        rows = max(1, CHUNK // logits.shape[-1])
        made = iter(logits.split(rows))
    pairs = zip(made, wanted.split(rows), strict=True)
    return torch.cat([F.cross_entropy(at_least_float(some), right, reduction="none").double() for some, right in pairs])


def at_least_float(logits: Tensor) -> Tensor:
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def logits_of(model: nn.Module, ids: Int[Tensor, "1 q"], last: int) -> Float[Tensor, "t n"]:
    """The logits at the last positions, from any model that gives logits, alone or as `.logits`."""
    known = inspect.signature(model.forward).parameters
    asked = {"use_cache": False, "logits_to_keep": last}
    output = model(ids, **{name: value for name, value in asked.items() if name in known})
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor) or logits.dim() != 3:
        raise not_causal(model, "gives no logits for each token")
    return logits[0, -last:]


@torch.no_grad()
def must_look_back(model: nn.Module, ids: Int[Tensor, "1 q"]) -> None:
    """Refuse a model that looks ahead, which would be asked for what it sees, and one that takes no text alone."""
    kind = kind_of(model)
    if (kind is not None and "generate" not in kind.tasks) or is_pair(model):
        raise not_causal(model, "does not write on where a text ends")
    other = ids.clone()
    other[0, -1] = ids[0, 0] if ids[0, 0] != ids[0, -1] else (ids[0, 0] + 1) % 2
    before, after = (logits_of(model, some, ids.shape[1])[:-1].double() for some in (ids, other))
    if bool((before - after).abs().max() > 1e-5 * before.abs().max()):  # not so where there is no number
        raise not_causal(model, "looks ahead")


def is_pair(model: nn.Module) -> bool:
    """Whether a model of `transformers` reads one text and writes another."""
    return bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))


def not_causal(model: nn.Module, why: str) -> ModelError:
    name = type(model).__name__
    return ModelError(f"{name} {why}, so a text has no perplexity under it; give a causal language model")


def first_tokens(text: str, tokenizer: Any, count: int) -> str:
    """The beginning of a text that ends with its token number `count`; all of it where it has no more.

    >>> from regard.models.tokenizer import WordTokenizer
    >>> first_tokens("A B. A", WordTokenizer(["A", "B", "."]), 3)
    'A B.'
    """
    spans_of_tokens = as_tokenizer(tokenizer).offsets(text)
    return text if len(spans_of_tokens) <= count else text[: spans_of_tokens[count - 1][1]]
