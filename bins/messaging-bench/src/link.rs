//! A blocking client of the relay.

use crate::Fault;
use messaging_proto::frame::{ClientOutbound, HelloClaim, Nonce, sign_hello};
use messaging_proto::hash::RealmId;
use messaging_proto::key::SigningKey;
use messaging_proto::time::Wall;
use serde_json::Value;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;
use tungstenite::Message;
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::WebSocket;

/// A connection past its challenge.
pub struct Link {
    /// The WebSocket.
    pub socket: WebSocket<TcpStream>,
    challenge: Option<(String, Nonce)>,
}

/// Now, in milliseconds since 1970.
///
/// # Errors
/// When the clock is before that.
pub fn now() -> Result<Wall, Fault> {
    Ok(Wall(u64::try_from(std::time::UNIX_EPOCH.elapsed()?.as_millis())?))
}

impl Link {
    /// Connects and takes the challenge.
    ///
    /// # Errors
    /// When the relay does not answer as one.
    pub fn open(port: u16) -> Result<Self, Fault> {
        Self::open_from(port, None)
    }

    /// As [`Link::open`], as if a proxy had forwarded it for the client at `address`.
    ///
    /// # Errors
    /// When the relay does not answer as one.
    pub fn open_from(port: u16, address: Option<&str>) -> Result<Self, Fault> {
        let mut request = format!("ws://127.0.0.1:{port}/v1/connect").into_client_request()?;
        if let Some(address) = address {
            request.headers_mut().insert("x-forwarded-for", address.parse()?);
        }
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
    ///
    /// # Errors
    /// When the relay does not answer, or refuses the `hello`.
    pub fn live(port: u16, key: &SigningKey, team: &RealmId) -> Result<Self, Fault> {
        Self::live_from(port, None, key, team)
    }

    /// As [`Link::live`], as if a proxy had forwarded it for the client at `address`.
    ///
    /// # Errors
    /// When the relay does not answer, or refuses the `hello`.
    pub fn live_from(
        port: u16,
        address: Option<&str>,
        key: &SigningKey,
        team: &RealmId,
    ) -> Result<Self, Fault> {
        let mut link = Self::open_from(port, address)?;
        let (relay, nonce) = link.challenge.as_ref().ok_or("no challenge")?;
        let claim = HelloClaim { relay, nonce, team, ts: now()? };
        let hello = ClientOutbound::Hello(sign_hello(key, &claim)?).to_text();
        link.say(hello)?;
        match link.value()? {
            welcome if welcome["t"] == "welcome" => Ok(link),
            other => Err(format!("hello was answered {}", other["code"]).into()),
        }
    }

    /// How long a read waits.
    ///
    /// # Errors
    /// When the socket is gone.
    pub fn patience(&self, wait: Duration) -> Result<(), Fault> {
        Ok(self.socket.get_ref().set_read_timeout(Some(wait.max(Duration::from_millis(1))))?)
    }

    /// The next frame's text; nothing when none came within [`Link::patience`].
    ///
    /// # Errors
    /// When the connection ended.
    pub fn poll(&mut self) -> Result<Option<String>, Fault> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return Ok(Some(text.as_str().to_owned())),
                Ok(Message::Close(_)) => return Err("the relay closed the connection".into()),
                Ok(_) => {}
                Err(tungstenite::Error::Io(error))
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// When the connection ended.
    pub fn say(&mut self, text: String) -> Result<(), Fault> {
        Ok(self.socket.send(Message::text(text))?)
    }

    /// The next frame's text.
    ///
    /// # Errors
    /// When none comes.
    pub fn text(&mut self) -> Result<String, Fault> {
        loop {
            match self.socket.read()? {
                Message::Text(text) => return Ok(text.as_str().to_owned()),
                Message::Close(_) => return Err("the relay closed the connection".into()),
                _ => {}
            }
        }
    }

    /// The next frame.
    ///
    /// # Errors
    /// When none comes.
    pub fn value(&mut self) -> Result<Value, Fault> {
        Ok(serde_json::from_str(&self.text()?)?)
    }

    /// The socket of a connection of which everything that came was read.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn into_stream(self) -> Result<TcpStream, Fault> {
        Ok(self.socket.get_ref().try_clone()?)
    }

    /// Appends a roster entry.
    ///
    /// # Errors
    /// When it is refused, or the connection ended.
    pub fn append(&mut self, entry: &str) -> Result<(), Fault> {
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
    ///
    /// # Errors
    /// When it is refused, or the connection ended.
    pub fn send_acked(&mut self, frame: String, id: &str) -> Result<(), Fault> {
        self.say(frame)?;
        self.acked(id)
    }

    /// Waits for the ack of `id`.
    ///
    /// # Errors
    /// When it is refused, or the connection ended.
    pub fn acked(&mut self, id: &str) -> Result<(), Fault> {
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

/// The id and the sending machine of a `deliver` frame as a relay writes it; nothing for other frames. The rest of it is
/// not parsed: this side shares the cores with the relay.
#[must_use]
pub fn delivered(text: &str) -> Option<(&str, &str)> {
    if !text.ends_with("\"t\":\"deliver\"}") {
        return None;
    }
    let after = |mark: &str, from: usize| text[from..].find(mark).map(|at| from + at + mark.len());
    let device = after("\"device\":\"", after("\"from\":{", 0)?)?;
    let id = after("\"id\":\"", device)?;
    Some((text.get(id..id + 26)?, text.get(device..device + 43)?))
}

#[cfg(test)]
mod tests {
    use super::delivered;

    #[test]
    fn deliveries_are_told_by_their_text() {
        let (id, device) = ("0".repeat(26), "d".repeat(43));
        let text =
            format!(r#"{{"env":{{"from":{{"agent":"a","device":"{device}"}},"id":"{id}"}},"t":"deliver"}}"#);
        assert_eq!(delivered(&text), Some((id.as_str(), device.as_str())));
        assert_eq!(delivered(r#"{"n":1,"t":"pong"}"#), None);
        assert_eq!(delivered(r#"{"env":{},"t":"deliver"}"#), None);
    }
}
