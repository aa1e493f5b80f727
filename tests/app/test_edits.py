"""Running again under edits: what came out before and after, and the edited run beside the plain one."""

import pytest
import torch

from regard.models import embedded
from regard.tasks.text_translator import open_translator
from regard.trace.change.edit import edit
from tests.app.served import ASK, EDIT, opened, row, said, trace_of

CAT = "The cat sat on the mat."


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("kept")) as (client, _):
        yield client


@pytest.fixture(scope="module")
def names(client):
    """One plain run of each model."""
    texts = {"induction": ASK["text"], "en-zh-grammar": CAT, "en-zh-grammar-recurrent": CAT}
    return {model: trace_of(client, model=model, text=text) for model, text in texts.items()}


def effect(client, trace, *edits):
    answer = client.post(f"/api/traces/{trace}/edit", json={"edits": [EDIT | one for one in edits]})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert set(found) == {"before", "after", "beforeText", "afterText", "kl", "trace"}
    return found


def test_muting_a_layer_changes_the_next_tokens_as_the_editor_itself_does(client, names):
    found = effect(client, names["induction"], {"layer": 1})
    model, words = embedded.load("induction"), embedded.tokenizer("induction")
    ids = torch.tensor([words.encode(f"{ASK['text']} cat sees A B C")])
    with edit(model, words) as editor:
        editor.mute("blocks.1.attention")
        true = editor.run(ids)
    assert found["kl"] == pytest.approx(float(true.kl[0, -1]), rel=1e-4)
    for side, logits in (("before", true.before), ("after", true.after)):
        shares = logits[0, -1].softmax(-1)
        assert found[side][0]["share"] == pytest.approx(float(shares.max()), rel=1e-5)
        assert [one["share"] for one in found[side]] == sorted((one["share"] for one in found[side]), reverse=True)
    assert {one["name"] for one in found["before"]} == {one["name"] for one in found["after"]}
    assert found["beforeText"] == "cat sees A B C"
    assert found["afterText"] != found["beforeText"]


def test_the_edited_run_is_kept_and_can_be_compared(client, names):
    found = effect(client, names["induction"], {"kind": "block", "layer": 1, "heads": [2], "query": 7, "key": 1})
    plain, edited = (row(client, name, 1, 2, 7) for name in (names["induction"], found["trace"]))
    assert plain[1] > 0
    assert edited[1] == 0
    left = plain.clone()
    left[1] = 0
    torch.testing.assert_close(edited, left / left.sum(), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(row(client, found["trace"], 1, 1, 7), row(client, names["induction"], 1, 1, 7))
    card = next(card for card in client.get("/api/traces").json() if card["id"] == found["trace"])
    assert card["name"] == f"{ASK['text']} · block blocks.1.attention 2 7→1"


def test_uniform_attention_is_even_over_what_may_be_seen(client, names):
    found = effect(client, names["induction"], {"kind": "uniform", "layer": 0, "heads": [3]})
    torch.testing.assert_close(row(client, found["trace"], 0, 3, 4), torch.tensor([0.2] * 5 + [0.0] * 8))


def test_scaling_by_one_changes_nothing(client, names):
    found = effect(client, names["induction"], {"kind": "scale", "layer": 0, "factor": 1})
    assert found["kl"] < 1e-9
    assert found["beforeText"] == found["afterText"]


@pytest.mark.parametrize("model", ["en-zh-grammar", "en-zh-grammar-recurrent"])
def test_a_translation_is_written_anew_under_the_edit(client, names, model):
    crossing = 5 if model == "en-zh-grammar" else 0
    layers = [3, 5] if model == "en-zh-grammar" else [0]
    found = effect(client, names[model], *({"layer": layer} for layer in layers))
    translator = open_translator(model)
    paths = [layer.name for layer in translator.translate([CAT])[0].trace().layers]
    with torch.no_grad(), edit(translator.model) as editor:
        editor.mute([paths[layer] for layer in layers])
        (true,) = translator.translate([CAT], beams=1)
    assert (found["beforeText"], found["afterText"]) == ("猫坐在垫子上。", true.text)
    assert found["kl"] > 0
    assert found["before"] == found["after"] == []
    assert client.get(f"/api/traces/{found['trace']}").json()["layers"][crossing]["kind"] == "cross"


EDGES = [("en-zh-grammar", 5, 1), ("en-zh-grammar", 5, 6), ("en-zh-grammar", 0, 1), ("en-zh-grammar", 4, 6)]
EDGES += [("en-zh-grammar-recurrent", 0, 0), ("en-zh-grammar-recurrent", 0, 6)]


@pytest.mark.parametrize(("model", "layer", "query"), EDGES)
def test_an_edge_is_blocked_at_its_own_row_and_at_no_other(client, names, model, layer, query):
    key = min(query, 1)
    found = effect(client, names[model], {"kind": "block", "layer": layer, "query": query, "key": key})
    plain, edited = (row(client, name, layer, 0, query) for name in (names[model], found["trace"]))
    assert plain[key] > 0
    assert edited[key] == 0
    other = 2
    assert row(client, found["trace"], layer, 0, other)[key] > 0
    assert found["afterText"]


REFUSED = [
    ([], 422, "edits cannot be taken: list should have at least 1 item"),
    ([{"layer": 2}], 422, "an edit names layer 2, but there are 2"),
    ([{"layer": -1}], 422, "edits.0.layer is -1"),
    ([{"layer": 0, "heads": [9]}], 400, "has 4 heads, but head 9 was asked for"),
    ([{"layer": 0, "heads": []}], 400, "heads names nothing"),
    ([{"kind": "block", "layer": 0}], 400, "block needs an edge"),
    ([{"kind": "block", "layer": 0, "query": 99, "key": 0}], 400, "names query 99, but the longest call had 13"),
    ([{"kind": "scale", "layer": 0}], 422, "needs a factor"),
    ([{"kind": "mute", "layer": 0}] * 257, 422, "at most 256"),
]


@pytest.mark.parametrize(("edits", "status", "sentence"), REFUSED, ids=[sentence[:30] for _, _, sentence in REFUSED])
def test_an_edit_that_cannot_be_made_is_refused(client, names, edits, status, sentence):
    asked = {"edits": [EDIT | one for one in edits]}
    answer = client.post(f"/api/traces/{names['induction']}/edit", json=asked)
    assert answer.status_code == status
    assert sentence in said(answer)


def test_an_edited_run_is_not_edited_again(client, names):
    found = effect(client, names["induction"], {"layer": 0})
    answer = client.post(f"/api/traces/{found['trace']}/edit", json={"edits": [EDIT]})
    assert answer.status_code == 409
    assert "open the plain one" in said(answer)


def test_a_model_with_other_weights_by_now_is_not_taken_for_the_same(client, names, monkeypatch):
    other = embedded.load("induction")
    with torch.no_grad():
        other.embed.weight[0] += 1
    monkeypatch.setattr(client.studio.models.open("induction"), "model", other)
    answer = client.post(f"/api/traces/{names['induction']}/edit", json={"edits": [EDIT]})
    assert answer.status_code == 400
