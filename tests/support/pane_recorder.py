"""A program for a pane: raw mode, bracketed paste on, every byte it is sent goes to a file.

Usage: pane_recorder.py LOG [--title TEXT] [--alternate]. It draws what it gets after a `> `, and
starts a fresh line on Enter. Stand-alone: imports nothing of the project.
"""

import os
import sys
import termios
import tty


def main() -> None:
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    options = sys.argv[2:]
    before = termios.tcgetattr(0)
    tty.setraw(0)
    start = b"\x1b[?2004h"
    if "--alternate" in options:
        start = b"\x1b[?1049h" + start
    if "--title" in options:
        start += b"\x1b]2;" + options[options.index("--title") + 1].encode() + b"\x07"
    os.write(1, start + b"\x1b[2mready\x1b[0m\r\n> ")
    try:
        while data := os.read(0, 65536):
            os.write(log, data)
            shown = data.replace(b"\x1b[200~", b"").replace(b"\x1b[201~", b"")
            os.write(1, shown.replace(b"\r", b"\r\n> "))
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)


if __name__ == "__main__":
    main()
