"""A translator by itself: against plain loops, and what it refuses."""

import json
import shutil

import pytest
import torch

from regard.data.special import BEGIN, END, PAD
from regard.data.vocabulary import Vocabulary
from regard.errors import DataError, ModelError, RegardError, RunError
from regard.models.store import checksum_of
from regard.tasks.text_translator import LONGEST, open_translator
from regard.trace.file import load
from regard.training.manifest import seal
from tests.tasks.tiny import KINDS, copied, run_of

TEXTS = ["The cat sat on the mat.", "Two dogs.", "My friend bought three books in the shop yesterday."]
ODD = {
    "emoji": "The 👩‍👩‍👧 smiled 🙂.",
    "script": "</script><script>alert(1)</script>",
    "image": "<img src=x onerror=alert(1)>",
    "special": "<eos> <pad> <bos> <unk>",
    "one word": "in" * 40,
    "right to left": "שלום עולם \u202eabc",
    "marks": "a\u0301\u200b\u2028b\x1b[2J",
}


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_translation_is_the_likeliest_token_again_and_again(kind):
    opened = open_translator(run_of(kind))
    for one in opened.translate(TEXTS[:2], beams=1):
        source, wrote = torch.tensor([[*opened.source.encode(one.source), END]]), [BEGIN]
        while len(wrote) <= 2 * source.shape[1] + 20:
            with torch.no_grad():
                logits = opened.model(source, torch.tensor([wrote]))[0, -1]  # all of it anew: no cache, no batch
            logits[[PAD, BEGIN]] = -torch.inf
            if int(logits.argmax()) == END:
                break
            wrote.append(int(logits.argmax()))
        assert list(one.shown.written) == wrote[1:]
        assert one.text == opened.target.decode(wrote[1:])


@pytest.mark.parametrize("beams", [1, 3])
def test_texts_together_give_what_each_gives_alone_in_their_order(beams):
    opened = open_translator("en-zh-grammar")
    together = opened.translate([*TEXTS, TEXTS[0]], beams=beams)
    assert len({one.text for one in together}) == 3
    assert [one.source for one in together] == [*TEXTS, TEXTS[0]]
    assert [one.text for one in together[:3]] == [opened.translate([text], beams=beams)[0].text for text in TEXTS]
    assert opened.translate([]) == []


def test_a_run_and_its_model_open_as_the_same_translator():
    opened = [open_translator(where) for where in (run_of(), str(run_of()), run_of() / "model")]
    assert len({one.translate(TEXTS[1:2], beams=2)[0].text for one in opened}) == 1


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_an_alignment_is_the_mean_over_the_heads_of_the_cross_attention(kind):
    one = open_translator(run_of(kind)).translate(TEXTS[1:2], beams=2)[0]
    rows, columns, weights = one.alignment()
    assert columns == [*one.translator.source.tokens(TEXTS[1]), "<eos>"]
    assert rows == [*one.shown.written_names, "<eos>"]
    assert weights.shape == (len(rows), len(columns))
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
    cross = [layer for layer in one.trace().layers if layer.kind == "cross"]
    heads = [cross[-1].head(number).dense() for number in range(cross[-1].heads)]
    torch.testing.assert_close(weights, sum(heads) / len(heads))


def test_the_layer_that_its_manifest_names_is_the_one_that_aligns():
    opened = open_translator("en-zh-grammar")
    one = opened.translate(TEXTS[:1], beams=1)[0]
    cross = [layer.weights[0].dense().mean(0) for layer in one.trace().layers if layer.kind == "cross"]
    assert len(cross) > 1
    for number, wanted in enumerate(cross):
        opened.facts["alignment"] = {"layer": number}
        torch.testing.assert_close(one.alignment()[2], wanted)


def test_a_trace_has_all_three_attentions_with_their_tokens_and_survives_a_file(tmp_path):
    one = open_translator(run_of()).translate(TEXTS[1:2], beams=1)[0]
    one.trace().save(tmp_path / "one.trace")
    read, wrote = (*one.shown.source_names,), (*one.shown.written_names,)
    wanted = {
        ("encoder", "self"): (read, read),
        ("decoder", "self"): (("<bos>", *wrote), ("<bos>", *wrote)),
        ("decoder", "cross"): ((*wrote, "<eos>"), read),
    }
    for trace in (one.trace(), load(tmp_path / "one.trace")):
        found = {
            (layer.name.split(".")[0], layer.kind): (layer.queries[0].shown, layer.keys[0].shown)
            for layer in trace.layers
        }
        assert {key: tuple(map(tuple, names)) for key, names in found.items()} == wanted


def test_a_model_without_attention_translates_but_shows_no_alignment():
    one = open_translator(run_of("none")).translate(TEXTS[:1])[0]
    assert one.text
    for asked in (one.alignment, one.trace):
        with pytest.raises(ModelError, match=r"looks at nothing while it writes \(attention = none\)"):
            asked()


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_any_text_is_translated_as_text(text):
    opened = open_translator(run_of())
    one = opened.translate([text], beams=2)[0]
    assert not {PAD, BEGIN, END} & set(one.shown.source[:-1])
    rows, columns, weights = one.alignment()
    assert weights.shape == (len(rows), len(columns))
    assert text in repr(one) or repr(text) in repr(one)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["a cat", ""], "a text is empty; give some words"),
        (["a cat", " \t\n\u3000"], "a text is empty; give some words"),
        (["a\0cat"], r"'a\\x00cat' holds NUL, which no text has; leave it out"),
        (["caf\udce9"], "give a string of whole characters"),
        (
            ["word " * 10_000],
            r"^'word word .{,30}… has 10,000 tokens, but at most 1,000 are read at once; give one sent",
        ),
        ("a cat", "give a list of texts"),
    ],
    ids=["empty", "blank", "NUL", "half a character", "10,000 words", "no list"],
)
def test_what_cannot_be_translated_is_refused_with_advice(texts, said):
    opened = open_translator(run_of())
    opened.source = Vocabulary.train(["a cat", "word"], kind="words")
    with pytest.raises(DataError, match=said):
        opened.translate(texts)


def test_the_longest_text_is_read_and_one_token_more_is_not():
    opened = open_translator(run_of())
    opened.source = Vocabulary.train(["word"], kind="words")
    assert len(opened.read("word " * LONGEST)) == LONGEST + 1
    with pytest.raises(DataError, match="1,001 tokens"):
        opened.read("word " * (LONGEST + 1))


# Folders


@pytest.mark.parametrize("where", ["nowhere", "", "en-fr", "a" * 5000, "The cat sat on the mat."])
def test_a_name_that_is_no_translator_is_refused_and_told_what_there_is(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ModelError,
        match=r"^there is no translator .*embedded \(.*`regard models` lists them all\).*regard train translate$",
    ) as one:
        open_translator(where)
    assert len(str(one.value)) < 300


def test_a_model_that_is_no_translator_says_so():
    with pytest.raises(ModelError, match="without vocabularies, so it translates nothing"):
        open_translator("induction")


def test_a_run_that_has_not_come_to_its_end_says_how_to_go_on(tmp_path):
    run = copied(tmp_path)
    shutil.rmtree(run / "model")
    with pytest.raises(ModelError, match="not come to its end; go on with regard train … --resume"):
        open_translator(run)


def test_folders_of_a_newer_version_say_so(tmp_path):
    run = copied(tmp_path)
    rewrite(run / "model" / "manifest.json", format="regard-model/2")
    with pytest.raises(ModelError, match="'regard-model/2', but 'regard-model/1' is read here"):
        open_translator(run)
    shutil.rmtree(run / "model")
    (run / "run.json").write_bytes(seal({"format": "regard-run/9", "task": "translate", "settings": {}}))
    with pytest.raises(RunError, match="'regard-run/9', but 'regard-run/2' is read here; use the version that wrote"):
        open_translator(run)


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_vocabulary_of_another_model_is_noticed(tmp_path, side):
    run, other = copied(tmp_path), Vocabulary.train(["another one"], kind="words")
    other.save(run / "model" / f"{side}.json")
    with pytest.raises(ModelError, match=f"{side}.json is not the file that its manifest describes"):
        open_translator(run)
    manifest = run / "model" / "manifest.json"
    files = json.loads(manifest.read_text())["files"]
    rewrite(manifest, files=files | {f"{side}.json": checksum_of(other.json.encode())})
    with pytest.raises(ModelError, match=f"the {side} vocabulary has 6 tokens, but the model knows .* another model"):
        open_translator(run)


@pytest.mark.parametrize("name", ["source.json", "target.json", "model.safetensors"])
def test_a_file_that_is_gone_or_cut_is_named(tmp_path, name):
    run = copied(tmp_path)
    file = run / "model" / name
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(RegardError, match=name):
        open_translator(run)
    file.unlink()
    with pytest.raises(RegardError, match=name.replace("source.json", "without vocabularies")):
        open_translator(run)


def rewrite(path, **changed):
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
