"""The shape of the code, executed: who may import whom, and what belongs in one place only."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "cafleet"

FOUNDATIONS = {"models", "errors", "config", "clock", "folders", "runtime", "light_typing", ""}
FACES = {"cli", "web", "mcp_server", "top", "demo"}

MAY_IMPORT: dict[str, set[str]] = {
    **dict.fromkeys(FOUNDATIONS, FOUNDATIONS),
    # Strangers to each other.
    "db": FOUNDATIONS,
    "multiplexer": FOUNDATIONS,
    "agents": FOUNDATIONS,
    # Hands.
    **{room: FOUNDATIONS | {"db", "multiplexer", "agents"} for room in ("delivery", "launch", "assets")},
    # Rules.
    "broker": FOUNDATIONS | {"db", "multiplexer", "agents", "delivery", "launch", "assets"},
    # Duties.
    **{
        room: FOUNDATIONS | {"db", "multiplexer", "agents", "delivery", "launch", "assets", "broker"}
        for room in ("monitor", "doctor")
    },
    # Faces: never each other, the database or the multiplexer.
    **{
        face: FOUNDATIONS | {"agents", "delivery", "launch", "assets", "broker", "monitor", "doctor"}
        for face in FACES
    },
    "__main__": {"cli"},
}
"""By room (a package or module right below `cafleet`): the other rooms that it may import from."""

EXCEPTIONS = {
    ("cli/main.py", "db.database"): "builds the Runtime",
    ("cli/main.py", "multiplexer.select"): "builds the Runtime",
    ("cli/setup.py", "db.migrate"): "creates the database before there is a broker to ask",
    ("cli/import_.py", "db.earlier_format"): "creates the database before there is a broker to ask",
    ("cli/backup.py", "db.backup"): "copies the database whole",
    ("cli/demo.py", "demo.run"): "starts that face, inside its function",
    ("cli/server.py", "web"): "starts that face, inside its function",
    ("cli/mcp.py", "mcp_server"): "starts that face, inside its function",
    ("cli/top.py", "top"): "starts that face, inside its function",
}
"""(file, module or package that it imports from): why."""

LATE_IMPORTS = {
    "cli/main.py": "loads only what the called command needs",
    "cli/demo.py": "starts a face",
    "cli/server.py": "starts a face",
    "cli/mcp.py": "starts a face",
    "cli/top.py": "starts a face",
    "cli/completion.py": "a script needs other modules than a list, which is asked for at each Tab",
    "cli/monitor.py": "starts the loop",
}
"""Files with imports inside functions: why."""

BY_NAME = {
    "multiplexer/select.py": "backends by name",
    "multiplexer/own_pane.py": "only a sender in a herdr pane asks for its server's process",
    "agents/registry.py": "agents by name",
    "delivery/drain.py": "a send that types nothing loads nothing that types",
    "cli/commands.py": "a command loads no other command",
    "config.py": "who has a home folder asks no user database",
    "db/diagnosis.py": "a file in good order loads nothing that mends or copies",
    "db/database.py": "a file in good order loads nothing that mends or copies",
}
"""Files that import modules by name (`import_module`, `__import__`): why."""

PRODUCTS = re.compile(r"\b(claude|codex|opencode)\b", re.IGNORECASE)
PRODUCT_ROOMS = ("agents", "assets", "doctor")


class Import(NamedTuple):
    """One import of a cafleet module."""

    file: str
    module: str
    """Without the leading `cafleet.`; empty for the package itself."""
    line: int
    late: bool
    """Inside a function."""
    checking: bool
    """Only for the type checker."""


def _files() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if "skills" not in path.parts)


def _name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _walk(
    node: ast.AST, *, late: bool = False, checking: bool = False
) -> Iterator[tuple[ast.AST, bool, bool]]:
    """Every node with: is it inside a function, is it inside `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        inside = late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing = checking or (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING")
        yield child, inside, typing
        yield from _walk(child, late=inside, checking=typing)


def _modules(node: ast.AST, package: str) -> list[str]:
    """Full names that an import statement, or a call that imports a constant name, loads."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parent = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
            base = f"{parent}.{base}".rstrip(".")
        # `from package import module` loads the module.
        return [f"{base}.{a.name}" if _is_module(f"{base}.{a.name}") else base for a in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
        name = node.args[0]
        return [str(name.value)] if isinstance(name, ast.Constant) else []
    return []


def _is_module(name: str) -> bool:
    if not name.startswith("cafleet."):
        return False
    path = SOURCE.joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def _imports() -> list[Import]:
    found = []
    for path in _files():
        package = ".".join(("cafleet", *path.relative_to(SOURCE).parts[:-1]))
        for node, late, checking in _walk(_tree(path)):
            for module in _modules(node, package):
                if module == "cafleet" or module.startswith("cafleet."):
                    short = module.removeprefix("cafleet").removeprefix(".")
                    line = getattr(node, "lineno", 0)
                    found.append(Import(_name(path), short, line, late, checking))
    return found


def _room(name: str) -> str:
    """`cli/main.py` and `cli.main` are in `cli`; `errors.py` and `errors` are `errors`."""
    return re.split(r"[./]", name)[0]


def test_there_is_something_to_check() -> None:
    assert len(_files()) > 30
    assert any(found.module == "broker.inbox" for found in _imports())


def test_every_room_has_its_place() -> None:
    rooms = {_room(_name(path)) for path in _files()} - {"__init__"}
    assert rooms <= set(MAY_IMPORT), "a new room needs a line in MAY_IMPORT"


def test_imports_point_down() -> None:
    wrong = [
        f"{found.file}:{found.line} imports cafleet.{found.module}"
        for found in _imports()
        if not found.checking and not _allowed(found)
    ]
    assert wrong == []


def _allowed(found: Import) -> bool:
    source, target = _room(found.file), _room(found.module)
    if source == target or target in MAY_IMPORT[source]:
        return True
    return any(
        found.file == file and (found.module == module or found.module.startswith(f"{module}."))
        for file, module in EXCEPTIONS
    )


def test_imports_inside_functions_are_few_and_have_a_reason() -> None:
    wrong = []
    for path in _files():
        for node, late, _ in _walk(_tree(path)):
            if late and isinstance(node, ast.Import | ast.ImportFrom) and _name(path) not in LATE_IMPORTS:
                wrong.append(f"{_name(path)}:{node.lineno}")
    assert wrong == []


def test_imports_by_name_are_few_and_have_a_reason() -> None:
    wrong = []
    for path in _files():
        for node, _, _ in _walk(_tree(path)):
            if isinstance(node, ast.Call) and re.search(
                r"(import_module|__import__)$", ast.unparse(node.func)
            ):
                name = _name(path)
                if name not in BY_NAME and name not in LATE_IMPORTS:
                    wrong.append(f"{name}:{node.lineno}")
    assert wrong == []


def test_faces_are_started_only_when_they_are_called() -> None:
    for found in _imports():
        if _room(found.file) == "cli" and _room(found.module) in FACES - {"cli"}:
            assert found.late, f"{found.file}:{found.line}"


def test_no_module_imports_itself_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for found in _imports():
        if not found.late and not found.checking and found.module:
            source = found.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            graph.setdefault(source, set()).add(found.module)
    done: set[str] = set()
    for start in graph:
        _visit(start, graph, [], done)


def _visit(module: str, graph: dict[str, set[str]], path: list[str], done: set[str]) -> None:
    assert module not in path, f"a circle: {' -> '.join([*path, module])}"
    if module not in done:
        for target in graph.get(module, ()):
            _visit(target, graph, [*path, module], done)
        done.add(module)


@pytest.mark.parametrize(
    ("pattern", "places", "reason"),
    [
        (
            r"\bos\.(environ|getenv)\b",
            ("config.py", "multiplexer/launcher.py"),
            "settings are read in one place",
        ),
        (
            r"^\s*(import sqlite3|from sqlite3 import (?!Connection$))",
            ("db/",),
            "SQLite is the storage's own",
        ),
        (r"\bprint\(", ("cli/output.py",), "one place writes"),
        (
            r"^\s*(import|from) subprocess\b|\bposix_spawnp?\(|\bos\.(system|popen|fork)\b",
            ("multiplexer/", "agents/probe.py", "doctor/", "demo/"),
            "one gate for child processes",
        ),
        (
            r"^\s*(import|from) argparse\b",
            ("demo/standin/options.py", "cli/completion_script.py"),
            "the command line is described as data",
        ),
    ],
)
def test_one_place_for_one_thing(pattern: str, places: tuple[str, ...], reason: str) -> None:
    wrong = [
        f"{_name(path)}:{number}"
        for path in _files()
        if not _name(path).startswith(places or ("-",))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert wrong == [], reason


def test_products_are_named_where_they_are_known() -> None:
    wrong = [
        f"{_name(path)}: {found.group()}"
        for path in _files()
        if _room(_name(path)) not in PRODUCT_ROOMS
        for found in PRODUCTS.finditer(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


def test_the_package_itself_loads_nothing() -> None:
    for path in SOURCE.rglob("__init__.py"):
        assert not [node for node in ast.walk(_tree(path)) if isinstance(node, ast.Import | ast.ImportFrom)]
