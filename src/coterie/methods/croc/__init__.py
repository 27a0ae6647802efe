"""CROC for K groups (docs/CROC.md): `native/croc` decides; here are its face, its side of the contract, its proofs."""
