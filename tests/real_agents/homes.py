"""A private home for each real program, in which it talks to the mock model and asks nothing at start."""

import json
import os
from collections.abc import Mapping

KEY = "no-account-needed-0123456789"
MODELS = {"claude": None, "codex": None, "opencode": "mock/mock-model"}
"""What `member create --model` gets: only opencode has to be told."""


def make_home(home: str, folder: str, port: int) -> dict[str, str]:
    """Settings of all three programs in one home, for a team that works in `folder`.

    Returns the environment to start them with. Presets and rules are not in here: `cafleet setup`
    installs those.
    """
    url = f"http://127.0.0.1:{port}"
    _write(home, ".claude.json", json.dumps(_claude(folder)))
    _write(home, ".codex/config.toml", _codex(folder, url))
    _write(home, ".config/opencode/opencode.json", json.dumps(_opencode(url)))
    return {
        "HOME": home,
        # They unpack libraries there at every start, and leave them.
        "TMPDIR": _folder(home, "tmp"),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "SHELL": "/bin/sh",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "MOCK_KEY": KEY,
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }


def _folder(home: str, name: str) -> str:
    path = os.path.join(home, name)
    os.makedirs(path, exist_ok=True)
    return path


def _write(home: str, name: str, text: str) -> None:
    path = os.path.join(home, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _claude(folder: str) -> Mapping[str, object]:
    """Onboarding done, the key accepted (by its last 20 characters), the folder trusted."""
    return {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {folder: {"hasTrustDialogAccepted": True}},
    }


def _codex(folder: str, url: str) -> str:
    return f"""\
model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false
analytics.enabled = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"

[projects.{json.dumps(folder)}]
trust_level = "trusted"
"""


def _opencode(url: str) -> Mapping[str, object]:
    model = {"name": "Mock", "tool_call": True, "limit": {"context": 100000, "output": 8000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Mock",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"mock-model": model},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "mock/mock-model",
        "small_model": "mock/mock-model",
        "enabled_providers": ["mock"],
        "provider": {"mock": provider},
    }
