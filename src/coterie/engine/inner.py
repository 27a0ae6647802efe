"""How functions are compiled that only compiled code calls.

numba makes machine code of every function, together with all that it calls, and optimises all of that once more at each
level of calls: for CROC's hundred and sixty functions most of the work was for code that nobody runs. Functions of
this kind are written down by `coterie.engine.direct`, with all that they call, and the optimiser sees them once, inside
of the function that Python calls.

What that compiler does not know, and everything if indices are to be checked, numba types and lowers: the type of an
operation on given types is looked up once for all functions, where numba tries some ten definitions each time that an
element of an array is read.

This uses parts of numba that are not documented. `PIPELINE` is None where they are not as expected: everything is then
compiled as numba does it, which takes longer and gives the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba

from coterie.engine.direct.numba_link import direct_passes
from coterie.engine.direct.unit import REASSOCIATED, Step, steps

_numba: Any = numba


_NOT_NEEDED = frozenset({
    "with_lifting", "inline_closure_likes", "rewrite_semantic_constants", "dead_branch_prune",
    "Rewrite dynamic raises", "make_function_op_code_to_jit_function", "inline_inlinables", "find_literally",
    "literal_unroll", "LiteralPropagation", "inline_overloads", "dump_parfor_diagnostics",
})  # fmt: skip
"""Passes of numba for what no function of this room has: closures, comprehensions, `with`, errors, arguments that may
be None, and functions that are to be inlined before they are typed. Each goes through all variables.
"""


def _pipeline() -> Any:
    core: Any = _numba.core
    compiler, machinery, lowering = core.compiler, core.compiler_machinery, core.typed_passes.NativeLowering
    needed: dict[Any, list[Any]] = {}  # libraries to link for a call, by the library of the function

    class Lowered(lowering):  # type: ignore[misc, valid-type]
        """Lowering without machine code."""

        _name = "coterie_lowered_only"

        def run_pass(self, state: Any) -> bool:
            library = state.library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
            library.finalize = partial(_leave_as_it_is, library)
            given, state.flags = state.flags, state.flags.copy()
            state.flags.no_compile = True
            try:
                super().run_pass(state)
            finally:
                state.flags = given
            lowered = state["cr"]
            # What stands for the function where Python would call it: numba wants a builtin, one for each function.
            place: Any = [].append
            # Whoever calls it links what it calls, too: each library once.
            called = [one for its in vars(library)["_linking_libraries"] for one in needed.get(its, [its])]
            needed[library] = list(dict.fromkeys([library, *called]))
            state.targetctx.insert_user_function(place, lowered.fndesc, needed[library])
            state["cr"] = lowered._replace(cfunc=place)
            return True

    remembering = _remembering_context(core)
    contexts: dict[Any, Any] = {}

    registered = machinery.register_pass(mutates_CFG=True, analysis_only=False)(Lowered)

    class Inner(compiler.CompilerBase):  # type: ignore[misc, name-defined]
        """numba's own passes, but for the last."""

        def __init__(self, typingctx: Any, *details: Any) -> None:
            if typingctx not in contexts:
                contexts[typingctx] = remembering(typingctx)
            super().__init__(contexts[typingctx], *details)

        def define_pipelines(self) -> list[Any]:
            direct = _direct_passes(self.state, Lowered)
            if direct is not None:
                return [direct]
            passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
            kept = [(step, why) for step, why in passes.passes if step.name() not in _NOT_NEEDED]
            passes.passes = [(registered, why) if step is lowering else (step, why) for step, why in kept]
            vars(passes)["_finalized"] = False
            passes.finalize()
            return [passes]

    return Inner


def _kernel_pipeline() -> Any:
    core: Any = _numba.core

    class KernelPipeline(core.compiler.CompilerBase):  # type: ignore[misc]
        """For a function that is called by its address."""

        def define_pipelines(self) -> list[Any]:
            direct = _direct_passes(self.state, core.typed_passes.NativeLowering)
            if direct is not None:
                return [direct]
            return [core.compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)]

    return KernelPipeline


def _direct_passes(state: Any, lowering: Any) -> Any:
    """Those of `coterie.engine.direct`; None if numba is to compile the function: it alone can check indices."""
    if _numba.config.BOUNDSCHECK:
        return None
    step = _steps.get(state.func_id.func) or Step(state.func_id.func, "")
    return direct_passes(_numba.core, state, step, lowering)


_steps: dict[Any, Step] = {}


def _remembering_context(core: Any) -> Any:
    """How to make a typing context that has all of another one, and remembers the types of operations."""
    config = core.targetconfig.ConfigStack
    operation = core.types.Function

    class Remembering(core.typing.Context):  # type: ignore[misc]
        def __init__(self, of: Any) -> None:
            self.__dict__ = of.__dict__  # in place of its own: what is registered later is known to both

        def _resolve_user_function_type(self, func: Any, args: Any, kws: Any, literals: Any = None) -> Any:
            its = self._lookup_global(func)
            its = func if its is None else its
            if not isinstance(its, operation):
                return super()._resolve_user_function_type(func, args, kws, literals)
            flags = config.top_or_none()
            key = its, tuple(args), tuple(dict(kws).items()), None if flags is None else str(flags.fastmath)
            if key not in known:
                known[key] = super()._resolve_user_function_type(func, args, kws, literals)
            return known[key]

    known: dict[Any, Any] = {}
    return Remembering


def _leave_as_it_is(library: Any) -> None:
    """In place of linking, optimising and making machine code of a library."""
    vars(library)["_finalized"] = True


def _pipeline_if_possible(made: Callable[[], Any]) -> Any:
    if _numba.config.DISABLE_JIT:
        return None
    try:
        return made()
    except (ImportError, AttributeError, TypeError):  # another numba
        return None


PIPELINE: Any = _pipeline_if_possible(_pipeline)
KERNEL_PIPELINE: Any = _pipeline_if_possible(_kernel_pipeline)


def inner(function: Callable[..., Any], **options: Any) -> Any:
    """The function for compiled code only: once for all integers, literal or not."""
    if PIPELINE is None:
        return _numba.njit(cache=True, **options)(function)
    found = _numba.njit(pipeline_class=PIPELINE, **options)(function)
    licence = REASSOCIATED if options.get("fastmath") == {REASSOCIATED} else ""
    steps[found] = _steps[function] = Step(function, licence)
    compiler = vars(found)["_compiler"]
    fold = compiler.fold_argument_types

    def without_literals(args: Any, kws: Any) -> tuple[Any, Any]:
        signature, folded = fold(args, kws)
        return signature, tuple(_numba.types.unliteral(each) for each in folded)

    compiler.fold_argument_types = without_literals
    return found
