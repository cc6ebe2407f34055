//! One request's worth of events, already in columns.
//!
//! A [`Batch`] belongs to one namespace. Building it needs no lock and no log, so that the work of
//! an ingest request stays outside the one place where all writers meet.

use crate::{
    column::{Rows, RowsBuilder},
    error::{Error, Result},
    event::{
        BATCH_COLUMNS_MAX, BATCH_ROWS_MAX, Event, Namespace, TEXT_BYTES_MAX, TIMESTAMP_MS_MAX,
        TIMESTAMP_MS_MIN,
    },
};

/// Events of one namespace, in columns.
pub struct Batch {
    namespace: Namespace,
    builder: RowsBuilder,
}

impl Batch {
    /// An empty batch; [`crate::Engine::batch`] makes it with the seed of its database.
    pub(crate) fn new(namespace: Namespace, hash_seed: u64) -> Self {
        Self { namespace, builder: RowsBuilder::new(hash_seed) }
    }

    /// Appends an event with its string and numeric properties.
    ///
    /// Errors: `Invalid` when a name or tenant is empty, a text is too long, a timestamp is absurd, a
    /// number is not finite, or the batch has no room for more rows or property names; the batch is
    /// unchanged then.
    pub fn push(
        &mut self,
        event: &Event<'_>,
        strings: &[(&str, &str)],
        numbers: &[(&str, f64)],
    ) -> Result<()> {
        if event.tenant.is_empty() {
            return Err(Error::invalid("tenant_id", "is empty"));
        }
        if event.name.is_empty() {
            return Err(Error::invalid("event_name", "is empty"));
        }
        if !(TIMESTAMP_MS_MIN..=TIMESTAMP_MS_MAX).contains(&event.timestamp_ms) {
            return Err(Error::invalid("timestamp", "lies outside the years 1 to 9999"));
        }
        let is_long = |text: &str| text.len() > TEXT_BYTES_MAX;
        if event.event_id.is_some_and(is_long) {
            return Err(Error::invalid("event_id", too_long()));
        }
        if event.user_id.is_some_and(is_long) {
            return Err(Error::invalid("user_id", too_long()));
        }
        if strings.iter().any(|(_, value)| is_long(value)) {
            return Err(Error::invalid("string_props", too_long()));
        }
        if numbers.iter().any(|(_, number)| !number.is_finite()) {
            return Err(Error::invalid("numeric_props", "holds a number that is not finite"));
        }
        let rows = self.builder.rows();
        if rows.len() >= BATCH_ROWS_MAX {
            return Err(Error::invalid("events", "a batch has too many events"));
        }
        let new_names =
            strings.iter().filter(|(name, _)| !rows.strings.contains_key(*name)).count()
                + numbers.iter().filter(|(name, _)| !rows.numbers.contains_key(*name)).count();
        if new_names > 0 && rows.column_count() + new_names > BATCH_COLUMNS_MAX {
            return Err(Error::invalid(
                "string_props",
                format!("the batch has more than {BATCH_COLUMNS_MAX} different property names"),
            ));
        }
        self.builder.push(self.namespace, event, strings, numbers);
        Ok(())
    }

    /// The owner of the events.
    pub fn namespace(&self) -> Namespace {
        self.namespace
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.builder.rows().len()
    }

    /// Whether it holds no event.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The columns, without what building them needed.
    pub(crate) fn into_rows(self) -> Rows {
        self.builder.finish()
    }
}

fn too_long() -> String {
    format!("holds a text of more than {TEXT_BYTES_MAX} bytes")
}
