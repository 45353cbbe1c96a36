"""Fixtures of the multiplexer tests."""

import os
import sys
from pathlib import Path

import pytest

from cafleet.multiplexer.base import LaunchSpec


@pytest.fixture
def launch(tmp_path: Path) -> LaunchSpec:
    """A program that stays until it is ended."""
    return LaunchSpec(
        argv=[sys.executable, "-S", "-c", "import time; print('started', flush=True); time.sleep(100000)"],
        environ={"PATH": os.environ["PATH"]},
        scrub=[],
        directory=str(tmp_path),
        title="a member",
        private_directory=str(tmp_path / "data" / "launch"),
    )
