"""What must hold for the repository as a whole: nothing private in it, one version, a complete wheel."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import cafleet

REPOSITORY = Path(__file__).resolve().parent.parent
NEVER_TRACKED = {".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
EXAMPLE_USERS = {"alice", "bob", "dev", "me", "somebody", "someone", "user", "x", "you"}


def tracked_files() -> list[Path]:
    """Every file that a clone brings; without git, every file that is no cache."""
    if shutil.which("git") and (REPOSITORY / ".git").exists():
        listing = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z"],
            cwd=REPOSITORY,
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        named = [REPOSITORY / name for name in listing.decode().split("\0") if name]
        return [path for path in named if path.is_file()]
    return [
        path
        for path in REPOSITORY.rglob("*")
        if path.is_file() and not NEVER_TRACKED & set(path.relative_to(REPOSITORY).parts)
    ]


def tracked_texts() -> dict[str, str]:
    """The tracked files that are UTF-8, by path from the root."""
    texts = {}
    for path in tracked_files():
        try:
            texts[str(path.relative_to(REPOSITORY))] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return texts


def findings(pattern: str) -> list[str]:
    """`path:line: match` wherever a tracked text matches."""
    expression = re.compile(pattern)
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
        for name, text in tracked_texts().items()
        for match in expression.finditer(text)
    ]


class TestNothingPrivate:
    def test_no_path_of_a_real_home(self) -> None:
        found = findings(rf"/(?:home|Users)/(?!(?:{'|'.join(sorted(EXAMPLE_USERS))})\b)\w[\w.-]*|/root/\.\w+")
        assert not found, "\n".join(found)

    def test_no_path_of_this_checkout(self) -> None:
        found = findings(re.escape(str(REPOSITORY)) + r"\b")
        assert not found, "\n".join(found)

    def test_no_package_registry_is_named_by_its_host(self) -> None:
        hosts = [
            "pypi" + r"\.org",
            "pythonhosted" + r"\.org",
            "registry" + r"\.npmjs",
            "deb" + r"\.debian\.org",
        ]
        found = findings("|".join(hosts))
        assert not found, "\n".join(found)

    def test_no_large_file(self) -> None:
        large = [
            f"{path}: {path.stat().st_size}" for path in tracked_files() if path.stat().st_size > 500_000
        ]
        assert not large, "\n".join(large)

    def test_no_merge_mark_and_no_carriage_return(self) -> None:
        found = findings(r"(?m)^(?:<{7}|>{7}) .*$|\r\n")
        assert not found, "\n".join(found)


class TestVersion:
    def test_stands_in_one_place(self) -> None:
        number = re.escape(cafleet.__version__)
        holders = [
            name
            for name, text in tracked_texts().items()
            if Path(name).suffix in {".py", ".toml", ".cfg"}
            and re.search(rf"version\w*\"? *[=:] *[\"']{number}", text)
        ]
        assert holders == ["src/cafleet/__init__.py"]

    def test_is_what_the_program_says(self) -> None:
        said = subprocess.run(
            [sys.executable, "-m", "cafleet", "--version"], check=True, text=True, stdout=subprocess.PIPE
        ).stdout
        assert said.strip() == f"cafleet {cafleet.__version__}"


class TestChangelog:
    """Keep a Changelog, newest first."""

    KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")

    def headings(self, level: str) -> list[str]:
        text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
        return re.findall(rf"(?m)^{level} (.+)$", text)

    def test_starts_with_what_is_unreleased(self) -> None:
        assert self.headings("##")[0] == "[Unreleased]"

    def test_releases_carry_a_number_and_a_date(self) -> None:
        odd = [
            line
            for line in self.headings("##")[1:]
            if not re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", line)
        ]
        assert not odd

    def test_changes_are_of_the_known_kinds(self) -> None:
        assert self.headings("###")
        assert set(self.headings("###")) <= set(self.KINDS)


class TestDocuments:
    def test_every_relative_link_leads_somewhere(self) -> None:
        broken = []
        for name, text in tracked_texts().items():
            if not name.endswith(".md"):
                continue
            for target in re.findall(r"\]\(([^)#\s]+)", text):
                if "://" in target or target.startswith("mailto:"):
                    continue
                if not (REPOSITORY / name).parent.joinpath(target).exists():
                    broken.append(f"{name}: {target}")
        assert not broken, "\n".join(broken)

    def test_every_test_that_a_page_names_exists(self) -> None:
        named = {
            match
            for text in tracked_texts().values()
            for match in re.findall(r"`(tests/[\w/.]+::[\w:]+)`", text)
        }
        assert named
        missing = []
        for name in sorted(named):
            file, *_, function = name.split("::")
            path = REPOSITORY / file
            definition = rf"^\s*(?:def|class) {function}\("
            if not path.exists() or not re.search(definition, path.read_text(encoding="utf-8"), re.MULTILINE):
                missing.append(name)
        assert not missing, "\n".join(missing)

    def test_make_explains_itself(self) -> None:
        shown = subprocess.run(["make"], cwd=REPOSITORY, check=True, text=True, stdout=subprocess.PIPE).stdout
        for target in ("demo", "test", "lint", "types", "bench", "format"):
            assert re.search(rf"(?m)^  make {target} +\S", shown), f"make {target} is not explained"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built package, as a user installs it."""
    folder = tmp_path_factory.mktemp("wheel")
    (built,) = WheelBuilder(str(REPOSITORY)).build(directory=str(folder), versions=["standard"])
    return Path(built)


class TestWheel:
    def test_holds_every_file_of_the_package(self, wheel: Path) -> None:
        held = set(zipfile.ZipFile(wheel).namelist())
        wanted = {
            str(path.relative_to(REPOSITORY / "src"))
            for path in tracked_files()
            if path.is_relative_to(REPOSITORY / "src")
        }
        assert wanted - held == set()

    def test_holds_nothing_but_the_package(self, wheel: Path) -> None:
        tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
        assert tops == {"cafleet", f"cafleet-{cafleet.__version__}.dist-info"}

    def test_makes_a_database_away_from_the_checkout(self, wheel: Path, tmp_path: Path) -> None:
        unpacked = tmp_path / "unpacked"
        zipfile.ZipFile(wheel).extractall(unpacked)
        path = tmp_path / "data" / "team.db"
        environ = {
            "HOME": str(tmp_path),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(unpacked),
            "PYTHONSAFEPATH": "1",
            "CAFLEET_DATABASE_URL": f"sqlite:///{path}",
        }
        where = subprocess.run(
            [sys.executable, "-c", "import cafleet; print(cafleet.__file__)"],
            env=environ,
            cwd=tmp_path,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
        ).stdout
        assert where.startswith(str(unpacked))
        subprocess.run(
            [sys.executable, "-m", "cafleet", "setup"],
            env=environ,
            cwd=tmp_path,
            check=True,
            stdout=subprocess.PIPE,
        )
        assert path.exists()


class TestSystemPackages:
    """scripts/system-packages.sh on machines where something is missing."""

    SCRIPT = REPOSITORY / "scripts" / "system-packages.sh"

    def tools(self, folder: Path, **programs: str) -> Path:
        """A folder to be the whole PATH: the shell's own tools, and scripts that stand in for others."""
        folder.mkdir()
        for name in ("sh", "cat", "rm", "mktemp", "env", "chmod"):
            found = shutil.which(name)
            assert found is not None
            (folder / name).symlink_to(found)
        for name, body in programs.items():
            program = folder / name.replace("_", "-")
            program.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
            program.chmod(0o755)
        return folder

    def run(self, path: Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["/bin/sh", str(self.SCRIPT), "tmux"],
            env={"PATH": str(path)},
            text=True,
            capture_output=True,
            check=False,
        )

    def test_says_nothing_when_all_is_there(self, tmp_path: Path) -> None:
        done = self.run(self.tools(tmp_path / "bin", tmux="exit 0"))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_installs_as_root_after_an_update(self, tmp_path: Path) -> None:
        folder = tmp_path / "bin"
        put = f"*install*) : >{folder}/tmux; chmod +x {folder}/tmux;;"
        apt = f'echo "$@" >>{tmp_path}/calls; case "$*" in {put} esac'
        done = self.run(self.tools(folder, apt_get=apt, id="echo 0"))
        assert done.returncode == 0, done.stderr
        update, install = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
        assert update.startswith("update")
        assert install.startswith("install -y")
        assert install.endswith(" tmux")

    def test_names_the_one_command_to_run_where_it_may_not_install(self, tmp_path: Path) -> None:
        done = self.run(self.tools(tmp_path / "bin", apt_get="exit 99", id="echo 1000", sudo="exit 1"))
        assert done.returncode == 1
        assert "sudo apt-get install tmux" in done.stderr

    def test_names_what_is_missing_where_there_is_no_apt(self, tmp_path: Path) -> None:
        done = self.run(self.tools(tmp_path / "bin", id="echo 0"))
        assert done.returncode == 1
        assert "tmux" in done.stderr

    def test_shows_what_apt_said_when_it_failed(self, tmp_path: Path) -> None:
        done = self.run(self.tools(tmp_path / "bin", apt_get="echo no space left; exit 100", id="echo 0"))
        assert done.returncode == 1
        assert "no space left" in done.stderr


def test_the_environment_script_says_what_python_it_needs(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "scripts", tmp_path / "scripts")
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    done = subprocess.run(
        ["/bin/sh", str(tmp_path / "scripts" / "environment.sh"), "runtime"],
        env={"PATH": os.environ["PATH"], "PYTHON": str(tmp_path / "no-such-python")},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Python 3.11" in done.stderr
    assert not (tmp_path / ".venv").exists()
