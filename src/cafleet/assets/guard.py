"""The stale-assets guard (SPEC 8): no command of a fleet runs beside skills of another version.

On the path of every `message send`: it costs one SELECT and loads no product's module.
"""

from collections.abc import Sequence

from cafleet import __version__
from cafleet.agents import locations, registry
from cafleet.config import Config
from cafleet.db import asset_installs
from cafleet.errors import CafleetError, NoAssets, StaleAssets
from cafleet.models import AssetInstall
from cafleet.runtime import Runtime


def require_current_assets(runtime: Runtime) -> None:
    """Raises NoAssets, StaleAssets, or CafleetError where a folder's variable is not absolute."""
    with runtime.database.read() as conn:
        installs = asset_installs.list_all(conn)
    current = [install for install in installs if is_current_path(install, runtime.config)]
    if not current:
        raise NoAssets
    stale = [(one.coding_agent, one.cafleet_version) for one in current if one.cafleet_version != __version__]
    if stale:
        raise StaleAssets(stale, __version__)


def is_current_path(install: AssetInstall, config: Config) -> bool:
    """Whether the row's path is where the agent looks now; other rows are superseded.

    Raises CafleetError: a folder's variable is not absolute."""
    if locations.is_built_in(install.coding_agent):
        return locations.identity(install.coding_agent, config)[0] == install.path
    return install.path in _configured_paths(install.coding_agent, config)


def _configured_paths(name: str, config: Config) -> Sequence[str]:
    """Reads config.toml, so only where such an agent was set up once."""
    try:
        home = registry.get(name, config).asset_home()
    except CafleetError:
        return ()
    return () if home is None else (home.path,)
