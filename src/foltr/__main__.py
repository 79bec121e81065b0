"""`python -m foltr` is `foltr`."""

from foltr.cli.main import main

if __name__ == "__main__":
    main()
