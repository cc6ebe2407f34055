//! Putting the server together, and taking it down without losing anything.
//!
//! A start opens the store, then both listeners, then begins the background jobs; the first step that fails ends it:
//!
//! ```text
//! INFO inlay_server::serve: store is open segments=0 memtable_rows=0 lsn=0 memory_mib=1024
//! Error: cannot listen on 127.0.0.1:8080
//! Error: cannot open the data directory data: data directory: is in use by another process
//! Error: the gRPC address 0.0.0.0:9999 is not a loopback address, and gRPC is internal: it needs a token (INLAY_GRPC_TOKEN)
//! ```
//!
//! A stop, by time:
//!
//! ```text
//!  0 s   both listeners close; connections without a request end; jobs end after the step that they are at
//! 20 s   HTTP requests that still run are given up, and the log says so
//! 25 s   a task that has not ended is cut off; the next one is waited for
//! then   the counters that were not written yet are written, the store writes its memory to segments and closes
//! ```
//!
//! Where several processes have the store, the one that leads gives it to another after half a second, and writes nothing to segments: the log has it.
//!
//! ```text
//! 0.5 s  counters are written, the store takes no changes, the lease is given back; reads that still run go on as above
//! ```

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::{Context, bail};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use inlay_engine::{Clock, Limits, Options, Rng, SystemClock, SystemRng};
use inlay_proto::v1::inlay_server::InlayServer;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    task::JoinHandle,
};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
};
use tower::ServiceExt as _;
use tracing::{info, warn};

use crate::{
    app::{App, BillingSettings, Settings},
    base::{memory, permit_pools::Permit},
    config::{BillingConfig, Config},
    error::ApiError,
    grpc,
    http::{Http, Peer, Throttle, router},
    jobs,
    outbound::{Dispatcher, Mailer, Poster, WebhookRules},
    sql::{StatementRunner, WorkerPool},
    store_location::open_store,
};

/// Connections at once, at most.
const CONNECTIONS_MAX: u64 = 10_000;
/// Descriptors that connections leave to the store, or half of them where there are few.
/// Segments, the log, and workers of SQL need descriptors, too.
const DESCRIPTORS_KEPT: u64 = 256;
/// Connections of tools at once, at most, within a quarter of what is kept.
pub const GRPC_CONNECTIONS_MAX: usize = 32;
/// A connection of tools over which nothing comes is asked so often whether somebody is there.
/// A tool that vanished without closing its connection would keep one of few permits.
const GRPC_ALIVE_EVERY: Duration = Duration::from_secs(20);
/// Clients that wait to be accepted, at most.
const WAITING_MAX: u32 = 1_024;
/// A client gets this long to send its headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// A client that takes nothing of its answer for so long is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a request's head, at most.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// Bytes of one gRPC message, at most: of a stream of events, which tools cut into messages as they like.
const GRPC_BYTES_MAX: usize = 32 << 20;
/// How often is looked whether another process has the store.
const LEASE_LOOK_EVERY: Duration = Duration::from_millis(250);
/// Changes that run when a process that leads stops get this long, before another process leads.
const HAND_OVER_AFTER: Duration = Duration::from_millis(500);
/// A balancer that looks every second and believes the third refusal has found out in this time.
const DRAIN_SECONDS: u32 = 4;
/// Requests that run when the server stops get this long to finish.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// A running server. Dropped, its tasks end, but nobody waits for them or closes the store: call [`Running::stop`].
pub struct Running {
    /// Where REST is served.
    pub http_addr: SocketAddr,
    /// Where gRPC is served.
    pub grpc_addr: SocketAddr,
    /// Where browsers reach it.
    pub base_url: String,
    app: App,
    http: Http,
    drain: Duration,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// Opens the data directory and serves it. Returns when both addresses accept connections.
///
/// Errors: a data directory that is in use, damaged or of a newer format; addresses that are taken; a certificate that cannot be read;
/// a gRPC address that others can reach, without a token.
pub async fn serve(config: Config) -> anyhow::Result<Running> {
    serve_with(config, Arc::new(SystemClock), Arc::new(SystemRng)).await
}

/// As [`serve`], with a clock and random numbers of the caller: tests start a server on 20 November 2026 and move its time.
pub async fn serve_with(
    config: Config,
    clock: Arc<dyn Clock>,
    rng: Arc<dyn Rng>,
) -> anyhow::Result<Running> {
    if !config.grpc_addr.ip().is_loopback() && config.grpc_token.is_none() {
        bail!(
            "the gRPC address {} is not a loopback address, and gRPC is internal: \
             it needs a token (INLAY_GRPC_TOKEN)",
            config.grpc_addr
        );
    }
    let total = config.memory_mb.map_or_else(|| memory::available(read_text), |mib| mib << 20);
    let shares = memory::Shares::of(total);
    let limits = Limits { retention_days: config.retention_days, ..shares.engine_limits() };
    let options =
        Options { clock: Arc::clone(&clock), rng: Arc::clone(&rng), limits, ..Options::default() };
    let opening = config.clone();
    let (engine, membership) =
        tokio::task::spawn_blocking(move || open_store(&opening, options)).await??;
    // Opening has replayed the log: the rows in memory are those that no segment holds yet.
    let stats = engine.stats();
    info!(
        segments = stats.segments,
        memtable_rows = stats.memtable_rows,
        lsn = stats.lsn,
        memory_mib = total >> 20,
        "store is open"
    );

    // The store comes first: a server that listens and cannot answer would be found by a load balancer.
    let listener = listen(config.http_addr)
        .with_context(|| format!("cannot listen on {}", config.http_addr))?;
    let grpc_listener = listen(config.grpc_addr)
        .with_context(|| format!("cannot listen on {} for gRPC", config.grpc_addr))?;
    let (http_addr, grpc_addr) = (listener.local_addr()?, grpc_listener.local_addr()?);
    let tls = tls_acceptor(&config)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let base_url = config.base_url.clone().unwrap_or_else(|| format!("{scheme}://{http_addr}"));
    let settings = Settings {
        base_url: base_url.trim_end_matches('/').to_owned(),
        default_plan: config.plan_of_new_orgs().to_owned(),
        demo: config.demo,
        query_ms_max: config.query_ms_max,
        trusted_proxies: config.trusted_proxies.0.clone(),
        webhooks: WebhookRules { allowed: config.webhook_allow.0.clone() },
        webhook_waits_s: config.webhook_backoff_seconds.0.clone(),
        alert_interval_s: config.alert_interval_seconds.into(),
        data_dir: std::path::absolute(&config.data_dir)?,
        billing: billing_settings(&config.billing),
        membership,
        ..Settings::default()
    };
    let settings = Arc::new(settings);
    settings.membership.announce(&node_url(&config, scheme, http_addr));
    let app = App::new(engine, clock, rng, settings);
    // Before the listeners are served, so that the first visitor finds the dashboard.
    // A process that follows finds what the leader made.
    if config.demo && app.settings.membership.leads() {
        let seeding = app.clone();
        tokio::task::spawn_blocking(move || seeding.seed_demo())
            .await?
            .context("cannot seed the demo")?;
    }
    let dispatcher = dispatcher_of(&config, &app.settings.webhooks)?;
    let (stop, stopped) = watch::channel(false);
    let guard = grpc::Guard::new(config.grpc_token.as_deref());
    let throttle = Arc::new(Throttle::new(&config.rate_limits));
    // This very program, even where another version has taken its place in the directory.
    let program = config.sql_program.clone().unwrap_or_else(|| "/proc/self/exe".into());
    let workers = Arc::new(WorkerPool::new(program, config.sql_idle_workers, total));
    let prepared = Arc::clone(&workers);
    // Nobody waits for it: a statement that comes earlier starts its worker itself.
    drop(tokio::task::spawn_blocking(move || prepared.refill()));
    let http = Http::new(app.clone(), &shares, Arc::clone(&throttle), dispatcher.clone(), workers);
    let (statements, leader) = (http.statements.clone(), http.leader.clone());
    let (connections, tools) = connections_max(raise_descriptors());
    let tasks = vec![
        tokio::spawn(serve_http(listener, tls, http.clone(), connections, stopped.clone())),
        tokio::spawn(serve_grpc(grpc_listener, app.clone(), guard, tools, stopped.clone())),
        tokio::spawn(jobs::lead(app.clone(), dispatcher, stopped.clone())),
        tokio::spawn(jobs::send_counts(app.clone(), leader, stopped.clone())),
        tokio::spawn(forget_full(throttle, stopped.clone())),
        tokio::spawn(retire_workers(statements, stopped.clone())),
        tokio::spawn(jobs::report(app.clone(), stopped)),
    ];
    let (base_url, drain) = (app.settings.base_url.clone(), drain_time(&config));
    Ok(Running { http_addr, grpc_addr, base_url, app, http, drain, stop, tasks })
}

/// How long a server answers that is to stop. A balancer looks whether it is ready, and has found out by then; one process alone has nobody to take over
/// from it.
fn drain_time(config: &Config) -> Duration {
    let default = if config.metadata_url.is_some() { DRAIN_SECONDS } else { 0 };
    Duration::from_secs(config.drain_seconds.unwrap_or(default).into())
}

/// Where other processes with the same store reach this one.
fn node_url(config: &Config, scheme: &str, http_addr: SocketAddr) -> String {
    let own = match http_addr.ip().is_unspecified() {
        true => {
            let name = read_text(Path::new("/proc/sys/kernel/hostname")).unwrap_or_default();
            format!("{scheme}://{}:{}", name.trim(), http_addr.port())
        }
        false => format!("{scheme}://{http_addr}"),
    };
    config.node_url.as_deref().map_or(own, |url| url.trim_end_matches('/').to_owned())
}

/// Listens with room for a burst of clients: the 128 that the runtime gives are not many, and who finds none
/// left tries again after a second.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restart must not wait for old connections to be forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING_MAX)
}

/// What makes a connection HTTPS, when a certificate is configured.
/// HTTP/2 is offered first.
///
/// Errors: files that cannot be read, a key that does not belong to the certificate.
fn tls_acceptor(config: &Config) -> anyhow::Result<Option<TlsAcceptor>> {
    let (Some(cert), Some(key)) = (&config.tls_cert, &config.tls_key) else { return Ok(None) };
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("cannot read the certificate {}", cert.display()))?;
    let key = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("cannot read the private key {}", key.display()))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("certificate and key do not belong together")?;
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(server))))
}

/// Settings of the app, which does not know how they were given.
fn billing_settings(config: &BillingConfig) -> BillingSettings {
    BillingSettings {
        api_url: config.billing_api_url.clone(),
        api_key: config.billing_api_key.clone(),
        client_token: config.billing_client_token.clone(),
        environment: config.billing_environment.clone(),
        prices: config.billing_prices.0.clone(),
        notification_keys: config.billing_notification_key.clone(),
        tolerance_seconds: config.billing_tolerance_seconds.into(),
    }
}

/// The sender of webhooks and mails. Mails without a server become files, in a folder that only we read.
fn dispatcher_of(config: &Config, rules: &WebhookRules) -> anyhow::Result<Dispatcher> {
    let poster = Poster::new(rules).context("cannot make a client for webhooks")?;
    let outbox = config.data_dir.join("outbox");
    if config.smtp_url.is_none() {
        make_folder(&outbox).with_context(|| format!("cannot make {}", outbox.display()))?;
    }
    let mailer = Mailer::new(config.smtp_url.as_deref(), config.mail_from.as_deref(), &outbox);
    let mailer = mailer.map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(Dispatcher { poster, mailer })
}

/// Makes a folder with mode 0700, where it does not exist: mails hold links that log somebody in.
fn make_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Forgets full buckets once a minute: callers come and go, and a full bucket is as good as a new one.
async fn forget_full(throttle: Arc<Throttle>, mut stopped: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            () = tokio::time::sleep(Duration::from_secs(60)) => throttle.forget_full(),
        }
    }
}

/// Once a second, ends workers of SQL whose segments are not there any more.
async fn retire_workers(statements: StatementRunner, mut stopped: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            () = tokio::time::sleep(Duration::from_secs(1)) => statements.retire_workers().await,
        }
    }
}

fn read_text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

impl Running {
    /// The address of a fresh embed session of the demo; `None` when the server runs without the demo.
    pub fn demo_url(&self) -> Option<String> {
        self.app.demo_session(None).ok().map(|(minted, ..)| minted.url)
    }

    /// Whether this process takes changes: always, but where several have the same store.
    pub fn leads(&self) -> bool {
        self.app.settings.membership.leads()
    }

    /// Removes the records of what has ended and old mails now, as the job does from time to time.
    pub fn expire(&self) -> Result<usize, ApiError> {
        jobs::expire_now(&self.app)
    }

    /// Looks at what all alert rules watch now, as the job does in turns; returns how many rules.
    pub fn evaluate_alerts(&self) -> Result<usize, ApiError> {
        jobs::evaluate_now(&self.app)
    }

    /// Answers for a while as one that is not ready, lets running requests finish, writes everything to segments, and closes.
    ///
    /// Errors: a store that cannot be closed. Everything that was acknowledged is in the log nevertheless, and the next start finds it.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.http.is_draining.store(true, Ordering::Relaxed);
        // Until then it leads where it does: it is still asked.
        tokio::time::sleep(self.drain).await;
        let _ = self.stop.send(true);
        let membership = self.app.settings.membership.clone();
        if !membership.is_alone() && membership.leads() {
            self.hand_over().await?;
        }
        for mut task in std::mem::take(&mut self.tasks) {
            // A stream that nobody reads to its end must not keep the store from closing.
            if tokio::time::timeout(DRAIN_TIMEOUT + Duration::from_secs(5), &mut task)
                .await
                .is_err()
            {
                warn!("a server was still at work and is cut off");
                task.abort();
            }
        }
        let engine = Arc::clone(&self.app.engine);
        if membership.is_alone() {
            self.write_counts().await?;
        }
        let closed = tokio::task::spawn_blocking(move || engine.close()).await?;
        // Only now: the next process opens the store that this one has closed.
        tokio::task::spawn_blocking(move || membership.release()).await?;
        closed.context("cannot close the store")
    }

    /// Lets another process lead at once: what still runs here and only asks goes on with what it has.
    async fn hand_over(&self) -> anyhow::Result<()> {
        tokio::time::sleep(HAND_OVER_AFTER).await;
        self.write_counts().await?;
        self.app.engine.hand_over();
        let membership = self.app.settings.membership.clone();
        Ok(tokio::task::spawn_blocking(move || membership.release()).await?)
    }

    /// Writes down what was counted.
    async fn write_counts(&self) -> anyhow::Result<()> {
        let app = self.app.clone();
        let written = tokio::task::spawn_blocking(move || app.write_counts()).await?;
        if let Err(error) = written {
            warn!(code = error.code.name(), %error, "cannot write down what was counted");
        }
        Ok(())
    }

    /// Ends when another process has taken over the store, or its log is not as this one has it: this one cannot go on. Never, where the store is in a
    /// directory of its own.
    pub async fn taken_over(&self) {
        let membership = &self.app.settings.membership;
        while !membership.is_lost() {
            if self.app.engine.closed().is_some() {
                membership.give_up();
            }
            tokio::time::sleep(LEASE_LOOK_EVERY).await;
        }
    }
}

/// Raises the limit of open descriptors as far as this process may. How many there are then.
fn raise_descriptors() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let descriptors = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    descriptors.unwrap_or(u64::MAX)
}

/// HTTP connections and those of tools at once, at most: a flood of them must not keep the log from growing, or
/// segments from being merged.
///
/// With a limit of 1,024 descriptors 768 and 32; with 64, half of them and 8; with enough, 10,000 and 32.
fn connections_max(descriptors: u64) -> (usize, usize) {
    let kept = DESCRIPTORS_KEPT.min(descriptors.div_ceil(2));
    let http = (descriptors - kept).clamp(1, CONNECTIONS_MAX) as usize;
    (http, (kept / 4).clamp(1, GRPC_CONNECTIONS_MAX as u64) as usize)
}

/// Accepts HTTP connections until the server stops, then waits for the requests that run.
///
/// A permit is taken before a connection is accepted, so that further clients wait in the queue of the kernel, where they cost nothing.
async fn serve_http(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    http: Http,
    connections_max: usize,
    mut stopped: watch::Receiver<bool>,
) {
    let permits = http.app.pools.pool("http_connections", connections_max);
    let router = router(http);
    let graceful = GracefulShutdown::new();
    loop {
        let permit = tokio::select! {
            _ = stopped.changed() => break,
            permit = permits.acquire_in_turn() => permit,
        };
        let Some(permit) = permit else { break };
        tokio::select! {
            _ = stopped.changed() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let tls = tls.clone();
                    connect(stream, tls, peer, &router, &graceful, stopped.clone(), permit);
                }
                Err(error) => {
                    // Out of descriptors, usually: waiting lets others close theirs.
                    warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
            },
        }
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
        warn!("requests were still running after {} s", DRAIN_TIMEOUT.as_secs());
    }
}

/// Serves one connection on a task of its own; its permit is free again when it ends.
///
/// ```text
/// accepted          no byte within 10 s: closed
/// TLS               no handshake within another 10 s: closed
/// HTTP/1.1          headers have 10 s and 64 KiB
/// HTTP/2            a ping after 20 s of silence; header lists of 64 KiB
/// answer            a client that takes no byte for 30 s: closed
/// ```
fn connect(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    peer: SocketAddr,
    router: &axum::Router,
    graceful: &GracefulShutdown,
    mut stopped: watch::Receiver<bool>,
    permit: Permit,
) {
    // Small answers must not wait for more to come.
    let _ = stream.set_nodelay(true);
    let service =
        router.clone().map_request(move |mut request: hyper::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            request.map(axum::body::Body::new)
        });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEADER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(Duration::from_secs(20)))
        .max_header_list_size(HEADER_BYTES_MAX as u32);
    let watcher = graceful.watcher();
    tokio::spawn(async move {
        // Headers have their own time limit, which starts with the first byte.
        tokio::select! {
            _ = stopped.changed() => return,
            ready = tokio::time::timeout(HEADER_TIMEOUT, stream.readable()) => {
                if !matches!(ready, Ok(Ok(()))) {
                    return;
                }
            }
        }
        // Who reads nothing for so long has gone, and holds an answer in memory.
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(WRITE_TIMEOUT));
        let stream = Box::pin(stream);
        let service = TowerToHyperService::new(service);
        // A client that goes away is not an event worth a line.
        let _ = match tls {
            None => {
                let connection =
                    builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
                watcher.watch(connection.into_owned()).await
            }
            Some(tls) => {
                let hands = tokio::time::timeout(HEADER_TIMEOUT, tls.accept(stream)).await;
                let Ok(Ok(stream)) = hands else { return };
                let connection =
                    builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
                watcher.watch(connection.into_owned()).await
            }
        };
        drop(permit);
    });
}

/// Serves gRPC until the server stops: the service itself, health, and reflection, by which `grpcurl 127.0.0.1:8081 list` works.
async fn serve_grpc(
    listener: TcpListener,
    app: App,
    guard: grpc::Guard,
    connections_max: usize,
    mut stopped: watch::Receiver<bool>,
) {
    let (reporter, health) = tonic_health::server::health_reporter();
    for name in ["", "inlay.v1.Inlay"] {
        reporter.set_service_status(name, tonic_health::ServingStatus::Serving).await;
    }
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(inlay_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1();
    let reflection = match reflection {
        Ok(reflection) => reflection,
        Err(error) => return warn!(%error, "the gRPC server cannot describe itself"),
    };
    let connections = app.pools.pool("grpc_connections", connections_max);
    let service = InlayServer::new(grpc::service(app)).max_decoding_message_size(GRPC_BYTES_MAX);
    let incoming = grpc::incoming(listener, connections, HEADER_TIMEOUT);
    let served = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(GRPC_ALIVE_EVERY))
        .http2_keepalive_timeout(Some(GRPC_ALIVE_EVERY))
        .layer(tonic::service::InterceptorLayer::new(guard))
        .add_service(health)
        .add_service(reflection)
        .add_service(service)
        .serve_with_incoming_shutdown(incoming, async move {
            let _ = stopped.changed().await;
        })
        .await;
    if let Err(error) = served {
        warn!(%error, "the gRPC server ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_to_the_store() {
        let cases = [
            (0, (1, 1)),
            (1, (1, 1)),
            (64, (32, 8)),
            (511, (255, 32)),
            (512, (256, 32)),
            (1_024, (768, 32)),
            (u64::MAX, (10_000, 32)),
        ];
        for (descriptors, expected) in cases {
            assert_eq!(connections_max(descriptors), expected, "{descriptors} descriptors");
        }
    }
}
