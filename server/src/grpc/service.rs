//! The calls. Each asks the engine on the blocking pool and answers in the words of the wire.
//!
//! ```text
//! Ingest       {namespace: 77, events: 100}, {namespace: 77, events: 60, of which 10 were sent before}
//!              -> {new: 150, duplicates: 10}, when the last of them is durable
//! Query        {namespace: 77, tenant_id: "acme", event_name: "call", metric: "count", from_ms: …, to_ms: …}
//!              -> {rows: [{bucket_ms: …, value: 150}], rows_scanned: 150}
//! Flush, then Stats
//!              -> {segments: 1, segment_rows: 150, memtable_rows: 0, …}
//! Backup       {directory: "b"}
//!              -> INVALID_ARGUMENT: directory must be an absolute path on the server's machine
//! DescribeSegment {name: "zz"}
//!              -> INVALID_ARGUMENT: segment no live one is zz
//! TailWal      {lsn_from: 1, follow: true}
//!              -> one message a record, and the next ones as they become visible
//! ```

use std::{pin::Pin, time::Duration};

use inlay_engine::{Engine, Error, Namespace};
use inlay_proto::v1::{self, inlay_server::Inlay};
use tokio::sync::mpsc;
use tonic::{
    Request, Response, Status, Streaming,
    codegen::tokio_stream::{Stream, StreamExt as _, wrappers::ReceiverStream},
};

use super::convert;
use crate::{app::App, error::ApiError};

/// Messages of a stream that wait for their reader.
const STREAM_WAITING: usize = 64;
/// How often a reader at the end of the log looks for more.
const TAIL_INTERVAL: Duration = Duration::from_millis(200);

/// Result of a call with one answer.
type GrpcResult<T> = Result<Response<T>, Status>;
type Stream_<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The service over the product.
pub fn service(app: App) -> impl Inlay {
    Internal { app }
}

/// The service: calls go to the engine, and nothing here is about organisations.
struct Internal {
    app: App,
}

impl Internal {
    /// Waits until this process shows what all processes with this store have acknowledged.
    ///
    /// Errors: `unavailable` where it cannot tell.
    async fn catch_up(&self) -> Result<(), Status> {
        let caught_up = self.app.settings.membership.caught_up().await;
        caught_up.map_err(|why| {
            Status::unavailable(format!("this server cannot tell what is newest: {why}"))
        })
    }

    /// As REST has it, but for a change where another process leads: `failed_precondition`, with its address. A tool calls that one itself.
    fn status(&self, error: Error) -> Status {
        match (error, self.app.settings.membership.leader_url()) {
            (Error::Elsewhere, Some(url)) => {
                Status::failed_precondition(format!("another process leads, at {url}"))
            }
            (error, _) => convert::engine_status(error),
        }
    }

    /// Runs engine work on the blocking pool.
    ///
    /// Errors: those of the engine; `internal` where the work panicked.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Engine) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Status> {
        self.catch_up().await?;
        let engine = std::sync::Arc::clone(&self.app.engine);
        let done = tokio::task::spawn_blocking(move || work(&engine)).await;
        let ended = |error| ApiError::internal(format!("a task ended: {error}"));
        done.map_err(|error| convert::status(ended(error)))?.map_err(|error| self.status(error))
    }
}

#[tonic::async_trait]
impl Inlay for Internal {
    // One batch for each message, each durable before the next is read: a client that fails in the middle has stored a beginning, and may
    // send all of it again where its events have ids.
    async fn ingest(
        &self,
        request: Request<Streaming<v1::IngestRequest>>,
    ) -> GrpcResult<v1::IngestResponse> {
        let mut messages = request.into_inner();
        let mut total = v1::IngestResponse::default();
        while let Some(message) = messages.next().await.transpose()? {
            let mut batch = self.app.engine.batch(Namespace(message.namespace));
            for event in &message.events {
                convert::add_event(&mut batch, event)?;
            }
            if batch.is_empty() {
                continue;
            }
            let sent = message.events.len() as u64;
            let ingested =
                self.run(move |engine| engine.ingest(batch, |_, _| Ok::<_, Error>(()))).await?;
            total.new += u64::from(ingested.new);
            total.duplicates += sent - u64::from(ingested.new);
        }
        Ok(Response::new(total))
    }

    // The limit of time is the one of REST (`--query-ms-max`). Permits of queries are for organisations; a tool takes none.
    async fn query(&self, request: Request<v1::QueryRequest>) -> GrpcResult<v1::QueryResponse> {
        let query = convert::query(request.into_inner())?;
        let deadline =
            std::time::Instant::now() + Duration::from_millis(self.app.settings.query_ms_max);
        let is_late = move || std::time::Instant::now() >= deadline;
        let answer = self.run(move |engine| engine.query(&query, &is_late)).await?;
        Ok(Response::new(convert::answer(&answer)))
    }

    async fn explain(&self, request: Request<v1::QueryRequest>) -> GrpcResult<v1::ExplainResponse> {
        let query = convert::query(request.into_inner())?;
        let steps = self.run(move |engine| engine.explain(&query)).await?;
        let steps = steps.into_iter().map(convert::step).collect();
        Ok(Response::new(v1::ExplainResponse { steps }))
    }

    async fn list_segments(
        &self,
        _: Request<v1::ListSegmentsRequest>,
    ) -> GrpcResult<v1::ListSegmentsResponse> {
        let segments = self.run(|engine| engine.inspect()?.segments()).await?;
        let segments = segments.into_iter().map(convert::segment).collect();
        Ok(Response::new(v1::ListSegmentsResponse { segments }))
    }

    // `name` is the name of a segment, or the beginning of one that no other has.
    async fn describe_segment(
        &self,
        request: Request<v1::DescribeSegmentRequest>,
    ) -> GrpcResult<v1::DescribeSegmentResponse> {
        let name = request.into_inner().name;
        let (segment, sections) = self
            .run(move |engine| {
                let inspection = engine.inspect()?;
                let uuid = inspection.find_segment(&name)?;
                let all = inspection.segments()?;
                let segment = all.into_iter().find(|segment| segment.uuid == uuid);
                Ok((segment, inspection.sections(uuid)?))
            })
            .await?;
        Ok(Response::new(v1::DescribeSegmentResponse {
            segment: segment.map(convert::segment),
            sections: sections.into_iter().map(convert::section).collect(),
        }))
    }

    async fn stats(&self, _: Request<v1::StatsRequest>) -> GrpcResult<v1::StatsResponse> {
        let stats = self.run(|engine| Ok(engine.stats())).await?;
        Ok(Response::new(v1::StatsResponse {
            segments: stats.segments as u64,
            segment_rows: stats.segment_rows,
            segment_bytes: stats.segment_bytes,
            memtable_rows: stats.memtable_rows as u64,
            memtable_bytes: stats.memtable_bytes as u64,
            lsn: stats.lsn,
        }))
    }

    // Returns when all rows in memory are in segments and a checkpoint is taken.
    async fn flush(&self, _: Request<v1::FlushRequest>) -> GrpcResult<v1::FlushResponse> {
        self.run(Engine::flush).await?;
        Ok(Response::new(v1::FlushResponse {}))
    }

    // Does the work of the background threads in the call: merges, seals, expiry, erasures. The answer counts steps.
    async fn compact(&self, _: Request<v1::CompactRequest>) -> GrpcResult<v1::CompactResponse> {
        let steps = self.run(Engine::compact).await?;
        Ok(Response::new(v1::CompactResponse { steps }))
    }

    type BackupStream = Stream_<v1::BackupProgress>;

    // Messages report progress; the last one has `done`, or the stream ends with the error. A client that leaves does not end the backup.
    async fn backup(&self, request: Request<v1::BackupRequest>) -> GrpcResult<Self::BackupStream> {
        let v1::BackupRequest { directory, since } = request.into_inner();
        let since = Some(since).filter(|since| !since.is_empty());
        for (field, path) in [("directory", Some(&directory)), ("since", since.as_ref())] {
            if path.is_some_and(|path| !path.starts_with('/')) {
                let message = format!("{field} must be an absolute path on the server's machine");
                return Err(Status::invalid_argument(message));
            }
        }
        self.catch_up().await?;
        let (sender, receiver) = mpsc::channel(STREAM_WAITING);
        let engine = std::sync::Arc::clone(&self.app.engine);
        tokio::task::spawn_blocking(move || {
            // A reader that is slow, or gone, does not hold up the backup: reports may be left out.
            let mut report = |now: &inlay_engine::BackupProgress| {
                let _ = sender.try_send(Ok(convert::progress(now)));
            };
            let done = engine.backup(&directory, since.as_deref(), &mut report);
            // The last word is not left out.
            let last = done.map(|now| convert::progress(&now)).map_err(convert::engine_status);
            let _ = sender.blocking_send(last);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    // Reads every file of the data directory: minutes, where it is large.
    async fn verify(&self, _: Request<v1::VerifyRequest>) -> GrpcResult<v1::VerifyResponse> {
        let report = self.run(|engine| Ok(engine.inspect()?.verify(&mut |_| ()))).await?;
        Ok(Response::new(convert::report(report)))
    }

    type TailWalStream = Stream_<v1::WalRecord>;

    // Records from `lsn_from` on. With `follow`, the log is looked at every 200 ms until the client leaves; without, the stream ends.
    async fn tail_wal(
        &self,
        request: Request<v1::TailWalRequest>,
    ) -> GrpcResult<Self::TailWalStream> {
        let v1::TailWalRequest { lsn_from, follow } = request.into_inner();
        self.catch_up().await?;
        let (sender, receiver) = mpsc::channel(STREAM_WAITING);
        let engine = std::sync::Arc::clone(&self.app.engine);
        tokio::spawn(async move {
            let mut next = lsn_from;
            loop {
                if engine.stats().lsn >= next {
                    let engine = std::sync::Arc::clone(&engine);
                    let read = move || {
                        let found = engine.inspect()?;
                        let records: Vec<_> = found.log(next).collect();
                        Ok((records, found.lsn()))
                    };
                    let records: Result<_, Error> = match tokio::task::spawn_blocking(read).await {
                        Ok(records) => records,
                        Err(_) => return,
                    };
                    let (records, lsn_last) = match records {
                        Ok(read) => read,
                        Err(error) => {
                            let _ = sender.send(Err(convert::engine_status(error))).await;
                            return;
                        }
                    };
                    for record in records {
                        next = record.lsn + 1;
                        if sender.send(Ok(convert::record(record))).await.is_err() {
                            return;
                        }
                    }
                    // What was checkpointed away does not come back.
                    next = next.max(lsn_last + 1);
                }
                if !follow || sender.is_closed() {
                    return;
                }
                tokio::time::sleep(TAIL_INTERVAL).await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}
