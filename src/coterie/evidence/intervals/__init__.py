"""What results say about pairs of items at any moment: which means differ, and how far apart they can be.

Everything here is about *stacks*: the results of each item in the order in which they count. Every statement is an
event of the stacks of the one or two items that it names, over all counts at once. So it holds whatever rule decides
what is measured next, whenever anybody looks, and however often (docs/RESOLUTION.md, "From the start"; docs/CROC.md,
section 2).
"""
