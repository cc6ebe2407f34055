//! The log in a real PostgreSQL: who may append, what an answer that was lost comes to, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod prefetch;
mod server;

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use inlay_cluster::{Calls, DatabaseSession, Identity, PostgresLog, Uploads};
use inlay_engine::{
    Clock as _, Error, ManualClock, SeededRng, SystemClock,
    remote::{AppendError, Log as _, LogTail, LogWriter, Superblock},
};
use server::Postgres;
use uuid::Uuid;

fn log(postgres: &Postgres, before: Option<Uuid>, seed: u64) -> Result<PostgresLog, Error> {
    let session = DatabaseSession::new(Calls::new().unwrap(), &postgres.url)?;
    PostgresLog::new(Arc::new(session), Identity::new(&SeededRng::new(seed), before))
}

/// A log that leads: with its superblock, and its writer.
fn lead(log: &PostgresLog) -> Result<(Superblock, Box<dyn LogWriter>), Error> {
    let superblock = match log.superblock()? {
        Some(superblock) => superblock,
        None => {
            let superblock = Superblock::new(&SeededRng::new(7));
            log.create(&superblock)?;
            superblock
        }
    };
    let (_, tail) = log.read_after(&superblock, 0)?;
    let writer = log.resume(&superblock, &tail)?;
    Ok((superblock, writer))
}

/// A record with so many bytes: kind, length, payload.
fn body(len: usize, byte: u8) -> Vec<u8> {
    let mut body = vec![2];
    body.extend_from_slice(&(len as u32).to_le_bytes());
    body.resize(body.len() + len, byte);
    body
}

fn numbers(log: &PostgresLog, after: u64) -> Vec<(u64, usize)> {
    let superblock = log.superblock().unwrap().unwrap();
    let (records, _) = log.read_after(&superblock, after).unwrap();
    records.iter().map(|record| (record.lsn, record.payload().len())).collect()
}

#[test]
fn records_come_back_in_order_and_go_when_they_are_not_needed() {
    let Some(postgres) = Postgres::start() else { return };
    let log = log(&postgres, None, 1).unwrap();
    let (mut superblock, mut writer) = lead(&log).unwrap();
    writer.append(1, 1, &body(10, 1)).unwrap();
    writer.append(2, 2, &[body(2_000, 2), body(3, 3)].concat()).unwrap();
    // More groups than are read at once.
    for lsn in 4..200 {
        writer.append(lsn, 1, &body(4, 4)).unwrap();
    }
    assert_eq!(numbers(&log, 0).len(), 199);
    assert_eq!(numbers(&log, 2)[..2], [(3, 3), (4, 4)], "a part of a group");
    assert_eq!(numbers(&log, 199), []);
    let generation = superblock.generation;
    log.replace(&mut superblock).unwrap();
    assert_eq!(log.superblock().unwrap().unwrap().generation, generation + 1);
    log.forget(2, None).unwrap();
    log.settle_deletions().unwrap();
    assert_eq!(numbers(&log, 1)[0], (2, 2_000), "its group has a record above");
    assert!(
        log.read_after(&superblock, 0).err().unwrap().to_string().contains("1 to 1 are missing")
    );
    log.forget(3, None).unwrap();
    assert!(log.read_after(&superblock, 2).is_err());
    assert_eq!(numbers(&log, 3)[0].0, 4);
}

#[test]
fn one_process_appends_and_a_former_one_changes_nothing() {
    let Some(postgres) = Postgres::start() else { return };
    let one = log(&postgres, None, 1).unwrap();
    let (mut superblock, mut writer) = lead(&one).unwrap();
    writer.append(1, 1, &body(10, 1)).unwrap();
    // The lease is another's.
    let two = log(&postgres, None, 2).unwrap();
    assert!(matches!(lead(&two), Err(Error::Invalid { .. })));
    // A process that had read the log before the last append must not lead.
    let stale = log(&postgres, Some(one.identity().own), 3).unwrap();
    let (_, tail) = stale.read_after(&superblock, 0).unwrap();
    writer.append(2, 1, &body(10, 2)).unwrap();
    assert!(matches!(stale.resume(&superblock, &tail), Err(Error::Invalid { .. })));
    // Nor one that had read the superblock before it was replaced.
    let before = superblock.clone();
    one.replace(&mut superblock).unwrap();
    let (_, tail) = stale.read_after(&superblock, 0).unwrap();
    assert!(stale.resume(&before, &tail).is_err());
    // The next process of the same directory leads at once; what the former one had goes on is refused.
    let next = log(&postgres, Some(one.identity().own), 4).unwrap();
    let (_, mut next_writer) = lead(&next).unwrap();
    let refused = writer.append(3, 1, &body(10, 3)).unwrap_err();
    assert!(matches!(refused, AppendError::Fatal(_)), "{refused:?}");
    assert!(one.replace(&mut superblock).is_err());
    one.forget(2, None).unwrap();
    next_writer.append(3, 1, &body(11, 3)).unwrap();
    assert_eq!(numbers(&next, 0), [(1, 10), (2, 10), (3, 11)], "nothing was deleted either");
}

/// Connections end somewhere in the middle of appends, and the database crashes now and then: a group that was acknowledged is there once, and one
/// that was not is there or is not.
#[test]
fn an_answer_that_is_lost_leaves_nothing_in_doubt() {
    let Some(postgres) = Postgres::start() else { return };
    let log = log(&postgres, None, 1).unwrap();
    let (superblock, mut writer) = lead(&log).unwrap();
    let cutter = postgres.cut_now_and_then();
    let (mut lsn, mut unknown) = (1, 0);
    while lsn <= 400 {
        if lsn == 200 {
            postgres.crash();
        }
        match writer.append(lsn, 1, &body(20_000, lsn as u8)) {
            Ok(()) => lsn += 1,
            // The same group again, as the store does it.
            Err(AppendError::Unknown(_)) => unknown += 1,
            Err(AppendError::Retry(_)) => std::thread::sleep(std::time::Duration::from_millis(50)),
            Err(AppendError::Fatal(error)) => panic!("record {lsn}: {error}"),
        }
    }
    drop(cutter);
    let (records, tail) = log.read_after(&superblock, 0).unwrap();
    assert_eq!((records.len(), tail.lsn_last), (400, 400));
    assert!(records.iter().all(|one| one.payload().iter().all(|byte| *byte == one.lsn as u8)));
    // Most are known within the same call, so there may be none here.
    eprintln!("{unknown} of 400 appends were unknown when they returned");
}

#[test]
fn a_database_that_lost_its_newest_records_is_noticed() {
    let Some(postgres) = Postgres::start() else { return };
    let log = log(&postgres, None, 1).unwrap();
    let (superblock, mut writer) = lead(&log).unwrap();
    writer.append(1, 1, &body(10, 1)).unwrap();
    let chain: String = postgres.sql("SELECT chain FROM inlay.cluster");
    writer.append(2, 1, &body(10, 2)).unwrap();
    // As a standby without synchronous replication comes back.
    postgres.sql("DELETE FROM inlay.log WHERE lsn_first = 2");
    postgres.sql(&format!("UPDATE inlay.cluster SET lsn_next = 2, chain = {chain}"));
    assert!(matches!(writer.append(3, 1, &body(10, 3)), Err(AppendError::Fatal(_))));
    // A row that is lost, or changed, where the rest says that it is there.
    postgres.sql("UPDATE inlay.cluster SET lsn_next = 3");
    let text = log.read_after(&superblock, 0).err().unwrap().to_string();
    assert!(text.contains("records 2 to 2 are missing"), "{text}");
    postgres.sql("UPDATE inlay.cluster SET lsn_next = 2");
    assert_eq!(
        log.read_after(&superblock, 0).unwrap().1,
        LogTail { lsn_last: 1, chain: chain.parse::<i64>().unwrap() as u32, ..LogTail::default() }
    );
    postgres.sql("UPDATE inlay.log SET body = body || '\\x00'::bytea");
    assert!(log.read_after(&superblock, 0).err().unwrap().to_string().contains("is damaged"));
}

/// A process that follows has what the standby lacks, whatever the log has become since.
#[test]
fn who_has_read_what_is_lost_notices_it() {
    let Some(postgres) = Postgres::start() else { return };
    let leading = log(&postgres, None, 1).unwrap();
    let (superblock, mut writer) = lead(&leading).unwrap();
    writer.append(1, 1, &body(10, 1)).unwrap();
    let chain: String = postgres.sql("SELECT chain FROM inlay.cluster");
    writer.append(2, 1, &body(10, 2)).unwrap();
    let follower = log(&postgres, None, 2).unwrap();
    assert_eq!(numbers(&follower, 0).len(), 2);
    assert_eq!(follower.head().unwrap().lsn_next, 3);
    postgres.sql("DELETE FROM inlay.log WHERE lsn_first = 2");
    postgres.sql(&format!("UPDATE inlay.cluster SET lsn_next = 2, chain = {chain}"));
    let noticed = || {
        let error = follower.read_after(&superblock, 2).err().map(|error| error.to_string());
        assert!(
            error.as_deref().is_some_and(|error| error.contains("another history")),
            "{error:?}"
        );
    };
    noticed();
    // Another process goes on from there: shorter than what was read, as long, and longer.
    postgres.sql("UPDATE inlay.cluster SET lease_until = now() - interval '1 s'");
    let next = log(&postgres, None, 3).unwrap();
    let (_, mut next_writer) = lead(&next).unwrap();
    for lsn in 2..5 {
        next_writer.append(lsn, 1, &body(12, 9)).unwrap();
        noticed();
    }
    assert_eq!(numbers(&log(&postgres, None, 4).unwrap(), 0).len(), 4);
}

#[test]
fn settings_that_lose_data_and_missing_rights_are_refused_by_name() {
    let Some(postgres) = Postgres::start() else { return };
    let refused = |setting: &str, text: &str| {
        postgres.ask("postgres", &format!("ALTER DATABASE inlay SET {setting}"));
        let error = log(&postgres, None, 1).err().map(|error| error.to_string());
        assert!(error.as_deref().is_some_and(|error| error.contains(text)), "{setting}: {error:?}");
        let name = setting.split(' ').next().unwrap();
        postgres.ask("postgres", &format!("ALTER DATABASE inlay RESET {name}"));
    };
    refused("synchronous_commit = off", "synchronous_commit = off");
    refused("default_transaction_read_only = on", "takes no writes");
    let of_user = |user: &str, seed| {
        let url = postgres.url.replace("inlay@", &format!("{user}@"));
        let session = DatabaseSession::new(Calls::new().unwrap(), &url).unwrap();
        let identity = Identity::new(&SeededRng::new(seed), None);
        PostgresLog::new(Arc::new(session), identity).err().map(|error| error.to_string())
    };
    postgres.sql("CREATE USER guest");
    let error = of_user("guest", 1).unwrap();
    assert!(error.contains("permission denied for database inlay"), "{error}");
    let log = log(&postgres, None, 1).unwrap();
    lead(&log).unwrap();
    // Who does not own the tables could not vacuum what was erased.
    postgres.sql(
        "GRANT USAGE ON SCHEMA inlay TO guest; GRANT ALL ON ALL TABLES IN SCHEMA inlay TO guest",
    );
    let error = of_user("guest", 2).unwrap();
    assert!(error.contains("does not own the table inlay.log"), "{error}");
    // A copy on another server would delete what this one has in the bucket.
    let system = postgres.sql("UPDATE inlay.cluster SET system = system + 1 RETURNING system - 1");
    let error = of_user("inlay", 3).unwrap();
    assert!(error.contains("leads to a copy of a log"), "{error}");
    let mended = error.split("any more: ").nth(1).unwrap();
    assert_eq!(
        mended,
        format!("UPDATE inlay.cluster SET system = {}", system.lines().next().unwrap())
    );
    postgres.sql(mended);
    assert_eq!(of_user("inlay", 4), None);
    let now_ms = SystemClock.now_ms();
    let clocked = |off_ms: i64| {
        log.check_clock(&ManualClock::new(now_ms + off_ms)).map_err(|error| error.to_string())
    };
    assert_eq!(clocked(0), Ok(()));
    for off_ms in [-60_000, 60_000] {
        let error = clocked(off_ms).unwrap_err();
        assert!(error.starts_with("clock of this machine: differs by"), "{error}");
    }
    postgres.sql("UPDATE inlay.cluster SET layout = 2");
    let error = log.superblock().err().unwrap().to_string();
    assert!(error.contains("layout 2") && error.contains("use a newer build"), "{error}");
    assert!(log.create(&Superblock::new(&SeededRng::new(9))).is_err(), "there is a database");
}

/// A process of which the database believes that it is there.
fn seen(postgres: &Postgres, id: Uuid, formats: (i32, i32, i32)) {
    let (first, last, written) = formats;
    postgres.sql(&format!(
        "INSERT INTO inlay.nodes \
         (id, url, version, applied, fetched, format_first, format_last, format_written, seen_at) \
         VALUES ('{id}', 'http://10.0.0.6:8080', '7.0.0', 0, 0, {first}, {last}, {written}, now() + interval '1 h')"
    ));
}

#[test]
fn a_large_file_is_announced_and_the_others_are_waited_for() {
    let Some(postgres) = Postgres::start() else { return };
    drop(log(&postgres, None, 1).unwrap());
    let [leader, follower] = [1, 2].map(Uuid::from_u128);
    let uploads = |own| {
        let session = DatabaseSession::new(Calls::new().unwrap(), &postgres.url).unwrap();
        Uploads::new(session, own)
    };
    let (announced, others) = (Arc::new(uploads(leader)), uploads(follower));
    let timed = |path: &'static str, len| {
        let announced = Arc::clone(&announced);
        thread::spawn(move || {
            let start = Instant::now();
            announced.announce(path, len);
            start.elapsed()
        })
    };
    // Nobody else is there.
    assert!(timed("seg/a", 8 << 20).join().unwrap() < Duration::from_secs(3));
    seen(&postgres, follower, (1, 1, 1));
    let waiting = timed("seg/b", 8 << 20);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let of = |number| runtime.block_on(others.after(number)).unwrap();
    let start = Instant::now();
    while of(1).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(3));
    }
    let paths: Vec<String> = of(0).into_iter().map(|upload| upload.path).collect();
    assert_eq!(paths, ["seg/a", "seg/b"]);
    thread::sleep(Duration::from_millis(700));
    assert!(!waiting.is_finished(), "the other process has not fetched it");
    runtime.block_on(others.say_fetched(2)).unwrap();
    let took = waiting.join().unwrap();
    assert!((Duration::from_millis(700)..Duration::from_secs(4)).contains(&took), "{took:?}");
    timed("seg/small", 1_000).join().unwrap();
    assert!(of(2).is_empty(), "small files are not announced");
    // One that does not fetch is waited for once.
    let took = timed("seg/c", 8 << 20).join().unwrap();
    assert!((Duration::from_secs(5)..Duration::from_secs(9)).contains(&took), "{took:?}");
    assert!(timed("seg/d", 8 << 20).join().unwrap() < Duration::from_secs(3));
    assert_eq!(of(2).len(), 2);
}

#[test]
fn an_erasure_waits_until_copies_that_no_record_names_are_discarded() {
    let Some(postgres) = Postgres::start() else { return };
    let log = Arc::new(log(&postgres, None, 1).unwrap());
    lead(&log).unwrap();
    let follower = Uuid::from_u128(2);
    seen(&postgres, follower, (1, 1, 1));
    let settling = thread::spawn({
        let log = Arc::clone(&log);
        move || log.settle_deletions()
    });
    thread::sleep(Duration::from_millis(700));
    assert!(!settling.is_finished(), "it has not come to the announcement");
    assert_eq!(postgres.sql("SELECT path FROM inlay.uploads"), "");
    postgres.sql("UPDATE inlay.nodes SET fetched = (SELECT max(number) FROM inlay.uploads)");
    settling.join().unwrap().unwrap();
}

#[test]
fn a_process_that_reads_other_formats_alone_does_not_start() {
    let Some(postgres) = Postgres::start() else { return };
    lead(&log(&postgres, None, 1).unwrap()).unwrap();
    seen(&postgres, Uuid::from_u128(2), (1, 2, 1));
    log(&postgres, None, 2).unwrap();
    // One that writes what this build does not read, and one that does not read what it writes.
    for (number, formats, shown) in [
        (3, (1, 2, 2), "reads formats 1 to 2 and writes 2"),
        (4, (2, 2, 1), "reads formats 2 to 2 and writes 1"),
    ] {
        seen(&postgres, Uuid::from_u128(number), formats);
        let text = log(&postgres, None, 2).err().unwrap().to_string();
        let names = format!("a process of version 7.0.0 runs that {shown}; this one, of version");
        assert!(text.contains(&names), "{text}");
        postgres.sql(&format!(
            "DELETE FROM inlay.nodes WHERE format_last = 2 AND id <> '{}'",
            Uuid::from_u128(2)
        ));
    }
    seen(&postgres, Uuid::from_u128(5), (7, 7, 7));
    postgres.sql("UPDATE inlay.nodes SET seen_at = now() - interval '11 s'");
    log(&postgres, None, 2).unwrap();
}

#[test]
fn tables_of_an_older_build_get_what_they_lack() {
    let Some(postgres) = Postgres::start() else { return };
    lead(&log(&postgres, None, 1).unwrap()).unwrap();
    postgres.sql("DROP TABLE inlay.uploads");
    for column in ["fetched", "format_first", "format_last", "format_written"] {
        postgres.sql(&format!("ALTER TABLE inlay.nodes DROP COLUMN {column}"));
    }
    let again = log(&postgres, None, 2).unwrap();
    assert!(again.state().unwrap().is_some(), "what was there is there");
    // An older build that runs on says nothing of what it has fetched, and is not waited for.
    let older = "INSERT INTO inlay.nodes (id, url, version, applied, seen_at) \
                 VALUES ('00000000-0000-0000-0000-000000000002', 'http://a', '1', 99, now() + interval '1 h')";
    postgres.sql(older);
    let start = Instant::now();
    again.settle_deletions().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn records_stay_until_each_process_that_is_there_has_applied_them() {
    let Some(postgres) = Postgres::start() else { return };
    let log = log(&postgres, None, 1).unwrap();
    let (_, mut writer) = lead(&log).unwrap();
    for lsn in 1..=5 {
        writer.append(lsn, 1, &body(10, 1)).unwrap();
    }
    seen(&postgres, Uuid::from_u128(2), (1, 1, 1));
    let first = || postgres.sql("SELECT min(lsn_first) FROM inlay.log");
    postgres.sql("UPDATE inlay.nodes SET applied = 2");
    log.forget(4, None).unwrap();
    assert_eq!(first(), "3");
    postgres.sql("UPDATE inlay.nodes SET applied = 3, seen_at = now() - interval '11 s'");
    log.forget(4, None).unwrap();
    assert_eq!(first(), "5", "one that is away is not waited for");
}
