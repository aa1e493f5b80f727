"""Recurrent layers, over a whole text at once or one time step at a time where the next step needs this one's end."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.layers.dropout import Dropout

CELLS: dict[str, type[nn.GRU] | type[nn.LSTM]] = {"gru": nn.GRU, "lstm": nn.LSTM}
State = tuple[Tensor, ...]  # (h,) of a GRU, (h, c) of an LSTM, each (layers, b, width)


def make_recurrent(
    cell: str, given: int, width: int, layers: int, dropout: float, *, bidirectional: bool = False
) -> nn.GRU | nn.LSTM:
    """Torch's own layers, drawn gate by gate: orthogonal over time, after Glorot & Bengio 2010 over the input."""
    if cell not in CELLS:
        raise ValueError(f"cell is {cell!r}; choose one of {', '.join(map(repr, CELLS))}")
    between = dropout if layers > 1 else 0.0  # torch warns where there is nothing between
    made = CELLS[cell](given, width, layers, batch_first=True, dropout=between, bidirectional=bidirectional)
    for name, parameter in made.named_parameters():
        for gate in parameter.detach().split(width):
            if name.startswith("bias"):
                nn.init.zeros_(gate)
            elif name.startswith("weight_hh"):
                nn.init.orthogonal_(gate)
            else:
                nn.init.xavier_uniform_(gate)
        if cell == "lstm" and name.startswith("bias_ih"):
            nn.init.ones_(parameter.detach()[width : 2 * width])  # remember first, forget later (Gers et al. 2000)
    return made


def run(rnn: nn.GRU | nn.LSTM, x: Float[Tensor, "b t c"], state: State) -> tuple[Float[Tensor, "b t w"], State]:
    """All time steps in one call: what the last layer said at each, and the state at the end."""
    if isinstance(rnn, nn.LSTM):
        return rnn(x, state)
    said, last = rnn(x, state[0])
    return said, (last,)


class RecurrentCells:
    """The weights of an `nn.GRU` or `nn.LSTM`, taken apart so that a step computes only what depends on the state.

    Of the first layer's input the first `given` channels are known before the loop and go through their weights
    there, `project`; the others are fed back from step to step. Torch's own cells give the same numbers.
    """

    def __init__(self, rnn: nn.GRU | nn.LSTM, given: int) -> None:
        self.lstm, self.rnn = isinstance(rnn, nn.LSTM), rnn
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        self.layers = [tuple(getattr(rnn, f"{kind}_l{i}") for kind in kinds) for i in range(rnn.num_layers)]
        first = self.layers[0][0]
        self.of_given, self.of_fed = first[:, :given], first[:, given:].t()

    def project(self, x: Float[Tensor, "b t c"]) -> Float[Tensor, "b t g"]:
        """What the known part of the input adds to the gates of the first layer."""
        return F.linear(x, self.of_given, self.layers[0][2])

    def step(self, gates: Float[Tensor, "b g"], fed: Float[Tensor, "b f"], state: list[State]) -> list[State]:
        """The state after one more step, per layer; its first entry is what the layer says."""
        new: list[State] = []
        gates = torch.addmm(gates, fed, self.of_fed)
        for i, (weight, weight_over_time, bias, bias_over_time) in enumerate(self.layers):
            if i:
                below = new[-1][0]
                if self.rnn.dropout and self.rnn.training:
                    below = F.dropout(below, self.rnn.dropout)
                gates = F.linear(below, weight, bias)
            over_time = F.linear(state[i][0], weight_over_time, bias_over_time)
            new.append(lstm(gates + over_time, state[i][1]) if self.lstm else (gru(gates, over_time, state[i][0]),))
        return new


def gru(gates: Float[Tensor, "b g"], over_time: Float[Tensor, "b g"], h: Float[Tensor, "b w"]) -> Float[Tensor, "b w"]:
    """One step of a gated recurrent unit (Cho et al. 2014), its gates in torch's order: reset, keep, new."""
    width = h.shape[-1]
    reset, keep = torch.sigmoid(gates[:, : 2 * width] + over_time[:, : 2 * width]).chunk(2, 1)
    new = torch.tanh(torch.addcmul(gates[:, 2 * width :], reset, over_time[:, 2 * width :]))
    return torch.lerp(new, h, keep)


def lstm(gates: Float[Tensor, "b g"], c: Float[Tensor, "b w"]) -> State:
    """One step of a long short-term memory (Hochreiter & Schmidhuber 1997); torch's order: in, forget, new, out."""
    entry, forget, new, out = gates.chunk(4, 1)
    c = torch.addcmul(torch.sigmoid(forget) * c, torch.sigmoid(entry), torch.tanh(new))
    return torch.sigmoid(out) * torch.tanh(c), c


class RecurrentEncoder(nn.Module):
    """Ids → what was read, (b, s, width), and the state at the end of each text, each (layers, b, width).

    Where it reads in both directions, each has half the width. Padding is not read.
    """

    def __init__(
        self, embedding: int, width: int, *, cell: str, layers: int, bidirectional: bool, dropout: float
    ) -> None:
        super().__init__()
        self.sides, self.layers = 1 + bidirectional, layers
        self.dropout = Dropout(dropout)
        self.rnn = make_recurrent(
            cell, embedding, width // self.sides, layers, dropout, bidirectional=bidirectional
        )  # fmt: skip

    def forward(
        self, ids: Int[Tensor, "b s"], table: Float[Tensor, "n e"], lengths: Int[Tensor, " b"] | None = None
    ) -> tuple[Float[Tensor, "b s w"], State]:
        x = self.dropout(F.embedding(ids, table))
        if lengths is None:
            said, last = self.rnn(x)
        else:
            packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
            outputs, last = self.rnn(packed)
            said, _ = pad_packed_sequence(outputs, batch_first=True, total_length=ids.shape[1])
        return said, tuple(self._beside(x) for x in (last if isinstance(last, tuple) else (last,)))

    def _beside(self, x: Tensor) -> Float[Tensor, "l b w"]:
        """Both directions of a layer side by side."""
        return x.unflatten(0, (self.layers, self.sides)).transpose(1, 2).flatten(2)
