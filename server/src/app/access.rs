//! Who may do what: one table, read by every request and walked by the tests.
//!
//! Columns: anonymous, viewer, editor, admin, owner, admin key, ingest key, embed token.
//! `y` allowed, `3` forbidden, `1` not authenticated for this.

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Principal {
    /// Nobody we know.
    Anonymous,
    /// Console session of a viewer.
    Viewer,
    /// Console session of an editor.
    Editor,
    /// Console session of an admin.
    Admin,
    /// Console session of the owner.
    Owner,
    /// API key of scope `admin`.
    AdminKey,
    /// API key of scope `ingest`.
    IngestKey,
    /// Embed token.
    Embed,
}

/// Whether the operation may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Allowed,
    /// This principal never may.
    Forbidden,
    /// These credentials do not count here.
    Unauthenticated,
}

macro_rules! operations {
    ($($name:ident $row:literal;)*) => {
        /// An operation of the API.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Operation {
            $(#[doc = stringify!($name)] $name,)*
        }

        impl Operation {
            /// All operations.
            #[cfg(test)]
            pub const ALL: &[Operation] = &[$(Operation::$name,)*];

            fn row(self) -> &'static [u8; 8] {
                match self { $(Operation::$name => $row,)* }
            }
        }
    };
}

operations! {
    Register b"yyyyyyyy";
    Login b"yyyyyyyy";
    Logout b"1yyyy331";
    Me b"1yyyyyy1";
    IngestEvents b"13333yy1";
    ListDashboards b"1yyyyy31";
    GetDashboard b"1yyyyy31";
    CreateDashboard b"13yyyy31";
    UpdateDashboard b"13yyyy31";
    DeleteDashboard b"13yyyy31";
    PublishDashboard b"13yyyy31";
    UnpublishDashboard b"13yyyy31";
    RestoreDashboard b"133yyy31";
    AddDashboardWidget b"133yyy31";
    UpdateDashboardWidget b"13yyyy31";
    DeleteDashboardWidget b"13yyyy31";
    PreviewWidget b"13yyyy31";
    CreateEmbedSession b"133yyy31";
    ListEmbedSessions b"133yyy31";
    RevokeEmbedSession b"133yyy31";
    Discover b"1yyyyy31";
    AutoCreateDashboard b"13yyyy31";
    Query b"1yyyyy31";
    ListApiKeys b"133yyy31";
    CreateApiKey b"133yyy31";
    RevokeApiKey b"133yyy31";
    EraseTenantEvents b"133yyy31";
    EraseUserEvents b"133yyy31";
    ListErasures b"133yyy31";
    GetErasure b"133yyy31";
    ListSavedQueries b"1yyyyy31";
    CreateSavedQuery b"133yyy31";
    UpdateSavedQuery b"133yyy31";
    DeleteSavedQuery b"133yyy31";
    GetOrg b"1yyyyy31";
    UpdateOrg b"133yyy31";
    DeleteOrg b"1333y331";
    ListAudit b"133yyy31";
    DemoEmbedUrl b"yyyyyyyy";
    EmbedDashboard b"1111111y";
    EmbedData b"1111111y";
}

/// Decides.
pub fn decide(operation: Operation, principal: Principal) -> Decision {
    match operation.row()[principal as usize] {
        b'y' => Decision::Allowed,
        b'3' => Decision::Forbidden,
        _ => Decision::Unauthenticated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_as_it_is_written() {
        assert_eq!(decide(Operation::Query, Principal::Viewer), Decision::Allowed);
        assert_eq!(decide(Operation::Query, Principal::IngestKey), Decision::Forbidden);
        assert_eq!(decide(Operation::Query, Principal::Embed), Decision::Unauthenticated);
        assert_eq!(decide(Operation::EmbedData, Principal::Owner), Decision::Unauthenticated);
        assert!(
            Operation::ALL
                .iter()
                .all(|operation| operation.row().iter().all(|cell| b"y31".contains(cell)))
        );
    }
}
