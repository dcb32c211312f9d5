"""The audit: whether the promises of a network were kept, told from its traces alone [contracts.md §6].

It knows nothing of brokers, and nothing of the checkers the simulator has: it reads the traces again, matches again,
and is compared with them. ``local`` is the reference; ``spark`` gives the same answers, of traces of any size.
"""
