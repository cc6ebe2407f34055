//! Who may answer where several processes have the same store.
//!
//! ```text
//! a store in its own directory         always, and nobody else can
//! a store elsewhere                    while its lease is valid; after that another process may have taken over, and knows more
//! ```

/// The lease of a store; clones share it. The last one gives it back.
#[derive(Clone, Default)]
pub struct StoreLease {
    #[cfg(feature = "cluster")]
    lease: Option<inlay_cluster::Lease>,
}

impl std::fmt::Debug for StoreLease {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "StoreLease {{ is_valid: {} }}", self.is_valid())
    }
}

#[cfg(feature = "cluster")]
impl From<inlay_cluster::Lease> for StoreLease {
    fn from(lease: inlay_cluster::Lease) -> Self {
        Self { lease: Some(lease) }
    }
}

impl StoreLease {
    /// Whether what this process reads is the newest: no other one can lead.
    pub fn is_valid(&self) -> bool {
        #[cfg(feature = "cluster")]
        return self.lease.as_ref().is_none_or(inlay_cluster::Lease::is_valid);
        #[cfg(not(feature = "cluster"))]
        true
    }

    /// Whether another process has taken over: this one has ended.
    pub fn is_lost(&self) -> bool {
        #[cfg(feature = "cluster")]
        return self.lease.as_ref().is_some_and(inlay_cluster::Lease::is_lost);
        #[cfg(not(feature = "cluster"))]
        false
    }

    /// Lets the lease end by itself where the store cannot go on, so that another process may try. A store in its own directory stays as it is.
    pub fn give_up(&self) {
        #[cfg(feature = "cluster")]
        if let Some(lease) = &self.lease {
            lease.give_up();
        }
    }

    /// Gives the lease back once the store is closed. Blocks.
    pub fn release(&self) {
        #[cfg(feature = "cluster")]
        if let Some(lease) = &self.lease {
            lease.release();
        }
    }
}
