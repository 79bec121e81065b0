"""Attacks on ourselves: what the one who reads the messages can find out.

    choice       one table of a spec: whether and how clicks are guessed
    guess        five ways to guess clicks from one message, and how good the guesses are (S4)
    membership   was this client in the sum?
    worlds       for each mechanism two neighbouring worlds, as far apart as they can be
    epsilon      a lower bound on epsilon from repeated trials in two worlds

Attacks are pure functions of arrays. What an attack finds is a lower bound: a better attack may find more.
"""
