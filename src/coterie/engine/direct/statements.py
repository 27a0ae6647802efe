"""Statements of a function: assignments, loops, branches, and the function as a whole."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from coterie.engine.direct.expressions import Expressions, Surroundings
from coterie.engine.direct.text import Array, Dialect, NotKnownError, Several, Text, Type, Value, whole

_ANNOTATED: dict[str, Type] = {"int": "i64", "float": "double", "bool": "i1", "None": "void"}

LARGE = 100
"""Functions of more instructions are not taken into those that call them: LLVM takes longer over large functions."""


class _WiderError(Exception):
    """A variable has turned out to need a wider type than was thought: the function is written again."""


def returned_type(definition: ast.FunctionDef) -> Type:
    """What a function says that it returns."""
    return _annotated(definition.returns)


def _annotated(node: ast.expr | None) -> Type:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        return Several(tuple(_annotated(each) for each in node.slice.elts))
    found = _ANNOTATED.get("" if node is None else ast.unparse(node))
    if found is None:
        raise NotKnownError("a function that does not say which number it returns")
    return found


def wanted_types(definition: ast.FunctionDef) -> list[Type | None]:
    """Of the arguments: a number that is said to be a float is one, and a truth value may be a number."""
    arguments = definition.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults or arguments.posonlyargs:
        raise NotKnownError("arguments that may be left out")
    names = ["" if each.annotation is None else ast.unparse(each.annotation) for each in arguments.args]
    return [{"int": "i64", "float": "double"}.get(name) for name in names]


def written(
    name: str,
    definition: ast.FunctionDef,
    kinds: list[Type],
    dialect: Dialect,
    licence: str,
    outside: Mapping[str, Any],
    around: Surroundings,
    linkage: str,
) -> str:
    """The text of a function for arguments of these types."""
    known: dict[str, Type] = {}
    while True:
        try:
            return _Body(definition, kinds, dialect, licence, outside, around, known).written(name, linkage)
        except _WiderError:
            continue


class _Body(Expressions):
    def __init__(
        self,
        definition: ast.FunctionDef,
        kinds: list[Type],
        dialect: Dialect,
        licence: str,
        outside: Mapping[str, Any],
        around: Surroundings,
        known: dict[str, Type],
    ) -> None:
        super().__init__(Text(dialect), licence, outside, around)
        self._definition, self._kinds = definition, kinds
        self._known = known
        self._returns = returned_type(definition)
        self._loops: list[tuple[str, str]] = []  # where `continue` and `break` lead
        stored = [n.id for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        names = [each.arg for each in definition.args.args]
        self.local = {*stored, *names}
        self.nonnegative = _never_below_zero(definition, stored, names)
        self._changing = set(stored)

    def written(self, name: str, linkage: str) -> str:
        """The whole function."""
        dialect, signature = self.text.dialect, []
        for number, (each, its) in enumerate(zip(self._definition.args.args, self._kinds, strict=True)):
            parts = dialect.parts(its)
            names = tuple(f"%a{number}.{i}" for i in range(len(parts)))
            signature += [f"{part} {given}" for part, given in zip(parts, names, strict=True)]
            if each.arg in self._changing:
                self.assign(each.arg, Value(its, names))
            else:
                self.fixed[each.arg] = Value(its, names)
        self._block(self._definition.body)
        if self._returns == "void":
            self.text.end("ret void")
        self.text.end("unreachable")
        attributes = "noinline nounwind" if len(self.text.lines) > LARGE else "nounwind"
        head = f"define {linkage}{dialect.result(self._returns)} @{name}({', '.join(signature)}) {attributes} {{"
        return "\n".join([head, "entry:", *self.text.slots, *self.text.lines, "}"])

    def assign(self, name: str, value: Value) -> None:
        """Give a variable a value; its type is the widest of all its values."""
        if name not in self.slots:
            its = self._known.setdefault(name, value.type)
            self.slots[name] = its, [self.text.slot(part) for part in self.text.dialect.parts(its)]
        its, slots = self.slots[name]
        if value.type != its:
            order = ["i1", "i64", "double"]
            if its not in order or value.type not in order:
                raise NotKnownError(f"{name}, once {its} and once {value.type}")
            if order.index(str(value.type)) > order.index(str(its)):
                self._known[name] = value.type
                raise _WiderError
            value = self.numbers.as_type(value, its)
        for kind, part, slot in zip(self.text.dialect.parts(its), value.parts, slots, strict=True):
            self.text.store(kind, part, slot)

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if not self.text.is_open:
                return  # nothing comes here
            write: Callable[[Any], None] | None = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if write is None:
                raise NotKnownError(type(statement).__name__)
            try:
                write(statement)
            except NotKnownError as error:
                if not error.args[1:]:
                    error.args = (*error.args, f"{self._definition.name}, line {statement.lineno}")
                raise

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # not a docstring
            self.value(node.value)

    def _assign(self, node: ast.Assign) -> None:
        (target,) = node.targets
        if isinstance(target, ast.Tuple):
            found = [self.value(each) for each in node.value.elts] if isinstance(node.value, ast.Tuple) else None
            found = self.items(self.value(node.value)) if found is None else found
            for each, value in zip(target.elts, found, strict=True):
                self._put(each, value)
        else:
            self._put(target, self.value(node.value))

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._put(node.target, self.value(node.value))

    def _put(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.assign(target.id, value)
        elif isinstance(target, ast.Subscript):
            place = self.part(self.value(target.value), target.slice)
            assert isinstance(place.type, Array)
            if place.type.rank == 0:
                self.store(place, value)
            else:
                self._fill(place, value)
        else:
            raise NotKnownError(f"a value for {type(target).__name__}")

    def _fill(self, array: Value, value: Value) -> None:
        """The same number in every element."""
        assert isinstance(array.type, Array)
        if not isinstance(value.type, str):
            raise NotKnownError("an array as the value of a part of another")
        element, kind = array.type.element, self.text.dialect.pointer(array.type.element)

        def one(place: Value) -> None:
            address = self.text.let(f"getelementptr inbounds {element}, {kind} {array.parts[0]}, i64 {place.text}")
            self.store(Value(Array(element, 0), (address,)), value)

        self._repeat(whole(0), self.size(array), whole(1), one)

    def _augassign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            before = self.value(ast.Name(node.target.id, ast.Load()))
            self.assign(node.target.id, self.numbers.binary(node.op, before, self.value(node.value)))
        elif isinstance(node.target, ast.Subscript):
            place = self.part(self.value(node.target.value), node.target.slice)
            if not isinstance(place.type, Array) or place.type.rank > 0:
                raise NotKnownError("arithmetic on a whole array")
            before = self.load(place)
            self.store(place, self.numbers.binary(node.op, before, self.value(node.value)))
        else:
            raise NotKnownError(f"a value for {type(node.target).__name__}")

    def _if(self, node: ast.If) -> None:
        yes, no, done = self.text.name("then"), self.text.name("else"), self.text.name("after")
        self.decide(node.test, yes, no if node.orelse else done)
        self.text.begin(yes)
        self._block(node.body)
        goes_on = self.text.is_open
        self.text.go(done)
        if node.orelse:
            self.text.begin(no)
            self._block(node.orelse)
            goes_on = self.text.is_open or goes_on
            self.text.go(done)
        if goes_on or not node.orelse:
            self.text.begin(done)

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            raise NotKnownError("while … else")
        head, body, done = self.text.name("while"), self.text.name("body"), self.text.name("after")
        self.text.begin(head)
        endless = isinstance(node.test, ast.Constant) and node.test.value is True
        if endless:
            self.text.go(body)
        else:
            self.decide(node.test, body, done)
        self.text.begin(body)
        self._loops.append((head, done))
        self._block(node.body)
        self._loops.pop()
        self.text.go(head)
        if not endless or any(isinstance(each, ast.Break) for each in ast.walk(node)):
            self.text.begin(done)

    def _for(self, node: ast.For) -> None:
        if node.orelse or not isinstance(node.target, ast.Name):
            raise NotKnownError("a loop other than of one variable")
        name = node.target.id
        if isinstance(node.iter, ast.Tuple):
            self._for_each(name, [self.value(each) for each in node.iter.elts], node.body)
            return
        if not isinstance(node.iter, ast.Call) or self.outer(node.iter.func) is not range or node.iter.keywords:
            raise NotKnownError("a loop over something else than a range")
        bounds = [self.numbers.as_type(self.value(each), "i64") for each in node.iter.args]
        step = bounds[2] if len(bounds) == 3 else whole(1)
        first, last = (whole(0), bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])

        def body(place: Value) -> None:
            self.assign(name, place)
            self._block(node.body)

        self._repeat(first, last, step, body)

    def _for_each(self, name: str, values: list[Value], body: list[ast.stmt]) -> None:
        """The body once for each of a few values."""
        done = self.text.name("after")
        for value in values:
            following = self.text.name("next")
            self.assign(name, value)
            self._loops.append((following, done))
            self._block(body)
            self._loops.pop()
            self.text.begin(following)
        self.text.begin(done)

    def _repeat(self, first: Value, last: Value, step: Value, body: Callable[[Value], None]) -> None:
        """for place in range(first, last, step): body(place)."""
        head, inside = self.text.name("for"), self.text.name("body")
        following, done = self.text.name("next"), self.text.name("after")
        counter = self.text.slot("i64")
        self.text.store("i64", first.text, counter)
        self.text.begin(head)
        place = self.text.load("i64", counter)
        self.text.fork(self._goes_on(place, last.text, step), inside, done)
        self.text.begin(inside)
        self._loops.append((following, done))
        body(Value("i64", (place,)))
        self._loops.pop()
        self.text.begin(following)
        self.text.store("i64", self.text.let(f"add nsw i64 {place}, {step.text}"), counter)
        self.text.go(head)
        self.text.begin(done)

    def _goes_on(self, place: str, last: str, step: Value) -> str:
        """Whether a place of a range is before its end."""
        if step.constant == 0:
            raise NotKnownError("a range with steps of 0")
        if step.constant is not None:
            return self.text.let(f"icmp {'slt' if step.constant > 0 else 'sgt'} i64 {place}, {last}")
        upwards = self.text.let(f"icmp sgt i64 {step.text}, 0")
        below, above = self.text.let(f"icmp slt i64 {place}, {last}"), self.text.let(f"icmp sgt i64 {place}, {last}")
        return self.text.let(f"select i1 {upwards}, i1 {below}, i1 {above}")

    def _break(self, node: ast.Break) -> None:
        self.text.go(self._loops[-1][1])

    def _continue(self, node: ast.Continue) -> None:
        self.text.go(self._loops[-1][0])

    def _return(self, node: ast.Return) -> None:
        if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.text.end("ret void")
            return
        found = self.value(node.value)
        if isinstance(self._returns, Several):
            values = [self.numbers.as_type(*each) for each in zip(self.items(found), self._returns.items, strict=True)]
            whole_type, packed = self.text.dialect.result(self._returns), "undef"
            for i, each in enumerate(values):
                packed = self.text.let(f"insertvalue {whole_type} {packed}, {each.type} {each.text}, {i}")
            self.text.end(f"ret {whole_type} {packed}")
        else:
            found = self.numbers.as_type(found, self._returns)
            self.text.end(f"ret {found.type} {found.text}")


def _never_below_zero(definition: ast.FunctionDef, stored: list[str], names: list[str]) -> set[str]:
    """Variables of loops that begin at zero or above, and are nothing else."""
    begun: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(definition):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call):
            bounds = node.iter.args
            upwards = len(bounds) < 3 or (isinstance(bounds[2], ast.Constant) and bounds[2].value in (1, 2))
            first: ast.expr | None = ast.Constant(0) if len(bounds) == 1 else bounds[0]
            begun.setdefault(node.target.id, []).append(first if upwards else None)
    found: set[str] = set()

    def is_fine(node: ast.expr | None) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int) and node.value >= 0
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, (ast.Add, ast.Mult)) and is_fine(node.left) and is_fine(node.right)
        return isinstance(node, ast.Name) and node.id in found

    while True:
        more = {
            name
            for name, firsts in begun.items()
            if name not in names and stored.count(name) == len(firsts) and all(map(is_fine, firsts))
        }
        if more == found:
            return found
        found = more
