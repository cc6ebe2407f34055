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

/// After a connection could not be accepted, most likely for want of descriptors, others may close theirs.
const PAUSE: Duration = Duration::from_millis(500);

/// A connection, and its place among those that there may be.
pub struct Held {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

/// The connections of a listener that said something within `first_byte`, at most `connections_max` at once,
/// until nobody takes them any more. Further ones wait to be accepted.
pub fn incoming(
    listener: TcpListener,
    connections_max: usize,
    first_byte: Duration,
) -> impl Stream<Item = io::Result<Held>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(connections_max));
        loop {
            let accept = async {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let held = Held { stream, _place: place };
                        tokio::spawn(hand_on(held, first_byte, sender.clone()));
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

/// Who connects and says nothing gives the place back.
async fn hand_on(held: Held, first_byte: Duration, to: mpsc::Sender<io::Result<Held>>) {
    // Small answers must not wait for more to come.
    let _ = held.stream.set_nodelay(true);
    // Being readable may be told by mistake: what counts is a byte.
    let mut byte = [0];
    let first = tokio::time::timeout(first_byte, held.stream.peek(&mut byte));
    let speaks = tokio::select! {
        () = to.closed() => return,
        first = first => matches!(first, Ok(Ok(1))),
    };
    if speaks {
        // Nobody takes it when the server has stopped.
        let _ = to.send(Ok(held)).await;
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
    async fn who_says_nothing_gives_his_place_back() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut incoming = Box::pin(incoming(listener, 2, Duration::from_millis(200)));
        let _silent = TcpStream::connect(address).await.unwrap();
        let _silent_too = TcpStream::connect(address).await.unwrap();
        let mut speaking = TcpStream::connect(address).await.unwrap();
        speaking.write_all(b"PRI").await.unwrap();
        let next = tokio::time::timeout(Duration::from_secs(10), incoming.next());
        let held = next.await.unwrap().unwrap().unwrap();
        assert_eq!(held.stream.peer_addr().unwrap(), speaking.local_addr().unwrap());
    }
}
