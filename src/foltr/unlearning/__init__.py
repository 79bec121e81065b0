"""Unlearning a client: what it taught the ranker is taken out again.

    request      what can be asked for, refused before anything is computed
    rounds       federated averaging as `federation.rounds` does it, with an attacker and kept updates
    history      the kept updates, on disk and back
    replay       calibrated replay (S2 chapter 6): cheap, and not exact
    logs         what people were shown and clicked, and learning from it again: exact (`recording` writes it)
    shards       independent sub-federations, of which one is learnt again: exact
    statistics   sums for a pairwise ridge ranker, from which a client's are subtracted: exact
    residual     how much of the leaver is left
    cost         steps, messages, bytes and seconds
    episode      the evaluation by poisoning, of calibrated replay; `exact` does the same for the exact ways

What no way removes: the others clicked on lists that the leaver had helped to shape. Exact means equal to training from
scratch on the remaining clients' logs as they are; only shards keep a leaver from shaping what other shards see.
"""
