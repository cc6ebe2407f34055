//! The program's code in huge pages.
//!
//! The planning of a statement runs once through a few megabytes of code that are spread over fifty. In pages of 4 KiB most
//! of it is in no translation buffer of the processor, and in a process that was just copied not even in a page table: a tenth
//! of the time of small statements. So the template copies the code to memory with pages of 2 MiB, which takes the
//! place of the mapped file at the same addresses, in its copies, too:
//!
//! ```text
//! before  55d0c1a00000-55d0c4e58000 r-xp … /usr/bin/inlay
//! after   55d0c1a00000-55d0c4c00000 r-xp …                  25 pages of 2 MiB
//!         55d0c4c00000-55d0c4e58000 r-xp … /usr/bin/inlay   less than one
//! ```

use std::{io, ops::Range};

/// Moves the code of this program to huge pages; returns how many bytes were moved, which is memory that the process takes
/// from now on. None where the kernel never makes such pages.
///
/// Errors: when the kernel has no memory, or does not say what is mapped; the code is as before then.
#[cfg(target_os = "linux")]
pub fn move_to_huge_pages() -> io::Result<usize> {
    let here = move_to_huge_pages as *const () as usize;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let whole = code_around(&maps, here).map(|range| whole_pages(&range)).unwrap_or_default();
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if whole.is_empty() || setting.is_ok_and(|setting| setting.contains("[never]")) {
        return Ok(0);
    }
    replace(&whole)?;
    Ok(whole.len())
}

/// Elsewhere it stays where it is.
#[cfg(not(target_os = "linux"))]
pub fn move_to_huge_pages() -> io::Result<usize> {
    Ok(0)
}

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The mapping with an address, if it is one of code.
fn code_around(maps: &str, address: usize) -> Option<Range<usize>> {
    let mapped = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        rest.starts_with("r-x").then_some(address(start)?..address(end)?)
    });
    mapped.into_iter().find(|range| range.contains(&address))
}

/// The huge pages that are within a range as a whole.
fn whole_pages(range: &Range<usize>) -> Range<usize> {
    range.start.next_multiple_of(HUGE_PAGE_BYTES)..range.end / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
}

/// Puts a copy of the code in a range, which begins with a huge page and has whole ones, in its place.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "code is memory that no safe interface replaces")]
fn replace(code: &Range<usize>) -> io::Result<()> {
    use std::ptr::null_mut;

    use libc::{
        MADV_HUGEPAGE, MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, MREMAP_FIXED, MREMAP_MAYMOVE,
        PROT_EXEC, PROT_READ, PROT_WRITE,
    };
    let (len, reserved) = (code.len(), code.len() + HUGE_PAGE_BYTES);
    let (writable, anonymous) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    // SAFETY: the new mapping is nobody else's, and as long as the copy and the gap before its first huge page. The code is
    // mapped for reading, and nothing writes to it. `mremap` puts the same bytes where the code was in one call, with the lock
    // of the mappings held: a thread that would run it meanwhile waits for the end of the call. Whatever fails before leaves
    // the code as it was.
    unsafe {
        let region = libc::mmap(null_mut(), reserved, writable, anonymous, -1, 0);
        if region == MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let copy = region.byte_add(region.align_offset(HUGE_PAGE_BYTES));
        let moved = libc::madvise(copy, len, MADV_HUGEPAGE) == 0 && {
            std::ptr::copy_nonoverlapping(code.start as *const u8, copy.cast(), len);
            let flags = MREMAP_MAYMOVE | MREMAP_FIXED;
            libc::mprotect(copy, len, PROT_READ | PROT_EXEC) == 0
                && libc::mremap(copy, len, len, flags, code.start as *mut libc::c_void)
                    != MAP_FAILED
        };
        let error = io::Error::last_os_error();
        if moved {
            // The gap before it, and what is left behind it.
            libc::munmap(region, copy as usize - region as usize);
            let end = copy.byte_add(len);
            libc::munmap(end, region as usize + reserved - end as usize);
            return Ok(());
        }
        libc::munmap(region, reserved);
        Err(error)
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

    /// Other threads run meanwhile: those of the tests.
    #[test]
    #[cfg(target_os = "linux")]
    fn code_runs_on_when_it_was_moved() {
        let moved = move_to_huge_pages().unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let code = code_around(&maps, code_runs_on_when_it_was_moved as *const () as usize);
        assert!(code.is_some());
        assert_eq!(moved % HUGE_PAGE_BYTES, 0);
        assert_eq!(whole_pages(&(0x1000..0x60_0000)).len(), 2 * HUGE_PAGE_BYTES);
        // The second time it is nobody's file any more, and moved all the same.
        assert_eq!(move_to_huge_pages().unwrap(), moved);
    }
}
