"""Many filters against history: how often each matched, what covers what, what one more would cost (docs/cost.md).

The history is divided into stretches, and each is tallied by the matching index of the brokers. The engines differ in
who takes the stretches: this process one after the other, or the workers of Spark.
"""
