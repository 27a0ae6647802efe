"""CROC's rule where features are measured one by one, line by line: single features, noise of size 1, one worker."""
