//! A blocking client of the relay.

use crate::Fault;
use messaging_proto::frame::{ClientOutbound, HelloClaim, Nonce, sign_hello};
use messaging_proto::hash::RealmId;
use messaging_proto::key::SigningKey;
use messaging_proto::time::Wall;
use serde_json::Value;
use std::net::TcpStream;
use std::time::Duration;
use tungstenite::Message;
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::WebSocket;

/// A connection past its challenge.
pub(crate) struct Link {
    pub(crate) socket: WebSocket<TcpStream>,
    challenge: Option<(String, Nonce)>,
}

/// Now, in milliseconds since 1970.
pub(crate) fn now() -> Result<Wall, Fault> {
    Ok(Wall(u64::try_from(std::time::UNIX_EPOCH.elapsed()?.as_millis())?))
}

impl Link {
    /// Connects and takes the challenge.
    pub(crate) fn open(port: u16) -> Result<Self, Fault> {
        let mut request = format!("ws://127.0.0.1:{port}/v1/connect").into_client_request()?;
        request.headers_mut().insert("sec-websocket-protocol", "messaging.relay.v1".parse()?);
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let (socket, _) = tungstenite::client(request, stream).map_err(|error| error.to_string())?;
        let mut link = Self { socket, challenge: None };
        let challenge = link.value()?;
        let relay = challenge["relay"].as_str().unwrap_or_default().to_owned();
        let nonce = challenge["nonce"].as_str().and_then(Nonce::parse).ok_or("no nonce")?;
        link.challenge = Some((relay, nonce));
        Ok(link)
    }

    /// Connects and authenticates.
    pub(crate) fn live(port: u16, key: &SigningKey, team: &RealmId) -> Result<Self, Fault> {
        let mut link = Self::open(port)?;
        let (relay, nonce) = link.challenge.as_ref().ok_or("no challenge")?;
        let claim = HelloClaim { relay, nonce, team, ts: now()? };
        let hello = ClientOutbound::Hello(sign_hello(key, &claim)?).to_text();
        link.say(hello)?;
        match link.value()? {
            welcome if welcome["t"] == "welcome" => Ok(link),
            other => Err(format!("hello was answered {}", other["code"]).into()),
        }
    }

    /// Sends a frame.
    pub(crate) fn say(&mut self, text: String) -> Result<(), Fault> {
        Ok(self.socket.send(Message::text(text))?)
    }

    /// The next frame's text.
    pub(crate) fn text(&mut self) -> Result<String, Fault> {
        loop {
            match self.socket.read()? {
                Message::Text(text) => return Ok(text.as_str().to_owned()),
                Message::Close(_) => return Err("the relay closed the connection".into()),
                _ => {}
            }
        }
    }

    /// The next frame.
    pub(crate) fn value(&mut self) -> Result<Value, Fault> {
        Ok(serde_json::from_str(&self.text()?)?)
    }

    /// Appends a roster entry.
    pub(crate) fn append(&mut self, entry: &str) -> Result<(), Fault> {
        self.say(format!("{{\"t\":\"roster.append\",\"req\":\"r\",\"entry\":{entry}}}"))?;
        loop {
            let frame = self.value()?;
            match frame["t"].as_str() {
                Some("roster.ok") => return Ok(()),
                Some("nack" | "error") => return Err(format!("append refused: {}", frame["code"]).into()),
                _ => {}
            }
        }
    }

    /// Sends an envelope that is a `send` frame already and waits for its ack.
    pub(crate) fn send_acked(&mut self, frame: String, id: &str) -> Result<(), Fault> {
        self.say(frame)?;
        self.acked(id)
    }

    /// Waits for the ack of `id`.
    pub(crate) fn acked(&mut self, id: &str) -> Result<(), Fault> {
        loop {
            let text = self.text()?;
            if text.contains("\"ack\"") && text.contains(id) {
                return Ok(());
            }
            if text.contains("\"nack\"") || text.contains("\"error\"") {
                return Err(format!("refused: {text}").into());
            }
        }
    }
}
