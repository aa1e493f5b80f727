"""A real photograph, seen by a small vision transformer: patches lie over it, and each can be asked."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.browser.served import Server
from tests.browser.studio import Studio

SIDE, PATCH = 224, 28
GRID = SIDE // PATCH
LAYERS, HEADS = 3, 2


def photograph() -> Path:
    """A portrait that comes with matplotlib."""
    matplotlib = pytest.importorskip("matplotlib")
    file = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    if not file.is_file():
        pytest.skip(f"needs a photograph, and matplotlib has none at {file}")
    return file


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A ViT of random weights, and its folder; queries and keys are large, so that maps are no grey areas."""
    torch = pytest.importorskip("torch")
    t = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = t.ViTConfig(
        image_size=SIDE,
        patch_size=PATCH,
        hidden_size=24,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=20,
        id2label={0: "a portrait", 1: "a street"},
        label2id={"a portrait": 0, "a street": 1},
    )
    config._attn_implementation = "eager"
    made = t.ViTForImageClassification(config).eval()
    with torch.no_grad():
        made.vit.embeddings.patch_embeddings.projection.weight.mul_(4)
        for name, weights in made.named_parameters():
            if ("query" in name or "key" in name or "q_proj" in name or "k_proj" in name) and weights.ndim == 2:
                weights.mul_(20)
    folder = tmp_path_factory.mktemp("models") / "vit"
    made.save_pretrained(folder)
    return made, folder


@pytest.fixture(scope="module")
def pixels():
    """The photograph as the model gets it, (rows, columns, 3), from 0 to 255."""
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(photograph()).convert("RGB").resize((SIDE, SIDE)), dtype=np.float32)


@pytest.fixture(scope="module")
def attention(model, pixels):
    """What `transformers` itself says was attended to, (layer, head, query, key)."""
    import torch

    scaled = torch.from_numpy((pixels / 255 - 0.5) / 0.5).permute(2, 0, 1)[None]
    with torch.no_grad():
        found = model[0](pixel_values=scaled, output_attentions=True).attentions
    return torch.stack(found)[:, 0].numpy()


@pytest.fixture(scope="module")
def seeing(model, folder):
    server = Server(folder, str(model[1]))
    yield server
    server.stop()


@pytest.fixture
def studio(tabs, seeing):
    tab = tabs.new(seeing.home)
    tab.page.goto(seeing.address("stack"))
    studio = Studio(tab, "served")
    studio.root.get_by_role("combobox").first.select_option("vit")
    studio.root.locator(".compose input[type=file]").set_input_files(photograph())
    studio.root.locator(".compose img.sample").wait_for()
    before = studio.page.url
    studio.root.get_by_role("button", name="Run", exact=True).click()
    studio.eventually(lambda: studio.page.url, lambda url: url != before and "trace=" in url)
    studio.open("image")
    return studio


def shows(studio, wanted):
    """Wait until the view draws these weights of patches, and hold them against them."""
    ask = [[patch] for patch in range(GRID * GRID)]
    found = studio.eventually(
        lambda: studio.probe_all("image", "weight", ask),
        lambda found: None not in found and np.allclose(found, wanted, atol=1e-5),
    )
    assert_allclose(found, wanted, rtol=0, atol=1e-5)


def middles(studio):
    """The colour in the middle of each patch, as drawn, (patch, 3): the mean of 9 × 9 pixels."""
    return np.array(
        studio.view("image").evaluate(
            """(element, count) => {
                 const canvas = element.querySelector(".stage canvas"), box = canvas.getBoundingClientRect();
                 const by = canvas.width / box.width, context = canvas.getContext("2d");
                 return Array.from({ length: count }, (_, patch) => {
                   const [x, y] = element.regard.at(patch);
                   const { data } = context.getImageData(Math.round(x * by) - 4, Math.round(y * by) - 4, 9, 9);
                   return [0, 1, 2].map((c) => data.filter((_, i) => i % 4 === c).reduce((a, b) => a + b) / 81);
                 });
               }""",
            GRID * GRID,
        )
    )


def strength(studio, value):
    studio.view("image").locator("[data-do=strength]").fill(str(value))


def click(studio, patch):
    x, y = studio.probe("image", "at", patch)
    studio.view("image").locator(".stage canvas").click(position={"x": x, "y": y})


def test_patches_lie_over_the_photograph_and_each_can_be_asked(studio, attention, pixels):
    studio.place(1, 1)
    shows(studio, attention[1, 1, 0, 1:])  # before anything is chosen: the token that sums up
    strength(studio, 0)
    size = studio.view("image").locator(".stage canvas").bounding_box()
    assert min(size["width"], size["height"]) > 300
    bare = pixels.reshape(GRID, PATCH, GRID, PATCH, 3)[:, 12:16, :, 12:16].mean((1, 3)).reshape(-1, 3)
    off = studio.eventually(lambda: np.abs(middles(studio) - bare).mean(), lambda off: off < 8)
    elsewhere = np.abs(np.roll(bare.reshape(GRID, GRID, 3), 1, 1).reshape(-1, 3) - bare).mean()
    assert off < elsewhere / 4  # it is the picture itself, each patch at its own place

    strength(studio, 0.6)
    studio.shot("photograph-cls")
    for patch in (GRID * 2 + 3, GRID * 6 + 6):
        click(studio, patch)
        studio.eventually(lambda patch=patch: studio.probe("image", "query") == 1 + patch)
        shows(studio, attention[1, 1, 1 + patch, 1:])
        studio.eventually(lambda patch=patch: f"&q={1 + patch}" in studio.page.url)
    studio.page.mouse.move(3, 3)
    studio.eventually(lambda: "patch 6, 6" in studio.view("image").inner_text())
    assert "6,6" in studio.root.locator("aside.panel").inner_text()  # the same name beside it
    studio.eventually(lambda: "asking" not in studio.root.locator("aside.panel").inner_text())
    studio.shot("photograph-patch")

    strength(studio, 1)  # only colours are left: the strongest patch is the brightest
    order = attention[1, 1, 1 + patch, 1:]
    lightness = middles(studio) @ [0.2126, 0.7152, 0.0722]
    strong, weak = int(order.argmax()), int(order.argmin())
    assert lightness[strong] > lightness[weak] + 60

    studio.view("image").locator(".chips button").first.click()
    studio.eventually(lambda: studio.probe("image", "query") == 0)
    shows(studio, attention[1, 1, 0, 1:])


def test_the_photograph_is_reached_by_keys_and_stands_beside_itself(studio, attention):
    studio.place(2, 0)
    shows(studio, attention[2, 0, 0, 1:])
    stage = studio.view("image").locator(".stage")
    stage.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Enter"):
        studio.page.keyboard.press(key)
    studio.eventually(lambda: studio.probe("image", "query") == 1 + GRID + 2)
    shows(studio, attention[2, 0, 1 + GRID + 2, 1:])
    studio.view("image").locator("[data-do=beside]").check()
    studio.shot("photograph-beside")
    assert "a portrait" in studio.root.locator("aside.panel").inner_text()
