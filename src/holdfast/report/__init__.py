"""One page with every figure and table of the papers that we have reproduced, ours beside theirs (docs/report.md).

Ours come from the results that `holdfast bench … --results` writes and from nowhere else; theirs from `papers.toml`,
where each number stands with the place in the paper that states it.
"""
