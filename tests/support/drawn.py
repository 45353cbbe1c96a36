"""Screens that look like the stand-in's, for panes in memory."""

RULE = "─" * 40
QUESTION = ["Do you want to proceed?", "  1. Yes", "  2. No", " ∙ Enter to confirm · Esc to cancel"]


def standin_screen(composer: str, *, working: bool = False) -> list[str]:
    """At rest, or at work, with `composer` in it."""
    footer = " ∙ esc to interrupt" if working else " ∙ ready"
    return ["» earlier words", "", RULE, f"> {composer}", RULE, footer]


def working_screen(composer: str) -> list[str]:
    """At work."""
    return standin_screen(composer, working=True)
