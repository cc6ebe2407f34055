//! A webhook receiver over bare sockets, which behaves as it is told: well, or badly in a way.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// How a request is answered.
#[derive(Debug, Clone)]
pub enum Manner {
    /// With this status and body.
    Status(u16, String),
    /// With this status, and the seconds to stay away.
    RetryAfter(u16, u32),
    /// Not at all: the connection is closed.
    Close,
    /// Not at all: the connection stays open.
    Hang,
    /// With bytes that are not HTTP.
    Garbage,
    /// With a status, and a body that never ends.
    Endless(u16),
    /// With `100 Continue` again and again.
    Flood,
    /// With headers that never end.
    EndlessHead,
    /// With a redirect to there.
    Redirect(String),
    /// With a status, after which nothing more comes although a body was promised.
    Stall(u16),
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Received {
    /// Head, in lower case.
    pub head: String,
    /// Bytes of the request body.
    pub body: Vec<u8>,
}

impl Received {
    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.head.lines().find_map(|line| line.strip_prefix(prefix.as_str()))
    }
}

/// A receiver on a port of its own.
pub struct Receiver {
    /// Where it is.
    pub url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    /// Answers each request in the manner of its turn, and all further ones in that of the last.
    pub async fn start(manners: &[Manner]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/in/secret", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let (kept, manners) = (Arc::clone(&received), manners.to_vec());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (kept, manners) = (Arc::clone(&kept), manners.clone());
                tokio::spawn(async move { serve(stream, &kept, &manners).await });
            }
        });
        Self { url, received }
    }

    /// What came so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// How much came so far.
    pub fn count(&self) -> usize {
        self.received.lock().unwrap().len()
    }
}

async fn serve(mut stream: TcpStream, kept: &Mutex<Vec<Received>>, manners: &[Manner]) {
    let Some(received) = read(&mut stream).await else { return };
    let turn = {
        let mut kept = kept.lock().unwrap();
        kept.push(received);
        kept.len() - 1
    };
    let manner = manners.get(turn).or(manners.last()).cloned();
    // The client may leave whenever it likes.
    let _ = answer(&mut stream, manner.unwrap_or(Manner::Status(200, String::new()))).await;
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.parse().unwrap());
    while bytes.len() < head_end + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(Received { head, body: bytes[head_end + 4..].to_vec() })
}

async fn answer(stream: &mut TcpStream, manner: Manner) -> std::io::Result<()> {
    match manner {
        Manner::Status(status, body) => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            stream.write_all((head + &body).as_bytes()).await
        }
        Manner::RetryAfter(status, seconds) => {
            let head = format!(
                "HTTP/1.1 {status} X\r\nretry-after: {seconds}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await
        }
        Manner::Close => Ok(()),
        Manner::Hang => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            Ok(())
        }
        Manner::Garbage => stream.write_all(b"\x16\x03\x01\x00 hello there\r\n\r\n").await,
        Manner::Endless(status) => {
            let head = format!("HTTP/1.1 {status} X\r\ntransfer-encoding: chunked\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            loop {
                stream.write_all(b"10\r\n0123456789abcdef\r\n").await?;
            }
        }
        Manner::Flood => {
            let many = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
            loop {
                stream.write_all(&many).await?;
            }
        }
        Manner::EndlessHead => {
            stream.write_all(b"HTTP/1.1 200 X\r\n").await?;
            loop {
                stream.write_all(b"x-more: 0123456789abcdef\r\n").await?;
            }
        }
        Manner::Redirect(to) => {
            let head = format!("HTTP/1.1 302 X\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(head.as_bytes()).await
        }
        Manner::Stall(status) => {
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: 100\r\n\r\nabc");
            stream.write_all(head.as_bytes()).await?;
            tokio::time::sleep(Duration::from_secs(600)).await;
            Ok(())
        }
    }
}
