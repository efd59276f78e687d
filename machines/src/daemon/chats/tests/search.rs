//! `search` (`messaging/1 §8.2`, "Chats"; contract ipc §3).

use super::limits::fill;
use super::{Chat, number_at};
use crate::daemon::testing::{at, text};

fn hits(chat: &mut Chat, params: &str) -> Vec<String> {
    let found = chat.ok(0, "search", params);
    at(&found, "hits").as_array().unwrap().iter().map(|hit| text(hit, "text").to_owned()).collect()
}

#[test]
fn every_word_in_any_case_newest_first() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/box"]);
    chat.ok(0, "channel.create", r#"{"name":"eng","persons":["bob"]}"#);
    chat.say(1, "dm:alice", "The build is GREEN", "");
    chat.say(0, "channel:eng", "green light", "");
    chat.say(2, "dm:alice", "Grüße, buildings", "");
    chat.say(0, "dm:alice", "build note", "");
    assert_eq!(
        hits(&mut chat, r#"{"query":"BUILD"}"#),
        ["build note", "Grüße, buildings", "The build is GREEN"]
    );
    assert_eq!(hits(&mut chat, r#"{"query":"green  build"}"#), ["The build is GREEN"]);
    assert_eq!(hits(&mut chat, r#"{"query":"grÜSSe"}"#), [""; 0]);
    assert_eq!(hits(&mut chat, r#"{"query":"GRÜ"}"#), ["Grüße, buildings"]);
    assert_eq!(hits(&mut chat, r#"{"query":"build","limit":1}"#), ["build note"]);
    assert_eq!(hits(&mut chat, r#"{"query":"build","conversation":"dm:bob"}"#), ["The build is GREEN"]);
    assert_eq!(hits(&mut chat, r#"{"query":"green","conversation":"channel:eng"}"#), ["green light"]);
    assert_eq!(hits(&mut chat, r#"{"query":"nothing"}"#), [""; 0]);
    let found = chat.ok(0, "search", r#"{"query":"light"}"#);
    assert_eq!(text(&found, "hits.0.conversation"), "channel:eng");
    assert_eq!((text(&found, "hits.0.person"), text(&found, "hits.0.state")), ("alice", "delivered"));
    // Without an exchange there is nothing to find; without a chat there is no place to look.
    assert_eq!(hits(&mut chat, r#"{"query":"x","conversation":"dm:carol"}"#), [""; 0]);
    for room in ["dm:nobody", "channel:ops"] {
        let params = format!(r#"{{"query":"x","conversation":"{room}"}}"#);
        assert_eq!(chat.refused(0, "search", &params), "not_found");
    }
    for params in [
        r#"{"query":""}"#,
        r#"{"query":"x","limit":0}"#,
        r#"{"query":"x","limit":101}"#,
        r#"{"query":"x","y":1}"#,
    ] {
        assert_eq!(chat.refused(0, "search", params), "invalid_request", "{params}");
    }
    // An agent may, without a key.
    let conn = chat.world.agent(0);
    chat.world.ok(0, conn, "search", r#"{"query":"green"}"#);
}

/// A search over more than a step reads goes on in the next ones, and others are served between.
#[test]
fn a_long_search_takes_several_steps() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    for person in ["bob", "carol"] {
        fill(&mut chat.world, 0, person, 2_000, 7_000);
    }
    chat.say(0, "dm:bob", "newest", "");
    let before = chat.world.steps();
    let conn = chat.admin[0];
    let line = |id: u64, query: &str| {
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"search","params":{{"query":"{query}","conversation":"dm:bob"}}}}"#
        );
        crate::daemon::io::Event::IpcLine { conn, line: request.into_bytes() }
    };
    chat.world.handle(0, line(9_001, "bob-1-"));
    chat.world.handle(0, line(9_002, "newest"));
    chat.world.handle(0, line(9_003, "no such words"));
    let replies = |chat: &Chat| {
        let lines = chat.world.nodes[0].lines.iter().filter_map(|(_, line)| line.get("id").cloned());
        lines
            .filter_map(|id| messaging_proto::json::FromValue::from_value(&id).ok())
            .filter(|id: &u64| *id > 9_000)
            .collect::<Vec<u64>>()
    };
    assert!(replies(&chat).is_empty(), "sixteen mebibytes hold too few");
    let other = chat.ok(0, "conv.list", "{}");
    assert!(number_at(&other, "conversations.0.lastSeq") > 4_000);
    chat.world.pass(10);
    assert_eq!(replies(&chat), [9_001, 9_002, 9_003]);
    assert!(chat.world.steps() > before + 5);
    // Nobody waits for a search whose client is gone.
    let gone = chat.world.connect(0);
    let request = br#"{"jsonrpc":"2.0","id":1,"method":"search","params":{"query":"zzz"}}"#.to_vec();
    chat.world.handle(0, crate::daemon::io::Event::IpcLine { conn: gone, line: request });
    chat.world.close(0, gone);
    chat.world.pass(10);
}
