//! The program's code in huge pages.
//!
//! The planning of a statement runs once through a few megabytes of code that are spread over fifty. In pages of 4 KiB most
//! of it is in no translation buffer of the processor, and in a process that was just copied not even in a page table: a tenth
//! of the time of small statements. So the template copies the code to memory with pages of 2 MiB, which takes the
//! place of the mapped file at the same addresses, in its copies, too:
//!
//! ```text
//! before  55d0c1a00000-55d0c4e58000 r-xp … /usr/bin/inlay
//! after   55d0c1a00000-55d0c4e00000 r-xp …                  26 pages of 2 MiB
//!         55d0c4e00000-55d0c4e58000 r-xp … /usr/bin/inlay   less than one
//! ```
//!
//! Where a process may not make memory executable (`MemoryDenyWriteExecute` of systemd), and where the kernel gives small
//! pages, the code stays where it is.

use std::{io, ops::Range};

/// Moves the code of this program to huge pages; returns where it was moved, at the same addresses, which is memory that the
/// process takes from now on. Nothing where the kernel makes no such pages.
///
/// Errors: when the kernel has no memory, does not say what is mapped, or does not let the process have it; the code is as
/// before then. Where memory for a mapping ends in the middle of the last call, the process ends.
#[cfg(target_os = "linux")]
pub fn move_to_huge_pages() -> io::Result<Range<usize>> {
    move_code_at(move_to_huge_pages as *const () as usize)
}

/// Elsewhere it stays where it is.
#[cfg(not(target_os = "linux"))]
pub fn move_to_huge_pages() -> io::Result<Range<usize>> {
    Ok(0..0)
}

#[cfg(target_os = "linux")]
fn move_code_at(address: usize) -> io::Result<Range<usize>> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let code = code_around(&maps, address).map(|range| whole_pages(&range)).unwrap_or_default();
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let is_never = setting.map_or(true, |setting| setting.contains("[never]"));
    if code.is_empty() || is_never || !replace(&code)? {
        return Ok(0..0);
    }
    Ok(code)
}

const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Of the copy, what must be in huge pages: else it is more memory for nothing.
const HUGE_SHARE: f64 = 0.9;

/// The mapping with an address, if it is one of code.
fn code_around(maps: &str, address: usize) -> Option<Range<usize>> {
    let mut mapped = maps.lines().filter_map(mapping);
    mapped
        .find(|(range, rest)| rest.starts_with("r-x") && range.contains(&address))
        .map(|(range, _)| range)
}

/// Addresses and the rest of a line that begins with them.
fn mapping(line: &str) -> Option<(Range<usize>, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some((address(start)?..address(end)?, rest))
}

/// Bytes in huge pages of the mappings that begin within a range, as `/proc/self/smaps` lists them.
///
/// ```text
/// 400000-800000 rw-p 00000000 00:00 0
/// AnonHugePages:      2048 kB                2,097,152 bytes, if 400000 is within the range
/// ```
fn huge_bytes(smaps: &str, within: &Range<usize>) -> usize {
    let (mut is_within, mut bytes) = (false, 0);
    for line in smaps.lines() {
        if let Some((range, _)) = mapping(line) {
            is_within = within.contains(&range.start);
        } else if let Some(size) = line.strip_prefix("AnonHugePages:").filter(|_| is_within) {
            let kib = size.trim().trim_end_matches("kB").trim().parse().unwrap_or(0);
            bytes += kib * 1_024;
        }
    }
    bytes
}

/// The huge pages that are within a range as a whole.
/// `55d0c1a01000..55d0c4e58000` has those of `55d0c1c00000..55d0c4e00000`. A range that is shorter than a page may have none: it is empty then.
fn whole_pages(range: &Range<usize>) -> Range<usize> {
    range.start.next_multiple_of(HUGE_PAGE_BYTES)..range.end / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
}

/// Puts a copy of the code in a range, which begins with a huge page and has whole ones, in its place. Says whether it did: not where
/// the copy got small pages.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "code is memory that no safe interface replaces")]
fn replace(code: &Range<usize>) -> io::Result<bool> {
    use std::ptr::null_mut;

    use libc::{
        MADV_HUGEPAGE, MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, MREMAP_FIXED, MREMAP_MAYMOVE,
        PROT_EXEC, PROT_READ, PROT_WRITE,
    };
    /// At least one small page is behind the copy: the gap before it is shorter than a huge page.
    const PAGE_BYTES: usize = 4 << 10;
    let (len, reserved) = (code.len(), code.len() + HUGE_PAGE_BYTES);
    let (writable, anonymous) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    let executable = PROT_READ | PROT_EXEC;
    // SAFETY: the new mapping is nobody else's, and as long as the copy and the gap before its first huge page. The code is
    // mapped for reading, and nothing writes to it. `mremap` puts the same bytes where the code was in one call, with the lock
    // of the mappings held: a thread that would run it meanwhile waits for the end of the call. What fails before leaves the
    // code as it was; when the kernel has unmapped the code and has no memory to go on, the process is ended by the fault.
    unsafe {
        let region = libc::mmap(null_mut(), reserved, writable, anonymous, -1, 0);
        if region == MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let copy = region.byte_add(region.align_offset(HUGE_PAGE_BYTES));
        let last_page = region.byte_add(reserved - PAGE_BYTES);
        // A process that may not make memory executable need not copy it.
        let may_execute = libc::mprotect(last_page, PAGE_BYTES, executable) == 0;
        if !may_execute || libc::madvise(copy, len, MADV_HUGEPAGE) != 0 {
            let error = io::Error::last_os_error();
            libc::munmap(region, reserved);
            return Err(error);
        }
        std::ptr::copy_nonoverlapping(code.start as *const u8, copy.cast(), len);
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let huge = huge_bytes(&smaps, &(copy as usize..copy as usize + len));
        let is_moved = huge as f64 >= len as f64 * HUGE_SHARE
            && libc::mprotect(copy, len, executable) == 0
            && {
                let flags = MREMAP_MAYMOVE | MREMAP_FIXED;
                let place = code.start as *mut libc::c_void;
                libc::mremap(copy, len, len, flags, place) != MAP_FAILED
            };
        if is_moved {
            // The gap before it, and what is left behind it.
            libc::munmap(region, copy as usize - region as usize);
            let end = copy.byte_add(len);
            libc::munmap(end, region as usize + reserved - end as usize);
        } else {
            libc::munmap(region, reserved);
        }
        Ok(is_moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
        55d0c1800000-55d0c1a01000 r--p 00000000 08:01 7 /usr/bin/inlay\n\
        55d0c1a01000-55d0c4e58000 r-xp 00200000 08:01 7 /usr/bin/inlay\n\
        7f0000000000-7f0000200000 rw-p 00000000 00:00 0\n";

    #[test]
    fn whole_pages_of_the_code_are_found() {
        let code = code_around(MAPS, 0x55d0_c1b0_0000).unwrap();
        assert_eq!(code, 0x55d0_c1a0_1000..0x55d0_c4e5_8000);
        assert_eq!(whole_pages(&code), 0x55d0_c1c0_0000..0x55d0_c4e0_0000);
        for no_code in [0x55d0_c180_0000, 0x7f00_0010_0000, 0x1000] {
            assert_eq!(code_around(MAPS, no_code), None);
        }
        assert_eq!(code_around("not a list of mappings\nxyz-1 r-x\n", 1), None);
        assert!(whole_pages(&(0x1000..0x3f_f000)).is_empty());
        assert!(whole_pages(&(0x1000..0x1f_f000)).is_empty());
    }

    #[test]
    fn huge_pages_are_counted_where_they_are_asked_for() {
        let smaps = "\
            1000-3000 rw-p 00000000 00:00 0\nRss: 8 kB\nAnonHugePages:      4096 kB\n\
            400000-800000 rw-p 00000000 00:00 0\nAnonHugePages:      2048 kB\nVmFlags: rd\n\
            800000-a00000 r-xp 00000000 00:00 0\nAnonHugePages:      2048 kB\n";
        assert_eq!(huge_bytes(smaps, &(0x40_0000..0x80_0000)), 2 << 20);
        assert_eq!(huge_bytes(smaps, &(0x40_0000..0xa0_0000)), 4 << 20);
        assert_eq!(huge_bytes(smaps, &(0xa0_0000..0xb0_0000)), 0);
        assert_eq!(huge_bytes("AnonHugePages: 1 kB\n1-2\n", &(0..9)), 0);
    }

    /// Other threads run meanwhile: those of the tests.
    #[test]
    #[cfg(target_os = "linux")]
    fn code_runs_on_when_it_was_moved() {
        let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        if enabled.map_or(true, |enabled| enabled.contains("[never]")) {
            assert_eq!(move_to_huge_pages().unwrap(), 0..0);
            return;
        }
        // The second time it is nobody's file any more, and moved all the same.
        let first = move_to_huge_pages().unwrap();
        for address in [first.start, first.end - 1] {
            let moved = move_code_at(address).unwrap();
            assert!(!moved.is_empty());
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let line = maps
                .lines()
                .find(|line| mapping(line).is_some_and(|(range, _)| range.contains(&moved.start)));
            let (range, rest) = line.and_then(mapping).unwrap();
            assert!(rest.starts_with("r-xp 00000000 00:00 0"), "{rest}");
            assert!(range.start <= moved.start && moved.end <= range.end);
        }
    }
}
