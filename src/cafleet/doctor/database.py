"""The database file: its state, and what could keep agents from writing it."""

import errno
import os
import stat
from shlex import quote

from cafleet.db import health
from cafleet.db.diagnosis import DatabaseState, Diagnosis, diagnose
from cafleet.doctor.file_system import kind_of
from cafleet.doctor.permissions import grants
from cafleet.doctor.records import Finding, Row, Section, issue, note
from cafleet.doctor.settings import names_a_database
from cafleet.errors import DatabaseBusy, DatabaseDamaged, DatabaseError, DatabaseNeedsOtherLog
from cafleet.runtime import Runtime

NAME = "database"

_RESTORE = "put a copy that 'cafleet backup' made in its place"
_MENDS = {
    DatabaseState.MISSING: ("there is no database yet", "cafleet setup"),
    DatabaseState.EMPTY: ("the database file is empty", "cafleet setup"),
    DatabaseState.OUTDATED: ("the database is of an older format", "cafleet setup"),
    DatabaseState.NEWER: ("the database is of a newer format than this cafleet's", "upgrade cafleet"),
    DatabaseState.DAMAGED: ("the database is damaged", _RESTORE),
    DatabaseState.LEGACY: (
        "the file is in an earlier cafleet format",
        "name another file in CAFLEET_DATABASE_URL, then 'cafleet import {path}'",
    ),
    DatabaseState.FOREIGN: (
        "the file is not a cafleet database",
        "name another file in CAFLEET_DATABASE_URL, or move this one away",
    ),
    DatabaseState.UNREADABLE: ("the database cannot be opened", "make {path} readable and writable for you"),
}


def check_database(runtime: Runtime, *, deep: bool) -> Section:
    """Path, state, format, size, file system, journal mode; the integrity check where `deep` is set."""
    if not names_a_database(runtime):
        return Section(NAME, [], [note("not looked at, since it is not known where it is")])
    path = runtime.config.database_path
    diagnosis = diagnose(path)
    row: Row = {"path": path, "state": diagnosis.state.value, "format": diagnosis.version}
    row["bytes"] = os.path.getsize(path) if os.path.isfile(path) else None
    row["file system"] = kind_of(path)
    findings = _of_state(path, diagnosis)
    if diagnosis.state is DatabaseState.CURRENT:
        findings += _of_access(runtime, path)
        try:
            row["journal"] = health.journal_mode(runtime.database)
        except DatabaseError as error:
            findings.append(_unusable(path, error))
        else:
            if deep:
                row["integrity"], found = _integrity(runtime)
                findings += found
        if row.get("journal") not in ("wal", None):
            findings.append(
                note(
                    f"the journal mode is {row['journal']}, so readers and writers wait for each other",
                    "run 'cafleet setup'; where that changes nothing, keep the file on a local file system",
                )
            )
    return Section(NAME, [row], findings)


def _of_state(path: str, diagnosis: Diagnosis) -> list[Finding]:
    if diagnosis.state is DatabaseState.CURRENT:
        return []
    text, mend = _MENDS[diagnosis.state]
    detail = f": {diagnosis.detail}" if diagnosis.detail else ""
    if diagnosis.state is DatabaseState.LEGACY and detail:
        mend = _MENDS[DatabaseState.FOREIGN][1]  # It cannot be imported either.
    return [issue(text + detail, mend.format(path=quote(path)))]


def _of_access(runtime: Runtime, path: str) -> list[Finding]:
    folder = os.path.dirname(path)
    findings = [
        issue(f"{target} cannot be written: nothing can be sent", f"chmod u+w {quote(target)}")
        for target in (path, folder)
        if not (stat.S_IMODE(os.stat(target).st_mode) & stat.S_IWUSR or os.access(target, os.W_OK))
    ]
    if not findings and not _can_be_written(path):
        text = f"{folder} cannot be written, although its modes and those of the database allow it"
        findings.append(issue(text, f"mount it writable; in a sandbox: {grants(runtime)}"))
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if mode & 0o077:
        findings.append(issue(f"others can read the messages in {path}", f"chmod 600 {quote(path)}"))
    return findings


def _can_be_written(path: str) -> bool:
    """Asks the folder for a file without a name: nothing is changed. The database itself must not be
    opened and closed here, which would drop this process's locks on it."""
    folder = os.path.dirname(path)
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return False  # Anything else: a file system without such files.
    return os.access(path, os.W_OK) and os.access(folder, os.W_OK)


def _integrity(runtime: Runtime) -> tuple[str, list[Finding]]:
    try:
        faults = health.integrity_faults(runtime.database)
    except DatabaseDamaged as error:  # So damaged that the check itself ends.
        faults = [str(error)]
    except DatabaseError as error:
        return "not checked", [_unusable(runtime.config.database_path, error)]
    if not faults:
        return "ok", []
    return "damaged", [issue(f"the integrity check failed: {faults[0]}", _RESTORE)]


def _unusable(path: str, error: DatabaseError) -> Finding:
    """A file of the right format that could not be read just now."""
    if isinstance(error, DatabaseDamaged):
        return issue(str(error), _RESTORE)
    if isinstance(error, DatabaseNeedsOtherLog):
        return issue(str(error), "cafleet setup")
    if isinstance(error, DatabaseBusy):
        return issue(str(error), f"where that goes on, end what holds it: fuser -v {quote(path)}")
    return issue(str(error), f"make {path} and its folder readable and writable for you, then look again")
