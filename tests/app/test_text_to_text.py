"""A T5 runs as other translators do: with its own ids for the begin and the end, watched, and again under edits."""

import pytest
import torch
from torch import nn

from regard.models import T5Config, store
from regard.tasks.writing import WritingIds, write, writing_ids
from tests.app.served import EDIT, opened, run
from tests.cli.run import saved

WORDS = ["<pad>", "</s>", "the", "cat", "sat", "on", "mat", "."]
TEXT = "the cat sat on the mat ."


@pytest.fixture
def model(tmp_path):
    made = T5Config(vocab_size=len(WORDS), width=12, heads=3, layers=2, decoder_layers=1, hidden=20).build().eval()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    store.write(tmp_path / "small", made, made.config, {"vocabulary": WORDS, "about": "writes words"})
    return made


@torch.no_grad()
def test_what_it_writes_is_the_likeliest_text_of_its_own_ids(model):
    assert writing_ids(model) == WritingIds(0, 1, 0, (0,), None)
    ids = [2, 3, 4, 1]
    (text,) = write(model, [ids])
    fed = [0]
    for token in text.ids:
        row = model(torch.tensor([ids]), torch.tensor([fed]))[0, -1]
        row[0] = -torch.inf
        assert int(row.argmax()) == token
        fed.append(token)
    assert (
        len(text.ids) == 2 * len(ids) + 20 or int(model(torch.tensor([ids]), torch.tensor([fed]))[0, -1].argmax()) == 1
    )


def test_a_server_lists_runs_and_edits_it(model, tmp_path):
    with opened(tmp_path / "kept", tmp_path / "small") as (client, _):
        listed = {one["name"]: one for one in client.get("/api/models").json()}["small"]
        assert (listed["reads"], listed["writes"], listed["tasks"]) == ("pair", "text", ["translate"])
        done = run(client, model="small", text=TEXT)[-1]
        assert done["kind"] == "done"
        info = client.get(f"/api/traces/{done['trace']}").json()
        (written,) = write(model, [[2, 3, 4, 5, 2, 6, 7, 1]], beams=5)
        assert info["output"]["text"] == " ".join(WORDS[i] for i in written.ids)
        assert len(info["layers"]) == 4
        assert info["tokens"][0]["shown"] == [*TEXT.split(), "</s>"]
        for edit in (EDIT | {"heads": [1]}, EDIT | {"kind": "block", "layer": 3, "query": 0, "key": 2}):
            changed = client.post(f"/api/traces/{done['trace']}/edit", json={"edits": [edit]}).json()
            assert changed["kl"] > 0
            assert isinstance(changed["afterText"], str)
        assert run(client, model="small", text=" ")[-1]["code"] == "text.empty"


def test_a_folder_of_transformers_runs_as_ours(tmp_path):
    from transformers import T5Config as TheirConfig
    from transformers import T5ForConditionalGeneration

    sizes = {"d_model": 8, "d_kv": 3, "d_ff": 5, "num_layers": 1, "num_heads": 2, "eos_token_id": 2}
    folder = saved(tmp_path / "t5", T5ForConditionalGeneration, TheirConfig, **sizes, decoder_start_token_id=0)
    with opened(tmp_path / "kept", folder) as (client, _):
        listed = {one["name"]: one for one in client.get("/api/models").json()}["t5"]
        assert (listed["reads"], listed["tasks"]) == ("pair", ["translate"])
        done = run(client, model="t5", text="the cats sat")[-1]
        info = client.get(f"/api/traces/{done['trace']}").json()
        assert [one["name"] for one in info["layers"]] == [
            "encoder.blocks.0.attention", "decoder.blocks.0.self_attention", "decoder.blocks.0.cross_attention",
        ]  # fmt: skip
        assert info["tokens"][0]["shown"] == ["[CLS]", "the", "cat", "s", "sat", "[SEP]"]
