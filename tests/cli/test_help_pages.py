"""Help pages are made of what a command describes."""

from tests.support.sample_command import SEND

from cafleet.cli.help_pages import command_page, usage


def test_usage_shows_what_is_required() -> None:
    assert usage("send", SEND) == (
        "cafleet send [TEXT] --from MEMBER_ID --to MEMBER_ID… [--name N] [--ansi] [--json]"
    )


def test_a_help_page_names_every_argument_and_its_examples() -> None:
    page = command_page("send", "send it", SEND)
    for word in ("--from, --from-member-id MEMBER_ID", "--ansi", "--json", "--help", "TEXT", "a recipient"):
        assert word in page
    assert "  cafleet send --from 1 --to 2 hello" in page
    assert all(len(line) <= 110 for line in page.splitlines())
