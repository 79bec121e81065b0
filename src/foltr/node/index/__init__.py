"""The index of a node: what is below the roots, its words, and how both are kept up to date."""
