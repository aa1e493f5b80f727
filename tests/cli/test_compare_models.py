"""`regard compare-models`: two tables in the terminal, one page, JSON, and one sentence where it cannot be."""

import json

import pytest

from regard.models import embedded
from regard.views.readings.compare import compare_models
from tests.cli.run import run
from tests.views.readings.pairs import TEXT, save_pair

VARYING = {"writing"}  # its time is another one each time


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return [str(folder) for folder in save_pair(tmp_path_factory.mktemp("pair"))]


@pytest.fixture
def compare(monkeypatch, capsys, folders):
    """The command with both models."""
    return lambda *words: run(monkeypatch, capsys, "compare-models", "-m", folders[0], "-m", folders[1], *words)


def test_the_terminal_shows_both_models_and_every_word(compare):
    code, out, _ = compare(TEXT, "--write", "3")
    assert (code, out.splitlines()[0]) == (0, TEXT)
    for line in ("may look at ", "weight on later tokens ", "to write 3 tokens: computed ", "sat "):
        assert any(one.startswith(line) for one in out.splitlines()), line
    assert "small-gpt" in out
    assert "small-bert" in out
    assert out.splitlines()[-1].endswith("--to both.html")


def test_json_has_the_numbers_of_the_python_call(compare, folders):
    code, out, _ = compare(TEXT, "--json")
    found, wanted = json.loads(out), compare_models(TEXT, *folders).to_json()
    assert (code, found["text"]) == (0, TEXT)
    for one, two in zip(found["models"], wanted["models"], strict=True):
        assert {k: v for k, v in one.items() if k not in VARYING} == {
            k: pytest.approx(v) if isinstance(v, float) else json.loads(json.dumps(v))
            for k, v in two.items()
            if k not in VARYING
        }


def test_a_page_is_written_and_named(compare, tmp_path):
    code, out, _ = compare(TEXT, "--to", str(tmp_path / "both.html"))
    page = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert code == 0
    assert out.splitlines()[-1] == f"{tmp_path / 'both.html'} is written. Open it in a browser."
    assert page.count('class="trace">') == 2
    assert '"objective":"next"' in page
    assert '"objective":"masked"' in page
    assert "view=readings" in page


def test_one_model_is_not_enough(monkeypatch, capsys, folders):
    code, _, err = run(monkeypatch, capsys, "compare-models", "-m", folders[0], TEXT)
    assert (code, err) == (2, "regard: 1 of --model came, but two models are compared; give two: -m GPT -m BERT\n")


def test_without_embedded_models_it_says_which_to_give(monkeypatch, capsys):
    monkeypatch.setattr(embedded, "names", lambda: ["en-zh-grammar"])
    code, _, err = run(monkeypatch, capsys, "compare-models", TEXT)
    assert code == 2
    assert err.startswith("regard: this build has no embedded model 'writer'; give two models")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("", "--write", "1"), "the text is empty"),
        ((TEXT, "--to", "both.pdf"), "'both.pdf' ends in none of .html"),
        ((TEXT, "--to", "nowhere/both.html"), "the folder 'nowhere' for 'both.html' does not exist"),
        (("the " * 60,), "the text has 62 tokens, but small-gpt takes at most 40"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(compare, words, said):
    code, _, err = compare(*words)
    assert code == 2
    assert said in err
    assert err.splitlines()[-1].startswith("regard: ")
