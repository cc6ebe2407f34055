//! Organisations and their people: accounts, members, console sessions, passwords, API keys.

pub mod api_keys;
pub mod link_tokens;
pub mod onboarding;
pub mod orgs;
pub mod sessions;

pub mod accounts;

pub mod passwords;

pub mod members;
