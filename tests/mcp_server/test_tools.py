"""Every tool and resource, through the SDK's own client and a real process."""

import json
from contextlib import closing
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from tests.support.mcp_process import content, failure, talk
from tests.support.program import Program, Team, seed_team

from cafleet.db import members
from cafleet.db.database import Database
from cafleet.mcp_server.answers import MAX_CHARACTERS, MAX_ROWS
from cafleet.mcp_server.arguments import MAX_WAIT_SECONDS, WaitForMessage

MODES = ("legacy", "auto")
"""The handshake that today's clients do, and the newest protocol."""
TOOLS = [
    "send_message",
    "broadcast",
    "poll_inbox",
    "wait_for_message",
    "ack_message",
    "show_message",
    "list_members",
    "fleet_status",
]


async def _call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """A success. The client itself checks it against the tool's output schema."""
    return content(await client.call_tool(tool, arguments))


@pytest.mark.parametrize("mode", MODES)
def test_a_member_works_with_every_tool(program: Program, team: Team, mode: str) -> None:
    ann, bob = team.member_ids

    async def scenario(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        sent = await _call(client, "send_message", to_member_ids=[bob, ann, bob], text="hi")
        assert sent == {
            "results": [
                {
                    "to_member_id": bob,
                    "message_id": 1,
                    "notification": {"state": "skipped", "reason": f"member {bob} has no pane"},
                },
                {
                    "to_member_id": ann,
                    "message_id": 2,
                    "notification": {"state": "skipped", "reason": "a message to oneself is not typed"},
                },
            ]
        }
        told = await _call(client, "broadcast", text="all of you")
        assert told == {"message_id": 3, "recipients": 2, "notified": 0}

        inbox = await _call(client, "poll_inbox")
        (message,) = inbox.pop("messages")
        assert inbox == {"member_id": ann, "unread": 1}
        assert (message["message_id"], message["from_member_id"], message["from_name"]) == (2, ann, "ann")
        assert (message["text"], message["status_state"]) == ("hi", "input_required")
        waited = await _call(client, "wait_for_message", timeout_seconds=0)
        assert [found["message_id"] for found in waited["messages"]] == [2]

        assert await _call(client, "ack_message", message_ids=[2]) == {"acknowledged": [2]}
        assert (await _call(client, "poll_inbox")) == {"member_id": ann, "messages": [], "unread": 0}
        assert (await _call(client, "show_message", message_id=2))["status_state"] == "completed"
        summary = await _call(client, "show_message", message_id=3)
        assert (summary["type"], summary["to_member_id"]) == ("broadcast_summary", None)

        listed = await _call(client, "list_members")
        assert [(m["member_id"], m["name"], m["kind"]) for m in listed["members"]] == [
            (team.director_id, "director", "director"),
            (ann, "ann", "member"),
            (bob, "bob", "member"),
        ]
        assert listed["members"][2]["unread"] == 2
        (state,) = (await _call(client, "fleet_status"))["fleets"]
        assert (state["fleet_id"], state["members"], state["unread"]) == (team.fleet_id, 3, 3)
        assert state["monitor"] == {"running": False}
        assert state["attention"][0]["pane"] == "gone"

    talk(program, "--member-id", str(ann), scenario=scenario, mode=mode)


def test_without_an_identity_the_tools_ask_for_it(program: Program, team: Team) -> None:
    ann, bob = team.member_ids

    async def scenario(client: Client) -> None:
        await _call(client, "send_message", from_member_id=ann, to_member_ids=[bob], text="from ann")
        await _call(client, "broadcast", from_member_id=bob, text="from bob")
        inbox = await _call(client, "poll_inbox", member_id=bob)
        assert [found["text"] for found in inbox["messages"]] == ["from ann"]
        waited = await _call(client, "wait_for_message", member_id=ann)
        assert [found["text"] for found in waited["messages"]] == ["from bob"]
        assert len((await _call(client, "list_members", fleet_id=team.fleet_id))["members"]) == 3
        for arguments in ({}, {"fleet_id": team.fleet_id}):
            states = await _call(client, "fleet_status", **arguments)
            assert [state["fleet_id"] for state in states["fleets"]] == [team.fleet_id]

    talk(program, scenario=scenario)


def test_who_sends_is_in_the_schema_only_where_it_is_open(program: Program, team: Team) -> None:
    shapes: list[dict[str, list[str]]] = []

    async def scenario(client: Client) -> None:
        tools = (await client.list_tools()).tools
        shapes.append({tool.name: sorted(tool.input_schema["properties"]) for tool in tools})
        for tool in tools:
            assert tool.input_schema["additionalProperties"] is False
            assert tool.output_schema is not None
            assert tool.description is not None
            assert len(tool.description) < 250

    talk(program, scenario=scenario)
    talk(program, "--member-id", "2", scenario=scenario)
    open_, fixed = shapes
    added = {name: sorted(set(open_[name]) - set(fixed[name])) for name in TOOLS}
    assert added == {
        "send_message": ["from_member_id"],
        "broadcast": ["from_member_id"],
        "poll_inbox": ["member_id"],
        "wait_for_message": ["member_id"],
        "ack_message": [],
        "show_message": [],
        "list_members": ["fleet_id"],
        "fleet_status": ["fleet_id"],
    }


def test_errors_are_those_of_the_command_line(program: Program, team: Team) -> None:
    ann = str(team.member_ids[0])
    program.run("message", "send", "--from", ann, "--to", ann, "--key", "k", "one")
    program.run("message", "ack", "1")
    me = ("--from", ann, "--to")
    cases: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
        ("send_message", {"to_member_ids": [99], "text": "x"}, ("send", *me, "99", "x")),
        (
            "send_message",
            {"to_member_ids": [int(ann)], "text": "two", "key": "k"},
            ("send", *me, ann, "--key", "k", "two"),
        ),
        ("send_message", {"to_member_ids": [1], "text": " \n"}, ("send", *me, "1", " \n")),
        ("broadcast", {"text": ""}, ("broadcast", "--from", ann, "")),
        ("ack_message", {"message_ids": [1]}, ("ack", "1")),
        ("ack_message", {"message_ids": [99]}, ("ack", "99")),
        ("show_message", {"message_id": 99}, ("show", "99")),
    ]

    async def scenario(client: Client) -> None:
        for tool, arguments, command in cases:
            expected = program.run("message", *command)
            assert expected.code == 1
            assert f"Error: {failure(await client.call_tool(tool, arguments))}\n" == expected.stderr

    talk(program, "--member-id", ann, scenario=scenario)


def test_a_part_that_fails_leaves_the_others(program: Program, team: Team) -> None:
    async def scenario(client: Client) -> None:
        sent = await _call(client, "send_message", to_member_ids=[99, 3], text="hi")
        assert sent["results"][0] == {"to_member_id": 99, "error": "member 99 not found"}
        assert sent["results"][1]["message_id"] == 1
        acked = await _call(client, "ack_message", message_ids=[1, 99, 1])
        assert acked == {
            "acknowledged": [1],
            "failed": [{"message_id": 99, "error": "message 99 not found"}],
        }

    talk(program, "--member-id", "2", scenario=scenario)


WHOLE = "Input should be a valid integer"
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("send_message", {"to_member_ids": ["3"], "text": "x"}, f"to_member_ids.0: {WHOLE}"),
    ("send_message", {"to_member_ids": [3.0], "text": "x"}, f"to_member_ids.0: {WHOLE}"),
    ("send_message", {"to_member_ids": [True], "text": "x"}, f"to_member_ids.0: {WHOLE}"),
    ("send_message", {"to_member_ids": 3, "text": "x"}, "to_member_ids: Input should be a valid list"),
    ("send_message", {"to_member_ids": [], "text": "x"}, "to_member_ids: List should have at least 1"),
    ("send_message", {"to_member_ids": [0], "text": "x"}, "to_member_ids.0: Input should be greater"),
    ("send_message", {"to_member_ids": [2**63], "text": "x"}, "to_member_ids.0: Input should be less"),
    ("send_message", {"to_member_ids": [3]}, "text: Field required"),
    ("send_message", {"to_member_ids": [3], "text": None}, "text: Input should be a valid string"),
    ("send_message", {"to_member_ids": [3], "text": "x", "from_member_id": 1}, "from_member_id: Extra input"),
    ("poll_inbox", {"limit": 0}, "limit: Input should be greater than"),
    ("poll_inbox", {"limit": 10_000}, "limit: Input should be less than"),
    ("wait_for_message", {"timeout_seconds": "5"}, "timeout_seconds: Input should be a valid number"),
    ("wait_for_message", {"timeout_seconds": -1}, "timeout_seconds: Input should be greater than"),
    ("ack_message", {"message_ids": [1.5]}, f"message_ids.0: {WHOLE}"),
    ("show_message", {}, "message_id: Field required"),
    ("list_members", {"fleet_id": 1}, "fleet_id: Extra inputs"),
]


def test_nothing_is_coerced(program: Program, team: Team) -> None:
    async def scenario(client: Client) -> None:
        for tool, arguments, complaint in REFUSED:
            assert failure(await client.call_tool(tool, arguments)).startswith(complaint)
        many = {"to_member_ids": ["x" * 1000] * 90, "text": "x"}
        text = failure(await client.call_tool("send_message", many))
        assert text.endswith("\n85 more")
        assert len(text) < 400
        assert (await _call(client, "list_members"))["members"][2].get("unread", 0) == 0

    talk(program, "--member-id", "2", scenario=scenario)


TEXTS = (
    "a\r\nb\r\n  \n",
    "a\x1b[201~\rrm -rf x\x07",
    "日本語 👩‍👩‍👧 é \u2028 \u200f",
    "--help",
    "[7 | from:1 | x]\n\u00a0[8 | from:1 | y]",
)


def test_a_text_arrives_exactly(program: Program, team: Team) -> None:
    async def scenario(client: Client) -> None:
        for text in TEXTS:
            await _call(client, "send_message", to_member_ids=[2], text=text)
        found = (await _call(client, "poll_inbox"))["messages"]
        assert [message["text"] for message in found] == list(reversed(TEXTS))

    talk(program, "--member-id", "2", scenario=scenario)
    stored = json.loads(program.run("message", "poll", "2", "--json").stdout)
    assert [message["text"] for message in stored] == list(reversed(TEXTS))


def test_a_text_that_is_refused_is_not_stored(program: Program, team: Team) -> None:
    async def scenario(client: Client) -> None:
        for text, complaint in (
            ("a\0b", "message text contains a NUL character"),
            ("x" * (2**20 + 1), "message text has 1048577 bytes; at most 1048576 (1 MiB) are allowed"),
        ):
            assert (
                failure(await client.call_tool("send_message", {"to_member_ids": [2], "text": text}))
                == complaint
            )
        assert (await _call(client, "poll_inbox"))["unread"] == 0

    talk(program, "--member-id", "2", scenario=scenario)


def test_a_key_makes_a_send_repeatable(program: Program, team: Team) -> None:
    async def scenario(client: Client) -> None:
        first = await _call(client, "send_message", to_member_ids=[3], text="x", key="once")
        again = await _call(client, "send_message", to_member_ids=[3], text="x", key="once")
        assert again["results"][0].pop("repeated") is True
        assert again == first

    talk(program, "--member-id", "2", scenario=scenario)


def test_a_long_text_is_read_in_parts(program: Program, team: Team) -> None:
    text = "".join(f"{number:07}\n" for number in range(2**17))
    assert len(text) == 2**20

    async def scenario(client: Client) -> None:
        await _call(client, "send_message", to_member_ids=[2], text=text)
        (message,) = (await _call(client, "poll_inbox"))["messages"]
        assert len(message["text"]) == MAX_CHARACTERS
        found = message["text"]
        while message.get("more_characters"):
            assert len(found) + message["more_characters"] == len(text)
            message = await _call(client, "show_message", message_id=1, offset=len(found))
            found += message["text"]
        assert found == text

    talk(program, "--member-id", "2", scenario=scenario)


@pytest.mark.parametrize("fixed", [False, True], ids=["open", "fixed"])
def test_a_long_list_is_read_in_parts(program: Program, team: Team, fixed: bool) -> None:
    fleet = seed_team(program, *(f"m{number}" for number in range(MAX_ROWS + 20)), fleet="crowd")
    everybody = [fleet.director_id, *fleet.member_ids]

    async def scenario(client: Client) -> None:
        which = {} if fixed else {"fleet_id": fleet.fleet_id}
        first = await _call(client, "list_members", **which)
        found = [member["member_id"] for member in first["members"]]
        assert found == everybody[:MAX_ROWS]
        assert first["more"] == 21
        assert first["hint"] == f"21 more: call again with after_member_id={found[-1]}"
        rest = await _call(client, "list_members", after_member_id=found[-1], **which)
        assert found + [member["member_id"] for member in rest["members"]] == everybody
        assert "more" not in rest

    talk(program, *(["--member-id", str(fleet.director_id)] if fixed else []), scenario=scenario)


def test_the_state_of_many_fleets_is_bounded(program: Program, team: Team) -> None:
    """Every pane is gone, and an answer tells of so many only."""
    crowd = seed_team(program, *(f"m{number}" for number in range(MAX_ROWS)), fleet="crowd")
    with closing(Database(str(program.database_path))) as database, database.write() as connection:
        director = members.get(connection, crowd.director_id)
        assert director is not None
        assert director.placement is not None
        for member_id in crowd.member_ids:
            placement = director.placement._replace(member_id=member_id, mux_pane_id=f"%9{member_id}")
            members.insert_placement(connection, placement)

    async def scenario(client: Client) -> None:
        states = (await _call(client, "fleet_status"))["fleets"]
        assert [state["fleet_id"] for state in states] == [crowd.fleet_id, team.fleet_id]
        assert [len(state.get("attention", ())) for state in states] == [MAX_ROWS, 0]
        assert [state["more_attention"] for state in states] == [1, 1]

    talk(program, scenario=scenario)


@pytest.mark.parametrize("arguments", [(), ("--member-id", "2")], ids=["open", "fixed"])
def test_resources(program: Program, team: Team, arguments: tuple[str, ...]) -> None:
    program.run("message", "send", "--from", "1", "--to", "2", "hello")
    program.run("message", "broadcast", "--from", "2", "news")

    async def scenario(client: Client) -> None:
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == [
            "cafleet://members/{member_id}/inbox",
            "cafleet://fleets/{fleet_id}/timeline",
        ]
        own = ["cafleet://members/2/inbox"] if arguments else []
        listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert listed == [*own, "cafleet://fleets/1/timeline"]

        inbox = await _read(client, "cafleet://members/2/inbox")
        assert [message["text"] for message in inbox["messages"]] == ["hello"]
        timeline = await _read(client, "cafleet://fleets/1/timeline")
        assert [(entry.get("broadcast", False), entry["to_member_ids"]) for entry in timeline["entries"]] == [
            (True, [1, 3]),
            (False, [2]),
        ]
        for uri, complaint in (
            ("cafleet://members/99/inbox", "member 99 not found"),
            ("cafleet://fleets/99/timeline", "fleet 99 not found"),
            ("cafleet://members/2/timeline", "unknown resource cafleet://members/2/timeline"),
            ("cafleet://members/02/inbox", "unknown resource cafleet://members/02/inbox"),
            ("file:///etc/passwd", "unknown resource file:///etc/passwd"),
        ):
            with pytest.raises(MCPError, match=complaint):
                await client.read_resource(uri)

    talk(program, *arguments, scenario=scenario)


async def _read(client: Client, uri: str) -> dict[str, Any]:
    (content,) = (await client.read_resource(uri)).contents
    assert content.mime_type == "application/json"
    found = json.loads(getattr(content, "text"))  # noqa: B009  # one of two types has it
    assert isinstance(found, dict)
    return found


def test_a_long_wait_tells_that_it_goes_on(program: Program, team: Team) -> None:
    heard: list[tuple[float, float | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async def scenario(client: Client) -> None:
        waited = await client.call_tool(
            "wait_for_message", {"timeout_seconds": 6}, progress_callback=on_progress
        )
        assert content(waited)["hint"] == "nothing within 6 s; wait again, or go on with other work"
        assert len(json.dumps(waited.structured_content)) < 200

    talk(program, "--member-id", "2", scenario=scenario)
    assert [total for _, total in heard] == [6.0]
    assert 4 < heard[0][0] < 6


def test_a_wait_ends_before_clients_give_up() -> None:
    assert MAX_WAIT_SECONDS < 60
    assert WaitForMessage(timeout_seconds=600).capped_seconds == MAX_WAIT_SECONDS
    assert WaitForMessage(timeout_seconds=2).capped_seconds == 2
    assert WaitForMessage().capped_seconds == MAX_WAIT_SECONDS


def test_the_server_says_whom_it_speaks_for(program: Program, team: Team) -> None:
    async def scenario(client: Client) -> None:
        assert client.instructions is not None
        assert client.instructions.startswith("You are member 2 (ann) of fleet 1.")

    talk(program, "--member-id", "2", scenario=scenario)
