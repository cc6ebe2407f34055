//! Dashboards: a draft that editors change, the snapshot that is shown, and the widgets in them.
//!
//! ```text
//! POST  /v1/dashboards                      drafts.rs                a draft, version 1
//! POST  /v1/dashboards/0190…/publish        drafts.rs                the draft becomes the snapshot; /embed/0190… shows it
//! PATCH /v1/dashboards/0190…                drafts.rs                the draft, version 3; the embed is unchanged
//! POST  /v1/discover/auto-create            auto_create.rs           a draft made from events
//! POST  /v1/widgets/preview/data            widgets.rs               the data of a widget that is not saved
//! POST  /v1/widgets                         standalone_widgets.rs    a widget outside of any dashboard
//! ```

pub mod widgets;

pub mod drafts;

pub mod auto_create;
pub mod standalone_widgets;
