"""The demo: a manager terminates on the local AWS, and the real function drains it and cleans up after it.

__main__.py     the play, and the checks at its end
world.py        what there is before: a terminating manager, a live one, a neighbour environment
narrator.py     what is printed while it happens
report.py       the table, the counts, the expectations
"""
