"""Sixteen numbers at once, as a type that compiled kernels compute with.

A `Vector` is LLVM's <16 x float> or <16 x i32>. LLVM lays it into whatever registers the machine has: one of AVX-512,
two of AVX2, four of NEON or SSE. So a kernel is written once and asks no CPU what it can do.

Memory is named by addresses, which are whole numbers; alignment beyond that of one number is never assumed.
"""

import operator
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import carray  # type: ignore[attr-defined]
from numba.core import types
from numba.core.datamodel import models
from numba.extending import overload, register_model

from regard.models.fast.compile import inline_kernel, operation

LANES = 16
INT = ir.IntType(32)
WIDE_FLOAT, WIDE_INT = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(INT, LANES)
WIDE_BYTE = ir.VectorType(ir.IntType(8), LANES)
WIDE_HALF = ir.VectorType(ir.IntType(16), LANES)  # read as bits


class Vector(types.Type):
    """The type of sixteen float32, or of sixteen int32."""

    def __init__(self, number: str) -> None:
        super().__init__(name=f"Vector({number})")


FLOATS, INTS = Vector("float32"), Vector("int32")
ADDRESS, SCALAR, WHOLE = types.int64, types.float32, types.int32


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """How a `Vector` lies in memory and registers: as LLVM's own."""

    def __init__(self, manager: Any, of: Any) -> None:
        super().__init__(manager, of, WIDE_FLOAT if of == FLOATS else WIDE_INT)


def splat(builder: Any, value: Any) -> Any:
    """One number sixteen times."""
    wide = ir.VectorType(value.type, LANES)
    empty = ir.Constant(wide, ir.Undefined)
    first = builder.insert_element(empty, value, ir.Constant(INT, 0))
    return builder.shuffle_vector(first, empty, ir.Constant(WIDE_INT, [0] * LANES))


def constant(value: int) -> Any:
    """One whole number sixteen times, known while compiling."""
    return ir.Constant(WIDE_INT, [value] * LANES)


def call(builder: Any, name: str, result: Any, *values: Any) -> Any:
    """One of LLVM's own functions."""
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [value.type for value in values]), name)
    return builder.call(function, values, fastmath=("reassoc",))


@operation
def load(context: Any, address: Any) -> Any:
    """Sixteen float32 from an address on."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return builder.load(builder.inttoptr(values[0], WIDE_FLOAT.as_pointer()), align=4)

    return FLOATS(ADDRESS), build


@operation
def load_ints(context: Any, address: Any) -> Any:
    """Sixteen int32 from an address on."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return builder.load(builder.inttoptr(values[0], WIDE_INT.as_pointer()), align=4)

    return INTS(ADDRESS), build


@operation
def load_halves(context: Any, address: Any) -> Any:
    """Sixteen float16 from an address on, as float32.

    The bits are moved by hand: the exponent of float16 is 112 less. Machines without an instruction for it would need
    a library that may not be there.
    """

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        bits = builder.load(builder.inttoptr(values[0], WIDE_HALF.as_pointer()), align=2)
        wide = builder.zext(bits, WIDE_INT)
        sign = builder.shl(builder.and_(wide, constant(0x8000)), constant(16))
        size = builder.bitcast(builder.shl(builder.and_(wide, constant(0x7FFF)), constant(13)), WIDE_FLOAT)
        size = builder.fmul(size, ir.Constant(WIDE_FLOAT, [2.0**112] * LANES))
        return builder.bitcast(builder.or_(builder.bitcast(size, WIDE_INT), sign), WIDE_FLOAT)

    return FLOATS(ADDRESS), build


@operation
def to_pointer(context: Any, address: Any) -> Any:
    """An address as a pointer to float32, for `numba.carray`."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], ir.FloatType().as_pointer())

    return types.CPointer(SCALAR)(ADDRESS), build


@inline_kernel
def view(address: int, size: int) -> Any:
    """So many float32 from an address on, as an array."""
    return carray(to_pointer(address), size)


@operation
def load_bytes(context: Any, address: Any) -> Any:
    """Sixteen whole numbers from 0 to 255 from an address on, as float32."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        numbers = builder.load(builder.inttoptr(values[0], WIDE_BYTE.as_pointer()), align=1)
        return builder.sitofp(builder.zext(numbers, WIDE_INT), WIDE_FLOAT)

    return FLOATS(ADDRESS), build


@operation
def load_signed_bytes(context: Any, address: Any) -> Any:
    """Sixteen whole numbers from -128 to 127 from an address on, as float32."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        numbers = builder.load(builder.inttoptr(values[0], WIDE_BYTE.as_pointer()), align=1)
        return builder.sitofp(builder.sext(numbers, WIDE_INT), WIDE_FLOAT)

    return FLOATS(ADDRESS), build


@operation
def store(context: Any, address: Any, value: Any) -> Any:
    """Writes sixteen float32 from an address on."""

    def build(context: Any, builder: Any, __: Any, values: Any) -> Any:
        builder.store(values[1], builder.inttoptr(values[0], WIDE_FLOAT.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(ADDRESS, FLOATS), build


@operation
def broadcast(context: Any, value: Any) -> Any:
    """One float32 in every lane."""
    return FLOATS(SCALAR), lambda _, builder, __, values: splat(builder, values[0])


@operation
def broadcast_from(context: Any, address: Any) -> Any:
    """The float32 at an address, in every lane."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return splat(builder, builder.load(builder.inttoptr(values[0], ir.FloatType().as_pointer()), align=4))

    return FLOATS(ADDRESS), build


@operation
def nibble_scales(context: Any) -> Any:
    """16 ** -j for the eight columns j of a word of 4-bit codes, twice; the last column is taken by a shift: 1."""
    scales = [16.0**-j for j in range(7)] + [1.0]
    return FLOATS(), lambda _, builder, __, values: ir.Constant(WIDE_FLOAT, scales * 2)


@operation
def fma(context: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c, rounded once where the machine can."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return call(builder, f"llvm.fmuladd.v{LANES}f32", WIDE_FLOAT, *values)

    return FLOATS(FLOATS, FLOATS, FLOATS), build


@operation
def select_bits(context: Any, bits: Any, mask: Any) -> Any:
    """The bits of a mask, as whole numbers made float32."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return builder.sitofp(builder.and_(values[0], splat(builder, values[1])), WIDE_FLOAT)

    return FLOATS(INTS, WHOLE), build


@operation
def shift_right(context: Any, bits: Any, by: Any) -> Any:
    """Bits moved down, zeros from above."""
    return INTS(INTS, WHOLE), lambda _, builder, __, values: builder.lshr(values[0], splat(builder, values[1]))


@operation
def shift_left(context: Any, bits: Any, by: Any) -> Any:
    """Bits moved up, zeros from below."""
    return INTS(INTS, WHOLE), lambda _, builder, __, values: builder.shl(values[0], splat(builder, values[1]))


@operation
def to_floats(context: Any, whole: Any) -> Any:
    """Whole numbers as float32."""
    return FLOATS(INTS), lambda _, builder, __, values: builder.sitofp(values[0], WIDE_FLOAT)


@operation
def scale_by_power(context: Any, value: Any, power: Any) -> Any:
    """value · 2 ** power, for whole powers from -126 to 127, as float32."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        whole = builder.add(builder.fptosi(values[1], WIDE_INT), constant(127))
        return builder.fmul(values[0], builder.bitcast(builder.shl(whole, constant(23)), WIDE_FLOAT))

    return FLOATS(FLOATS, FLOATS), build


@operation
def round_down(context: Any, value: Any) -> Any:
    """The largest whole number that is not larger."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return call(builder, f"llvm.floor.v{LANES}f32", WIDE_FLOAT, *values)

    return FLOATS(FLOATS), build


@operation
def larger(context: Any, a: Any, b: Any) -> Any:
    """The larger of two, lane by lane."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *values), *values)

    return FLOATS(FLOATS, FLOATS), build


@operation
def add_lanes(context: Any, value: Any) -> Any:
    """The sum of the sixteen."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        zero = ir.Constant(ir.FloatType(), 0.0)
        return call(builder, f"llvm.vector.reduce.fadd.v{LANES}f32", ir.FloatType(), zero, values[0])

    return SCALAR(FLOATS), build


@operation
def largest_lane(context: Any, value: Any) -> Any:
    """The largest of the sixteen."""

    def build(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return call(builder, f"llvm.vector.reduce.fmax.v{LANES}f32", ir.FloatType(), values[0])

    return SCALAR(FLOATS), build


def make_arithmetic(sign: Any, name: str) -> None:
    """Lets kernels write `a + b` for vectors."""

    @operation
    def compute(context: Any, a: Any, b: Any) -> Any:
        return FLOATS(FLOATS, FLOATS), lambda _, builder, __, values: getattr(builder, name)(*values)

    @overload(sign, strict=False)
    def choose(a: Any, b: Any) -> Any:
        return (lambda a, b: compute(a, b)) if a == FLOATS and b == FLOATS else None


for sign, name in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"), (operator.truediv, "fdiv")):
    make_arithmetic(sign, name)


@inline_kernel
def exp(x: Any) -> Any:
    """e to the power of each lane, to about one unit in the last place; what is below -87 gives 0 or nearly so.

    $e^x = 2^n e^r$ with n whole and |r| at most half of ln 2, and the series of $e^r$ to its seventh term.
    """
    x = larger(x, broadcast(np.float32(-87.0)))
    n = round_down(fma(x, broadcast(1.4426950408889634), broadcast(0.5)))
    r = fma(n, broadcast(-0.693359375), x)  # ln 2 in two parts, the first with few digits: n times it is exact
    r = fma(n, broadcast(2.12194440e-4), r)
    series = broadcast(1.0 / 5040)
    series = fma(series, r, broadcast(1.0 / 720))
    series = fma(series, r, broadcast(1.0 / 120))
    series = fma(series, r, broadcast(1.0 / 24))
    series = fma(series, r, broadcast(1.0 / 6))
    series = fma(series, r, broadcast(0.5))
    series = fma(series, r, broadcast(1.0))
    return scale_by_power(fma(series, r, broadcast(1.0)), n)
