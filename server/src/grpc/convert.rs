//! Conversions between the messages of gRPC and the types of the engine.
//!
//! Proto3 has no absent strings and numbers outside of `optional`, so an empty string or 0 stands for a missing value:
//!
//! ```text
//! field of the message             in the engine
//! event_id: ""                     None: the event has no id and is never a duplicate
//! granularity: ""                  None: one bucket
//! group_by: ""                     None: no groups
//! limit: 0                         100 groups
//! tenant_id absent                 all tenants of the namespace
//! Row.group absent                 events without the property, or nothing was grouped
//! Row.value absent                 no input, such as an average of no events
//! ```

use inlay_engine::{
    Answer, BackupProgress, Batch, Error, Event, ExplainStep, Namespace, NumberFilter, Query,
    RecordInfo, SectionInfo, SegmentInfo, TextFilter, VerifyReport,
};
use inlay_proto::v1;
use tonic::Status;

use crate::{
    app::{parse_granularity, parse_metric},
    error::ApiError,
};

/// Groups of an answer when nothing else is asked for.
const GROUPS_DEFAULT: usize = 100;

/// An error as a gRPC status: the code of the table in `error.rs`, with the cause as its message where there is one. The caller is an
/// operator and gets the cause, which HTTP keeps to the log.
pub fn status(error: ApiError) -> Status {
    Status::new(error.code.grpc(), error.cause.unwrap_or(error.message))
}

/// An error of the engine as a gRPC status.
pub fn engine_status(error: Error) -> Status {
    status(ApiError::from(error))
}

/// Appends an event to a batch.
///
/// Errors: INVALID_ARGUMENT with `tenant_id must not be empty`, `numeric_props.x is not finite`, or the engine's fault of a field.
pub fn add_event(batch: &mut Batch, event: &v1::Event) -> Result<(), Status> {
    for (field, value) in [("tenant_id", &event.tenant_id), ("event_name", &event.event_name)] {
        if value.is_empty() {
            return Err(Status::invalid_argument(format!("{field} must not be empty")));
        }
    }
    let optional = |text: &'_ String| (!text.is_empty()).then(|| text.clone());
    let (event_id, user_id) = (optional(&event.event_id), optional(&event.user_id));
    let strings: Vec<(&str, &str)> =
        event.string_props.iter().map(|(name, value)| (&**name, &**value)).collect();
    let numbers: Vec<(&str, f64)> =
        event.numeric_props.iter().map(|(name, value)| (&**name, *value)).collect();
    if let Some((name, _)) = numbers.iter().find(|(_, value)| !value.is_finite()) {
        return Err(Status::invalid_argument(format!("numeric_props.{name} is not finite")));
    }
    let event = Event {
        tenant: &event.tenant_id,
        name: &event.event_name,
        timestamp_ms: event.timestamp_ms,
        event_id: event_id.as_deref(),
        user_id: user_id.as_deref(),
    };
    batch.push(&event, &strings, &numbers).map_err(engine_status)
}

/// The query of the engine for a request.
///
/// Errors: INVALID_ARGUMENT naming the field: an unknown `metric` (`median`), an unknown `granularity` (`minute`), a metric over a
/// number without `numeric_prop`.
pub fn query(request: v1::QueryRequest) -> Result<Query, Status> {
    let number = Some(request.numeric_prop.as_str()).filter(|name| !name.is_empty());
    let metric = parse_metric("metric", &request.metric, number).map_err(status)?;
    let granularity = match request.granularity.as_str() {
        "" => None,
        name => Some(parse_granularity("granularity", name).map_err(status)?),
    };
    let text = |filter: v1::TextFilter| TextFilter { name: filter.name, any_of: filter.any_of };
    let range = |filter: v1::NumberFilter| NumberFilter {
        name: filter.name,
        min: filter.min,
        max: filter.max,
    };
    Ok(Query {
        namespace: Namespace(request.namespace),
        tenant: request.tenant_id,
        event: request.event_name,
        metric,
        number: number.map(str::to_owned),
        from_ms: request.from_ms,
        to_ms: request.to_ms,
        granularity,
        group_by: Some(request.group_by).filter(|name| !name.is_empty()),
        texts: request.text_filters.into_iter().map(text).collect(),
        numbers: request.number_filters.into_iter().map(range).collect(),
        groups_max: match request.limit {
            0 => GROUPS_DEFAULT,
            limit => limit as usize,
        },
        // Groups and bounds of buckets of the caller's choice are for widgets and time zones; tools have neither.
        groups: None,
        starts: None,
    })
}

/// The rows of an answer: by group, then by bucket. Two groups over three days are six rows, of which each names its bucket and group.
pub fn answer(answer: &Answer) -> v1::QueryResponse {
    let mut rows = Vec::new();
    for (group, values) in answer.groups.iter().zip(&answer.values) {
        for (bucket, value) in answer.buckets.iter().zip(values) {
            rows.push(v1::Row {
                bucket_ms: *bucket,
                group: group.as_deref().map(str::to_owned),
                value: value.as_f64(),
            });
        }
    }
    v1::QueryResponse {
        rows,
        rows_scanned: answer.rows_scanned,
        groups_total: answer.groups_total as u64,
    }
}

/// A source of an answer, as `Explain` lists it.
///
/// ```text
/// source: "memtable"                              level: "memory"   rows: 32   rejected: "rows in memory have no rollups"
/// source: "01a21f84-d950-7a6f-a391-781511bc6f82"  level: "merged"   rows: 0    skipped: "outside the window"
/// ```
pub fn step(step: ExplainStep) -> v1::ExplainStep {
    v1::ExplainStep {
        source: step.source,
        level: step.level.to_owned(),
        rows: step.rows,
        series: step.series,
        skipped: step.skipped.unwrap_or_default().to_owned(),
        rolled_up: step.rolled_up,
        by_day: step.by_day,
        by_hour: step.by_hour,
        rejected: step.rejected.unwrap_or_default().to_owned(),
    }
}

/// The facts of a segment: file, level, first and last day, rows, bytes. `damage` is empty for an intact one.
pub fn segment(info: SegmentInfo) -> v1::Segment {
    v1::Segment {
        name: info.uuid.to_string(),
        path: info.path,
        level: info.level.to_owned(),
        day_first: info.day_first,
        day_last: info.day_last,
        rows: info.rows,
        bytes: info.bytes,
        series: info.series,
        damage: info.damage.unwrap_or_default(),
    }
}

/// The facts of a section of a segment: of a column, how many blocks have which encoding.
pub fn section(info: SectionInfo) -> v1::Section {
    v1::Section {
        kind: info.kind,
        column: info.column,
        bytes: info.bytes,
        values: info.values,
        encodings: info.encodings.into_iter().collect(),
    }
}

/// The progress of a backup. `files` are in place; `linked` and `reused` of them share their bytes with the store and the earlier backup.
pub fn progress(now: &BackupProgress) -> v1::BackupProgress {
    v1::BackupProgress {
        files: now.files,
        files_total: now.files_total,
        bytes: now.bytes,
        linked: now.linked,
        reused: now.reused,
        lsn: now.lsn,
        done: now.is_done,
    }
}

/// The result of a verification. `problems` is empty when everything is as it was written; `unnamed` are leftovers, which are none.
pub fn report(report: VerifyReport) -> v1::VerifyResponse {
    let problem = |one: inlay_engine::Problem| v1::Problem { place: one.place, detail: one.detail };
    v1::VerifyResponse {
        segments: report.segments,
        of_other_minor: report.of_other_minor,
        rows: report.rows,
        id_runs: report.id_runs,
        ids: report.ids,
        checkpoints: report.checkpoints,
        records: report.records,
        unnamed: report.unnamed,
        problems: report.problems.into_iter().map(problem).collect(),
    }
}

/// A record of the log: `events` with the number of new ones, or `writes` with the keys that were changed.
pub fn record(info: RecordInfo) -> v1::WalRecord {
    v1::WalRecord {
        lsn: info.lsn,
        kind: info.kind.to_owned(),
        bytes: info.bytes,
        events: info.events as u64,
        keys: info.keys,
    }
}
