//! Channels, as their members see them.

use super::{Chat, flag, id, number_at};
use crate::daemon::testing::{at, text};

fn created(machines: &[&str], persons: &str) -> Chat {
    let mut chat = Chat::new(machines);
    chat.ok(0, "channel.create", &format!(r#"{{"name":"eng","persons":[{persons}]}}"#));
    chat
}

const THREE: [&str; 4] = ["alice/desk", "alice/phone", "bob/laptop", "carol/tower"];

/// §6.8 `create`: the full record goes to every machine of every person but the sending one.
#[test]
fn a_channel_is_created_on_every_members_machine() {
    let mut chat = Chat::new(&THREE);
    let made = chat.ok(0, "channel.create", r#"{"name":"eng","persons":["bob","carol"]}"#);
    let made = at(&made, "conversation");
    assert_eq!((text(made, "conversation"), text(made, "kind")), ("channel:eng", "channel"));
    assert!(flag(made, "mine") && made.get("name").is_none());
    let channel = text(made, "id").to_owned();
    for number in 0..4 {
        assert_eq!(chat.channel_id(number, "channel:eng"), channel);
        assert_eq!(chat.members(number, "channel:eng"), ["alice", "bob", "carol"]);
        let lines = chat.lines(number, "channel:eng");
        assert_eq!(lines.len(), 1);
        assert_eq!(text(&lines[0], "text"), "alice created #eng with bob, carol");
        assert!(flag(&lines[0], "notice") && lines[0].get("state").is_none());
        // A notice of another person's change is unread.
        assert_eq!(number_at(&chat.conversations(number)[0], "unread"), u64::from(number >= 2));
        assert_eq!(chat.events(number), ["channel 1"]);
        assert_eq!(flag(&chat.conversations(number)[0], "mine"), number < 2);
    }
    // The notice has the op's `messageId` everywhere.
    let ids: Vec<_> = (0..4).map(|number| id(&chat.lines(number, "channel:eng")[0])).collect();
    assert!(ids.iter().all(|one| *one == ids[0]));
}

/// §6.8 `post`.
#[test]
fn a_post_goes_to_every_member_machine() {
    let mut chat = created(&THREE, r#""bob","carol""#);
    let post = chat.say(2, "channel:eng", "hello", "");
    assert_eq!(text(&post, "state"), "sent");
    for number in 0..4 {
        let lines = chat.lines(number, "channel:eng");
        assert_eq!((lines.len(), id(&lines[1])), (2, id(&post)));
        assert_eq!(flag(&lines[1], "out"), number == 2);
        assert_eq!(
            lines[1].get("state").and_then(|state| state.as_str()),
            (number == 2).then_some("delivered")
        );
    }
    // A person's post that comes from another machine of theirs is outgoing, without a state.
    let own = chat.say(0, "channel:eng", "mine", "");
    let other = chat.lines(1, "channel:eng");
    assert_eq!(id(&other[2]), id(&own));
    assert!(flag(&other[2], "out") && other[2].get("state").is_none());
    assert_eq!(number_at(&chat.conversations(1)[0], "unread"), 1, "only bob's");
    // So is an own agent's post.
    let conn = chat.world.session(0, 'a', "lead", "codex");
    let sent = chat.agent_says(0, conn, 'a', "#eng", "built");
    assert_eq!(text(&sent, "to"), "#eng");
    for number in 0..4 {
        let lines = chat.lines(number, "channel:eng");
        assert_eq!((flag(&lines[3], "out"), text(&lines[3], "agent")), (number < 2, "lead"));
    }
}

/// §6.8 `invite`, "Joining later".
#[test]
fn an_invited_person_gets_the_record_and_no_earlier_lines() {
    let mut chat = created(&THREE, r#""bob""#);
    chat.say(0, "channel:eng", "before", "");
    let after = chat.ok(2, "channel.invite", r#"{"name":"eng","persons":["carol","bob"]}"#);
    let persons = at(&after, "conversation.persons").as_array().unwrap().len();
    assert_eq!(persons, 3, "who is a member already is skipped");
    assert_eq!(chat.texts(3, "channel:eng"), ["bob added carol to #eng"]);
    assert_eq!(chat.members(3, "channel:eng"), ["alice", "bob", "carol"]);
    assert_eq!(text(&chat.conversations(3)[0], "creator"), "alice");
    for number in 0..3 {
        assert_eq!(chat.texts(number, "channel:eng").last().unwrap(), "bob added carol to #eng");
        assert_eq!(chat.members(number, "channel:eng"), ["alice", "bob", "carol"]);
    }
    chat.say(3, "channel:eng", "thanks", "");
    for number in 0..4 {
        assert_eq!(chat.texts(number, "channel:eng").last().unwrap(), "thanks");
    }
    for persons in [r#"["carol"]"#, r#"["alice","bob"]"#] {
        let invite = format!(r#"{{"name":"eng","persons":{persons}}}"#);
        assert_eq!(chat.refused(0, "channel.invite", &invite), "invalid_request");
    }
}

/// §6.8 `leave`: also from another machine of the person, everything is gone there.
#[test]
fn leaving_deletes_the_channel_on_all_own_machines() {
    let mut chat = created(&THREE, r#""bob","carol""#);
    chat.say(2, "channel:eng", "hello", "");
    chat.events(0);
    chat.events(1);
    chat.ok(0, "channel.leave", r#"{"name":"eng"}"#);
    for number in [0, 1] {
        assert!(chat.conversations(number).is_empty());
        let read = r#"{"conversation":"channel:eng"}"#;
        assert_eq!(chat.refused(number, "conv.read", read), "not_found");
        assert_eq!(
            chat.refused(number, "conv.markRead", r#"{"conversation":"channel:eng","upTo":9}"#),
            "not_found"
        );
        let hits = chat.ok(number, "search", r#"{"query":"hello"}"#);
        assert!(at(&hits, "hits").as_array().unwrap().is_empty());
        let events = chat.world.events(number, "conv");
        let last = events.last().unwrap();
        assert_eq!((text(last, "change"), text(last, "person")), ("deleted", "alice"));
        assert_eq!(last.get("id"), Some(&messaging_proto::json::Value::Null));
    }
    for number in [2, 3] {
        assert_eq!(chat.texts(number, "channel:eng").last().unwrap(), "alice left #eng");
        assert_eq!(chat.members(number, "channel:eng"), ["bob", "carol"]);
    }
    assert_eq!(chat.refused(0, "person.send", r#"{"conversation":"channel:eng","text":"x"}"#), "not_found");
    assert_eq!(chat.refused(0, "channel.leave", r#"{"name":"eng"}"#), "not_found");
    // Its rows are gone, not only hidden: but for when it ended, and what counts.
    let left: Vec<_> = chat.world.nodes[0]
        .base
        .iter()
        .map(|(table, ..)| table.0)
        .filter(|table| table.starts_with("chat_") || table.starts_with("channel"))
        .collect();
    assert_eq!(left, ["channel_ended"]);
}

/// §6.8 `remove`: a third person is out, and the others know.
#[test]
fn a_removed_person_loses_the_channel() {
    let mut chat = created(&THREE, r#""bob","carol""#);
    let shown = chat.ok(0, "channel.remove", r#"{"name":"eng","persons":["carol"]}"#);
    assert_eq!(at(&shown, "conversation.persons").as_array().unwrap().len(), 2);
    assert!(chat.conversations(3).is_empty());
    for number in 0..3 {
        assert_eq!(chat.texts(number, "channel:eng").last().unwrap(), "alice removed carol from #eng");
        assert_eq!(chat.members(number, "channel:eng"), ["alice", "bob"]);
    }
    chat.say(2, "channel:eng", "secret", "");
    assert!(chat.conversations(3).is_empty());
    assert_eq!(text(&chat.lines(2, "channel:eng")[2], "state"), "delivered", "carol is not waited for");
    // A person who was removed may not come back at once: the receiver refuses, and the inviter is told.
    chat.ok(2, "channel.invite", r#"{"name":"eng","persons":["carol"]}"#);
    let last = chat.lines(2, "channel:eng").pop().unwrap();
    assert_eq!(text(&last, "text"), "carol did not get a change of #eng: forbidden");
    assert!(flag(&last, "notice") && flag(&last, "out"));
    assert!(chat.conversations(3).is_empty());
}

/// §8.2 `channel.remove`: by its creator or a team's admin, whoever is a member; each refusal with its code.
#[test]
fn who_may_remove() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop", "carol/tower", "dave/box"]);
    chat.ok(1, "channel.create", r#"{"name":"ops","persons":["alice","carol","dave"]}"#);
    let remove = |persons: &str| format!(r#"{{"name":"ops","persons":[{persons}]}}"#);
    assert_eq!(chat.refused(2, "channel.remove", &remove(r#""dave""#)), "forbidden");
    assert_eq!(chat.refused(2, "channel.remove", &remove(r#""nobody""#)), "forbidden");
    assert_eq!(chat.refused(1, "channel.remove", &remove(r#""bob""#)), "invalid_request");
    assert_eq!(chat.refused(1, "channel.remove", &remove(r#""bob","nobody""#)), "invalid_request");
    assert_eq!(chat.refused(1, "channel.remove", &remove(r#""nobody""#)), "not_found");
    assert_eq!(chat.refused(1, "channel.remove", &remove(r#""dave","dave""#)), "invalid_request");
    assert_eq!(chat.refused(1, "channel.remove", r#"{"name":"eng","persons":["dave"]}"#), "not_found");
    // alice is the roster's admin, and did not create it.
    chat.ok(0, "channel.remove", &remove(r#""dave""#));
    assert!(chat.conversations(3).is_empty());
    assert_eq!(chat.members(2, "channel:ops"), ["bob", "alice", "carol"]);
    // The creator may go, and be none the less the creator.
    chat.ok(1, "channel.leave", r#"{"name":"ops"}"#);
    assert_eq!(text(&chat.conversations(2)[0], "creator"), "bob");
}

/// §6.8: two persons create a channel of one name at once; local names keep them apart.
#[test]
fn a_name_that_is_taken_gets_a_number_here() {
    let mut chat = Chat::new(&["alice/desk", "bob/laptop"]);
    chat.world.link(0, false);
    chat.ok(0, "channel.create", r#"{"name":"eng","persons":["bob"]}"#);
    chat.ok(1, "channel.create", r#"{"name":"eng","persons":["alice"]}"#);
    chat.world.link(0, true);
    for number in [0, 1] {
        let list = chat.conversations(number);
        let local = list.iter().find(|one| text(one, "conversation") == "channel:eng-2").unwrap();
        assert_eq!(text(local, "name"), "eng");
        assert_eq!(text(local, "creator"), ["bob", "alice"][number]);
    }
    // Rooms go by the local name, envelopes by the channel's own.
    chat.say(0, "channel:eng-2", "to bob's", "");
    assert_eq!(chat.texts(1, "channel:eng").last().unwrap(), "to bob's");
    assert_eq!(text(&chat.lines(0, "channel:eng-2").pop().unwrap(), "state"), "delivered");
    let hits = chat.ok(0, "search", r#"{"query":"bob's","conversation":"channel:eng-2"}"#);
    assert_eq!(text(&hits, "hits.0.conversation"), "channel:eng-2");
    let read = chat.ok(0, "conv.markRead", r#"{"conversation":"channel:eng-2","upTo":100}"#);
    assert_eq!(number_at(&read, "unread"), 0);
    chat.ok(0, "channel.leave", r#"{"name":"eng-2"}"#);
    assert_eq!(chat.members(1, "channel:eng"), ["bob"]);
    assert_eq!(chat.refused(0, "channel.create", r#"{"name":"eng","persons":["bob"]}"#), "invalid_request");
}

/// §6.8: a person without a machine is a member of nothing, and is not waited for.
#[test]
fn a_person_who_left_the_team_leaves_every_channel() {
    let mut chat = created(&THREE, r#""bob","carol""#);
    chat.world.link(3, false);
    chat.say(0, "channel:eng", "hello", "");
    assert_eq!(text(&chat.lines(0, "channel:eng")[1], "state"), "sent");
    let before = chat.lines(2, "channel:eng").len();
    let machine = chat.world.machine(3);
    chat.world.reroster(|author| author.member_remove(&machine).unwrap());
    for number in 0..3 {
        assert_eq!(chat.members(number, "channel:eng"), ["alice", "bob"]);
    }
    assert_eq!(chat.lines(2, "channel:eng").len(), before, "no notice");
    // Her only copy of the line ended with her.
    let line = chat.lines(0, "channel:eng").remove(1);
    assert_eq!((text(&line, "state"), text(&line, "refused.0")), ("refused", "carol"));
    let line = chat.say(0, "channel:eng", "again", "");
    assert_eq!(text(&line, "state"), "sent");
    assert_eq!(text(&chat.lines(0, "channel:eng").pop().unwrap(), "state"), "delivered");
    for (method, params) in [
        ("channel.invite", r#"{"name":"eng","persons":["carol"]}"#),
        ("channel.create", r#"{"name":"ops","persons":["carol"]}"#),
        ("person.send", r#"{"conversation":"dm:carol","text":"x"}"#),
    ] {
        assert_eq!(chat.refused(0, method, params), "not_found", "{method}");
    }
    // The chat that was is still read.
    chat.ok(0, "conv.read", r#"{"conversation":"channel:eng"}"#);
}

/// contract ipc §4 `channel.create`: each refusal, in the order of the table.
#[test]
fn what_cannot_be_created() {
    let mut chat = created(&["alice/desk", "bob/laptop"], r#""bob""#);
    let many: Vec<String> = (0..31).map(|number| format!(r#""p{number}""#)).collect();
    let many = many.join(",");
    for (params, code) in [
        (r#"{"name":"eng","persons":["bob"]}"#.to_owned(), "invalid_request"),
        (r#"{"name":"ops","persons":["bob","bob"]}"#.to_owned(), "invalid_request"),
        (r#"{"name":"ops","persons":["alice"]}"#.to_owned(), "invalid_request"),
        (r#"{"name":"ops","persons":["bob","nobody"]}"#.to_owned(), "not_found"),
        (r#"{"name":"ops","persons":[]}"#.to_owned(), "invalid_request"),
        (r#"{"name":"Ops","persons":["bob"]}"#.to_owned(), "invalid_request"),
        (format!(r#"{{"name":"ops","persons":[{many}]}}"#), "not_found"),
        (format!(r#"{{"name":"ops","persons":[{many},"p31"]}}"#), "invalid_request"),
        (r#"{"name":"ops","persons":["bob"],"x":1}"#.to_owned(), "invalid_request"),
    ] {
        assert_eq!(chat.refused(0, "channel.create", &params), code, "{params}");
    }
    for number in 1..200 {
        let conn = chat.admin[0];
        let params = format!(r#"{{"name":"c{number}","persons":["bob"]}}"#);
        chat.world.ok(0, conn, "channel.create", &params);
        // As fast as the receiver takes them.
        chat.world.pass(if number % 50 == 0 { 60_000 } else { 0 });
    }
    assert_eq!(chat.refused(0, "channel.create", r#"{"name":"c200","persons":["bob"]}"#), "invalid_request");
    // §8.2: the list has its limit, and its default.
    let all = chat.ok(0, "conv.list", r#"{"limit":200}"#);
    assert_eq!(at(&all, "conversations").as_array().unwrap().len(), 200);
    let some = chat.conversations(0);
    assert_eq!(some.len(), 100);
    assert_eq!(text(&some[0], "conversation"), "channel:c199", "newest first");
    // The receiver's own limit.
    assert_eq!(chat.conversations(1).len(), 100);
    chat.ok(1, "channel.leave", r#"{"name":"eng"}"#);
    chat.ok(1, "channel.create", r#"{"name":"mine","persons":["alice"]}"#);
    let last = chat.lines(1, "channel:mine").pop().unwrap();
    assert_eq!(text(&last, "text"), "alice did not get a change of #mine: rate_limited");
}
