"""A Transformer that writes with the words of its vocabulary or of its source: copy attention, and coverage."""

from dataclasses import dataclass
from typing import NamedTuple

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import ConfigError
from regard.models.decoder_state import DecoderState
from regard.models.padded import must_be_ids, must_fit
from regard.models.pointer import Pointer
from regard.models.pointer_mixture import mix_log_probs
from regard.models.translator import Translator, TranslatorConfig


@dataclass(frozen=True)
class PointerGeneratorConfig(TranslatorConfig):
    """The sizes of a `PointerGenerator`, as they stand in a manifest: those of a `Translator`, and how it copies.

    >>> PointerGeneratorConfig(13, 13, width=8, heads=2, layers=1).build().pointer
    Pointer(
      coverage=True
      ...
    """

    shared: bool = True  # always: what is copied is a token of the target, so both sides have one vocabulary
    copy: bool = True  # whether it copies from the source; without, it is a Translator
    coverage: bool = True  # whether it knows what it has copied already; only with copy

    def build(self) -> "PointerGenerator":
        """A model of these sizes with random weights."""
        return PointerGenerator(self)


class Mixture(NamedTuple):
    """What the next token is drawn from, at each position of a target."""

    hidden: Float[Tensor, "b t m"]  # what the head makes the logits of the vocabulary from
    gate: Float[Tensor, "b t"]  # the logit of g, the share of the vocabulary; 1 − g is copied
    copy: Float[Tensor, "b t s"]  # how much of that each source position gives
    coverage: Float[Tensor, "b t s"] | None  # how much each has given to all earlier tokens; None without coverage


class PointerGenerator(Translator):
    r"""Read a source, and say how likely each next token of a target is: generated, or copied from the source.

    A `Translator` with one vocabulary, and a `Pointer` from its last decoder states to its encoder states:
    $p_j = g\, \mathrm{softmax}(W s_t)_j + (1 - g) \sum_{i: x_i = j} a_{t,i}$ (See, Liu & Manning 2017, eq. 9). The
    tokens are pieces of words, so a word that the vocabulary lacks is copied piece by piece, and none has to be added
    to it as in that paper. `coverage` lets the pointer see what it has copied already (eq. 10 and 11). With
    `copy=False` there is no pointer, and the model is a `Translator` to the last bit.

    Logits are log-probabilities: their softmax is what they are the logarithms of.

    >>> import torch
    >>> model = PointerGenerator(PointerGeneratorConfig(13, 13, width=8, heads=2, layers=1)).eval()
    >>> source, target = torch.tensor([[5, 6, 2], [7, 2, 0]]), torch.tensor([[1, 5, 6], [1, 7, 0]])
    >>> model(source, target).exp().sum(-1).allclose(torch.ones(2, 3))
    True
    >>> steps = model.begin(source)
    >>> torch.allclose(steps(target[:, :1]), model(source, target)[:, 0], atol=1e-6)
    True
    """

    config: PointerGeneratorConfig

    def __init__(self, config: PointerGeneratorConfig) -> None:
        if not config.shared:
            raise ConfigError("shared=False came, but what is copied needs one vocabulary; leave shared=True")
        super().__init__(config)
        self.pointer = Pointer(config.width, coverage=config.coverage) if config.copy else None

    def reset_parameters(self) -> None:
        super().reset_parameters()
        pointer = getattr(self, "pointer", None)  # not there yet when a Translator is made
        if pointer is not None:
            pointer.reset_parameters()

    def forward(self, source: Tensor, target: Tensor) -> Float[Tensor, "b t n"]:
        """The log-probability of each token after each of `target` (b, t), given `source` (b, s): (b, t, n)."""
        if self.pointer is None:
            return super().forward(source, target)
        mixture = self.mix(source, target)
        return mix_log_probs(F.linear(mixture.hidden, self.head_weight), mixture.gate, mixture.copy, source)

    def mix(self, source: Int[Tensor, "b s"], target: Int[Tensor, "_b t"]) -> Mixture:
        """The same before the vocabulary: what is generated from, what is copied, and how much of each."""
        if self.pointer is None:
            raise ConfigError(
                "this model copies nothing (copy=False), so there is no mixture; ask for its hidden states"
            )
        must_be_ids("target", target, self.config.target_vocab_size)
        must_fit(source, target)
        memory, mask, _ = self._read(source)
        hidden = self.decode_hidden(target, memory, memory_mask=mask)
        return Mixture(hidden, *self.pointer(hidden, memory, mask=mask))

    def begin(self, source: Tensor) -> DecoderState:
        """The source read once, and nothing written yet: feed it the token that begins a text."""
        if self.pointer is None:
            return super().begin(source)
        from regard.models.pointer_state import PointerState

        memory, mask, lengths = self._read(source)
        return PointerState(self, source, memory, self.decoder.make_caches(memory), mask, lengths)
