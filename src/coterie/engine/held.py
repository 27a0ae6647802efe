"""`held`: the state of a run, a named tuple of arrays, put in memory once and then known by its address.

Handed on as it is, a tuple of seventy arrays is hundreds of arguments of every call; packing and unpacking them was
most of what there was to compile. Functions that Python calls (`coterie.engine.compiled.entry`) get it as `Handed`,
whose arrays are looked up in a loop, and hand `held(state)` to the steps, which use it as they would use the tuple.
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
    is_held = isinstance(state, Held)

    def generate(context: Any, builder: Any, found: Any, values: Any) -> Any:
        return values[0] if is_held else _cgutils.alloca_once_value(builder, values[0])

    return (state if is_held else Held(state))(state), generate


def _itself(state: Any) -> Any:
    return state


held: Any = _itself if _numba.config.DISABLE_JIT else _numba.extending.intrinsic(_held)


class Handed:
    """A named tuple of arrays on its way to a function that is compiled. Its class has one type, for numba."""

    __slots__ = ("state",)

    def __init__(self, state: Any) -> None:
        self.state = state


_IN_A_LOOP = hasattr(_numba.core.pythonapi.PythonAPI, "numba_array_adaptor")
"""Whether this numba has what it takes; else it takes in the arrays one by one."""
_handed: dict[type, type[Handed]] = {}


def handed(state: Any) -> Any:
    """A named tuple for a function that is compiled: all of its class have arrays of the same types, in one piece."""
    found = _handed.get(type(state))
    if not _IN_A_LOOP:
        return state
    if found is None:
        name = f"Handed{type(state).__name__}"
        found = _handed[type(state)] = type(name, (Handed,), {"__slots__": (), "_numba_type_": Held(_type_of(state))})
    return found(state)


def _type_of(state: Any) -> Any:
    arrays = [_numba.typeof(array).copy(readonly=False) for array in state]
    return _numba.types.NamedTuple(arrays, type(state))


def _unbox(its: Any, obj: Any, c: Any) -> Any:
    """Look up all arrays of the tuple, one after the other: where their elements are, and how many."""
    types, builder, api = its.of.types, c.builder, c.pyapi
    word, index = _cgutils.ir.IntType(64), c.context.get_value_type(_numba.types.intp)
    sizes = [c.context.get_abi_sizeof(c.context.get_value_type(each)) // 8 for each in types]
    places = [sum(sizes[:i]) for i in range(len(sizes))]
    table = _cgutils.global_constant(
        builder, "coterie.places", _cgutils.ir.Constant(_cgutils.ir.ArrayType(word, len(places)), places)
    )
    address = _cgutils.alloca_once(builder, c.context.get_value_type(its.of))
    words = builder.bitcast(address, word.as_pointer())
    failed = _cgutils.alloca_once_value(builder, _cgutils.false_bit)
    state = api.object_getattr_string(obj, "state")
    item_type = _cgutils.ir.FunctionType(api.pyobj, [api.pyobj, index])
    item = _cgutils.get_or_insert_function(builder.module, item_type, "PyTuple_GetItem")
    with _cgutils.for_range(builder, index(len(types)), intp=index) as loop:
        array = builder.call(item, [state, loop.index])
        place = builder.load(builder.gep(table, [index(0), loop.index], inbounds=True))
        error = api.numba_array_adaptor(array, builder.bitcast(builder.gep(words, [place]), api.voidptr))
        builder.store(builder.or_(builder.load(failed), _cgutils.is_not_null(builder, error)), failed)
    api.decref(state)  # whoever calls still holds it
    is_error = builder.load(failed)
    with builder.if_then(is_error, likely=False):
        api.err_set_string("PyExc_TypeError", f"not a {its.of.instance_class.__name__} of arrays")
    return _numba.core.pythonapi.NativeValue(address, is_error=is_error)


if not _numba.config.DISABLE_JIT:
    _numba.extending.unbox(Held)(_unbox)
