//! Files and documents for browsers.
//!
//! The tree `server/web/` is inside the binary. It is served under a path that holds the hash of
//! the whole tree, so that browsers may keep every file for ever and relative imports just work.

mod markup;
mod strip;

mod page;
mod reference;

mod files;

pub use files::Files;
pub use page::{Card, DashboardPage, Message, dashboard, message};
pub use reference::reference;
