//! How a client and a relay speak (`messaging/1 §7`): one JSON object per text message.
//!
//! [`Received`] is what either side makes of the bytes of a message; it never fails, since a message that is no
//! frame has its own answer. [`ClientFrame`] and [`RelayInbound`] are the frames as they are heard by a relay and
//! by a client, [`ClientOutbound`] and [`RelayFrame`] the same frames as they are said. Every text said is
//! canonical, so the other side takes the envelope in it as it stands.

mod client;
mod hello;
mod inbound;
mod outbound;
mod received;
mod relay;
mod req;
mod text;

pub use crate::nonce::Nonce;
pub use client::ClientFrame;
pub use hello::{Hello, HelloClaim, sign_hello, verify_hello};
pub use inbound::RelayInbound;
pub use outbound::ClientOutbound;
pub use received::{Frame, Members, Parsed, Received};
pub use relay::RelayFrame;
pub use req::Req;

/// The sub-protocol of the relay binding, and the `proto` of its frames.
pub const PROTO: &str = "messaging.relay.v1";
