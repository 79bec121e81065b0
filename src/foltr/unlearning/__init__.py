"""Unlearning a client: what it taught the ranker is taken out again.

    replay       calibrated replay (S2 chapter 6) of a history of updates: cheap, and not exact
    logs         what people were shown and clicked, and learning from it again: exact
    shards       independent sub-federations, of which one is learnt again: exact
    statistics   sums for a pairwise ridge ranker, from which a client's are subtracted: exact
    evaluation   the evaluation by poisoning, the residual, and costs

What no method removes: the others clicked on lists that the forgotten client had helped to shape. Exact means equal to
training from scratch on the remaining clients' logs as they are; only shards keep a client from shaping what other
shards see.
"""
