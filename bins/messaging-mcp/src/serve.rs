//! The process: it ends within a second of its standard input, or of its parent (`user report 47`).

use crate::flags::Settings;
use crate::server::Server;
use crate::session::Session;
use std::io;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::oneshot;

/// How often the parent is looked at: a sibling that holds the pipe open hides the parent's end.
const PARENT: Duration = Duration::from_millis(400);
/// How long calls under way may go on after the end of standard input.
const LAST_CALLS: Duration = Duration::from_millis(400);
/// How long saying goodbye to the daemon may take.
const GOODBYE: Duration = Duration::from_millis(150);
/// How long requests that were just read take to reach their handlers, and answers to be written.
const SETTLE: Duration = Duration::from_millis(25);

/// Serves until the client goes.
pub(crate) fn run(settings: Settings) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(_) => return ExitCode::FAILURE,
    };
    runtime.block_on(serve(settings));
    // The thread that reads standard input cannot be cancelled.
    std::process::exit(0);
}

async fn serve(settings: Settings) {
    let session = Arc::new(Session::new(&settings));
    tokio::task::spawn_blocking(crate::files::sweep);
    tokio::spawn(Arc::clone(&session).keep());
    let server = Server::new(Arc::clone(&session), settings.channels);
    let under_way = server.under_way();
    let (end, ended) = oneshot::channel();
    let input = Input { inner: tokio::io::stdin(), end: Some(end) };
    let client = async {
        match rmcp::serve_server(server, (input, tokio::io::stdout())).await {
            Ok(service) => {
                let _ = service.waiting().await;
            }
            // A client that does not speak MCP; its end of input still ends the process.
            Err(_) => std::future::pending().await,
        }
    };
    let finish = async {
        let _ = ended.await;
        tokio::time::sleep(SETTLE).await;
        let _ = tokio::time::timeout(LAST_CALLS, under_way.none()).await;
        tokio::time::sleep(SETTLE).await;
    };
    tokio::select! {
        () = client => {}
        () = finish => {}
        () = orphaned() => {}
    }
    let _ = tokio::time::timeout(GOODBYE, session.leave()).await;
}

/// Waits until this process has another parent than it began with.
async fn orphaned() {
    let parent = rustix::process::getppid();
    loop {
        tokio::time::sleep(PARENT).await;
        if rustix::process::getppid() != parent {
            return;
        }
    }
}

/// Standard input whose end is told, and then hidden from the server: it would drop the calls under way.
struct Input {
    inner: tokio::io::Stdin,
    end: Option<oneshot::Sender<()>>,
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.end.is_none() {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        match read {
            Poll::Ready(Ok(())) if buffer.filled().len() > before => Poll::Ready(Ok(())),
            Poll::Ready(_) => {
                if let Some(end) = self.end.take() {
                    let _ = end.send(());
                }
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }
}
