//! A store without a disk of its own: its log is in PostgreSQL, its files are in an object store, and the data directory is a cache.
//!
//! The engine asks a `Log` for records and a `Vfs` for files. Here both are systems that the operator runs already, so that a machine may be lost with
//! all that is on it:
//!
//! ```text
//! inlay serve   INLAY_METADATA_URL=postgres://inlay@db.acme.com/inlay
//!               INLAY_EVENTS_URL=s3://acme-inlay/production?region=eu-central-1
//!
//! Node::open    opens the store; leads where no other process does, else follows
//!   ├── log     inlay.log, inlay.cluster: groups of records in one order, each appended under the epoch of its writer
//!   └── bucket  production/<database>/seg/…, ids/…, ckpt/…: files that never change
//! ```
//!
//! One process at a time leads: it takes changes. It has a lease, which it renews every two seconds. Others follow: they apply what the leader appends, and
//! answer what only reads. A process that finds the lease expired takes over and raises the epoch. What the former leader appends from then on is refused by the database, however late it wakes up.
//!
//! The groups of modules below are floors: a module uses those of the groups above it.

mod calls;
mod schema;

mod bucket;
mod group;
mod session;

mod read_index;
mod uploads;
mod writer;

mod log;

mod lease;

mod bounded_cache;
mod bucket_upkeep;
mod prefetcher;

mod membership;

mod node;

mod migrate;

pub use bucket::{Bucket, BucketUrl};
pub use calls::Calls;
pub use log::{Head, Identity, PostgresLog};
pub use membership::{Membership, Standing};
pub use migrate::{Migrated, migrate};
pub use node::{Cache, Location, Node};
pub use prefetcher::Prefetcher;
pub use session::DatabaseSession;
pub use uploads::{AnnouncedObjects, Upload, Uploads};
