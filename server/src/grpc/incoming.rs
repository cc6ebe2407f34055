//! Connections of tools, a bounded number at once: each takes a descriptor that the store may need.
//!
//! A permit is taken before a connection is accepted; further clients wait in the queue of the kernel. A client that does not begin
//! to speak HTTP/2 in time is dropped here, since the keep-alive of the server begins only behind the preface:
//!
//! ```text
//! client sends                       within 10 s
//! PRI * HTTP/2.0 …                   handed on to the server; the bytes are left to be read
//! P                                  closed after 10 s
//! nothing                            closed after 10 s
//! GET / HTTP/1.1                     closed at once
//! ```

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tonic::{
    codegen::tokio_stream::{Stream, wrappers::ReceiverStream},
    transport::server::{Connected, TcpConnectInfo},
};
use tracing::warn;

use crate::base::permit_pools::{Permit, PermitPool};

/// After a connection could not be accepted, most likely for want of descriptors, others may close theirs.
const PAUSE: Duration = Duration::from_millis(500);

/// A connection with its permit, which is free again when the server drops the connection.
pub struct Held {
    stream: TcpStream,
    _permit: Permit,
}

/// The connections of a listener that began to speak within `first_bytes`, as many at once as there are permits,
/// until nobody takes them any more. Further ones wait to be accepted.
///
/// `connections` is the pool `grpc_connections` of the metrics, 32 permits where there are descriptors enough. An error of `accept` is
/// logged and not part of the stream, which would end the server.
pub fn incoming(
    listener: TcpListener,
    connections: Arc<PermitPool>,
    first_bytes: Duration,
) -> impl Stream<Item = io::Result<Held>> {
    // One connection waits for the server at most; the tasks of further ones wait for room, with their permits.
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let accept = async {
                let Some(permit) = connections.acquire_in_turn().await else { return };
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let held = Held { stream, _permit: permit };
                        tokio::spawn(hand_on(held, first_bytes, sender.clone()));
                    }
                    Err(error) => {
                        warn!(%error, "cannot accept a gRPC connection");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            };
            tokio::select! {
                () = sender.closed() => return,
                () = accept => {}
            }
        }
    });
    ReceiverStream::new(receiver)
}

/// The first bytes of every HTTP/2 connection (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Pause between two looks at the first bytes: `peek` returns at once when there are some, although not all.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A client that connects and does not begin to speak HTTP/2 gives its permit back: until then nobody asks whether it is still there.
async fn hand_on(held: Held, first_bytes: Duration, to: mpsc::Sender<io::Result<Held>>) {
    // Small answers must not wait for more to come.
    let _ = held.stream.set_nodelay(true);
    let speaks = tokio::select! {
        () = to.closed() => return,
        speaks = tokio::time::timeout(first_bytes, begins(&held.stream)) => speaks == Ok(true),
    };
    if speaks {
        // Nobody takes it when the server has stopped.
        let _ = to.send(Ok(held)).await;
    }
}

/// Waits for the preface, and leaves it to be read. False when something else comes, or the end.
async fn begins(stream: &TcpStream) -> bool {
    let mut bytes = [0; PREFACE.len()];
    loop {
        match stream.peek(&mut bytes).await {
            // All bytes are there; or the beginning of them, and more may come; or the end of the stream, an error, another protocol.
            Ok(count) if count == PREFACE.len() => return bytes == PREFACE,
            Ok(count) if count > 0 && bytes.get(..count) == PREFACE.get(..count) => {}
            _ => return false,
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl Connected for Held {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Held {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Held {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tonic::codegen::tokio_stream::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_begin_gives_its_permit_back() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut incoming = Box::pin(incoming(
            listener,
            PermitPool::new("grpc_connections", 3),
            Duration::from_millis(200),
        ));
        let _silent = TcpStream::connect(address).await.unwrap();
        let mut stops = TcpStream::connect(address).await.unwrap();
        stops.write_all(b"P").await.unwrap();
        let mut other = TcpStream::connect(address).await.unwrap();
        other.write_all(b"GET / HTTP/1.1\r\nHost: inlay\r\n\r\n").await.unwrap();
        let mut speaking = TcpStream::connect(address).await.unwrap();
        speaking.write_all(PREFACE).await.unwrap();
        let next = tokio::time::timeout(Duration::from_secs(10), incoming.next());
        let held = next.await.unwrap().unwrap().unwrap();
        assert_eq!(held.stream.peer_addr().unwrap(), speaking.local_addr().unwrap());
    }
}
