"""Folders of models: ours, and those of the transformers library that write, answer, read, classify and see."""

import base64
import io

import numpy as np
import pytest
import torch

from regard.app.runners.library import task_of
from regard.app.studio.models import MAX_OPEN, Models, example
from regard.data.picture_file import read_picture
from regard.models import GlimpseConfig, VitConfig, store
from regard.models.open.locate import locate_path
from tests.app.served import EDIT, opened, row, run, trace_of
from tests.cli.run import saved

SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 7}
BART = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2}
BART |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 5, "decoder_ffn_dim": 5, "max_position_embeddings": 40}
BART |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
TEXT = "the cats sat unseen"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    import transformers as t

    torch.manual_seed(0)
    home = tmp_path_factory.mktemp("models")
    gpt = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 30, "bos_token_id": 1, "eos_token_id": None}
    labels = {"id2label": {0: "calm", 1: "</script>", 2: "wild"}, "label2id": {"calm": 0, "</script>": 1, "wild": 2}}
    folders = [
        saved(home / "gpt", t.GPT2LMHeadModel, t.GPT2Config, **gpt),
        saved(home / "bart", t.BartForConditionalGeneration, t.BartConfig, **BART),
        saved(home / "bert", t.BertModel, t.BertConfig, **SIZES, max_position_embeddings=20),
        saved(home / "classes", t.BertForSequenceClassification, t.BertConfig, **SIZES, **labels),
    ]
    vit = {"image_size": 12, "patch_size": 4, **labels, **SIZES}
    t.ViTForImageClassification(t.ViTConfig(**vit)).save_pretrained(home / "vit")
    with opened(home / "kept", *folders, home / "vit") as (client, _):
        yield client


def test_folders_are_listed_by_their_names_with_what_they_do(client):
    listed = {model["name"]: model["tasks"][0] for model in client.get("/api/models").json()}
    assert {
        "gpt": "generate",
        "bart": "translate",
        "bert": "read",
        "classes": "read",
        "vit": "see",
    }.items() <= listed.items()
    assert not [name for name in listed if "/" in name]


def test_a_model_that_goes_on_with_a_text_tells_its_tokens_live(client):
    events = run(client, model="gpt", text=TEXT, steps=7)
    assert events[-1]["kind"] == "done", events
    assert [event["number"] for event in events if event["kind"] == "token"] == list(range(1, 8))
    info = client.get(f"/api/traces/{events[-1]['trace']}").json()
    assert info["layers"][1]["shape"] == [1, 3, 15, 15]  # eight tokens were given, seven written; all of them were read
    assert len(info["output"]["next"]) == 10
    again = run(client, model="gpt", text=TEXT, steps=7)
    assert again[-1]["text"] == events[-1]["text"]


def test_its_edits_change_what_comes_next(client):
    name = trace_of(client, model="gpt", text=TEXT, steps=4, temperature=0.9)
    plain = client.post(f"/api/traces/{name}/edit", json={"edits": [EDIT | {"kind": "scale", "factor": 1.0}]}).json()
    assert plain["kl"] < 1e-9
    assert plain["beforeText"] == plain["afterText"]
    muted = client.post(f"/api/traces/{name}/edit", json={"edits": [EDIT, EDIT | {"layer": 1}]}).json()
    assert muted["kl"] > 1e-9
    blocked = client.post(
        f"/api/traces/{name}/edit", json={"edits": [EDIT | {"kind": "block", "layer": 1, "query": 8, "key": 2}]}
    ).json()
    assert row(client, blocked["trace"], 1, 0, 8)[2] == 0


def test_an_encoder_and_decoder_answers(client):
    events = run(client, model="bart", text=TEXT)
    assert events[-1]["kind"] == "done", events
    info = client.get(f"/api/traces/{events[-1]['trace']}").json()
    assert sorted(layer["kind"] for layer in info["layers"]) == ["cross", "self", "self"]
    changed = client.post(f"/api/traces/{events[-1]['trace']}/edit", json={"edits": [EDIT]})
    assert changed.status_code == 200, changed.text
    assert changed.json()["afterText"] is not None


def test_a_classifier_gives_its_classes_before_and_after(client):
    name = trace_of(client, model="classes", text=TEXT)
    classes = client.get(f"/api/traces/{name}").json()["output"]["classes"]
    assert {one["name"] for one in classes} == {"calm", "</script>", "wild"}
    assert sum(one["share"] for one in classes) == pytest.approx(1)
    changed = client.post(f"/api/traces/{name}/edit", json={"edits": [EDIT]}).json()
    assert len(changed["before"]) == len(changed["after"]) == 3
    assert changed["kl"] > 0


def test_a_model_without_a_head_only_reads(client):
    name = trace_of(client, model="bert", text=TEXT, steps=9)
    assert client.get(f"/api/traces/{name}").json()["output"] == {"text": None, "next": None, "classes": None}
    changed = client.post(f"/api/traces/{name}/edit", json={"edits": [EDIT]}).json()
    assert (changed["kl"], changed["before"]) == (None, [])


@pytest.mark.parametrize(
    ("model", "steps", "limit", "sentence"),
    [
        ("bert", 0, 20, "the text has 42 tokens, but bert reads at most 20; shorten it"),
        ("gpt", 3, 30, "the text has 42 tokens, but gpt reads at most 30; shorten it"),
    ],
)
def test_a_text_that_is_too_long_is_refused_with_both_numbers(client, model, steps, limit, sentence):
    about = {"tokens": 42, "limit": limit, "model": model}
    told = {"kind": "failed", "text": sentence, "code": "text.long", "about": about}
    assert run(client, model=model, text="the cat " * 20, steps=steps)[-1] == told


def picture(shape=(20, 30, 3)):
    from PIL import Image

    data = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)).save(data, "PNG")
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"


def test_a_model_that_sees_shows_its_patches_over_the_picture(client):
    name = trace_of(client, model="vit", text="", picture=picture())
    info = client.get(f"/api/traces/{name}").json()
    assert info["layers"][0]["shape"] == [1, 3, 10, 10]
    assert info["tokens"][0]["grid"] == [3, 3]
    assert (info["picture"]["width"], info["picture"]["height"]) == (12, 12)
    assert info["picture"]["address"].startswith("data:image/png;base64,")
    assert len(info["output"]["classes"]) == 3
    assert client.post(f"/api/traces/{name}/edit", json={"edits": [EDIT]}).json()["kl"] > 0


@pytest.mark.parametrize("channels", [1, 3])
def test_a_model_of_ours_that_sees_runs_as_well_and_one_that_looks_by_glimpses_says_where(channels, tmp_path):
    sizes = {"image_height": 12, "image_width": 8, "channels": channels, "labels": 3}
    ours = VitConfig(**sizes, patch_size=4, width=16, heads=2, layers=1).build().eval()
    facts = {"classes": ["a", "b", "c"], "pixels": {"image_mean": [0.3] * channels, "image_std": [0.2] * channels}}
    store.write(tmp_path / "vit", ours, ours.config, facts)
    store.write(tmp_path / "ram", (ram := GlimpseConfig(**sizes).build()), ram.config, facts)
    given = picture((12, 8, 3))
    with opened(tmp_path / "kept", tmp_path / "vit", tmp_path / "ram") as (client, _):
        info = client.get(f"/api/traces/{trace_of(client, model='vit', text='', picture=given)}").json()
        name = trace_of(client, model="ram", text="", picture=given)
        looked = client.get(f"/api/traces/{name}").json()
        refused = client.post(f"/api/traces/{name}/edit", json={"edits": [EDIT]})
    assert (info["tokens"][0]["grid"], info["picture"]["width"], info["picture"]["height"]) == ([3, 2], 8, 12)
    pixels = read_picture(base64.b64decode(given.split(",")[1]), channels=channels).transpose(2, 0, 1)
    with torch.no_grad():
        shares = ours((torch.tensor(pixels)[None] / 255 - 0.3) / 0.2).softmax(-1)[0]
    said = {one["name"]: one["share"] for one in info["output"]["classes"]}
    assert [said[name] for name in "abc"] == pytest.approx(shares.tolist(), abs=1e-5)
    assert looked["layers"][0]["shape"] == [1, 1, 6, 12 * 8 + 1]
    assert (looked["picture"]["glimpses"]["size"], looked["picture"]["glimpses"]["places"][0]) == (8, [6, 4])
    assert (refused.status_code, refused.json()["code"]) == (409, "edit.glimpses")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (None, "none came; choose one"),
        ("https://evil.example/a.png", "is no data: address"),
        ("file:///etc/passwd", "is no data: address"),
        ("data:image/svg+xml;base64,AAAA", "is no data: address"),
        ("data:image/png;base64,AAAA", "the picture cannot be read"),
    ],
)
def test_a_picture_that_is_none_is_refused(client, given, sentence):
    last = run(client, model="vit", text="", picture=given)[-1]
    assert last["kind"] == "failed"
    assert sentence in last["text"]


def test_only_so_many_models_stay_open():
    models = Models()
    names = list(models.known)
    for name in names:
        models.open(name)
    assert len(models.open_ones) == MAX_OPEN
    told = []
    models.open(names[-MAX_OPEN], told.append)
    models.open(names[0], told.append)
    assert told == [f"loading {names[0]}"]


def test_two_folders_of_one_name_are_told_apart(tmp_path):
    from regard.models import embedded

    models = Models([embedded.folder("induction")])
    assert {"induction", "induction (2)"} <= set(models.known)


def test_a_model_that_cannot_be_opened_says_why(tmp_path):
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["BertModel"]}')
    with opened(tmp_path / "kept", folder) as (client, _):
        last = run(client, model="broken", text="a")[-1]
    assert last["kind"] == "failed"
    assert "has no weights" in last["text"]


@pytest.mark.parametrize(
    ("config", "task"),
    [
        ({"architectures": ["LlamaForCausalLM"], "vocab_size": 9}, "generate"),
        ({"architectures": ["MarianMTModel"], "is_encoder_decoder": True}, "translate"),
        ({"architectures": ["BertForMaskedLM"]}, "read"),
        ({"architectures": ["ViTModel"], "image_size": 224}, "see"),
        ({}, "read"),
    ],
)
def test_what_a_model_does_is_read_from_its_config(config, task):
    assert task_of(config) == task


def test_an_example_is_in_words_that_the_model_knows():
    assert example("translate", {"vocabulary": ["<pad>", *(f"s{i}" for i in range(20))]}) == "s2 s4 s6 s8 s0 s1 s2"
    assert example("translate", {}) == "The cat sat on the mat."


def test_a_folder_without_a_model_is_none(tmp_path):
    assert locate_path(tmp_path) is None
