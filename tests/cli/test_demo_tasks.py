"""`regard demo tasks`: a section for each task whose model is here, text as text, and every number one of the model."""

import re
import shlex
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import torch
from numpy.testing import assert_allclose

from regard.cli import demo_answer, demo_classify, demo_embed, demo_fill, demo_summarise, demo_translate, demo_write
from regard.cli.demo_sections import make_sections
from regard.cli.demo_tasks import TASKS, write_demo_tasks
from regard.errors import ModelError
from regard.models import embedded
from regard.tasks.answer_trace import find_answering_head
from regard.tasks.text_answerer import open_answerer
from regard.tasks.text_classification import classify_and_explain
from regard.tasks.text_embedder import open_embedder
from regard.tasks.text_filler import open_filler
from regard.tasks.text_summariser import open_summariser
from regard.tasks.text_translator import open_translator
from regard.tasks.text_writer import open_writer
from regard.tasks.trained_classifier import open_classifier
from regard.views.article.page import LARGEST, article_page, section_markup
from regard.views.explorer.bundle import BUILT
from tests.cli.run import run
from tests.cli.tiny_tasks import BAD, tiny_models

NAMES = ["translate", "classify", "answer", "summarise", "fill", "write", "embed"]
BUILDS = pytest.mark.skipif(not BUILT.exists(), reason="the explorer is not built; run make bundle")
FINE, SHORT = {"rtol": 0, "atol": 5.1e-5}, {"rtol": 0, "atol": 5.1e-3}  # four digits, two digits
HOSTILE = "</script><script>window.__pwned=1</script> <b>a</b> &amp; \"'"


@pytest.fixture(scope="module")
def sections():
    """Every section by its name: three of embedded models, four of tiny ones."""
    made, left_out = make_sections(TASKS, tiny_models())
    assert left_out == {}
    return {one.name: one for one in made}


@pytest.fixture(scope="module")
def drawn(sections):
    """The same as trees of elements: what a section writes is well-formed."""
    return {name: ElementTree.fromstring(section_markup(one, "#/x")) for name, one in sections.items()}


def part_of(tree, heading):
    """The content of a part of a section."""
    rows = next(one for one in tree.iter("div") if one.get("class") == "rows")
    return next(part for head, part in zip(rows[::2], rows[1::2], strict=True) if head.text == heading)


def text_of(element):
    return "".join(element.itertext())


def titles(element):
    """The numbers that shaded elements tell."""
    return [float(one.get("title")) for one in element.iter() if "shade" in (one.get("class") or "")]


def bars(element):
    """The names and numbers of a list of bars."""
    table = next(one for one in element.iter("table") if one.get("class") == "bars")
    return {text_of(row[0]): float(text_of(row[1])) for row in table}


class Tags(HTMLParser):
    """The tags of a page, and the text outside of scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.inside = [], "", ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        self.text += "" if self.inside in ("script", "style") else data


# The page


@BUILDS
def test_the_page_has_a_section_a_run_and_a_link_for_each_task(tmp_path):
    said = write_demo_tasks(tmp_path, tiny_models())
    written = (tmp_path / "demo-tasks.html").read_text(encoding="utf-8")
    assert [line.partition(":")[0] for line in said.splitlines()[:7]] == NAMES
    assert "left out" not in said
    assert written.count('class="trace"') == 7
    assert re.findall(r'<section id="(\w+)">', written) == [*NAMES, "explorer"]
    links = re.findall(r'href="#(/see[^"]+)"', written)
    assert len(set(links)) == 7
    assert [f"trace={number}" in link for number, link in enumerate(links)] == [True] * 7
    assert all(f'<a id="{link}"></a>' in written for link in links)
    assert not re.search(r"https?://(?!www\.w3\.org/)", written)
    assert len(written.encode()) <= LARGEST


@BUILDS
def test_a_task_without_its_model_is_left_out_by_name(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(embedded, "names", lambda: ["filler"])
    (tmp_path / "reader").mkdir()  # a folder of that name is not the embedded model
    code, said, _ = run(monkeypatch, capsys, "demo", "tasks")
    assert code == 0
    for task, model in {"translate": "en-zh", "answer": "reader", "classify": "sentiment"}.items():
        assert f"{task} is left out: this build has no embedded model {model!r}\n" in said
    assert "embed is left out: this build has no embedded sentence encoder" in said
    assert said.startswith("fill: A [MASK] is sleeping on the bed. → ")
    written = (tmp_path / "demo-tasks.html").read_text(encoding="utf-8")
    assert re.findall(r'<section id="(\w+)">', written) == ["fill", "explorer"]


def test_where_no_model_is_there_it_says_so(monkeypatch):
    monkeypatch.setattr(embedded, "names", list)
    with pytest.raises(ModelError, match="no embedded models"):
        make_sections(TASKS, {})


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("tasks", "--by-hand"), "leave one of them out"),
        (("nonsense",), "'nonsense' is not"),
        (("tasks", "--folder", "nowhere"), "demo-tasks.html"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(monkeypatch, capsys, words, why):
    code, printed, said = run(monkeypatch, capsys, "demo", *words)
    assert (code, printed) == (2, "")
    assert why in said


@BUILDS
def test_whatever_a_text_holds_it_stays_text():
    models = tiny_models()
    made = [
        demo_translate.translate_section(text=HOSTILE),
        demo_classify.classify_section(models["classify"], HOSTILE),
        demo_answer.answer_section(models["answer"], f"Who {HOSTILE}?", HOSTILE),
        demo_summarise.summarise_section(models["summarise"], HOSTILE),
        demo_fill.fill_section(text=f"[MASK] {HOSTILE}"),
        demo_write.write_section(text=HOSTILE),
        demo_embed.embed_section(models["embed"], [HOSTILE, "a"]),
    ]
    assert [one.name for one in made] == NAMES
    found = Tags(article_page(HOSTILE, HOSTILE, made))
    assert found.tags.count("script") == 2 + len(made)  # the explorer, what is said of the runs, and each of them
    assert set(found.tags) & {"b", "img", "iframe", "link"} == set()
    assert found.text.count(HOSTILE) >= 3 + len(made)
    assert BAD in found.text  # the name of a class


# Its numbers


def test_the_alignment_is_that_of_the_translation(drawn, sections):
    [one] = open_translator("en-zh").translate([demo_translate.TEXT])
    assert text_of(part_of(drawn["translate"], "Output")) == one.text
    assert_allclose(titles(part_of(drawn["translate"], "What it looked at")), one.alignment()[2].flatten(), **FINE)


def test_each_written_token_has_its_probability(drawn):
    shown = part_of(drawn["write"], "How sure it was")
    tokens = list(open_writer("writer").stream(demo_write.TEXT, max_tokens=demo_write.LONGEST))
    assert_allclose([float(one.text) for one in shown.iter("small")], [one.probability for one in tokens], **SHORT)
    assert text_of(part_of(drawn["write"], "Output")) == demo_write.TEXT + "".join(one.text for one in tokens)


def test_the_guesses_and_the_row_of_the_gap_are_those_of_the_model(drawn):
    filler = open_filler("filler")
    filled = filler.fill(demo_fill.TEXT)
    guesses = bars(part_of(drawn["fill"], "Its guesses"))
    assert list(guesses) == [word.name for word in filled.gaps[0].words]
    assert_allclose(list(guesses.values()), [word.probability for word in filled.gaps[0].words], rtol=0, atol=5.1e-4)
    row = filler.trace(filled).layers[-1].weights.dense()[0, :, filled.gaps[0].position].mean(0)
    looked = bars(part_of(drawn["fill"], "What it looked at"))
    assert_allclose(list(looked.values()), row.sort(descending=True).values[:5], rtol=0, atol=5.1e-4)


def test_the_words_that_mattered_are_those_of_the_classifier_three_ways(drawn):
    [one] = classify_and_explain(open_classifier(tiny_models()["classify"]), [demo_classify.TEXT])
    shown = part_of(drawn["classify"], "Words that mattered")
    assert len(one.importance.words) > 5
    assert_allclose(titles(shown), torch.cat(one.importance[1:4]), **FINE)
    assert bars(part_of(drawn["classify"], "Classes")) == {
        name: round(share, 3) for name, share in one.probabilities.items()
    }


def test_the_answer_is_marked_and_the_question_looked_at_what_is_said(drawn):
    [one] = open_answerer(tiny_models()["answer"]).answer(demo_answer.PASSAGE, [demo_answer.QUESTION], n_best=3)
    marked = [text_of(mark) for mark in part_of(drawn["answer"], "Passage").iter("mark")]
    assert marked == ([one.text] if one.best else [])
    assert text_of(part_of(drawn["answer"], "Passage")) == demo_answer.PASSAGE
    spans = part_of(drawn["answer"], "Best spans")
    shares = [float(cell.text) for cell in spans.iter("td") if cell.get("class") == "number"]
    assert_allclose(shares, [span.probability for span in one.spans], rtol=0, atol=5.1e-4)
    looked, trace = part_of(drawn["answer"], "What it looked at"), one.trace()
    head = find_answering_head(trace, one.row.asked, one.places)
    weights = trace.layers[head.layer].weights.dense()[0, head.head]
    inside = weights[slice(*one.row.asked), slice(*one.row.inside)].mean(0)
    spans = one.asked.passage.spans[slice(*one.row.window)]
    lettered = [
        share for span, share in zip(spans, inside.tolist(), strict=True) if demo_answer.PASSAGE[slice(*span)].strip()
    ]
    assert sum(titles(looked)) == pytest.approx(sum(lettered), abs=5e-3)  # tokens of spaces alone are in no word
    assert f"head {head.head}" in text_of(looked)
    assert f"gives the span {head.share:.1%} and the passage {float(inside.sum()):.1%}" in text_of(looked)


def test_the_words_of_the_summary_are_where_they_were_copied_from(drawn):
    [one] = open_summariser(tiny_models()["summarise"]).summarise([demo_summarise.TEXT])
    words = one.words()
    rows = [[text_of(cell) for cell in row] for row in list(part_of(drawn["summarise"], "Where from").iter("tr"))[1:]]
    assert [row[1:3] for row in rows] == [[f"{word.copied:.2f}", f"{word.g:.2f}"] for word in words]
    copied = [word for word in words if word.position is not None]
    marks = [text_of(mark) for mark in part_of(drawn["summarise"], "Output").iter("mark")]
    assert len(words) > 0
    assert marks == [word.text for word in copied]
    assert bool(copied) == any(True for _ in part_of(drawn["summarise"], "Input").iter("mark"))


def test_the_cosines_are_those_of_the_vectors(drawn):
    cosines = open_embedder(tiny_models()["embed"]).similarity(demo_embed.TEXTS, demo_embed.TEXTS)
    assert_allclose(titles(part_of(drawn["embed"], "Cosines")), cosines.flatten(), **FINE)
    off = cosines - 2 * torch.eye(len(demo_embed.TEXTS))
    assert f"a cosine of {float(off.max()):.3f}" in text_of(part_of(drawn["embed"], "Output"))


@pytest.mark.parametrize("name", NAMES)
def test_the_command_on_the_page_does_what_the_page_shows(monkeypatch, capsys, sections, name):
    section = sections[name]
    words = [word for word in shlex.split(section.commands[0][1]) if word != "--see"]
    code, printed, _ = run(monkeypatch, capsys, *words[1:])
    assert code == 0
    said = section.summary.partition(" → ")[2] or re.findall(r"\d\.\d{3}", section.summary)[0]
    assert " ".join(said.split()) in " ".join(printed.split())


def test_each_section_says_which_model_it_is_and_how_to_train_another(sections):
    assert [task.name for task in TASKS] == NAMES
    assert "Model en-zh, 5,948,928 parameters." in sections["translate"].about
    assert re.search(r"BLEU \d+\.\d on held-out text", sections["translate"].about)
    for name, section in sections.items():
        assert section.commands[1][1].startswith(f"regard train {name} --data ")
        assert section.run.name.startswith(f"{name}: ")
        assert re.search(r"[\d,]+ parameters", section.about)
