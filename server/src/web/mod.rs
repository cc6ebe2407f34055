//! Files and documents for browsers.
//!
//! What is made of `server/web/` is inside the binary. It is served under a path that holds the hash of
//! the whole tree, so that browsers may keep every file for ever and relative imports just work.
//!
//! ```text
//! files       /assets/3b963ae98bb164ec/dist/embed.js      a file, with a compressed copy
//! page        GET /embed/{dashboard_id}?token=…           the shell of a dashboard, or a message such as "This link isn’t valid"
//! console     GET /console/alerts/7                       the same document for each address, with the modules that draw it
//! reference   GET /docs                                   the API, from its OpenAPI document
//! demo        GET /demo                                   a host page that frames a dashboard
//! ```

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
