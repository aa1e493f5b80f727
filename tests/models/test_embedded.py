"""The models that ship: small, whole, as good as their manifest says, and with the heads that they are shown for."""

import hashlib
import json
import re

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.data import repeats
from regard.data.byte_level import MASK, encode_plain
from regard.data.drawn_digits import draw_digit
from regard.data.everyday import write_everyday
from regard.data.opinions import rows_of
from regard.data.paraphrases import write_paraphrases
from regard.data.picture_file import as_png
from regard.data.reading import write_reading
from regard.data.titles import write_titles
from regard.errors import ModelError
from regard.layers import listen
from regard.models import GPT, GPTConfig, embedded, store
from regard.models.tokenizer import WordTokenizer
from regard.tasks.evaluate import evaluate
from regard.tasks.induction import InductionSettings, score
from regard.tasks.picture_classifier import open_picture_classifier
from regard.tasks.text_answerer import open_answerer
from regard.tasks.text_embedder import open_embedder
from regard.tasks.trained_classifier import open_classifier
from tests.shared import MISSING_DATA, SHARED

FILLED = {
    "I want [MASK] go home.": "to",
    "It is in front [MASK] the house.": "of",
    "He went [MASK] school.": "to",
    "A [MASK] is sitting on a chair.": "man",
    "Tom [MASK] going to the station.": "is",
}


@pytest.fixture(scope="module")
def model():
    return embedded.load("induction")


def test_every_model_is_described_and_small():
    translators = ["en-zh", "en-zh-grammar", "en-zh-grammar-recurrent"]
    assert embedded.names() == [
        "digits", *translators, "filler", "glimpses", "induction", "reader", "sentence-encoder", "sentiment",
        "shapes-captioner", "summariser", "writer",
    ]  # fmt: skip
    for name in embedded.names():
        told, data = embedded.describe(name), (embedded.folder(name) / store.WEIGHTS).read_bytes()
        assert len(data) == told["weights"]["bytes"] < (8_000_000 if name == "en-zh" else 4_000_000)
        assert hashlib.sha256(data).hexdigest() == told["weights"]["sha256"]
        assert told["command"].startswith("regard train ")
        loaded = embedded.load(name)
        assert not loaded.training
        assert sum(p.numel() for p in loaded.parameters()) == told["weights"]["parameters"]


def test_the_scores_in_the_manifest_are_those_of_the_model(model):
    told, found = embedded.describe("induction")["scores"], score(model, InductionSettings().config())
    assert told.keys() == found.keys()
    assert_close(found, told, atol=1e-3, rtol=0)
    assert told["accuracy"] > 0.99


def test_the_captioner_says_what_it_sees_and_points_at_it_as_its_manifest_says():
    told, model = embedded.describe("shapes-captioner"), embedded.load("shapes-captioner")
    found = evaluate("shapes-captioner", count=60, beams=1, samples=0)["scores"]
    assert found["exact"] >= 0.95 <= told["scores"]["exact"]
    assert found["pointing"] == pytest.approx(told["scores"]["pointing"], abs=0.08)
    assert told["weights"]["bytes"] < 1_000_000
    assert model.config.attention == "soft"


def test_one_head_looks_at_the_previous_token_and_others_find_the_repeat(model):
    """By weights written out in full, where the manifest asks for single cells."""
    period = 37
    ids = torch.stack([torch.randperm(140)[:period] for _ in range(11)]).repeat(1, 2)
    with torch.no_grad(), listen() as heard:
        model(ids)
    first, second = (attended.weights.dense().double() for _, attended in heard)  # b h q k
    previous = first.diagonal(-1, -2, -1).mean((0, 2))
    induction = second.diagonal(1 - period, -2, -1).mean((0, 2))
    assert previous.max() > 0.9
    assert induction.max() > 0.9
    assert second.diagonal(-1, -2, -1).mean() < 0.1  # not because they look everywhere
    assert first.diagonal(1 - period, -2, -1).mean() < 0.1


def test_the_second_layer_cannot_find_the_repeat_without_the_head_of_the_first(model):
    told = embedded.describe("induction")["scores"]["previous"][0]
    head, ids = told.index(max(told)), repeats.batch(range(20), length=100, vocabulary=140, clean=True)
    broken = embedded.load("induction")
    width = broken.blocks[0].attention.head_width
    with torch.no_grad():
        broken.blocks[0].attention.to_out.weight[:, head * width : (head + 1) * width] = 0
        right, wrong = (
            (one(ids.ids[:, :-1]).argmax(-1) == ids.ids[:, 1:])[ids.known[:, 1:]] for one in (model, broken)
        )
    assert right.double().mean() > 0.99
    assert wrong.double().mean() < 0.2


def test_text_is_continued_as_it_began(model):
    words = embedded.tokenizer("induction")
    ids = torch.tensor([words.encode("A B C D A B C")])
    assert model(ids)[0, -1].argmax() == words.token_to_id("D")
    begun = "the cat sees two small fish, the"
    given = words.encode(begun)
    [text] = regard.greedy(model.begin(torch.tensor([given])), 1, limits=regard.Limits(longest=4, end=None, never=()))
    said = [*given, *text.ids]
    assert words.decode(said) == "the cat sees two small fish , the cat sees two small"


def test_the_tokenizer_reads_and_writes_every_word():
    words = embedded.tokenizer("induction")
    assert words.vocabulary == repeats.VOCABULARY
    every = list(range(len(words)))
    assert words.encode(words.decode(every)) == every
    assert [words.token_to_id(words.id_to_token(i)) for i in every] == every
    assert words.encode(" cat,dog;\n\tA|B. ") == words.encode("cat , dog ; A | B .")
    assert words.encode("") == []


def test_the_writer_writes_whole_sentences():
    """Greedy, after beginnings of both sorts of text that it learned from: words, spaces, and a full stop."""
    writer, tokenizer = embedded.load("writer"), embedded.tokenizer("writer")
    for begun in ("A man", "Two women", "I don't", "She"):
        ids = torch.tensor([tokenizer.encode(begun).ids])
        [text] = regard.greedy(writer.begin(ids), 1, limits=regard.Limits(longest=60))
        said = begun + tokenizer.decode(text.ids)
        assert re.fullmatch(r"[A-Z][A-Za-z',;-]*( [A-Za-z',;-]+)+[.?!]", said), said


def test_the_filler_finds_small_words_and_reads_the_tokens_that_the_writer_reads():
    filler, tokenizer = embedded.load("filler"), embedded.tokenizer("filler")
    assert tokenizer.to_str() == embedded.tokenizer("writer").to_str()
    for text, word in FILLED.items():
        ids = tokenizer.encode(text + "<eos>").ids
        found = filler(torch.tensor([ids]))[0, ids.index(MASK)].argmax()
        assert tokenizer.decode([int(found)]).strip() == word, text


@pytest.mark.parametrize("name", ["writer", "filler"])
@pytest.mark.skipif(not (SHARED / "data").exists(), reason=MISSING_DATA)
def test_models_of_text_are_as_good_as_they_say(name, tmp_path, monkeypatch):
    write_everyday(SHARED / "data", tmp_path / embedded.describe(name)["settings"]["data"])
    monkeypatch.chdir(tmp_path)
    assert_close(evaluate(name)["scores"], embedded.describe(name)["scores"], rtol=1e-3, atol=0)


@pytest.mark.skipif(not (SHARED / "data").exists(), reason=MISSING_DATA)
def test_the_classifier_is_as_good_as_it_says_on_sentences_that_it_never_saw(tmp_path):
    rows = [("label", "text"), *rows_of(SHARED / "data/sst2/test.tsv.gz")]
    (tmp_path / "test.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
    found = evaluate("sentiment", data=str(tmp_path / "test.tsv"))["scores"]
    assert_close(found, embedded.describe("sentiment")["scores"], rtol=2e-3, atol=0)
    assert found["accuracy"] > 0.78


def test_the_classifier_tells_plain_words_apart_without_any_data():
    told = open_classifier("sentiment")
    good, bad = told.classify(["a gripping, funny film", "What a waste of time!"])[:, told.classes.index("positive")]
    assert good > 0.9
    assert bad < 0.1


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "data/mnist").exists(), reason=MISSING_DATA)
@pytest.mark.parametrize("name", ["digits", "glimpses"])
def test_the_digits_are_read_as_well_as_it_says(name):
    found = evaluate(name, data=str(SHARED / "data/mnist"), part="test")["scores"]
    assert_close(found, embedded.describe(name)["scores"], rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name", ["digits", "glimpses"])
def test_digits_that_were_drawn_by_a_pen_are_read_without_any_data(name):
    drawn = [as_png(draw_digit(digit)) for digit in range(10)]
    said = open_picture_classifier(name).classify(drawn).argmax(-1)
    assert (said == torch.arange(10)).sum() >= 9


PASSAGE = (
    "The first telescopes were made in the Netherlands in 1608 and bent light with lenses. Sixty years later Isaac "
    "Newton built the first telescope that used a mirror instead."
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who built the first telescope that used a mirror?", "Isaac Newton"),
        ("When were the first telescopes made?", "1608"),
        ("In which country were the first telescopes made?", "Netherlands"),
    ],
)
def test_the_reader_finds_the_answers_to_plain_questions(question, answer):
    [one] = open_answerer("reader").answer(PASSAGE, [question])
    assert answer in one.text
    assert len(one.text) < len(answer) + 5


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "data").exists(), reason=MISSING_DATA)
def test_the_reader_is_as_good_as_it_says_on_articles_that_it_never_saw(tmp_path):
    write_reading(SHARED / "data", tmp_path)
    found = evaluate("reader", data=str(tmp_path / "test.json"))["scores"]
    assert_close(found, embedded.describe("reader")["scores"], rtol=5e-3, atol=0)
    assert found["f1"] > 55


def test_the_sentence_encoder_puts_sentences_of_one_meaning_side_by_side():
    texts = [
        *("A man is playing a guitar.", "Somebody plays music on the guitar."),
        *("A woman is cooking dinner.", "She prepares a meal in the kitchen."),
        *("Where is the station?", "How do I get to the station?"),
    ]
    vectors = torch.nn.functional.normalize(open_embedder().embed(texts).vectors, dim=-1)
    near = (vectors @ vectors.T).fill_diagonal_(-1)
    assert near.argmax(1).tolist() == [1, 0, 3, 2, 5, 4]
    assert float(near.max(1).values.min()) > 0.5


@pytest.mark.skipif(not (SHARED / "data").exists(), reason=MISSING_DATA)
def test_the_sentence_encoder_is_as_good_as_it_says(tmp_path):
    write_paraphrases(SHARED / "data", tmp_path)
    found = evaluate("sentence-encoder", data=str(tmp_path / "test.tsv"))["scores"]
    assert_close(found, embedded.describe("sentence-encoder")["scores"], rtol=5e-3, atol=0)


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "data").exists(), reason=MISSING_DATA)
def test_the_summariser_is_as_good_as_it_says_on_articles_that_it_never_saw(tmp_path):
    write_titles(SHARED / "data", tmp_path)
    found = evaluate("summariser", data=str(tmp_path / "test.jsonl"), samples=0)["scores"]
    assert_close(found, embedded.describe("summariser")["scores"], rtol=2e-2, atol=0)
    assert found["rouge1"] > 50


def test_the_reader_names_the_licence_of_wikipedia_and_what_it_cannot_do():
    *texts, began = embedded.describe("reader")["data"]
    assert texts
    assert all("CC BY-SA" in one["licence"] for one in texts)
    assert ("MiniLM" in began["name"], began["licence"]) == (True, "Apache-2.0")
    assert "it always names some span" in embedded.describe("reader")["limits"]


def test_models_of_text_name_the_licence_and_the_authors_of_their_data():
    *_, squad, began = embedded.describe("sentence-encoder")["data"]
    assert [squad, began] == embedded.describe("reader")["data"]
    for name, more in {"writer": 0, "filler": 0, "sentence-encoder": 2}.items():
        captions, tatoeba, *others = embedded.describe(name)["data"]
        assert len(others) == more
        assert "without copyright restrictions" in captions["licence"]
        assert tatoeba["licence"].startswith("CC BY 2.0 FR")
        assert len(tatoeba["attribution"]) > 800


def test_tokens_are_read_for_people(model):
    read = pytest.importorskip("regard.tokens.read").read
    words = embedded.tokenizer("induction")
    found = read(words, words.encode("the cat. A"))
    assert found.shown == ("the", "cat", ".", "A")
    assert found.text == "the cat . A"
    assert found.offsets == ((0, 3), (4, 7), (8, 9), (10, 11))


def test_words_that_are_none_are_refused_by_name():
    words = embedded.tokenizer("induction")
    with pytest.raises(
        ModelError, match=r"'zebra' is not among the 140 words of this model: A, B, .*, P, …; use those"
    ):
        words.encode("A zebra")
    with pytest.raises(ModelError, match="id 140 came, but this model knows 140 words; give 0 to 139"):
        words.decode([3, 140])
    assert [words.id_to_token(i) for i in (-1, 140, 139)] == [None, None, "|"]
    assert words.token_to_id("zebra") is None
    with pytest.raises(ModelError, match="3 words came, but only 2 differ"):
        WordTokenizer(["a", "b", "a"])
    with pytest.raises(ModelError, match=r"no embedded model '\.\./induction'; did you mean 'induction'\?"):
        embedded.load("../induction")


def test_what_was_written_is_read_again(tmp_path):
    sizes = embedded.describe("induction")["config"] | {"width": 24, "vocab_size": 7, "tied": True}
    config = GPTConfig(**sizes)
    made = config.build()
    told = store.write(tmp_path / "a/b", made, config, {"name": "x", "vocabulary": list("abcdefg")})
    assert sorted(path.name for path in (tmp_path / "a/b").iterdir()) == [store.MANIFEST, store.WEIGHTS]
    found = store.read(tmp_path / "a/b")
    assert isinstance(found, GPT)
    assert_close(found.state_dict(), made.state_dict(), rtol=0, atol=0)
    assert store.describe(tmp_path / "a/b") == told


def spoil(folder, **changes):
    told = json.loads((folder / store.MANIFEST).read_text())
    (folder / store.MANIFEST).write_text(json.dumps(told | changes))


def test_a_folder_that_is_not_whole_or_lies_is_refused_in_one_sentence(tmp_path):
    config = GPTConfig(7, 12, 3, 2, 16)
    store.write(tmp_path, config.build(), config, {"vocabulary": [1, 2]})
    whole = (tmp_path / store.WEIGHTS).read_bytes()
    sizes = store.describe(tmp_path)["config"]
    with pytest.raises(ModelError, match="has no vocabulary"):
        store.vocabulary_of(tmp_path)
    for change, sentence in [
        ({"layers": 10**9}, "speaks of 1000000000 layers"),
        ({"width": 12_000_000}, "holds other tensors than the config"),
        ({"heads": 5}, "describes no model: width 12 does not split into 5"),
        ({"colour": "red"}, "has no config of a GPT"),
        ({"hidden": 13}, "holds other tensors than the config"),
    ]:
        spoil(tmp_path, config=sizes | change)
        with pytest.raises(ModelError, match=sentence):
            store.read(tmp_path)
    spoil(tmp_path, config=[])
    with pytest.raises(ModelError, match="has no config of a GPT"):
        store.read(tmp_path)
    spoil(tmp_path, format="regard-model/9")
    with pytest.raises(ModelError, match="has format 'regard-model/9', but 'regard-model/1' is read here"):
        store.read(tmp_path)
    spoil(tmp_path, format=store.FORMAT, config=sizes)
    (tmp_path / store.WEIGHTS).write_bytes(whole[:-1])
    with pytest.raises(ModelError, match="is not the file that its manifest describes"):
        store.read(tmp_path)
    spoil(tmp_path, weights={"sha256": hashlib.sha256(whole[:-1]).hexdigest()})
    with pytest.raises(ModelError, match="is no safetensors file"):
        store.read(tmp_path)
    (tmp_path / store.MANIFEST).write_text("{")
    with pytest.raises(ModelError, match="is no JSON"):
        store.describe(tmp_path)
    with pytest.raises(ModelError, match=r"has no manifest\.json that can be read"):
        store.describe(tmp_path / "nowhere")


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x"
    store.put(path, b"old")

    def full(_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        store.put(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_spelled_like_a_special_token_is_text_as_it_was_in_training():
    tokenizer = embedded.tokenizer("writer")
    text = "a <unk> was <bos> given <eos>"
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert ids == encode_plain(tokenizer, [text])[0]
    assert not {tokenizer.token_to_id(name) for name in ("<unk>", "<bos>", "<eos>")} & set(ids)
    assert MASK in embedded.tokenizer("filler").encode("a [MASK] man").ids, "who fills gaps is shown them"
