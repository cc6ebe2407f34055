//! The process that workers are copies of.
//!
//! Loading the program and having the library do its first statement takes eleven milliseconds of a processor; to copy
//! a process that has done both takes one. The template has never seen anybody's data, and answers nothing itself. It
//! has one thread only, since a copy would have none of the others but all of their locks.

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

use inlay_sql_protocol::Ends;

use crate::{
    code_pages, confine,
    worker::{self, Prepared},
};

/// Bytes that a worker may write to when nobody says.
const DATA_BYTES: u64 = 1 << 30;

/// What the template and its copies are called.
const NAME: &CStr = c"inlay-sql";

/// Gets ready, makes workers of what comes over the standard input, which is a socket, and ends when nobody can ask any
/// more. Arguments of the program behind the command, if there are any: the bytes of memory that each process begins with, those that it may write to when it has
/// got all that it can, and whether code is in huge pages (`true`).
pub fn run() -> ExitCode {
    keep_freed_memory();
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
    let ended = match (copies(server.as_fd(), why.as_deref()), prepared) {
        (Ok(Turn::Worker(own)), Ok(prepared)) => worker(own, prepared),
        (ended, _) => ended.map(drop),
    };
    // Whoever is at the other end, if anybody is, knows that nothing came.
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Has the C library keep what is freed: a statement takes it again at once, and the process ends soon. Pages that go back to
/// the kernel and come again are cleared and mapped each time, some 3 % of a statement's time.
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

/// Has the kernel end this process with the thread of the server that started it, however busy it is, and tell it how its
/// copies end, whatever the server was started with.
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

/// What this process is now.
enum Turn {
    /// The template, which nobody can ask any more.
    Over,
    /// A copy of it.
    Worker(Own),
}

/// What a copy has of its own.
struct Own {
    ends: Ends,
    /// Closed when it ends: that is how the template knows.
    _end: io::PipeWriter,
}

/// A copy that lives.
struct Copy {
    pid: Pid,
    /// While somebody wants it to.
    life: Option<UnixStream>,
    end: io::PipeReader,
}

/// Makes a copy for each ends that come, and looks after them. If workers cannot be, the first who asks is told why.
fn copies(server: BorrowedFd<'_>, unfit: Option<&str>) -> io::Result<Turn> {
    let mut copies: Vec<Copy> = Vec::new();
    loop {
        let (is_asked, happened) = wait(server, &copies)?;
        for (copy, happened) in copies.iter_mut().zip(&happened) {
            if happened.is_unwanted && copy.life.take().is_some() {
                // One that has ended meanwhile is still known: nobody else waits for it.
                let _ = kill_process(copy.pid, Signal::KILL);
            }
        }
        let mut ended = happened.iter().map(|happened| happened.has_ended);
        for copy in copies.extract_if(.., |_| ended.next().unwrap_or(false)) {
            bury(copy);
        }
        if !is_asked {
            continue;
        }
        let ends = match Ends::receive(server) {
            Ok(Some(ends)) => ends,
            Ok(None) => return Ok(Turn::Over),
            // Who asked finds what was closed.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => continue,
            Err(error) => return Err(error),
        };
        // The next one is made by another template, which may be fit.
        if let Some(why) = unfit {
            let _ = worker::say_unfit(&mut io::PipeWriter::from(ends.answer), why);
            return Ok(Turn::Over);
        }
        let template = getpid();
        let copied = io::pipe().and_then(|(end, own)| Ok((copy_process()?, end, own)));
        match copied {
            Ok((Some(pid), end, _)) => copies.push(Copy { pid, life: Some(ends.life), end }),
            Ok((None, _, own)) => {
                end_with(template)?;
                return Ok(Turn::Worker(Own { ends, _end: own }));
            }
            Err(error) => {
                let why = error.to_string();
                let _ = worker::say_unfit(&mut io::PipeWriter::from(ends.answer), &why);
            }
        }
    }
}

/// What happened to a copy.
struct Happened {
    is_unwanted: bool,
    has_ended: bool,
}

/// Waits until something happens: to the server, and to each copy.
fn wait(server: BorrowedFd<'_>, copies: &[Copy]) -> io::Result<(bool, Vec<Happened>)> {
    let on = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
    let mut fds = vec![on(server)];
    fds.extend(copies.iter().map(|copy| on(copy.end.as_fd())));
    fds.extend(copies.iter().filter_map(|copy| Some(on(copy.life.as_ref()?.as_fd()))));
    retry_on_intr(|| poll(&mut fds, None))?;
    let mut happened = fds.iter().map(|fd| !fd.revents().is_empty());
    let is_asked = happened.next().unwrap_or(false);
    let ended: Vec<bool> = happened.by_ref().take(copies.len()).collect();
    let of_copy = |(copy, has_ended): (&Copy, bool)| Happened {
        has_ended,
        is_unwanted: copy.life.is_some() && happened.next().unwrap_or(false),
    };
    Ok((is_asked, copies.iter().zip(ended).map(of_copy).collect()))
}

/// Takes leave of a copy that has ended, and says how it did to whoever wants to know.
fn bury(copy: Copy) {
    // One that only says so is not waited for. What ends already ends as it does.
    let _ = kill_process(copy.pid, Signal::KILL);
    let ended = retry_on_intr(|| waitpid(Some(copy.pid), WaitOptions::empty()));
    if let (Ok(Some((_, status))), Some(mut life)) = (ended, copy.life) {
        // Who has gone meanwhile does not.
        let _ = life.write_all(&status.as_raw().to_le_bytes());
    }
}

/// Copies this process: the copy gets none, the template its number.
fn copy_process() -> io::Result<Option<Pid>> {
    // SAFETY: this process has one thread (the one of its first statement has been waited for), so no lock is held that
    // nobody would give back, and the copy is whole.
    #[expect(unsafe_code, reason = "no safe interface copies a process")]
    let number = unsafe { libc::fork() };
    match number {
        ..0 => Err(io::Error::last_os_error()),
        _ => Ok(Pid::from_raw(number)),
    }
}

/// Has the kernel end this process when the template ends, which alone could be asked to do it.
fn end_with(template: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(template) {
        return Ok(());
    }
    Err(io::ErrorKind::NotConnected.into())
}

/// Answers a statement as a copy of the template.
fn worker(own: Own, prepared: Prepared) -> io::Result<()> {
    // In place of the socket to the server, and of nothing.
    rustix::stdio::dup2_stdin(&own.ends.statement)?;
    rustix::stdio::dup2_stdout(&own.ends.answer)?;
    let Own { ends: Ends { memory, .. }, _end } = own;
    match confine::limits_of_copy() {
        Ok(()) => worker::serve(prepared, memory),
        Err(error) => worker::say_unfit(&mut io::stdout(), &format!("its limits: {error}")),
    }
}
