"""Functions that are written down as they are: powers, and the Gaussian numbers of NumPy."""

from __future__ import annotations

import importlib
from typing import Any

from coterie.engine.direct.text import Dialect, NotKnownError, real


def powers() -> list[str]:
    """Powers whose exponent is not known beforehand, by squaring."""
    return [_POWER.replace("NUMBER", kind).replace("MUL", mul).replace("ONE", one).replace("BELOW", below)
            for kind, mul, one, below in (
                ("i64", "mul", "1", "  ret i64 0"),
                ("double", "fmul", real(1.0).text, f"  %q = fdiv double {real(1.0).text}, %found\n  ret double %q"),
            )]  # fmt: skip


_POWER = """\
define internal NUMBER @coterie.power.NUMBER(NUMBER %base, i64 %given) nounwind {
entry:
  %is_below = icmp slt i64 %given, 0
  %negated = sub i64 0, %given
  %size = select i1 %is_below, i64 %negated, i64 %given
  br label %head
head:
  %found = phi NUMBER [ONE, %entry], [%next, %body]
  %a = phi NUMBER [%base, %entry], [%square, %body]
  %left = phi i64 [%size, %entry], [%half, %body]
  %goes_on = icmp ne i64 %left, 0
  br i1 %goes_on, label %body, label %done
body:
  %bit = and i64 %left, 1
  %is_odd = icmp ne i64 %bit, 0
  %product = MUL NUMBER %found, %a
  %next = select i1 %is_odd, NUMBER %product, NUMBER %found
  %half = lshr i64 %left, 1
  %square = MUL NUMBER %a, %a
  br label %head
done:
  br i1 %is_below, label %inverted, label %direct
inverted:
BELOW
direct:
  ret NUMBER %found
}"""


def normal(dialect: Dialect) -> list[str]:
    """NumPy's standard Gaussian numbers (the ziggurat of its C sources), from numba's tables."""
    try:
        tables: Any = importlib.import_module("numba.np.random._constants")
    except ImportError as error:  # another numba
        raise NotKnownError("tables for Gaussian numbers") from error
    lines = []
    for name, kind in (("ki", "i64"), ("wi", "double"), ("fi", "double")):
        array = getattr(tables, f"{name}_double")
        numbers = [str(int(x)) if kind == "i64" else real(float(x)).text for x in array]
        elements = ", ".join(f"{kind} {number}" for number in numbers)
        lines.append(f"@coterie.{name} = internal constant [{len(numbers)} x {kind}] [{elements}]")

    def element(name: str, table: str, kind: str, index: str) -> str:
        of = f"[256 x {kind}]"
        address = f"getelementptr inbounds {of}, {dialect.pointer(of)} @coterie.{table}, i64 0, i64 {index}"
        return f"  %{name}.at = {address}\n  %{name} = load {kind}, {dialect.pointer(kind)} %{name}.at"

    body = _NORMAL.replace("WHOLES", dialect.pointer("i64 (i64)")).replace("REALS", dialect.pointer("double (i64)"))
    for name, table, kind, index in (
        ("w", "wi", "double", "%place"), ("k", "ki", "i64", "%place"),
        ("f", "fi", "double", "%place"), ("f0", "fi", "double", "%below"),
    ):  # fmt: skip
        body = body.replace(f"<{name}>", element(name, table, kind, index))
    radius, inverse = float(tables.ziggurat_nor_r), float(tables.ziggurat_nor_inv_r)
    body = body.replace("-INVERSE", real(-inverse).text).replace("RADIUS", real(radius).text)
    return [*lines, body.replace("-HALF", real(-0.5).text)]


_NORMAL = """\
define internal double @coterie.normal(i64 %state, i64 %next_uint64, i64 %next_double) nounwind {
entry:
  %wholes = inttoptr i64 %next_uint64 to WHOLES
  %reals = inttoptr i64 %next_double to REALS
  br label %again
again:
  %drawn = call i64 %wholes(i64 %state)
  %place = and i64 %drawn, 255
  %bits = lshr i64 %drawn, 8
  %sign = and i64 %bits, 1
  %shifted = lshr i64 %bits, 1
  %size = and i64 %shifted, 4503599627370495
  %length = uitofp i64 %size to double
<w>
  %upwards = fmul double %length, %w
  %downwards = fneg double %upwards
  %is_up = icmp eq i64 %sign, 0
  %x = select i1 %is_up, double %upwards, double %downwards
<k>
  %is_inside = icmp ult i64 %size, %k
  br i1 %is_inside, label %done, label %outside
done:
  ret double %x
outside:
  %is_tail = icmp eq i64 %place, 0
  br i1 %is_tail, label %tail, label %wedge
tail:
  %u1 = call double %reals(i64 %state)
  %n1 = fneg double %u1
  %l1 = call double @log1p(double %n1)
  %xx = fmul double -INVERSE, %l1
  %u2 = call double %reals(i64 %state)
  %n2 = fneg double %u2
  %l2 = call double @log1p(double %n2)
  %yy = fneg double %l2
  %twice = fadd double %yy, %yy
  %squared = fmul double %xx, %xx
  %is_taken = fcmp ogt double %twice, %squared
  br i1 %is_taken, label %far, label %tail
far:
  %high = fadd double RADIUS, %xx
  %low = fneg double %high
  %side = lshr i64 %size, 8
  %other = and i64 %side, 1
  %is_high = icmp eq i64 %other, 0
  %end = select i1 %is_high, double %high, double %low
  ret double %end
wedge:
  %below = sub i64 %place, 1
<f>
<f0>
  %gap = fsub double %f0, %f
  %u3 = call double %reals(i64 %state)
  %part = fmul double %gap, %u3
  %edge = fadd double %part, %f
  %h = fmul double -HALF, %x
  %exponent = fmul double %h, %x
  %density = call double @llvm.exp.f64(double %exponent)
  %is_under = fcmp olt double %edge, %density
  br i1 %is_under, label %done, label %again
}"""
