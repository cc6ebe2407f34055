//! The allocator of processes that answer statements: the C library's, but for blocks with an alignment of their own.
//!
//! Buffers of columns begin at multiples of 128 bytes. The C library cuts such a block out of a larger one, and does not find a freed
//! one again when the next of the same size is asked for, so that its heap grows with each batch: a join whose condition is computed for a million
//! pairs took 300 MiB for buffers of 64 KiB that were freed at once. So each is an ordinary block that is larger by its alignment:
//!
//! ```text
//! block of the C library   ┌ … ┬ address of the block ┬ bytes of the buffer …
//!                          16 bytes aligned           128 bytes aligned
//! ```
//!
//! For 100 bytes at a multiple of 128 the C library is asked for 228. If that block begins at 0x1010, the bytes begin at 0x1080, the next multiple, and
//! the eight bytes before them, from 0x1078 on, hold 0x1010: by these the block is found when the bytes are freed.

use std::alloc::{GlobalAlloc, Layout, System};

/// Every block of the C library begins at a multiple of so many bytes.
const BLOCK_ALIGN: usize = 16;

/// The C library's allocator, with aligned blocks that are found again.
#[derive(Debug)]
pub struct AlignedMemory;

/// The block around aligned bytes, which begin above its first address and no further than their alignment: there is room for an address.
fn block_of(layout: Layout) -> Option<Layout> {
    let bytes = layout.size().checked_add(layout.align())?;
    Layout::from_size_align(bytes, BLOCK_ALIGN).ok()
}

/// The aligned bytes of a block, before which its address is written.
///
/// # Safety
///
/// The block is one of [`block_of`] the same layout, and in use.
#[expect(unsafe_code, reason = "an allocator is made of pointers")]
unsafe fn aligned(block: *mut u8, align: usize) -> *mut u8 {
    let offset = align - block.addr() % align;
    // SAFETY: the offset is at most the alignment, by which the block is larger than what it is for; and at least `BLOCK_ALIGN`,
    // since both are multiples of it, so that an address fits below.
    unsafe {
        let bytes = block.add(offset);
        bytes.cast::<*mut u8>().sub(1).write(block);
        bytes
    }
}

/// Bytes of a layout, in a block that `from` takes of the C library.
///
/// # Safety
///
/// That of [`GlobalAlloc::alloc`].
#[expect(unsafe_code, reason = "an allocator is made of pointers")]
unsafe fn take(layout: Layout, from: unsafe fn(&System, Layout) -> *mut u8) -> *mut u8 {
    if layout.align() <= BLOCK_ALIGN {
        // SAFETY: as the caller promises.
        return unsafe { from(&System, layout) };
    }
    let Some(block) = block_of(layout) else { return std::ptr::null_mut() };
    // SAFETY: the block has at least as many bytes as its alignment, and is as large as `aligned` expects.
    unsafe {
        let block = from(&System, block);
        if block.is_null() { block } else { aligned(block, layout.align()) }
    }
}

// SAFETY: blocks come from `System` and go back to it with the layout that they were taken with. Bytes that are handed out lie within
// their block, are aligned, and do not overlap the address that is written below them.
#[expect(unsafe_code, reason = "an allocator is made of pointers")]
unsafe impl GlobalAlloc for AlignedMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { take(layout, System::alloc) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { take(layout, System::alloc_zeroed) }
    }

    unsafe fn dealloc(&self, bytes: *mut u8, layout: Layout) {
        if layout.align() <= BLOCK_ALIGN {
            // SAFETY: as the caller promises.
            return unsafe { System.dealloc(bytes, layout) };
        }
        let Some(block) = block_of(layout) else { return };
        // SAFETY: the bytes were handed out by `aligned`, which wrote the address of their block below them.
        unsafe { System.dealloc(bytes.cast::<*mut u8>().sub(1).read(), block) }
    }

    unsafe fn realloc(&self, bytes: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.align() <= BLOCK_ALIGN {
            // SAFETY: as the caller promises.
            return unsafe { System.realloc(bytes, layout, new_size) };
        }
        // SAFETY: the caller promises that the size is a possible one of this alignment.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let (Some(before), Some(block)) = (block_of(layout), block_of(new)) else {
            return std::ptr::null_mut();
        };
        // SAFETY: as in `dealloc`; the C library copies a block with its bytes, which are moved where they are aligned within the new
        // one, as many as are in both.
        unsafe {
            let old = bytes.cast::<*mut u8>().sub(1).read();
            let offset = bytes.addr() - old.addr();
            let moved = System.realloc(old, before, block.size());
            if moved.is_null() {
                return moved;
            }
            let wanted = layout.align() - moved.addr() % layout.align();
            if wanted != offset {
                let both = layout.size().min(new_size);
                moved.add(offset).copy_to(moved.add(wanted), both);
            }
            aligned(moved, layout.align())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "an allocator is asked by pointers")]
    fn blocks_are_aligned_and_keep_their_bytes() {
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let mut blocks: Vec<(*mut u8, Layout, u8)> = Vec::new();
        let check = |(bytes, layout, mark): &(*mut u8, Layout, u8), size: usize| {
            assert_eq!(bytes.addr() % layout.align(), 0);
            // SAFETY: the block has so many bytes, which were written.
            let written = unsafe { std::slice::from_raw_parts(*bytes, size) };
            assert!(written.iter().all(|byte| byte == mark));
        };
        for step in 0..20_000 {
            let align = 1 << random(13);
            let layout = Layout::from_size_align(1 + random(3 * align + 5_000), align).unwrap();
            let mark = step as u8;
            // SAFETY: blocks are taken, written, grown and given back with their layouts, each once.
            unsafe {
                match random(3) {
                    0 => {
                        let bytes = AlignedMemory.alloc_zeroed(layout);
                        check(&(bytes, layout, 0), layout.size());
                        bytes.write_bytes(mark, layout.size());
                        blocks.push((bytes, layout, mark));
                    }
                    1 if !blocks.is_empty() => {
                        let at = random(blocks.len());
                        let (bytes, layout, mark) = blocks[at];
                        let size = 1 + random(2 * layout.size());
                        let bytes = AlignedMemory.realloc(bytes, layout, size);
                        let new = Layout::from_size_align(size, layout.align()).unwrap();
                        check(&(bytes, new, mark), size.min(layout.size()));
                        bytes.write_bytes(mark, size);
                        blocks[at] = (bytes, new, mark);
                    }
                    _ if blocks.len() > 100 => {
                        let block = blocks.swap_remove(random(blocks.len()));
                        check(&block, block.1.size());
                        AlignedMemory.dealloc(block.0, block.1);
                    }
                    _ => {
                        let bytes = AlignedMemory.alloc(layout);
                        bytes.write_bytes(mark, layout.size());
                        blocks.push((bytes, layout, mark));
                    }
                }
            }
        }
        for block in &blocks {
            check(block, block.1.size());
            // SAFETY: as above.
            unsafe { AlignedMemory.dealloc(block.0, block.1) };
        }
    }
}
