//! Random histories, and running them on a disk until it fails.

use std::sync::Arc;

use inlay_engine::*;

use crate::model::Model;

/// Namespace and name; the last one's namespace may be dropped.
pub const TENANTS: [(Namespace, &str); 3] =
    [(Namespace(1), "acme"), (Namespace(1), "globex"), (Namespace(2), "acme")];
/// The tenant of the second namespace.
pub const DROPPABLE: usize = 2;
/// The model of a user's events: a dimension that has rollups.
pub const MODELS: [&str; 2] = ["even", "odd"];
pub const EVENTS: [&str; 2] = ["call", "view"];
/// A midnight.
pub const FIRST_DAY_MS: i64 = 1_699_056_000_000;
pub const DAYS: i64 = 4;
const DAY_MS: i64 = 86_400_000;
const NOW_MS: i64 = 1_700_000_000_000;
/// The shortest retention that keeps all days of the histories.
const KEEPS_ALL_DAYS: u32 = (NOW_MS / DAY_MS - FIRST_DAY_MS / DAY_MS) as u32;

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub tenant: usize,
    pub event: usize,
    pub day: i64,
    pub id: Option<u32>,
    pub user: u32,
    pub ms: f64,
}

#[derive(Debug, Clone)]
pub enum Operation {
    Ingest(Vec<Row>),
    Keys(Vec<(String, Option<String>)>),
    Flush,
    /// All the background work that is due: merges, days parted and sealed, id runs merged.
    Compact,
    /// A tenant's events, or those of one of its users, asked for and carried out.
    Erase {
        tenant: usize,
        user: Option<u32>,
    },
    /// The first namespace keeps its days from this one on; what has expired is dropped.
    KeepFrom(i64),
    /// The second namespace goes.
    Drop,
    Restart,
}

/// The random history of a seed. One in four has retention and a namespace that is dropped instead of
/// erasures of tenants and users: an erasure takes the ids of days that have expired with it or not, by whether
/// their files are still there.
pub fn history(seed: u64, rng: &SeededRng) -> Vec<Operation> {
    let operations = with_erasures(rng);
    if seed.is_multiple_of(4) { with_expiry(operations, rng) } else { operations }
}

fn with_expiry(operations: Vec<Operation>, rng: &SeededRng) -> Vec<Operation> {
    let dropped_at = rng.below(operations.len() as u64) as usize;
    let (mut first_day, mut expiring) = (0, Vec::new());
    for (at, mut operation) in operations.into_iter().enumerate() {
        if at == dropped_at {
            expiring.push(Operation::Drop);
        }
        match &mut operation {
            Operation::Ingest(rows) if at < dropped_at && rng.below(3) == 0 => {
                rows.iter_mut().for_each(|row| row.tenant = DROPPABLE);
            }
            Operation::Erase { .. } | Operation::Keys(_) => {
                first_day = (first_day + rng.below(3) as i64).min(DAYS);
                operation = Operation::KeepFrom(first_day);
            }
            _ => {}
        }
        expiring.push(operation);
    }
    expiring
}

fn with_erasures(rng: &SeededRng) -> Vec<Operation> {
    let mut next_id = 0;
    (0..6 + rng.below(10))
        .map(|_| match rng.below(16) {
            0..7 => Operation::Ingest(
                (0..1 + rng.below(6)).map(|_| random_row(rng, &mut next_id)).collect(),
            ),
            7..9 => Operation::Keys(
                (0..1 + rng.below(3))
                    .map(|_| {
                        let value = (rng.below(4) > 0).then(|| rng.below(100).to_string());
                        (format!("k{}", rng.below(5)), value)
                    })
                    .collect(),
            ),
            9..12 => Operation::Flush,
            12..14 => Operation::Compact,
            14 => Operation::Erase {
                tenant: rng.below(2) as usize,
                user: (rng.below(4) > 0).then(|| rng.below(5) as u32),
            },
            _ => Operation::Restart,
        })
        .collect()
}

fn random_row(rng: &SeededRng, next_id: &mut u64) -> Row {
    let id = match rng.below(4) {
        0 => None,
        1 if *next_id > 0 => Some(rng.below(*next_id) as u32),
        _ => {
            *next_id += 1;
            Some(*next_id as u32 - 1)
        }
    };
    Row {
        tenant: rng.below(2) as usize,
        event: rng.below(2) as usize,
        day: rng.below(DAYS as u64) as i64,
        id,
        user: rng.below(5) as u32,
        ms: rng.below(1_000) as f64 / 4.0,
    }
}

/// Opens an engine whose limits are small, so that few rows make many files.
pub fn open(disk: &SimVfs, seed: u64) -> Result<Engine> {
    let compaction = CompactionLimits {
        fan_in: 2,
        inputs_max: 4,
        segment_rows_max: 8,
        run_ids_max: 20,
        rollup_rows_min: 1,
        ..CompactionLimits::without_waiting()
    };
    let options = Options {
        clock: Arc::new(ManualClock::new(NOW_MS)),
        rng: Arc::new(SeededRng::new(seed)),
        limits: Limits { log_file_bytes: 2_048, compaction, ..Limits::default() },
        background: false,
        ..Options::default()
    };
    Engine::open(Arc::new(disk.clone()), options)
}

impl Operation {
    /// Durable before the work that follows from it: an error says nothing about the request.
    fn is_asked_for_first(&self) -> bool {
        matches!(self, Self::Erase { .. } | Self::KeepFrom(_) | Self::Drop)
    }
}

pub fn run(engine: &Engine, operation: &Operation) -> Result<()> {
    match operation {
        Operation::Ingest(rows) => ingest(engine, rows),
        Operation::Keys(writes) => engine.transact(|txn| {
            for (key, value) in writes {
                match value {
                    Some(value) => txn.put(key.as_bytes(), value.as_bytes()),
                    None => txn.delete(key.as_bytes()),
                }
            }
            Ok(())
        }),
        Operation::Flush => engine.flush(),
        Operation::Compact => engine.compact().map(drop),
        Operation::Erase { tenant, user } => {
            let (namespace, tenant) = TENANTS[*tenant];
            let user = user.map(|user| format!("user-{user}"));
            let whose = match &user {
                None => Whose::Tenant(tenant),
                Some(user) => Whose::User { tenant, user },
            };
            erase(engine, namespace, &whose)
        }
        Operation::KeepFrom(first_day) => {
            let days = KEEPS_ALL_DAYS - *first_day as u32;
            engine.set_retention(TENANTS[0].0, Some(days))?;
            engine.compact().map(drop)
        }
        Operation::Drop => erase(engine, TENANTS[DROPPABLE].0, &Whose::Namespace),
        Operation::Restart => Ok(()),
    }
}

fn erase(engine: &Engine, namespace: Namespace, whose: &Whose<'_>) -> Result<()> {
    engine.transact(|txn| {
        engine.erase(txn, namespace, whose);
        Ok::<_, Error>(())
    })?;
    engine.compact().map(drop)
}

/// Rows of one namespace.
fn ingest(engine: &Engine, rows: &[Row]) -> Result<()> {
    let mut batch = engine.batch(rows.first().map_or(Namespace(1), |row| TENANTS[row.tenant].0));
    for (at, row) in rows.iter().enumerate() {
        let id = row.id.map(|id| format!("id-{id}"));
        let user_id = format!("user-{}", row.user);
        let event = Event {
            tenant: TENANTS[row.tenant].1,
            name: EVENTS[row.event],
            timestamp_ms: FIRST_DAY_MS + row.day * DAY_MS + at as i64 * 7_000_000,
            event_id: id.as_deref(),
            user_id: Some(&user_id),
        };
        let user = row.user.to_string();
        let model = MODELS[row.user as usize % MODELS.len()];
        batch.push(&event, &[("user", &user), ("model", model)], &[("ms", row.ms)])?;
    }
    engine.ingest(batch, |txn, ingested| {
        let used = txn
            .find(b"used")
            .map_or(0, |used| String::from_utf8_lossy(&used).parse::<u32>().unwrap());
        txn.put(b"used", (used + ingested.new).to_string().as_bytes());
        Ok::<_, Error>(())
    })?;
    Ok(())
}

/// Runs a history until an operation fails for good. Gives the state of what was acknowledged, and
/// that state with the operation under way, if one was.
pub fn play(
    disk: &SimVfs,
    operations: &[Operation],
    seed: u64,
    stop_at_error: bool,
) -> (Model, Option<Model>) {
    let mut model = Model::default();
    let Ok(mut engine) = open(disk, seed) else { return (model, None) };
    // An erasure that met a full disk is carried out later: from then on both may be seen.
    let mut later: Option<Model> = None;
    for (at, operation) in operations.iter().enumerate() {
        if matches!(operation, Operation::Restart) {
            drop(engine);
            match open(disk, seed + at as u64 + 1) {
                Ok(opened) => engine = opened,
                Err(_) => return (model, later),
            }
            continue;
        }
        if later.is_some() {
            // What exactly an unfinished erasure will find is not decided yet.
            return (model, later);
        }
        let is_background = matches!(operation, Operation::Flush | Operation::Compact);
        match run(&engine, operation) {
            Ok(()) => model.apply(operation),
            Err(Error::Limit { .. }) if !operation.is_asked_for_first() => {}
            Err(_) if !stop_at_error && is_background && engine.closed().is_none() => {}
            Err(_) => {
                let mut with = model.clone();
                with.apply(operation);
                let goes_on = !stop_at_error && engine.closed().is_none();
                later = Some(with);
                if !goes_on {
                    return (model, later);
                }
            }
        }
    }
    (model, later)
}
