"""Images as tokens."""

import pytest

from regard.errors import TraceError
from regard.tokens import PatchGrid, groups, patches, square


def test_patches_stand_row_by_row_after_what_is_special():
    tokens = patches(3, 5, prefix=2)
    assert tokens.shown[:4] == ("[CLS]", "[EXTRA 1]", "0,0", "0,1")
    assert tokens.shown[2 + 2 * 5 + 4] == "2,4"
    assert tokens.grid == (3, 5)
    assert (len(tokens), sum(tokens.special)) == (17, 2)
    assert len(groups(tokens)) == 17


def test_what_stands_before_the_patches_can_be_named():
    assert patches(1, 2, prefix=["[CLS]", "[DIST]"]).shown == ("[CLS]", "[DIST]", "0,0", "0,1")
    assert patches(1, 1, prefix="[CLS]").shown == ("[CLS]", "0,0")


@pytest.mark.parametrize(
    ("count", "found"),
    [
        (197, (1, 14, 14)),  # ViT
        (198, (2, 14, 14)),  # DeiT with distillation
        (196, (0, 14, 14)),  # SigLIP
        (261, (5, 16, 16)),  # DINOv2 with registers
        (577, (1, 24, 24)),
        (190, None),
        (202, None),
        (1, (0, 1, 1)),
        (0, None),
        (-4, None),
    ],
)
def test_a_square_is_found_only_where_it_fits(count, found):
    assert square(count) == (None if found is None else PatchGrid(*found))


def test_every_square_after_few_tokens_is_found():
    for side in range(4, 40):
        for prefix in range(6):
            assert square(side * side + prefix) == (prefix, side, side)
        assert square(side * side + 6) is None or (side + 1) ** 2 <= side * side + 6
    assert square(50, most=0) is None


def test_images_that_are_none_are_refused():
    with pytest.raises(TraceError, match="0 × 4 patches; give 1 or more of each"):
        patches(0, 4)
    with pytest.raises(TraceError, match="-1 tokens before the patches"):
        patches(2, 4, prefix=-1)
