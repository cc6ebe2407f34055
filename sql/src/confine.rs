//! What the process gives up before it looks at a statement.
//!
//! Memory and time are limited from the start. When the snapshot is open, so are files: no descriptor can be opened
//! any more, so there is no file and no network; and of the kernel's calls only those are answered that
//! computing needs. Who broke out of the library would find an empty room.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

/// Bytes that the process may write to: operators, plans, stacks. What is only read of segments is not counted.
const DATA_BYTES: u64 = 1 << 30;
/// Seconds of all its processors.
const CPU_SECONDS: u64 = 60;
/// Less urgent than the server, whose own work comes first. Not the least urgent: where something else keeps the
/// machine busy, a statement would never be done.
const NICE: i32 = 10;

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).map_err(Into::into)
}

/// Limits of memory and time.
///
/// Errors: what the kernel says.
pub fn limits() -> io::Result<()> {
    // Where memory runs out, a statement is the first to go, and not the server. Not given everywhere either.
    #[expect(clippy::disallowed_methods, reason = "no file of ours but a setting of the process")]
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Data, DATA_BYTES)?;
    limit(Resource::Cpu, CPU_SECONDS)?;
    // Being less urgent is a favour, and not given everywhere.
    let _ = rustix::process::nice(NICE);
    Ok(())
}

/// Gives up files, network and all that is not computing, for all threads of the process.
///
/// Errors: what the kernel says.
pub fn seal() -> io::Result<()> {
    limit(Resource::Nofile, 0)?;
    calls::restrict()
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod calls {
    use std::{collections::BTreeMap, io};

    use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter_all_threads};

    /// Reading, writing and closing what is open; memory, threads, clocks; ending.
    const ALLOWED: [i64; 44] = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_readv,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_lseek,
        libc::SYS_fstat,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mprotect,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_clone,
        libc::SYS_clone3,
        libc::SYS_rseq,
        libc::SYS_set_robust_list,
        libc::SYS_get_robust_list,
        libc::SYS_set_tid_address,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_getcpu,
        libc::SYS_clock_gettime,
        libc::SYS_clock_getres,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_tgkill,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_prctl,
        libc::SYS_membarrier,
        libc::SYS_uname,
        libc::SYS_sysinfo,
        libc::SYS_ppoll,
    ];

    /// Every other call fails with EPERM.
    pub fn restrict() -> io::Result<()> {
        let rules: BTreeMap<i64, Vec<seccompiler::SeccompRule>> =
            ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
        let arch = match std::env::consts::ARCH {
            "aarch64" => TargetArch::aarch64,
            _ => TargetArch::x86_64,
        };
        let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let filter = SeccompFilter::new(rules, refused, SeccompAction::Allow, arch);
        let filter = filter.map_err(io::Error::other)?;
        let program: seccompiler::BpfProgram = filter.try_into().map_err(io::Error::other)?;
        apply_filter_all_threads(&program).map_err(io::Error::other)
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod calls {
    /// Elsewhere the limit on descriptors stands alone.
    pub fn restrict() -> std::io::Result<()> {
        Ok(())
    }
}
