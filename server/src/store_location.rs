//! Opening the store: in the data directory, or in a database and a bucket with the data directory as their cache.
//!
//! ```text
//! --data-dir ./data                                                            a directory that holds everything
//! --metadata-url postgres://… --events-url s3://… --data-dir /var/cache/inlay  nothing that is needed is on this machine
//! … --cache-mb 10240                                                           and of what is needed, 10 GiB
//! ```

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, bail};
use clap::Args;
use inlay_engine::{Engine, Options};

use crate::{base::membership::StoreMembership, config::Config};

// The doc comments of this struct and of its fields are the help that `inlay migrate --help` prints.
/// What `inlay migrate` can be told.
#[derive(Debug, Clone, Args)]
pub struct Migrate {
    /// The data directory, which no server uses; it stays as it is
    #[arg(long, env = "INLAY_DATA_DIR", default_value = "./data")]
    pub data_dir: PathBuf,
    /// PostgreSQL for the log: postgres://inlay@db.acme.com/inlay
    #[arg(long, env = "INLAY_METADATA_URL", hide_env_values = true)]
    pub metadata_url: String,
    /// Bucket for the files: s3://bucket/prefix?region=eu-central-1
    #[arg(long, env = "INLAY_EVENTS_URL", hide_env_values = true)]
    pub events_url: String,
}

/// Opens the store of the settings. Blocks.
///
/// Errors: settings that would lose data; a directory that is in use, damaged or of a newer format; those of database and bucket.
#[cfg_attr(
    not(feature = "cluster"),
    expect(unused_variables, reason = "options of a store elsewhere")
)]
pub fn open_store(
    config: &Config,
    options: Options,
) -> anyhow::Result<(Arc<Engine>, StoreMembership)> {
    let shown = || format!("cannot open the data directory {}", config.data_dir.display());
    let (Some(metadata_url), Some(events_url)) = (&config.metadata_url, &config.events_url) else {
        let engine = Engine::open_directory(&config.data_dir, options).with_context(shown)?;
        return Ok((Arc::new(engine), StoreMembership::default()));
    };
    if config.smtp_url.is_none() {
        bail!(
            "a store in a database and a bucket needs a mail server (INLAY_SMTP_URL): without one mails are files in \
             the data directory, which is a cache here and may be deleted"
        );
    }
    #[cfg(feature = "cluster")]
    {
        let location = inlay_cluster::Location {
            metadata_url: metadata_url.clone(),
            events_url: events_url.clone(),
        };
        let cache = inlay_cluster::Cache {
            directory: &config.data_dir,
            bytes_max: config.cache_mb.map(|mebibytes| mebibytes << 20),
        };
        let node = inlay_cluster::Node::open(&location, cache, &options);
        let node = node.context("cannot open the store")?;
        Ok((node.engine, node.membership.into()))
    }
    #[cfg(not(feature = "cluster"))]
    bail!("this build has no stores in a database and a bucket")
}

/// Moves the store of a data directory to a database and a bucket. Blocks.
///
/// Errors: those of the settings, the store, the database and the bucket. Before the last step the database has no store.
#[cfg(feature = "cluster")]
pub fn migrate(command: &Migrate) -> anyhow::Result<()> {
    use std::io::Write as _;
    let location = inlay_cluster::Location {
        metadata_url: command.metadata_url.clone(),
        events_url: command.events_url.clone(),
    };
    let say = |line: String| writeln!(std::io::stdout().lock(), "{line}");
    let moved = inlay_cluster::migrate(&command.data_dir, &location, &mut |done, total| {
        if done.is_multiple_of(100) {
            let _ = say(format!("{done} of {total} files"));
        }
    });
    let moved = moved
        .with_context(|| format!("cannot move the store of {}", command.data_dir.display()))?;
    say(format!("moved {} files, everything up to record {}", moved.files, moved.lsn))?;
    say(format!(
        "{} is as it was: do not start a server on it any more, since its events would be missing in the new place",
        command.data_dir.display()
    ))?;
    Ok(())
}

/// Says that this build cannot move a store.
#[cfg(not(feature = "cluster"))]
pub fn migrate(_: &Migrate) -> anyhow::Result<()> {
    bail!("this build has no stores in a database and a bucket")
}
