"""The writing half of a recurrent encoder–decoder, in the ways it was first made to look back."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import attend
from regard.attention.mask import Mask
from regard.attention.score import Additive, Bilinear, Dot, Score
from regard.layers.dropout import Dropout
from regard.models.recurrent import RecurrentCells, State, make_recurrent, run

ATTENTIONS = ("additive", "dot", "general", "none")


class PreparedAdditive:
    """An `Additive` whose keys went through their half of it before, once for all steps."""

    is_dot = False

    def __init__(self, score: Additive) -> None:
        self.score = score

    def prepare(
        self, q: Float[Tensor, "*_b q d"], k: Float[Tensor, "*_c k f"]
    ) -> tuple[Float[Tensor, "*_b q f"], Float[Tensor, "*_c k f"]]:
        return self.score.query_to_hidden(q), k

    def compare(self, q: Float[Tensor, "*_b q f"], k: Float[Tensor, "*_c k f"]) -> Float[Tensor, "*_e q k"]:
        return self.score.compare(q, k)

    def scale(self, width: int) -> float:
        return self.score.scale(width)


class SourceAttention(nn.Module):
    """One head of attention of a state on what was read, without projections but those of its score."""

    score: Score

    def __init__(self, kind: str, width: int) -> None:
        super().__init__()
        if kind == "additive":
            self.score = Additive(query=width, key=width, hidden=width)
        else:
            self.score = Dot() if kind == "dot" else Bilinear(query=width, key=width)

    def prepare(self, memory: Float[Tensor, "b s w"]) -> Float[Tensor, "b 1 s f"]:
        """The keys, as far as they do not depend on who asks."""
        keys = memory[:, None]
        return self.score.key_to_hidden(keys) if isinstance(self.score, Additive) else keys

    def forward(
        self,
        query: Float[Tensor, "b q w"],
        memory: Float[Tensor, "b s w"],
        keys: Float[Tensor, "b 1 s f"],
        mask: Mask | None = None,
    ) -> Float[Tensor, "b q w"]:
        score = PreparedAdditive(self.score) if isinstance(self.score, Additive) else self.score
        attended = attend(query[:, None], keys, memory[:, None], score=score, mask=mask)
        return attended.mix[:, 0]


class RecurrentDecoder(nn.Module):
    """Ids and what was read → what stands before the head, (b, t, out), and where the next step begins.

    What is fed to the cell beside the token: the context ("additive", "none"), what the step before found ("dot",
    "general" with `input_feeding`), or nothing.
    """

    attention: SourceAttention | None

    def __init__(
        self,
        embedding: int,
        width: int,
        out: int,
        *,
        cell: str,
        layers: int,
        attention: str,
        input_feeding: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.kind, self.embedding, self.out = attention, embedding, out
        self.feeding = input_feeding and attention in ("dot", "general")
        before = attention in ("additive", "none")  # the context is known before the step
        fed = width if before else out if self.feeding else 0
        self.rnn = make_recurrent(cell, embedding + fed, width, layers, dropout)
        self.attention = None if attention == "none" else SourceAttention(attention, width)
        self.to_out = nn.Linear(2 * width + (embedding if before else 0), out)
        nn.init.xavier_uniform_(self.to_out.weight)
        nn.init.zeros_(self.to_out.bias)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        ids: Int[Tensor, "b t"],
        table: Float[Tensor, "n e"],
        memory: Float[Tensor, "b s w"],
        keys: Float[Tensor, "b 1 s f"] | None,
        context: Float[Tensor, "b w"],
        state: State,
        fed: Float[Tensor, "b o"] | None,
        *,
        mask: Mask | None = None,
    ) -> tuple[Float[Tensor, "b t o"], State, Float[Tensor, "b o"] | None]:
        """`state` is where it stands, `fed` what the last step found (None at first)."""
        x = self.dropout(F.embedding(ids, table))  # b t e
        if self.attention is None:
            known = context[:, None].expand(-1, ids.shape[1], -1)
            said, state = run(self.rnn, torch.cat((x, known), -1), state)
            hidden = self.read_out(said, known, x)
        elif self.kind == "additive":
            assert keys is not None
            said, contexts, state = self.look_then_step(self.attention, x, memory, keys, state, mask)
            hidden = self.read_out(said, contexts, x)
        elif self.feeding:
            assert keys is not None
            hidden, fed, state = self.step_then_look(self.attention, x, memory, keys, state, fed, mask)
        else:
            assert keys is not None
            said, state = run(self.rnn, x, state)
            hidden = self.read_out(self.attention(said, memory, keys, mask), said)
        return self.dropout(hidden), state, fed

    def read_out(self, *parts: Tensor) -> Float[Tensor, "*b o"]:
        return torch.tanh(self.to_out(torch.cat(parts, -1)))

    def look_then_step(
        self, look: SourceAttention, x: Tensor, memory: Tensor, keys: Tensor, state: State, mask: Mask | None
    ) -> tuple[Tensor, Tensor, State]:
        """Bahdanau et al. 2015: what every step said and the context it was given."""
        cells, layers = RecurrentCells(self.rnn, self.embedding), unstack_layers(state)
        said, contexts = [], []
        for gates in cells.project(x).unbind(1):
            context = look(layers[-1][0][:, None], memory, keys, mask)[:, 0]
            layers = cells.step(gates, context, layers)
            said.append(layers[-1][0])
            contexts.append(context)
        return torch.stack(said, 1), torch.stack(contexts, 1), stack_layers(layers)

    def step_then_look(
        self,
        look: SourceAttention,
        x: Tensor,
        memory: Tensor,
        keys: Tensor,
        state: State,
        fed: Tensor | None,
        mask: Mask | None,
    ) -> tuple[Tensor, Tensor, State]:
        """Luong et al. 2015, §3.3: what every step found, which the next one is fed."""
        cells, layers, hidden = RecurrentCells(self.rnn, self.embedding), unstack_layers(state), []
        fed = x.new_zeros(x.shape[0], self.out) if fed is None else fed
        for gates in cells.project(x).unbind(1):
            layers = cells.step(gates, fed, layers)
            said = layers[-1][0]
            context = look(said[:, None], memory, keys, mask)[:, 0]
            fed = self.read_out(context, said)
            hidden.append(fed)
        return torch.stack(hidden, 1), fed, stack_layers(layers)


def unstack_layers(state: State) -> list[State]:
    """(layers, b, w) of each part → the parts of each layer."""
    return list(zip(*(part.unbind(0) for part in state)))


def stack_layers(layers: list[State]) -> State:
    """The way back."""
    return tuple(torch.stack(parts) for parts in zip(*layers))
