"""One way to find a model: each layout by its path or name, and one sentence where there is none."""

import shutil

import pytest

from regard.errors import ModelError
from regard.models import embedded, store
from regard.models.kinds import KINDS
from regard.models.layout import RUN
from regard.models.open.locate import ModelLocation, UnknownModelError, is_run, locate, locate_path
from regard.models.open.open_model import open_model
from regard.training.run import RunFolder


@pytest.fixture
def run(tmp_path):
    """A run of training that has come to its end."""
    made = RunFolder(tmp_path / "some run")
    with made.lock_folder(new=True):
        made.begin("translate", {})
    shutil.copytree(embedded.folder("en-zh-grammar-recurrent"), made.model)
    return made.folder


def test_every_embedded_model_is_found_by_its_name():
    places = {name: locate(name) for name in embedded.names()}
    assert {name: place.kind.name for name, place in places.items()} == {
        "digits": "vit", "en-zh": "translator", "en-zh-grammar": "translator", "en-zh-grammar-recurrent": "seq2seq",
        "filler": "bert", "glimpses": "glimpse", "induction": "gpt", "reader": "bert",
        "sentence-encoder": "sentence_encoder", "sentiment": "classifier", "shapes-captioner": "captioner",
        "summariser": "pointer_generator", "writer": "gpt",
    }  # fmt: skip
    assert {place.layout for place in places.values()} == {"embedded"}


@pytest.mark.parametrize("as_path", [False, True])
def test_a_run_and_the_folder_of_its_model_are_the_same_model(run, as_path):
    kind = KINDS["seq2seq"]
    for path, wanted in (
        (run, ModelLocation("some run", run / "model", "run", kind)),
        (run / "model", ModelLocation("model", run / "model", "regard", kind)),
    ):
        assert locate(path if as_path else str(path)) == wanted
    assert type(open_model(run)[0]) is type(open_model(run / "model")[0])


def test_a_run_that_is_not_over_says_how_to_go_on(run):
    assert is_run(run)
    shutil.rmtree(run / "model")
    assert locate_path(run) is None
    with pytest.raises(ModelError, match="is a run that has not come to its end; go on with regard train … --resume"):
        locate(run)


def test_a_folder_of_transformers_is_found_without_that_library(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    assert locate(tmp_path) == ModelLocation(tmp_path.name, tmp_path, "transformers")


def test_a_gguf_file_is_found_and_told_as_what_it_is(tmp_path):
    file = tmp_path / "Small.GGUF"
    file.write_bytes(b"GGUF")
    assert locate(str(file)) == ModelLocation("Small.GGUF", file, "gguf")
    with pytest.raises(ModelError, match=r"Small\.GGUF ends too early"):
        open_model(file)


def test_paths_without_a_model_are_told_apart(tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("a")
    for path, said in ((other, "is a file, but no GGUF file"), (tmp_path, r"has no config\.json")):
        with pytest.raises(ModelError, match=said):
            locate(path)
        assert locate_path(path) is None


@pytest.mark.parametrize("name", ["nowhere", "", "a" * 5000, "a\0b", "somebody/other", "x.gguf"])
def test_a_name_that_stands_for_nothing_is_refused_in_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownModelError, match="is neither an embedded model") as told:
        locate(name)
    assert len(str(told.value)) < 300
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sentimnt", "(did you mean 'sentiment'? `regard models` lists them all)"),
        ("en-zh-gramar", "(did you mean 'en-zh-grammar' or 'en-zh-grammar-recurrent'? `regard models`"),
    ],
)
def test_the_nearest_names_are_said(name, said):
    with pytest.raises(UnknownModelError) as told:
        locate(name)
    assert said in str(told.value)


def test_a_manifest_of_another_kind_or_version_is_refused_when_it_is_found(run):
    manifest = run / "model" / store.MANIFEST
    manifest.write_text(manifest.read_text().replace('"seq2seq"', '"mixer"'))
    with pytest.raises(ModelError, match=r"is of kind 'mixer', but gpt, .*seq2seq are read here"):
        locate(run)
    manifest.write_text('{"format": "regard-model/9"}')
    with pytest.raises(ModelError, match="'regard-model/9'"):
        locate(run)
    assert (run / RUN).is_file()
