//! Dashboards: a draft that editors change, the snapshot that is shown, and the widgets in them.

pub mod widgets;

pub mod drafts;

pub mod auto_create;
pub mod standalone_widgets;
