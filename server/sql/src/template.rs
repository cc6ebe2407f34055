//! The template: the process that workers are forked from.
//!
//! Loading the program and having the library do its first statement takes eleven milliseconds of a processor; to fork
//! a process that has done both takes one. The template has never seen anybody's data, and answers nothing itself. It
//! has one thread only, since a child would have none of the others but all of their locks.
//!
//! ```text
//! server                            template                              child
//!                                   prepare: limits, a first statement
//! four descriptors, over stdin      fork
//!                                                                         pipes become stdin and stdout, 60 s of processor time
//!                                                                         +, the statement, its answer (worker.rs)
//!                                                                         exits, and its end pipe is closed
//! 00 00 00 00 over control          waitpid, and sends the status
//! or: closes control                kills the child, waitpid               is killed
//!                                   and sends the status, where control is closed for writing alone
//! closes stdin                      ends                                  the kernel kills those that still run
//! ```
//!
//! The four bytes are the status of `waitpid`, little-endian: 00 00 00 00 for an exit with 0, 00 01 00 00 for one with 1, 09 00 00 00 where the kernel has
//! killed a child for want of memory.

use std::{
    ffi::CStr,
    io::{self, Write as _},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    process::ExitCode,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::retry_on_intr,
    process::{Pid, Signal, WaitOptions, getpid, getppid, kill_process, waitpid},
};

use inlay_sql_protocol::WorkerPipes;

use crate::{
    code_pages, confine,
    worker::{self, Prepared},
};

/// Memory of a worker in bytes, without an argument.
/// 1 GiB. The server always passes one.
const DATA_BYTES: u64 = 1 << 30;

/// The names of the template's process and of its children.
const NAME: &CStr = c"inlay-sql";

/// Prepares the process, forks a worker for each request on the standard input, which is a socket, and returns when the server has closed
/// it. Optional arguments behind the command: bytes of memory that each worker begins with, the most that it can be granted, and
/// whether code is moved to huge pages (`true`).
pub fn run() -> ExitCode {
    keep_freed_memory();
    // inlay sql-worker BASE_BYTES MOST_BYTES true, as in `inlay sql-worker 536870912 4294967296 true`.
    let argument = |place| std::env::args().nth(place);
    let bytes = |place| argument(place).and_then(|argument| argument.parse().ok());
    let base_bytes = bytes(2).unwrap_or(DATA_BYTES);
    let most_bytes = bytes(3).unwrap_or(base_bytes);
    if argument(4).is_some_and(|argument| argument == "true") {
        // Workers are slower without.
        let _ = code_pages::move_to_huge_pages();
    }
    let server = io::stdin();
    // Whoever lists processes sees which these are; the name of the program may be that of a link.
    let _ = rustix::thread::set_name(NAME);
    if attach().is_err() {
        return ExitCode::FAILURE;
    }
    let prepared = worker::prepare(base_bytes, most_bytes);
    let why = prepared.as_ref().err().map(ToString::to_string);
    let ended = match (children(server.as_fd(), why.as_deref()), prepared) {
        (Ok(Role::Worker(own)), Ok(prepared)) => worker(own, prepared),
        (ended, _) => ended.map(drop),
    };
    // The other end sees a closed pipe without an answer.
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Tells the C library to keep freed memory: a statement allocates again at once, and the process ends soon. Pages that are returned to
/// the kernel are cleared and mapped again each time, some 3 % of a statement's time.
fn keep_freed_memory() {
    /// The most that the library takes from its heaps; larger blocks are mapped each by itself.
    const MAPPED_FROM_BYTES: libc::c_int = 32 << 20;
    const KEPT_BYTES: libc::c_int = 1 << 30;
    /// By so much more than it needs a heap grows.
    const GROWN_BYTES: libc::c_int = 1 << 20;
    let settings = [
        (libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES),
        (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
        (libc::M_TOP_PAD, GROWN_BYTES),
    ];
    for (name, value) in settings {
        // SAFETY: two numbers are passed, and no memory of ours is touched; a setting that the library does not know has no
        // effect.
        #[expect(unsafe_code, reason = "the C library has no other way to say it")]
        unsafe {
            libc::mallopt(name, value);
        }
    }
}

/// Asks the kernel to kill this process when the server's thread that started it ends, and restores the default for SIGCHLD, which the
/// server's parent may have set to ignore: exit statuses of children would be lost.
fn attach() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // SAFETY: no handler is set, but what every process begins with.
    #[expect(unsafe_code, reason = "no safe interface sets what is done about a signal")]
    let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    if before == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// What this process is after the loop.
enum Role {
    /// The template, whose server is gone.
    Over,
    /// A child, with the descriptors of its worker.
    Worker(ChildPipes),
}

/// The descriptors of a child.
struct ChildPipes {
    /// Statement in, answer out, shared memory; `control` stays with the template.
    pipes: WorkerPipes,
    /// Closed when it exits, by which the template learns of it.
    _end: io::PipeWriter,
}

/// A child that runs.
struct Child {
    /// Belongs to the child until it is reaped.
    pid: Pid,
    /// Closed by the server to cancel it, for writing alone where it waits for the end.
    control: UnixStream,
    /// Whether it was cancelled.
    is_killed: bool,
    /// Readable, that is closed, once the child has exited: its only writer is in the child.
    end: io::PipeReader,
}

/// Forks a child for each set of pipes that the server sends, and reaps those that end. If this machine cannot have workers, the first request
/// is answered with the reason.
fn children(server: BorrowedFd<'_>, unfit: Option<&str>) -> io::Result<Role> {
    let mut children: Vec<Child> = Vec::new();
    loop {
        let (is_asked, events) = wait(server, &children)?;
        for (child, events) in children.iter_mut().zip(&events) {
            if events.is_cancelled && !child.is_killed {
                child.is_killed = true;
                // The pid is still that of the child, even if it has ended: only `reap` frees it.
                let _ = kill_process(child.pid, Signal::KILL);
            }
        }
        let mut ended = events.iter().map(|events| events.has_ended);
        for child in children.extract_if(.., |_| ended.next().unwrap_or(false)) {
            reap(child);
        }
        if !is_asked {
            continue;
        }
        let pipes = match WorkerPipes::receive(server) {
            Ok(Some(pipes)) => pipes,
            Ok(None) => return Ok(Role::Over),
            // The requester sees its pipes closed.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => continue,
            Err(error) => return Err(error),
        };
        // The template ends; the server starts another one, which may be able to.
        if let Some(why) = unfit {
            let _ = worker::say_unfit(&mut io::PipeWriter::from(pipes.answer), why);
            return Ok(Role::Over);
        }
        let template = getpid();
        let forked = io::pipe().and_then(|(end, own)| Ok((fork_process()?, end, own)));
        match forked {
            Ok((Some(pid), end, _)) => {
                children.push(Child { pid, control: pipes.control, is_killed: false, end })
            }
            Ok((None, _, own)) => {
                end_with(template)?;
                return Ok(Role::Worker(ChildPipes { pipes, _end: own }));
            }
            Err(error) => {
                let why = error.to_string();
                let _ = worker::say_unfit(&mut io::PipeWriter::from(pipes.answer), &why);
            }
        }
    }
}

impl Child {
    /// Where the server may still say that it is to end.
    fn listened_to(&self) -> Option<&UnixStream> {
        (!self.is_killed).then_some(&self.control)
    }
}

/// What happened to a child.
struct ChildEvents {
    /// The server has closed `control`.
    is_cancelled: bool,
    /// The child has exited, or been killed.
    has_ended: bool,
}

/// Waits until the server sends something or closes, or a child ends or is cancelled.
///
/// The first part says whether the server has sent pipes or closed its end, the second what happened to each child, in the order of `children`.
fn wait(server: BorrowedFd<'_>, children: &[Child]) -> io::Result<(bool, Vec<ChildEvents>)> {
    let on = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
    let mut fds = vec![on(server)];
    fds.extend(children.iter().map(|child| on(child.end.as_fd())));
    fds.extend(children.iter().filter_map(|child| Some(on(child.listened_to()?.as_fd()))));
    retry_on_intr(|| poll(&mut fds, None))?;
    // In the order of `fds`: the server, an end for each child, a control for those that still have one.
    let mut events = fds.iter().map(|fd| !fd.revents().is_empty());
    let is_asked = events.next().unwrap_or(false);
    let ended: Vec<bool> = events.by_ref().take(children.len()).collect();
    let of_child = |(child, has_ended): (&Child, bool)| ChildEvents {
        has_ended,
        is_cancelled: child.listened_to().is_some() && events.next().unwrap_or(false),
    };
    Ok((is_asked, children.iter().zip(ended).map(of_child).collect()))
}

/// Waits for a child that has ended, and sends its exit status to the server, if that still listens.
fn reap(child: Child) {
    // The pipe is closed, but the process may still run: kill it, so that waiting for it cannot block. The exit status of a
    // process that has ended already stays as it was.
    let _ = kill_process(child.pid, Signal::KILL);
    let ended = retry_on_intr(|| waitpid(Some(child.pid), WaitOptions::empty()));
    if let Ok(Some((_, status))) = ended {
        // The server may have closed its end; then nobody needs the status.
        let _ = (&child.control).write_all(&status.as_raw().to_le_bytes());
    }
}

/// Forks. Returns the child's pid in the parent and `None` in the child.
fn fork_process() -> io::Result<Option<Pid>> {
    // SAFETY: this process has one thread (that of its first statement has been joined), so no other thread can hold a lock
    // that stays locked in the child.
    #[expect(unsafe_code, reason = "no safe interface forks a process")]
    let number = unsafe { libc::fork() };
    match number {
        ..0 => Err(io::Error::last_os_error()),
        _ => Ok(Pid::from_raw(number)),
    }
}

/// Asks the kernel to kill this process when the template ends: only the template can be asked to cancel it.
fn end_with(template: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(template) {
        return Ok(());
    }
    Err(io::ErrorKind::NotConnected.into())
}

/// Answers a statement as a child of the template.
fn worker(own: ChildPipes, prepared: Prepared) -> io::Result<()> {
    // Standard input was the template's socket to the server, standard output was unused.
    rustix::stdio::dup2_stdin(&own.pipes.statement)?;
    rustix::stdio::dup2_stdout(&own.pipes.answer)?;
    let ChildPipes { pipes: WorkerPipes { memory, .. }, _end } = own;
    match confine::limits_of_copy() {
        Ok(()) => worker::serve(prepared, memory),
        Err(error) => worker::say_unfit(&mut io::stdout(), &format!("its limits: {error}")),
    }
}
