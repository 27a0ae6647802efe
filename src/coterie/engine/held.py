"""`held`: the state of a run, a named tuple of arrays, put in memory once and then known by its address.

Handed on as it is, a tuple of seventy arrays is hundreds of arguments of every call; packing and unpacking them was
most of what there was to compile. Functions that Python calls (`coterie.engine.compiled.entry`) hand `held(state)` to
the steps, which use it as they would use the tuple.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numba
import numba.extending

_numba: Any = numba  # its stubs do not know these parts
_Type: Any = _numba.types.Type
_Model: Any = _numba.core.datamodel.models.PrimitiveModel
_Attributes: Any = _numba.core.typing.templates.AttributeTemplate
_cgutils: Any = _numba.core.cgutils


class Held(_Type):  # type: ignore[misc]
    """The address of a named tuple, for numba."""

    def __init__(self, of: Any) -> None:
        self.of = of
        short = hashlib.sha256(str(of).encode()).hexdigest()[:12]  # the whole name would be part of every function's
        super().__init__(name=f"Held({of.instance_class.__name__}, {short})")


class _HeldModel(_Model):  # type: ignore[misc]
    def __init__(self, manager: Any, its: Any) -> None:
        super().__init__(manager, its, manager.lookup(its.of).get_value_type().as_pointer())


class _HeldAttributes(_Attributes):  # type: ignore[misc]
    key = Held

    def generic_resolve(self, its: Any, name: str) -> Any:
        fields = its.of.fields
        return its.of.types[fields.index(name)] if name in fields else None


def _get(context: Any, builder: Any, its: Any, address: Any, name: str) -> Any:
    loaded = builder.load(_cgutils.gep_inbounds(builder, address, 0, its.of.fields.index(name)))
    # Nobody changes the tuple itself while it is held: loads may be moved out of loops, whatever is stored there.
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


_numba.core.datamodel.register_default(Held)(_HeldModel)
_numba.core.typing.templates.infer_getattr(_HeldAttributes)
_numba.extending.lower_getattr_generic(Held)(_get)


def _held(typing_context: Any, state: Any) -> tuple[Any, Any]:
    def generate(context: Any, builder: Any, found: Any, values: Any) -> Any:
        return _cgutils.alloca_once_value(builder, values[0])

    return Held(state)(state), generate


def _itself(state: Any) -> Any:
    return state


held: Any = _itself if _numba.config.DISABLE_JIT else _numba.extending.intrinsic(_held)
