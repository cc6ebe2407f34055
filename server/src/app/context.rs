//! What every operation needs: the engine, time, chance, settings, and who asks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use inlay_engine::{Clock, Engine, Rng, Txn};

use super::{
    callers::{Caller, KeyCallers},
    counters::Counters,
    named::NamedRequest,
    settings::Settings,
};
use crate::{
    base::{ids::Ids, query_permits::QueryPermit},
    error::{ApiError, Result},
    store::{Org, OrgReader, OrgTxn},
};

/// The product: its state and its means. Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// Events and keys.
    pub engine: Arc<Engine>,
    /// Wall time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub rng: Arc<dyn Rng>,
    /// Settings.
    pub settings: Arc<Settings>,
    /// Makes ids.
    pub ids: Arc<Ids>,
    /// What is counted in memory.
    pub counters: Arc<Counters>,
    /// Callers of API keys that were decoded before.
    pub key_callers: Arc<KeyCallers>,
    /// Who makes the request under way; looked at again where its change is made.
    pub acting: Option<Arc<Caller>>,
    /// The request under way, when its client named it.
    pub named: Option<Arc<NamedRequest>>,
    /// Set when nobody waits for the answer of this request any more.
    pub abandoned: Arc<AtomicBool>,
    /// The permit of a query, which gives way to others at the borders of blocks.
    pub permit: Option<Arc<QueryPermit>>,
    /// What bounds the work of a request that is tried on the thread that reads its socket.
    pub attempt: Option<Arc<Attempt>>,
    /// Whether an attempt has counted the queries of this request already.
    pub is_counted: bool,
}

/// Work that is given up when it takes longer than a fraction of a millisecond, and begun anew elsewhere.
#[derive(Debug)]
pub struct Attempt {
    deadline: Instant,
    is_given_up: AtomicBool,
}

impl Attempt {
    /// Starts an attempt with a time limit.
    pub fn new(limit: Duration) -> Self {
        Self { deadline: Instant::now() + limit, is_given_up: AtomicBool::new(false) }
    }

    /// Whether the time is over.
    fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Gives up: the result of the attempt is discarded.
    pub fn give_up(&self) -> ApiError {
        self.is_given_up.store(true, Ordering::Relaxed);
        ApiError::internal("an attempt was given up".to_owned())
    }

    /// Whether the work must be begun anew.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }
}

impl App {
    /// Says when a query that begins now must stop: at its deadline, when nobody waits for it, or when the time of an
    /// attempt is over. While it is another query's turn, the answer comes later.
    pub fn query_control(&self) -> impl Fn() -> bool + use<'_> {
        let deadline = Instant::now() + Duration::from_millis(self.settings.query_ms_max);
        let is_over = move || self.abandoned.load(Ordering::Relaxed) || Instant::now() >= deadline;
        move || {
            if is_over() || self.attempt.as_ref().is_some_and(|attempt| attempt.is_over()) {
                return true;
            }
            let Some(permit) = &self.permit else { return false };
            permit.give_way();
            is_over()
        }
    }

    /// Now, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// A new id: UUIDv7, later ones above earlier ones.
    pub fn new_id(&self) -> String {
        let mut random = [0; 8];
        self.rng.fill(&mut random);
        self.ids.next(u64::try_from(self.now_ms()).unwrap_or(0), random)
    }

    /// Any number.
    pub fn chance(&self) -> u64 {
        let mut random = [0; 8];
        self.rng.fill(&mut random);
        u64::from_le_bytes(random)
    }

    /// Records of an organisation as of now.
    pub fn org_reader(&self, org: &str) -> OrgReader {
        OrgReader::new(self.engine.keys(), org)
    }

    /// Runs a transaction over the records of an organisation.
    pub fn org_txn<T>(
        &self,
        org: &str,
        run: impl FnOnce(&mut OrgTxn<'_>) -> Result<T>,
    ) -> Result<T> {
        self.engine.transact(|txn: &mut Txn| {
            let records = OrgTxn::new(txn, org);
            // A request that was under way when its organisation was deleted leaves nothing behind.
            if records.find::<Org>(org)?.is_none() {
                return Err(ApiError::not_found("organisation"));
            }
            self.check_acting(txn)?;
            let mut records = OrgTxn::new(txn, org);
            let done = run(&mut records)?;
            self.mark_request(txn)?;
            Ok(done)
        })
    }

    /// The caller's organisation.
    pub fn org(&self, org: &str) -> Result<Org> {
        self.org_reader(org).find(org)?.ok_or_else(|| ApiError::not_found("organisation"))
    }
}

#[cfg(test)]
impl App {
    /// An app over a store in memory, with chance that repeats itself and quick passwords.
    pub fn in_memory() -> Self {
        use inlay_engine::{Options, SeededRng, SimVfs, SystemClock};
        let options = Options { background: false, ..Options::default() };
        Self {
            engine: Arc::new(Engine::open(Arc::new(SimVfs::new()), options).unwrap()),
            clock: Arc::new(SystemClock),
            rng: Arc::new(SeededRng::new(7)),
            settings: Arc::new(Settings { password_cost: 4, ..Settings::default() }),
            ids: Arc::default(),
            counters: Arc::default(),
            key_callers: Arc::default(),
            acting: None,
            named: None,
            abandoned: Arc::default(),
            permit: None,
            attempt: None,
            is_counted: false,
        }
    }
}
