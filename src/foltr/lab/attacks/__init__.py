"""Attacks on the federation: crafted updates and poisoned clicks."""
