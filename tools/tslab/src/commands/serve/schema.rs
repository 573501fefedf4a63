//! The tables of the history: how they are made, and brought from older versions to this one.

use anyhow::{Result, bail};
use rusqlite::{Connection, ErrorCode};

/// By it `SQLite` files of other programs are told apart.
const PROGRAM: u32 = 0x7473_6c61;

/// Each brings a file to the next version; the first one makes it.
const STEPS: [&str; 2] = [
    "
    CREATE TABLE process (
        id INTEGER PRIMARY KEY, boot TEXT NOT NULL, pid INTEGER NOT NULL, start INTEGER NOT NULL,
        name TEXT, last_s INTEGER NOT NULL, UNIQUE (pid, start, boot)
    ) STRICT;
    CREATE TABLE moment (
        at_s INTEGER NOT NULL, process INTEGER NOT NULL, rss INTEGER, live INTEGER,
        PRIMARY KEY (at_s, process)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE event (
        at_s INTEGER NOT NULL, process INTEGER NOT NULL, kind TEXT NOT NULL, label TEXT,
        count INTEGER NOT NULL, bytes INTEGER
    ) STRICT;
    CREATE INDEX event_at ON event (at_s, process);
    PRAGMA application_id = 0x74736c61; PRAGMA user_version = 1;
",
    "
    ALTER TABLE process ADD COLUMN holders_s INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE label (
        id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, last_s INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE holder (
        at_s INTEGER NOT NULL, process INTEGER NOT NULL, label INTEGER NOT NULL,
        live INTEGER NOT NULL, PRIMARY KEY (at_s, process, label)
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 2;
",
];

/// Makes the file this process's alone, and its tables those of this version.
pub fn prepare(db: &Connection) -> Result<()> {
    set_up(db).map_err(explained)
}

fn set_up(db: &Connection) -> Result<()> {
    db.busy_timeout(std::time::Duration::ZERO)?;
    db.execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
    let steps = steps(db)?;
    // A crash of the machine may cost the last rows, never the file. The exclusive lock spares the
    // log its shared memory.
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
         PRAGMA journal_size_limit = 1048576; PRAGMA cache_size = -512;
         BEGIN IMMEDIATE; COMMIT;",
    )?;
    let found: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        bail!("it is damaged ({})", found.lines().next_back().unwrap_or_default());
    }
    if !steps.is_empty() {
        db.execute_batch(&format!("BEGIN; {} COMMIT;", steps.concat()))?;
    }
    Ok(())
}

// Those that the file lacks. Fails if something else is in it than a history.
fn steps(db: &Connection) -> Result<&'static [&'static str]> {
    let number = |query: &str| db.query_row(query, [], |row| row.get::<_, u32>(0));
    let program = number("PRAGMA application_id")?;
    let is_empty = number("SELECT count(*) FROM sqlite_schema")? == 0;
    let version = number("PRAGMA user_version")?;
    match STEPS.get(version as usize..) {
        Some(steps) if version == 0 && is_empty => Ok(steps),
        Some(steps) if version > 0 && program == PROGRAM => Ok(steps),
        _ if program == PROGRAM => bail!("it is a history of another version, {version}"),
        _ => bail!("it is a database of another program"),
    }
}

/// What `SQLite` says of an error that is its own.
pub fn code(error: &anyhow::Error) -> Option<ErrorCode> {
    error.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code)
}

fn explained(error: anyhow::Error) -> anyhow::Error {
    match code(&error) {
        Some(ErrorCode::DatabaseBusy) => error.context("another server has it"),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            error.context("it is damaged")
        }
        _ => error,
    }
}
