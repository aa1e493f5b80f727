"""Captions: learned by the engine as other tasks are, resumed to the bit also after a kill, judged as loops judge."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from torch.testing import assert_close

from regard.data.shapes import Thing, make_scene
from regard.errors import ConfigError, DataError, ModelError
from regard.tasks.caption import Caption, CaptionSettings, PreparedCaptions
from regard.tasks.evaluate import evaluate, task_of
from regard.tasks.picture_captioner import open_captioner
from regard.tasks.pointing import point
from regard.trace.file import load
from regard.training import checkpoint
from regard.training.fit import fit
from tests.cli.run import run as run_command

SIZES = {
    "features": "8,12", "strides": "4,2", "width": 16, "embedding": 8, "hidden": 8, "examples": 90, "steps": 6,
    "validation_size": 20, "eval_every": 3, "save_every": 3, "log_every": 1, "batch_size": 16, "warmup_steps": 2,
    "lr": 1e-2, "lr_schedule": "constant", "eval_samples": 20, "max_length": 12,
}  # fmt: skip
CHANGED = {"context_dropout": 0.3, "shift": 2.0, "rotate": 5.0, "brightness": 0.1, "dropout": 0.1, "coverage_loss": 0.2}


def settings(**more):
    return CaptionSettings(**SIZES | more)


def weights(folder, step):
    return checkpoint.read(folder / "checkpoints" / checkpoint.name_of(step)).tensors


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("caption") / "run"
    found = fit(Caption(), settings(steps=60, eval_every=60, save_every=60), folder)
    assert found.code == 0
    assert found.scores["loss"] < 2.2  # of a vocabulary of 37 words, whose logarithm is 3.6
    return folder


def write_pictures(folder, count=12):
    """Pictures with two captions each, in a .jsonl."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for at in range(count):
        scene = make_scene(3, "train", at)
        Image.fromarray(scene.pixels).save(folder / f"{at}.png")
        lines.append(json.dumps({"file": f"{at}.png", "captions": [scene.caption.upper(), f"{scene.caption} again"]}))
    (folder / "few.jsonl").write_text("\n".join(lines))
    return folder / "few.jsonl"


def test_it_learns_in_seconds_and_evaluates_what_it_exported(run):
    result = evaluate(str(run), count=30, beams=1)
    scores = result["scores"]
    assert sorted(scores) == ["bleu", "exact", "pointing"]
    assert (result["pictures"], len(result["samples"])) == (30, 5)
    said = task_of(str(run)).report(result)
    assert f"BLEU-4 {scores['bleu']:.2f}" in said
    opened = open_captioner(run)
    scenes = [make_scene(0, "test", at) for at in range(30)]
    written = opened.write([scene.pixels for scene in scenes], beams=1)
    assert scores["exact"] == sum(one.text == scene.caption for one, scene in zip(written, scenes)) / 30
    assert [one.text for one in written[:5]] == [one["written"] for one in result["samples"]]
    hits = nouns = 0
    for scene in scenes:
        ids = [1, *opened.words.encode(scene.caption)]
        shares = opened.model.write(opened.scale(scene.pixels), torch.tensor([ids])).weights[0]
        for word in {thing.word for thing in scene.things}:
            at, nouns = int(shares[word].argmax()), nouns + 1
            place = (at // 6) * 8 + 4.0, (at % 6) * 8 + 4.0
            hits += any(thing.holds(*place) for thing in scene.things if thing.word == word)
    assert scores["pointing"] == pytest.approx(hits / nouns)


@pytest.mark.parametrize("more", [{}, {"attention": "hard", "cell": "gru"}], ids=["soft", "hard"])
def test_a_run_that_was_resumed_ends_in_the_same_bits(more, tmp_path):
    more = CHANGED | more
    fit(Caption(), settings(**more), tmp_path / "whole")
    fit(Caption(), settings(steps=3, **more), tmp_path / "parts")
    fit(Caption(), settings(**more), tmp_path / "parts", resume=True)
    assert_close(weights(tmp_path / "parts", 6), weights(tmp_path / "whole", 6), rtol=0, atol=0)
    if more.get("attention") == "hard":
        assert float(weights(tmp_path / "whole", 6)["model.baseline"]) != 0


def test_batches_are_a_function_of_seed_epoch_and_number(tmp_path):
    prepared = PreparedCaptions(
        settings(**CHANGED, data=str(write_pictures(tmp_path / "few")), validation_size=2), tmp_path
    )
    n = prepared.examples
    assert n == 10
    assert sorted(np.concatenate(prepared.batches(3)).tolist()) == list(range(3 * n, 4 * n))
    numbers = prepared.batches(2)[0]
    one, again = prepared.collate(numbers), prepared.collate(numbers)
    assert_close(tuple(one), tuple(again), rtol=0, atol=0)
    parts = [prepared.collate(part).pictures for part in prepared.parts(numbers, 3)]
    assert_close(torch.cat(parts), one.pictures, rtol=0, atol=0)
    assert prepared.weight(numbers) == int((one.targets != 0).sum())
    assert not prepared.collate(np.array([], dtype=np.int64)).targets.any()
    said = {tuple(prepared.ids_of(4, epoch)) for epoch in range(20)}
    assert len(said) == 2  # both of its captions
    assert prepared.vocabulary.decode(min(said, key=len)) == prepared.train.captions_of(4)[0].lower()


def test_training_goes_on_from_a_model_with_its_words_and_sizes(run, tmp_path):
    more = {"pretrained": str(run), "width": 99, "features": "5", "strides": "2", "context_dropout": 0.5}
    prepared = PreparedCaptions(settings(**more), tmp_path)
    opened = open_captioner(run)
    assert_close(prepared.model.state_dict(), opened.model.state_dict(), rtol=0, atol=0)
    assert (prepared.config.width, prepared.config.context_dropout) == (16, 0.5)
    assert prepared.vocabulary == opened.words
    with pytest.raises(ModelError, match="filler holds a bert, which captions no pictures"):
        PreparedCaptions(settings(pretrained="filler"), tmp_path / "other")


def test_the_twin_without_attention_is_trained_and_has_no_map(tmp_path):
    found = fit(Caption(), settings(attention="none"), tmp_path / "run")
    assert sorted(found.scores) == ["bleu", "exact", "loss"]
    opened = open_captioner(tmp_path / "run")
    pixels = make_scene(0, "test", 0).pixels
    with pytest.raises(ModelError, match="looks at nothing while it writes"):
        opened.trace(pixels, opened.write([pixels])[0])


def test_examples_of_a_run_carry_words_and_places(run):
    folder = max((run / "shown").iterdir())
    rows = json.loads((folder / "examples.json").read_text())
    trace = load(folder / "0.trace")
    assert trace.layers[0].queries[0].shown == (*rows[0]["written"], "<eos>")
    assert trace.layers[0].keys[0].grid == (6, 6)


def test_pointing_takes_the_middle_of_the_peak():
    things = [
        Thing("star", "red", "small", (0, 8, 8, 16), 0),
        Thing("star", "red", "small", (8, 0, 16, 8), 0),
        Thing("ring", "red", "small", (0, 0, 7, 7), 2),
    ]
    shares = torch.tensor([[0.1, 0.2, 0.6, 0.1], [1.0, 0, 0, 0], [0.2, 0.4, 0.3, 0.1]])
    assert point(shares, things, 8, 16) == (1, 2)
    assert point(shares, things[:2], 8, 16) == (1, 1)
    assert point(shares.flip(1), things, 8, 16) == (1, 2)


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({"data": "absent.jsonl"}, DataError, "absent.jsonl is not there"),
        ({"strides": "4;2"}, ConfigError, "strides is '4;2', wanted whole numbers"),
    ],
)
def test_what_cannot_be_learned_is_refused(more, error, said, tmp_path):
    with pytest.raises(error, match=said):
        PreparedCaptions(settings(**more), tmp_path)


def test_the_command_writes_captions_and_where_each_word_looked(run, tmp_path, monkeypatch, capsys):
    def say(*words):
        return run_command(monkeypatch, capsys, "caption", *words, "--model", str(run))

    for where in ("bundle", "page"):
        monkeypatch.setattr(f"regard.views.explorer.{where}.read_bundle", lambda: "export {}")
    files = [tmp_path / f"{at}.png" for at in range(2)]
    for at, file in enumerate(files):
        Image.fromarray(make_scene(1, "test", at).pixels).save(file)
    opened = open_captioner(run)
    [wanted, other] = opened.caption(files)
    assert say(str(files[0]))[:2] == (0, f"{wanted.text}\n")
    assert say(*map(str, files), "--beams", "5")[1].splitlines() == [
        f"{file}\t{one.text}" for file, one in zip(files, (wanted, other))
    ]
    told = json.loads(say(str(files[0]), "--json")[1])
    assert (told["text"], told["words"]) == (wanted.text, list(wanted.words))
    assert_close(torch.tensor(told["weights"]).sum((1, 2)), torch.ones(len(wanted.words) + 1), atol=1e-3, rtol=0)
    for ending in (".trace", ".svg", ".html"):
        assert say(str(files[0]), "--to", str(tmp_path / f"a{ending}"))[0] == 0
    trace = load(tmp_path / "a.trace")
    assert trace.layers[0].queries[0].shown[:-1] == tuple(wanted.words)
    drawn = (tmp_path / "a.svg").read_text()
    assert all(f">{word}  " in drawn for word in wanted.words)
    assert "data:image/png" in (tmp_path / "a.html").read_text()
    code, _, said = say(*map(str, files), "--to", str(tmp_path / "a.svg"))
    assert (code, "holds one picture, but 2 came" in said) == (2, True)


def test_the_explorer_runs_a_picture_and_edits_where_a_word_looked(run):
    from regard.app.protocol.messages import EditSpec, RunRequest
    from regard.app.runners.captions import open_captioner_runner
    from regard.app.runners.monitor import RunMonitor
    from regard.data.picture_file import address_of

    runner = open_captioner_runner("run", run / "model")
    pixels = make_scene(1, "test", 3).pixels
    result = runner.run(RunRequest(model="run", text="", picture=address_of(Image.fromarray(pixels))), RunMonitor())
    opened = open_captioner(run)
    wanted = opened.write([pixels])[0]
    assert result.output.text == wanted.text
    layer = result.trace.layers[0]
    assert (layer.queries[0].shown[:-1], layer.keys[0].grid) == (tuple(wanted.words), (6, 6))
    assert result.picture.width == 48
    edits = [EditSpec(kind="block", layer=0, query=2, key=int(layer.weights[0, 0, 2].argmax()))]
    edited = runner.run_again(result.inputs, ["decoder.attention"], edits, RunMonitor())
    assert float(edited.trace.layers[0].weights[0, 0, 2, edits[0].key].detach()) == 0
    assert edited.kl > 0
