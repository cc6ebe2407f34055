//! What the process gives up before it looks at a statement.
//!
//! Memory is limited from the start, time in each copy. When the snapshot is open, so are files: no descriptor can be opened
//! any more, so there is no file and no network; and of the kernel's calls only those are answered that
//! computing needs. Who broke out of the library would find an empty room.
//!
//! ```text
//!                            template           a copy before its statement      when the snapshot is open
//! memory to write to         most_bytes, of which base_bytes at first            raised by each grant
//! core dumps, written files  none
//! time of its processors                        60 s
//! new descriptors                                                                none
//! calls of the kernel                           51, clone for threads only       44: no open, no pread, no recvmsg, no seccomp
//! ```
//!
//! Where a call is not allowed it fails with EPERM, and the process goes on: a library that tries one has to cope with an error.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Seconds of all its processors.
const CPU_SECONDS: u64 = 60;

/// Sets the soft and the hard limit of this process, or the hard limit that there is, where that is lower.
///
/// Errors: what the kernel says.
fn limit(resource: Resource, most: u64) -> io::Result<()> {
    // Who started the server may have allowed less, which cannot be raised.
    let most = getrlimit(resource).maximum.map_or(most, |allowed| allowed.min(most));
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).map_err(Into::into)
}

/// Limits that copies take over: so many bytes that a process may write to, which are operators, plans and stacks, and as many as
/// [`grow_memory`] can make of them. What is only read of segments is not counted. Where memory runs out, they go before the server, the largest first; the
/// kernel does not let everybody say so.
///
/// Errors: what the kernel says.
pub fn limits(base_bytes: u64, most_bytes: u64) -> io::Result<()> {
    close_inherited();
    // Once, and not by each copy: what has a file of its own under `/proc` in use takes the kernel longer to take down, and the
    // template waits meanwhile.
    #[expect(clippy::disallowed_methods, reason = "no file of ours but a setting of the process")]
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Data, most_bytes)?;
    let most = getrlimit(Resource::Data);
    let base = most.maximum.map_or(base_bytes, |most| most.min(base_bytes));
    setrlimit(Resource::Data, Rlimit { current: Some(base), ..most }).map_err(Into::into)
}

/// Lets the process write to so many bytes more. It is the one limit that can still be changed when all else has been given up.
///
/// Up to `most_bytes` of [`limits`]: 512 MiB and a grant of 256 MiB are 768 MiB.
///
/// Errors: what the kernel says.
pub fn grow_memory(bytes: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Data);
    let current = limit.current.map(|current| current.saturating_add(bytes));
    let most = limit.maximum.unwrap_or(u64::MAX);
    let current = current.map(|current| current.min(most));
    setrlimit(Resource::Data, Rlimit { current, ..limit }).map_err(Into::into)
}

/// Limits of a copy: its time.
///
/// Errors: what the kernel says.
pub fn limits_of_copy() -> io::Result<()> {
    limit(Resource::Cpu, CPU_SECONDS)
}

/// Closes what the server got from whoever started it, and passed on without knowing.
fn close_inherited() {
    const FIRST_INHERITED: libc::c_uint = 3;
    // SAFETY: nothing was opened in this process yet, so nobody holds a descriptor that is closed here.
    // An old kernel without the call leaves them open, to which the limits below do nothing.
    #[expect(unsafe_code, reason = "closing what nobody owns")]
    unsafe {
        libc::syscall(libc::SYS_close_range, FIRST_INHERITED, libc::c_uint::MAX, 0);
    }
}

/// What a process gives up, made ready ahead: most while it waits, and files when it has opened what it needs.
pub struct Seal(calls::Filters);

impl Seal {
    /// Makes it ready; nothing is given up yet.
    ///
    /// Errors: none that is expected; what the library says.
    pub fn new() -> io::Result<Self> {
        calls::filters().map(Self)
    }

    /// Gives up what neither computing nor opening of files needs, for all threads of the process. To tell the kernel which calls
    /// those are takes it a fifth of a millisecond, for which no statement waits here.
    ///
    /// Errors: what the kernel says.
    pub fn begin(&self) -> io::Result<()> {
        calls::restrict(&self.0.waiting)
    }

    /// Gives up files, network and all that is not computing, for all threads of the process. It has [begun](Self::begin).
    ///
    /// Errors: what the kernel says.
    pub fn close(&self) -> io::Result<()> {
        limit(Resource::Nofile, 0)?;
        calls::restrict(&self.0.last)
    }
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod calls {
    use std::{collections::BTreeMap, io};

    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch, apply_filter_all_threads,
    };

    /// Reading, writing and closing what is open; memory, clocks; ending. Threads are below. There is no call that sends
    /// a signal: who may end others may stop the template. Without it the C library aborts by an instruction that it
    /// may not execute.
    const ALLOWED: [i64; 42] = [
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

    /// What opens files, takes over memory, and gives up these calls, too.
    const ALLOWED_BEFORE: [i64; 8] = [
        libc::SYS_openat,
        libc::SYS_statx,
        libc::SYS_newfstatat,
        libc::SYS_fcntl,
        libc::SYS_pread64,
        libc::SYS_recvmsg,
        libc::SYS_prlimit64,
        libc::SYS_seccomp,
    ];

    /// Programs for the kernel: a call has to pass every program that was loaded.
    pub struct Filters {
        /// Before files are opened, in this order.
        pub waiting: Vec<BpfProgram>,
        /// When they are open.
        pub last: Vec<BpfProgram>,
    }

    /// Every other call fails with EPERM, and so does making a process: threads are made.
    pub fn filters() -> io::Result<Filters> {
        let refuse = |error: libc::c_int| SeccompAction::Errno(error.unsigned_abs());
        // What makes threads and processes by a structure that no filter can look into. Who is told that there is
        // no such call takes the older one.
        let newer = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
        let newer = program(newer, SeccompAction::Allow, refuse(libc::ENOSYS))?;
        let allowed = ALLOWED.iter().chain(&ALLOWED_BEFORE);
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            allowed.map(|call| (*call, Vec::new())).collect();
        let thread = libc::CLONE_THREAD.unsigned_abs().into();
        let is_thread = SeccompCmpOp::MaskedEq(thread);
        let flags = SeccompCondition::new(0, SeccompCmpArgLen::Qword, is_thread, thread);
        let rule = SeccompRule::new(vec![flags.map_err(io::Error::other)?]);
        rules.insert(libc::SYS_clone, vec![rule.map_err(io::Error::other)?]);
        let waiting = program(rules, refuse(libc::EPERM), SeccompAction::Allow)?;
        let before = ALLOWED_BEFORE.iter().map(|call| (*call, Vec::new()));
        let mut before: BTreeMap<i64, Vec<SeccompRule>> = before.collect();
        // Limits of other processes, and other limits: what memory it is granted, a process takes itself.
        let is_not = |argument, value: u64| {
            let condition =
                SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value);
            SeccompRule::new(vec![condition.map_err(io::Error::other)?]).map_err(io::Error::other)
        };
        let own_memory = [is_not(0, 0)?, is_not(1, libc::RLIMIT_DATA.into())?];
        before.insert(libc::SYS_prlimit64, own_memory.into());
        let last = program(before, SeccompAction::Allow, refuse(libc::EPERM))?;
        Ok(Filters { waiting: vec![newer, waiting], last: vec![last] })
    }

    /// Tells the kernel.
    pub fn restrict(filters: &[BpfProgram]) -> io::Result<()> {
        filters
            .iter()
            .try_for_each(|filter| apply_filter_all_threads(filter))
            .map_err(io::Error::other)
    }

    fn program(
        rules: BTreeMap<i64, Vec<SeccompRule>>,
        otherwise: SeccompAction,
        listed: SeccompAction,
    ) -> io::Result<BpfProgram> {
        let arch = match std::env::consts::ARCH {
            "aarch64" => TargetArch::aarch64,
            _ => TargetArch::x86_64,
        };
        let filter = SeccompFilter::new(rules, otherwise, listed, arch);
        filter.map_err(io::Error::other)?.try_into().map_err(io::Error::other)
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod calls {
    /// Elsewhere the limit on descriptors stands alone.
    pub struct Filters {
        /// Placeholder: this system has no filters of calls.
        pub waiting: (),
        /// Placeholder: this system has no filters of calls.
        pub last: (),
    }

    /// Filters that restrict nothing; never fails.
    pub fn filters() -> std::io::Result<Filters> {
        Ok(Filters { waiting: (), last: () })
    }

    /// Does nothing; never fails.
    pub fn restrict(&(): &()) -> std::io::Result<()> {
        Ok(())
    }
}
