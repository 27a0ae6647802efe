"""How functions are compiled that only compiled code calls.

numba makes machine code of every function, together with all that it calls, and optimises all of that once more at each
level of calls: for CROC's hundred and sixty functions most of the work was for code that nobody runs. Functions of
this kind are typed and lowered only; the optimiser sees them once, inside of the function that Python calls.

This uses parts of numba that are not documented. `PIPELINE` is None where they are not as expected: everything is then
compiled as numba does it, which takes longer and gives the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba

_numba: Any = numba


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

    registered = machinery.register_pass(mutates_CFG=True, analysis_only=False)(Lowered)

    class Inner(compiler.CompilerBase):  # type: ignore[misc, name-defined]
        """numba's own passes, but for the last."""

        def define_pipelines(self) -> list[Any]:
            passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.passes = [(registered, why) if step is lowering else (step, why) for step, why in passes.passes]
            vars(passes)["_finalized"] = False
            passes.finalize()
            return [passes]

    return Inner


def _leave_as_it_is(library: Any) -> None:
    """In place of linking, optimising and making machine code of a library."""
    vars(library)["_finalized"] = True


def _pipeline_if_possible() -> Any:
    if _numba.config.DISABLE_JIT:
        return None
    try:
        return _pipeline()
    except (ImportError, AttributeError, TypeError):  # another numba
        return None


PIPELINE: Any = _pipeline_if_possible()


def inner(function: Callable[..., Any], **options: Any) -> Any:
    """The function for compiled code only: once for all integers, literal or not."""
    if PIPELINE is None:
        return _numba.njit(cache=True, **options)(function)
    found = _numba.njit(pipeline_class=PIPELINE, **options)(function)
    compiler = vars(found)["_compiler"]
    fold = compiler.fold_argument_types

    def without_literals(args: Any, kws: Any) -> tuple[Any, Any]:
        signature, folded = fold(args, kws)
        return signature, tuple(_numba.types.unliteral(each) for each in folded)

    compiler.fold_argument_types = without_literals
    return found
