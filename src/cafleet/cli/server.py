"""`server`: the web page and its API."""

from cafleet import config
from cafleet.cli.arguments import Command, Values, flag, integer, option
from cafleet.cli.output import Output
from cafleet.errors import UsageError
from cafleet.runtime import Runtime

MAX_PORT = 65535


def server(runtime: Runtime, values: Values, out: Output) -> int:
    """`server`: serve until it is interrupted; the address is written first. Raises UsageError."""
    from cafleet.web import serving  # Heavy: only whoever starts the server pays for it.

    environ = runtime.config.environ
    host = values.optional_text("host") or environ.get("CAFLEET_BROKER_HOST") or config.DEFAULT_BROKER_HOST
    given = values.optional_integer("port")
    port = config.integer_setting(environ, "CAFLEET_BROKER_PORT", config.DEFAULT_BROKER_PORT)
    port = port if given is None else given
    if port > MAX_PORT:
        raise UsageError(f"a port is at most {MAX_PORT} (got {port})")
    allow_remote = values.flag("allow_remote")
    listener = serving.bind(host, port, allow_remote=allow_remote)
    with listener:
        if allow_remote:
            out.warn(
                "other machines may reach this server. It has no login and no encryption: whoever reaches it "
                "reads every message and writes as every Director."
            )

        def announce() -> None:
            out.write(f"cafleet is at {serving.address_of(listener, host)} (Ctrl-C ends it)")
            out.flush()

        serving.serve(runtime.for_another_thread, listener, host, announce)
    return 0


COMMANDS = {
    "server": Command(
        server,
        option("--host", "HOST", "the address to listen on (CAFLEET_BROKER_HOST; 127.0.0.1)"),
        option("--port", "PORT", "the port, 0 for any free one (CAFLEET_BROKER_PORT; 8000)", integer),
        flag("--allow-remote", "listen on an address that other machines can reach"),
        description="The page shows fleets live and sends as their Directors. There is no login, so the "
        "server listens on this machine only unless it is told otherwise.",
        examples=("cafleet server", "cafleet server --port 9000"),
        json=False,
    ),
}
