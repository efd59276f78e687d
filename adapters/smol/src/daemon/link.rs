//! The connection to the relay (`messaging/1 §7`, client side): dial, WebSocket, frames.

use super::dial::{self, Wire};
use crate::driver::Events;
use crate::outbox::{Item, Outbox};
use async_io::Timer;
use async_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use async_tungstenite::tungstenite::{self, Bytes, Message};
use async_tungstenite::{WebSocketReceiver, WebSocketSender, WebSocketStream};
use futures_lite::{StreamExt, future};
use messaging_machines::daemon::io::{Event, LinkEnd, LinkId};
use messaging_proto::frame::Received;
use messaging_proto::limits::FRAME_BYTES;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that may wait for the relay's socket; past it the link is dropped and made again.
pub(super) const LINK_BUFFER_BYTES: usize = 64 * 1024 * 1024;
/// How long a link that we close may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The links that are open or being made. There is one at a time, and at moments a second one on its way out.
#[derive(Debug, Default)]
pub(super) struct Links {
    open: Mutex<BTreeMap<LinkId, Arc<Outbox>>>,
    total: Arc<AtomicUsize>,
}

impl Links {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<LinkId, Arc<Outbox>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a link, before its task runs: what is said to it waits for its connection.
    pub(super) fn add(&self, id: LinkId) -> Arc<Outbox> {
        let outbox = Arc::new(Outbox::new(Arc::clone(&self.total)));
        self.lock().insert(id, Arc::clone(&outbox));
        outbox
    }

    pub(super) fn get(&self, id: LinkId) -> Option<Arc<Outbox>> {
        self.lock().get(&id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Outbox>> {
        self.lock().values().cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn remove(&self, id: LinkId) {
        self.lock().remove(&id);
    }
}

/// Makes a link and serves it to its end.
pub(super) async fn serve(
    links: &Links,
    id: LinkId,
    url: String,
    outbox: Arc<Outbox>,
    events: Events<Event>,
) {
    let hung_up = async {
        outbox.ended(false).await;
        Err(LinkEnd::Lost)
    };
    let dialled = future::or(dial::dial(&url, config()), hung_up).await;
    let why = match dialled {
        Ok(socket) => {
            if events.send(Event::LinkOpened { link: id }).await {
                run(socket, id, &outbox, &events).await
            } else {
                LinkEnd::Lost
            }
        }
        Err(why) => why,
    };
    outbox.abort();
    links.remove(id);
    events.send(Event::LinkClosed { link: id, why }).await;
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(32 * 1024)
        .write_buffer_size(64 * 1024)
        .max_message_size(Some(FRAME_BYTES))
        .max_frame_size(Some(FRAME_BYTES))
}

async fn run(socket: WebSocketStream<Wire>, id: LinkId, outbox: &Outbox, events: &Events<Event>) -> LinkEnd {
    let (sender, receiver) = socket.split();
    future::or(read(receiver, id, outbox, events), write(sender, outbox)).await
}

/// Hears the relay until it closes or is lost.
async fn read(
    mut receiver: WebSocketReceiver<Wire>,
    id: LinkId,
    outbox: &Outbox,
    events: &Events<Event>,
) -> LinkEnd {
    let mut closed = None;
    loop {
        let bytes: Vec<u8> = match receiver.next().await {
            Some(Ok(Message::Text(text))) => Bytes::from(text).into(),
            // No text is no frame: the machine closes with 4002 (contract wire-core §7.1).
            Some(Ok(Message::Binary(_)) | Err(tungstenite::Error::Utf8(_))) => vec![0xff],
            Some(Ok(Message::Close(frame))) => {
                closed = Some(frame.map_or(1005, |frame| frame.code.into()));
                continue;
            }
            Some(Ok(_)) => continue,
            Some(Err(tungstenite::Error::Capacity(_))) => {
                outbox.close(1009);
                // Nothing more can be read; the writer ends the link.
                return future::pending().await;
            }
            Some(Err(_)) | None => return closed.map_or(LinkEnd::Lost, LinkEnd::Closed),
        };
        if outbox.ending().is_some() {
            continue;
        }
        let frame = Box::new(Received::parse(bytes, FRAME_BYTES));
        if !events.send(Event::LinkFrame { link: id, frame }).await {
            return LinkEnd::Lost;
        }
    }
}

/// Says what waits. Ends when the link is dropped, or some time after it was closed.
async fn write(mut sender: WebSocketSender<Wire>, outbox: &Outbox) -> LinkEnd {
    loop {
        let late = async {
            outbox.ended(false).await;
            Timer::after(CLOSE_TIMEOUT).await;
            false
        };
        let went_on = match outbox.next() {
            Some(Item::Text(text)) => {
                let bytes = text.len();
                let sent = future::or(async { sender.send(Message::text(text)).await.is_ok() }, late).await;
                outbox.flushed(bytes);
                sent
            }
            Some(Item::Mark) => true,
            Some(Item::Close(code)) => {
                let frame = CloseFrame { code: code.into(), reason: "".into() };
                // The reader ends the link when the relay answers.
                let close = async {
                    let _ = sender.close(Some(frame)).await;
                    future::pending().await
                };
                future::or(close, async {
                    Timer::after(CLOSE_TIMEOUT).await;
                })
                .await;
                false
            }
            Some(Item::Abort) => false,
            None => {
                outbox.ready().await;
                true
            }
        };
        if !went_on {
            return LinkEnd::Lost;
        }
    }
}
