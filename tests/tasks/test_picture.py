"""Classification of pictures: learned by the engine as other tasks are, resumed to the bit, judged as loops judge."""

import io
import json

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from torch.testing import assert_close

from regard.data.drawn_digits import draw_digit
from regard.data.picture_sets import find_pictures
from regard.errors import ConfigError, DataError, ModelError
from regard.models import store
from regard.models.glimpse import crop_glimpses
from regard.tasks import picture as task
from regard.tasks.evaluate import evaluate, task_of
from regard.tasks.picture import IGNORED, PictureSettings, PictureTask, PreparedPictures, find_parts
from regard.tasks.picture_classifier import open_picture_classifier
from regard.trace.file import load
from regard.training import checkpoint
from regard.training.fit import fit
from tests.cli.run import run as run_command
from tests.models.convert.common import shaken
from tests.tasks.tiny_pictures import NAMES, draw_pictures, write_archive, write_class_folders

SIZES = {
    "width": 24, "heads": 3, "layers": 1, "patch_size": 3, "pooling": "mean", "positions": "rotary", "steps": 6,
    "eval_every": 3, "save_every": 3, "log_every": 1, "batch_size": 32, "warmup_steps": 2, "lr": 1e-2,
    "validation_size": 40, "lr_schedule": "constant",
}  # fmt: skip
CHANGED = {"shift": 1.0, "rotate": 5.0, "flip": True, "dropout": 0.1, "label_smoothing": 0.05}
SWIN = {"model": "swin", "width": 12, "patch_size": 2, "window": 3, "depths": "2,1", "stage_heads": "2,3"}

GLIMPSE = {"model": "glimpse", "width": 64, "glimpses": 3, "glimpse_size": 6, "glimpse_scales": 2}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_archive(tmp_path_factory.mktemp("pictures") / "bars.npz", count=240)


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("picture") / "run"
    assert fit(PictureTask(), settings(data, steps=150, eval_every=150, save_every=150), folder).code == 0
    return folder


def settings(data, **more):
    return PictureSettings(data=str(data), **SIZES | more)


def weights(folder, step):
    return checkpoint.read(folder / "checkpoints" / checkpoint.name_of(step)).tensors


def test_it_learns_a_small_set_in_seconds_and_evaluates_what_it_exported(run, data):
    result = evaluate(str(run))
    assert result["scores"]["accuracy"] >= 0.9
    assert result["pictures"] == 40
    test = evaluate(str(run), part="test")
    assert test["pictures"] == 31 == sum(map(sum, test["confusion"]))
    opened = open_picture_classifier(run)
    images, labels = draw_pictures(count=31, seed=1)
    right = [
        int(opened.classify([png(image)])[0].argmax()) == label for image, label in zip(images, labels, strict=True)
    ]
    assert sum(right) / 31 == pytest.approx(test["scores"]["accuracy"])
    assert "31 pictures" in task_of(str(run)).report(test)


def png(image):
    data = io.BytesIO()
    Image.fromarray(image).save(data, "PNG")
    return data.getvalue()


@pytest.mark.parametrize("more", [{}, SWIN, GLIMPSE], ids=["vit", "swin", "glimpse"])
def test_a_run_that_was_resumed_ends_in_the_same_bits(more, data, tmp_path):
    more = CHANGED | more
    fit(PictureTask(), settings(data, **more), tmp_path / "whole")
    fit(PictureTask(), settings(data, steps=3, **more), tmp_path / "parts")
    fit(PictureTask(), settings(data, **more), tmp_path / "parts", resume=True)
    assert_close(weights(tmp_path / "parts", 6), weights(tmp_path / "whole", 6), rtol=0, atol=0)


def test_swin_learns_it_too(data, tmp_path):
    found = fit(PictureTask(), settings(data, **SWIN, steps=90, eval_every=90, save_every=90), tmp_path / "run")
    assert found.scores["accuracy"] >= 0.8  # of three classes
    assert store.describe(tmp_path / "run" / "model")["config"]["depths"] == [2, 1]
    assert open_picture_classifier(tmp_path / "run").model.config.depths == (2, 1)


def test_glimpses_learn_it_and_a_trace_says_where_they_looked(data, tmp_path, monkeypatch, capsys):
    more = {"lr": 3e-3, "steps": 150, "eval_every": 150, "save_every": 150}
    found = fit(PictureTask(), settings(data, **GLIMPSE, **more), tmp_path / "run")
    assert found.scores["accuracy"] >= 0.8  # of three classes
    opened = open_picture_classifier(tmp_path / "run")
    picture = opened.read(png(draw_pictures(count=1)[0][0]))
    path = opened.model(picture, paths=True)
    assert path.locations.shape == (1, 3, 2)
    assert_close(opened.model(picture), path.logits, rtol=0, atol=0)
    rows = json.loads((max((tmp_path / "run" / "shown").iterdir()) / "examples.json").read_text())
    assert [sorted(one) for one in rows] == [["source", "written"]] * 4
    Image.fromarray(draw_pictures(count=1)[0][0]).save(tmp_path / "a.png")
    words = [str(tmp_path / "a.png"), "--model", str(tmp_path / "run"), "--to", str(tmp_path / "a.trace")]
    assert run_command(monkeypatch, capsys, "classify-image", *words)[0] == 0
    weights = load(tmp_path / "a.trace").layers[0].weights.dense()[0, 0]
    assert_close(weights.sum(1), torch.ones(3))
    seen = crop_glimpses(torch.eye(144).view(144, 1, 12, 12), path.locations[0, 1].expand(144, 2), 6, 2)
    assert_close(weights[1, :-1], seen.flatten(1).mean(1))  # what each pixel alone gives to the mean of a glimpse


def test_examples_of_a_run_carry_the_grid_of_their_patches(run):
    folder = max((run / "shown").iterdir())
    rows = json.loads((folder / "examples.json").read_text())
    assert [one["written"][0] in "012" for one in rows] == [True] * 4
    trace = load(folder / "0.trace")
    assert trace.layers[0].queries[0].grid == (4, 4)
    assert trace.layers[0].queries[0].shown[:2] == ("0,0", "0,1")


def test_batches_are_every_picture_once_and_a_function_of_seed_and_epoch(data, tmp_path):
    prepared = PreparedPictures(settings(data, **CHANGED), tmp_path)
    n = prepared.examples
    assert n == 240 - 40
    for epoch in (0, 3):
        numbers = np.concatenate(prepared.batches(epoch))
        assert sorted(numbers.tolist()) == list(range(epoch * n, epoch * n + n))
    assert not np.array_equal(prepared.batches(0)[0], prepared.batches(1)[0] - n)
    batch, again = (prepared.collate(prepared.batches(2)[1]) for _ in range(2))
    assert_close(batch.pictures, again.pictures, rtol=0, atol=0)
    assert not torch.equal(prepared.collate(np.array([5])).pictures, prepared.collate(np.array([5 + n])).pictures)
    parts = prepared.parts(prepared.batches(2)[1], 3)
    assert_close(torch.cat([prepared.collate(part).pictures for part in parts]), batch.pictures, rtol=0, atol=0)
    assert prepared.collate(np.array([], dtype=np.int64)).labels.tolist() == [IGNORED]


def test_the_loss_is_that_of_a_plain_loop(data, tmp_path):
    prepared = PreparedPictures(settings(data, label_smoothing=0.3), tmp_path)
    model, batch = prepared.model.double().eval(), prepared.collate(np.arange(7))
    batch = batch._replace(pictures=batch.pictures.double())
    total = plain = 0.0
    for picture, label in zip(batch.pictures, batch.labels.tolist()):
        said = model(picture[None])[0].log_softmax(-1)
        total -= 0.7 * float(said[label].detach()) + 0.3 * float(said.mean().detach())
        plain -= float(said[label].detach())
    loss = prepared.loss(model, batch)
    assert (float(loss.sum.detach()), float(loss.nll)) == (pytest.approx(total), pytest.approx(plain))
    assert loss.count == 7 == prepared.weight(np.arange(7))
    assert prepared.count_tokens(np.arange(7)) == 7 * 16


def test_pictures_that_do_not_fit_the_memory_are_read_again_and_are_the_same(tmp_path, monkeypatch):
    folder = write_class_folders(tmp_path / "bars", count=40)
    prepared = PreparedPictures(settings(folder, **CHANGED, validation_size=5), tmp_path)
    assert prepared.classes == list(NAMES)
    monkeypatch.setattr(task, "IN_MEMORY", 0)
    lazily = PreparedPictures(settings(folder, **CHANGED, validation_size=5), tmp_path)
    assert lazily.scaling == prepared.scaling
    for numbers in prepared.batches(1):
        one, other = prepared.collate(numbers), lazily.collate(numbers)
        assert_close(one.pictures, other.pictures, rtol=0, atol=0)
        assert torch.equal(one.labels, other.labels)
    for file in folder.rglob("*.png"):
        file.unlink()
    prepared.collate(np.array([0]))
    with pytest.raises(DataError, match="cannot be read"):
        lazily.collate(np.array([0]))


def test_a_validation_part_is_taken_where_there_is_one(tmp_path):
    write_class_folders(tmp_path / "train", count=20)
    write_class_folders(tmp_path / "val", count=9, seed=3)
    parts = find_parts(settings(tmp_path))
    assert (len(parts.train), len(parts.validation)) == (20, 9)


def test_numbers_are_scaled_by_what_the_pictures_are(data, tmp_path):
    prepared = PreparedPictures(settings(data), tmp_path)
    pictures = prepared.collate(np.arange(prepared.examples)).pictures
    assert_close(pictures.mean(), torch.tensor(0.0), atol=1e-4, rtol=0)
    assert_close(pictures.std(), torch.tensor(1.0), atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({"data": ""}, ConfigError, "no pictures to learn from"),
        ({"data": "absent"}, DataError, "is not there"),
        ({"patch_size": 5}, ConfigError, "12 × 12 pixels do not split into patches of 5; set image_size .* such as 10"),
        ({"validation_size": 240}, ConfigError, "240 pictures in all"),
        (SWIN | {"depths": "2;2"}, ConfigError, "depths is '2;2', wanted whole numbers"),
    ],
)
def test_what_cannot_be_learned_is_refused(more, error, said, data, tmp_path):
    with pytest.raises(error, match=said):
        PreparedPictures(PictureSettings(**SIZES | {"data": str(data)} | more), tmp_path)


def test_one_class_alone_is_refused(tmp_path):
    np.savez(tmp_path / "one.npz", images=np.zeros((4, 6, 6), dtype=np.uint8), labels=np.zeros(4, dtype=int))
    with pytest.raises(DataError, match="has only the class '0'"):
        PreparedPictures(settings(tmp_path / "one.npz"), tmp_path)


def test_evaluation_of_other_pictures_says_what_is_wrong(run, tmp_path):
    images, _ = draw_pictures(count=5)
    np.savez(tmp_path / "more.npz", images=images, labels=np.array([0, 1, 2, 9, 1]))
    with pytest.raises(DataError, match="class '9', which the model does not know"):
        evaluate(str(run), data=str(tmp_path / "more.npz"))
    np.savez(tmp_path / "some.npz", images=images, labels=np.array([2, 1, 2, 1, 1]))
    result = evaluate(str(run), data=str(tmp_path / "some.npz"))
    assert result["pictures"] == 5
    assert [sum(row) for row in result["confusion"]] == [0, 3, 2]
    assert find_pictures(tmp_path / "some.npz")["train"].classes == ("1", "2")


def test_the_command_says_classes_and_writes_what_was_attended_to(run, tmp_path, monkeypatch, capsys):
    def say(*words):
        return run_command(monkeypatch, capsys, "classify-image", *words, "--model", str(run))

    images, _ = draw_pictures(count=2, seed=5)
    for at, image in enumerate(images):
        Image.fromarray(image).save(tmp_path / f"{at}.png")
    files = [str(tmp_path / f"{at}.png") for at in range(2)]
    code, printed, _ = say(*files)
    assert code == 0
    assert [line.split("\t")[0] for line in printed.splitlines()] == files
    code, printed, _ = say(files[0], "--json")
    told = json.loads(printed)
    assert sum(told["probabilities"].values()) == pytest.approx(1, abs=1e-4)
    assert told["class"] == max(told["probabilities"], key=told["probabilities"].get)
    trace = tmp_path / "a.trace"
    assert say(files[0], "--to", str(trace))[0] == 0
    assert load(trace).layers[0].queries[0].grid == (4, 4)
    (tmp_path / "bad.png").write_bytes(png(images[0])[:60])
    code, _, said = say(str(tmp_path / "bad.png"))
    assert code != 0
    assert "damaged or cut off" in said


def test_see_opens_the_explorer_over_the_picture_and_the_run_can_be_edited(run, tmp_path, monkeypatch, capsys):
    from regard.app.protocol.messages import EditSpec
    from regard.app.runners.monitor import RunMonitor

    served = []
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("BROWSER", "true")
    monkeypatch.setattr("regard.cli.explore.in_terminal", lambda: True)
    monkeypatch.setattr("regard.cli.explore.read_bundle", lambda: "export {}")
    monkeypatch.setattr("regard.app.serving.serve", lambda studio, at, **how: served.append(studio))
    Image.fromarray(draw_pictures(count=1)[0][0]).save(tmp_path / "a.png")
    words = ("classify-image", str(tmp_path / "a.png"), "--model", str(run), "--see")
    assert run_command(monkeypatch, capsys, *words)[0] == 0
    [studio] = served
    [card] = studio.traces.list_traces()
    kept = studio.traces.find(card.id).card
    assert (card.text, kept.picture["width"], len(kept.output["classes"])) == ("a.png", 12, 3)
    assert studio.edit(card.id, [EditSpec(kind="mute", layer=0)], RunMonitor()).kl > 0
    studio.close()
    monkeypatch.setattr("regard.cli.explore.in_terminal", lambda: False)
    code, _, said = run_command(monkeypatch, capsys, *words)
    assert code == 2
    assert "leave --see out, or write --to a file" in said


@pytest.mark.parametrize("family", ["vit", "swin"])
def test_a_published_model_says_what_its_library_says_of_the_same_pixels(family, tmp_path):
    torch.manual_seed(0)
    labels = {"id2label": {0: "cat", 1: "dog", 2: "owl"}}
    if family == "vit":
        sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 17}
        config = transformers.ViTConfig(image_size=[8, 12], patch_size=4, **sizes, **labels)
        theirs = transformers.ViTForImageClassification(config)
    else:
        sizes = {"embed_dim": 6, "depths": [1, 1], "num_heads": [2, 3], "window_size": 2}
        theirs = transformers.SwinForImageClassification(
            transformers.SwinConfig(image_size=[8, 12], patch_size=2, **sizes, **labels)
        )
    theirs = shaken(theirs)
    theirs.save_pretrained(tmp_path)
    mean, deviation = [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]
    told = {"image_mean": mean, "image_std": deviation, "do_center_crop": False}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(told))
    pixels = np.random.default_rng(0).integers(0, 256, (8, 12, 3), dtype=np.uint8)
    opened = open_picture_classifier(tmp_path)
    assert (opened.classes, opened.crop, opened.size) == (["cat", "dog", "owl"], False, (8, 12))
    values = ((pixels / 255 - mean) / deviation).transpose(2, 0, 1)[None]
    with torch.no_grad():
        shares = theirs(pixel_values=torch.tensor(values, dtype=torch.float32)).logits.softmax(-1)
    assert_close(opened.classify([png(pixels)]), shares, rtol=1e-4, atol=1e-5)


def test_a_model_of_texts_is_refused():
    with pytest.raises(ModelError, match="'filler' is a Bert, which tells no classes of pictures"):
        open_picture_classifier("filler")


def test_no_model_need_be_named_for_a_digit(tmp_path, monkeypatch, capsys):
    Image.fromarray(draw_digit(7)).save(tmp_path / "seven.png")
    words = [str(tmp_path / "seven.png"), "--to", str(tmp_path / "seven.trace"), "--top", "1"]
    code, printed, _ = run_command(monkeypatch, capsys, "classify-image", *words)
    file, _, said = printed.strip().partition("\t")
    assert (code, file, said[0]) == (0, words[0], "7")
    assert load(tmp_path / "seven.trace").layers[5].queries[0].grid == (7, 7)
