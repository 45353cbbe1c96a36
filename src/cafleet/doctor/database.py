"""The database file: its state, and what could keep agents from writing it."""

import os
import stat

from cafleet.db import health
from cafleet.db.diagnosis import DatabaseState, Diagnosis, diagnose
from cafleet.doctor.records import Finding, Row, Section, issue, note
from cafleet.errors import DatabaseError
from cafleet.runtime import Runtime

NAME = "database"

_MENDS = {
    DatabaseState.MISSING: ("there is no database yet", "cafleet setup"),
    DatabaseState.EMPTY: ("the database file is empty", "cafleet setup"),
    DatabaseState.OUTDATED: ("the database is of an older format", "cafleet setup"),
    DatabaseState.NEWER: ("the database is of a newer format than this cafleet's", "upgrade cafleet"),
    DatabaseState.DAMAGED: ("the database is damaged", "put a copy that 'cafleet backup' made in its place"),
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
    """Path, state, format, size, journal mode; the integrity check where `deep` is set."""
    path = runtime.config.database_path
    diagnosis = diagnose(path)
    row: Row = {"path": path, "state": diagnosis.state.value, "format": diagnosis.version}
    row["bytes"] = os.path.getsize(path) if os.path.isfile(path) else None
    findings = _of_state(path, diagnosis)
    if diagnosis.state is DatabaseState.CURRENT:
        findings += _of_access(path)
        try:
            row["journal"] = health.journal_mode(runtime.database)
        except DatabaseError as error:
            findings.append(issue(str(error), f"make {path} and its folder readable and writable for you"))
        if deep:
            row["integrity"], found = _integrity(runtime)
            findings += found
        if row.get("journal") not in ("wal", None):
            findings.append(
                note(
                    f"the journal mode is {row['journal']}, so readers and writers wait for each other",
                    "keep the file on a local file system",
                )
            )
    return Section(NAME, [row], findings)


def _of_state(path: str, diagnosis: Diagnosis) -> list[Finding]:
    if diagnosis.state is DatabaseState.CURRENT:
        return []
    text, mend = _MENDS[diagnosis.state]
    detail = f": {diagnosis.detail}" if diagnosis.detail else ""
    return [issue(text + detail, mend.format(path=path))]


def _of_access(path: str) -> list[Finding]:
    findings = [
        issue(f"{target} cannot be written: nothing can be sent", f"chmod u+w {target}")
        for target in (path, os.path.dirname(path))
        if not os.access(target, os.W_OK)
    ]
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if mode & 0o077:
        findings.append(issue(f"others can read the messages in {path}", f"chmod 600 {path}"))
    return findings


def _integrity(runtime: Runtime) -> tuple[str, list[Finding]]:
    try:
        faults = health.integrity_faults(runtime.database)
    except DatabaseError as error:  # So damaged that the check itself ends.
        faults = [str(error)]
    if not faults:
        return "ok", []
    text = f"the integrity check failed: {faults[0]}"
    return "damaged", [issue(text, "put a copy that 'cafleet backup' made in its place")]
