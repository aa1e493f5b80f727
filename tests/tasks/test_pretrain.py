"""Pre-training: hidden words and the order of two texts, learned and resumed as other tasks are, and gone on from."""

import json
import math
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.data.special import BEGIN, END, PAD
from regard.errors import DataError
from regard.models.bert_config import BertConfig
from regard.models.open.load_model import load_model
from regard.tasks.encoder import EncoderSettings, make_encoder
from regard.tasks.evaluate import evaluate
from regard.tasks.pretrain import IGNORED, PreparedPretrain, Pretrain, PretrainSettings
from regard.trace.file import load
from regard.training import checkpoint
from regard.training.fit import fit

NAMES = ("cat", "dog", "man", "bird", "fish", "girl", "fox", "king")
VERBS = ("sees", "likes", "finds", "calls", "helps")
SIZES = {
    "split": "paragraph", "validation_size": 5, "vocab_size": 290, "batch_tokens": 300, "context": 37, "layers": 1,
    "heads": 3, "width": 24, "hidden": 20, "dropout": 0.1, "warmup_steps": 2, "lr_schedule": "constant", "lr": 0.01,
    "steps": 6, "eval_every": 3, "save_every": 3, "log_every": 1,
}  # fmt: skip


def write_stories(path):
    """Each story has its own two, so that what follows can be told."""
    stories = [
        " ".join(f"The {one} {verb} the {other}. The {other} {verb} the {one}." for verb in VERBS)
        for number, one in enumerate(NAMES)
        for other in NAMES[:number]
    ]
    path.write_text("\n\n".join(stories))
    return path


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_stories(tmp_path_factory.mktemp("text") / "a.txt")


@pytest.fixture(scope="module")
def run(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrain") / "run"
    assert fit(Pretrain(), PretrainSettings(data=str(text), **SIZES), folder).code == 0
    return folder


def prepare(text, folder, **other):
    return PreparedPretrain(PretrainSettings(data=str(text), **SIZES | other), folder)


def test_a_run_that_was_resumed_ends_in_the_same_bits(run, text, tmp_path):
    settings = PretrainSettings(data=str(text), **SIZES)
    fit(Pretrain(), settings.model_copy(update={"steps": 3}), tmp_path / "run")
    fit(Pretrain(), settings, tmp_path / "run", resume=True)
    ends = [
        checkpoint.read(folder / "checkpoints" / checkpoint.name_of(6)).tensors for folder in (run, tmp_path / "run")
    ]
    assert_close(*ends, rtol=0, atol=0)


def test_rows_are_framed_as_the_tokenizer_frames_two_texts(text, tmp_path):
    prepared = prepare(text, tmp_path)
    numbers = prepared.batches(3)[1]
    batch = prepared.collate(numbers)
    for at, pair in enumerate(prepared.read_pairs(numbers)):
        texts = [prepared.tokenizer.decode(ids) for ids in (pair.first, pair.second)]
        theirs = prepared.tokenizer.encode(*texts)
        length = len(theirs.ids)
        whole = torch.where(batch.target[at] == PAD, batch.ids[at], batch.target[at])
        assert whole[:length].tolist() == theirs.ids
        assert batch.types[at, :length].tolist() == theirs.type_ids
        assert (whole[length:] == PAD).all()
        assert batch.order[at] == (0 if pair.is_next else 1)
        assert theirs.ids[0] == BEGIN
        assert [at for at, token in enumerate(theirs.ids) if token == END] == [len(pair.first) + 1, length - 1]
        assert length <= 37


def test_the_loss_is_that_of_torch_on_all_logits(text, tmp_path):
    prepared = prepare(text, tmp_path)
    model, numbers = prepared.model.double().eval(), prepared.batches(2)[0]
    batch = prepared.collate(numbers)
    words, order = model(batch.ids, batch.types)
    masked = F.cross_entropy(words.mT, batch.target, ignore_index=PAD, reduction="sum")
    told = F.cross_entropy(order, batch.order, reduction="sum")
    found = prepared.loss(model, batch)
    assert_close(found.nll, masked)
    assert_close(found.sum, masked + prepared.order_weight * told)
    assert found.count == prepared.weight(numbers) == int((batch.target != PAD).sum())
    wanted = torch.autograd.grad(masked + prepared.order_weight * told, list(model.parameters()), allow_unused=True)
    assert_close(torch.autograd.grad(found.sum, list(model.parameters()), allow_unused=True), wanted)


def test_a_pair_weighs_as_much_as_the_words_that_are_hidden_in_it_on_average(text, tmp_path):
    prepared = prepare(text, tmp_path)
    asked = rows = 0
    for epoch in range(20):
        for numbers in prepared.batches(epoch):
            asked, rows = asked + prepared.weight(numbers), rows + len(numbers)
    special = 3 / prepared.pairs.lengths(prepared.layout_of(0)).mean()  # is asked for never
    assert asked / rows == pytest.approx(prepared.order_weight / (1 + special), rel=0.05)


def test_parts_of_a_batch_add_up_with_their_gradients(text, tmp_path):
    prepared = prepare(text, tmp_path)
    model, numbers = prepared.model.double().eval(), prepared.batches(1)[0]
    found = []
    for parts in (1, 2, 3):
        model.zero_grad()
        losses = [prepared.loss(model, prepared.collate(part)) for part in prepared.parts(numbers, parts)]
        sum(loss.sum for loss in losses).backward()
        assert sum(loss.count for loss in losses) == prepared.weight(numbers)
        found.append([one.grad.clone() for one in model.parameters() if one.grad is not None])
    assert_close(found[1], found[0])
    assert_close(found[2], found[0])
    nothing = prepared.collate(np.array([], dtype=np.int64))
    assert prepared.loss(model, nothing).sum == 0
    assert nothing.order.tolist() == [IGNORED]


def test_an_example_is_a_function_of_its_number_alone(text, tmp_path):
    prepared = prepare(text, tmp_path)
    epochs = [np.concatenate(prepared.batches(epoch)) for epoch in range(3)]
    for epoch, numbers in enumerate(epochs):
        assert sorted(numbers % prepared.pairs.sentences) == prepared.layout_of(epoch).first.tolist()
        assert (numbers // prepared.pairs.sentences == epoch).all()
    mixed = np.array([epochs[2][0], epochs[0][1], epochs[1][3]])
    whole = prepared.collate(mixed)
    copied = pickle.loads(pickle.dumps(prepared))
    for at, number in enumerate(mixed):
        alone = copied.collate(np.array([number]))
        length = alone.ids.shape[1]
        for one, all_of_them in zip(alone, whole):
            assert torch.equal(one[0], all_of_them[at, :length] if one.ndim == 2 else all_of_them[at])


def test_scores_are_those_of_a_plain_loop(text, tmp_path):
    prepared = prepare(text, tmp_path)
    model = prepared.model.double().eval()
    lost, right, count, told, pairs = 0.0, 0, 0, 0, 0
    with torch.no_grad():
        for batch in prepared.held_batches():
            for row in range(len(batch.ids)):
                length = int((batch.ids[row] != PAD).sum())
                words, order = model(batch.ids[row : row + 1, :length], batch.types[row : row + 1, :length])
                told, pairs = told + int(order[0].argmax() == batch.order[row]), pairs + 1
                for at in range(length):
                    token = int(batch.target[row, at])
                    if token != PAD:
                        lost -= float(words[0, at].log_softmax(-1)[token])
                        right, count = right + int(words[0, at].argmax() == token), count + 1
        scores = prepared.validate(model)
    assert count > 20
    assert scores == pytest.approx(
        {
            "loss": lost / count,
            "perplexity": math.exp(lost / count),
            "accuracy": right / count,
            "next_sentence": told / pairs,
        }
    )


def test_what_was_exported_is_scored_as_it_was_in_training(run):
    rows = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    best = min((row["validation"] for row in rows if "validation" in row), key=lambda scores: scores["loss"])
    found = evaluate(str(run))
    assert found["task"] == "pretrain"
    assert found["scores"] == pytest.approx(best, abs=1e-5)


def test_examples_are_shown_with_their_traces(run):
    last = sorted((run / "shown").iterdir())[-1]
    rows = json.loads((last / "examples.json").read_text())
    assert len(rows) == 4
    for row in rows:
        assert list(load(last / row["trace"]).layers[0].keys[0].shown) == row["source"]
        assert row["source"].count("[MASK]") == 1
        assert row["source"].count("<eos>") == 2


def test_fine_tuning_goes_on_with_the_hidden_states_of_the_run(run, tmp_path):
    theirs = load_model(run)
    settings = EncoderSettings(pretrained=str(run), max_length=31, dropout=0.0)
    made = make_encoder(BertConfig, settings, tmp_path, [], segments=2, head="classify", labels=3)
    assert made.config.token_types == 2
    framed = made.tokens.frame(*(one.ids for one in made.tokens.encode_plain(["The cat.", "A man sees."])))
    ids, types = torch.tensor([framed.ids]), torch.tensor([framed.types])
    states = theirs.model.hidden(ids, types)
    assert_close(made.model.eval().hidden(ids, types), states, rtol=0, atol=0)
    assert_close(made.model.pool(states), theirs.model.pool(states), rtol=0, atol=0)
    assert not torch.equal(theirs.model.types.weight[0], theirs.model.types.weight[1])


LARGER = {"batch_tokens": 900, "dropout": 0.0, "layers": 2, "save_every": 300}


def test_it_learns_the_words_of_a_small_language(text, tmp_path):
    sizes = LARGER | {"steps": 300, "eval_every": 300}
    assert fit(Pretrain(), PretrainSettings(data=str(text), **SIZES | sizes), tmp_path / "run").scores["loss"] < 1.4


@pytest.mark.slow
def test_it_learns_the_order_of_a_small_language(text, tmp_path):
    """For hundreds of steps nothing is learned of it, until a head finds the names of the one text in the other."""
    sizes, found = LARGER | {"steps": 2000, "eval_every": 200}, []
    settings = PretrainSettings(data=str(text), **SIZES | sizes)
    fit(
        Pretrain(), settings, tmp_path / "run", tell=lambda one: found.append(one) if one.kind == "validation" else None
    )
    assert max(one.facts["scores"]["next_sentence"] for one in found[-4:]) > 0.7


@pytest.mark.parametrize("lowercase", [False, True])
def test_text_is_lowercased_where_that_is_wanted(text, tmp_path, lowercase):
    prepared = prepare(text, tmp_path, lowercase=lowercase, whole_words=True)
    batch = prepared.collate(prepared.batches(0)[0])
    whole = torch.where(batch.target == PAD, batch.ids, batch.target)
    assert ("The" in prepared.tokenizer.decode(whole[0].tolist())) is not lowercase
    assert prepared.word_starts.sum() > 20


def test_lines_that_nothing_follows_are_refused_with_advice(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(f"Line {number}." for number in range(40)))
    with pytest.raises(DataError, match=r"0 of 35 documents have two sentences or more, .* split the text otherwise"):
        prepare(path, tmp_path, split="line")
