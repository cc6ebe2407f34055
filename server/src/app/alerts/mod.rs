//! Alerts: rules, how they are evaluated, when they fire, and the notifications that follow.

pub mod state;

pub mod evaluation;

pub mod chart;
pub mod rules;

pub mod notifications;
pub mod preview;
