"""The page: a fixed set of files that is read once, so no path ever reaches the file system."""

import hashlib
from collections.abc import Awaitable, Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""By ending. The system's own table is not asked: a wrong type would stop the page (`nosniff`)."""


class StaticFile(NamedTuple):
    """A file as it is served."""

    content: bytes
    media_type: str
    tag: str
    """The `ETag`."""


def load() -> dict[str, StaticFile]:
    """Every file of the page by its path below `/static/`."""
    return dict(_walk(files("cafleet.web") / "static", ""))


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, StaticFile]]:
    found = []
    for item in folder.iterdir():
        ending = item.name[item.name.rfind(".") :]
        if item.is_dir():
            found += _walk(item, f"{prefix}{item.name}/")
        elif ending in TYPES:
            content = item.read_bytes()
            tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
            found.append((prefix + item.name, StaticFile(content, TYPES[ending], tag)))
    return found


def routes() -> list[Route]:
    """`/` and one route for each file."""
    loaded = load()
    paths = {"/": loaded["index.html"]}
    paths |= {f"/static/{name}": file for name, file in loaded.items() if name != "index.html"}
    return [Route(path, _serve(file), methods=["GET"]) for path, file in paths.items()]


def _serve(file: StaticFile) -> Callable[[Request], Awaitable[Response]]:
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}

    async def handle(request: Request) -> Response:
        # The tag changes with the content, so after an upgrade nobody keeps an old page.
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)

    return handle
