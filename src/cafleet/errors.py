"""What can go wrong, as classes. A docstring is the default message; facts are fields.

This module knows no exit codes and no HTTP: each face maps classes to replies in one table.
"""


class CafleetError(Exception):
    """cafleet could not do what was asked"""

    def __init__(self, message: str | None = None) -> None:
        """`message`: one line, without a trailing full stop; the class docstring by default."""
        super().__init__(message or (type(self).__doc__ or "").strip())
        self.cleanup_failures: list[str] = []
        """What a failed creation could not undo: `cleanup failed for <what>: <detail>` (SPEC 7.3)."""


# -- kinds: faces map these, not the leaves ---------------------------------------------------


class InvalidInput(CafleetError):
    """the input is not acceptable"""


class UsageError(CafleetError):
    """the command was called in a way that cannot work"""


class NotFound(CafleetError):
    """not found"""


class Conflict(CafleetError):
    """the current state does not allow this"""


class IntegrityError(CafleetError):
    """the database holds a value that cafleet does not know"""

    def __init__(self, table: str, row_id: object, value: object, column: str = "value") -> None:
        self.table, self.row_id, self.value, self.column = table, row_id, value, column
        super().__init__(f"integrity error: {table} {row_id} has an unknown {column} {value!r}")


class WrongKind(IntegrityError):
    """the database holds a value of another kind than its column is for"""

    def __init__(self, table: str, row_id: object, column: str, wanted: str) -> None:
        """`wanted`: what it should be, such as `a number`."""
        self.table, self.row_id, self.column, self.wanted = table, row_id, column, wanted
        CafleetError.__init__(self, f"integrity error: the {column} of {table} {row_id} is not {wanted}")


class DatabaseError(CafleetError):
    """the database cannot be used"""


class MultiplexerError(CafleetError):
    """the terminal multiplexer could not do what was asked"""


# -- fleets and members ------------------------------------------------------------------------


class FleetNotFound(NotFound):
    def __init__(self, fleet_id: int) -> None:
        self.fleet_id = fleet_id
        super().__init__(f"fleet {fleet_id} not found")


class MemberNotFound(NotFound):
    def __init__(self, member_id: int) -> None:
        self.member_id = member_id
        super().__init__(f"member {member_id} not found")


class MessageNotFound(NotFound):
    def __init__(self, message_id: int) -> None:
        self.message_id = message_id
        super().__init__(f"message {message_id} not found")


class FleetDeleted(Conflict):
    def __init__(self, fleet_id: int) -> None:
        self.fleet_id = fleet_id
        super().__init__(f"fleet {fleet_id} is deleted")


class FleetNotLive(Conflict):
    """A fleet whose Director is missing, deregistered or has no placement (SPEC 3)."""

    def __init__(self, fleet_id: int) -> None:
        self.fleet_id = fleet_id
        super().__init__(f"fleet {fleet_id} is not live: its Director has no placement")


class MemberNotActive(Conflict):
    def __init__(self, member_id: int) -> None:
        self.member_id = member_id
        super().__init__(f"member {member_id} is not active")


class MemberGone(Conflict):
    """A wait or listen whose member or fleet ended (SPEC 4.5)."""

    def __init__(self, member_id: int) -> None:
        self.member_id = member_id
        super().__init__(f"member {member_id} is no longer active")


class DifferentFleets(Conflict):
    def __init__(self, first: int, second: int) -> None:
        self.first, self.second = first, second
        super().__init__(f"members {first} and {second} are not in the same fleet")


class DirectorProtected(Conflict):
    def __init__(self, member_id: int, fleet_id: int) -> None:
        self.member_id, self.fleet_id = member_id, fleet_id
        super().__init__(
            f"member {member_id} is fleet {fleet_id}'s Director; use 'cafleet fleet delete {fleet_id}'"
        )


class MonitorExists(Conflict):
    def __init__(self, fleet_id: int, member_id: int) -> None:
        self.fleet_id, self.member_id = fleet_id, member_id
        super().__init__(f"fleet {fleet_id} already has an active monitor (member {member_id})")


class MonitorNotRunning(Conflict):
    def __init__(self, fleet_id: int) -> None:
        self.fleet_id = fleet_id
        super().__init__(
            f"no monitor is running for fleet {fleet_id}; start one with 'cafleet monitor run {fleet_id}'"
        )


class MonitorAlreadyRunning(Conflict):
    """A live loop holds the fleet's one place (SPEC 9)."""

    def __init__(self, fleet_id: int, pid: int) -> None:
        self.fleet_id, self.pid = fleet_id, pid
        super().__init__(f"a monitor is already running for fleet {fleet_id} (pid {pid})")


class MonitorDisplaced(Conflict):
    """A loop that was silent for too long finds another one in its place."""

    def __init__(self, fleet_id: int, pid: int | None) -> None:
        self.fleet_id, self.pid = fleet_id, pid
        who = "somebody cleared its row" if pid is None else f"pid {pid} took its place"
        super().__init__(f"this loop is not the monitor of fleet {fleet_id} any more: {who}")


class DirectorNotTyped(Conflict):
    """Nothing is ever typed into a Director's pane (SPEC 4.1)."""

    def __init__(self, member_id: int) -> None:
        self.member_id = member_id
        super().__init__(
            f"member {member_id} is the Director and is never typed at; send it a message instead"
        )


class NoPane(Conflict):
    def __init__(self, member_id: int, *, pending: bool) -> None:
        self.member_id, self.pending = member_id, pending
        super().__init__(f"member {member_id} has no pane" + (" yet" if pending else ""))


class MemberChanged(Conflict):
    """Somebody else deleted, moved or respawned the member in the same moment."""

    def __init__(self, member_id: int) -> None:
        self.member_id = member_id
        super().__init__(f"member {member_id} was changed by somebody else meanwhile; look again")


class DirectorPaneGone(Conflict):
    """New panes open beside the Director's, which is not there any more."""

    def __init__(self, fleet_id: int, member_id: int, reason: str) -> None:
        self.fleet_id, self.member_id, self.reason = fleet_id, member_id, reason
        super().__init__(f"the pane of fleet {fleet_id}'s Director (member {member_id}) is gone: {reason}")


class PaneStillThere(Conflict):
    def __init__(self, member_id: int, pane: str) -> None:
        self.member_id, self.pane = member_id, pane
        super().__init__(f"member {member_id} still has its pane ({pane}); only a lost pane is replaced")


class NotAMember(Conflict):
    """this pane belongs to no active member"""


# -- messages ----------------------------------------------------------------------------------


class AlreadyAcknowledged(Conflict):
    def __init__(self, message_id: int) -> None:
        self.message_id = message_id
        super().__init__(f"message {message_id} is already acknowledged")


class SummaryNotAcknowledgeable(Conflict):
    def __init__(self, message_id: int) -> None:
        self.message_id = message_id
        super().__init__(f"message {message_id} is a broadcast summary; only deliveries are acknowledged")


class KeyReused(Conflict):
    def __init__(self, key: str, message_id: int) -> None:
        self.key, self.message_id = key, message_id
        super().__init__(f"key '{key}' was already used for message {message_id}")


# -- coding agents and spawning ----------------------------------------------------------------


class UnknownAgent(UsageError):
    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        super().__init__(f"unknown coding agent '{name}'; known: {', '.join(known)}")


class BinaryNotFound(CafleetError):
    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"binary {name} not found on PATH")


class ConfigFileError(CafleetError):
    """A mistake in config.toml: names file, line where known, and key."""

    def __init__(self, path: str, detail: str, *, key: str | None = None, line: int | None = None) -> None:
        self.path, self.detail, self.key, self.line = path, detail, key, line
        where = f"{path}:{line}" if line is not None else path
        super().__init__(f"{where}: {key}: {detail}" if key else f"{where}: {detail}")


class AgentDidNotStart(CafleetError):
    """The new pane's program ended at once."""

    def __init__(self, binary: str, detail: str) -> None:
        self.binary, self.detail = binary, detail
        super().__init__(f"{binary} ended right after it was started: {detail}")


# -- assets ------------------------------------------------------------------------------------


class NoAssets(CafleetError):
    """no assets are installed at the resolved paths; run 'cafleet setup'"""


class StaleAssets(CafleetError):
    """Skills or presets of another version than this program's (SPEC 8)."""

    def __init__(self, stale: "list[tuple[str, str]]", version: str) -> None:
        """`stale`: (coding agent, recorded version)."""
        self.stale, self.version = stale, version
        recorded = ", ".join(f"{agent}={found}" for agent, found in stale)
        super().__init__(f"stale assets ({recorded} ; cafleet {version}); run 'cafleet setup'")


class AssetsNotInstalled(CafleetError):
    """One agent's skills or preset could not be put in place; what was there before still is."""

    def __init__(self, agent: str, path: str, detail: str) -> None:
        self.agent, self.path, self.detail = agent, path, detail
        super().__init__(
            f"cannot install {agent} assets at {path}: {detail}; make room for it there, with the right to"
            " write, and run 'cafleet setup' again"
        )


# -- panes -------------------------------------------------------------------------------------


class NotInMultiplexer(MultiplexerError):
    """not inside a tmux or herdr pane"""


class PaneGone(MultiplexerError):
    """The pane, or the server that it was recorded on, does not exist any more."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class MemberPaneGone(PaneGone):
    """The same of an active member, who can be started again."""

    def __init__(self, member_id: int, reason: str) -> None:
        self.member_id = member_id
        super().__init__(f"{reason}; 'cafleet member respawn {member_id} PROMPT' opens a new one")


class PaneDead(MultiplexerError):
    """The pane still exists but its program has ended (remain-on-exit)."""

    def __init__(self, pane_id: str) -> None:
        self.pane_id = pane_id
        super().__init__(f"pane {pane_id} is dead: its program has ended")


class PaneBusy(MultiplexerError):
    """pane is busy"""


class MultiplexerTimeout(MultiplexerError):
    def __init__(self, what: str, seconds: float) -> None:
        self.what, self.seconds = what, seconds
        super().__init__(f"{what} did not answer within {seconds:g} s")


# -- the database file (SPEC 2.4, 2.5) ---------------------------------------------------------


class DatabaseMissing(DatabaseError):
    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"no cafleet database at {path}; run 'cafleet setup'")


class DatabaseOutdated(DatabaseError):
    def __init__(self, version: int, head: int) -> None:
        self.version, self.head = version, head
        super().__init__(
            f"database format {version} is older than this cafleet's ({head}); run 'cafleet setup'"
        )


class DatabaseNewer(DatabaseError):
    def __init__(self, version: int, head: int) -> None:
        self.version, self.head = version, head
        super().__init__(f"database format {version} is newer than this cafleet's ({head}); upgrade cafleet")


class DatabaseDamaged(DatabaseError):
    """Ours by its identity, but not what its version promises, or its pages are corrupt."""


class DatabaseCorrupt(DatabaseDamaged):
    def __init__(self, path: str, detail: str) -> None:
        self.path, self.detail = path, detail
        super().__init__(
            f"the database {path} is damaged ({detail}); run 'cafleet doctor --deep' and restore a backup"
        )


class DatabaseMismatch(DatabaseDamaged):
    def __init__(self, path: str, version: int, difference: str) -> None:
        self.path, self.version, self.difference = path, version, difference
        super().__init__(f"database {path} does not match format {version}: {difference}")


class DatabaseLegacy(DatabaseError):
    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} is in an earlier cafleet format; bring it over with 'cafleet import {path}'"
        )


class DatabaseForeign(DatabaseError):
    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} is not a cafleet database")


class DatabaseUnreadable(DatabaseError):
    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"cannot open database {path}: {reason}")


class DatabaseBusy(DatabaseError):
    """the database is busy; try again"""


class DatabaseReadOnly(DatabaseError):
    """Names the path and the grant that is missing (field case I3)."""

    def __init__(self, path: str, directory: str) -> None:
        self.path, self.directory = path, directory
        super().__init__(
            f"the database {path} is read-only; allow writing to the folder {directory} and the files in it"
            " (in a sandbox, 'cafleet doctor' names the setting that grants it) and try again"
        )


class DatabaseFull(DatabaseError):
    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"the disk is full: {path} cannot grow; free some space and try again")


class DatabaseDiskError(DatabaseError):
    def __init__(self, path: str, detail: str) -> None:
        self.path, self.detail = path, detail
        super().__init__(
            f"the disk refused to read or write {path} ({detail}); check its free space, limits and health"
            " and try again"
        )


class DatabaseNeedsOtherLog(DatabaseError):
    """It was last used on a file system that has what this one lacks."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"the file system of {path} cannot share a write-ahead log; run 'cafleet setup', which does"
            " without"
        )


class TargetExists(Conflict):
    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} already exists; nothing was overwritten")


class BackupFailed(CafleetError):
    def __init__(self, path: str, detail: str) -> None:
        self.path, self.detail = path, detail
        super().__init__(f"no backup was written to {path}: {detail}")


class UpgradeFailed(DatabaseError):
    def __init__(self, path: str, version: int, detail: str) -> None:
        self.path, self.version, self.detail = path, version, detail
        super().__init__(f"database {path} stays at format {version}, unchanged: {detail}")


class TooEarly(DatabaseError):
    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} was written by a cafleet before 0.11, which nothing later can read or upgrade;"
            " keep it for the release that wrote it, and start afresh in another file with 'cafleet setup'"
        )


class NothingToImport(Conflict):
    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} is in this cafleet's own format already; 'cafleet setup' upgrades such files"
        )


class ImportTargetInUse(Conflict):
    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} is not empty; an import needs a new file: set CAFLEET_DATABASE_URL to another path"
        )


class NotAnActiveMonitor(Conflict):
    def __init__(self, fleet_id: int, member_id: int) -> None:
        self.fleet_id, self.member_id = fleet_id, member_id
        super().__init__(
            f"member {member_id} is not an active monitor of fleet {fleet_id} in the imported file"
        )


class ImportFailed(DatabaseError):
    """An import that would not be complete; the target is as before."""

    def __init__(self, path: str, detail: str) -> None:
        self.path, self.detail = path, detail
        super().__init__(f"{path} was not imported: {detail}")


class ConstraintViolated(DatabaseError):
    """A change that an index or a foreign key refuses; the transaction was rolled back."""

    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(f"the database refused the change: {detail}")


class MonitorDuplicates(DatabaseError):
    """Two active monitors in one fleet: migration and import stop before they change anything (SPEC 2.3)."""

    def __init__(self, duplicates: "dict[int, list[int]]") -> None:
        """`duplicates`: fleet id to the ids of its active monitors."""
        self.duplicates = duplicates
        fleets = "; ".join(
            f"fleet {fleet}: members {', '.join(str(member) for member in sorted(members))}"
            for fleet, members in sorted(duplicates.items())
        )
        super().__init__(f"active monitor duplicates prevent migration: {fleets}")
