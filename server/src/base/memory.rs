//! Memory limits of the server, and their division among its parts.
//!
//! A server that exceeds the memory limit of its container is killed without a message. So
//! everything that grows with what clients send has a bound, and the bounds add up to three
//! quarters of the limit at most. The rest is for code, file mappings and the slack of the
//! allocator.
//!
//! ```text
//! MiB       flush   memtables   queries   one query   cache   bodies   ingest   all but flush and one query
//!   256        16          51        51          22      16       16       32          166
//! 1,024        64         204       204          89      64       64      128          665
//! 4,096        64         512       819         358     256      256      512        2,355
//! 32,768       64         512     4,096       1,024   1,024      512    1,024        7,168
//! ```
//!
//! Without `--memory-mb` the total is the smallest limit of the control groups around the process (`memory.max`), or half of the
//! machine where there is none.

use std::path::{Path, PathBuf};

use inlay_engine::Limits;

const MIB: u64 = 1 << 20;
/// Less than this is not enough for one batch of the largest size and a merge at the same time.
const TOTAL_MIN: u64 = 256 * MIB;
/// From this total on, the code of workers may take memory of its own: 51 MiB, once for all.
const HUGE_CODE_FROM: u64 = 2_048 * MIB;
/// Mount point of the control groups.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Memory limits in bytes, by purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Bytes of the memtable at which a flush is due.
    pub flush: u64,
    /// Bytes of unflushed rows at which writes are refused.
    pub memtables: u64,
    /// Bytes that all running queries may hold together.
    pub queries: u64,
    /// Bytes that one query may hold.
    pub query: u64,
    /// Bytes cached between queries: dictionaries, users and partial results.
    pub kept: u64,
    /// Bytes of event bodies that are being received.
    pub bodies: u64,
    /// Bytes of events between their body and the log.
    pub ingest: u64,
}

impl Shares {
    /// Divides `total` bytes; less than 256 MiB counts as 256 MiB. Each share is a fraction of it with an upper bound.
    pub fn of(total: u64) -> Self {
        let total = total.max(TOTAL_MIN);
        let part = |divisor: u64, max_mib: u64| (total / divisor).min(max_mib * MIB);
        let queries = part(5, 4_096);
        Self {
            flush: part(16, 64),
            memtables: part(5, 512),
            queries,
            // Two queries of this size leave an eighth for small ones.
            query: (queries * 7 / 16).min(1_024 * MIB),
            kept: part(16, 1_024),
            bodies: part(16, 512),
            ingest: part(8, 1_024),
        }
    }

    /// Bytes of all shares together. A flush is due within the share of the memtables.
    pub fn sum(&self) -> u64 {
        self.memtables + self.queries + self.kept + self.bodies + self.ingest
    }

    /// The limits of the engine.
    pub fn engine_limits(&self) -> Limits {
        let bytes = |share: u64| usize::try_from(share).unwrap_or(usize::MAX);
        Limits {
            flush_bytes: bytes(self.flush),
            memtable_bytes_max: bytes(self.memtables),
            queries_bytes_max: bytes(self.queries),
            query_bytes_max: bytes(self.query),
            kept_bytes_max: bytes(self.kept),
            ..Limits::default()
        }
    }
}

/// Whether workers have their code in huge pages, in a server with `total` bytes. Code without
/// optimisation is three times as large, and nobody measures it.
pub fn has_huge_code(total: u64) -> bool {
    total >= HUGE_CODE_FROM && !cfg!(debug_assertions)
}

/// Bytes that the server uses by default: the limit of its control group, or else half of the
/// machine. `read` returns the text of a file, if there is one.
pub fn available(read: impl Fn(&Path) -> Option<String>) -> u64 {
    let machine = read(Path::new("/proc/meminfo"))
        .and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        })
        .map_or(TOTAL_MIN, |kib| kib * 1_024);
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(limit_files).filter_map(|file| read(&file));
    // `max` is not a number, and means no limit.
    let limit = limits.filter_map(|text| text.trim().parse::<u64>().ok()).min();
    limit.filter(|&limit| limit < machine).unwrap_or(machine / 2)
}

/// The files that may hold the memory limit of a control group, or of the groups around it. `line` is one of `/proc/self/cgroup`:
///
/// ```text
/// 0::/a/b               /sys/fs/cgroup/a/b/memory.max, /sys/fs/cgroup/a/memory.max, /sys/fs/cgroup/memory.max
/// 4:memory,cpu:/x       /sys/fs/cgroup/memory/x/memory.limit_in_bytes, /sys/fs/cgroup/memory/memory.limit_in_bytes
/// 5:devices:/           none
/// ```
fn limit_files(line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let root = Path::new(CONTROL_GROUPS);
    let (root, name) = match controllers {
        "" => (root.to_owned(), "memory.max"),
        list if list.split(',').any(|one| one == "memory") => {
            (root.join("memory"), "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let own = root.join(path.trim_start_matches('/'));
    own.ancestors().filter(|group| group.starts_with(&root)).map(|group| group.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_leave_a_quarter_for_the_rest() {
        for mib in [1, 256, 488, 1_024, 4_096, 24_576, 1 << 20] {
            let shares = Shares::of(mib * MIB);
            assert!(shares.sum() <= mib.max(256) * MIB * 3 / 4, "{mib} MiB: {shares:?}");
            assert!(shares.query <= shares.queries && shares.flush < shares.memtables);
        }
        assert_eq!(Shares::of(24 << 30).flush, 64 * MIB);
    }

    #[test]
    fn the_smallest_limit_of_the_control_groups_counts() {
        let machine = "MemTotal:       24000000 kB\nMemFree: 1 kB\n";
        let read = |files: &'static [(&str, &str)]| {
            move |path: &Path| {
                let found = files.iter().find(|(name, _)| Path::new(name) == path);
                found
                    .map(|(_, text)| (*text).to_owned())
                    .or_else(|| (path == Path::new("/proc/meminfo")).then(|| machine.to_owned()))
            }
        };
        assert_eq!(available(read(&[])), 24_000_000 * 1_024 / 2);
        let second = read(&[
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "536870912\n"),
        ]);
        assert_eq!(available(second), 512 * MIB);
        let first = read(&[
            ("/proc/self/cgroup", "5:devices:/\n4:memory,cpu:/x\n0::/\n"),
            ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "268435456\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(available(first), 256 * MIB);
        assert_eq!(available(|_| None), TOTAL_MIN / 2);
    }
}
