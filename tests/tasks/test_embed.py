"""Learning vectors from pairs: batches, exact gradients in any number of parts, resume to the bit, scores, export."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from torch.testing import assert_close

import regard
from regard.app.protocol.messages import RunRequest
from regard.app.runners.monitor import RunMonitor
from regard.app.runners.readers import open_reader
from regard.cli.see import watch_text
from regard.data.text_pairs import TextPair
from regard.errors import DataError
from regard.models import SentenceEncoder, store
from regard.models.convert import to_transformers
from regard.models.open.load_model import load_model
from regard.tasks.contrastive_batches import EncodedPairs
from regard.tasks.embed import Embed, EmbedSettings, PreparedEmbed
from regard.tasks.evaluate import evaluate
from regard.tasks.text_embedder import open_embedder
from regard.trace.file import load
from regard.training import checkpoint
from regard.training.distributed import distributed
from regard.training.fit import fit
from tests.training.crew import assert_near, train

NAMES = ("cat", "dog", "man", "bird", "fish", "girl", "boy")
VERBS = {"sees": "seen", "likes": "liked", "finds": "found"}
PAIRS = [
    (f"The {one} {verb} the {other}.", f"The {other} is {passive} by the {one}.", f"The {other} {verb} the {one}.")
    for one in NAMES
    for verb, passive in VERBS.items()
    for other in NAMES
    if one != other
]
SIZES = {
    "validation_size": 17, "vocab_size": 290, "batch_pairs": 11, "max_length": 24, "layers": 1, "heads": 3, "width": 24,
    "hidden": 20, "dropout": 0.1, "warmup_steps": 2, "lr_schedule": "constant", "lr": 0.01, "steps": 6, "eval_every": 3,
    "save_every": 3, "log_every": 1,
}  # fmt: skip


def write_tsv(path: Path, rows, header: str = "") -> Path:
    path.write_text(header + "".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "single.txt").write_text("\n".join(row[0] for row in PAIRS))
    return {
        "pairs": write_tsv(folder / "pairs.tsv", [row[:2] for row in PAIRS]),
        "negatives": write_tsv(folder / "negatives.tsv", PAIRS),
        "single": folder / "single.txt",
    }


def settings(data, **more):
    return EmbedSettings(**SIZES | {"data": str(data)} | more)


@pytest.fixture(scope="module")
def run(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("embed") / "run"
    assert fit(Embed(), settings(files["negatives"]), folder).code == 0
    return folder


def weights(folder, step):
    return checkpoint.read(folder / "checkpoints" / checkpoint.name_of(step)).tensors


# Batches


def encoded(count, tokens=None):
    from regard.models import embedded
    from regard.tasks.encoder_tokens import EncoderTokenizer

    words = random.Random(1).choices(NAMES, k=9999)
    texts = [" ".join(words[at : at + 1 + at % 13]) for at in range(2 * count)]
    pairs = [TextPair(one, two) for one, two in zip(texts[::2], texts[1::2])]
    return EncodedPairs(EncoderTokenizer.wrap(embedded.tokenizer("filler")), pairs, 64)


@pytest.mark.parametrize(("count", "size"), [(2, 64), (65, 64), (700, 12), (1000, 7)])
def test_an_epoch_has_every_pair_once_in_batches_of_about_one_size(count, size):
    pairs = encoded(count)
    epochs = [pairs.batches(size, seed=3, epoch=epoch) for epoch in (0, 0, 1)]
    for made in epochs:
        assert sorted(np.concatenate(made)) == list(range(count))
        sizes = [len(batch) for batch in made]
        assert max(sizes) <= size
        assert max(sizes) - min(sizes) <= 1
    assert all(np.array_equal(one, two) for one, two in zip(epochs[0], epochs[1]))
    if count > size:
        assert not all(np.array_equal(np.sort(one), np.sort(two)) for one, two in zip(epochs[0], epochs[2]))


def test_texts_of_about_one_length_are_together():
    pairs = encoded(1000)
    made = pairs.batches(20, seed=0, epoch=0)
    padded = sum(pairs.longest[batch].max() * len(batch) for batch in made)
    assert padded < 1.25 * pairs.longest.sum()
    assert padded < 0.8 * pairs.longest.max() * len(pairs)


@pytest.mark.parametrize("pieces", [1, 3, 50])
def test_a_batch_holds_each_text_at_its_place(files, tmp_path, pieces):
    prepared = PreparedEmbed(settings(files["negatives"]), tmp_path)
    batch = prepared.train.collate(np.array([4, 9, 0]), pieces)
    assert len(batch.pieces) == pieces
    rows = [row[:length].tolist() for ids, lengths in batch.pieces for row, length in zip(ids, lengths)]
    wanted = [prepared.train.rows[text] for text in prepared.train.pairs[[4, 9, 0]].T.ravel().tolist()]
    assert [rows[place] for place in batch.places] == wanted


# Gradients


@pytest.mark.parametrize("kind", ["pairs", "negatives"])
def test_micro_batches_change_neither_loss_nor_gradients(files, tmp_path, kind):
    found = []
    for pieces in (1, 2, 5):
        torch.manual_seed(0)
        prepared = PreparedEmbed(settings(files[kind], gradient_accumulation=pieces), tmp_path)
        model, indices = prepared.model.double().eval(), prepared.batches(1)[0]
        model.zero_grad()
        losses = [prepared.loss(model, prepared.collate(part)) for part in prepared.parts(indices, pieces) if len(part)]
        assert len(losses) == 1  # a pair is told from all others of its batch
        losses[0].sum.backward()
        assert losses[0].count == prepared.weight(indices) == len(indices)
        found.append([losses[0].sum, *(one.grad.clone() for one in model.parameters() if one.grad is not None)])
    assert_close(found[1], found[0])
    assert_close(found[2], found[0])


def test_what_is_computed_again_has_the_same_dropout(files, tmp_path):
    """Gradients of one step along themselves: the loss falls as they say only if both passes drop the same."""
    prepared = PreparedEmbed(settings(files["pairs"], gradient_accumulation=3, dropout=0.4), tmp_path)
    model, batch = prepared.model.double().train(), prepared.collate(prepared.batches(0)[0])

    def loss():
        torch.manual_seed(7)
        return prepared.loss(model, batch).sum

    loss().backward()
    slope = sum(float(one.grad.square().sum()) for one in model.parameters() if one.grad is not None)
    with torch.no_grad():
        before = loss()
        for one in model.parameters():
            if one.grad is not None:
                one -= 1e-7 * one.grad
        assert float((before - loss()) / 1e-7) == pytest.approx(slope, rel=1e-3)


def test_a_single_text_is_read_twice_with_other_dropout(files, tmp_path):
    prepared = PreparedEmbed(settings(files["single"]), tmp_path)
    batch = prepared.collate(prepared.batches(0)[0])
    vectors = torch.cat([prepared.encode(prepared.model.train(), *piece) for piece in batch.pieces])[batch.places]
    count = len(batch.said)
    assert (vectors[:count] - vectors[count:]).abs().amin(0).max() > 1e-4
    vectors = torch.cat([prepared.encode(prepared.model.eval(), *piece) for piece in batch.pieces])[batch.places]
    assert_close(vectors[:count], vectors[count:])


def test_no_pairs_cost_nothing(files, tmp_path):
    prepared = PreparedEmbed(settings(files["pairs"]), tmp_path)
    loss = prepared.loss(prepared.model, prepared.collate(np.array([], dtype=np.int64)))
    loss.sum.backward()
    assert (float(loss.sum.detach()), loss.count) == (0, 0)
    assert all(one.grad is not None and one.grad.eq(0).all() for one in prepared.model.blocks.parameters())


def test_two_processes_make_what_one_makes(files, tmp_path, monkeypatch):
    """The wrong answers are those of all processes, and gradients find their way back."""
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")  # its threads are not there after a fork
    ways = {
        "ddp": {"steps": 4, "dropout": 0.0, "eval_every": 4, "save_every": 4},
        "pieces": {"steps": 2, "dropout": 0.0, "eval_every": 2, "save_every": 2, "gradient_accumulation": 2},
        "fsdp": {"steps": 2, "dropout": 0.0, "eval_every": 2, "save_every": 2, "parallel": "fsdp"},
        "few": {"steps": 2, "dropout": 0.0, "eval_every": 2, "save_every": 2, "batch_pairs": 2},
    }
    for name, more in ways.items():
        fit(Embed(), settings(files["negatives"], **more | {"parallel": "ddp"}), tmp_path / "one" / name)

    def two(rank: int) -> None:
        with distributed():  # one group for all runs
            for name, more in ways.items():
                fit(Embed(), settings(files["negatives"], **more), tmp_path / "two" / name)

    train(2, two, tmp_path / "said")
    for name in ways:
        assert_near(tmp_path / "two" / name, tmp_path / "one" / name)


# A run


@pytest.mark.parametrize("kind", ["negatives", "single"])
def test_a_run_that_was_resumed_ends_in_the_same_bits(files, tmp_path, kind):
    given = settings(files[kind])
    fit(Embed(), given, tmp_path / "whole")
    fit(Embed(), given.model_copy(update={"steps": 4}), tmp_path / "run")
    fit(Embed(), given, tmp_path / "run", resume=True)
    assert_close(weights(tmp_path / "run", 6), weights(tmp_path / "whole", 6), rtol=0, atol=0)


def test_it_learns_which_sentences_belong_together(files, tmp_path):
    more = {"steps": 120, "eval_every": 120, "save_every": 120, "batch_pairs": 24, "validation_size": 30, "lr": 5e-3}
    given = settings(files["negatives"], **more)
    prepared = PreparedEmbed(given, tmp_path)
    before = prepared.validate(prepared.model.eval())
    scores = fit(Embed(), given, tmp_path / "run").scores
    assert scores["mrr@10"] > 0.8 > 0.7 > before["mrr@10"]
    assert scores["loss"] < 0.7 * before["loss"]


def test_single_texts_are_learned_from(files, tmp_path):
    more = {"steps": 40, "eval_every": 40, "save_every": 40, "batch_pairs": 24}
    given = settings(files["single"], **more)
    prepared = PreparedEmbed(given, tmp_path)
    whole, other = (text.split() for text in prepared.held.texts[:2])
    assert len(other) < len(whole), "a word is missing in what is looked for"
    assert other == [word for word in whole if word in other]
    scores = fit(Embed(), given, tmp_path / "run").scores
    assert scores["loss"] < prepared.validate(prepared.model.eval())["loss"]


def test_what_was_exported_is_scored_as_it_was_in_training(run, files):
    rows = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    best = max((row["validation"] for row in rows if "validation" in row), key=lambda one: one["mrr@10"])
    found = evaluate(str(run))
    assert found["task"] == "embed"
    assert found["scores"] == pytest.approx(best, abs=1e-5)
    other = evaluate(str(run), data=str(files["pairs"]))["scores"]
    assert other["mrr@10"] < found["scores"]["mrr@10"]  # among many more


def test_a_trained_encoder_opens_by_its_folder_and_reads_as_much_as_in_training(run):
    embedder = open_embedder(run)
    assert isinstance(embedder.model, SentenceEncoder)
    assert (embedder.max_length, embedder.width) == (24, 24)
    assert store.describe(run / "model")["kind"] == "sentence_encoder"


def test_examples_are_shown_with_their_traces(run):
    last = sorted((run / "shown").iterdir())[-1]
    rows = json.loads((last / "examples.json").read_text())
    assert len(rows) == 4
    for row in rows:
        trace = load(last / row["trace"])
        assert list(trace.layers[0].keys[0].shown) == row["source"]
        assert row["written"] != row["source"]
        assert all(proof.status == "verified" for proof in trace.verify())


def test_it_can_be_seen_and_served(run):
    model, tokenizer = regard.open_model(run)
    trace = watch_text(model, tokenizer, PAIRS[0][0])
    assert trace.layers[0].weights.shape[1] == 3
    runner = open_reader("mine", run / "model")
    assert runner.max_tokens == 24
    found = runner.run(RunRequest(model="mine", text=PAIRS[0][0]), RunMonitor())
    assert found.trace.layers[0].weights.shape == trace.layers[0].weights.shape


@torch.no_grad()
def test_the_layout_of_sentence_transformers_gives_the_same_vectors(run, tmp_path):
    """As that library reads it: AutoTokenizer and AutoModel, the mean over the attention mask, length 1."""
    from transformers import AutoModel, AutoTokenizer

    texts = [row[0] for row in PAIRS[:5]] + ["A fish."]
    loaded = load_model(run)
    to_transformers(loaded.model, tmp_path / "out", loaded.tokenizer)
    tokenizer, model = (kind.from_pretrained(tmp_path / "out") for kind in (AutoTokenizer, AutoModel))
    batch = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
    real = batch["attention_mask"][..., None].float()
    states = model.eval()(batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state
    theirs = F.normalize((states * real).sum(1) / real.sum(1), dim=1)
    assert_close(open_embedder(run).embed(texts).vectors, theirs, rtol=0, atol=1e-5)
    assert_close(open_embedder(tmp_path / "out").embed(texts).vectors, theirs, rtol=0, atol=1e-5)


# Scores


def test_scores_of_a_file_are_compared_by_rank(run, tmp_path, files):
    rows = [(row[0], row[1 + at % 2], at % 2 * 1.5 + at % 7) for at, row in enumerate(PAIRS)]
    file = write_tsv(tmp_path / "scored.tsv", rows, "text\tother\tscore\n")
    found = evaluate(str(run), data=str(file))["scores"]
    embedder = open_embedder(run)
    one, two = (embedder.embed([row[side] for row in rows]).vectors for side in (0, 1))
    wanted = spearmanr((one * two).sum(1).numpy(), [row[2] for row in rows]).statistic
    assert found == {"spearman": pytest.approx(wanted, abs=1e-3)}
    prepared = PreparedEmbed(settings(file, min_score=3.0), tmp_path)
    assert prepared.better.score == "spearman"
    assert len(prepared.train) < len(rows) / 2 + 20
    assert prepared.left_out == len(rows) - 17 - len(prepared.train)


def test_what_cannot_be_learned_from_is_refused(tmp_path, files):
    one = write_tsv(tmp_path / "one.tsv", [("a b", "c d", 1), ("e f", "g h", 2)], "text\tother\tscore\n")
    with pytest.raises(DataError, match="0 pairs came to learn from, but each needs others to be told from"):
        PreparedEmbed(settings(one, validation=str(one), min_score=5.0), tmp_path)
    (tmp_path / "short.txt").write_text("a\nb\nc\n")
    with pytest.raises(DataError, match="no text to validate by has more than three words"):
        PreparedEmbed(settings(tmp_path / "short.txt", validation_size=1), tmp_path)
    some = write_tsv(tmp_path / "some.tsv", [row[:2] for row in PAIRS], "text\thypothesis\n")
    [note] = PreparedEmbed(settings(some), tmp_path).notices
    assert note.endswith("some.tsv has no column 'other', so each text stands alone; 'hypothesis' is not read")
    with pytest.raises(DataError, match=r"the text that this model was trained on is not here \(nowhere\.tsv\)"):
        lose(tmp_path / "lost", files)


def lose(folder, files):
    fit(Embed(), settings(files["pairs"], steps=1), folder)
    told = json.loads((folder / "model" / store.MANIFEST).read_text())
    told["settings"]["data"] = "nowhere.tsv"
    (folder / "model" / store.MANIFEST).write_text(json.dumps(told))
    evaluate(str(folder))
