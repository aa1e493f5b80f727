"""Small traces of every kind that a file can hold: TypeScript reads them, Python says what is in them.

python -m tests.views.explorer.held_traces        writes web/test/fixtures anew
"""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save

import regard
from regard.attention.map import AttentionMap, Computed
from regard.attention.map.source import MapPiece
from regard.attention.map.stitched import StitchedSource
from regard.attention.mask import Sizes
from regard.attention.mask.bits import Bits, pack
from regard.positions.alibi import ALiBi
from regard.tokens import Tokens
from regard.trace.measure.rollout import flow
from regard.trace.record.even import WholeRows, even_softmax
from regard.trace.record.layer import Layer, ProofSample
from regard.trace.record.trace import Run, Trace
from regard.views.explorer.packing import file_bytes, pack_bytes
from regard.views.explorer.page_data import measures_of

FOLDER = Path(__file__).parents[3] / "web" / "test" / "fixtures"
KINDS, PAIR, LONG = "kinds", "pair", "long"
LEVEL = 4


def drawing(seed):
    """Numbers that every machine draws alike."""
    generator = np.random.default_rng(seed)
    return lambda *shape: torch.from_numpy(generator.standard_normal(shape).astype(np.float32) * 1.5)


def named(*shown, ids=None, special=()):
    return (Tokens(tuple(shown), ids=ids, special=tuple(one in special for one in shown)),)


def asked(q, k, **how):
    b, h = max(q.shape[0], k.shape[0]), max(q.shape[1], k.shape[1])
    scale = how.pop("scale", q.shape[-1] ** -0.5)
    return AttentionMap(Computed(q, k, Sizes((b, h), q.shape[2], k.shape[2]), scale=scale, **how))


def kinds() -> Trace:
    draw = drawing(1)
    q, k, v = draw(2, 3, 7, 5), draw(2, 3, 7, 5), draw(2, 3, 7, 4)
    cells = torch.from_numpy(np.random.default_rng(2).random((1, 3, 7, 11)) < 0.6)
    cells[0, 1, 4] = False  # one row that sees nothing
    wide, few, sink = draw(2, 1, 11, 5), draw(2, 4, 6, 5), draw(1, 3, 1, 1)
    stored = torch.softmax(draw(2, 2, 5, 5), -1).tril()
    ids = (4, 9, 4, 2, 9, 4, 7)
    seven = named("a", "b", "a", "<s>", "b", "a", "c", ids=ids, special=("<s>",)) * 2
    seen = ProofSample((1, 6), torch.arange(2 * 3 * 2 * 4).view(2, 3, 2, 4).float())
    table, blind = draw(1, 3, 7, 7), Bits(pack(torch.zeros(1, 1, 1, 7, dtype=torch.bool)))
    table[..., 3, 2:] = -torch.inf
    first, second = draw(1, 2, 5, 4), draw(1, 2, 3, 4)
    parts = [
        MapPiece(Computed(first, draw(1, 2, 5, 4), Sizes((1, 2), 5, 5), scale=0.5, mask=regard.causal()), 0),
        MapPiece(Computed(second, draw(1, 2, 4, 4), Sizes((1, 2), 3, 4), scale=0.5, mask=regard.causal()), 4),
    ]
    attend, both = regard.attend, {"queries": seven, "keys": seven}
    layers = [
        Layer("causal", "self", attend(q, k, v, mask=regard.causal()).weights, v=v, **both, seen=seen),
        Layer("padded", "self", attend(q, k, v, mask=regard.padding([4, 6])).weights, v=v, **both),
        Layer("grouped", "self", attend(few, draw(2, 2, 9, 5), draw(2, 2, 9, 3), mask=regard.causal()).weights),
        Layer("window", "self", attend(q, k, v, mask=regard.window(2, 1)).weights),
        Layer("bits", "cross", asked(q, wide, mask=Bits(pack(cells)))),
        Layer("sink", "self", asked(q, k, sink=sink, softcap=2.5, mask=regard.causal())),
        Layer("alibi", "self", attend(q[..., 2:, :], k, v, bias=ALiBi(3), mask=regard.causal()).weights),
        Layer("biased", "self", asked(q, k, bias=table)),
        Layer("even", "self", asked(q, k, mask=WholeRows(blind), weigh=even_softmax)),
        Layer("stored", "self", AttentionMap.stored(stored)),
        Layer("stored-masked", "self", AttentionMap.stored(stored, mask=regard.causal())),
        Layer("stitched", "self", AttentionMap(StitchedSource(parts, width=8))),
        Layer("cross", "cross", attend(q, draw(2, 3, 4, 5), draw(2, 3, 4, 5)).weights),
        Layer("half", "self", asked(q.half(), k.half())),
        Layer("brain", "unknown", asked(q.bfloat16(), k.bfloat16())),
        Layer("double", "self", asked(q.double(), k.double() / 3)),
        Layer("stored-half", "self", AttentionMap.stored(stored.half())),
    ]
    return Trace(
        [Run([Layer("earlier", "self", asked(q[:1], k[:1]))]), Run(layers, ["a note of the run"])], model="Kinds"
    )


def pair() -> Trace:
    """An encoder and a decoder; what the decoder wrote and what it was fed have other names, as in a translator."""
    draw = drawing(3)
    source, fed = named("The", "cat", "sat", "<pad>", ids=(5, 6, 7, 0)), named("<s>", "猫", "坐", ids=(1, 8, 9))
    wrote = named("猫", "坐", "</s>")
    layers = []

    def add(name, kind, queries, keys, mask):
        q, k, v = (draw(1, 4, len(one[0]), 6) for one in (queries, keys, keys))
        weights = regard.attend(q, k[:, :2], v[:, :2], mask=mask).weights
        layers.append(Layer(name, kind, weights, v=v[:, :2], queries=queries, keys=keys))

    for i in range(2):
        add(f"encoder.{i}.attention", "self", source, source, regard.padding([3]))
    for i in range(2):
        add(f"decoder.{i}.self", "self", fed, fed, regard.causal())
        add(f"decoder.{i}.cross", "cross", wrote, source, regard.padding([3]))
    return Trace([Run(layers)], model="Pair")


def long() -> Trace:
    draw = drawing(5)
    q, k = draw(1, 2, 300, 6).half(), draw(1, 1, 300, 6).half()
    return Trace([Run([Layer("long", "self", asked(q, k, mask=regard.causal()))])], model="Long")


def expected(trace: Trace) -> bytes:
    """Every map whole, with its mask and scores, as Python asks them; measures and flows in words."""
    arrays: dict[str, torch.Tensor] = {}
    facts: dict[str, object] = {"measures": short([measures_of(layer) for layer in trace.layers])}
    for number, layer in enumerate(trace.layers):
        weights = layer.weights
        arrays[f"{number}/weights"] = weights.dense().float()
        allowed = weights.source.allowed()
        allowed = torch.ones(weights.shape, dtype=torch.bool) if allowed is None else allowed.expand(weights.shape)
        arrays[f"{number}/allowed"] = allowed.to(torch.uint8)
        if isinstance(weights.source, Computed):
            arrays[f"{number}/scores"] = weights.source.scores().expand(weights.shape).float()
        if layer.v is not None:
            v = layer.v.repeat_interleave(layer.heads // layer.v.shape[1], 1)
            arrays[f"{number}/mix"] = (weights.dense() @ v).float()
    if trace.model == "Pair":
        renamed = Trace([Run(list(trace.layers))])
        for layer in renamed.layers:  # the tokens of a cross-attention are no reason to refuse
            layer.queries = layer.queries if layer.kind == "self" else None
        for by in ("weights", "values"):
            found = flow(renamed, 1, by=by, residual=0.3)
            arrays |= {f"flow/{by}/target": found.target.float(), f"flow/{by}/source": found.source.float()}
    return save(
        {name: one.clone(memory_format=torch.contiguous_format) for name, one in arrays.items()},
        {"facts": json.dumps(facts)},
    )


def short(given):
    """The same with numbers of nine digits, which is more than any test asks for."""
    if isinstance(given, dict | list):
        items = given.items() if isinstance(given, dict) else enumerate(given)
        found = {key: short(one) for key, one in items}
        return found if isinstance(given, dict) else list(found.values())
    return float(f"{given:.9g}") if isinstance(given, float) else given


def expected_of_long(trace: Trace) -> bytes:
    """Some rows, and the map from far away."""
    dense = trace.layers[0].weights.dense()
    size = 2**LEVEL
    padded = torch.nn.functional.pad(dense, (0, -300 % size, 0, -300 % size))
    cells = padded.unflatten(3, (-1, size)).unflatten(2, (-1, size)).transpose(3, 4)
    seen = torch.nn.functional.pad(torch.ones(300, 300).tril(), (0, -300 % size, 0, -300 % size))
    seen = seen.unflatten(1, (-1, size)).unflatten(0, (-1, size)).transpose(1, 2).sum((-2, -1))
    arrays = {
        "rows": dense[0, :, [0, 1, 150, 299]],
        "max": cells.amax((-2, -1))[0],
        "mean": cells.sum((-2, -1))[0] / seen.clamp_min(1),
    }
    return save({name: one.float().contiguous() for name, one in arrays.items()})


TRACES = {KINDS: kinds, PAIR: pair, LONG: long}


def made() -> dict[str, bytes]:
    """The files of the folder by name."""
    found = {}
    for name, make in TRACES.items():
        found[f"{name}.trace"], _ = file_bytes(make())
        found[f"{name}.safetensors"] = expected_of_long(make()) if name == LONG else expected(make())
    found[f"{PAIR}.packed"] = pack_bytes(*file_bytes(pair())).encode()
    return found


if __name__ == "__main__":
    for name, data in made().items():
        (FOLDER / name).write_bytes(data)
        print(name, len(data))
