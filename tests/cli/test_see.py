"""`regard see`: in the terminal, as a figure, as a trace, as JSON."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from regard.cli.main import app
from regard.models.open.open_model import open_model
from regard.trace.file import load
from regard.trace.watch import watch
from tests.cli.run import run, saved

TEXT = "the cat sees A B C . the cat sees A B C"
BERT = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 7}
BART = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2}
BART |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 5, "decoder_ffn_dim": 5, "max_position_embeddings": 40}
BART |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": 2}


def see(*words):
    done = CliRunner().invoke(app, ["see", *words])
    if done.exception is not None:
        raise done.exception
    return done.stdout


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    return saved(tmp_path_factory.mktemp("bert"), BertModel, BertConfig, **BERT)


@pytest.fixture(scope="module")
def weights():
    """The weights of the embedded model on TEXT, watched without the command."""
    model, tokenizer = open_model("induction")
    with torch.no_grad(), watch(model) as trace:
        model(torch.tensor([tokenizer.encode(TEXT)]))
    return [layer.weights.dense()[0] for layer in trace]


def test_without_a_layer_it_says_what_there_is_and_what_to_type_next():
    shown = see(TEXT, "--model", "induction")
    assert "2 layers, 8 heads; 2 verified" in shown
    assert "blocks.1.attention  self     13 × 13" in shown
    assert shown.splitlines()[-1].startswith("Look closer: --layer 0 --head 3.")


def test_one_head_shows_its_tokens_and_weights(weights):
    shown = see(TEXT, "-m", "induction", "--layer", "blocks.1", "--head", "1").splitlines()
    assert shown[0] == "blocks.1.attention, head 1"
    assert shown[2].split() == TEXT.split()
    last = shown[2 + 13].split()
    assert last[0] == "C"
    assert [cell for cell in last[1:] if cell != "0"] == [
        f"█{max(weights[1][1, -1].tolist()):.2f}".replace("1.00", "1.0")
    ]


def test_json_holds_the_weights_themselves(weights):
    found = json.loads(see(TEXT, "-m", "induction", "--layer", "1", "--head", "2", "--json"))
    (layer,) = found["layers"]
    rows = np.array([[0.0 if value is None else value for value in row] for row in layer["rows"]])
    np.testing.assert_allclose(rows, weights[1][2], rtol=1e-6)
    hidden = [[value is None for value in row] for row in layer["rows"]]
    assert hidden == (~torch.ones(13, 13).tril().bool()).tolist()
    assert (layer["kind"], layer["head"], layer["keys"][0]) == ("self", 2, "the")


def test_json_without_a_head_measures_every_head(weights):
    found = json.loads(see(TEXT, "-m", "induction", "--json"))
    assert [[head["head"] for head in layer["heads"]] for layer in found["layers"]] == [[0, 1, 2, 3]] * 2
    entropy = torch.special.entr(weights[0][3]).sum(-1).mean().item()
    assert found["layers"][0]["heads"][3]["entropy"] == pytest.approx(entropy, rel=1e-5)


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_a_figure_is_written_and_named(tmp_path, ending):
    said = see("A B A B", "-m", "induction", "--layer", "0", "--head", "3", "--to", str(tmp_path / f"a.{ending}"))
    assert said == f"{tmp_path / f'a.{ending}'} is written.\n"
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{ending}"]
    if ending == "svg":
        texts = ["".join(node.itertext()) for node in ET.parse(tmp_path / "a.svg").iter() if node.tag.endswith("text")]
        assert {"blocks.0.attention, head 3", "A", "B"} <= set(texts)


def test_a_trace_is_written_and_can_be_loaded(tmp_path, weights):
    said = see(TEXT, "-m", "induction", "--to", str(tmp_path / "a.trace"))
    assert said == f"{tmp_path / 'a.trace'} is written. Look at it: regard summary {tmp_path / 'a.trace'}\n"
    trace = load(tmp_path / "a.trace")
    torch.testing.assert_close(trace[1].weights.dense()[0], weights[1])
    assert trace[1].queries[0].shown[1] == "cat"


def test_a_folder_of_transformers_is_read_and_its_words_merged(bert):
    pieces = see("the unseen cats", "-m", str(bert), "--layer", "1", "--head", "0").splitlines()
    words = see("the unseen cats", "-m", str(bert), "--layer", "1", "--head", "0", "--words").splitlines()
    assert pieces[2].split() == ["[CLS]", "the", "un", "seen", "cat", "s", "[SEP]"]
    assert words[2].split() == ["[CLS]", "the", "unseen", "cats", "[SEP]"]
    assert "word pieces merged" in words[1]


def test_an_encoder_and_decoder_writes_its_answer_and_shows_three_stacks(tmp_path):
    from transformers import BartConfig, BartForConditionalGeneration

    folder = saved(tmp_path, BartForConditionalGeneration, BartConfig, **BART)
    found = json.loads(see("the cat sat", "-m", str(folder), "--json"))
    kinds = [(layer["kind"], len(layer["keys"])) for layer in found["layers"]]
    assert sorted(kinds)[:1] == [("cross", 5)]
    assert ("self", 5) in kinds
    assert len(kinds) == 3


def test_a_page_opens_where_it_was_asked_to_look(monkeypatch, tmp_path):
    for place in ("regard.views.explorer.page.read_bundle", "regard.views.explorer.bundle.read_bundle"):
        monkeypatch.setattr(place, lambda: "export default 1;")
    to = tmp_path / "a.HTML"
    assert (
        see("A B C", "-m", "induction", "--layer", "1", "--head", "2", "--to", str(to))
        == f"{to} is written. Open it in a browser.\n"
    )
    page = to.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert '"first":"#/layer=1\\u0026head=2"' in page
    assert '"name":"A B C"' in page


REFUSED = [
    (
        ["A B", "-m", "gpt2"],
        "'gpt2' is neither an embedded model (`regard models` lists them all) nor a folder",
    ),
    (
        ["A B", "-m", "induction", "--to", "a.gif"],
        "'a.gif' ends in none of .html, .svg, .png, .pdf, .trace; give",
    ),
    (["A B", "-m", "induction", "--to", "none/a.html"], "the folder 'none' for 'a.html' does not exist; make it first"),
    (["A B", "-m", "induction", "--to", "none/a.svg"], "the folder 'none' for 'a.svg' does not exist; make it first"),
    (["A B", "-m", "induction", "--layer", "7"], "7"),
    (["A B", "-m", "induction", "--layer", "head"], "no layer is called 'head'; there are: blocks.0.attention"),
    (["A B", "-m", "induction", "--layer", "0", "--head", "4"], "has 4 heads, but head 4 was asked for"),
    (["A B", "-m", "induction", "--head", "0"], "head 0 was asked for, but there are 2 layers; say which"),
    (["hello", "-m", "induction"], "'hello' is not among the"),
    (["", "-m", "induction"], "the text is empty, so there is nothing to look at"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED, ids=[said[:24] for _, said in REFUSED])
def test_bad_wishes_are_refused_in_one_sentence(monkeypatch, capsys, words, said):
    code, printed, beside = run(monkeypatch, capsys, "see", *words)
    assert (code, printed) == (2, "")
    assert beside.startswith("regard: ")
    assert said in beside
    assert beside.count("\n") == 1


def test_a_model_without_a_tokenizer_says_so(monkeypatch, capsys, tmp_path):
    from transformers import BertConfig, BertModel, ViTConfig, ViTModel

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 5}
    BertModel(BertConfig(vocab_size=11, **sizes)).save_pretrained(tmp_path / "mute")
    ViTModel(ViTConfig(**sizes)).save_pretrained(tmp_path / "picture")
    _, _, beside = run(monkeypatch, capsys, "see", "a cat", "-m", str(tmp_path / "mute"))
    assert "has no tokenizer" in beside
    _, _, beside = run(monkeypatch, capsys, "see", "a cat", "-m", str(tmp_path / "picture"))
    assert "picture is a vit, which reads a picture, but a text came" in beside


@torch.no_grad()
def test_a_t5_of_ours_is_seen_with_the_answer_that_it_writes(tmp_path, monkeypatch, capsys):
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    sizes = {"d_model": 8, "d_kv": 3, "d_ff": 5, "num_layers": 1, "num_heads": 2, "eos_token_id": 2}
    folder = str(saved(tmp_path, T5ForConditionalGeneration, T5Config, **sizes, decoder_start_token_id=0))
    layers = json.loads(see("the cats", "-m", folder, "--json"))["layers"]
    assert [one["layer"] for one in layers] == [
        "encoder.blocks.0.attention", "decoder.blocks.0.self_attention", "decoder.blocks.0.cross_attention",
    ]  # fmt: skip
    shown = see("the cats", "-m", folder, "--layer", "decoder.blocks.0.cross_attention", "--head", "1")
    assert "[CLS]" in shown
    assert "cat" in shown
    code, _, said = run(monkeypatch, capsys, "census", "the cats", "-m", folder)
    assert (code, f'see both with: regard see -m {folder} "…"' in " ".join(said.split())) == (2, True)
