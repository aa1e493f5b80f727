"""The models in which attention began: one recurrent network reads, another writes and looks back at what was read."""

from dataclasses import asdict, dataclass
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


class Read(NamedTuple):
    """All that the decoder needs of a source."""

    memory: Float[Tensor, "b s w"]  # what was read at each position
    keys: Float[Tensor, "b 1 s f"] | None  # the same as the score wants it; None without attention
    context: Float[Tensor, "b w"]  # the whole text in one vector: the state at its end
    state: State  # with which the decoder begins
    mask: Mask | None
    lengths: Int[Tensor, " b"] | None


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
    read.

    >>> import torch
    >>> model = Seq2Seq(11, 13, width=8).eval()
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

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        width: int,
        *,
        layers: int = 1,
        cell: str = "gru",
        bidirectional: bool = True,
        attention: str = "additive",
        input_feeding: bool = True,
        embedding: int | None = None,
        dropout: float = 0.0,
        tied: bool = False,
        shared: bool = False,
        pad: int = 0,
    ) -> None:
        super().__init__()
        embedding = width if embedding is None else embedding
        must_be_sizes(
            source_vocabulary=source_vocabulary,
            target_vocabulary=target_vocabulary,
            width=width,
            layers=layers,
            embedding=embedding,
        )
        must_share(shared, source_vocabulary, target_vocabulary)
        if bidirectional and width % 2:
            raise ShapeError(f"width is {width}, but two directions have half of it each; give an even width")
        if attention not in ATTENTIONS:
            raise ValueError(f"attention is {attention!r}; choose one of {', '.join(map(repr, ATTENTIONS))}")
        self.source_vocabulary, self.target_vocabulary, self.width = source_vocabulary, target_vocabulary, width
        self.pad = pad
        self.source_embed = nn.Embedding(source_vocabulary, embedding)
        self.target_embed = None if shared else nn.Embedding(target_vocabulary, embedding)
        for table in (self.source_embed, self.target_embed):
            if table is not None:
                nn.init.normal_(table.weight, std=0.1)
        self.encoder = RecurrentEncoder(
            embedding, width, cell=cell, layers=layers, bidirectional=bidirectional, dropout=dropout
        )
        states = 2 if cell == "lstm" else 1
        self.bridges = nn.ModuleList(nn.Linear(width, width) for _ in range(states * layers))
        self.decoder = RecurrentDecoder(
            embedding,
            width,
            embedding if tied else width,
            cell=cell,
            layers=layers,
            attention=attention,
            input_feeding=input_feeding,
            dropout=dropout,
        )
        self.head = None if tied else nn.Linear(width, target_vocabulary)

    def forward(self, source: Tensor, target: Tensor) -> Float[Tensor, "b t n"]:
        """The logits of the token after each of `target` (b, t), given `source` (b, s): (b, t, target_vocabulary)."""
        return F.linear(self.hidden(source, target), self.head_weight, self.head_bias)

    def hidden(self, source: Tensor, target: Tensor) -> Float[Tensor, "b t m"]:
        """The same before the head: logits are `hidden @ head_weight.T + head_bias`."""
        must_be_ids("target", target, self.target_vocabulary)
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

    def _read(self, source: Tensor) -> Read:
        must_be_ids("source", source, self.source_vocabulary)
        lengths = lengths_of(source, self.pad)
        memory, last = self.encoder(source, self.source_embed.weight, lengths)
        layers = last[0].shape[0]
        ends = [x[i] for x in last for i in range(layers)]
        begun = [bridge(end) for bridge, end in zip(self.bridges, ends)]
        state = (torch.stack(begun[:layers]).tanh(), *([torch.stack(begun[layers:])] if len(last) > 1 else []))
        attention = self.decoder.attention
        keys = None if attention is None else attention.prepare(memory)
        mask = None if lengths is None else padding(lengths)
        return Read(memory, keys, last[0][-1], state, mask, lengths)

    def extra_repr(self) -> str:
        shared, tied = self.target_embed is None, self.head is None
        return f"{self.source_vocabulary}, {self.target_vocabulary}, width={self.width}, {shared=}, {tied=}"


@dataclass(frozen=True)
class Seq2SeqConfig(ModelConfig):
    """The sizes of a `Seq2Seq`, as they stand in a manifest.

    >>> Seq2SeqConfig(11, 13, width=8, attention="none").build().head_weight.shape
    torch.Size([13, 8])
    """

    source_vocabulary: int  # how many tokens there are to read
    target_vocabulary: int  # how many there are to write
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

    def build(self) -> Seq2Seq:
        """A model of these sizes with random weights."""
        return Seq2Seq(**asdict(self))
