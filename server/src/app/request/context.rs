//! Context of every operation: the engine, clock, random numbers, settings and the caller.
//!
//! ```text
//! let mut app = app.clone();          one for each request
//! app.acting = Some(caller);          org_txn checks the caller again before it changes anything
//! app.named = Some(named);            and marks in the same transaction that the request was carried out
//! app.publish_dashboard(&caller, id)
//! ```

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use inlay_engine::{Clock, Engine, Rng, Txn};
use parking_lot::Mutex;

use super::{
    callers::{Caller, KeyCallers},
    idempotency_key::NamedRequest,
};
use crate::{
    app::{counters::Counters, settings::Settings},
    base::{ids::Ids, permit_pools::PermitPools, query_permits::QueryPermit},
    error::{ApiError, Result},
    store::{Org, OrgReader, OrgTxn},
};

/// State that all requests share.
pub struct AppState {
    /// Events and keys.
    pub engine: Arc<Engine>,
    /// Wall clock in milliseconds since 1970; tests replace it.
    pub clock: Arc<dyn Clock>,
    /// Source of random bytes for ids, secrets and backoff; tests replace it.
    pub rng: Arc<dyn Rng>,
    /// Generator of UUIDv7 ids, which rise also within a millisecond.
    pub ids: Ids,
    /// Counts of queries and embed views that are not stored yet.
    pub counters: Counters,
    /// Callers of API keys that were decoded before.
    pub key_callers: KeyCallers,
    /// Pools of permits for work that is not shared between organisations.
    pub pools: PermitPools,
    /// The chart of the last alert that was mailed, by its event: all its addresses get the same.
    pub last_alert_chart: Mutex<Option<(String, Arc<Vec<u8>>)>>,
}

/// The product: its state, and what is known of the request under way. Each request has a clone: one counter of references for
/// all of the state, since threads that count at the same place wait for each other.
#[derive(Clone)]
pub struct App {
    /// State that all requests and jobs share.
    pub state: Arc<AppState>,
    /// Settings of the product; a job may give its clone others.
    pub settings: Arc<Settings>,
    /// Caller of the request under way; checked again in the transaction of a change.
    pub acting: Option<Caller>,
    /// The request under way, when it has an idempotency key.
    pub named: Option<Arc<NamedRequest>>,
    /// Set when nobody waits for the answer of this request any more.
    pub abandoned: Arc<AtomicBool>,
    /// Permit of a query, which yields to other queries between blocks.
    pub permit: Option<Arc<QueryPermit>>,
    /// Time limit of a request that is tried on the thread that reads its socket.
    pub attempt: Option<Arc<Attempt>>,
    /// Whether an attempt has counted the queries of this request already.
    pub is_counted: bool,
}

impl std::ops::Deref for App {
    type Target = AppState;

    fn deref(&self) -> &AppState {
        &self.state
    }
}

/// How many times its limit an attempt may take of wall time: some turns of others on the same core.
const WALL_TIMES: u64 = 25;

/// Work that is given up when it takes longer than a fraction of a millisecond of processor, and begun anew elsewhere.
///
/// Wall time that is over says little on a busy machine: the thread may have waited for a core, and a query that is begun anew
/// makes the machine busier. So the processor time of the thread is looked at then, which is a call of the kernel, and the
/// attempt goes on for as long as it has used less than its limit since it was first looked at, and no more than some times its limit
/// of wall time are over.
#[derive(Debug)]
pub struct Attempt {
    limit: Duration,
    began: Instant,
    /// Microseconds since it began until which nothing is looked at.
    until_us: AtomicU64,
    /// Microseconds of processor of the thread when they were first looked at; `u64::MAX` before.
    processor_us: AtomicU64,
    is_given_up: AtomicBool,
}

impl Attempt {
    /// Starts an attempt with a limit of processor time.
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            began: Instant::now(),
            until_us: AtomicU64::new(limit.as_micros() as u64),
            processor_us: AtomicU64::new(u64::MAX),
            is_given_up: AtomicBool::new(false),
        }
    }

    /// Whether the time is over.
    fn is_over(&self) -> bool {
        let wall_us = self.began.elapsed().as_micros() as u64;
        wall_us >= self.until_us.load(Ordering::Relaxed) && self.is_used_up(wall_us, processor_us())
    }

    /// Whether the processor time is used up; if not, when it may be.
    ///
    /// With a limit of 200 µs: looked at after 3,000 µs of wall time, the thread may go on, since nothing is known of its processor time
    /// before; 80 µs of processor later it has 120 left; after 200 it is over, and at 5,000 µs of wall time in any case.
    fn is_used_up(&self, wall_us: u64, processor_us: u64) -> bool {
        let limit_us = self.limit.as_micros() as u64;
        // It may wait for a disk, and others for it.
        if wall_us >= limit_us * WALL_TIMES {
            return true;
        }
        let first_us = self.processor_us.load(Ordering::Relaxed).min(processor_us);
        self.processor_us.store(first_us, Ordering::Relaxed);
        let rest_us = limit_us.saturating_sub(processor_us - first_us);
        self.until_us.store(wall_us + rest_us, Ordering::Relaxed);
        rest_us == 0
    }

    /// Gives up: the result of the attempt is discarded.
    pub fn give_up(&self) -> ApiError {
        self.is_given_up.store(true, Ordering::Relaxed);
        ApiError::internal("an attempt was given up".to_owned())
    }

    /// Whether the work must be begun anew.
    /// Whoever began the attempt asks this first: the error of the work means nothing then.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }
}

/// Microseconds of processor that this thread has used.
fn processor_us() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

impl App {
    /// With empty counters, for no request yet.
    pub fn new(
        engine: Arc<Engine>,
        clock: Arc<dyn Clock>,
        rng: Arc<dyn Rng>,
        settings: Arc<Settings>,
    ) -> Self {
        let (ids, counters) = (Ids::default(), Counters::default());
        let key_callers = KeyCallers::default();
        Self {
            state: Arc::new(AppState {
                engine,
                clock,
                rng,
                ids,
                counters,
                key_callers,
                pools: PermitPools::default(),
                last_alert_chart: Mutex::default(),
            }),
            settings,
            acting: None,
            named: None,
            abandoned: Arc::default(),
            permit: None,
            attempt: None,
            is_counted: false,
        }
    }

    /// Says when a query that begins now must stop: at its deadline, when nobody waits for it, or when the time of an
    /// attempt is over. While it is another query's turn, the answer comes later.
    ///
    /// Called between blocks by the threads of a query. `true` ends it with an error of the engine, which becomes `query_timeout`.
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
    /// `0190…`, 36 characters. What is listed by id is in order of time.
    pub fn new_id(&self) -> String {
        let mut random = [0; 8];
        self.rng.fill(&mut random);
        self.ids.next(u64::try_from(self.now_ms()).unwrap_or(0), random)
    }

    /// A random number, uniform over all 64 bits.
    pub fn chance(&self) -> u64 {
        let mut random = [0; 8];
        self.rng.fill(&mut random);
        u64::from_le_bytes(random)
    }

    /// Records of an organisation as of now.
    ///
    /// A snapshot: what is written later is not seen, and several reads through one reader fit together.
    pub fn org_reader(&self, org: &str) -> OrgReader {
        OrgReader::new(self.engine.keys(), org)
    }

    /// Runs a transaction over the records of an organisation.
    ///
    /// Errors: 404 when the organisation was deleted meanwhile; 401 and 403 of [`Caller::check_again`]; 409 when another attempt at the same
    /// named request was carried out; those of `run`. Nothing is written after an error.
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
            if let Some(named) = &self.named {
                named.mark(txn, self.now_ms())?;
            }
            Ok(done)
        })
    }

    /// Whether the caller of the request under way still may: [`Caller::check_again`].
    pub fn check_acting(&self, txn: &mut Txn) -> Result<()> {
        self.acting.as_ref().map_or(Ok(()), |caller| caller.check_again(txn))
    }

    /// The record of an organisation.
    ///
    /// Errors: 404 when there is none with this id.
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
        let engine = Engine::open(Arc::new(SimVfs::new()), options).unwrap();
        let settings = Settings { password_cost: 4, ..Settings::default() };
        let (clock, rng) = (Arc::new(SystemClock), Arc::new(SeededRng::new(7)));
        Self::new(Arc::new(engine), clock, rng, Arc::new(settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_goes_on_while_its_thread_waits_for_a_core() {
        let attempt = Attempt::new(Duration::from_micros(200));
        // It waited for three milliseconds, and had used 5,020 microseconds of processor before or since.
        assert!(!attempt.is_used_up(3_000, 5_020));
        assert_eq!(attempt.until_us.load(Ordering::Relaxed), 3_200);
        assert!(!attempt.is_used_up(3_200, 5_100));
        assert_eq!(attempt.until_us.load(Ordering::Relaxed), 3_320);
        assert!(attempt.is_used_up(3_320, 5_220));
        assert!(!Attempt::new(Duration::from_secs(9)).is_over());
        let waiting = Attempt::new(Duration::from_micros(200));
        assert!(!waiting.is_used_up(4_999, 7));
        assert!(waiting.is_used_up(5_000, 7));
        let short = Attempt::new(Duration::ZERO);
        assert!(short.is_over());
    }
}
