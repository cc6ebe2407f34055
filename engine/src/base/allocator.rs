//! Settings of the C library's allocator, so that memory that was needed once is given back.
//!
//! Left alone it keeps an arena for each of up to eight times as many threads as there are cores, and
//! what a hundred queries needed at the same time stays with the arenas of the threads they ran on.
//! Measured with eight costly queries at once: 445 MiB resident that never shrank, against 228 MiB at
//! most and 118 MiB afterwards with the settings below and an arena a core; ingest is no slower. With two more, a query over HTTP takes
//! 40 µs of processor in every run instead of 40 or 64.

/// Sets the allocator up. Call it before threads are started.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn set_up() {
    /// Blocks from here on are mappings of their own, which go back when they are freed.
    const MAPPED_FROM_BYTES: i32 = 1 << 20;
    /// Free memory at the end of an arena that is kept.
    const KEPT_BYTES: i32 = 8 << 20;
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    // The threads of the runtime, as many as there are cores, are among the first and have one each: two that share one wait
    // for each other. All others share another one with them and the main thread's.
    let arenas = i32::try_from(cores + 2).unwrap_or(i32::MAX);
    let settings = [
        (libc::M_ARENA_MAX, arenas),
        (libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES),
        (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
    ];
    for (name, value) in settings {
        #[expect(unsafe_code, reason = "the C library has no other way to say it")]
        // SAFETY: mallopt takes two numbers and touches no memory of ours; a setting that it does not
        // know has no effect.
        unsafe {
            libc::mallopt(name, value);
        }
    }
}

/// Other allocators are left as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn set_up() {}
