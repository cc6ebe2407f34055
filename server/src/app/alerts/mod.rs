//! Alerts: rules, how they are evaluated, when they fire, and the notifications that follow.
//!
//! ```text
//! every 60 s      evaluation.rs     number of the errors of the last 60 minutes            1,204
//!                 state.rs          ok, and 1,204 > 1,000 holds for 0 minutes              Change::Fired
//! one transaction                   alert_status, alert_event, a delivery for each recipient in the queue
//! the job deliver notifications.rs  POST https://hooks.acme.com/in/secret, a mail to ops@acme.example
//!                 chart.rs          the picture in the mail
//! before it is    preview.rs        POST /v1/alerts/preview: when it would have fired in 30 days, and
//!                 replay.rs         how finely there is time to look
//! ```

pub mod state;

pub mod replay;

pub mod evaluation;

pub mod chart;
pub mod rules;

pub mod notifications;
pub mod preview;
