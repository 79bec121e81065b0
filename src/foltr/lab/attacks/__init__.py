"""Attacks on the federation: what attackers send in place of what they trained, or click in place of what they like."""
