//! A bare server of the library that ours is built on: the least that an answer over HTTP can cost.
//!
//!     cargo run --release -p inlay-bench --example bare -- BYTES
//!
//! Every request is answered with so many bytes of JSON. Its first line says where it listens. `bench/requests.py`
//! compares with it.

#![expect(clippy::print_stdout, reason = "its caller reads where it listens")]

use axum::{Router, http::header, routing::get};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bytes: usize = std::env::args().nth(1).ok_or("how many bytes?")?.parse()?;
    let body: &'static str = format!("\"{}\"", "x".repeat(bytes.saturating_sub(2))).leak();
    let answer = move || async move { ([(header::CONTENT_TYPE, "application/json")], body) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("ready at http://{}", listener.local_addr()?);
    axum::serve(listener, Router::new().fallback(get(answer))).await?;
    Ok(())
}
