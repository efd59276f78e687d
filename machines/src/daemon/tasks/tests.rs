//! Tasks between machines: the life of one, cancels, follow-ups, delegation, ends.

use crate::daemon::io::IpcId;
use crate::daemon::testing::{World, at, key, text};
use messaging_proto::json::Value;

fn world(machines: &[&str]) -> World {
    let mut world = World::new(machines);
    for number in 0..machines.len() {
        for person in ["alice", "bob", "carol"] {
            let admin = world.connect(number);
            let grant = format!(r#"{{"subject":{{"person":"{person}"}},"ask":"open"}}"#);
            let _ = world.call(number, admin, "grant.set", &grant);
        }
    }
    world
}

fn ask(
    world: &mut World,
    number: usize,
    conn: IpcId,
    letter: char,
    to: &str,
    more: &str,
) -> (String, String) {
    let params = format!(
        r#"{{"key":"{}","to":"{to}","kind":"task","parts":[{{"text":"do it"}}]{more}}}"#,
        key(letter)
    );
    let sent = world.ok(number, conn, "msg.send", &params);
    let ids = (text(&sent, "results.0.taskId").to_owned(), text(&sent, "results.0.envelopeId").to_owned());
    world.run();
    ids
}

fn task(world: &mut World, number: usize, conn: IpcId, letter: char, id: &str) -> Value {
    let params = format!(r#"{{"key":"{}","taskId":"{id}"}}"#, key(letter));
    at(&world.ok(number, conn, "task.get", &params), "task").clone()
}

fn update(world: &mut World, number: usize, conn: IpcId, letter: char, id: &str, more: &str) -> Value {
    let params = format!(r#"{{"key":"{}","taskId":"{id}"{more}}}"#, key(letter));
    let result = world.ok(number, conn, "task.update", &params);
    world.run();
    at(&result, "task").clone()
}

fn state(name: &str) -> String {
    format!(r#","state":"TASK_STATE_{name}""#)
}

#[test]
fn a_task_is_worked_on_and_completed() {
    let mut world = world(&["alice/desk", "bob/laptop"]);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let (id, request) = ask(&mut world, 0, alice, 'a', "bob/agent", "");
    let mine = task(&mut world, 0, alice, 'a', &id);
    assert_eq!(text(&mine, "state"), "TASK_STATE_SUBMITTED");
    assert_eq!(text(&mine, "role"), "requester");
    assert_eq!(text(&mine, "peer.address"), "bob/agent@laptop");
    assert_eq!(text(&mine, "title"), "do it");
    assert_eq!(text(&mine, "requestId"), request);
    assert_eq!(at(&mine, "chain.depth"), &Value::int(1));
    let theirs = task(&mut world, 1, bob, 'b', &id);
    assert_eq!(text(&theirs, "role"), "executor");
    assert_eq!(text(&theirs, "history.0.id"), request);
    assert_eq!(text(&theirs, "chain.addresses.0"), "alice/lead@desk");
    let items = world.unread(1, bob, 'b');
    assert_eq!(text(&items[0], "kind"), "task");
    assert_eq!(text(&items[0], "taskId"), id);
    world.events(0, "task");

    update(&mut world, 1, bob, 'b', &id, &state("WORKING"));
    let artifact =
        r#","artifact":{"artifactId":"out","name":"Out","parts":[{"text":"one"}],"lastChunk":false}"#;
    update(&mut world, 1, bob, 'b', &id, artifact);
    let more = r#","artifact":{"artifactId":"out","parts":[{"text":"two"}],"append":true}"#;
    let done = format!(r#"{more}{},"message":[{{"text":"done"}}]"#, state("COMPLETED"));
    let record = update(&mut world, 1, bob, 'b', &id, &done);
    assert_eq!(text(&record, "state"), "TASK_STATE_COMPLETED");
    let mine = task(&mut world, 0, alice, 'a', &id);
    assert_eq!(text(&mine, "state"), "TASK_STATE_COMPLETED");
    assert_eq!(text(&mine, "statusPreview"), "done");
    assert_eq!(at(&mine, "artifacts").as_array().unwrap().len(), 1);
    assert_eq!(text(&mine, "artifacts.0.parts.1.text"), "two");
    assert_eq!(text(&mine, "artifacts.0.name"), "Out");
    let events = world.events(0, "task");
    let deltas: Vec<(bool, bool, &str)> = events
        .iter()
        .map(|event| {
            let update = at(event, "update");
            (update.get("status").is_some(), update.get("artifact").is_some(), text(event, "origin"))
        })
        .collect();
    assert_eq!(
        deltas,
        [(true, false, "peer"), (false, true, "peer"), (false, true, "peer"), (true, false, "peer")]
    );

    // Nothing leaves a terminal state.
    let again = format!(r#"{{"key":"{}","taskId":"{id}"{}}}"#, key('b'), state("WORKING"));
    assert_eq!(world.refused(1, bob, "task.update", &again), "invalid_state");
    let cancel = format!(r#"{{"key":"{}","taskId":"{id}"}}"#, key('a'));
    assert_eq!(world.refused(0, alice, "task.cancel", &cancel), "invalid_state");
    let list = world.ok(0, alice, "task.list", &format!(r#"{{"key":"{}"}}"#, key('a')));
    assert_eq!(at(&list, "total"), &Value::int(1));
}

/// Report 67: a cancel and a completion that cross end in one state on both sides, either way.
#[test]
fn report_67_cancel_and_completion_cross() {
    for first in ["cancel", "complete"] {
        let mut world = world(&["alice/desk", "bob/laptop"]);
        let alice = world.session(0, 'a', "lead", "codex");
        let bob = world.session(1, 'b', "agent", "codex");
        let (id, _) = ask(&mut world, 0, alice, 'a', "bob/agent", "");
        world.link(0, false);
        world.link(1, false);
        let cancel = format!(r#"{{"key":"{}","taskId":"{id}","reason":"never mind"}}"#, key('a'));
        world.ok(0, alice, "task.cancel", &cancel);
        world.ok(0, alice, "task.cancel", &cancel);
        if first == "complete" {
            update(&mut world, 1, bob, 'b', &id, &state("COMPLETED"));
        }
        world.link(0, true);
        world.link(1, true);
        world.run();
        let ends = [task(&mut world, 0, alice, 'a', &id), task(&mut world, 1, bob, 'b', &id)];
        let expected = if first == "cancel" { "TASK_STATE_CANCELED" } else { "TASK_STATE_COMPLETED" };
        for end in &ends {
            assert_eq!(text(end, "state"), expected, "{first}");
        }
        if first == "cancel" {
            assert_eq!(text(&ends[0], "status.message.0.text"), "never mind");
            let again = format!(r#"{{"key":"{}","taskId":"{id}"{}}}"#, key('b'), state("COMPLETED"));
            assert_eq!(world.refused(1, bob, "task.update", &again), "invalid_state");
        }
    }
}

#[test]
fn a_question_is_answered_by_a_follow_up() {
    let mut world = world(&["alice/desk", "bob/laptop"]);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let (id, request) = ask(&mut world, 0, alice, 'a', "bob/agent", "");
    let asking = format!(r#"{},"message":[{{"text":"which?"}}]"#, state("INPUT_REQUIRED"));
    update(&mut world, 1, bob, 'b', &id, &asking);
    let follow = format!(
        r#"{{"key":"{}","to":"bob/agent","parts":[{{"text":"the left"}}],"taskId":"{id}"}}"#,
        key('a')
    );
    let sent = world.ok(0, alice, "msg.send", &follow);
    let envelope = text(&sent, "results.0.envelopeId").to_owned();
    world.run();
    let items = world.unread(1, bob, 'b');
    assert_eq!(text(&items[0], "id"), envelope);
    assert_eq!(at(&items[0], "continuation"), &Value::Bool(true));
    assert_eq!(text(&items[0], "replyTo"), request);
    assert_eq!(text(&items[0], "contextId"), text(&task(&mut world, 1, bob, 'b', &id), "contextId"));
    let theirs = task(&mut world, 1, bob, 'b', &id);
    assert_eq!(text(&theirs, "history.1.id"), envelope);
    // Naming the request does not move it to replied.
    let stages = world.stages(0, alice, 'a', &request);
    assert_eq!(stages.last().unwrap(), "delivered");
    world.ok(1, bob, "item.read", &format!(r#"{{"key":"{}","id":"{envelope}"}}"#, key('b')));
    world.run();
    let mine = task(&mut world, 0, alice, 'a', &id);
    assert_eq!(text(&mine, "followUps.0.envelopeId"), envelope);
    assert_eq!(text(&mine, "followUps.0.stage"), "read");

    // An ended task is not followed up; another session's neither.
    update(&mut world, 1, bob, 'b', &id, &state("COMPLETED"));
    assert_eq!(world.refused(0, alice, "msg.send", &follow), "invalid_state");
    let other = world.session(0, 'c', "other", "codex");
    let foreign = follow.replace(&key('a'), &key('c'));
    assert_eq!(world.refused(0, other, "msg.send", &foreign), "not_found");
}

#[test]
fn a_task_is_delegated_two_hops_and_never_in_a_circle() {
    let mut world = world(&["alice/desk", "bob/laptop", "carol/tower"]);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let carol = world.session(2, 'c', "worker", "codex");
    let (first, _) = ask(&mut world, 0, alice, 'a', "bob/agent", "");
    let behalf = format!(r#","onBehalfOf":{{"taskId":"{first}","scope":["read"],"maxDepth":2}}"#);
    let (second, _) = ask(&mut world, 1, bob, 'b', "carol/worker", &behalf);
    let theirs = task(&mut world, 2, carol, 'c', &second);
    let chain: Vec<&str> =
        at(&theirs, "chain.addresses").as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert_eq!(chain, ["alice/lead@desk", "bob/agent@laptop", "carol/worker@tower"]);
    assert_eq!(at(&theirs, "chain.maxDepth"), &Value::int(2));
    assert_eq!(text(&theirs, "chain.scope.0"), "read");
    assert_eq!(text(&world.unread(2, carol, 'c')[0], "consent"), "guarded");

    // Back to alice would be a circle, and a third hop is too deep: rejected here, with the task on record.
    for to in ["alice/lead", "bob/agent"] {
        let again = format!(
            r#"{{"key":"{}","to":"{to}","kind":"task","parts":[{{"text":"x"}}],"onBehalfOf":{{"taskId":"{second}"}}}}"#,
            key('c')
        );
        let refused = world.ok(2, carol, "msg.send", &again);
        assert_eq!(text(&refused, "results.0.stage"), "rejected");
        assert_eq!(text(&refused, "results.0.code"), "forbidden");
        assert!(at(&refused, "results.0").get("expect").is_none());
        let id = text(&refused, "results.0.taskId").to_owned();
        let record = task(&mut world, 2, carol, 'c', &id);
        assert_eq!(text(&record, "state"), "TASK_STATE_REJECTED");
        assert_eq!(text(&record, "statusPreview"), "delivery rejected: forbidden");
    }
    let wider = format!(
        r#"{{"key":"{}","to":"carol/worker","kind":"task","parts":[{{"text":"x"}}],"onBehalfOf":{{"taskId":"{second}"}}}}"#,
        key('b')
    );
    assert_eq!(world.refused(1, bob, "msg.send", &wider), "not_found");
    let message = format!(
        r#"{{"key":"{}","to":"carol/worker","parts":[{{"text":"x"}}],"onBehalfOf":{{"taskId":"{first}"}}}}"#,
        key('b')
    );
    assert_eq!(world.refused(1, bob, "msg.send", &message), "invalid_request");
}

#[test]
fn a_question_left_alone_fails_after_a_day() {
    let mut world = world(&["alice/desk", "bob/laptop"]);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let (id, _) = ask(&mut world, 0, alice, 'a', "bob/agent", "");
    update(&mut world, 1, bob, 'b', &id, &state("INPUT_REQUIRED"));
    world.link(0, false);
    world.link(1, false);
    world.pass(86_399_000);
    assert_eq!(text(&task(&mut world, 1, bob, 'b', &id), "state"), "TASK_STATE_INPUT_REQUIRED");
    world.pass(62_000);
    world.link(0, true);
    world.link(1, true);
    for (number, conn, letter) in [(1, bob, 'b'), (0, alice, 'a')] {
        let record = task(&mut world, number, conn, letter, &id);
        assert_eq!(text(&record, "state"), "TASK_STATE_FAILED");
        assert_eq!(text(&record, "statusPreview"), "timed out waiting for input");
    }
}

#[test]
fn a_request_that_never_arrives_ends_the_record() {
    let mut world = world(&["alice/desk", "bob/laptop"]);
    let alice = world.session(0, 'a', "lead", "codex");
    world.session(1, 'b', "agent", "codex");
    // Refused by its recipient's daemon.
    let (gone, _) = ask(&mut world, 0, alice, 'a', "bob/ghost@laptop", "");
    let record = task(&mut world, 0, alice, 'a', &gone);
    assert_eq!(text(&record, "state"), "TASK_STATE_REJECTED");
    assert_eq!(text(&record, "statusPreview"), "delivery rejected: unknown_session");
    // Refused by the relay.
    world.nodes[0].refuse.push_back((messaging_proto::Code::NotMember, None));
    let (refused, _) = ask(&mut world, 0, alice, 'a', "bob/agent", "");
    let record = task(&mut world, 0, alice, 'a', &refused);
    assert_eq!(text(&record, "statusPreview"), "delivery rejected: not_member");
    // Never taken by the relay within its lifetime.
    world.link(0, false);
    let (expired, envelope) = ask(&mut world, 0, alice, 'a', "bob/agent", "");
    world.events(0, "task");
    world.link(1, false);
    world.pass(604_800_000 + 61_000);
    let record = task(&mut world, 0, alice, 'a', &expired);
    assert_eq!(text(&record, "state"), "TASK_STATE_FAILED");
    assert_eq!(text(&record, "statusPreview"), "delivery failed: expired");
    assert_eq!(world.stages(0, alice, 'a', &envelope), ["accepted", "expired"]);
    let events = world.events(0, "task");
    assert_eq!(text(&events[0], "origin"), "peer");
}

#[test]
fn a_terminal_runs_no_task() {
    let mut world = world(&["alice/desk", "bob/laptop"]);
    let alice = world.session(0, 'a', "lead", "codex");
    world.session(0, 't', "cli", "cli");
    world.session(1, 'u', "cli", "cli");
    let params =
        format!(r#"{{"key":"{}","to":"alice/cli","kind":"task","parts":[{{"text":"x"}}]}}"#, key('a'));
    let sent = world.ok(0, alice, "msg.send", &params);
    assert_eq!(text(&sent, "results.0.stage"), "rejected");
    assert_eq!(text(&sent, "results.0.code"), "refused");
    let (id, _) = ask(&mut world, 0, alice, 'a', "bob/cli", "");
    assert_eq!(text(&task(&mut world, 0, alice, 'a', &id), "statusPreview"), "delivery rejected: refused");
}

#[test]
fn two_sessions_of_one_machine_work_without_a_relay() {
    let mut world = world(&["alice/desk"]);
    world.link(0, false);
    let lead = world.session(0, 'a', "lead", "codex");
    let work = world.session(0, 'w', "work", "codex");
    let params =
        format!(r#"{{"key":"{}","to":"alice/work","kind":"task","parts":[{{"text":"x"}}]}}"#, key('a'));
    let sent = world.ok(0, lead, "msg.send", &params);
    assert_eq!(text(&sent, "results.0.stage"), "delivered");
    let id = text(&sent, "results.0.taskId").to_owned();
    assert_eq!(text(&world.unread(0, work, 'w')[0], "consent"), "self");
    assert_eq!(text(&task(&mut world, 0, work, 'w', &id), "role"), "executor");
    assert_eq!(text(&task(&mut world, 0, lead, 'a', &id), "role"), "requester");
    update(&mut world, 0, work, 'w', &id, &state("WORKING"));
    update(&mut world, 0, work, 'w', &id, &state("COMPLETED"));
    assert_eq!(text(&task(&mut world, 0, lead, 'a', &id), "state"), "TASK_STATE_COMPLETED");
    let itself =
        format!(r#"{{"key":"{}","to":"alice/lead","kind":"task","parts":[{{"text":"x"}}]}}"#, key('a'));
    let circle = world.ok(0, lead, "msg.send", &itself);
    assert_eq!(text(&circle, "results.0.code"), "forbidden");
}

#[test]
fn the_order_of_checks_is_the_contracts() {
    let mut world = world(&["alice/desk", "bob/laptop"]);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let (id, _) = ask(&mut world, 0, alice, 'a', "bob/agent", "");
    let call = |letter: char, more: &str| format!(r#"{{"key":"{}","taskId":"{id}"{more}}}"#, key(letter));
    let secret = r#""message":[{"text":"ghp_0123456789abcdefABCDEF0123456789abcd"}]"#;
    let unknown = call('b', "").replace(&id, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
    assert_eq!(world.refused(1, bob, "task.update", &unknown), "not_found");
    assert_eq!(world.refused(0, alice, "task.update", &call('a', &format!(",{secret}"))), "invalid_state");
    assert_eq!(world.refused(1, bob, "task.update", &call('b', &format!(",{secret}"))), "secret_refused");
    assert_eq!(world.refused(1, bob, "task.update", &call('b', "")), "invalid_request");
    let words = call('b', r#","message":[{"text":"x"}]"#);
    assert_eq!(world.refused(1, bob, "task.update", &words), "invalid_request");
    assert_eq!(world.refused(1, bob, "task.cancel", &call('b', "")), "invalid_state");
    assert_eq!(world.refused(1, bob, "task.update", &call('b', &state("SUBMITTED"))), "invalid_state");
    assert_eq!(world.refused(1, bob, "task.update", &call('b', &state("DONE"))), "invalid_request");
    assert_eq!(world.refused(1, bob, "task.get", &call('b', r#","more":1"#)), "invalid_request");
}

#[test]
fn lists_are_newest_first_filtered_and_paged() {
    let mut world = world(&["alice/desk", "bob/laptop"]);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(ask(&mut world, 0, alice, 'a', "bob/agent", "").0);
        world.pass(5_000);
    }
    update(&mut world, 1, bob, 'b', &ids[1], &state("WORKING"));
    let mut listed = |more: &str| {
        let params = format!(r#"{{"key":"{}"{more}}}"#, key('a'));
        let result = world.ok(0, alice, "task.list", &params);
        let tasks = at(&result, "tasks").as_array().unwrap().iter();
        let tasks: Vec<String> = tasks.map(|task| text(task, "taskId").to_owned()).collect();
        (tasks, result.get("nextCursor").map(|cursor| cursor.as_str().unwrap().to_owned()))
    };
    let order = [&ids[1], &ids[4], &ids[3], &ids[2], &ids[0]].map(Clone::clone);
    assert_eq!(listed("").0, order);
    let (first, cursor) = listed(r#","limit":2"#);
    assert_eq!(first, order[..2]);
    let (second, cursor) = listed(&format!(r#","limit":2,"cursor":"{}""#, cursor.unwrap()));
    assert_eq!(second, order[2..4]);
    let (third, cursor) = listed(&format!(r#","limit":2,"cursor":"{}""#, cursor.unwrap()));
    assert_eq!((third, cursor), (order[4..].to_vec(), None));
    assert_eq!(listed(r#","state":["TASK_STATE_WORKING"]"#).0, order[..1]);
    assert_eq!(listed(r#","role":"executor""#).0.len(), 0);
    assert_eq!(listed(r#","peer":"bob/agent@laptop""#).0.len(), 5);
    assert_eq!(listed(r#","peer":"bob/other@laptop""#).0.len(), 0);
    let bad = format!(r#"{{"key":"{}","cursor":"x"}}"#, key('a'));
    assert_eq!(world.refused(0, alice, "task.list", &bad), "invalid_request");
}

/// Report 65: a restart of either side loses no task and runs none twice.
#[test]
fn report_65_tasks_survive_every_restart() {
    let mut world = world(&["alice/desk", "bob/laptop"]);
    world.crashing = true;
    let alice = world.session(0, 'a', "lead", "codex");
    world.session(1, 'b', "agent", "codex");
    let (id, _) = ask(&mut world, 0, alice, 'a', "bob/agent", "");
    world.start(1);
    let bob = world.session(1, 'b', "agent", "codex");
    assert_eq!(world.unread(1, bob, 'b').len(), 1);
    update(&mut world, 1, bob, 'b', &id, &state("WORKING"));
    world.start(0);
    let alice = world.session(0, 'a', "lead", "codex");
    assert_eq!(text(&task(&mut world, 0, alice, 'a', &id), "state"), "TASK_STATE_WORKING");
    world.start(1);
    let bob = world.session(1, 'b', "agent", "codex");
    update(&mut world, 1, bob, 'b', &id, &state("COMPLETED"));
    let alice = world.session(0, 'a', "lead", "codex");
    assert_eq!(text(&task(&mut world, 0, alice, 'a', &id), "state"), "TASK_STATE_COMPLETED");
    let bob = world.session(1, 'b', "agent", "codex");
    assert_eq!(world.unread(1, bob, 'b').len(), 1, "asked once");
}
