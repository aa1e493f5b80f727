"""Recurrent encoder–decoders: against torch's cells and the papers' formulas in loops, padded and step by step."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.errors import DtypeError, ShapeError
from regard.layers import listen
from regard.models.decoder_state import DecoderState
from regard.models.recurrent import RecurrentCells, make_recurrent
from regard.models.recurrent_decoder import ATTENTIONS
from regard.models.seq2seq import Seq2SeqConfig

V, N, W, E, B, S, T = 23, 29, 12, 10, 5, 7, 6
EVERY = [("additive", True), ("dot", True), ("dot", False), ("general", True), ("general", False), ("none", True)]


def draw_batch():
    """Sources of several lengths, padded with 0 and ended by 2; whole targets that begin with 1."""
    source, target = torch.randint(3, V, (B, S)), torch.randint(3, N, (B, T))
    for row, length in enumerate([S, 4, 6, 2, 5]):
        source[row, length - 1], source[row, length:] = 2, 0
    target[:, 0] = 1
    return source, target


def make(**options):
    """Weights far from where they start, so that nothing hides behind a zero."""
    model = Seq2SeqConfig(V, N, W, **({"embedding": E} | options)).build()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.double().eval()


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_steps_of_a_cell_equal_torch_over_the_whole_text(cell, layers):
    given, fed, width = 4, 3, 6
    rnn = make_recurrent(cell, given + fed, width, layers, 0.0).double()
    for parameter in rnn.parameters():
        nn.init.normal_(parameter, std=0.5)
    x, more = torch.randn(B, T, given, dtype=torch.float64), torch.randn(B, T, fed, dtype=torch.float64)
    start = tuple(torch.randn(layers, B, width, dtype=torch.float64) for _ in range(2 if cell == "lstm" else 1))
    wanted, last = rnn(torch.cat((x, more), -1), start if cell == "lstm" else start[0])
    cells, state, said = RecurrentCells(rnn, given), list(zip(*(part.unbind(0) for part in start))), []
    for gates, now in zip(cells.project(x).unbind(1), more.unbind(1)):
        state = cells.step(gates, now, state)
        said.append(state[-1][0])
    assert_close(torch.stack(said, 1), wanted)
    for part, right in zip(zip(*state), last if cell == "lstm" else (last,), strict=True):
        assert_close(torch.stack(part), right)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_the_encoder_is_torch_over_each_text_without_its_padding(bidirectional, cell):
    model = make(bidirectional=bidirectional, layers=2, cell=cell)
    source, _ = draw_batch()
    read = model._read(source)
    for row in range(B):
        length = int((source[row] != 0).sum())
        said, last = model.encoder.rnn(model.source_embed(source[row : row + 1, :length]))
        assert_close(read.memory[row, :length], said[0])
        end = last[0] if cell == "lstm" else last  # layers · directions, 1, w
        assert_close(read.context[row], torch.cat([end[2], end[3]] if bidirectional else [end[1]], -1)[0])
        assert_close(read.state[0][1, row], torch.tanh(model.bridges[1](read.context[row])))
    assert not read.memory[source == 0].any()


def gru_loop(weights, x, h):
    """A gated recurrent unit as torch documents it, one number at a time over the gates."""
    ih, hh, b_ih, b_hh = weights
    i, j = ih @ x + b_ih, hh @ h + b_hh
    w = len(h)
    r, z = torch.sigmoid(i[:w] + j[:w]), torch.sigmoid(i[w : 2 * w] + j[w : 2 * w])
    n = torch.tanh(i[2 * w :] + r * j[2 * w :])
    return (1 - z) * n + z * h


def by_the_paper(model, kind, feeding, memory, ids, state, context):
    """What stands before the head at each step of one text, and the weights, by the formulas of the papers."""
    decoder, table = model.decoder, model.target_table
    weights = [getattr(decoder.rnn, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    to_out, fed = decoder.to_out, torch.zeros(decoder.out, dtype=torch.float64)
    hidden, maps = [], []

    def look(s):
        score = decoder.attention.score
        if kind == "additive":  # Bahdanau et al. 2015, appendix A.1.2
            energies = [
                score.v @ torch.tanh(score.query_to_hidden.weight @ s + score.key_to_hidden.weight @ h) for h in memory
            ]
        elif kind == "dot":  # Luong et al. 2015, eq. 8
            energies = [s @ h for h in memory]
        else:
            energies = [s @ score.weight @ h for h in memory]
        shares = torch.stack(energies).exp()
        shares = shares / shares.sum()
        maps.append(shares)
        return sum(share * h for share, h in zip(shares, memory))

    for i in ids:
        y = table[i]
        if kind in ("additive", "none"):
            c = look(state) if kind == "additive" else context
            state = gru_loop(weights, torch.cat((y, c)), state)
            fed = torch.tanh(to_out.weight @ torch.cat((state, c, y)) + to_out.bias)
        else:
            state = gru_loop(weights, torch.cat((y, fed)) if feeding else y, state)
            fed = torch.tanh(to_out.weight @ torch.cat((look(state), state)) + to_out.bias)  # eq. 5
        hidden.append(fed)
    return torch.stack(hidden), torch.stack(maps) if maps else None


@pytest.mark.parametrize(("kind", "feeding"), EVERY)
def test_every_kind_of_attention_equals_the_formulas_of_its_paper(kind, feeding):
    model = make(attention=kind, input_feeding=feeding)
    source, target = draw_batch()
    with torch.no_grad():
        found, read = model.hidden(source, target), model._read(source)
        steps, looked = model.begin(source), []
        for ids in target.split(1, 1):
            steps(ids)
            looked.append(steps.attention())
        for row in range(B):
            length = int((source[row] != 0).sum())
            hidden, maps = by_the_paper(
                model, kind, feeding, read.memory[row, :length], target[row], read.state[0][0, row], read.context[row]
            )
            assert_close(found[row], hidden, rtol=1e-10, atol=1e-10)
            if maps is None:
                assert looked == [None] * T
            else:
                assert_close(torch.stack(looked, 1)[row, :, :length], maps, rtol=1e-10, atol=1e-10)
                assert not torch.stack(looked, 1)[row, :, length:].any()


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize(("kind", "feeding"), EVERY)
def test_steps_equal_teacher_forcing_and_batches_equal_single_sentences(kind, feeding, cell, layers):
    model = make(attention=kind, input_feeding=feeding, cell=cell, layers=layers, tied=layers == 2)
    source, target = draw_batch()
    with torch.no_grad():
        wanted, steps = model(source, target), model.begin(source)
        assert isinstance(steps, DecoderState)
        assert steps.attention() is None
        found = [steps(part) for part in target.split([1, 1, 2, 1, 1], 1)]
        assert_close(torch.stack(found, 1), wanted[:, [0, 1, 3, 4, 5]], rtol=1e-10, atol=1e-10)
        for row in range(B):
            length = int((source[row] != 0).sum())
            alone = model(source[row : row + 1, :length], target[row : row + 1, :4])
            assert_close(wanted[row : row + 1, :4], alone, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("kind", "feeding"), EVERY)
def test_rows_may_change_places_be_dropped_and_be_repeated_between_steps(kind, feeding):
    model = make(attention=kind, input_feeding=feeding, layers=2, cell="lstm")
    source, target = draw_batch()
    with torch.no_grad():
        steps = model.begin(source)
        order = torch.tensor([3, 0, 0, 4, 1, 1, 2])
        steps.reorder(order)
        source, target = source[order], target[order]
        steps(target[:, :1])
        for step, index in enumerate([[1, 0, 2, 3, 5, 4, 6], [6, 5, 0, 3], [2, 2, 1], [0, 2]], start=1):
            looked = steps.attention()
            steps.reorder(torch.tensor(index))
            if looked is not None:
                assert_close(steps.attention(), looked[index])
            source, target = source[index], target[index]
            assert_close(steps(target[:, step : step + 1]), model(source, target)[:, step], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize(("kind", "feeding"), EVERY)
def test_everything_learns(kind, feeding, cell):
    model = Seq2SeqConfig(V, N, W, attention=kind, input_feeding=feeding, cell=cell, layers=2, dropout=0.1).build()
    source, target = draw_batch()
    assert len(model.state_dict()) == len(list(model.parameters()))
    model(source, target).square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("kind", ["additive", "general"])
def test_gradients_of_the_loop_are_those_of_numbers_that_move(kind):
    model = make(attention=kind)
    source, target = draw_batch()
    draw = torch.randn(B, T, W, dtype=torch.float64)
    (model.hidden(source, target) * draw).sum().backward()
    step = 1e-6
    for name, parameter in model.named_parameters():
        if name.startswith("head"):
            continue
        at = tuple(int(torch.randint(n, ())) for n in parameter.shape) if "embed" not in name else (2, 3)
        with torch.no_grad():
            was, ends = parameter[at].item(), []
            for moved in (was + step, was - step):
                parameter[at] = moved
                ends.append((model.hidden(source, target) * draw).sum().item())
            parameter[at] = was
        assert parameter.grad[at].item() == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-6), name


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_logits_are_the_hidden_states_times_the_head(shared, tied):
    model = Seq2SeqConfig(N, N, W, embedding=E, shared=shared, tied=tied).build()
    source, target = draw_batch()
    hidden = model.hidden(source, target)
    assert hidden.shape == (B, T, E if tied else W)
    assert model.head_weight.shape == (N, hidden.shape[-1])
    assert (model.head_bias is None) == tied
    added = 0 if model.head_bias is None else model.head_bias
    assert_close(model(source, target), hidden @ model.head_weight.T + added)
    tables = {id(model.source_embed.weight), id(model.target_table), id(model.head_weight)}
    assert len(tables) == 3 - shared - tied


def test_the_map_of_a_sentence_counts_the_end_on_both_sides():
    """i'm home . → je suis chez moi . has (5 + 1) × (3 + 1) cells."""
    reads, writes = ["i'm", "home", ".", "<eos>"], ["<bos>", "je", "suis", "chez", "moi", "."]
    says = [*writes[1:], "<eos>"]
    words = {word: i for i, word in enumerate(["<pad>", "<bos>", "<eos>", *reads[:3], *writes[1:5]])}
    model = Seq2SeqConfig(len(words), len(words), width=8).build().eval()
    source, target = (torch.tensor([[words[word] for word in text]]) for text in (reads, writes))
    with torch.no_grad():
        steps, rows = model.begin(source), []
        for ids in target.split(1, 1):
            steps(ids)
            rows.append(steps.attention()[0])
    together = torch.stack(rows)
    assert together.shape == (len(says), len(reads)) == (5 + 1, 3 + 1)
    assert_close(together.sum(-1), torch.ones(6))
    with torch.no_grad(), regard.watch(model) as trace:
        model(source, target)
    assert [layer.kind for layer in trace.layers] == ["cross"]
    assert trace.layers[0].weights.shape == (1, 1, 6, 4)
    assert_close(trace.layers[0].weights.dense()[0, 0], together)


@pytest.mark.parametrize(("kind", "feeding"), EVERY[:-1])
def test_a_watch_hears_every_step_and_hides_padding(kind, feeding):
    model = make(attention=kind, input_feeding=feeding)
    source, target = draw_batch()
    with torch.no_grad(), listen() as heard:
        model(source, target)
    assert len(heard) == (T if kind == "additive" or feeding else 1)
    stacked = torch.cat([attended.weights.dense() for _, attended in heard], 2)
    with torch.no_grad(), regard.watch(model) as trace:
        model(source, target)
    (layer,) = trace.layers
    assert (layer.name, layer.kind, layer.weights.shape) == ("decoder.attention", "cross", (B, 1, T, S))
    assert_close(layer.weights.dense(), stacked)
    assert not stacked[(source == 0)[:, None, None].expand(stacked.shape)].any()


def test_a_watch_hears_the_steps_of_decoding():
    model = make()
    source, target = draw_batch()
    with torch.no_grad(), regard.watch(model) as trace:
        steps = model.begin(source)
        for ids in target.split(1, 1):
            steps(ids)
    found = torch.cat([layer.weights.dense() for run in trace.runs for layer in run.layers], 2)
    assert found.shape == (B, 1, T, S)


def test_a_config_builds_what_it_says():
    model = Seq2SeqConfig(V, N, W, layers=2, cell="lstm", bidirectional=False, embedding=E, tied=True).build()
    assert isinstance(model.encoder.rnn, nn.LSTM)
    assert not model.encoder.rnn.bidirectional
    assert (model.decoder.rnn.num_layers, model.decoder.rnn.input_size) == (2, E + W)


def test_what_cannot_be_built_or_read_is_refused_in_one_sentence():
    for options, error, sentence in [
        ({"width": 9}, ShapeError, "width is 9, but two directions have half of it each"),
        ({"cell": "rnn"}, ValueError, "cell is 'rnn'; choose one of 'gru', 'lstm'"),
        ({"attention": "cosine"}, ValueError, "attention is 'cosine'; choose one of 'additive', 'dot'"),
        ({"shared": True}, ShapeError, "vocabularies of 23 and 29 tokens"),
        ({"layers": 0}, ShapeError, "layers is 0, but a model has at least one"),
    ]:
        with pytest.raises(error, match=sentence):
            Seq2SeqConfig(V, N, **({"width": W} | options)).build()
    model = make()
    source, target = draw_batch()
    with pytest.raises(DtypeError, match=r"the source came as torch\.float64"):
        model(source.double(), target)
    with pytest.raises(ShapeError, match="row 3 of the source is padding alone"):
        model(source.index_fill(0, torch.tensor([3]), 0), target)
    assert ATTENTIONS == ("additive", "dot", "general", "none")
