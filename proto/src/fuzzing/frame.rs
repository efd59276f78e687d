//! Target `frame`: any text as a relay frame, on both sides.

use super::Draw;
use super::edit::edited;
use crate::envelope::Inspected;
use crate::frame::{ClientFrame, ClientOutbound, Frame, Parsed, Received, RelayFrame, RelayInbound};
use crate::json::{Value, canonicalize, parse_wire};
use crate::units::utf16_len;
use std::sync::Arc;

macro_rules! frames {
    ($($text:literal,)*) => { &[$($text,)*] };
}

/// One of each type, with every member.
const TEMPLATES: &[&str] = frames! {
    r#"{"t":"hello","proto":"messaging.relay.v1","team":"BE0C2QnyLkKsfkP_A_tCiDiM3Y_DyUZQpyoQhiVGT_w","machine":"BE0C2QnyLkKsfkP_A_tCiDiM3Y_DyUZQpyoQhiVGT_w","ts":1795000000000,"sig":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ"}"#,
    r#"{"t":"join","req":"j1","team":"BE0C2QnyLkKsfkP_A_tCiDiM3Y_DyUZQpyoQhiVGT_w","inviteId":"01M7Q5CQG08J653P40D0JWK88C","proof":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ","after":-1}"#,
    r#"{"t":"roster.sync","req":"s","after":3}"#,
    r#"{"t":"roster.append","req":"a","entry":{"op":"genesis"}}"#,
    r#"{"t":"send","env":{"id":"01M7Q5CQG08J653P40D0JWK88C","body":"AA","sig":"x"}}"#,
    r#"{"t":"recv.ack","from":"BE0C2QnyLkKsfkP_A_tCiDiM3Y_DyUZQpyoQhiVGT_w","id":"01M7Q5CQG08J653P40D0JWK88C"}"#,
    r#"{"t":"presence","env":{"body":{},"t":"presence","env":"}"}}"#,
    r#"{"t":"ping","n":1}"#,
    r#"{"t":"pong","n":1}"#,
    r#"{"t":"challenge","proto":"messaging.relay.v1","relay":"wss://relay.example","nonce":"BE0C2QnyLkKsfkP_A_tCiDiM3Y_DyUZQpyoQhiVGT_w"}"#,
    r#"{"t":"welcome","head":{"seq":3,"hash":"BE0C2QnyLkKsfkP_A_tCiDiM3Y_DyUZQpyoQhiVGT_w"},"online":["BE0C2QnyLkKsfkP_A_tCiDiM3Y_DyUZQpyoQhiVGT_w"]}"#,
    r#"{"t":"roster.entries","req":"s","entries":[{},{"a":1}],"more":true}"#,
    r#"{"t":"roster.ok","req":"a","head":{"seq":0,"hash":"BE0C2QnyLkKsfkP_A_tCiDiM3Y_DyUZQpyoQhiVGT_w"}}"#,
    r#"{"t":"roster","entry":{}}"#,
    r#"{"t":"ack","id":"01M7Q5CQG08J653P40D0JWK88C","stage":"relayed"}"#,
    r#"{"t":"nack","id":"a","code":"rate_limited","message":"m","retryAfterMs":5}"#,
    r#"{"t":"deliver","env":{"v":"messaging/2","id":"01M7Q5CQG08J653P40D0JWK88C","type":"future"}}"#,
    r#"{"t":"peer","machine":"BE0C2QnyLkKsfkP_A_tCiDiM3Y_DyUZQpyoQhiVGT_w","online":true}"#,
    r#"{"t":"error","code":"internal","message":"m"}"#,
};

/// Every text has exactly one reading; what is heard and said again is heard the same; an envelope taken out of
/// a canonical frame is what inspecting its value gives.
pub fn frame(data: &[u8]) {
    if data.first() == Some(&b'{') {
        return judge(data);
    }
    let mut draw = Draw::new(data);
    let Some(template) = draw.one_of(TEMPLATES) else { return };
    let Ok(mut value) = parse_wire(template.as_bytes(), template.len()) else { return };
    for _ in 0..draw.below(3) {
        value = edited(&value, &mut draw);
    }
    if let Ok(text) = canonicalize(&value) {
        judge(text.as_bytes());
        // Another spelling of the same value.
        judge(text.replace("\":", "\" :").as_bytes());
    }
}

fn judge(bytes: &[u8]) {
    let client = Received::<ClientFrame>::parse(bytes.to_vec(), bytes.len());
    let relay = Received::<RelayInbound>::parse(bytes.to_vec(), bytes.len());
    assert_eq!(client.id(), relay.id());
    law(&client, bytes);
    law(&relay, bytes);
    if let Parsed::Frame(frame) = &client.parsed {
        if let ClientFrame::Send(envelope) | ClientFrame::Presence(envelope) = frame {
            assert_eq!(**envelope, Inspected::new(envelope.raw().clone()));
        }
        if let Some(said) = client_says(frame) {
            let text = said.to_text();
            assert_eq!(said.t(), frame.t());
            let again = Received::<ClientFrame>::parse(text.clone().into_bytes(), text.len());
            let Parsed::Frame(again) = again.parsed else { panic!("a client's frame is a frame") };
            assert_eq!(client_says(&again), Some(said), "a client's frame is heard as it was said");
        }
    }
    if let Parsed::Frame(frame) = &relay.parsed {
        if let RelayInbound::Deliver(envelope) = frame {
            assert_eq!(**envelope, Inspected::new(envelope.raw().clone()));
        }
        if let Some(said) = relay_says(frame) {
            let text = said.to_text();
            assert_eq!(said.t(), frame.t());
            let again = Received::<RelayInbound>::parse(text.clone().into_bytes(), text.len());
            let Parsed::Frame(again) = again.parsed else { panic!("a relay's frame is a frame") };
            assert_eq!(relay_says(&again), Some(said), "a relay's frame is heard as it was said");
        }
    }
}

fn law<F: Frame + PartialEq>(received: &Received<F>, bytes: &[u8]) {
    assert_eq!(received.bytes, bytes.len());
    assert!(received.id().is_none_or(|id| (1..=64).contains(&utf16_len(id))));
    let object = parse_wire(bytes, bytes.len()).ok().filter(|value| value.as_object().is_some());
    let t = object.as_ref().and_then(|value| value.get("t")).and_then(Value::as_str);
    let known = t.is_some_and(|t| F::TYPES.contains(&t));
    match &received.parsed {
        Parsed::Malformed => assert!(t.is_none()),
        Parsed::Unknown => assert!(t.is_some() && !known),
        Parsed::BadShape { t: told, id } => {
            assert_eq!((Some(*told), id.as_deref()), (t, received.id()));
            assert!(known);
        }
        Parsed::Frame(frame) => assert!(known && Some(frame.t()) == t),
    }
    if !bytes.is_empty() {
        let short = Received::<F>::parse(bytes.to_vec(), bytes.len() - 1);
        assert!(short.parsed == Parsed::Malformed, "over the limit");
    }
}

fn text(value: &Value) -> Option<Arc<str>> {
    canonicalize(value).ok().map(Arc::from)
}

fn client_says(frame: &ClientFrame) -> Option<ClientOutbound> {
    Some(match frame {
        ClientFrame::Hello(hello) => ClientOutbound::Hello(*hello),
        ClientFrame::Join { req, team, invite_id, proof, after } => ClientOutbound::Join {
            req: req.clone(),
            team: *team,
            invite_id: *invite_id,
            proof: *proof,
            after: *after,
        },
        ClientFrame::RosterSync { req, after } => {
            ClientOutbound::RosterSync { req: req.clone(), after: *after }
        }
        ClientFrame::RosterAppend { req, entry } => {
            ClientOutbound::RosterAppend { req: req.clone(), entry: text(entry)? }
        }
        ClientFrame::Send(envelope) => ClientOutbound::Send { env: envelope.jcs()?.clone() },
        ClientFrame::RecvAck { from, id } => ClientOutbound::RecvAck { from: *from, id: *id },
        ClientFrame::Presence(envelope) => ClientOutbound::Presence { env: envelope.jcs()?.clone() },
        ClientFrame::Ping { n } => ClientOutbound::Ping { n: *n },
        ClientFrame::Pong { n } => ClientOutbound::Pong { n: *n },
    })
}

fn relay_says(frame: &RelayInbound) -> Option<RelayFrame> {
    Some(match frame {
        RelayInbound::Challenge { proto, relay, nonce } => {
            let known = proto == crate::frame::PROTO;
            return known.then(|| RelayFrame::Challenge { relay: relay.as_str().into(), nonce: *nonce });
        }
        RelayInbound::Welcome { head, online } => RelayFrame::Welcome { head: *head, online: online.clone() },
        RelayInbound::RosterEntries { req, entries, more } => RelayFrame::RosterEntries {
            req: req.clone(),
            entries: entries.iter().map(text).collect::<Option<_>>()?,
            more: *more,
        },
        RelayInbound::RosterOk { req, head } => RelayFrame::RosterOk { req: req.clone(), head: *head },
        RelayInbound::Roster { entry } => RelayFrame::Roster { entry: text(entry)? },
        RelayInbound::Ack { id } => RelayFrame::Ack { id: *id },
        RelayInbound::Nack { id, code, retry_after_ms } => RelayFrame::Nack {
            id: id.clone(),
            code: code.known()?,
            message: None,
            retry_after_ms: *retry_after_ms,
        },
        RelayInbound::Deliver(envelope) => RelayFrame::Deliver { env: envelope.jcs()?.clone() },
        RelayInbound::Peer { machine, online } => RelayFrame::Peer { machine: *machine, online: *online },
        RelayInbound::Ping { n } => RelayFrame::Ping { n: *n },
        RelayInbound::Pong { n } => RelayFrame::Pong { n: *n },
        RelayInbound::Error { code } => RelayFrame::error(code.known()?),
    })
}
