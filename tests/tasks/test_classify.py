"""Classification: learned by the engine as other tasks are, scored as plain loops and scikit-learn score."""

import json
import math
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.data.labelled import LabelledTexts
from regard.errors import ConfigError, DataError
from regard.models import store
from regard.models.open.load_model import load_model
from regard.models.read_tokenizer import TOKENIZER, read_tokenizer
from regard.tasks.classify import IGNORED, Classify, ClassifySettings, PreparedClassification, weigh_classes
from regard.tasks.encoder_tokens import EncoderTokenizer
from regard.tasks.evaluate import evaluate, task_of
from regard.tasks.labelled_examples import cut_middle, encode_labelled
from regard.tasks.trained_classifier import open_classifier
from regard.tasks.word_importance import explain_ids
from regard.trace.file import load
from regard.training import checkpoint
from regard.training.fit import fit

GOOD, BAD, PLAIN = ("good", "fine", "great"), ("bad", "poor", "awful"), ("film", "story", "actor", "scene", "end")
SIZES = {
    "validation_size": 9, "vocab_size": 290, "batch_tokens": 160, "max_length": 40, "layers": 1, "heads": 3,
    "width": 24, "hidden": 20, "dropout": 0.1, "warmup_steps": 2, "lr_schedule": "constant", "lr": 0.01, "steps": 6,
    "eval_every": 3, "save_every": 3, "log_every": 1, "word_dropout": 0.1, "label_smoothing": 0.05,
}  # fmt: skip


def make_rows(count=120):
    random.seed(4)
    rows = []
    for _ in range(count):
        kind = random.choice(["pos", "neg", "so-so"])
        mood = {"pos": random.choice(GOOD), "neg": random.choice(BAD), "so-so": "plain"}[kind]
        words = ["the", random.choice(PLAIN), "was", *["really"] * random.randrange(4), mood, random.choice(PLAIN)]
        rows.append((" ".join(words), kind))
    return rows


def write_rows(path, rows):
    path.write_text("label\tsentence\n" + "".join(f"{label}\t{text}\n" for text, label in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("films") / "films.tsv", make_rows())


@pytest.fixture(scope="module")
def run(films, tmp_path_factory):
    folder = tmp_path_factory.mktemp("classify") / "run"
    said = []
    assert fit(Classify(), settings(films), folder, tell=said.append).code == 0
    return folder, [event.facts["text"] for event in said if event.kind == "notice"]


def settings(films, **more):
    return ClassifySettings(data=str(films), **SIZES | more)


def weights(folder, step):
    return checkpoint.read(folder / "checkpoints" / checkpoint.name_of(step)).tensors


def test_a_run_that_was_resumed_ends_in_the_same_bits(run, films, tmp_path):
    fit(Classify(), settings(films, steps=3), tmp_path / "run")
    fit(Classify(), settings(films), tmp_path / "run", resume=True)
    assert_close(weights(tmp_path / "run", 6), weights(run[0], 6), rtol=0, atol=0)


def test_it_learns_a_small_set_in_seconds(films, tmp_path):
    for pooling in ("attention", "mean"):
        more = {"steps": 60, "eval_every": 60, "save_every": 60, "dropout": 0.0, "word_dropout": 0.0}
        found = fit(Classify(), settings(films, pooling=pooling, **more), tmp_path / pooling)
        assert found.scores["accuracy"] == 1.0
        assert store.describe(tmp_path / pooling / "model")["config"]["pooling"] == pooling


def test_a_recurrent_model_learns_resumes_to_the_bit_and_says_which_words_mattered(films, tmp_path):
    more = {
        "model": "recurrent",
        "cell": "gru",
        "eval_every": 30,
        "save_every": 30,
        "dropout": 0.0,
        "word_dropout": 0.0,
    }
    found = fit(Classify(), settings(films, steps=60, **more), tmp_path / "run")
    assert found.scores["accuracy"] == 1.0
    fit(Classify(), settings(films, steps=30, **more), tmp_path / "again")
    fit(Classify(), settings(films, steps=60, **more), tmp_path / "again", resume=True)
    assert_close(weights(tmp_path / "again", 60), weights(tmp_path / "run", 60), rtol=0, atol=0)
    assert store.describe(tmp_path / "run" / "model")["kind"] == "recurrent_classifier"
    opened = open_classifier(tmp_path / "run")
    said = explain_ids(opened, opened.tokens.tokenizer.encode("the film was really awful").ids)
    assert said.words[int(said.leave_one_out.argmax())] == "awful"
    assert evaluate(str(tmp_path / "run"))["scores"]["accuracy"] == 1.0


def test_what_a_recurrent_model_cannot_be_is_refused(films, tmp_path):
    with pytest.raises(ConfigError, match="model is 'recurrent', but filler is to be fine-tuned"):
        PreparedClassification(settings(films, model="recurrent", pretrained="filler"), tmp_path)
    with pytest.raises(ConfigError, match="a recurrent model pools by attention, but pooling is 'max'"):
        PreparedClassification(settings(films, model="recurrent", pooling="max"), tmp_path)


def test_parts_of_a_batch_add_up_with_their_gradients(films, tmp_path):
    prepared = PreparedClassification(settings(films, class_weights="balanced"), tmp_path)
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
    assert nothing.labels.tolist() == [IGNORED]
    assert prepared.loss(model, nothing).sum == 0


def test_the_loss_is_that_of_a_plain_loop(films, tmp_path):
    prepared = PreparedClassification(settings(films, class_weights="balanced"), tmp_path)
    model, numbers = prepared.model.double().eval(), prepared.batches(0)[0]
    labels = prepared.train.fields["label"]
    counts = [int((labels == number).sum()) for number in range(3)]
    total, plain = 0.0, 0.0
    for at in numbers.tolist():
        said = model(torch.tensor([prepared.train[at]["text"]]))[0].log_softmax(-1).detach()
        right = int(labels[at])
        each = [len(labels) / (3 * count) for count in counts]
        smooth = sum(each[number] * float(said[number]) for number in range(3)) / 3
        total -= 0.95 * each[right] * float(said[right]) + 0.05 * smooth
        plain -= float(said[right])
    found = prepared.loss(model, prepared.collate(numbers))
    assert float(found.sum) == pytest.approx(total, rel=1e-9)
    assert float(found.nll) == pytest.approx(plain, rel=1e-9)
    assert found.count == len(numbers)


def test_words_are_hidden_in_training_alone_and_no_special_one(films, tmp_path):
    prepared = PreparedClassification(settings(films, word_dropout=0.5), tmp_path)
    batch = prepared.collate(prepared.batches(0)[0])
    hidden = prepared.hide_tokens(batch.ids)
    changed = hidden != batch.ids
    assert 0.3 < changed[batch.ids > 4].double().mean() < 0.7
    assert not changed[batch.ids <= 4].any()
    assert set(hidden[changed].tolist()) == {4}
    model = prepared.model.double().eval()
    assert_close(prepared.loss(model, batch).sum, prepared.loss(model, batch).sum, rtol=0, atol=0)


def test_the_scores_are_those_of_plain_counting(run, films):
    """Also those of scikit-learn, where it is installed."""
    folder, _ = run
    found = evaluate(str(folder), data=str(films))
    opened = open_classifier(folder)
    rows = make_rows()
    said = [opened.classes[int(row.argmax())] for row in opened.classify([text for text, _ in rows])]
    truth = [label for _, label in rows]
    classes = sorted(set(truth))
    assert opened.classes == classes == list(found["classes"])
    wanted = [[sum(a == r and b == c for a, b in zip(truth, said)) for c in classes] for r in classes]
    assert found["confusion"] == wanted
    assert found["scores"]["accuracy"] == sum(map(str.__eq__, truth, said)) / len(rows)
    f1 = []
    for at, name in enumerate(classes):
        right, true, took = wanted[at][at], sum(wanted[at]), sum(row[at] for row in wanted)
        precision, recall = right / took if took else 0.0, right / true
        f1.append(2 * precision * recall / (precision + recall) if right else 0.0)
        assert found["classes"][name]["precision"] == pytest.approx(precision, abs=1e-4)
        assert found["classes"][name]["recall"] == pytest.approx(recall, abs=1e-4)
        assert found["classes"][name]["texts"] == true
    assert found["scores"]["macro_f1"] == pytest.approx(sum(f1) / 3)
    try:
        from sklearn.metrics import confusion_matrix, f1_score
    except ImportError:
        return
    assert confusion_matrix(truth, said).tolist() == wanted
    assert f1_score(truth, said, average="macro") == pytest.approx(found["scores"]["macro_f1"])


def test_what_was_exported_is_scored_as_it_was_in_training(run):
    folder, _ = run
    rows = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    best = max(row["validation"]["accuracy"] for row in rows if "validation" in row)
    found = evaluate(str(folder))
    assert found["scores"]["accuracy"] == pytest.approx(best)
    assert found["texts"] == sum(map(sum, found["confusion"]))
    assert "precision" in task_of(str(folder)).report(found)


def test_examples_are_shown_with_the_map_of_the_pooling(run):
    folder, _ = run
    last = sorted((folder / "shown").iterdir())[-1]
    rows = json.loads((last / "examples.json").read_text())
    assert len(rows) == 4
    for row in rows:
        assert row["written"][0] in ("neg", "pos", "so-so")
        trace = load(last / row["trace"])
        assert [layer.name for layer in trace.layers] == ["blocks.0.attention", "pooling"]
        assert list(trace.layers[1].keys[0].shown) == row["source"]


def test_a_text_that_is_too_long_keeps_its_beginning_and_its_end(films, tmp_path):
    long = tmp_path / "long.tsv"
    write_rows(long, [(" ".join(f"w{at}" for at in range(50)), "pos"), ("short", "neg"), ("other", "neg")])
    tokens = EncoderTokenizer.wrap(load_model("filler").tokenizer)
    made = encode_labelled(LabelledTexts([long]), tokens, ["neg", "pos"], max_length=22)[0]
    whole = tokens.encode_plain([" ".join(f"w{at}" for at in range(50))])[0].ids
    assert made.cut == 1
    assert made.examples[0]["text"] == [1, *whole[:5], *whole[-(22 - 5 - 1 - len(tokens.after)) :], *tokens.after]
    assert len(made.examples[0]["text"]) == 22
    assert cut_middle(list(range(9)), 9) == list(range(9))
    said = PreparedClassification(settings(films, max_length=8), tmp_path).notices
    assert any("texts are longer than 8 tokens" in note for note in said)


def test_a_class_of_one_text_and_common_texts_are_told_and_nothing_fails(films, tmp_path):
    rows = make_rows(40)
    data = write_rows(tmp_path / "a.tsv", [*rows, ("odd one", "rare")])
    held = write_rows(tmp_path / "b.tsv", [(f"{rows[0][0]}!", rows[0][1]), ("unseen words", "pos")])
    said = []
    fit(Classify(), settings(data, validation=str(held), steps=1), tmp_path / "run", tell=said.append)
    notices = [event.facts["text"] for event in said if event.kind == "notice"]
    assert any("line 42: class 'rare' has this one text alone" in note for note in notices)
    assert any("1 text of the validation stands in the training texts" in note for note in notices)


def test_what_cannot_be_learned_or_judged_is_told_in_one_sentence(run, films, tmp_path):
    alone = write_rows(tmp_path / "one.tsv", [("good", "pos"), ("fine", "pos")])
    with pytest.raises(DataError, match=r"one\.tsv, line 2: 'pos' is the only class"):
        fit(Classify(), settings(alone), tmp_path / "run")
    assert not (tmp_path / "run" / "manifest.json").exists()
    new = write_rows(tmp_path / "new.tsv", [("good", "pos"), ("fine", "happy")])
    with pytest.raises(DataError, match=r"new\.tsv, line 3: the label 'happy' is new; the classes are 'neg', 'pos'"):
        evaluate(str(run[0]), data=str(new))
    with pytest.raises(DataError, match=r"none\.tsv holds no labelled text"):
        evaluate(str(run[0]), data=str(write_rows(tmp_path / "none.tsv", [])))
    with pytest.raises(DataError, match=r"new\.tsv, line 3: the label 'happy' is new"):
        PreparedClassification(settings(films, validation=str(new)), tmp_path / "b")
    with pytest.raises(ConfigError, match="held out no test set"):
        evaluate(str(run[0]), part="test")
    with pytest.raises(ConfigError, match="no texts were named"):
        PreparedClassification(ClassifySettings(**SIZES), tmp_path / "c")


def test_texts_that_are_gone_can_be_replaced_by_others(run, films, tmp_path):
    model = run[0] / "model"
    config = store.config_of(model, store.describe(model), store.read(model).state_dict())
    told = store.describe(model)
    facts = {"task": "classify", "settings": told["settings"] | {"data": "nowhere.tsv"}, "classes": told["classes"]}
    store.write(tmp_path / "m", store.read(model), config, facts, {TOKENIZER: store.read_file(model, TOKENIZER)})
    with pytest.raises(DataError, match=r"trained on are not here \(nowhere\.tsv\); name some with --data"):
        evaluate(str(tmp_path / "m"))
    assert evaluate(str(tmp_path / "m"), data=str(films))["texts"] == 120


def test_an_embedded_encoder_is_fine_tuned_with_its_own_tokenizer(films, tmp_path):
    more = {"pretrained": "filler", "steps": 2, "max_length": 24, "lr": 1e-4}
    fit(Classify(), settings(films, **more), tmp_path / "run")
    told = store.describe(tmp_path / "run/model")
    assert (told["config"]["pooling"], told["config"]["width"], told["config"]["labels"]) == ("mean", 160, 3)
    ids = [tokenizer.encode("A good film.").ids for tokenizer in
           (read_tokenizer(tmp_path / "run/model"), load_model("filler").tokenizer)]  # fmt: skip
    assert ids[0] == ids[1]


def test_weights_of_classes_make_them_count_the_same():
    labels = np.array([0] * 5 + [1] * 2 + [2])
    each = weigh_classes(labels, 3, "balanced")
    sums = [float(each[number]) * int((labels == number).sum()) for number in range(3)]
    assert sums == pytest.approx([8 / 3] * 3)
    assert weigh_classes(labels, 3, "none") is None
    assert math.isfinite(float(F.cross_entropy(torch.zeros(1, 3, dtype=torch.float64), torch.tensor([2]), each)))
