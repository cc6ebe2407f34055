//! The embed page in a real browser: it draws live data and breaks no policy.
//!
//! Needs Chromium on the path. Without it the test says so and passes; where `CI` is set, a missing
//! browser is a failure.

use std::process::Command;

use inlay_tests::TestServer;
use serde_json::json;

/// Times that a page which was not finished is opened again.
const OPENED_AGAIN: usize = 10;

fn chromium() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    });
    assert!(found.is_some() || std::env::var_os("CI").is_none(), "CI has a browser");
    found
}

/// The document after its scripts ran, and what the browser logged.
fn render(browser: &str, url: &str) -> (String, String) {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
            "--window-size=1240,1200",
            "--virtual-time-budget=30000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(url)
        .output()
        .unwrap();
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// Lines that a page, not the browser itself, caused.
fn complaints(log: &str) -> Vec<&str> {
    let of_page =
        |line: &&str| line.contains("CONSOLE") || line.contains("Content Security Policy");
    log.lines().filter(of_page).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
async fn the_page_draws_live_data_and_breaks_no_policy() {
    let Some(browser) = chromium() else {
        eprintln!("skipped: no Chromium on the path");
        return;
    };
    let server = TestServer::start().await;
    let admin = server.register("acme").await.admin;
    let events: Vec<_> = (0..437)
        .map(|n| json!({"tenant_id": "t", "event_name": "api_call", "string_props": {"model": (if n % 3 == 0 { "<i>odd</i>" } else { "plain" })}}))
        .collect();
    admin.post("/v1/events", &json!({"events": events})).await.expect(200);
    server.clock.advance(1_000);
    assert_eq!(admin.count("t", "api_call").await, 437);
    let count = json!({"event_name": "api_call", "metric": "count"});
    let grouped = json!({"event_name": "api_call", "metric": "count", "group_by": "model"});
    let place = |y: u32, h: u32| json!({"x": 0, "y": y, "w": 12, "h": h});
    let widgets = json!([
        {"id": "n", "kind": "number", "title": "Calls", "query": count, "viz": {"sparkline": true}, "layout": place(0, 3)},
        {"id": "l", "kind": "line", "title": "Over time", "query": count, "viz": {}, "layout": place(3, 5)},
        {"id": "b", "kind": "bar", "title": "By model", "query": grouped, "viz": {}, "layout": place(8, 5)},
        {"id": "t", "kind": "table", "title": "Models", "query": grouped, "viz": {}, "layout": place(13, 5)},
    ]);
    let made = admin
        .post("/v1/dashboards", &json!({"name": "Usage", "widgets": widgets}))
        .await
        .expect(201);
    let id = made["id"].as_str().unwrap();
    let mint = json!({"tenant_id": "t", "dashboard_id": id});
    let minted = admin.post("/v1/embed-sessions", &mint).await.expect(201);
    let url = minted["embed_url"].as_str().unwrap().to_owned();

    let open = async |url: String| {
        tokio::task::spawn_blocking(move || render(browser, &url)).await.unwrap()
    };
    let (unpublished, log) = open(url.clone()).await;
    assert!(
        unpublished.contains("published") && complaints(&log).is_empty(),
        "{:?}",
        complaints(&log)
    );
    admin.post_empty(&format!("/v1/dashboards/{id}/publish")).await.expect(204);
    // Widgets arrive one after the other, and a busy machine may end the browser's time before the
    // last: the page is opened again until the number and the table, first and last, are there.
    let is_whole = |page: &str| [">437<", "291", "146"].iter().all(|text| page.contains(text));
    let (mut page, mut log) = open(url.clone()).await;
    for _ in 0..OPENED_AGAIN {
        if is_whole(&page) {
            break;
        }
        (page, log) = open(url.clone()).await;
    }
    assert!(complaints(&log).is_empty(), "{:?}", complaints(&log));
    assert!(page.contains(">437<"), "the number is drawn: {page}");
    assert!(page.contains("291") && page.contains("146"), "the table is drawn");
    assert!(
        page.contains("&lt;i&gt;odd&lt;/i&gt;") && !page.contains("<i>odd</i>"),
        "values are text"
    );
    assert!(page.contains("<path") || page.contains("<polyline"), "lines are drawn");

    server.clock.advance(2 * 3_600_000);
    let (expired, _) = open(url).await;
    assert!(expired.contains("session has ended"), "{expired}");
}
