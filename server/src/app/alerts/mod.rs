//! Alerts: rules, how they are evaluated, when they fire, and the notifications that follow.

pub mod notifications;
pub mod state;

pub mod evaluation;

pub mod rules;

pub mod preview;
