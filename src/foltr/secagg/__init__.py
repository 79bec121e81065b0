"""Secure aggregation: the server learns a sum of the clients' vectors and nothing else of them.

Sources: Bonawitz et al., "Practical secure aggregation for privacy-preserving machine learning" (CCS 2017); Bell et
al., "Secure single-server aggregation with (poly)logarithmic overhead" (CCS 2020).

    server.secure_sum   the server's side of a round, a generator of requests and replies
    client.answer       the client's side, a pure function of its state and a request
    transport           runs the two against each other in one process
    groups              a sum in each of several groups, for rules that compare groups
    ring                numbers as fixed-point integers modulo a power of two
    terms               what server and clients agree on beforehand

Differs from the papers: see the modules; docs/explanation-secure-aggregation.md has the threat model.
"""
