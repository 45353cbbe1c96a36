"""The program on a machine whose coding agents are scripts."""

import json
from pathlib import Path
from typing import Any

from tests.support.program import Program, Result

VERSIONS = {"claude": "2.1.332 (Claude Code)", "codex": "codex-cli 0.171.0", "opencode": "1.18.33"}


class Machine:
    """A home, and a folder of programs that comes first on PATH."""

    def __init__(self, home: Path, programs: Path) -> None:
        self.program = Program(home)
        self.home, self.programs = home, programs
        # Where the real ones may be installed on the machine that runs the tests does not matter.
        self.program.environ["PATH"] = (
            f"{programs}:{Path(self.program.environ['PATH'].split(':')[0])}:/usr/bin:/bin"
        )

    def install(self, name: str, script: str | None = None) -> None:
        """A program that answers `--version`, or runs `script`."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script or f'echo {VERSIONS[name]!r}'}\n")
        path.chmod(0o755)

    def write(self, name: str, text: str) -> Path:
        """A file below the home folder."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def doctor(self, *arguments: str, **environ: str) -> Result:
        return self.program.run("doctor", *arguments, environ=environ)

    def sections(self, *arguments: str, code: int | None = None, **environ: str) -> dict[str, dict[str, Any]]:
        """What `--json` says, by section name; `code`: the exit code to expect."""
        done = self.doctor(*arguments, "--json", **environ)
        assert done.stderr == ""
        report = json.loads(done.stdout)
        assert done.code == (1 if report["issues"] else 0)
        assert code is None or done.code == code
        return {section["name"]: section for section in report["sections"]}
