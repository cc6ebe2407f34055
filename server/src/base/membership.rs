//! Whether this process may answer and may change something, where several have the same store.
//!
//! ```text
//! a store in its own directory         leads always; there is nobody else
//! a store elsewhere, this one leads    changes something; answers while its lease is valid: after that another process may have taken over, and knows more
//! a store elsewhere, another leads     answers after it has asked how far the log goes; requests that change something are the leader's
//! ```

/// How this process stands to others with the same store. Clones share it; the last one gives the lease back.
#[derive(Clone, Default)]
pub struct StoreMembership {
    #[cfg(feature = "cluster")]
    membership: Option<inlay_cluster::Membership>,
}

#[cfg(feature = "cluster")]
pub use inlay_cluster::Standing as StoreStanding;

/// How a process stands to a log that several have; there is none in a build without stores elsewhere.
#[cfg(not(feature = "cluster"))]
#[derive(Debug)]
pub struct StoreStanding {
    pub leads: bool,
    pub epoch: i64,
    pub lsn_last: u64,
    pub applied: u64,
    pub behind: Option<std::time::Duration>,
    pub has_leader: bool,
    pub nodes: usize,
    pub log_reads: u64,
    pub files_lost: usize,
    pub files_prefetched: u64,
    pub cache: Option<inlay_engine::remote::CacheMetrics>,
}

impl std::fmt::Debug for StoreMembership {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "StoreMembership {{ leads: {} }}", self.leads())
    }
}

#[cfg(feature = "cluster")]
impl From<inlay_cluster::Membership> for StoreMembership {
    fn from(membership: inlay_cluster::Membership) -> Self {
        Self { membership: Some(membership) }
    }
}

#[cfg(feature = "cluster")]
impl StoreMembership {
    /// Whether no other process can have this store.
    pub fn is_alone(&self) -> bool {
        self.membership.is_none()
    }

    /// Whether this process takes changes.
    pub fn leads(&self) -> bool {
        self.membership.as_ref().is_none_or(inlay_cluster::Membership::leads)
    }

    /// Whether this process leads and no other one can: what it reads is the newest.
    pub fn is_valid(&self) -> bool {
        self.membership.as_ref().is_none_or(inlay_cluster::Membership::is_valid)
    }

    /// Whether this process cannot go on: another one has its lease, or the log is another one.
    pub fn is_lost(&self) -> bool {
        self.membership.as_ref().is_some_and(inlay_cluster::Membership::is_lost)
    }

    /// Returns when this process takes changes.
    pub async fn until_leading(&self) {
        if let Some(membership) = &self.membership {
            membership.until_leading().await;
        }
    }

    /// Waits until this process shows everything that was acknowledged before, by whichever process.
    ///
    /// Errors: why it cannot, for the log of the server.
    pub async fn caught_up(&self) -> Result<(), String> {
        match &self.membership {
            None => Ok(()),
            Some(leader) if leader.leads() => {
                leader.is_valid().then_some(()).ok_or_else(|| "the lease has ended".to_owned())
            }
            Some(follower) => follower.caught_up().await,
        }
    }

    /// Where the process that leads is reached, if it is another one.
    pub fn leader_url(&self) -> Option<String> {
        self.membership.as_ref()?.leader_url()
    }

    /// Says where other processes reach this one.
    pub fn announce(&self, url: &str) {
        if let Some(membership) = &self.membership {
            membership.announce(url);
        }
    }

    /// By which processes with this store know each other; empty where there is one.
    pub fn secret(&self) -> &[u8] {
        self.membership.as_ref().map_or(&[], inlay_cluster::Membership::secret)
    }

    /// How this process stands to the log; `None` for a store in its own directory.
    pub fn standing(&self) -> Option<StoreStanding> {
        self.membership.as_ref().map(inlay_cluster::Membership::standing)
    }

    /// Processes with this store, with this one.
    pub fn nodes(&self) -> usize {
        self.membership.as_ref().map_or(1, inlay_cluster::Membership::nodes)
    }

    /// Lets the lease end by itself where the store cannot go on, so that another process may try. A store in its own directory stays as it is.
    pub fn give_up(&self) {
        if let Some(membership) = &self.membership {
            membership.give_up();
        }
    }

    /// Gives the lease back once the store is closed. Blocks.
    pub fn release(&self) {
        if let Some(membership) = &self.membership {
            membership.release();
        }
    }
}

/// A build without stores elsewhere: the one process leads always.
#[cfg(not(feature = "cluster"))]
#[expect(clippy::unused_self, clippy::unused_async, reason = "as of stores elsewhere")]
impl StoreMembership {
    /// Whether no other process can have this store.
    pub fn is_alone(&self) -> bool {
        true
    }

    /// Whether this process takes changes.
    pub fn leads(&self) -> bool {
        true
    }

    /// Whether this process leads and no other one can.
    pub fn is_valid(&self) -> bool {
        true
    }

    /// Whether this process cannot go on.
    pub fn is_lost(&self) -> bool {
        false
    }

    /// Returns at once.
    pub async fn until_leading(&self) {}

    /// Everything is shown.
    ///
    /// Errors: none.
    pub async fn caught_up(&self) -> Result<(), String> {
        Ok(())
    }

    /// There is no other process.
    pub fn leader_url(&self) -> Option<String> {
        None
    }

    /// Nobody is to be informed.
    pub fn announce(&self, _: &str) {}

    /// There is no other process.
    pub fn secret(&self) -> &[u8] {
        &[]
    }

    /// There is no other process.
    pub fn nodes(&self) -> usize {
        1
    }

    /// There is no other process.
    pub fn standing(&self) -> Option<StoreStanding> {
        None
    }

    /// Nothing is given up.
    pub fn give_up(&self) {}

    /// Nothing is given back.
    pub fn release(&self) {}
}
