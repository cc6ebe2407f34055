//! Connections of tools, a bounded number at once: each takes a descriptor that the store may need.

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
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};
use tonic::{
    codegen::tokio_stream::{Stream, wrappers::ReceiverStream},
    transport::server::{Connected, TcpConnectInfo},
};
use tracing::warn;

/// Connections at once, at most. Further ones wait to be accepted.
pub const CONNECTIONS_MAX: usize = 32;

/// A connection, and its place among those that there may be.
pub struct Held {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

/// The connections of a listener, until nobody takes them any more.
pub fn incoming(listener: TcpListener) -> impl Stream<Item = io::Result<Held>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let accept = async {
                let place = Arc::clone(&places).acquire_owned().await.ok()?;
                Some((place, listener.accept().await))
            };
            let accepted = tokio::select! {
                () = sender.closed() => return,
                accepted = accept => accepted,
            };
            match accepted {
                Some((place, Ok((stream, _)))) => {
                    // Small answers must not wait for more to come.
                    let _ = stream.set_nodelay(true);
                    if sender.send(Ok(Held { stream, _place: place })).await.is_err() {
                        return;
                    }
                }
                Some((_, Err(error))) => {
                    warn!(%error, "cannot accept a gRPC connection");
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                None => return,
            }
        }
    });
    ReceiverStream::new(receiver)
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

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
