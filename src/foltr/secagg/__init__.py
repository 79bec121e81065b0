"""Secure aggregation: the server receives vectors under masks that cancel in their sum.

Sources: Bonawitz et al., "Practical secure aggregation for privacy-preserving machine learning" (CCS 2017); Bell et
al., "Secure single-server aggregation with (poly)logarithmic overhead" (CCS 2020).

    client.join, answer      the client's side: a state, and a pure function of it and a request
    server.aggregate         the server's side of a round, a generator of requests and replies
    in_process.secure_sum    the whole protocol in one process
    groups                   a sum in each of several groups, for aggregators that compare groups
    two_servers, aggregator  sums by two aggregators that do not work together; two_in_process runs them
    ring                     numbers as fixed-point integers modulo a power of two
    messages                 what server and clients agree on beforehand, and what they send

Claimed against an honest-but-curious server only: one that follows the protocol and tries to learn from what it sees,
colluding with a share of the clients. docs/explanation-secure-aggregation.md has the threat model.

Differs from the papers: see the modules.
"""
