"""Expressions of a function: names, elements, fields, calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from coterie.engine.direct.arithmetic import Arithmetic
from coterie.engine.direct.text import (
    DATA_WORD,
    HEAD_WORDS,
    Array,
    NotKnownError,
    Record,
    Several,
    Source,
    Text,
    Type,
    Value,
    real,
    truth,
    whole,
)

_KEPT = ", !invariant.load !0"
"""Nobody changes a record itself while it is used: loads may be moved out of loops, whatever is stored there."""
_IN_MEMORY = {"i64": "", "double": "", "i8": "zext", "i32": "sext"}
"""Elements of arrays, and how the shorter ones become whole numbers."""


_BUILTIN: dict[str, Any] = {each.__name__: each for each in (min, max, abs, int, float, bool, range)}


class Surroundings(Protocol):
    """What a function finds outside of itself."""

    def call(self, text: Text, function: Any, arguments: list[Value]) -> Value | None:
        """The value of a step of this room; None if the function is not one."""

    def call_at(self, text: Text, function: Any, address: Value, arguments: Value) -> Value | None:
        """The value of the kernel at an address; None if the function does not call such."""

    def table(self, array: Any) -> Value:
        """An array that never changes."""


class Expressions:
    """Writes expressions into a text. `outside`: the names that the function finds in its module."""

    def __init__(self, text: Text, licence: str, outside: Mapping[str, Any], around: Surroundings) -> None:
        self.text = text
        self.numbers = Arithmetic(text, licence)
        self._outside, self._around = outside, around
        self.slots: dict[str, tuple[Type, list[str]]] = {}  # variables
        self.fixed: dict[str, Value] = {}  # arguments that never change
        self.local: set[str] = set()
        self.nonnegative: set[str] = set()  # variables that cannot be below zero

    def value(self, node: ast.expr) -> Value:
        """Of an expression."""
        find: Callable[[Any], Value] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if find is None:
            raise NotKnownError(type(node).__name__)
        return find(node)

    def _constant(self, node: ast.Constant) -> Value:
        return self._given(node.value)

    def _given(self, found: Any) -> Value:
        if isinstance(found, (bool, np.bool_)):
            return truth(bool(found))
        if isinstance(found, (int, np.integer)):
            return whole(int(found))
        if isinstance(found, float):
            return real(found)
        if isinstance(found, np.ndarray):
            return self._around.table(found)
        raise NotKnownError(f"the constant {found!r}")

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.fixed:
            return self.fixed[node.id]
        if node.id in self.slots:
            its, slots = self.slots[node.id]
            kinds = self.text.dialect.parts(its)
            parts = tuple(self.text.load(kind, slot) for kind, slot in zip(kinds, slots, strict=True))
            return Value(its, parts, node.id in self.nonnegative)
        if node.id in self.local:
            raise NotKnownError(f"{node.id} before it has a value")
        return self._given(self._outside[node.id])

    def outer(self, node: ast.expr) -> Any:
        """What a name, or an attribute of a module, is outside of the function; None if it is something else."""
        if isinstance(node, ast.Name) and node.id not in self.local:
            return self._outside.get(node.id, _BUILTIN.get(node.id))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = self.outer(node.value)
            return getattr(module, node.attr) if isinstance(module, ModuleType) else None
        return None

    def _attribute(self, node: ast.Attribute) -> Value:
        found = self.outer(node)
        if found is not None:
            return self._given(found)
        if isinstance(node.value, ast.Call) and self.outer(node.value.func) is np.iinfo:
            (kind,) = (self.outer(each) for each in node.value.args)
            return whole(int(getattr(np.iinfo(kind), node.attr)))
        its = self.value(node.value)
        if isinstance(its.type, Record):
            return self._field(its, its.type, node.attr)
        if isinstance(its.type, Array) and node.attr == "shape":
            return Value(Several(its.type.rank * ("i64",)), its.parts[1:])
        if isinstance(its.type, Array) and node.attr == "size":
            return self.size(its)
        raise NotKnownError(f"the attribute {node.attr}")

    def size(self, array: Value) -> Value:
        """The number of elements."""
        found = Value("i64", (array.parts[1],), True)
        for part in array.parts[2:]:
            found = Value("i64", (self.text.let(f"mul nsw i64 {found.text}, {part}"),), True)
        return found

    def _field(self, record: Value, its: Record, name: str) -> Value:
        word, array = its.place_of(name)
        parts = [self._word(record, word + DATA_WORD, self.text.dialect.pointer(array.element))]
        parts += [self._word(record, word + HEAD_WORDS + axis, "i64") for axis in range(array.rank)]
        return Value(array, tuple(parts))

    def _word(self, record: Value, word: int, kind: str) -> str:
        pointer = self.text.dialect.pointer("i64")
        address = self.text.let(f"getelementptr inbounds i64, {pointer} {record.text}, i64 {word}")
        if kind != "i64" and self.text.dialect.typed:
            address = self.text.let(f"bitcast {pointer} {address} to {kind}*")
        return self.text.load(kind, address, _KEPT)

    def _subscript(self, node: ast.Subscript) -> Value:
        its = self.value(node.value)
        if isinstance(its.type, Several):
            return self._item(its, its.type, self.value(node.slice))
        if isinstance(node.slice, ast.Slice):
            return self._beginning(its, node.slice)
        found = self.part(its, node.slice)
        return found if isinstance(found.type, Array) and found.type.rank > 0 else self.load(found)

    def _item(self, values: Value, its: Several, index: Value) -> Value:
        place = index.constant
        if place is None or not 0 <= place < len(its.items):
            raise NotKnownError("an item of a tuple that is not known beforehand")
        first = sum(len(self.text.dialect.parts(item)) for item in its.items[:place])
        number = len(self.text.dialect.parts(its.items[place]))
        return Value(its.items[place], values.parts[first : first + number])

    def items(self, values: Value) -> list[Value]:
        """The items of a tuple."""
        if not isinstance(values.type, Several):
            raise NotKnownError(f"the items of {values.type}")
        return [self._item(values, values.type, whole(i)) for i in range(len(values.type.items))]

    def _beginning(self, array: Value, part: ast.Slice) -> Value:
        """array[:n]."""
        if part.lower is not None or part.step is not None or part.upper is None or len(array.parts) != 2:
            raise NotKnownError("a part of an array other than its beginning")
        upper = self._from_the_front(self.value(part.upper), array.parts[1])
        length = self.numbers.called(max, [whole(0), self.numbers.called(min, [upper, Value("i64", array.parts[1:])])])
        return Value(array.type, (array.parts[0], length.text))

    def _from_the_front(self, index: Value, length: str) -> Value:
        """An index below zero counts from the end."""
        index = self.numbers.as_type(index, "i64")
        if index.nonnegative:
            return index
        is_below = self.text.let(f"icmp slt i64 {index.text}, 0")
        moved = self.text.let(f"add i64 {index.text}, {length}")
        return Value("i64", (self.text.let(f"select i1 {is_below}, i64 {moved}, i64 {index.text}"),))

    def part(self, array: Value, index: ast.expr) -> Value:
        """The part of an array at some leading indices; of rank 0, with its address, if that is one element.

        Whole axes (`:`) at the end are the same as leaving them out.
        """
        if not isinstance(array.type, Array):
            raise NotKnownError(f"an index of {array.type}")
        nodes = list(index.elts) if isinstance(index, ast.Tuple) else [index]
        while nodes and isinstance(nodes[-1], ast.Slice) and not (nodes[-1].lower or nodes[-1].upper or nodes[-1].step):
            nodes.pop()
        if len(nodes) > array.type.rank:
            raise NotKnownError("more indices than axes")
        lengths, offset = array.parts[1:], ""
        for node, length in zip(nodes, lengths, strict=False):
            at = self._from_the_front(self.value(node), length).text
            if offset:
                before = self.text.let(f"mul nsw i64 {offset}, {length}")
                at = self.text.let(f"add nsw i64 {before}, {at}")
            offset = at
        if offset:
            for length in lengths[len(nodes) :]:
                offset = self.text.let(f"mul nsw i64 {offset}, {length}")
        element, address = array.type.element, array.parts[0]
        if offset:
            kind = self.text.dialect.pointer(element)
            address = self.text.let(f"getelementptr inbounds {element}, {kind} {address}, i64 {offset}")
        return Value(Array(element, array.type.rank - len(nodes)), (address, *lengths[len(nodes) :]))

    def load(self, element: Value) -> Value:
        """The number in an element."""
        assert isinstance(element.type, Array)
        kind = element.type.element
        found = self.text.load(kind, element.parts[0])
        if _IN_MEMORY[kind]:
            return Value("i64", (self.text.let(f"{_IN_MEMORY[kind]} {kind} {found} to i64"),), kind == "i8")
        return Value(kind, (found,))

    def store(self, element: Value, number: Value) -> None:
        """Put a number into an element."""
        assert isinstance(element.type, Array)
        kind = element.type.element
        if kind == "double":
            found = self.numbers.as_type(number, "double").text
        else:
            found = self.numbers.as_type(number, "i64").text
            if kind != "i64":
                found = self.text.let(f"trunc i64 {found} to {kind}")
        self.text.store(kind, found, element.parts[0])

    def _tuple(self, node: ast.Tuple) -> Value:
        found = [self.value(each) for each in node.elts]
        return Value(Several(tuple(each.type for each in found)), tuple(part for each in found for part in each.parts))

    def _binop(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        return self.numbers.binary(node.op, left, right)

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        return self.numbers.unary(node.op, self.value(node.operand))

    def _compare(self, node: ast.Compare) -> Value:
        if len(node.ops) > 1:
            return self._as_truth(node)
        return self.numbers.compared(node.ops[0], self.value(node.left), self.value(node.comparators[0]))

    def _boolop(self, node: ast.BoolOp) -> Value:
        return self._as_truth(node)

    def _as_truth(self, node: ast.expr) -> Value:
        yes, no, done = self.text.name("yes"), self.text.name("no"), self.text.name("both")
        slot = self.text.slot("i1")
        self.decide(node, yes, no)
        for block, found in ((yes, "true"), (no, "false")):
            self.text.begin(block)
            self.text.store("i1", found, slot)
            self.text.go(done)
        self.text.begin(done)
        return Value("i1", (self.text.load("i1", slot),))

    def decide(self, node: ast.expr, yes: str, no: str) -> None:
        """Go on in the block `yes` or `no`; what comes later in an `and` or `or` is looked at only if it matters."""
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            sides = [node.left, *node.comparators]
            pairs = zip(sides, node.ops, sides[1:], strict=False)
            node = ast.BoolOp(ast.And(), [ast.Compare(left, [how], [right]) for left, how, right in pairs])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.decide(node.operand, no, yes)
        elif isinstance(node, ast.BoolOp):
            for each in node.values[:-1]:
                following = self.text.name("also")
                if isinstance(node.op, ast.And):
                    self.decide(each, following, no)
                else:
                    self.decide(each, yes, following)
                self.text.begin(following)
            self.decide(node.values[-1], yes, no)
        else:
            self.text.fork(self.numbers.to_truth(self.value(node)).text, yes, no)

    def _ifexp(self, node: ast.IfExp) -> Value:
        yes, no, done = self.text.name("yes"), self.text.name("no"), self.text.name("either")
        self.decide(node.test, yes, no)
        self.text.begin(yes)
        first = self.value(node.body)
        end_of_first = len(self.text.lines)
        self.text.is_open = False
        self.text.begin(no)
        second = self.value(node.orelse)
        kind = self._wider(first.type, second.type)
        parts = self.text.dialect.parts(kind)
        slots = [self.text.slot(part) for part in parts]
        self._keep(self.numbers.as_type(second, kind), slots)
        self.text.go(done)
        rest = self.text.lines[end_of_first:]
        del self.text.lines[end_of_first:]
        self.text.is_open = True
        self._keep(self.numbers.as_type(first, kind), slots)
        self.text.go(done)
        self.text.lines += rest
        self.text.begin(done)
        found = tuple(self.text.load(part, slot) for part, slot in zip(parts, slots, strict=True))
        return Value(kind, found, first.nonnegative and second.nonnegative)

    @staticmethod
    def _wider(one: Type, other: Type) -> Type:
        """The type of one of two values."""
        order: list[Type] = ["i1", "i64", "double"]
        if one == other:
            return one
        if one not in order or other not in order:
            raise NotKnownError(f"one of two values, {one} and {other}")
        return order[max(order.index(one), order.index(other))]

    def _keep(self, value: Value, slots: list[str]) -> None:
        for part, given, slot in zip(self.text.dialect.parts(value.type), value.parts, slots, strict=True):
            self.text.store(part, given, slot)

    def _call(self, node: ast.Call) -> Value:
        if node.keywords:
            raise NotKnownError("arguments by name")
        if isinstance(node.func, ast.Attribute) and node.func.attr == "standard_normal":
            its = self.value(node.func.value)
            if isinstance(its.type, Source) and not node.args:
                parts = ", ".join(f"i64 {part}" for part in its.parts)
                return Value("double", (self.text.let(f"call double @coterie.normal({parts})"),))
        function = self.outer(node.func)
        if function is None:
            raise NotKnownError(f"a call of {ast.unparse(node.func)}")
        arguments = [self.value(each) for each in node.args]
        found = self._around.call(self.text, function, arguments)
        if found is None and len(arguments) == 2:
            found = self._around.call_at(self.text, function, *arguments)
        return self.numbers.called(function, arguments) if found is None else found
