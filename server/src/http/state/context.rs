//! State that all handlers share, and the permits of a request: queries, bodies, password hashes, mails, drawings.
//!
//! A handler has five ways to run its work, by the resource that it needs:
//!
//! ```text
//! run           records of the keyspace          the blocking pool
//! run_hashing   a password                       two at once; 429 "too many passwords at once; retry soon" after 3 s
//! try_query     a query that is mostly short     this thread for 200 µs, then as `run_query`
//! run_query     a query                          a permit of its organisation, on a thread for queries; 503 after 10 s
//! run_drawing   a file of a report               one at once; 503 after 10 s
//! ```
//!
//! When the client leaves, its request is dropped, and a flag tells queries to stop.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{
    in_flight::InFlight, request_metrics::Requests, schema_cache::SchemaCache, throttle::Throttle,
};
use crate::{
    app::{App, Attempt, Caller, NamedRequest},
    base::{
        memory::Shares,
        permit_pools::{Permit, PermitPool, PoolCounts},
        query_permits::{QueryCounts, QueryPermit, QueryPermits},
        query_threads::QueryThreads,
    },
    error::{ApiError, Code, Result},
    outbound::{Dispatcher, LeaderClient},
    sql::{StatementRunner, WorkerPool},
    web::Files,
};

/// Bytes of a permit for memory.
const KIB: usize = 1_024;
/// What a request costs at least, whatever it sends.
const REQUEST_BYTES: usize = 64 << 10;
/// A body becomes parsed events, rows in columns and a log record beside itself.
const INGEST_FACTOR: usize = 4;
/// Password hashes that are computed at once: each takes a core for a quarter of a second.
const HASHES_AT_ONCE: usize = 2;
/// Files of reports that are drawn at once because somebody asks for them: each takes a core for up to seconds.
const DRAWINGS_AT_ONCE: usize = 1;
/// Mails under way that requests asked for, each for nearly four minutes where the mail server does not answer.
const MAILS_AT_ONCE: usize = 256;
/// A password waits this long for a permit.
const HASHING_WAIT: std::time::Duration = std::time::Duration::from_secs(3);
/// How long a query is tried on the thread that reads its socket. Nearly all whose results are cached or rolled up take
/// less; another thread costs some forty microseconds.
const ATTEMPT: std::time::Duration = std::time::Duration::from_micros(200);
/// Requests wait this long for memory or a permit before they are refused.
const WAIT: std::time::Duration = std::time::Duration::from_secs(10);

tokio::task_local! {
    /// The request under way, when it has an idempotency key.
    pub static NAMED: Arc<NamedRequest>;
    /// Caller of the request under way.
    pub static ACTING: Caller;
}

/// State of the router. Every layer of a request has a copy.
#[derive(Clone)]
pub struct Http(Arc<HttpState>);

/// State shared by all clones.
pub struct HttpState {
    /// Operations of the product, without a request under way.
    pub app: App,
    /// Files for browsers.
    pub files: Files,
    /// Counts of answered requests, for metrics.
    pub requests: Requests,
    /// Schemas of bodies.
    pub schemas: Arc<SchemaCache>,
    /// Requests with an idempotency key that are under way.
    pub under_way: Arc<InFlight>,
    /// Token buckets of all rate limits.
    pub throttle: Arc<Throttle>,
    /// Sends webhooks and mails.
    pub dispatcher: Dispatcher,
    /// Sends requests to the process that leads, where that is another one.
    pub leader: LeaderClient,
    /// Runs SQL statements in worker processes.
    pub statements: StatementRunner,
    /// Permits for the memory of work on bodies: one for each KiB.
    ingest: Arc<PermitPool>,
    /// Permits for mails that are sent after the answer of their request.
    pub mailing: Arc<PermitPool>,
    hashing: Arc<PermitPool>,
    drawing: Arc<PermitPool>,
    /// Permits for the memory of bodies that are received.
    bodies: Arc<PermitPool>,
    queries: Arc<QueryPermits>,
    query_threads: Arc<QueryThreads>,
    /// Whether this process stops soon: it is not ready any more, and closes connections with their next answer.
    pub is_draining: AtomicBool,
}

impl std::ops::Deref for Http {
    type Target = HttpState;

    fn deref(&self) -> &HttpState {
        &self.0
    }
}

impl Http {
    /// A router's state.
    pub fn new(
        app: App,
        shares: &Shares,
        throttle: Arc<Throttle>,
        dispatcher: Dispatcher,
        workers: Arc<WorkerPool>,
    ) -> Self {
        let statements = StatementRunner::new(app.clone(), workers);
        let pool = |name, all| app.pools.pool(name, all);
        let memory = |name, bytes| pool(name, usize::try_from(bytes).unwrap_or(usize::MAX) / KIB);
        let (ingest, bodies) =
            (memory("ingest_kib", shares.ingest), memory("body_kib", shares.bodies));
        let mailing = pool("mails", MAILS_AT_ONCE);
        let leader = LeaderClient::new(&app.settings.membership);
        let hashing = pool("password_hashes", HASHES_AT_ONCE);
        let drawing = pool("drawings", DRAWINGS_AT_ONCE);
        Self(Arc::new(HttpState {
            app,
            files: Files::load(),
            requests: Requests::default(),
            schemas: Arc::default(),
            under_way: Arc::default(),
            throttle,
            dispatcher,
            leader,
            statements,
            ingest,
            mailing,
            hashing,
            drawing,
            bodies,
            queries: Arc::new(QueryPermits::new(
                std::thread::available_parallelism().map_or(1, usize::from),
            )),
            query_threads: Arc::default(),
            is_draining: AtomicBool::new(false),
        }))
    }

    /// Whether a webhook may be saved, as far as its name tells now; its text is judged with the rest of its
    /// rule. 400 naming `webhook_url`.
    pub async fn check_webhook(&self, url: Option<&str>) -> Result<()> {
        match url {
            Some(url) if !self.dispatcher.poster.may_be_saved(url).await => {
                let message = "webhook_url must be a public web address";
                Err(ApiError::field(Code::InvalidField, "webhook_url", message))
            }
            _ => Ok(()),
        }
    }

    /// Runs engine work on the blocking pool.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&App) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run_in(None, work).await
    }

    /// Runs engine work with its permit, if it needs one, and with a flag that is set when no
    /// client waits for it any more. The permit is released when the work has ended, not when its
    /// client has left.
    pub async fn run_in<T: Send + 'static>(
        &self,
        permit: Option<Permit>,
        work: impl FnOnce(&App) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (app, _waits) = self.app_of_request(None);
        let work = move || {
            let _permit = permit;
            work(&app)
        };
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or_else(|error| Err(ApiError::internal(format!("a task ended: {error}"))))
    }

    /// The product with the facts of this request. The second value is dropped when no client waits
    /// for the answer any more.
    fn app_of_request(&self, permit: Option<Arc<QueryPermit>>) -> (App, ClientWaits) {
        let waits = ClientWaits(Arc::default());
        let named = NAMED.try_with(Arc::clone).ok();
        let acting = ACTING.try_with(Caller::clone).ok();
        let abandoned = Arc::clone(&waits.0);
        (App { abandoned, acting, named, permit, ..self.app.clone() }, waits)
    }

    /// Runs work that hashes a password, a few at once.
    pub async fn run_hashing<T: Send + 'static>(
        &self,
        work: impl FnOnce(&App) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        match self.hashing.acquire(1, HASHING_WAIT).await {
            Some(permit) => self.run_in(Some(permit), work).await,
            None => Err(ApiError {
                retry_after: Some(HASHING_WAIT.as_secs() as u32),
                ..ApiError::new(Code::RateLimited, "too many passwords at once; retry soon")
            }),
        }
    }

    /// Runs work of an organisation that reads events: as much at once as there are cores, shared between
    /// organisations.
    pub async fn run_query<T: Send + 'static>(
        &self,
        org: &str,
        work: impl FnOnce(&App) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let Some(permit) = self.queries.acquire(org, WAIT).await else {
            return Err(ApiError::new(Code::Overloaded, "the server is busy; retry soon"));
        };
        let (app, _waits) = self.app_of_request(Some(Arc::new(permit)));
        let done = self.query_threads.run(move || work(&app)).await;
        done.unwrap_or_else(|| Err(ApiError::internal("the thread of a query ended")))
    }

    /// How many queries of organisations run and wait.
    pub fn query_counts(&self) -> QueryCounts {
        self.queries.counts()
    }

    /// How much of each kind of work is under way, that of statements of SQL among it.
    pub fn pool_counts(&self) -> Vec<PoolCounts> {
        let mut counts = self.app.pools.counts();
        counts.push(self.statements.admission().counts());
        counts
    }

    /// Runs work of an organisation that reads events and is mostly short: on this thread, and anew as
    /// [`Http::run_query`] does where it takes longer.
    pub async fn try_query<T: Send + 'static>(
        &self,
        org: &str,
        work: impl Fn(&App) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        match self.attempt(&work) {
            Some(done) => done,
            // Few requests come here, and each would carry the room for it.
            None => Box::pin(self.run_after_attempt(org, work)).await,
        }
    }

    /// Runs work that reads events on this thread. `None` where it takes longer than an attempt may.
    pub fn attempt<T>(&self, work: &impl Fn(&App) -> Result<T>) -> Option<Result<T>> {
        let attempt = Arc::new(Attempt::new(ATTEMPT));
        let (app, _waits) = self.app_of_request(None);
        let app = App { attempt: Some(Arc::clone(&attempt)), ..app };
        // A panic fails the query, wherever it runs.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&app)));
        let failed = |_| Err(ApiError::internal("a query panicked"));
        (!attempt.is_given_up()).then(|| done.unwrap_or_else(failed))
    }

    /// Runs work anew that [`Http::attempt`] has given up. Its queries are counted already.
    pub async fn run_after_attempt<T: Send + 'static>(
        &self,
        org: &str,
        work: impl Fn(&App) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run_query(org, move |app| work(&App { is_counted: true, ..app.clone() })).await
    }

    /// Queries that run at once, those of all organisations together.
    pub fn queries_at_once(&self) -> usize {
        self.queries.at_once()
    }

    /// Runs work that draws a file, which cannot pause.
    pub async fn run_drawing<T: Send + 'static>(
        &self,
        work: impl FnOnce(&App) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run_in(Some(acquired(&self.drawing, 1).await?), work).await
    }

    /// Memory for a body of `bytes` that is received: a slow sender holds none of what work needs.
    pub async fn body_permit(&self, bytes: usize) -> Result<Permit> {
        memory(&self.bodies, bytes).await
    }

    /// Memory for the work on a body of `bytes`.
    pub async fn ingest_permit(&self, bytes: usize) -> Result<Permit> {
        memory(&self.ingest, bytes.saturating_mul(INGEST_FACTOR)).await
    }
}

/// Waits for memory. A request for more than there is gets all of it.
async fn memory(pool: &PermitPool, bytes: usize) -> Result<Permit> {
    acquired(pool, bytes.max(REQUEST_BYTES) / KIB).await
}

async fn acquired(pool: &PermitPool, count: usize) -> Result<Permit> {
    let permit = pool.acquire(count, WAIT).await;
    permit.ok_or_else(|| ApiError::new(Code::Overloaded, "the server is busy; retry soon"))
}

/// A client that waits for an answer. When the client leaves, its request is dropped, and this
/// value with it.
struct ClientWaits(Arc<AtomicBool>);

impl Drop for ClientWaits {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{atomic::AtomicUsize, mpsc},
        time::Duration,
    };

    use super::*;

    fn http() -> Http {
        let app = App::in_memory();
        let throttle = Arc::new(Throttle::new(&crate::config::RateLimits::default()));
        let workers = Arc::new(WorkerPool::new("/nowhere".into(), 0, 0));
        Http::new(app, &Shares::of(0), throttle, Dispatcher::in_tests(), workers)
    }

    #[tokio::test]
    async fn a_query_that_takes_long_is_begun_anew_on_another_thread() {
        let http = http();
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let long = move |app: &App| {
            counted.fetch_add(1, Ordering::Relaxed);
            let must_stop = app.query_control();
            let began = std::time::Instant::now();
            while began.elapsed() < Duration::from_millis(20) {
                if let (true, Some(attempt)) = (must_stop(), &app.attempt) {
                    return Err(attempt.give_up());
                }
            }
            Ok((app.is_counted, std::thread::current().id()))
        };
        let (is_counted, thread) = http.try_query("org", long).await.unwrap();
        assert!(is_counted && thread != std::thread::current().id());
        assert_eq!(runs.load(Ordering::Relaxed), 2);
        let short = |app: &App| Ok((app.is_counted, std::thread::current().id()));
        let (is_counted, thread) = http.try_query("org", short).await.unwrap();
        assert!(!is_counted && thread == std::thread::current().id());
        let error = http.try_query("org", |_| -> Result<()> { panic!("as a test wants") }).await;
        assert_eq!(error.unwrap_err().code, Code::Internal);
    }

    #[tokio::test]
    async fn work_is_told_when_its_caller_leaves() {
        let http = http();
        let (ended, wait) = mpsc::channel();
        let asked = http.run_query("org", move |app| {
            let must_stop = app.query_control();
            while !must_stop() {
                std::thread::sleep(Duration::from_millis(1));
            }
            ended.send(()).unwrap();
            Ok(())
        });
        tokio::time::timeout(Duration::from_millis(50), asked).await.unwrap_err();
        // Long before its own deadline.
        wait.recv_timeout(Duration::from_secs(10)).unwrap();
        while !http.queries.is_idle() {
            tokio::task::yield_now().await;
        }
    }
}
