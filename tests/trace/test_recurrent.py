"""A recurrent decoder asks the same source once per step: its rows are one map, and nothing else becomes one."""

import torch
from torch import nn

import regard
from regard.layers import listen


class Looking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.score = regard.Additive(query=8, key=6, hidden=5)

    def forward(self, query, memory, mask):
        return regard.attend(query, memory, memory, score=self.score, mask=mask).mix


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.looking, self.cell = Looking(), nn.GRUCell(6, 8)

    def forward(self, memory, steps=4, rows=1):
        h = memory.new_zeros(len(memory), 8)
        for _ in range(steps):
            asked = h[:, None, None].expand(-1, 1, rows, -1)
            h = self.cell(self.looking(asked, memory[:, None], regard.padding([7, 5]))[:, 0, 0], h)
        return h


def test_the_steps_of_a_recurrent_decoder_are_the_rows_of_one_map():
    model, memory = Decoder().eval(), torch.randn(2, 7, 6)
    with torch.no_grad(), regard.watch(model) as trace, listen() as _:
        model(memory)
    assert [layer.name for layer in trace.layers] == ["looking"]
    layer = trace.layers[0]
    assert (layer.kind, layer.weights.shape) == ("cross", (2, 1, 4, 7))
    h, want = memory.new_zeros(2, 8), []
    for _ in range(4):
        a = regard.attend(h[:, None, None], memory[:, None], memory[:, None], score=model.looking.score,
                          mask=regard.padding([7, 5]))  # fmt: skip
        want.append(a.weights.dense())
        h = model.cell(a.mix[:, 0, 0], h)
    torch.testing.assert_close(layer.weights.dense(), torch.cat(want, 2))
    assert not layer.weights.allowed[1, 0, :, 5:].any()


def test_two_runs_of_it_are_two_maps():
    model = Decoder().eval()
    with torch.no_grad(), regard.watch(model) as trace:
        model(torch.randn(2, 7, 6))
        model(torch.randn(2, 7, 6), steps=3)
    assert [[layer.weights.shape for layer in run.layers] for run in trace.runs] == [[(2, 1, 4, 7)], [(2, 1, 3, 7)]]


def test_many_queries_asked_again_and_again_stay_apart():
    model = Decoder().eval()
    with torch.no_grad(), regard.watch(model) as trace:
        model(torch.randn(2, 7, 6), steps=2, rows=3)
    assert [layer.name for layer in trace.layers] == ["looking", "looking#2"]
