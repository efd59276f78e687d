//! Readiness of sockets where there is no epoll: the runtime's reactor, with the shape of `poller.rs`.

use async_executor::Executor;
use async_io::Async;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) struct Pollers(usize);

#[derive(Debug)]
pub(super) struct Poller;

impl Pollers {
    pub(super) const fn new(workers: usize) -> io::Result<Self> {
        Ok(Self(workers))
    }

    pub(super) fn each(&self) -> impl Iterator<Item = Arc<Poller>> + '_ {
        (0..self.0).map(|_| Arc::new(Poller))
    }

    pub(super) fn watch(&self, stream: TcpStream) -> io::Result<Watched> {
        Async::new(stream).map(Watched)
    }
}

impl Poller {
    pub(super) fn run<T>(self: &Arc<Self>, executor: &Executor<'static>, end: impl Future<Output = T>) -> T {
        futures_lite::future::block_on(executor.run(end))
    }
}

#[derive(Debug)]
pub(super) struct Watched(Async<TcpStream>);

impl Watched {
    pub(super) fn get_ref(&self) -> &TcpStream {
        self.0.get_ref()
    }

    pub(super) async fn readable(&self) {
        // An error shows at the next read.
        let _ = self.0.readable().await;
    }

    pub(super) async fn others(&self) {
        futures_lite::future::yield_now().await;
    }

    pub(super) async fn writable(&self) {
        let _ = self.0.writable().await;
    }
}
