"""Entry point of the command ``triax`` that imports nothing at first, so that a Ctrl-C is heard while it loads."""

import signal
import sys
from types import FrameType


def main() -> None:
    """Load triax, which takes a second, and run the command; exits with 130 after a Ctrl-C until then.

    Raised inside of an import, ``KeyboardInterrupt`` may be swallowed by a callback that runs there.
    """
    heard = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    before = signal.signal(signal.SIGINT, hear)
    from triax.cli import main as run

    signal.signal(signal.SIGINT, before)
    if heard:
        sys.stderr.write("triax: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
