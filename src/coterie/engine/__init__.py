"""The state of one run and its O(K·d) updates; the only room that knows numba."""
