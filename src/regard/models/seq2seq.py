"""The models in which attention began: one recurrent network reads, another writes and looks back at what was read."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.mask import Mask, padding
from regard.errors import ShapeError
from regard.models.config import ModelConfig
from regard.models.decoder_state import DecoderState
from regard.models.padded import lengths_of, must_be_ids, must_fit
from regard.models.parts import must_be_sizes, must_share
from regard.models.recurrent import RecurrentEncoder, State
from regard.models.recurrent_decoder import ATTENTIONS, RecurrentDecoder


class EncodedSource(NamedTuple):
    """All that the decoder needs of a source."""

    memory: Float[Tensor, "b s w"]  # what was read at each position
    keys: Float[Tensor, "b 1 s f"] | None  # the same as the score wants it; None without attention
    context: Float[Tensor, "b w"]  # the whole text in one vector: the state at its end
    state: State  # with which the decoder begins
    mask: Mask | None
    lengths: Int[Tensor, " b"] | None


@dataclass(frozen=True)
class Seq2SeqConfig(ModelConfig):
    """The sizes of a `Seq2Seq`, as they stand in a manifest.

    >>> Seq2SeqConfig(11, 13, width=8, attention="none").build().head_weight.shape
    torch.Size([13, 8])
    """

    source_vocab_size: int  # how many tokens there are to read
    target_vocab_size: int  # how many there are to write
    width: int  # channels of the states
    layers: int = 1  # recurrent layers of either side
    cell: str = "gru"  # "gru" or "lstm"
    bidirectional: bool = True  # whether the source is read in both directions
    attention: str = "additive"  # what is seen of the source: "additive", "dot", "general", "none"
    input_feeding: bool = True  # whether what "dot" and "general" found enters the next step
    embedding: int | None = None  # channels of a token; width unless given
    dropout: float = 0.0  # share dropped in training
    tied: bool = False  # whether the embeddings of the target are the head, too
    shared: bool = False  # whether both sides have one table of embeddings
    pad: int = 0  # the id that fills up short texts

    @property
    def embedding_width(self) -> int:
        """Channels of a token."""
        return self.width if self.embedding is None else self.embedding

    def build(self) -> "Seq2Seq":
        """A model of these sizes with random weights."""
        return Seq2Seq(self)


class Seq2Seq(nn.Module):
    r"""A recurrent encoder reads the source, a recurrent decoder says how likely each next token of the target is.

    `attention` says what the decoder sees of the source at each step:

    - "additive" (Bahdanau et al. 2015): the state before the step asks, $c_i = \mathrm{attend}(s_{i-1}, h, h)$ enters
      the cell beside the token, and the head reads $\tanh(W[s_i; c_i; y_{i-1}])$.
    - "dot", "general" (Luong et al. 2015): the state after the step asks, and the head reads
      $\tilde h_i = \tanh(W[c_i; s_i])$. With `input_feeding` it enters the next step; without, all steps are
      attended to in one call.
    - "none" (Cho et al. 2014): $c$ is the encoder's last state at every step, the baseline that attention beats.

    `cell` is "gru" or "lstm". A `bidirectional` encoder has half the `width` in each direction. The decoder begins
    with tanh of a projection of the encoder's last state. Tokens have `embedding` channels (`width` unless given).
    `shared` uses one table of embeddings for both sides, `tied` the embeddings of the target as the head. `dropout`
    falls on embeddings, between layers and before the head. Id `pad` fills up short texts on the right, and is not
    read. All of these stand in its `config`, a `Seq2SeqConfig`.

    >>> import torch
    >>> model = Seq2Seq(Seq2SeqConfig(11, 13, width=8)).eval()
    >>> source, target = torch.tensor([[5, 6, 2], [7, 2, 0]]), torch.tensor([[1, 4, 9, 8], [1, 3, 0, 0]])
    >>> model(source, target).shape
    torch.Size([2, 4, 13])
    >>> steps = model.begin(source)
    >>> _ = steps(target[:, :1])
    >>> steps.attention().shape
    torch.Size([2, 3])
    """

    target_embed: nn.Embedding | None
    head: nn.Linear | None

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        must_be_sizes(
            source_vocab_size=config.source_vocab_size, target_vocab_size=config.target_vocab_size,
            width=config.width, layers=config.layers, embedding=config.embedding_width,
        )  # fmt: skip
        must_share(config.shared, config.source_vocab_size, config.target_vocab_size)
        if config.bidirectional and config.width % 2:
            raise ShapeError(f"width is {config.width}, but two directions have half of it each; give an even width")
        if config.attention not in ATTENTIONS:
            raise ValueError(f"attention is {config.attention!r}; choose one of {', '.join(map(repr, ATTENTIONS))}")
        self.config = config
        embedding, width = config.embedding_width, config.width
        self.source_embed = nn.Embedding(config.source_vocab_size, embedding)
        self.target_embed = None if config.shared else nn.Embedding(config.target_vocab_size, embedding)
        for table in (self.source_embed, self.target_embed):
            if table is not None:
                nn.init.normal_(table.weight, std=0.1)
        self.encoder = RecurrentEncoder(
            embedding, width, cell=config.cell, layers=config.layers, bidirectional=config.bidirectional,
            dropout=config.dropout,
        )  # fmt: skip
        states = 2 if config.cell == "lstm" else 1
        self.bridges = nn.ModuleList(nn.Linear(width, width) for _ in range(states * config.layers))
        self.decoder = RecurrentDecoder(
            embedding, width, embedding if config.tied else width, cell=config.cell, layers=config.layers,
            attention=config.attention, input_feeding=config.input_feeding, dropout=config.dropout,
        )  # fmt: skip
        self.head = None if config.tied else nn.Linear(width, config.target_vocab_size)

    def forward(self, source: Tensor, target: Tensor) -> Float[Tensor, "b t n"]:
        """The logits of the token after each of `target` (b, t), given `source` (b, s): (b, t, target_vocab_size)."""
        return F.linear(self.hidden(source, target), self.head_weight, self.head_bias)

    def hidden(self, source: Tensor, target: Tensor) -> Float[Tensor, "b t m"]:
        """The same before the head: logits are `hidden @ head_weight.T + head_bias`."""
        must_be_ids("target", target, self.config.target_vocab_size)
        must_fit(source, target)
        read = self._read(source)
        hidden, _, _ = self.decoder(
            target, self.target_table, read.memory, read.keys, read.context, read.state, None, mask=read.mask
        )
        return hidden

    def begin(self, source: Tensor) -> DecoderState:
        """The source read once, and nothing written yet: feed it the token that begins a text."""
        from regard.models.seq2seq_state import Seq2SeqState

        return Seq2SeqState(self, source, self._read(source))

    @property
    def head_weight(self) -> Float[Tensor, "n m"]:
        return self.target_table if self.head is None else self.head.weight

    @property
    def head_bias(self) -> Float[Tensor, " n"] | None:
        """None where the head is tied."""
        return None if self.head is None else self.head.bias

    @property
    def target_table(self) -> Float[Tensor, "n e"]:
        """The embeddings of the target."""
        return (self.source_embed if self.target_embed is None else self.target_embed).weight

    def _read(self, source: Tensor) -> EncodedSource:
        must_be_ids("source", source, self.config.source_vocab_size)
        lengths = lengths_of(source, self.config.pad)
        memory, last = self.encoder(source, self.source_embed.weight, lengths)
        layers = last[0].shape[0]
        ends = [x[i] for x in last for i in range(layers)]
        begun = [bridge(end) for bridge, end in zip(self.bridges, ends)]
        state = (torch.stack(begun[:layers]).tanh(), *([torch.stack(begun[layers:])] if len(last) > 1 else []))
        attention = self.decoder.attention
        keys = None if attention is None else attention.prepare(memory)
        mask = None if lengths is None else padding(lengths)
        return EncodedSource(memory, keys, last[0][-1], state, mask, lengths)

    def extra_repr(self) -> str:
        one, shared, tied = self.config, self.config.shared, self.config.tied
        return f"{one.source_vocab_size}, {one.target_vocab_size}, width={one.width}, {shared=}, {tied=}"
