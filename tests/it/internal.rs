//! The internal gRPC service, spoken by its generated client.

use std::{collections::HashMap, os::unix::fs::FileExt as _};

use inlay_proto::v1::{self, inlay_client::InlayClient};
use inlay_server::engine::{OsVfs, Vfs as _};
use inlay_tests::{NOW_MS, TestServer};
use tonic::{
    Code, Request,
    transport::{Channel, Endpoint},
};

pub async fn connect(server: &TestServer) -> InlayClient<Channel> {
    let channel = Endpoint::from_shared(server.grpc()).unwrap().connect().await.unwrap();
    InlayClient::new(channel)
}

fn events(first: usize, count: usize) -> v1::IngestRequest {
    let event = |n: usize| v1::Event {
        tenant_id: "acme".into(),
        event_name: "call".into(),
        timestamp_ms: NOW_MS - (n as i64 % 3) * 86_400_000,
        event_id: format!("id-{n}"),
        user_id: format!("u{}", n % 4),
        string_props: HashMap::from([("model".into(), format!("m{}", n % 2))]),
        numeric_props: HashMap::from([("ms".into(), n as f64)]),
    };
    v1::IngestRequest { namespace: 77, events: (first..first + count).map(event).collect() }
}

fn question(metric: &str) -> v1::QueryRequest {
    v1::QueryRequest {
        namespace: 77,
        tenant_id: Some("acme".into()),
        event_name: "call".into(),
        metric: metric.into(),
        numeric_prop: "ms".into(),
        from_ms: NOW_MS - 10 * 86_400_000,
        to_ms: NOW_MS + 1,
        ..v1::QueryRequest::default()
    }
}

/// The messages of a stream.
async fn all<T>(mut stream: tonic::Streaming<T>) -> Vec<T> {
    let mut out = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        out.push(message);
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_can_fill_ask_and_look_inside() {
    let server = TestServer::start().await;
    let mut client = connect(&server).await;
    let stream = vec![events(0, 100), events(90, 60)];
    let stream = tonic::codegen::tokio_stream::iter(stream);
    let stored = client.ingest(stream).await.unwrap().into_inner();
    assert_eq!((stored.new, stored.duplicates), (150, 10));

    let answer = client.query(question("count")).await.unwrap().into_inner();
    assert_eq!((answer.rows[0].value, answer.rows_scanned), (Some(150.0), 150));
    let grouped = v1::QueryRequest {
        group_by: "model".into(),
        granularity: "day".into(),
        text_filters: vec![v1::TextFilter { name: "model".into(), any_of: vec!["m1".into()] }],
        number_filters: vec![v1::NumberFilter { name: "ms".into(), min: 10.0, max: 19.0 }],
        ..question("sum")
    };
    let answer = client.query(grouped).await.unwrap().into_inner();
    let sum: f64 = answer.rows.iter().filter_map(|row| row.value).sum();
    assert_eq!(sum, f64::from((11..20).step_by(2).sum::<i32>()));

    let explain = async |client: &mut InlayClient<Channel>| {
        client.explain(question("count")).await.unwrap().into_inner().steps
    };
    let steps = explain(&mut client).await;
    assert_eq!((steps.len(), steps[0].source.as_str(), steps[0].rows), (1, "memtable", 150));

    client.flush(v1::FlushRequest {}).await.unwrap();
    let stats = client.stats(v1::StatsRequest {}).await.unwrap().into_inner();
    assert_eq!((stats.segments, stats.segment_rows, stats.memtable_rows), (1, 150, 0));
    let steps = explain(&mut client).await;
    assert_eq!((steps[0].rows, steps[0].level.as_str()), (150, "fresh"));
    assert_eq!(steps[1].skipped, "no such rows");
    client.compact(v1::CompactRequest {}).await.unwrap();

    let listed = client.list_segments(v1::ListSegmentsRequest {}).await.unwrap().into_inner();
    assert_eq!((listed.segments.len(), listed.segments[0].rows), (1, 150));
    let name = listed.segments[0].name.clone();
    let described = client.describe_segment(v1::DescribeSegmentRequest { name: name[..13].into() });
    let described = described.await.unwrap().into_inner();
    assert_eq!(described.segment.unwrap().name, name);
    let model = described.sections.iter().find(|one| one.column == "model").unwrap();
    assert!(model.bytes > 0 && !model.encodings.is_empty());
    let unknown = client.describe_segment(v1::DescribeSegmentRequest { name: "zz".into() }).await;
    assert_eq!(unknown.unwrap_err().code(), Code::InvalidArgument);

    let report = client.verify(v1::VerifyRequest {}).await.unwrap().into_inner();
    assert_eq!((report.problems.len(), report.rows, report.ids), (0, 150, 150));
}

/// What is damaged while the server runs is told by file, and the server goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_verification_names_what_is_damaged() {
    // Files of several processes are in a bucket.
    if inlay_tests::is_spread() {
        return;
    }
    let server = TestServer::start().await;
    let mut client = connect(&server).await;
    client.ingest(tonic::codegen::tokio_stream::once(events(0, 50))).await.unwrap();
    client.flush(v1::FlushRequest {}).await.unwrap();
    let listed = client.list_segments(v1::ListSegmentsRequest {}).await.unwrap().into_inner();
    let disk = OsVfs::existing(server.directory.path());
    let [file] = &*disk.list("seg/l0").unwrap() else { panic!("one segment") };
    assert!(file.contains(&listed.segments[0].name));
    let path = server.directory.path().join("seg/l0").join(file);
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    // The first block lies behind the header.
    let mut byte = [0];
    file.read_exact_at(&mut byte, 64).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 64).unwrap();
    let report = client.verify(v1::VerifyRequest {}).await.unwrap().into_inner();
    let problem = &report.problems[0];
    assert!(problem.place.contains(&listed.segments[0].name), "{problem:?}");
    assert_eq!(report.problems.len(), 1);
    client.ingest(tonic::codegen::tokio_stream::once(events(50, 5))).await.unwrap();
}

/// Tools have a bound of connections: more of them wait, and are served when others end.
#[tokio::test(flavor = "multi_thread")]
async fn more_tools_than_there_are_places_for_wait() {
    let server = TestServer::start().await;
    let mut idle = Vec::new();
    for _ in 0..inlay_server::GRPC_CONNECTIONS_MAX {
        let mut client = connect(&server).await;
        client.stats(v1::StatsRequest {}).await.unwrap();
        idle.push(client);
    }
    let address = server.grpc();
    let one_more = tokio::spawn(async move {
        let channel = Endpoint::from_shared(address).unwrap().connect().await?;
        let mut client = InlayClient::new(channel);
        client.stats(v1::StatsRequest {}).await.unwrap();
        Ok::<_, tonic::transport::Error>(())
    });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(!one_more.is_finished(), "it waits");
    idle.pop();
    let waited = tokio::time::timeout(std::time::Duration::from_secs(20), one_more);
    waited.await.unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_can_be_followed() {
    let server = TestServer::start().await;
    let mut client = connect(&server).await;
    let once = tonic::codegen::tokio_stream::once(events(0, 20));
    client.ingest(once).await.unwrap();
    let ask = v1::TailWalRequest { lsn_from: 1, follow: false };
    let records = all(client.tail_wal(ask).await.unwrap().into_inner()).await;
    assert_eq!(records.iter().map(|record| record.events).sum::<u64>(), 20);
    let last = records.last().unwrap().lsn;
    let ask = v1::TailWalRequest { lsn_from: last + 1, follow: true };
    let mut following = client.tail_wal(ask).await.unwrap().into_inner();
    client.ingest(tonic::codegen::tokio_stream::once(events(20, 5))).await.unwrap();
    let next = following.message().await.unwrap().unwrap();
    assert_eq!((next.lsn, next.events, next.kind.as_str()), (last + 1, 5, "events"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_reports_its_progress_and_can_be_read() {
    let server = TestServer::start().await;
    let mut client = connect(&server).await;
    client.ingest(tonic::codegen::tokio_stream::once(events(0, 30))).await.unwrap();
    let target = tempfile::tempdir().unwrap();
    let directory = target.path().join("b").to_str().unwrap().to_owned();
    let ask = v1::BackupRequest { directory: directory.clone(), since: String::new() };
    let reports = all(client.backup(ask.clone()).await.unwrap().into_inner()).await;
    let last = reports.last().unwrap();
    assert!(last.done && last.files >= 5 && last.bytes > 0);
    assert!(target.path().join("b/BACKUP").exists());
    let mut refused = client.backup(ask).await.unwrap().into_inner();
    assert_eq!(refused.message().await.unwrap_err().code(), Code::InvalidArgument);
    let relative = v1::BackupRequest { directory: "b".into(), since: String::new() };
    assert_eq!(client.backup(relative).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_input_names_its_field() {
    let server = TestServer::start().await;
    let mut client = connect(&server).await;
    let mut wrong = events(0, 1);
    wrong.events[0].tenant_id.clear();
    let refused = client.ingest(tonic::codegen::tokio_stream::once(wrong)).await.unwrap_err();
    assert!(refused.message().contains("tenant_id"), "{refused}");
    let mut wrong = events(0, 1);
    wrong.events[0].numeric_props.insert("x".into(), f64::NAN);
    let refused = client.ingest(tonic::codegen::tokio_stream::once(wrong)).await.unwrap_err();
    assert!(refused.message().contains("numeric_props.x"), "{refused}");
    for (field, request) in [
        ("metric", question("median")),
        ("granularity", v1::QueryRequest { granularity: "minute".into(), ..question("count") }),
        ("numeric_prop", v1::QueryRequest { numeric_prop: String::new(), ..question("sum") }),
    ] {
        let refused = client.query(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{field}");
        assert!(refused.message().contains(field), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_token_is_set_every_call_needs_it() {
    let mut server = TestServer::start().await;
    server.grpc_token = Some("a very secret token".into());
    server.restart().await;
    let mut client = connect(&server).await;
    let with = |token: &str| {
        let mut request = Request::new(v1::StatsRequest {});
        request.metadata_mut().insert("authorization", token.parse().unwrap());
        request
    };
    for wrong in ["Bearer no", "Bearer ", "a very secret token", "Bearer a very secret token "] {
        let refused = client.stats(with(wrong)).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated, "{wrong}");
    }
    assert_eq!(client.stats(v1::StatsRequest {}).await.unwrap_err().code(), Code::Unauthenticated);
    client.stats(with("Bearer a very secret token")).await.unwrap();
}

/// What tools ask before they know anything of us.
#[tokio::test(flavor = "multi_thread")]
async fn health_and_reflection_answer_whoever_asks() {
    use tonic_health::pb::{
        HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
    };
    use tonic_reflection::pb::v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    };

    let server = TestServer::start().await;
    let channel = Endpoint::from_shared(server.grpc()).unwrap().connect().await.unwrap();
    let mut health = HealthClient::new(channel.clone());
    for service in ["", "inlay.v1.Inlay"] {
        let ask = HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(ask).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service:?}");
    }
    let unknown = HealthCheckRequest { service: "inlay.v9.Inlay".to_owned() };
    assert_eq!(health.check(unknown).await.unwrap_err().code(), Code::NotFound);

    let mut reflection = ServerReflectionClient::new(channel);
    let ask =
        |message| ServerReflectionRequest { host: String::new(), message_request: Some(message) };
    let asked = vec![
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol("inlay.v1.Inlay".to_owned())),
    ];
    let asked = tonic::codegen::tokio_stream::iter(asked);
    let answers = all(reflection.server_reflection_info(asked).await.unwrap().into_inner()).await;
    let Some(MessageResponse::ListServicesResponse(listed)) = &answers[0].message_response else {
        panic!("{:?}", answers[0]);
    };
    let names: Vec<&str> = listed.service.iter().map(|service| service.name.as_str()).collect();
    assert!(
        names.contains(&"inlay.v1.Inlay") && names.contains(&"grpc.health.v1.Health"),
        "{names:?}"
    );
    let Some(MessageResponse::FileDescriptorResponse(files)) = &answers[1].message_response else {
        panic!("{:?}", answers[1]);
    };
    let text = String::from_utf8_lossy(&files.file_descriptor_proto[0]).into_owned();
    for call in [
        "Ingest",
        "Query",
        "Explain",
        "ListSegments",
        "DescribeSegment",
        "Stats",
        "Flush",
        "Compact",
        "Backup",
        "Verify",
        "TailWal",
    ] {
        assert!(text.contains(call), "{call} is described");
    }
}
