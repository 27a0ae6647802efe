"""A small compiler for the steps of this room: from their source straight to LLVM, which numba then optimises.

The steps use little of Python: whole numbers, floats and truth values, contiguous arrays, records of arrays, tuples,
loops over ranges, and each other. For that, inferring types and lowering the code as numba does it, in general, took
twice as long as LLVM. Here a function is read once, types are those of the arguments and of what is computed, and every
function is written down once. numba still does all the rest: what Python calls, optimising, the cache.

What it does not know is an error, `coterie.engine.direct.text.NotKnownError`, and numba compiles it instead
(`coterie.engine.inner`); a test holds that nothing of this room needs that. Numbers are the same to the last bit: the
operations, their order and the functions of the C library are those that numba writes.
"""
