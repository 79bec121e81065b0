"""`python -m foltr` is `foltr`."""

from foltr.cli import main

main()
