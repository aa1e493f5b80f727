"""What does not fit together is refused with what came, what was wanted, and what to do."""

import subprocess
import sys

import pytest
import torch

import regard
from regard.errors import DtypeError, PathError, ShapeError
from tests.attention.cases import qkv


def test_forced_paths_say_why_they_cannot():
    q, k, v = qkv()
    for options, words in (
        ({"score": regard.Additive(query=11, key=11, hidden=3).double()}, "Additive is no product of q and k"),
        ({"weigh": regard.sparsemax}, "the weights come from sparsemax"),
        ({"softcap": 5.0}, "the scores are capped"),
        ({"sink_logits": torch.zeros(6)}, "a sink joins the normaliser"),
        ({"dropout": 0.1}, "dropout is asked for"),
    ):
        with pytest.raises(PathError, match=words):
            regard.attend(q, k, v, path="fused", **options)
    with pytest.raises(PathError, match="path is 'flash', but there are 'fused' and 'explicit'"):
        regard.attend(q, k, v, path="flash")


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 6, 4)), r"k of shape \(2, 3, 7, 4\) has 7 keys, but v .* has 6"),
        (((2, 3, 5, 4), (2, 3, 7, 5), (2, 3, 7, 4)), r"q of shape \(2, 3, 5, 4\) has width 4, but k .* has 5"),
        (((2, 3, 5, 4), (3, 7, 4), (3, 7, 4)), "all three need the same number of axes"),
        (((2, 6, 5, 4), (2, 4, 7, 4), (2, 4, 7, 4)), "6 heads, which do not divide into groups for the 4 heads"),
        (((2, 6, 5, 4), (2, 2, 7, 4), (2, 3, 7, 4)), "k of shape .* has 2 heads, but v of shape .* has 3"),
        (((2, 3, 5, 4), (4, 3, 7, 4), (4, 3, 7, 4)), "the leading axes of q .* do not fit"),
        (((2, 0, 5, 4), (2, 0, 7, 4), (2, 0, 7, 4)), "without any head; give at least one"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_with_advice(shapes, words):
    with pytest.raises(ShapeError, match=words):
        regard.attend(*(torch.randn(shape) for shape in shapes))


def test_kinds_and_devices_that_do_not_fit_are_refused_with_advice():
    q, k, v = qkv()
    with pytest.raises(DtypeError, match=r"q is torch.float64, k is torch.float32 .* such as k.to\(q.dtype\)"):
        regard.attend(q, k.float(), v)
    with pytest.raises(DtypeError, match="attention needs floating point"):
        regard.attend(q.long(), k.long(), v.long())
    with pytest.raises(regard.errors.DeviceError, match="q is on cpu, k on meta"):
        regard.attend(q, k.to("meta"), v.to("meta"))
    with pytest.raises(ShapeError, match=r"bias has shape \(5, 7\), but it must fit \(2, 6, 5, 7\)"):
        regard.attend(q, k, v, bias=torch.zeros(5, 7))
    with pytest.raises(ShapeError, match="sink_logits has shape"):
        regard.attend(q, k, v, sink_logits=torch.zeros(5))
    with pytest.raises(ValueError, match=r"dropout is 1\.5, but it is a share"):
        regard.attend(q, k, v, dropout=1.5)
    with pytest.raises(ShapeError, match="ALiBi is for 7 heads, but q has 6; make it for 6"):
        regard.attend(q, k, v, bias=regard.ALiBi(7))
    with pytest.raises(ValueError, match=r"softcap is -1\.0, but scores are capped at a size"):
        regard.attend(q, k, v, softcap=-1.0)
    with pytest.raises(PathError, match="sink_logits join the normaliser of softmax, and sparsemax has none"):
        regard.attend(q, k, v, sink_logits=torch.zeros(6), weigh=regard.sparsemax)
    nested = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)], layout=torch.jagged)
    with pytest.raises(ShapeError, match=r"nested tensor; pad it .*mask=regard.padding\(lengths\)"):
        regard.attend(nested, nested, nested)


def test_what_is_no_tensor_is_refused_with_advice():
    """In a process without the type checks of the tests, as users have it."""
    code = (
        "import numpy, torch, regard\nx = torch.ones(2, 3)\n"
        "for bad in ((numpy.ones((2, 3)), x, x), (x, [[1.0]], x)):\n"
        "    try: regard.attend(*bad)\n"
        "    except regard.errors.DtypeError as error: print(error)\n"
        "try: regard.attend(x, x, x, mask='causal')\n"
        "except regard.errors.DtypeError as error: print(error)\n"
        "try: regard.attend(x[0], x[0], x[0])\n"
        "except regard.errors.ShapeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "q is ndarray, but attention needs tensors; give torch.as_tensor(q)",
        "k is list, but attention needs tensors; give torch.as_tensor(k)",
        "mask= got str; give a mask such as regard.causal(), a boolean tensor of full rank, "
        "or a function of (b, h, q, k)",
        "q is (3,), k is (3,) and v is (3,), but all three need the same number of axes, (q, d), (h, q, d), "
        "(b, h, q, d) or more; add the missing ones, such as k[None]",
    ]
