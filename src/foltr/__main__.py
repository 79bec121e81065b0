"""`python -m foltr` is `foltr`."""

from foltr.cli.main import main

main()
