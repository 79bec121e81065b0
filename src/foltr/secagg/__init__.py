"""Secure aggregation: the server receives vectors under masks that cancel in their sum.

Sources: Bonawitz et al., "Practical secure aggregation for privacy-preserving machine learning" (CCS 2017); Bell et
al., "Secure single-server aggregation with (poly)logarithmic overhead" (CCS 2020).

    guarantee                how many honest vectors are in every sum, from public numbers alone
    terms                    what server and clients agree on beforehand: terms, registry, and what follows from them
    messages                 what they send
    rules                    what a client decides about a request, one function for each check
    client.join, answer      the client's side: a state, and a pure function of it and a request
    server.aggregate         the server's side of a round, a generator of requests and replies; post sends and reads
    claims, certificate      that more than half of the honest clients signed the same
    unmasking                the server's last step: from masked vectors and opened shares to the sum
    deadlines.conduct        the server's side over any transport, with a deadline for every stage
    in_process.secure_sum    the whole protocol in one process
    cohort                   who is asked in a round; a small cohort is drawn by lot
    draw, draw_server        both sides of that draw: commit, close, reveal, settle
    groups                   a sum in each of several groups, for aggregators that compare groups
    two_servers, aggregator  sums by two aggregators that do not work together; two_in_process runs them
    round_keys               what the two sign ahead: the key that shares of a round are sealed for
    ring                     numbers as fixed-point integers modulo a power of two

The server is malicious and works with a stated share of all registered clients; honest clients follow the protocol.
docs/explanation-secure-aggregation.md has the threat model, what is proved, tested and not protected.
`federation.participant` and `federation.draws` are the client that is deployed: they store what it must not forget.

Differs from the papers: see the modules.
"""
