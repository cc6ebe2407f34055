//! Records of the server in the engine's keyspace.
//!
//! Almost everything belongs to one organisation and is read and written through [`OrgReader`] and
//! [`OrgTxn`], which cannot reach another one: the organisation is part of every key they form. The
//! few look-ups that must cross organisations (an e-mail address, a session, a key's digest) are
//! functions whose name starts with `global_`.
//!
//! A record is JSON under `o/<org>/<kind>/<id>`. Unknown fields are ignored when it is read, so that
//! an older build can read what a newer one wrote.

mod keys;

mod org;

mod records;

mod durable_queue;
mod key_records;

mod rules;

mod alerts;
mod boards;
mod sessions;

mod deliveries;
mod reports;

pub use alerts::*;
pub use boards::*;
pub use deliveries::*;
pub use durable_queue::{
    QueueEntry, dequeue, enqueue, first_due, lease, queued, release, remove_of, stored_key,
};
pub use key_records::KeyRecords;
pub use keys::{
    Keys, decode, forget_org, global_delete, global_find, global_list, global_put, global_scan,
    next_namespace,
};
pub use org::{OrgReader, OrgTxn, Record, global_ids, global_orgs, global_records};
pub use records::*;
pub use reports::*;
pub use rules::*;
pub use sessions::*;
