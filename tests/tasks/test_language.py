"""Writing and filling: learned from any text by the engine as other tasks are, and scored as plain loops score."""

import json
import math
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.data.byte_level import MASK, RESERVED
from regard.data.special import BEGIN, END, PAD
from regard.errors import DataError
from regard.models import store
from regard.models.read_tokenizer import TOKENIZER, read_tokenizer
from regard.tasks.evaluate import evaluate
from regard.tasks.fill import Fill, FillSettings, PreparedFill
from regard.tasks.language_write import PreparedWrite, Write, WriteSettings
from regard.tasks.masking import hide_tokens
from regard.trace.file import load
from regard.training import checkpoint
from regard.training.fit import fit

NAMES = ("cat", "dog", "man", "bird", "fish", "girl")
VERBS = ("sees", "likes", "finds")
SENTENCES = [f"The {one} {verb} the {other}." for one in NAMES for verb in VERBS for other in NAMES if one != other]
SIZES = {
    "split": "line", "validation_size": 9, "vocab_size": 290, "batch_tokens": 90, "context": 18, "layers": 1,
    "heads": 3, "width": 24, "hidden": 20, "dropout": 0.1, "warmup_steps": 2, "lr_schedule": "constant", "lr": 0.01,
    "steps": 6, "eval_every": 3, "save_every": 3, "log_every": 1,
}  # fmt: skip
TASKS = {"write": (Write(), WriteSettings), "fill": (Fill(), FillSettings)}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_text("\n".join(SENTENCES))
    return path


@pytest.fixture(scope="module", params=list(TASKS))
def run(request, text, tmp_path_factory):
    task, kind = TASKS[request.param]
    folder = tmp_path_factory.mktemp(request.param) / "run"
    assert fit(task, kind(data=str(text), **SIZES), folder).code == 0
    return task, kind(data=str(text), **SIZES), folder


def weights(folder, step):
    return checkpoint.read(folder / "checkpoints" / checkpoint.name_of(step)).tensors


def test_a_run_that_was_resumed_ends_in_the_same_bits(run, tmp_path):
    task, settings, folder = run
    fit(task, settings.model_copy(update={"steps": 3}), tmp_path / "run")
    fit(task, settings, tmp_path / "run", resume=True)
    assert_close(weights(tmp_path / "run", 6), weights(folder, 6), rtol=0, atol=0)


@pytest.mark.parametrize("name", list(TASKS))
def test_parts_of_a_batch_add_up_with_their_gradients(name, text, tmp_path):
    task, kind = TASKS[name]
    prepared = task.prepare(kind(data=str(text), **SIZES), tmp_path)
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


def test_what_was_exported_is_scored_as_it_was_in_training(run):
    task, _, folder = run
    last = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    best = min(row["validation"]["loss"] for row in last if "validation" in row)
    assert evaluate(str(folder))["scores"]["loss"] == pytest.approx(best, abs=1e-5)
    assert evaluate(str(folder))["task"] == task.name


def test_the_tokenizer_lies_beside_the_weights_and_another_run_can_use_it(run, text, tmp_path):
    task, settings, folder = run
    tokenizer = read_tokenizer(folder / "model")
    assert tokenizer.get_vocab_size() == store.describe(folder / "model")["config"]["vocab_size"] <= 290
    other = tmp_path / "other.txt"
    other.write_text("\n".join(f"{number} apples" for number in range(100)))
    named = settings.model_copy(update={"data": str(other), "tokenizer": str(folder / TOKENIZER)})
    (tmp_path / "run").mkdir()
    assert task.prepare(named, tmp_path / "run").tokenizer.to_str() == tokenizer.to_str()


def test_examples_are_shown_with_their_traces(run):
    task, _, folder = run
    last = sorted((folder / "shown").iterdir())[-1]
    rows = json.loads((last / "examples.json").read_text())
    assert len(rows) == 4
    for row in rows:
        trace = load(last / row["trace"])
        tokens = trace.layers[0].keys[0].shown
        assert tokens[0] == row["source"][0] == "<bos>"
        if task.name == "write":
            assert list(tokens) == row["source"] + row["written"]
        else:
            assert list(tokens) == row["source"]
            assert row["source"].count("[MASK]") == 1
            assert sum(one != other for one, other in zip(row["source"], row["written"], strict=True)) == 1


def test_a_text_that_is_gone_can_be_replaced_by_another(run, tmp_path):
    task, settings, folder = run
    model = folder / "model"
    lost = tmp_path / "model"
    config = store.config_of(model, store.describe(model), store.read(model).state_dict())
    facts = {"task": task.name, "settings": settings.model_dump(mode="json") | {"data": "nowhere.txt"}}
    store.write(lost, store.read(model), config, facts, {TOKENIZER: store.read_file(model, TOKENIZER)})
    with pytest.raises(DataError, match=r"trained on is not here \(nowhere\.txt\); name another with --data"):
        evaluate(str(lost))
    other = tmp_path / "b.txt"
    other.write_text("The cat sees the dog.\nThe zebra likes the cat.")
    assert evaluate(str(lost), data=str(other))["scores"]["loss"] > 0


def test_perplexities_are_those_of_a_plain_loop(text, tmp_path):
    """Token by token over the rows, and by words and bytes of the text."""
    prepared = PreparedWrite(WriteSettings(data=str(text), **SIZES), tmp_path)
    model = prepared.model.double().eval()
    held = [sentence for sentence in SENTENCES if sentence in set_of_held(prepared)]
    plain = [token for at in range(len(held)) for token in prepared.held.texts.document(at)]
    total, count = 0.0, 0
    for start in range(0, len(plain) - 1, 18):
        window = plain[start : start + 19]
        logits = model(torch.tensor([window[:-1]]))[0].log_softmax(-1).detach()
        for row, following in zip(logits, window[1:]):
            if following != BEGIN:
                total, count = total - float(row[following]), count + 1
    scores = prepared.validate(model)
    words, size = sum(len(text.split()) + 1 for text in held), sum(len(text.encode()) for text in held)
    assert len(held) == 9
    assert scores["loss"] == pytest.approx(total / count)
    assert scores["perplexity"] == pytest.approx(math.exp(total / count))
    assert scores["word_perplexity"] == pytest.approx(math.exp(total / words))
    assert scores["bits_per_byte"] == pytest.approx(total / math.log(2) / size)


def set_of_held(prepared):
    texts = prepared.held.texts
    return {prepared.tokenizer.decode(texts.document(at)) for at in range(len(texts.lengths))}


def test_each_epoch_reads_all_rows_once_and_packs_documents_anew(text, tmp_path):
    prepared = PreparedWrite(WriteSettings(data=str(text), **SIZES), tmp_path)
    epochs = [np.concatenate(prepared.batches(epoch)) for epoch in range(3)]
    for epoch, numbers in enumerate(epochs):
        assert sorted(numbers) == list(range(epoch * prepared.train.rows, (epoch + 1) * prepared.train.rows))
    first, again = prepared.read(np.sort(epochs[0])), prepared.read(np.sort(epochs[1]))
    assert not np.array_equal(first, again)
    mixed = np.array([epochs[2][0], epochs[0][1], epochs[1][3]])
    alone = np.concatenate([prepared.read(mixed[at : at + 1]) for at in range(3)])
    assert np.array_equal(prepared.read(mixed), alone)
    copied = pickle.loads(pickle.dumps(prepared))
    assert np.array_equal(copied.read(mixed), alone)


def test_the_loss_is_that_of_torch_and_no_beginning_is_asked_for(text, tmp_path):
    prepared = PreparedWrite(WriteSettings(data=str(text), **SIZES), tmp_path)
    model, batch = prepared.model.double().eval(), prepared.collate(prepared.batches(0)[0])
    assert BEGIN not in batch.target
    assert END in batch.target
    plain = F.cross_entropy(model(batch.ids).mT, batch.target, reduction="sum", ignore_index=PAD)
    found = prepared.loss(model, batch)
    assert_close(found.sum, plain)
    assert found.count == prepared.weight(prepared.batches(0)[0])
    assert prepared.loss(model, prepared.collate(np.array([], dtype=np.int64))).sum == 0


def test_a_share_of_the_tokens_is_hidden_and_no_special_one():
    ids = np.random.default_rng(0).integers(0, 1000, 200_000)
    given, target = hide_tokens(ids, 1000, (3, 4))
    asked = target != PAD
    assert asked[ids >= len(RESERVED)].mean() == pytest.approx(0.15, abs=0.005)
    assert not asked[ids < len(RESERVED)].any()
    assert np.array_equal(given[~asked], ids[~asked])
    assert np.array_equal(target[asked], ids[asked])
    assert (given[asked] == MASK).mean() == pytest.approx(0.8, abs=0.01)
    assert (given[asked] == ids[asked]).mean() == pytest.approx(0.1, abs=0.01)
    assert np.array_equal(hide_tokens(ids[:77], 1000, (3, 4))[0], given[:77])  # whatever is padded after it


def test_other_words_are_hidden_in_each_epoch_and_padding_is_never_seen(text, tmp_path):
    prepared = PreparedFill(FillSettings(data=str(text), **SIZES), tmp_path)
    count = len(prepared.rows.lengths)
    first, again, later = (prepared.collate(np.array([4, 7]) + shift) for shift in (0, 0, count))
    assert torch.equal(first.ids, again.ids)
    assert not torch.equal(first.ids, later.ids)
    model = prepared.model.double().eval()
    alone = sum(prepared.loss(model, prepared.collate(np.array([at]))).sum for at in (4, 7, 11))
    assert_close(prepared.loss(model, prepared.collate(np.array([4, 7, 11]))).sum, alone)
    assert prepared.loss(model, prepared.collate(np.array([], dtype=np.int64))).sum == 0


@pytest.mark.parametrize("name", list(TASKS))
def test_it_learns_a_small_language(name, text, tmp_path):
    task, kind = TASKS[name]
    sizes = SIZES | {"steps": 150, "eval_every": 150, "save_every": 150, "batch_tokens": 360, "dropout": 0.0}
    scores = fit(task, kind(data=str(text), **sizes), tmp_path / "run").scores
    assert scores["loss"] < 1.0 if name == "write" else scores["loss"] < 2.0
