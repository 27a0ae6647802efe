"""Types and values as LLVM has them, and the text of a function while it is written."""

from __future__ import annotations

import struct
from typing import NamedTuple, TypeAlias


class NotKnownError(Exception):
    """Something that this compiler does not know."""


class Array(NamedTuple):
    """A contiguous array. Its parts are the address of the first element, and the length of each axis."""

    element: str
    rank: int


class Record(NamedTuple):
    """A named tuple of arrays that lies in memory as numba has it. Its part is the address."""

    name: str
    fields: tuple[tuple[str, Array], ...]

    def place_of(self, field: str) -> tuple[int, Array]:
        """In which 8-byte word an array begins, and its type."""
        word = 0
        for name, array in self.fields:
            if name == field:
                return word, array
            word += HEAD_WORDS + 2 * array.rank
        raise NotKnownError(f"{self.name} has no {field}")


class Several(NamedTuple):
    """A tuple. Its parts are those of its items, one after the other."""

    items: tuple[Type, ...]


class Source(NamedTuple):
    """A generator of random numbers. Its parts: the address of its state, of `next_uint64` and of `next_double`."""


Type: TypeAlias = "str | Array | Record | Several | Source"
"""A string is a number, as LLVM calls it: "i64", "double", "i1"; or "void"."""

HEAD_WORDS = 5
"""Words of numba's array before its shape: two owners, the number and size of elements, their address."""
DATA_WORD = 4


class Value(NamedTuple):
    """A value: its type and what stands for its parts in the text. `nonnegative`: it cannot be below zero."""

    type: Type
    parts: tuple[str, ...]
    nonnegative: bool = False

    @property
    def text(self) -> str:
        """Of a value with one part."""
        (part,) = self.parts
        return part

    @property
    def constant(self) -> int | None:
        """The whole number that it always is, if that is known."""
        if self.type == "i64" and self.text.lstrip("-").isdigit():
            return int(self.text)
        return None


def whole(number: int) -> Value:
    """A constant whole number."""
    return Value("i64", (str(number),), number >= 0)


def real(number: float) -> Value:
    """A constant float, exactly."""
    return Value("double", (f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}",))


def truth(fact: bool) -> Value:
    """A constant truth value."""
    return Value("i1", ("true" if fact else "false",))


class Dialect(NamedTuple):
    """How this LLVM writes pointers: with the type of what they point to, or without."""

    typed: bool

    def pointer(self, to: str) -> str:
        """The type of a pointer."""
        return f"{to}*" if self.typed else "ptr"

    def parts(self, its: Type) -> list[str]:
        """The types of a value's parts."""
        if isinstance(its, str):
            return [] if its == "void" else [its]
        if isinstance(its, Array):
            return [self.pointer(its.element)] + its.rank * ["i64"]
        if isinstance(its, Record):
            return [self.pointer("i64")]
        if isinstance(its, Several):
            return [part for item in its.items for part in self.parts(item)]
        return 3 * ["i64"]

    def result(self, its: Type) -> str:
        """The type of what a function returns."""
        parts = self.parts(its)
        if isinstance(its, Several):
            return "{" + ", ".join(parts) + "}"
        return parts[0] if parts else "void"

    def handed_array(self, rank: int) -> str:
        """An array of floats as numba's functions get it, by value."""
        any_pointer = self.pointer("i8")
        axes = f"[{rank} x i64]"
        return f"{{{any_pointer}, {any_pointer}, i64, i64, {self.pointer('double')}, {axes}, {axes}}}"


class Text:
    """Instructions of one function, in blocks."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.slots: list[str] = []
        self.lines: list[str] = []
        self.is_open = True  # whether the present block still goes on
        self._names = 0

    def name(self, kind: str = "t") -> str:
        """A name that is not used yet."""
        self._names += 1
        return f"{kind}{self._names}"

    def do(self, instruction: str) -> None:
        """An instruction without a result."""
        self.lines.append("  " + instruction)

    def let(self, instruction: str) -> str:
        """An instruction, and the name of its result."""
        found = "%" + self.name()
        self.lines.append(f"  {found} = {instruction}")
        return found

    def slot(self, of: str) -> str:
        """Room for a number, which may change; LLVM turns it into registers."""
        found = "%" + self.name("s")
        self.slots.append(f"  {found} = alloca {of}")
        return found

    def load(self, of: str, address: str, more: str = "") -> str:
        """What is at an address."""
        return self.let(f"load {of}, {self.dialect.pointer(of)} {address}{more}")

    def store(self, of: str, what: str, address: str) -> None:
        """Put it there."""
        self.do(f"store {of} {what}, {self.dialect.pointer(of)} {address}")

    def begin(self, block: str) -> None:
        """The block of this name begins; the one before goes on there, if it has not ended."""
        if self.is_open:
            self.do(f"br label %{block}")
        self.lines.append(f"{block}:")
        self.is_open = True

    def go(self, block: str) -> None:
        """The present block ends, and goes on elsewhere."""
        if self.is_open:
            self.do(f"br label %{block}")
            self.is_open = False

    def fork(self, condition: str, yes: str, no: str) -> None:
        """The present block ends, and goes on in one of two others."""
        if self.is_open:
            self.do(f"br i1 {condition}, label %{yes}, label %{no}")
            self.is_open = False

    def end(self, instruction: str) -> None:
        """The present block ends with this."""
        if self.is_open:
            self.do(instruction)
            self.is_open = False
