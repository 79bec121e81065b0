"""Unlearning a client: removing its contribution from the ranker.

    replay       calibrated replay (S2 chapter 6) of a history of updates: cheap, and not exact; costs
    logs         click logs, and learning from them again: exact
    shards       independent sub-federations, of which one is learnt again: exact
    statistics   sums for a pairwise ridge ranker, from which a client's are subtracted: exact
    evaluation   the evaluation by poisoning, and the residual

No method removes one influence: the others clicked on lists of models that the forgotten client had trained too. Exact
means equal to training from scratch on the remaining clients' logs; only with shards a client does not influence the
lists of other shards.
"""
