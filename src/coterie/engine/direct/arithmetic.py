"""Numbers: what operators and the functions of `math` and `numpy` are in LLVM, as numba writes them."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.engine.direct.text import NotKnownError, Text, Type, Value, real, truth, whole

_WHOLE: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "ashr",
}  # fmt: skip
_REAL: dict[type, str] = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_WHOLE_TESTS: dict[type, str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge",
}  # fmt: skip
_REAL_TESTS: dict[type, str] = {
    ast.Eq: "oeq", ast.NotEq: "une", ast.Lt: "olt", ast.LtE: "ole", ast.Gt: "ogt", ast.GtE: "oge",
}  # fmt: skip
_OF_ONE_FLOAT: dict[Any, str] = {
    math.log: "llvm.log.f64", np.log: "llvm.log.f64", math.exp: "llvm.exp.f64", np.exp: "llvm.exp.f64",
    math.sqrt: "llvm.sqrt.f64", np.sqrt: "llvm.sqrt.f64", math.log1p: "log1p", math.lgamma: "lgamma", math.asin: "asin",
}  # fmt: skip
_TO_WHOLE: dict[Any, str] = {math.floor: "llvm.floor.f64", math.ceil: "llvm.ceil.f64"}
DECLARED = (*dict.fromkeys((*_OF_ONE_FLOAT.values(), *_TO_WHOLE.values(), "llvm.fabs.f64")),)
"""Functions of one float that are LLVM's, or the C library's."""
_LARGEST_POWER = 0x10000


class Arithmetic:
    """Operations on numbers, written into a text. `licence`: what LLVM may do with floats, such as "reassoc"."""

    def __init__(self, text: Text, licence: str) -> None:
        self._text = text
        self._licence = f" {licence}" if licence else ""

    def as_type(self, value: Value, wanted: Type) -> Value:
        """The same number as another type that holds it; nothing is rounded or cut off."""
        if value.type == wanted:
            return value
        if wanted == "double" and value.type in ("i64", "i1"):
            if value.constant is not None:
                return real(float(value.constant))
            how = "sitofp" if value.type == "i64" else "uitofp"
            return Value("double", (self._text.let(f"{how} {value.type} {value.text} to double"),))
        if wanted == "i64" and value.type == "i1":
            return Value("i64", (self._text.let(f"zext i1 {value.text} to i64"),), True)
        raise NotKnownError(f"{value.type} as {wanted}")

    def to_whole(self, value: Value) -> Value:
        """int(value): a float is cut off."""
        if value.type == "double":
            return Value("i64", (self._text.let(f"fptosi double {value.text} to i64"),))
        return self.as_type(value, "i64")

    def to_truth(self, value: Value) -> Value:
        """bool(value)."""
        if value.type == "i1":
            return value
        if value.type == "i64":
            return Value("i1", (self._text.let(f"icmp ne i64 {value.text}, 0"),))
        if value.type == "double":
            return Value("i1", (self._text.let(f"fcmp{self._licence} une double {value.text}, {real(0.0).text}"),))
        raise NotKnownError(f"whether a {value.type} is true")

    def common(self, values: list[Value]) -> list[Value]:
        """Numbers of the same type."""
        kinds = {value.type for value in values}
        if len(kinds) == 1:
            return values
        return [self.as_type(value, "double" if "double" in kinds else "i64") for value in values]

    def _double(self, instruction: str, *operands: Value) -> Value:
        texts = ", ".join(operand.text for operand in operands)
        return Value("double", (self._text.let(f"{instruction}{self._licence} double {texts}"),))

    def binary(self, operator: ast.operator, left: Value, right: Value) -> Value:
        """left operator right."""
        kind = type(operator)
        if kind is ast.Pow:
            return self._power(left, right)
        if kind is ast.Div or "double" in (left.type, right.type):
            if kind not in _REAL:
                raise NotKnownError(f"{kind.__name__} of floats")
            return self._double(_REAL[kind], self.as_type(left, "double"), self.as_type(right, "double"))
        left, right = self.as_type(left, "i64"), self.as_type(right, "i64")
        if left.constant is not None and right.constant is not None and kind in (ast.Add, ast.Sub, ast.Mult):
            a, b = left.constant, right.constant
            return whole(a + b if kind is ast.Add else a - b if kind is ast.Sub else a * b)
        if kind in (ast.FloorDiv, ast.Mod):
            return self._divided(kind is ast.FloorDiv, left, right)
        found = self._text.let(f"{_WHOLE[kind]} i64 {left.text}, {right.text}")
        both = left.nonnegative and right.nonnegative
        return Value("i64", (found,), both and kind in (ast.Add, ast.Mult, ast.BitAnd, ast.RShift))

    def _divided(self, quotient: bool, left: Value, right: Value) -> Value:
        """left // right or left % right, rounded towards minus infinity; 0 if right is 0."""
        let, by = self._text.let, right.constant
        if by is not None and by > 0 and by & (by - 1) == 0:
            if quotient:
                return Value("i64", (let(f"ashr i64 {left.text}, {by.bit_length() - 1}"),), left.nonnegative)
            return Value("i64", (let(f"and i64 {left.text}, {by - 1}"),), True)
        divisor, is_zero = right.text, ""
        if by is None:
            is_zero = let(f"icmp eq i64 {right.text}, 0")
            divisor = let(f"select i1 {is_zero}, i64 1, i64 {right.text}")
        rest = let(f"srem i64 {left.text}, {divisor}")
        signs = let(f"xor i64 {rest}, {divisor}")
        other_side = let(f"icmp slt i64 {signs}, 0")
        is_rest = let(f"icmp ne i64 {rest}, 0")
        is_below = let(f"and i1 {other_side}, {is_rest}")
        if quotient:
            towards_zero = let(f"sdiv i64 {left.text}, {divisor}")
            less = let(f"sub i64 {towards_zero}, 1")
            found = let(f"select i1 {is_below}, i64 {less}, i64 {towards_zero}")
        else:
            more = let(f"add i64 {rest}, {divisor}")
            found = let(f"select i1 {is_below}, i64 {more}, i64 {rest}")
        if is_zero:
            found = let(f"select i1 {is_zero}, i64 0, i64 {found}")
        return Value("i64", (found,), left.nonnegative and right.nonnegative)

    def _power(self, base: Value, exponent: Value) -> Value:
        times = exponent.constant
        if exponent.type != "i64" or base.type not in ("i64", "double"):
            raise NotKnownError(f"{base.type} to the power of {exponent.type}")
        if times is None:  # `coterie.engine.direct.unit` has these functions
            called = f"call {base.type} @coterie.power.{base.type}({base.type} {base.text}, i64 {exponent.text})"
            return Value(base.type, (self._text.let(called),))
        if not 0 < times <= _LARGEST_POWER:
            raise NotKnownError(f"a power of {times}")
        found: Value | None = None
        while times > 0:
            if times & 1:
                found = base if found is None else self.binary(ast.Mult(), found, base)
            times >>= 1
            if times > 0:
                base = self.binary(ast.Mult(), base, base)
        assert found is not None
        return found

    def unary(self, operator: ast.unaryop, value: Value) -> Value:
        """-value, +value, not value."""
        if isinstance(operator, ast.Not):
            return Value("i1", (self._text.let(f"xor i1 {self.to_truth(value).text}, true"),))
        if isinstance(operator, ast.UAdd):
            return value
        if not isinstance(operator, ast.USub):
            raise NotKnownError(type(operator).__name__)
        if value.type == "double":
            if value.text.startswith("0x"):
                return Value("double", (f"0x{int(value.text, 16) ^ 2**63:016X}",))
            return self._double("fneg", value)
        value = self.as_type(value, "i64")
        return whole(-value.constant) if value.constant is not None else self.binary(ast.Sub(), whole(0), value)

    def compared(self, operator: ast.cmpop, left: Value, right: Value) -> Value:
        """left operator right, of two numbers."""
        kind = type(operator)
        if kind not in _WHOLE_TESTS:
            raise NotKnownError(kind.__name__)
        left, right = self.common([left, right])
        if left.type == "double":
            how = f"fcmp{self._licence} {_REAL_TESTS[kind]}"
        elif left.type == "i64" or (left.type == "i1" and kind in (ast.Eq, ast.NotEq)):
            how = f"icmp {_WHOLE_TESTS[kind]}"
        else:
            raise NotKnownError(f"{left.type} compared")
        return Value("i1", (self._text.let(f"{how} {left.type} {left.text}, {right.text}"),))

    def called(self, function: Any, arguments: list[Value]) -> Value:
        """The value of a function of numbers."""
        known: dict[Any, Callable[[], Value]] = {
            min: lambda: self._extreme(ast.Lt(), arguments),
            max: lambda: self._extreme(ast.Gt(), arguments),
            abs: lambda: self._absolute(*arguments),
            int: lambda: self.to_whole(*arguments),
            np.int64: lambda: self.to_whole(*arguments),
            float: lambda: self.as_type(arguments[0], "double"),
            bool: lambda: self.to_truth(*arguments),
            math.isfinite: lambda: self._is_finite(*arguments),
            np.isfinite: lambda: self._is_finite(*arguments),
        }
        if function in known:
            return known[function]()
        (argument,) = arguments
        argument = self.as_type(argument, "double")
        if function in _OF_ONE_FLOAT:
            return self._double_call(_OF_ONE_FLOAT[function], argument)
        if function in _TO_WHOLE:
            return self.to_whole(self._double_call(_TO_WHOLE[function], argument))
        raise NotKnownError(f"the function {function!r}")

    def _double_call(self, name: str, argument: Value) -> Value:
        return Value("double", (self._text.let(f"call{self._licence} double @{name}(double {argument.text})"),))

    def _extreme(self, better: ast.cmpop, values: list[Value]) -> Value:
        if len(values) < 2:
            raise NotKnownError("the extreme of one value")
        values = self.common(values)
        best = values[0]
        for value in values[1:]:
            found = self.compared(better, value, best).text
            parts = f"{value.type} {value.text}, {value.type} {best.text}"
            both = value.nonnegative and best.nonnegative
            best = Value(value.type, (self._text.let(f"select i1 {found}, {parts}"),), both)
        return best

    def _absolute(self, value: Value) -> Value:
        if value.type == "double":
            return self._double_call("llvm.fabs.f64", value)
        value = self.as_type(value, "i64")
        is_below = self._text.let(f"icmp slt i64 {value.text}, 0")
        negated = self._text.let(f"sub i64 0, {value.text}")
        return Value("i64", (self._text.let(f"select i1 {is_below}, i64 {negated}, i64 {value.text}"),), True)

    def _is_finite(self, value: Value) -> Value:
        if value.type != "double":
            return truth(True)
        size = self._text.let(f"call double @llvm.fabs.f64(double {value.text})")
        return Value("i1", (self._text.let(f"fcmp olt double {size}, {real(math.inf).text}"),))
