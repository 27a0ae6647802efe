"""Where this compiler stands in numba's pipeline: in place of type inference and lowering of a function and its steps.

This uses parts of numba that are not documented, as `coterie.engine.inner` does.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import llvmlite.binding as untyped_binding
import llvmlite.ir as untyped_ir
import numba

from coterie.engine.compile_watch import note_writing
from coterie.engine.direct.text import (
    DATA_WORD,
    HEAD_WORDS,
    Array,
    Dialect,
    NotKnownError,
    Record,
    Several,
    Source,
    Type,
)
from coterie.engine.direct.unit import Step, Unit
from coterie.engine.held import Held

_numba: Any = numba
_ir: Any = untyped_ir
_binding: Any = untyped_binding
_types: Any = _numba.types
_DIALECT = Dialect(typed=str(_ir.IntType(8).as_pointer()) != "ptr")
_ELEMENTS = {_types.float64: "double", _types.int64: "i64", _types.uint8: "i8", _types.int32: "i32"}
_NUMBERS = {_types.float64: "double", _types.int64: "i64", _types.boolean: "i1"}
_RETURNED = {"double": _types.float64, "i64": _types.int64, "i1": _types.boolean, "void": _types.none}


def _array_of(its: Any) -> Array:
    if not isinstance(its, _types.Array) or its.layout != "C" or its.dtype not in _ELEMENTS:
        raise NotKnownError(f"arguments of the type {its}")
    return Array(_ELEMENTS[its.dtype], its.ndim)


def _type_of(its: Any) -> Type:
    if isinstance(its, Held):
        fields = zip(its.of.fields, its.of.types, strict=True)
        return Record(its.of.instance_class.__name__, tuple((name, _array_of(each)) for name, each in fields))
    if isinstance(its, _types.NumPyRandomGeneratorType):
        return Source()
    its = _types.unliteral(its)
    return _NUMBERS[its] if its in _NUMBERS else _array_of(its)


def _returned(its: Type) -> Any:
    if isinstance(its, Several):
        return _types.Tuple([_returned(each) for each in its.items])
    if not isinstance(its, str):
        raise NotKnownError("a function that returns no number")
    return _RETURNED[its]


class Written:
    """A function and its steps, as text, for arguments of numba's types."""

    def __init__(self, step: Step, arguments: Any) -> None:
        self.given = [_type_of(each) for each in arguments]
        function = step.function
        self.name = f"coterie.{function.__module__}.{function.__name__}"
        head = f'target triple = "{_binding.get_process_triple()}"'
        begun = time.thread_time()
        self.text, self.wanted, self._result = Unit(_DIALECT, self.name, head).text(step, self.given)
        note_writing(self.text.count("\n"), time.thread_time() - begun)
        self.returned = _returned(self._result)

    def module(self) -> Any:
        """As LLVM has it."""
        return _binding.parse_assembly(self.text)

    def call(self, context: Any, builder: Any, arguments: Any, types: Any) -> Any:
        """Call it from a function that numba is lowering; what it returns."""
        handed: list[Any] = []
        for value, kind, given, wanted in zip(arguments, types, self.given, self.wanted, strict=True):
            handed += self._parts(context, builder, value, kind, given, wanted)
        result = [_llvm(part) for part in _DIALECT.parts(self._result)]
        returned = (
            _ir.LiteralStructType(result) if isinstance(self._result, Several) else (result or [_ir.VoidType()])[0]
        )
        function = _ir.Function(builder.module, _ir.FunctionType(returned, [each.type for each in handed]), self.name)
        found = builder.call(function, handed)
        if isinstance(self._result, Several):
            items = [builder.extract_value(found, i) for i in range(len(self._result.items))]
            return context.make_tuple(builder, self.returned, items)
        return context.get_dummy_value() if self._result == "void" else found

    def _parts(self, context: Any, builder: Any, value: Any, kind: Any, given: Type, wanted: Type) -> list[Any]:
        if isinstance(given, Array):
            data = builder.extract_value(value, DATA_WORD)
            axes = builder.extract_value(value, HEAD_WORDS)
            return [data, *(builder.extract_value(axes, axis) for axis in range(given.rank))]
        if isinstance(given, Record):
            return [builder.bitcast(value, _ir.IntType(64).as_pointer())]
        if isinstance(given, Source):
            generator = context.make_helper(builder, kind, value).bit_generator
            bits = context.make_helper(builder, _types.NumPyRandomBitGeneratorType("bit_generator"), generator)
            return [bits.state, bits.fnptr_next_uint64, bits.fnptr_next_double]
        if given != wanted:
            return [context.cast(builder, value, kind, _RETURNED[str(wanted)])]
        return [value]


def _llvm(part: str) -> Any:
    return {"double": _ir.DoubleType(), "i64": _ir.IntType(64), "i1": _ir.IntType(1)}[part]


def direct_passes(core: Any, state: Any, step: Step, lowering: Any) -> Any:
    """The passes that compile a function in this way, or None if it has something that is not known here.

    `lowering`: the class of numba's pass that is to lower it, or one that is derived from it.
    """
    try:
        return _passes(core, state, Written(step, state.args), lowering)
    except (NotKnownError, ImportError, AttributeError, TypeError):  # something not known; or another numba
        return None


def _passes(core: Any, state: Any, found: Written, lowering: Any) -> Any:
    passes = core.compiler_machinery.PassManager("coterie_direct")
    passes.add_pass(core.untyped_passes.TranslateByteCode, "analyzing bytecode")
    passes.add_pass(core.untyped_passes.FixupArgs, "fix up args")
    typed, lowered = _passes_of(core, lowering)
    passes.add_pass(typed, "types of the arguments and the result")
    passes.add_pass(lowered, "a call of the text")
    passes.add_pass(core.typed_passes.NoPythonBackend, "nopython mode backend")
    passes.finalize()
    state["coterie_written"] = found
    return passes


_made: dict[Any, Any] = {}


def _passes_of(core: Any, lowering: Any) -> Any:
    if lowering not in _made:
        machinery, lower = core.compiler_machinery, core.lowering.Lower

        class Typed(machinery.FunctionPass):  # type: ignore[misc, name-defined]
            """In place of type inference."""

            _name = f"coterie_direct_types_{len(_made)}"

            def __init__(self) -> None:
                super().__init__()

            def run_pass(self, state: Any) -> bool:
                names = state.func_ir.arg_names
                state.typemap = {f"arg.{name}": each for name, each in zip(names, state.args, strict=True)}
                state.calltypes = {}
                state.return_type = state["coterie_written"].returned
                return True

        class Caller(lower):  # type: ignore[misc, valid-type]
            """A function as numba calls it, which calls the one that is written."""

            def __init__(self, written: Written, *details: Any, **more: Any) -> None:
                super().__init__(*details, **more)
                self._written = written

            def lower_normal_function(self, described: Any) -> None:
                self.setup_function(described)
                context, builder, kinds = self.context, self.builder, described.argtypes
                arguments = self.extract_function_arguments()
                found = self._written.call(context, builder, arguments, kinds)
                self.call_conv.return_value(builder, context.get_return_value(builder, described.restype, found))

            def lower(self) -> None:
                super().lower()
                self.library.add_llvm_module(self._written.module())

        class Called(lowering):  # type: ignore[misc]
            """Lowering of a call."""

            _name = f"coterie_direct_lowering_{len(_made)}"
            _written: Any = None

            @property
            def lowering_class(self) -> Any:
                return partial(Caller, self._written)

            def run_pass(self, state: Any) -> bool:
                self._written = state["coterie_written"]
                return bool(super().run_pass(state))

        register = machinery.register_pass(mutates_CFG=True, analysis_only=False)
        _made[lowering] = register(Typed), register(Called)
    return _made[lowering]
