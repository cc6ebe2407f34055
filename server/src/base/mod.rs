//! Values and limits that every floor above uses, without knowledge of callers or of HTTP.
//!
//! ```text
//! instant        1795169856789                   2026-11-20T10:17:36.789Z
//! civil          Europe/Berlin, day              2026-10-24T22:00Z, 2026-10-25T23:00Z: that day has 25 hours
//! ids            two in one millisecond          01a21f84-f2ae-7000-…, 01a21f84-f2ae-7001-…
//! secret         32 random bytes                 inlay_admin_92wx2V83UPS5…cNZoZk, of which a digest is stored
//! signature      ts=1795169856;h1=01565fde…      whether a billing webhook is genuine
//! text           " Ada@Example.com "             ada@example.com
//! json           {"a": 1.0}                      {"a":1}; a field that comes twice is refused
//! json_schema    {"widgets": [{"w": 0}]}         three violations, each with its field
//! membership     of a store that several processes have: whether this one may answer, and may change something
//! locale         de                              12.345,6 and Freitag, 20. Nov.
//! memory         1 GiB                           204 MiB for queries, 89 MiB for one of them, …
//! permits        at once: 2 password hashes, as many queries as cores
//! ```

pub mod civil;
pub mod ids;
pub mod instant;
pub mod json;
pub mod json_schema;
pub mod locale;
pub mod membership;
pub mod memory;
pub mod permit_pools;
pub mod query_threads;
pub mod secret;
pub mod text;

pub mod query_permits;
pub mod signature;
