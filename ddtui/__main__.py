"""`python -m ddtui`."""

from ddtui.cli import main

if __name__ == "__main__":
    main()
