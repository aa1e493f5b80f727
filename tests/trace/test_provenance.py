"""Names follow where a tensor came from: source and target are equally long here, so a length tells nothing."""

import contextlib
import math
import threading
import time
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.trace.doors.embedding import DERIVED, EMBEDDINGS
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace

B, N, V = 3, 6, 31
MODES = pytest.mark.parametrize("mode", [contextlib.nullcontext, torch.no_grad, torch.inference_mode])


def ids(seed: int, b: int = B, n: int = N) -> Tensor:
    return torch.randint(2, V - 1, (b, n), generator=torch.Generator().manual_seed(seed))


SOURCE, TARGET = ids(1), ids(2)


def names(found: Any) -> list[tuple[int, ...]] | None:
    return None if found is None else [tokens.ids for tokens in found]


def lines(x: Tensor | None) -> list[tuple[int, ...]] | None:
    return None if x is None else [tuple(line) for line in x.tolist()]


def must_be(layer: Layer, rows: Tensor | None, columns: Tensor | None) -> None:
    assert (names(layer.queries), names(layer.keys)) == (lines(rows), lines(columns)), layer


def watched(model: nn.Module, *args: Any, **named: Any) -> Trace:
    torch.manual_seed(5)
    plain = model(*args, **named)
    torch.manual_seed(5)
    with regard.watch(model) as trace:
        found = model(*args, **named)
    assert torch.equal(first(plain), first(found))
    assert trace.layers
    return trace


def first(found: Any) -> Tensor:
    while not isinstance(found, Tensor):
        found = next(iter(found.values() if isinstance(found, dict) else found))
    return found


def must_be_both_sides(trace: Trace, count: int = 6, encoder: str = "encoder") -> None:
    assert len(trace.layers) == count
    for layer in trace.layers:
        inside = encoder not in layer.name
        must_be(layer, TARGET if inside else SOURCE, TARGET if inside and layer.kind == "self" else SOURCE)


class Positions(nn.Module):
    """As torch's own tutorial adds them."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        at = torch.arange(50)[:, None] * torch.exp(-torch.arange(0, width, 2) * math.log(10000) / width)
        self.register_buffer("table", torch.stack([at.sin(), at.cos()], -1).flatten(1))
        self.dropout = nn.Dropout(0.1)

    def forward(self, embedded: Tensor) -> Tensor:
        out: Tensor = self.dropout(embedded + self.table[: embedded.shape[1]])
        return out


class Words(nn.Module):
    def __init__(self, vocabulary: int = V) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 24)

    def forward(self, tokens: Tensor) -> Tensor:
        out: Tensor = self.embedding(tokens.long()) * math.sqrt(24)
        return out


class Tutorial(nn.Module):
    """torch's tutorial of translation, in one expression or in several, the target before the source or after it."""

    def __init__(self, way: str = "lines", sizes: tuple[int, int] = (V, V + 9)) -> None:
        super().__init__()
        self.way, self.positions = way, Positions()
        self.source, self.target = Words(sizes[0]), Words(sizes[1])
        self.body = nn.Transformer(24, 3, 2, 2, 40, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        positions = self.positions
        if self.way == "inline":
            return self.body(positions(self.source(source)), positions(self.target(target)))
        if self.way == "target first":
            written = positions(self.target(target))
            return self.body(positions(self.source(source)), written)
        read = positions(self.source(source))
        written = positions(self.target(target))
        return self.body(read, written, tgt_mask=self.body.generate_square_subsequent_mask(N))


@pytest.mark.parametrize("sizes", [(V, V + 9), (V + 200, V)])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("way", ["lines", "inline", "target first"])
@pytest.mark.parametrize("mode", [contextlib.nullcontext, torch.no_grad])
def test_a_source_and_a_target_of_equal_length_are_told_apart(
    mode: Any, way: str, training: bool, sizes: tuple[int, int]
) -> None:
    model = Tutorial(way, sizes).train(training)
    with mode():
        trace = watched(model, SOURCE, TARGET)
    assert [layer.kind for layer in trace.layers] == ["self", "self", "self", "cross", "self", "cross"]
    must_be_both_sides(trace)


@pytest.mark.parametrize("way", ["lines", "inline"])
def test_gradients_are_those_of_the_unwatched_model_while_tensors_are_followed(way: str) -> None:
    model = Tutorial(way).train()

    def gradients() -> list[Tensor]:
        model.zero_grad()
        torch.manual_seed(5)
        model(SOURCE, TARGET).square().sum().backward()
        return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]

    plain = gradients()
    with regard.watch(model) as trace:
        found = gradients()
    assert all(torch.equal(a, b) for a, b in zip(plain, found, strict=True))
    must_be_both_sides(trace)


def test_nothing_follows_tensors_once_the_first_attention_was_heard() -> None:
    model, open_then = Tutorial().eval(), []
    model.body.encoder.layers[0].linear1.register_forward_hook(lambda *_: open_then.append(DERIVED.users))
    model.positions.register_forward_hook(lambda *_: open_then.append(DERIVED.users))
    with torch.no_grad(), regard.watch(model) as trace:
        model(SOURCE, TARGET)
    assert open_then == [1, 1, 0]
    assert DERIVED.users == 0
    must_be_both_sides(trace)


def test_kernels_stay_while_another_thread_computes_and_go_when_it_waits() -> None:
    """A kernel below autograd that vanishes on the way into it is an error of torch, in whatever thread."""
    model, over, failed = Tutorial().eval(), threading.Event(), []

    def compute() -> None:
        x = torch.ones(2)
        while not over.is_set():
            try:
                x = (x + x) * 0.5
            except RuntimeError as error:
                failed.append(error)
                return

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        with torch.no_grad():
            for _ in range(40):
                with regard.watch(model):
                    model(SOURCE, TARGET)
    finally:
        over.set()
        thread.join()
    assert not failed
    deadline = time.monotonic() + 20
    while (DERIVED.library or EMBEDDINGS.library) and time.monotonic() < deadline:
        threading.Event().wait(1.5)  # where it can be seen that this thread waits
    assert (DERIVED.library, EMBEDDINGS.library) == (None, None)


def test_in_inference_mode_what_cannot_be_followed_is_unknown_and_said() -> None:
    with torch.inference_mode():
        trace = watched(Tutorial().eval(), SOURCE, TARGET)
    for layer in trace.layers:
        must_be(layer, None, None)
        assert any("named by position" in note for note in layer.notes)


@pytest.mark.parametrize("counted", ["source", "target", "both"])
def test_a_text_that_counts_up_is_still_a_text(counted: str) -> None:
    at = torch.arange(3, 3 + N).expand(B, N)
    source, target = SOURCE if counted == "target" else at, TARGET if counted == "source" else at + 4
    with torch.no_grad():
        trace = watched(Tutorial().eval(), source.clone(), target.clone())
    for layer in trace.layers:
        inside = "decoder" in layer.name
        must_be(layer, target if inside else source, target if inside and layer.kind == "self" else source)


class Bare(nn.Module):
    """One table for both, nothing between it and the body."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.body = nn.Embedding(V, 24), nn.Transformer(24, 3, 2, 2, 40, batch_first=True, dropout=0.0)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        out: Tensor = self.body(self.embed(source), self.embed(target))
        return out


@MODES
def test_embeddings_handed_on_as_they_are_are_followed_in_any_mode(mode: Any) -> None:
    with mode():
        must_be_both_sides(watched(Bare().eval(), SOURCE, TARGET))


class Annotated(nn.Module):
    """The Annotated Transformer: encode and decode are methods, called by forward or by a loop of one's own."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.write = nn.Sequential(Words(), Positions()), nn.Sequential(Words(), Positions())
        body = nn.Transformer(24, 3, 2, 2, 40, batch_first=True, dropout=0.0)
        self.encoder, self.decoder = body.encoder, body.decoder

    def encode(self, source: Tensor) -> Tensor:
        out: Tensor = self.encoder(self.read(source))
        return out

    def decode(self, memory: Tensor, target: Tensor) -> Tensor:
        out: Tensor = self.decoder(self.write(target), memory)
        return out

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.decode(self.encode(source), target)


@pytest.mark.parametrize("mode", [contextlib.nullcontext, torch.no_grad])
def test_encode_and_decode_as_methods(mode: Any) -> None:
    with mode():
        must_be_both_sides(watched(Annotated().eval(), SOURCE, TARGET))


@MODES
def test_encode_and_decode_called_from_outside(mode: Any) -> None:
    model = Annotated().eval()
    with mode(), regard.watch(model) as trace:
        model.decode(model.encode(SOURCE), TARGET)
    layers = [layer for run in trace.runs for layer in run.layers]
    assert len(layers) == 6
    for layer in layers:
        rows = SOURCE if "encoder" in layer.name else TARGET
        assert names(layer.queries) == lines(rows)
        if layer.kind == "self":
            assert names(layer.keys) == lines(rows)
        else:  # what `decode` was handed was made by somebody else
            assert names(layer.keys) in (None, lines(SOURCE))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(24, 3, batch_first=True)
        self.across = nn.MultiheadAttention(24, 3, batch_first=True)
        self.norms = nn.ModuleList([nn.LayerNorm(24), nn.LayerNorm(24)])

    def forward(self, x: Tensor, memory: Tensor | None = None) -> Tensor:
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        if memory is not None:
            x = x + self.across(self.norms[1](x), memory, memory, need_weights=False)[0]
        return x


class Loops(nn.Module):
    """All in one forward: two lists of blocks over two embeddings with learned positions."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(V, 24), nn.Embedding(50, 24)
        self.encoder = nn.ModuleList([Block(), Block(), Block()])
        self.written = nn.ModuleList([Block(), Block(), Block()])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        at = torch.arange(source.shape[1])[None]
        x, y = self.words(source) + self.places(at), self.words(target) + self.places(at)
        for block in self.encoder:
            x = block(x)
        for block in self.written:
            y = block(y, x)
        return y


@pytest.mark.parametrize("mode", [contextlib.nullcontext, torch.no_grad])
def test_blocks_in_a_loop(mode: Any) -> None:
    with mode():
        trace = watched(Loops().eval(), SOURCE, TARGET)
    assert len(trace.layers) == 9
    for layer in trace.layers:
        rows = TARGET if layer.name.startswith("written") else SOURCE
        assert names(layer.queries) == lines(rows), layer
        assert names(layer.keys) == lines(rows if layer.kind == "self" else SOURCE)


class Types(nn.Module):
    """BERT as people write it: segments are integers handed over beside the text."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(V, 24), nn.Embedding(50, 24), nn.Embedding(3, 24)])
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, text: Tensor, segments: Tensor) -> Tensor:
        at = torch.arange(text.shape[1]).expand_as(text)
        x = self.tables[0](text) + self.tables[1](at) + self.tables[2](segments)
        for block in self.blocks:
            x = block(x)
        return x


@pytest.mark.parametrize("mode", [contextlib.nullcontext, torch.no_grad])
def test_segments_and_positions_do_not_name_rows(mode: Any) -> None:
    with mode():
        trace = watched(Types().eval(), SOURCE, TARGET % 3)
    assert len(trace.layers) == 2
    for layer in trace.layers:
        must_be(layer, SOURCE, SOURCE)


class Latents(nn.Module):
    """As many learned queries as there are tokens: they are no tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.latents = nn.Embedding(V, 24), nn.Parameter(torch.randn(1, N, 24))
        self.across, self.block = nn.MultiheadAttention(24, 3, batch_first=True), Block()

    def forward(self, text: Tensor) -> Tensor:
        source = self.words(text)
        x = self.latents.expand(len(text), -1, -1)
        x = x + self.across(x, source, source, need_weights=False)[0]
        return self.block(x)


@MODES
def test_as_many_latents_as_tokens_are_no_tokens(mode: Any) -> None:
    with mode():
        trace = watched(Latents().eval(), SOURCE)
    assert [layer.kind for layer in trace.layers] == ["cross", "self"]
    must_be(trace.layers[0], None, SOURCE)
    must_be(trace.layers[1], None, None)


# Models of the library

transformers = pytest.importorskip("transformers")
SMALL = {"vocab_size": V, "d_model": 24, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 3,
         "decoder_attention_heads": 3, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40}  # fmt: skip


@MODES
def test_whisper_hears_frames_and_no_tokens(mode: Any) -> None:
    config = transformers.WhisperConfig(
        **SMALL, num_mel_bins=10, max_source_positions=N, max_target_positions=20, pad_token_id=0, bos_token_id=0,
        eos_token_id=1, decoder_start_token_id=0,
    )  # fmt: skip
    model = transformers.WhisperForConditionalGeneration(config).eval()
    with mode():
        trace = watched(model, input_features=torch.randn(B, 10, 2 * N), decoder_input_ids=TARGET, use_cache=False)
    assert len(trace.layers) == 6
    for layer in trace.layers:
        rows = TARGET if "decoder" in layer.name else None
        must_be(layer, rows, rows if layer.kind == "self" else None)


def test_a_picture_beside_a_text_of_equal_length_is_no_text() -> None:
    sizes = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3}
    config = transformers.CLIPConfig(
        text_config={**sizes, "vocab_size": V, "max_position_embeddings": 20, "eos_token_id": 1},
        vision_config={**sizes, "image_size": 30, "patch_size": 10},
        projection_dim=8,
    )
    model, text = transformers.CLIPModel(config).eval(), ids(4, B, 10)
    with torch.no_grad():
        trace = watched(model, input_ids=text, pixel_values=torch.randn(B, 3, 30, 30))
    assert len(trace.layers) == 4
    for layer in trace.layers:
        if "text" in layer.name:
            must_be(layer, text, text)
        else:
            assert layer.queries is not None
            assert layer.queries[0].grid == (3, 3)


def bart() -> Any:
    torch.manual_seed(0)
    return transformers.BartForConditionalGeneration(
        transformers.BartConfig(**SMALL, max_position_embeddings=40, forced_eos_token_id=None, eos_token_id=None)
    ).eval()


@pytest.mark.parametrize("how", [{}, {"num_beams": 4}, {"use_cache": False}], ids=str)
@pytest.mark.parametrize("new", [N - 1, N, N + 1])
def test_generate_of_an_encoder_decoder(how: dict[str, Any], new: int) -> None:
    model = bart()
    with torch.no_grad(), regard.watch(model) as trace:
        written = model.generate(SOURCE, max_new_tokens=new, min_new_tokens=new, do_sample=False, **how)
    assert len(trace.runs) == 1
    fed = written[:, :-1]
    for layer in trace.layers:
        inside = "decoder" in layer.name
        must_be(layer, fed if inside else SOURCE, fed if inside and layer.kind == "self" else SOURCE)


def test_labels_are_shifted_inside_the_model() -> None:
    model = bart()
    with torch.no_grad():
        trace = watched(model, input_ids=SOURCE, labels=TARGET)
    shifted = torch.cat([torch.full((B, 1), model.config.decoder_start_token_id), TARGET[:, :-1]], 1)
    for layer in trace.layers:
        inside = "decoder" in layer.name
        must_be(layer, shifted if inside else SOURCE, shifted if inside and layer.kind == "self" else SOURCE)


def mllama() -> Any:
    text = {"vocab_size": V, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3,
            "num_attention_heads": 3, "num_key_value_heads": 3, "cross_attention_layers": [1],
            "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}, "pad_token_id": 0}  # fmt: skip
    vision = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_global_layers": 1,
              "attention_heads": 3, "vision_output_dim": 48, "image_size": 10, "patch_size": 10, "max_num_tiles": 1,
              "intermediate_layers_indices": [0], "supported_aspect_ratios": [[1, 1]]}  # fmt: skip
    config = transformers.MllamaConfig(text_config=text, vision_config=vision, image_token_index=V)
    return transformers.MllamaForConditionalGeneration(config).eval()


def test_mllama_looks_at_a_picture_with_as_many_patches_as_tokens() -> None:
    torch.manual_seed(0)
    model, states = mllama(), torch.randn(B, N, 24)
    with torch.no_grad():
        trace = watched(model.model.language_model, input_ids=SOURCE, cross_attention_states=states, use_cache=False)
    assert len(trace.layers) == 3
    for layer in trace.layers:
        across = "cross" in layer.name
        assert layer.kind == ("cross" if across else "self")
        must_be(layer, SOURCE, None if across else SOURCE)


def test_x_transformers() -> None:
    library = pytest.importorskip("x_transformers")
    torch.manual_seed(0)
    model = library.XTransformer(
        dim=24, enc_num_tokens=V, enc_depth=2, enc_heads=3, enc_max_seq_len=9, dec_num_tokens=V, dec_depth=2,
        dec_heads=3, dec_max_seq_len=9, enc_attn_dim_head=8, dec_attn_dim_head=8,
    ).eval()  # fmt: skip
    with torch.no_grad():
        trace = watched(model, SOURCE, TARGET)
    assert [layer.kind for layer in trace.layers] == ["self", "self", "self", "cross", "self", "cross"]
    for layer in trace.layers:
        inside = layer.name.startswith("decoder")
        must_be(layer, TARGET if inside else SOURCE, TARGET if inside and layer.kind == "self" else SOURCE)


def test_keys_that_come_after_the_tokens_take_no_name_from_them() -> None:
    """`add_bias_kv` and compressed keys stand last; where rows see what stands after them, no others came first."""

    class More(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(V, 8)
            self.attention = nn.MultiheadAttention(8, 2, add_bias_kv=True, batch_first=True)

        def forward(self, input_ids: Tensor) -> Tensor:
            x = self.embedding(input_ids)
            return self.attention(x, x, x, need_weights=False)[0]

    with torch.no_grad():
        (layer,) = watched(More().eval(), SOURCE).layers
    assert layer.queries is not None
    assert layer.keys is None


class Reordered(nn.Module):
    """Puts what it embedded into another order, of the same length, before it attends."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.words, self.start = way, Words(), nn.Parameter(torch.randn(1, 1, 24))
        self.places, self.norm = nn.Parameter(0.3 * torch.randn(N, 24)), nn.LayerNorm(24)
        self.body = nn.TransformerEncoderLayer(24, 3, 30, batch_first=True, norm_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        if self.way == "as they were":
            x = x + 0
        if self.way == "flipped":
            x = x.flip(1)
        if self.way == "shifted":
            x = nn.functional.pad(x, (0, 0, 1, -1))
        if self.way == "begun":
            x = torch.cat([self.start.expand(len(x), -1, -1), x[:, :-1]], 1)
        if self.way == "shuffled":
            x = x[:, [3, 0, 5, 1, 4, 2]]
        if self.way == "other entries":
            x = x[[1, 2, 0]]
        out: Tensor = self.body(self.norm(x) + self.places)
        return out


@pytest.mark.parametrize("way", ["flipped", "shifted", "begun", "shuffled", "other entries"])
def test_rows_that_were_put_into_another_order_lose_their_names(way: str) -> None:
    torch.manual_seed(2)
    trace = watched(Reordered("as they were").eval(), SOURCE)
    must_be(trace[0], SOURCE, SOURCE)
    trace = watched(Reordered(way).eval(), SOURCE)
    must_be(trace[0], None, None)
    assert any("another order" in note for note in trace[0].notes)


class FromItself(nn.Module):
    """Makes its target out of the source, so that nobody hands it over."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.words = way, nn.Embedding(V, 24)
        self.body = nn.Transformer(24, 2, 2, 2, 40, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        if self.way == "embedded":
            return self.body(x, nn.functional.pad(x, (0, 0, 1, -1)))
        target = self.words(nn.functional.pad(tokens[:, :-1], (1, 0), value=1))
        return self.body(x, target)


@pytest.mark.parametrize("way", ["ids", "embedded"])
def test_a_target_that_is_the_source_moved_by_one_does_not_carry_its_tokens(way: str) -> None:
    trace = watched(FromItself(way).eval(), SOURCE)
    shifted = torch.cat([torch.ones_like(SOURCE[:, :1]), SOURCE[:, :-1]], 1)
    for layer in trace.layers:
        rows = SOURCE if "encoder" in layer.name else shifted if way == "ids" else None
        must_be(layer, rows, SOURCE if layer.kind == "cross" else rows)


class BothWays(nn.Module):
    """One module reads the text forwards and backwards."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(V, 24)
        self.body = nn.TransformerEncoderLayer(24, 3, 30, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        both: Tensor = self.body(x) + self.body(x.flip(1)).flip(1)
        return both


def test_a_module_that_reads_a_text_backwards_as_well_names_one_reading_only() -> None:
    forwards, backwards = watched(BothWays().eval(), SOURCE).layers
    must_be(forwards, SOURCE, SOURCE)
    must_be(backwards, None, None)
