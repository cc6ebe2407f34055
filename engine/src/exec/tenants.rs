//! How many events each tenant of a namespace has in a window of whole hours.
//!
//! Run directories know the rows of each series by the hour, so nothing of a segment's columns is read;
//! rows in memory are counted one by one.

use std::{collections::HashMap, sync::Arc};

use super::{budget::Budget, run::Control};
use crate::{
    base::time::HOUR_MS,
    error::{Error, Limit, Result},
    event::Namespace,
    store::Version,
};

/// Bytes of a tenant's count besides its name.
const ENTRY_BYTES: usize = 96;

/// Tenants with their numbers of events, most first, then by name.
///
/// Errors: `Limit` when `control` stops it or there are more tenants than memory for them.
pub fn tenants(
    version: &Version,
    namespace: Namespace,
    from_ms: i64,
    to_ms: i64,
    budget: &Arc<Budget>,
    control: &dyn Control,
) -> Result<Vec<(String, u64)>> {
    let hours = from_ms.div_euclid(HOUR_MS)..to_ms.div_euclid(HOUR_MS) + 1;
    let mut charge = budget.charge();
    let mut counts: HashMap<String, u64> = HashMap::new();
    let mut add = |tenant: &str, rows: u64| -> Result<()> {
        if let Some(count) = counts.get_mut(tenant) {
            *count += rows;
        } else if rows > 0 {
            charge.add(tenant.len() + ENTRY_BYTES)?;
            counts.insert(tenant.to_owned(), rows);
        }
        Ok(())
    };
    let check = || {
        if control.must_stop() {
            return Err(Error::limit(Limit::QueryTime, "counting the tenants took too long"));
        }
        Ok(())
    };
    for segment in &version.segments {
        check()?;
        let positions = segment.runs().positions_of(namespace, None);
        for run in segment.runs().runs().get(positions).unwrap_or_default() {
            let inside = run.hour_rows().filter(|(hour, _)| hours.contains(hour));
            add(&run.key.tenant, inside.map(|(_, rows)| rows.len() as u64).sum())?;
        }
    }
    for chunk in version.memtables().flat_map(|memtable| memtable.chunks()) {
        check()?;
        for row in 0..chunk.len() {
            let key = chunk.series_of(row);
            let is_inside = hours.contains(&chunk.timestamps[row].div_euclid(HOUR_MS));
            if key.namespace == namespace && is_inside {
                add(&key.tenant, 1)?;
            }
        }
    }
    let mut found: Vec<(String, u64)> = counts.into_iter().collect();
    found.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(found)
}
