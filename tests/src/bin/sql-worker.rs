//! A worker for SQL, for servers that run within a test: they are no program that could be one.

fn main() -> std::process::ExitCode {
    inlay_sql::run()
}
