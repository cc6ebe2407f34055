//! Files and documents for browsers.
//!
//! What is made of `server/web/` is inside the binary. It is served under a path that holds the hash of
//! the whole tree, so that browsers may keep every file for ever and relative imports just work.

mod markup;
mod theme;

mod demo;
mod page;
mod reference;

mod console;
mod files;

pub use console::{ConsolePage, console, module_of};
pub use demo::demo;
pub use files::{Files, WebFile};
pub use page::{Assets, Card, DashboardPage, Language, Message, dashboard, message};
pub use reference::reference;
pub use theme::Theme;
