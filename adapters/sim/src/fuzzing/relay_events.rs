//! What may happen to a relay.

use arbitrary::Arbitrary;

/// One event.
#[derive(Clone, Debug, Arbitrary)]
pub(super) enum Happens {
    Open,
    Close { conn: u8 },
    Hello { conn: u8, who: u8, honest: bool },
    Login { who: u8 },
    Send { conn: u8, from: u8, to: u8, id: u8, body: u8, ttl: u16, head: u8 },
    Presence { conn: u8, from: u8, seq: u8, head: u8 },
    Ack { conn: u8, from: u8, id: u8 },
    Sync { conn: u8, after: i8 },
    Append { conn: u8, by: u8, about: u8, what: u8 },
    Pong { conn: u8 },
    Text { conn: u8, bytes: Vec<u8> },
    Frame { conn: u8, frame: u8, number: u8 },
    Unreadable { conn: u8, large: bool },
    Drain,
    Timer,
    Pass { ms: u16 },
    Step { ms: i32 },
    Fail { committed: bool },
    Restart,
    Stop,
}

/// Frames of clients that are not ours.
pub(super) const FRAMES: [&str; 8] = [
    r#"{"t":"join","req":"1","team":"HASH","inviteId":"01ARZ3NDEKTSV4RRFFQ69G5FAV","proof":"SIG"}"#,
    r#"{"t":"roster.append","req":"1","entry":{"v":"messaging/1","op":"genesis","seq":0,"prev":null}}"#,
    r#"{"t":"send","env":{"v":"messaging/1","id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}}"#,
    r#"{"t":"presence","env":{"v":"messaging/1"}}"#,
    r#"{"t":"recv.ack","ids":["01ARZ3NDEKTSV4RRFFQ69G5FAV"]}"#,
    r#"{"t":"ping","n":N}"#,
    r#"{"t":"tomorrow","n":N}"#,
    r#"{"t":"hello","proto":"messaging.relay.v1","team":"HASH","machine":"HASH","ts":N,"sig":"SIG"}"#,
];
