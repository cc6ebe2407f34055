//! The page of the reference: its first steps do what they say, pasted into a shell as they stand.

use std::process::Command;

use inlay_tests::TestServer;
use serde_json::Value;

/// What a reader pastes: the commands of each step without the lines that name what an earlier response gave.
fn steps(page: &str) -> Vec<String> {
    let blocks = page.split("<pre class=\"step\">").skip(1);
    let text = |block: &str| {
        let block = block.split_once("</pre>").unwrap().0;
        let block = block.replace("&#38;", "&").replace("&amp;", "&");
        block.split_inclusive('\n').filter(|line| !line.starts_with("export ")).collect()
    };
    blocks.map(text).collect()
}

/// Runs commands as a shell does; the JSON that they print, one value a request that has any.
fn paste(commands: &str, variables: &[(&str, &str)]) -> Vec<Value> {
    let commands = commands.replace("curl ", "curl -sS ");
    let mut shell = Command::new("sh");
    let output = shell.args(["-ec", &commands]).envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{commands}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::Deserializer::from_str(&text).into_iter().map(Result::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_steps_of_the_reference_can_be_pasted() {
    if Command::new("curl").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI installs curl");
        return eprintln!("skipped: no curl on the path");
    }
    let server = TestServer::start().await;
    let page = server.anonymous().get("/docs").await.text;
    let steps = steps(&page);
    let [register, send, query, build, embed] = &steps[..] else { panic!("{steps:?}") };
    let (register, send, query) = (register.clone(), send.clone(), query.clone());
    let (build, embed) = (build.clone(), embed.clone());
    let session = tokio::task::spawn_blocking(move || {
        let made = paste(&register, &[]);
        let key = made[0]["api_key"]["key"].as_str().unwrap().to_owned();
        assert_eq!(paste(&send, &[("KEY", &key)])[0]["accepted"], 2);
        let answer = &paste(&query, &[("KEY", &key)])[0];
        assert_eq!(answer["data"].as_array().unwrap().len(), 2, "{answer}");
        // Publishing needs the id that the first of its two requests gave.
        let (create, publish) = build.split_at(build.find("curl -X POST").unwrap());
        let made = &paste(create, &[("KEY", &key)])[0];
        let id = made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        let variables = [("KEY", &*key), ("DASHBOARD", &*id)];
        paste(publish, &variables);
        paste(&embed, &variables).remove(0)
    });
    let session = session.await.unwrap();
    let url = session["embed_url"].as_str().unwrap_or_else(|| panic!("{session}"));
    let path = url.strip_prefix(&server.base).unwrap();
    let page = server.anonymous().get(path).await;
    assert_eq!(page.status, 200, "{}", page.text);
}
