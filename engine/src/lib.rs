//! The event store of Inlay: log-structured, columnar, exact.
//!
//! Events are deduplicated, logged and synced, visible in memory at once, and flushed into sorted
//! immutable segments. Metadata of the server lives in the same log, in a keyspace with
//! transactions. Everything one query sees is one version.
//!
//! The groups of modules below are floors: a module uses those of the groups above it, never of
//! its own group or below. `README.md` tells the life of an event and of a query; `doc/format.md`
//! describes every file.
//!
//! This crate knows no HTTP, no JSON, no role, no plan and no price.

mod error;

mod base;

mod vfs;

mod event;

mod column;

mod batch;

mod encode;
mod index;
mod sketch;

mod ids;
mod segment;
mod wal;

mod keyspace;

mod store;

mod inspect;
mod query;

mod exec;
mod scan;

mod engine;

#[cfg(any(test, feature = "fuzz"))]
mod fuzz;

/// Rows of one namespace, for who computes over them elsewhere.
pub mod rows {
    pub use crate::scan::{
        BucketRun, Column, EventIdCondition, EventIdPrefix, EventIdSet, Filter, Grain, Hour,
        HourStates, LoadParts, MissingSegments, Morsel, NumberState, OpenSegments, RowRange, Scan,
        SerializedSnapshot, Series, SeriesFilter, Sizes, Snapshot, Source, StateSelection,
        TextMatch, TextTable, TimeBuckets, UserState, UserTexts, Values,
    };
    pub use crate::vfs::shared_memory::SharedMemory;
}

/// What a store needs whose records and files are not on its own disk.
pub mod remote {
    pub use crate::{
        inspect::{MovedFiles, moved_files},
        store::{CacheMetrics, CacheRound, Log, LogWriter, SimLog, Superblock},
        vfs::{
            object_store::{ObjectPart, Objects},
            objects::{ObjectVfs, Reconciled},
            partial_copy::clear as clear_partial_copies,
            sim_objects::SimObjects,
        },
        wal::{AppendError, LogEnd, LogMeters, LogTail, Record, records_of_group},
    };
}

/// Encodings and sketches alone, for benches. No feature: one would have the tests of a workspace build everything anew.
#[doc(hidden)]
pub mod parts {
    pub use crate::{
        encode::{VECTOR_ROWS, ints, numbers},
        sketch::{digest::Digest, hll::Distinct},
    };
}

pub use base::{
    allocator::set_up as set_up_allocator,
    clock::{Clock, ManualClock, SystemClock},
    meter::Distribution,
    rng::{Rng, SeededRng, SystemRng},
    time::Granularity,
};
pub use batch::Batch;
pub use engine::{Engine, Options, QueryMetrics, Stats, Whose};
pub use error::{Error, Limit, Result};
pub use event::{
    BATCH_COLUMNS_MAX, BATCH_ROWS_MAX, Event, Namespace, TEXT_BYTES_MAX, TIMESTAMP_MS_MAX,
    TIMESTAMP_MS_MIN,
};
pub use exec::{Control, EventFacts, ExactUpTo, ExplainStep, NumberFacts, TextFacts};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{Target, targets};
pub use index::bitmaps::ROLLUP_DIMENSIONS;
pub use inspect::{
    BlockInfo, IdRunInfo, Inspection, KeyInfo, Problem, RecordInfo, RollupRow, RunInfo,
    SectionInfo, SegmentInfo, VerifyReport,
};
pub use keyspace::{KeyReader, Txn};
pub use query::{
    Answer, BUCKETS_MAX, Group, Metric, NumberFilter, Query, RollupGrain, TextFilter, Value,
};
pub use store::{
    BackupFile, BackupList, BackupProgress, CompactionLimits, Erasure, Ingested, LevelMetrics,
    Limits, Metrics, Scope, restore,
};
pub use vfs::{
    Vfs, VfsFile, View,
    os::OsVfs,
    sim::{FailedSync, Fault, FaultPlan, SimVfs},
};
