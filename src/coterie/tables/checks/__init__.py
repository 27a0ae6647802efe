"""What the rows of a table say about themselves: their spread, their order, values and items that do not fit."""
