"""Who may talk to the server, and what a browser may do with what it is given (SPEC 10).

The server has no login: whoever reaches it acts as the fleet's Director. Three fences keep out what
a local port meets. The `Host` check defeats DNS rebinding (a foreign name that resolves to this
machine). The `Origin` check and the custom header defeat cross-site requests: a page elsewhere can
neither set the header without a preflight, which is never granted, nor be of the same origin. The
response headers keep any text that got into the page from becoming code.
"""

import ipaddress
import re
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FLEET_HEADER = "x-fleet-id"
"""Names the fleet, and is the custom header that a write must carry."""

MAX_BODY_BYTES = 6 * 1024 * 1024 + 64 * 1024
"""A message body of 1 MiB with every byte escaped as `\\u00XX`, and what goes around it."""

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ]
)

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""On every response, errors included."""

_LOOPBACK_NAMES = frozenset({"localhost"})
_PORT = re.compile(r":[0-9]{1,5}\Z")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def is_loopback(name: str) -> bool:
    """`localhost`, an address in 127.0.0.0/8, or `::1`; brackets around an IPv6 address are accepted."""
    if name.lower() in _LOOPBACK_NAMES:
        return True
    address = _address(name)
    return address is not None and address.is_loopback


def host_name(header: str) -> str | None:
    """The name in a `Host` header without its port, in lower case; None where it is not well-formed."""
    name = _PORT.sub("", header.lower())
    if name.startswith("["):
        return name[1:-1] if name.endswith("]") and _address(name) else None
    return name if name and re.fullmatch(r"[a-z0-9._-]+", name) else None


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def host_allowed(header: str, bound_host: str, local_address: str | None) -> bool:
    """Whether a request with this `Host` may be served.

    A loopback name is always fine, whatever its port: a browser sends one only for a page that it
    loaded from this machine, be it through a forwarded port. Besides that the host that the server
    was told to listen on and, for a server that listens on every address, the literal address that
    the connection arrived at: a name that someone else's DNS points here is neither.
    """
    name = host_name(header)
    if name is None:
        return False
    if is_loopback(name) or name == bound_host.lower():
        return True
    wanted, arrived = _address(name), _address(local_address or "")
    return wanted is not None and wanted == arrived


def origin_allowed(origin: str, host: str) -> bool:
    """Whether an `Origin` header names the same host and port as the request's `Host`."""
    scheme, separator, rest = origin.partition("://")
    return bool(separator) and scheme in ("http", "https") and rest.lower() == host.lower()


class Fence:
    """ASGI middleware: refuses what must not reach a route, and puts `HEADERS` on every response."""

    def __init__(self, app: ASGIApp, *, bound_host: str) -> None:
        self._app = app
        self._bound_host = bound_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, guarded)
        else:
            status, detail = refusal
            # The body, if any, is not read: the connection cannot be used again.
            response = JSONResponse({"detail": detail}, status, headers={"Connection": "close"})
            await response(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        host = single(headers.getlist("host"))
        server = scope.get("server")
        if host is None or not host_allowed(host, self._bound_host, server[0] if server else None):
            return 421, "this server does not answer for that host"
        origins = headers.getlist("origin")
        if origins and not origin_allowed(single(origins) or "", host):
            return 403, "requests from other origins are not allowed"
        if scope["method"] not in _SAFE_METHODS:
            if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
                return 403, "requests from other sites are not allowed"
            if FLEET_HEADER not in headers:
                return 400, "header X-Fleet-Id is missing"
        length = headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length[:19]) > MAX_BODY_BYTES:
            return 413, f"the request is larger than {MAX_BODY_BYTES} bytes"
        return None


def single(values: Iterable[str]) -> str | None:
    """The only one of `values`; None when there is none or more than one."""
    found = list(values)
    return found[0] if len(found) == 1 else None
