"""One small architecture of `transformers` with random weights: how it is built, fed, and asked for its attentions."""

import inspect
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

Inputs = dict[str, Any]
Feed = Callable[[], Inputs]
Weights = list[Tensor]  # (b, h, q, k) each, in the order they were computed

MAPS = ("attentions",)
IN_TURNS = ("encoder_attentions", ("decoder_attentions", "cross_attentions"))


@dataclass(frozen=True, repr=False)
class Species:
    """A model class with a small configuration.

    `own` and `cross` count the attention calls of one forward pass. `fields` names where the eager model returns
    its weights, in the order of computation; a tuple inside it stands for lists that are computed in turns, layer
    by layer. Where there is nothing to compare with, `fields` is empty and `silent` says why. `refused` says why
    some calls have no map, and `unseen` which: counted from 0 in the order of computation, all unless told. `apart`
    says why the library's eager arithmetic is not what its default computes.
    """

    name: str
    family: str
    model: str
    sizes: dict[str, Any]
    feed: Feed
    own: int = 2
    cross: int = 0
    config: str = ""
    fields: tuple[str | tuple[str, ...], ...] = MAPS
    silent: str = ""
    apart: str = ""
    refused: str = ""
    unseen: tuple[int, ...] | None = None
    lively: float = 1.5  # how large weights are drawn
    told: dict[str, Any] = field(default_factory=dict)  # further arguments of the forward pass
    within: tuple[str, ...] = ()  # classes of attention modules whose second output is taken instead of `fields`
    unfold: Callable[[Any, Inputs], Weights] | None = None  # makes (b, h, q, k) of what the outputs hold instead

    def __repr__(self) -> str:
        return f"{self.name} ({self.model})"

    def build(self, attn_implementation: str | None = None) -> tuple[Any, Inputs]:
        """The model in float32, ready to run, and its inputs: the same ones each time.

        Without `attn_implementation` the model takes what `transformers` would take by itself.
        """
        import transformers

        torch.manual_seed(zlib.crc32(self.name.encode()))
        chosen = {} if attn_implementation is None else {"attn_implementation": attn_implementation}
        config_class = getattr(transformers, self.config or self.model_stem + "Config")
        model = getattr(transformers, self.model)(config_class(**self.sizes, **chosen))
        enliven(model, self.lively)
        return model.float().eval(), {**self.feed(), **self.told}

    @property
    def model_stem(self) -> str:
        """BertModel and BertForMaskedLM both have a BertConfig."""
        for end in ("LMHeadModel", "Model"):
            if self.model.endswith(end):
                return self.model.removesuffix(end)
        return self.model.partition("For")[0]

    @property
    def seen(self) -> list[int]:
        """Which of the calls have a map, counted from 0 in the order of computation."""
        calls = range(self.own + self.cross)
        unseen = () if not self.refused else calls if self.unseen is None else self.unseen
        return [call for call in calls if call not in unseen]

    def reference(self, model: Any, inputs: Inputs) -> Weights | None:
        """The weights that the same model gives by itself, from `transformers`' own eager arithmetic; None where
        `silent` says why there are none. The model that is handed in stays as it is."""
        if not self.fields and not self.within:
            return None
        twin, _ = self.build("eager")
        twin.load_state_dict(model.state_dict())
        with torch.no_grad(), Tapped(twin, self.within) as tapped:
            torch.manual_seed(1)  # ViLT draws its patches
            outputs = twin(**inputs, output_attentions=True)
        if self.within:
            return tapped.found
        return in_order(outputs, self.fields) if self.unfold is None else self.unfold(outputs, inputs)


class Tapped:
    """What attention modules of these classes return beside their mix, in the order they are called.

    For models that hand on only some of it.
    """

    def __init__(self, model: torch.nn.Module, classes: tuple[str, ...]) -> None:
        self.modules = [module for module in model.modules() if type(module).__name__ in classes]
        self.found: Weights = []

    def __enter__(self) -> "Tapped":
        self.hooks = [module.register_forward_hook(self.take, with_kwargs=True) for module in self.modules]
        return self

    def take(self, module: torch.nn.Module, given: tuple[Any, ...], named: Inputs, output: Any) -> None:
        told = inspect.signature(module.forward).bind(*given, **named)
        if isinstance(module, torch.nn.MultiheadAttention):  # by itself it returns the mean over heads
            told.arguments |= {"need_weights": True, "average_attn_weights": False}
            output = module.forward(*told.args, **told.kwargs)
        elif len(output) == 1:  # it was not asked
            told.arguments["output_attentions"] = True
            output = module.forward(*told.args, **told.kwargs)
        self.found.append(output[1])

    def __exit__(self, *_: object) -> None:
        for hook in self.hooks:
            hook.remove()


def in_order(outputs: Any, fields: Sequence[str | tuple[str, ...]]) -> Weights:
    """All maps of the named fields; those named together are taken in turns."""
    found: Weights = []
    for name in fields:
        if isinstance(name, str):
            found += maps_of(outputs, name)
        else:
            for together in zip(*(maps_of(outputs, one) for one in name), strict=True):
                found += together
    return found


def maps_of(outputs: Any, name: str) -> Weights:
    for step in name.split("."):
        outputs = getattr(outputs, step)
    if outputs is None:
        raise ValueError(f"the model returned no {name}")
    return list(outputs)


def unband(bands: Tensor, everywhere: Tensor) -> Tensor:
    """Longformer's weights, (b, h, q, global + window), as rows over all keys; `everywhere` (b, n) is True for tokens
    that all look at. The window is centred on the query; what looks at a global token stands in the first columns."""
    b, h, n, width = bands.shape
    most = int(everywhere.sum(1).max())
    before = (width - most - 1) // 2
    weights = torch.zeros(b, h, n, n + 2 * before)
    for i in range(n):
        weights[:, :, i, i : i + width - most] = bands[:, :, i, most:]
    weights = weights[..., before : before + n].clone()
    for entry in range(b):
        for number, j in enumerate(everywhere[entry].nonzero().flatten().tolist()):
            weights[entry, :, :, j] += bands[entry, :, :, number]
    return weights


@torch.no_grad()
def enliven(model: torch.nn.Module, size: float) -> None:
    """Draw weights so large that heads differ and look somewhere: as they are first drawn every map is flat."""
    for weight in model.parameters():
        if weight.ndim > 1 and weight.numel():
            weight.normal_(std=size / max(1, weight[0].numel()) ** 0.5)
        else:
            weight.add_(torch.randn_like(weight) * 0.1)


# What models are fed. Sizes differ from model to model, so that a swapped axis cannot pass.


def ids(*shape: int, vocabulary: int = 61, seed: int = 0) -> Tensor:
    """Token numbers from 5 on: the first few mean padding and ends to many models."""
    return torch.randint(5, vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def real(lengths: Sequence[int], longest: int, side: str = "right") -> Tensor:
    """The attention mask of a padded batch, 1 where a token is real."""
    place = torch.arange(longest)
    short = torch.tensor(lengths)[:, None]
    return ((place < short) if side == "right" else (place >= longest - short)).long()


def text(*lengths: int, side: str = "right", vocabulary: int = 61, pad: int = 1, **more: Any) -> Feed:
    """A padded batch of token numbers, one entry per length."""

    def feed() -> Inputs:
        mask = real(lengths, max(lengths), side)
        tokens = ids(len(lengths), max(lengths), vocabulary=vocabulary, seed=sum(lengths))
        return {"input_ids": tokens.where(mask.bool(), torch.tensor(pad)), "attention_mask": mask, **more}

    return feed


def unpadded(batch: int, length: int, vocabulary: int = 61) -> Feed:
    """A batch of token numbers of one length, for models that know no padding."""
    return lambda: {"input_ids": ids(batch, length, vocabulary=vocabulary, seed=length)}


def pair(source: Sequence[int], target: Sequence[int], pad: int = 1) -> Feed:
    """A padded batch of sources and one of targets."""

    def feed() -> Inputs:
        wanted = text(*target, pad=pad)()
        return {**text(*source, pad=pad)(), **{f"decoder_{name}": value for name, value in wanted.items()}}

    return feed


def noise(name: str, *shape: int, **more: Tensor) -> Feed:
    """Random numbers under one name: pictures, spectra, sound."""
    return lambda: {name: torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))), **more}
