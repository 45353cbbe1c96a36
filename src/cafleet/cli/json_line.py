"""`--json`: one compact line (SPEC 7.1). Loaded only when it is asked for."""

import json

_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
"""Valid unescaped in JSON, yet a terminal would obey them and some readers would end the line there."""


def encode(value: object) -> str:
    """`value` as one line; decoding it gives exactly the stored text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED)
