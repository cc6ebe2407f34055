//! Organisations and their people: accounts, members, console sessions, passwords, API keys.
//!
//! A user is an account with an address and a password; a member is that user with a role in one organisation. Both have the same id. An
//! API key belongs to an organisation and an environment, and to no user:
//!
//! ```text
//! Acme (organisation)   ada@acme.example   owner     console session     production and development
//!                       Default admin key  admin     Authorization       production
//! ```

pub mod api_keys;
pub mod link_tokens;
pub mod onboarding;
pub mod orgs;
pub mod sessions;

pub mod accounts;

pub mod passwords;

pub mod members;
