"""attend under torch.compile, torch.export and FX: the same numbers from one graph."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close

import regard
from tests.attention.cases import qkv

pytestmark = pytest.mark.compiled

CALLS = {
    "open": lambda q, k, v: regard.attend(q, k, v).mix,
    "causal": lambda q, k, v: regard.attend(q, k, v, mask=regard.causal()).mix,
    "window": lambda q, k, v: regard.attend(q, k, v, mask=regard.window(3, 1)).mix,
    "prefix or documents": lambda q, k, v: (
        regard.attend(q, k, v, mask=regard.prefix(2) | regard.documents(torch.arange(k.shape[-2]) // 3)).mix
    ),
    "softcap": lambda q, k, v: regard.attend(q, k, v, softcap=3.0, mask=regard.causal()).mix,
    "sparsemax": lambda q, k, v: regard.attend(q, k, v, weigh=regard.sparsemax, mask=regard.causal()).mix,
    "entmax": lambda q, k, v: regard.attend(q, k, v, weigh=regard.entmax).mix,
    "top_k": lambda q, k, v: regard.attend(q, k, v, weigh=regard.top_k(2)).mix,
    "sigmoid": lambda q, k, v: regard.attend(q, k, v, weigh=regard.sigmoid).mix,
    "cosine": lambda q, k, v: regard.attend(q, k, v, score=regard.Cosine(), scale=4.0).mix,
    "gaussian": lambda q, k, v: regard.attend(q, k, v, score=regard.Gaussian(1.5)).mix,
    "sinks": lambda q, k, v: regard.attend(q, k, v, sink_logits=torch.zeros(6)).mix,
    "bias": lambda q, k, v: regard.attend(q, k, v, bias=q.new_ones(1, 1, 1, k.shape[-2])).mix,
    "explicit": lambda q, k, v: regard.attend(q, k, v, mask=regard.causal(), path="explicit").mix,
    "weights": lambda q, k, v: regard.attend(q, k, v, mask=regard.causal()).weights.dense(),
    "a row": lambda q, k, v: regard.attend(q, k, v, mask=regard.causal()).weights[:, :, 2],
}


def inputs(**sizes):
    return qkv(**({"hk": 3, "dtype": torch.float32, "grad": True} | sizes))


@pytest.mark.parametrize("name", CALLS)
def test_one_graph_gives_the_same_mix_and_gradients(name):
    call = CALLS[name]
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    xs = inputs()
    ours, plain = compiled(*xs), call(*xs)
    assert_close(ours, plain, atol=1e-5, rtol=1e-4)
    wanted = [x for x in xs if name not in ("weights", "a row") or x is not xs[2]]
    assert_close(
        torch.autograd.grad(ours.square().sum(), wanted),
        torch.autograd.grad(plain.square().sum(), wanted),
        atol=1e-4,
        rtol=1e-4,
    )


@pytest.mark.parametrize("name", ["open", "causal", "window", "softcap"])
def test_lengths_and_batches_may_change_without_a_new_graph(name, count):
    compiled = torch.compile(CALLS[name], fullgraph=True, dynamic=True, backend=count)
    for b, q, k in ((2, 5, 7), (3, 9, 11), (4, 12, 20), (2, 30, 31)):
        xs = [x.detach() for x in inputs(b=b, q=q, k=k)]
        assert_close(compiled(*xs), CALLS[name](*xs), atol=1e-5, rtol=1e-4)
    assert count.graphs == 1


def test_the_real_compiler_agrees():
    xs = [x.detach() for x in inputs(d=16, e=16)]
    compiled = torch.compile(CALLS["causal"], fullgraph=True)
    assert_close(compiled(*xs), CALLS["causal"](*xs), atol=1e-5, rtol=1e-4)


def test_a_mask_may_come_from_outside_or_be_made_inside():
    q, k, v = (x.detach() for x in inputs(q=9, k=9))
    lengths = torch.tensor([4, 9])
    outside = regard.causal() & regard.padding(lengths)
    expected = regard.attend(q, k, v, mask=outside).mix
    given = torch.compile(lambda q, k, v: regard.attend(q, k, v, mask=outside).mix, fullgraph=True, backend="aot_eager")
    assert_close(given(q, k, v), expected)
    made = torch.compile(
        lambda q, k, v, n: regard.attend(q, k, v, mask=regard.causal() & regard.padding(n)).mix,
        fullgraph=True,
        backend="aot_eager",
    )
    assert_close(made(q, k, v, lengths), expected)
    assert_close(
        made(q, k, v, torch.tensor([9, 2])), regard.attend(q, k, v, mask=regard.causal() & regard.padding([9, 2])).mix
    )


def test_a_mask_that_was_used_before_keeps_lengths_open(count):
    mask = regard.window(3, 1) & regard.causal()
    call = lambda q, k, v: regard.attend(q, k, v, mask=mask).mix  # noqa: E731
    call(*inputs(q=9, k=9))
    assert mask.memo is not None
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend=count)
    for n in (9, 12, 30):
        xs = [x.detach() for x in inputs(q=n, k=n)]
        assert_close(compiled(*xs), call(*xs), atol=1e-5, rtol=1e-4)
    assert count.graphs == 1


def test_hidden_nan_reaches_nothing_while_compiled():
    q, k, v = (x.detach() for x in inputs(q=9, k=9))
    lengths = torch.tensor([4, 8])
    expected = regard.attend(q, k, v, mask=regard.padding(lengths)).mix
    for b, n in enumerate(lengths):
        k[b, :, n:] = v[b, :, n:] = torch.nan
    for path in (None, "explicit"):
        run = torch.compile(
            lambda q, k, v, n, path=path: regard.attend(q, k, v, mask=regard.padding(n), path=path).mix,
            fullgraph=True,
            backend="aot_eager",
        )
        assert_close(run(q, k, v, lengths), expected)
    blind = torch.compile(lambda q, k, v, n: regard.attend(q, k, v, mask=regard.padding(n)).mix, fullgraph=True)
    assert blind(q, k, v, torch.tensor([0, 8]))[0].eq(0).all()


def test_the_attended_itself_comes_out_of_a_graph():
    q, k, v = (x.detach() for x in inputs())
    a = torch.compile(
        lambda q, k, v: regard.attend(q, k, v, mask=regard.causal()), fullgraph=True, backend="aot_eager"
    )(q, k, v)
    b = regard.attend(q, k, v, mask=regard.causal())
    assert_close(a.mix, b.mix)
    assert_close(a.weights[1, 3].entropy(), b.weights[1, 3].entropy())


def test_decoding_does_not_compile_anew_for_each_step(count):
    step = torch.compile(CALLS["causal"], fullgraph=True, dynamic=True, backend=count)
    _, k, v = (x.detach() for x in inputs(k=40))
    for n in range(8, 40):
        q = torch.randn(2, 6, 1, 11)
        assert_close(
            step(q, k[:, :, :n], v[:, :, :n]), CALLS["causal"](q, k[:, :, :n], v[:, :, :n]), atol=1e-5, rtol=1e-4
        )
    assert count.graphs <= 2


class Attending(torch.nn.Module):
    def forward(self, q, k, v, lengths):
        return regard.attend(q, k, v, mask=regard.causal() & regard.padding(lengths)).mix


def test_export_keeps_batch_and_length_open():
    q, k, v = (x.detach() for x in inputs(q=9, k=9))
    batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", min=2, max=512)
    shape = {0: batch, 2: length}
    program = torch.export.export(
        Attending(), (q, k, v, torch.tensor([4, 9])), dynamic_shapes=(shape, shape, shape, {0: batch})
    )
    q, k, v = (x.detach() for x in inputs(b=3, q=17, k=17))
    lengths = torch.tensor([17, 3, 0])
    assert_close(program.module()(q, k, v, lengths), Attending()(q, k, v, lengths))


def test_onnx_gives_the_same_numbers(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    q, k, v = (x.detach() for x in inputs(q=9, k=9))
    lengths = torch.tensor([4, 9])
    torch.onnx.export(Attending(), (q, k, v, lengths), tmp_path / "a.onnx", dynamo=True, verbose=False)
    session = runtime.InferenceSession(str(tmp_path / "a.onnx"))
    names = [x.name for x in session.get_inputs()]
    (got,) = session.run(None, dict(zip(names, (x.numpy() for x in (q, k, v, lengths)))))
    assert_close(torch.tensor(got), Attending()(q, k, v, lengths), atol=1e-5, rtol=1e-4)


def test_fx_traces_it():
    q, k, v = (x.detach() for x in inputs())
    for name in ("causal", "sparsemax", "weights"):
        graph = make_fx(CALLS[name], tracing_mode="fake")(q, k, v)
        assert_close(graph(q, k, v), CALLS[name](q, k, v))


def test_compiled_calls_are_fused_also_under_vmap():
    q, k, v = (x.detach() for x in inputs())
    paths = []

    def call(q, k, v):
        a = regard.attend(q, k, v, mask=regard.causal())
        paths.append(a.path)
        return a.mix

    assert_close(torch.compile(call, fullgraph=True, backend="aot_eager")(q, k, v), call(q, k, v))
    assert paths == ["fused", "fused"]
    over = torch.vmap(lambda q, k, v: regard.attend(q, k, v, mask=regard.causal()).mix)
    assert_close(torch.compile(over, fullgraph=True, backend="aot_eager")(q, k, v), over(q, k, v))
