//! The `inlay` binary.

use std::{
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{CommandFactory as _, Parser, Subcommand};
use inlay_server::{Backup, Config, Health, Import, Migrate, Restore, Verify};
use tracing_subscriber::EnvFilter;

/// Buffers of columns that statements take are found again when they were freed.
#[cfg(feature = "sql")]
#[global_allocator]
static MEMORY: inlay_sql::AlignedMemory = inlay_sql::AlignedMemory;

#[derive(Parser)]
#[command(name = "inlay", version, about = "Embedded analytics in one binary")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server; the first start makes the data directory
    Serve(Box<Config>),
    /// Send events from a file to the running server: NDJSON, CSV or Parquet
    Import(Box<Import>),
    /// Write a backup of the running server, while it works
    Backup(Backup),
    /// Bring a backup back into an empty data directory
    Restore(Restore),
    /// Check every checksum and every reference of a data directory or a backup
    Verify(Verify),
    /// Move the store of a data directory to PostgreSQL and a bucket
    Migrate(Migrate),
    /// Ask the running server whether it is ready; the exit code is 0 when it is
    Health(Health),
    /// Print the completions of a shell
    Completions { shell: clap_complete::Shell },
    /// Write the pages of the manual into a directory
    #[command(hide = true)]
    Manual { directory: PathBuf },
}

fn main() -> anyhow::Result<ExitCode> {
    // What workers are copied from reads no settings and shares nothing with its server but a socket.
    #[cfg(feature = "sql")]
    if std::env::args_os().nth(1).is_some_and(|command| command == "sql-worker") {
        return Ok(inlay_sql::run());
    }
    let names = std::env::vars().map(|(name, _)| name);
    if let Some(name) = inlay_server::unknown_variable(&Cli::command(), names) {
        anyhow::bail!("{name} is set but means nothing; `inlay serve --help` lists the settings");
    }
    // What is stored is nobody else's: keys that sign tokens are among it.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    inlay_engine::set_up_allocator();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = match Cli::parse().command {
        Command::Serve(config) => {
            start_log(&config)?;
            runtime.block_on(run(*config))
        }
        Command::Import(command) => runtime.block_on(inlay_server::import(&command)),
        Command::Backup(command) => runtime.block_on(inlay_server::backup(&command)),
        Command::Restore(command) => inlay_server::restore(&command),
        Command::Verify(command) => runtime.block_on(inlay_server::verify(&command)),
        Command::Migrate(command) => inlay_server::migrate(&command),
        Command::Health(command) => runtime.block_on(inlay_server::health(&command)),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "inlay", &mut std::io::stdout());
            Ok(())
        }
        Command::Manual { directory } => {
            clap_mangen::generate_to(Cli::command(), directory).map_err(Into::into)
        }
    };
    // The store is closed: a drawing that is not done, which cannot be interrupted, must not keep us.
    runtime.shutdown_timeout(Duration::from_secs(3));
    ended.map(|()| ExitCode::SUCCESS)
}

fn start_log(config: &Config) -> anyhow::Result<()> {
    // That a letter of a report comes from another font is no event worth a line.
    let filter = EnvFilter::try_new(&config.log)?.add_directive("usvg=error".parse()?);
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        // It would speak of a failed write on the same stream, and panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    if config.log_format == "json" {
        log.json().init()
    } else {
        log.init()
    }
    Ok(())
}

async fn run(config: Config) -> anyhow::Result<()> {
    let running = inlay_server::serve(config).await?;
    let mut lines =
        format!("Inlay is ready at {} (gRPC on {})\n", running.base_url, running.grpc_addr);
    lines += &format!("Console: {}/console/\n", running.base_url);
    lines.extend(running.demo_url().map(|url| format!("Demo dashboard: {url}\n")));
    // Whoever started it may read one line and close the pipe: that is no reason to end.
    let _ = std::io::stdout().write_all(lines.as_bytes());
    tokio::select! {
        stopped = wait_for_stop() => stopped?,
        () = running.taken_over() => {
            // Nothing of it is in memory alone, and what is on its disk are copies.
            anyhow::bail!("another process has taken over the store, or its log has changed");
        }
    }
    tracing::info!("stopping");
    running.stop().await
}

/// Ctrl-C, or what a supervisor sends.
async fn wait_for_stop() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    Ok(())
}
