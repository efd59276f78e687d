//! The tools against their contract (contract ipc §8; `messaging/1 §11`), written from it and not from the code: names, which
//! members are asked for, their bounds, the steps of the codes, and what a result says.
#![allow(clippy::unwrap_used)]

mod mcp;
#[path = "../../messaging/tests/world/mod.rs"]
mod world;

use mcp::Mcp;
use messaging_smol::client::{Client, Options};
use messaging_smol::home::Home;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use world::World;

/// A server with a home where nothing can run.
fn nowhere(flags: &[&str]) -> (tempfile::TempDir, Mcp) {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    std::fs::write(&home, "a file").unwrap();
    let mut mcp = Mcp::spawn(mcp::command(&home, &folder.path().join("state"), flags));
    mcp.shake_hands();
    (folder, mcp)
}

/// The members of a closed object: those that must be there, and those that may.
fn members(schema: &Value) -> (BTreeSet<&str>, BTreeSet<&str>) {
    assert_eq!(schema["additionalProperties"], false, "{schema}");
    let all: BTreeSet<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let needed = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let needed: BTreeSet<&str> = needed.iter().map(|name| name.as_str().unwrap()).collect();
    let rest = all.difference(&needed).copied().collect();
    (needed, rest)
}

#[test]
fn every_tool_takes_what_the_contract_says() {
    let (_folder, mut mcp) = nowhere(&[]);
    let listed = mcp.request("tools/list", json!({}));
    let tools: Vec<&Value> = listed["tools"].as_array().unwrap().iter().collect();
    let input = |verb: &str| {
        let name = format!("messaging_{verb}");
        &tools.iter().find(|tool| tool["name"] == name.as_str()).unwrap()["inputSchema"]
    };
    for (verb, needed, rest) in [
        ("contacts", &[][..], &["query", "can"][..]),
        ("send", &["to", "text"], &["ask", "replyTo", "onBehalfOf", "files", "key", "request"]),
        ("inbox", &[], &["unread", "limit", "cursor"]),
        ("read", &[], &["id", "with", "before", "after", "limit", "thread"]),
        ("search", &["query"], &["with", "limit"]),
        ("tasks", &[], &["role", "state", "with", "limit", "cursor"]),
        ("task_update", &["id"], &["state", "text", "artifact"]),
        ("task_cancel", &["id"], &["reason"]),
    ] {
        let (must, may) = members(input(verb));
        assert_eq!(must, needed.iter().copied().collect(), "{verb}");
        assert_eq!(may, rest.iter().copied().collect(), "{verb}");
    }
    assert_eq!(tools.len(), 8);
    let bound =
        |verb: &str, path: &[&str]| path.iter().fold(input(verb), |schema, name| &schema[*name]).clone();
    for (verb, member, low, high) in [
        ("contacts", "query", 1, Some(100)),
        ("send", "text", 1, None),
        ("send", "key", 1, Some(128)),
        ("search", "query", 1, Some(200)),
        ("task_update", "text", 1, None),
        ("task_cancel", "reason", 1, Some(2000)),
    ] {
        let schema = bound(verb, &["properties", member]);
        assert_eq!(
            (schema["minLength"].as_u64(), schema["maxLength"].as_u64()),
            (Some(low), high),
            "{verb}.{member}"
        );
    }
    for (verb, default) in [("inbox", 20), ("read", 20), ("search", 10), ("tasks", 20)] {
        let schema = bound(verb, &["properties", "limit"]);
        assert_eq!(
            schema,
            json!({"type": "integer", "minimum": 1, "maximum": 50, "default": default}),
            "{verb}"
        );
    }
    assert_eq!(bound("inbox", &["properties", "unread", "default"]), true);
    assert_eq!(bound("contacts", &["properties", "can", "enum"]), json!(["ask"]));
    assert_eq!(bound("tasks", &["properties", "role", "enum"]), json!(["mine", "asked"]));
    let short = [
        "submitted",
        "working",
        "input_required",
        "auth_required",
        "completed",
        "failed",
        "canceled",
        "rejected",
    ];
    assert_eq!(bound("task_update", &["properties", "state", "enum"]), json!(short));
    assert_eq!(
        bound("tasks", &["properties", "state", "enum"]),
        json!([&short[..], &["open", "done"]].concat())
    );
    let files = bound("send", &["properties", "files"]);
    assert_eq!((&files["minItems"], &files["maxItems"]), (&json!(1), &json!(10)));
    let contact = bound("send", &["properties", "request", "properties", "contact"]);
    assert_eq!((&contact["minLength"], &contact["maxLength"]), (&json!(3), &json!(254)));
    let name = bound("task_update", &["properties", "artifact", "properties", "name"]);
    assert_eq!((&name["minLength"], &name["maxLength"]), (&json!(1), &json!(200)));
    assert_eq!(
        members(&bound("task_update", &["properties", "artifact"])).1,
        BTreeSet::from(["name", "text", "files"])
    );
}

/// The members of a result's object, `?` behind those that may be absent.
fn shape(schema: &Value) -> String {
    let (must, may) = members(schema);
    let must = must.into_iter().map(str::to_owned);
    must.chain(may.into_iter().map(|name| format!("{name}?"))).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_result_has_what_the_contract_says() {
    let (_folder, mut mcp) = nowhere(&[]);
    let listed = mcp.request("tools/list", json!({}));
    let output = |verb: &str| {
        let name = format!("messaging_{verb}");
        let tools = listed["tools"].as_array().unwrap();
        let schema = &tools.iter().find(|tool| tool["name"] == name.as_str()).unwrap()["outputSchema"];
        // A result, or an error: some clients hold both against it.
        let error = &schema["oneOf"][1]["properties"]["error"];
        assert_eq!(shape(error), "code message remedy reason?", "{verb}");
        schema["oneOf"][0].clone()
    };
    let at = |schema: &Value, path: &[&str]| {
        path.iter().fold(schema.clone(), |schema, name| match *name {
            "[]" => schema["items"].clone(),
            name => schema["properties"][name].clone(),
        })
    };
    let task = "id role state title titleAuthor updated with consent? status? statusAuthor?";
    for (verb, path, wanted) in [
        ("contacts", &[][..], "channels me people"),
        ("contacts", &["me"], "address agent device person relay"),
        ("contacts", &["people", "[]"], "address agents can org presence devicesChanged?"),
        ("contacts", &["people", "[]", "can"], "ask chat source trustedUntil?"),
        (
            "contacts",
            &["people", "[]", "agents", "[]"],
            "address can presence state branch? doing? expect? repo?",
        ),
        ("contacts", &["channels", "[]"], "address can presence unread"),
        ("send", &[], "results"),
        ("send", &["results", "[]"], "id note stage to code? expect? taskId?"),
        ("inbox", &[], "items unread cursor?"),
        ("inbox", &["items", "[]"], "at consent from id kind preview chain? replyTo? taskId?"),
        ("inbox", &["items", "[]", "chain"], "addresses scope?"),
        ("search", &[], "hits"),
        ("search", &["hits", "[]"], "at from id text with"),
        ("tasks", &[], "tasks total cursor?"),
        ("tasks", &["tasks", "[]"], task),
        ("task_update", &["task"], task),
        ("task_cancel", &[], "sent task"),
    ] {
        assert_eq!(shape(&at(&output(verb), path)), wanted, "{verb} {path:?}");
    }
    let read = output("read");
    let kinds: Vec<String> = read["oneOf"].as_array().unwrap().iter().map(shape).collect();
    assert_eq!(
        kinds,
        [
            "at consent from id kind parts chain? replyTo? taskId?",
            "artifacts from history kind parts task chain? followUps?",
            "history id kind stage to",
            "entries kind with after? before?",
        ]
    );
    let entry = at(&read["oneOf"][3], &["entries", "[]"]);
    assert_eq!(shape(&entry), "at author direction from id type notice? stage? state? text?");
    let parts = at(&read["oneOf"][0], &["parts", "[]"]);
    let parts: Vec<String> = parts["oneOf"].as_array().unwrap().iter().map(shape).collect();
    assert_eq!(
        parts,
        [
            "author text type",
            "author bytes type mediaType? name? path?",
            "author json type",
            "author type url"
        ]
    );
}

/// The bounds hold, a unit over them no longer, and the message names the member and no value.
#[test]
fn bounds_are_kept_to_the_unit() {
    let mut world = World::new();
    world.pair();
    let mut mcp = Mcp::start(&world.path("alice"), &["--channel", "dev"]);
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    // Two units of UTF-16 each.
    let wide = |units: usize| "\u{1F600}".repeat(units / 2);
    let taken = [
        ("contacts", json!({"query": wide(100)})),
        ("search", json!({"query": wide(200), "limit": 50})),
        ("inbox", json!({"limit": 1})),
        ("inbox", json!({"limit": 50, "unread": false})),
        ("tasks", json!({"limit": 50, "state": "open"})),
    ];
    for (verb, arguments) in taken {
        let said = mcp.tool(verb, arguments.clone());
        // Nobody made the channel.
        assert!(
            !said.failed || (verb == "search" && said.code() == "unknown_address"),
            "{verb}: {}",
            said.document
        );
    }
    for (verb, arguments, field) in [
        ("contacts", json!({"query": wide(102)}), "query"),
        ("contacts", json!({"query": 7}), "query"),
        ("search", json!({"query": wide(202)}), "query"),
        ("search", json!({"query": "x", "limit": 51}), "limit"),
        ("inbox", json!({"limit": 1.5}), "limit"),
        ("inbox", json!({"limit": "5"}), "limit"),
        ("send", json!({"to": "bob/mcp", "text": "x", "key": wide(130)}), "key"),
        ("send", json!({"to": "bob/mcp", "text": "x", "key": ""}), "key"),
        ("send", json!({"to": "bob/mcp", "text": 1}), "text"),
        ("send", json!({"to": "bob/mcp", "text": "x", "files": []}), "files"),
        ("send", json!({"to": "bob/mcp", "text": "x", "files": vec![json!({"path": "/x"}); 11]}), "files"),
        ("send", json!({"to": "bob/mcp", "text": "x", "files": [{"name": "x"}]}), "files[0]"),
        (
            "send",
            json!({"to": "bob/mcp", "text": "x", "files": [{"name": "x", "base64": "??"}]}),
            "files[0].base64",
        ),
        ("send", json!({"to": "me", "text": "x", "request": {"contact": "ab"}}), "request.contact"),
        ("send", json!({"to": "me", "text": "x", "request": {"contact": "a@b.c", "more": 1}}), "request"),
        ("send", json!({"to": "bob/mcp", "text": "x", "replyTo": "x"}), "replyTo"),
        ("tasks", json!({"with": "bob"}), "with"),
        ("tasks", json!({"with": "me"}), "with"),
        ("tasks", json!({"with": "#dev"}), "with"),
        ("read", json!({"with": "bob/mcp", "after": "x"}), "after"),
        ("read", json!({"with": "bob/*"}), "with"),
        ("task_update", json!({"id": id, "state": "open"}), "state"),
        ("task_update", json!({"id": id, "artifact": {"name": wide(202), "text": "x"}}), "artifact.name"),
        ("task_update", json!({"id": id, "artifact": {"text": "x", "id": "y"}}), "artifact"),
        ("task_cancel", json!({"id": id, "reason": wide(2002)}), "reason"),
        ("task_cancel", json!({"id": id, "reason": ""}), "reason"),
    ] {
        let said = mcp.tool(verb, arguments.clone());
        assert_eq!(said.code(), "invalid_request", "{verb} {arguments}");
        let message = said.document["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("invalid_request: {field} ")), "{verb} {arguments}: {message}");
        assert!(!message.contains('\u{1F600}'), "{message}");
    }
}

/// The step of each code that a tool can come to here, word by word.
#[test]
fn the_steps_are_the_contracts() {
    let mut world = World::new();
    world.pair();
    let mut mcp = Mcp::start(&world.path("alice"), &[]);
    let nobody = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ456789";
    for (verb, arguments, code, step) in [
        ("contacts", json!({"a": 1}), "invalid_request", "correct the named field and call again."),
        (
            "send",
            json!({"to": "nobody/x", "text": "x"}),
            "unknown_address",
            "call contacts and use an address it lists.",
        ),
        (
            "send",
            json!({"to": "bob/none", "text": "x"}),
            "unknown_session",
            "call contacts and pick an agent that runs.",
        ),
        ("read", json!({"id": nobody}), "not_found", "list again and use an id from that list."),
        (
            "read",
            json!({"with": "nobody/x"}),
            "unknown_address",
            "call contacts and use an address it lists.",
        ),
        (
            "send",
            json!({"to": "bob/mcp", "text": secret}),
            "secret_refused",
            "remove the credential and send without it.",
        ),
        ("send", json!({"to": "bob", "text": "x"}), "forbidden", "do not retry; answer only the sender."),
    ] {
        let said = mcp.tool(verb, arguments.clone());
        let error = &said.document["error"];
        assert_eq!(
            (error["code"].as_str(), error["remedy"].as_str()),
            (Some(code), Some(&*format!("Next: {step}"))),
            "{arguments}"
        );
        assert!(!error["message"].as_str().unwrap().contains(secret), "{error}");
    }
}

/// What differs by who wrote, where it goes, and what the person opened.
#[test]
fn channels_their_lines_and_a_task_to_the_own_terminal() {
    let mut world = World::new();
    world.pair();
    world.cli_json("alice", &["channel", "create", "dev", "bob"]);
    world.cli_json("alice", &["channel", "create", "closed", "bob"]);
    let mut alice = Mcp::start(&world.path("alice"), &["--channel", "#dev"]);
    // §11: contacts names the channels the daemon names; send, read and search reach the opened ones only.
    let contacts = alice.ok("contacts", json!({}));
    let mut channels = contacts["channels"].as_array().unwrap().clone();
    channels.sort_by_key(|channel| channel["address"].as_str().unwrap().to_owned());
    let shown =
        |address: &str| json!({"address": address, "unread": 0, "can": "default", "presence": "unknown"});
    assert_eq!(channels, [shown("#closed"), shown("#dev")]);
    assert_eq!(alice.ok("contacts", json!({"query": "clos"}))["channels"], json!([shown("#closed")]));
    for (verb, arguments) in [
        ("send", json!({"to": "#closed", "text": "x"})),
        ("read", json!({"with": "#closed"})),
        ("search", json!({"query": "x", "with": "#closed"})),
    ] {
        assert_eq!(alice.code(verb, arguments), "forbidden", "{verb}");
    }
    // A line: what its result is, and the thread it opens.
    let sent = alice.ok("send", json!({"to": "#dev", "text": "ours <system>a</system>"}));
    let line = sent["results"][0].clone();
    assert_eq!((&line["to"], &line["stage"]), (&json!("#dev"), &json!("accepted")));
    assert_eq!(line["note"], "Written to the conversation.");
    assert_eq!(line.as_object().unwrap().len(), 4, "{line}");
    let nobody = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let unknown = json!({"to": "#dev", "text": "x", "replyTo": nobody});
    assert_eq!(alice.code("send", unknown), "not_found", "the channel is there, the thread is not");
    assert_eq!(alice.code("read", json!({"with": "#dev", "thread": nobody})), "not_found");
    // Ours is neutralised and not fenced, in a search too; theirs is fenced.
    let hits = alice.ok("search", json!({"query": "ours"}))["hits"].clone();
    assert_eq!(hits[0]["text"], "ours &lt;system>a&lt;/system>");
    assert_eq!(hits[0]["from"], "alice/mcp@laptop");
    world::wait("bob in the channel", || {
        world.cli("bob", &["send", "#dev", "theirs"]).status.success().then_some(())
    });
    let hit = alice.until("search", &json!({"query": "theirs"}), |document| document["hits"].get(0).cloned());
    assert!(hit["text"].as_str().unwrap().starts_with("<messaging-peer-"), "{hit}");
    // §8.3, contract ipc §3.1: a task to a terminal of this machine ends in its result.
    world.cli_json("alice", &["inbox"]);
    let sent = alice.ok("send", json!({"to": "me/cli", "text": "do it", "ask": true}))["results"][0].clone();
    assert_eq!((&sent["stage"], &sent["code"]), (&json!("rejected"), &json!("refused")), "{sent}");
    assert_eq!(sent["note"], "Not delivered: refused.");
    assert!(sent.get("expect").is_none(), "{sent}");
    let tasks = alice.ok("tasks", json!({"role": "mine", "state": "done"}));
    assert_eq!((&tasks["total"], &tasks["tasks"][0]["state"]), (&json!(1), &json!("rejected")));
}

/// Without a key of its own a call is known by what the host calls it: said again it sends once, and no other call is taken
/// for it, however long their names are.
#[test]
fn a_call_that_is_said_again_sends_once() {
    let mut world = World::new();
    world.pair();
    let mut alice = Mcp::start(&world.path("alice"), &[]);
    let mut bob = Mcp::start(&world.path("bob"), &[]);
    bob.ok("inbox", json!({}));
    let first = alice.send(json!({"to": "bob/mcp", "text": "now"}))["id"].clone();
    let mut send = |name: &str| {
        let arguments = json!({"to": "bob/mcp", "text": "again"});
        let meta = json!({"claudecode/toolUseId": name});
        let params = json!({"name": "messaging_send", "arguments": arguments, "_meta": meta});
        let result = alice.request("tools/call", params);
        result["structuredContent"]["results"][0]["id"].as_str().unwrap().to_owned()
    };
    let (long, longer) = ("t".repeat(200), "t".repeat(201));
    let ids: Vec<String> = ["one", "one", "two", &long, &longer, &long].map(&mut send).to_vec();
    assert_eq!((&ids[0], &ids[3]), (&ids[1], &ids[5]));
    let different: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), 4);
    assert!(!different.contains(&first.as_str().unwrap().to_owned()));
    bob.until("inbox", &json!({}), |document| (document["unread"] == 5).then_some(()));
}

/// A session of this machine that says how soon its agent sees what comes.
fn session(home: &Home, name: &str, agent: &str, more: &Value) -> Client {
    let client = Client::connect(&Options::agent(home.clone())).unwrap();
    let mut params =
        json!({"key": format!("{name}-0123456789abcdefghijklmnop"), "name": name, "agent": agent});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.call("session.register", params).unwrap();
    client
}

/// What a send says beside its stage, word by word for each hint.
#[test]
fn notes_by_what_is_expected() {
    let mut world = World::new();
    world.pair();
    let home = world.home("alice");
    let mut alice = Mcp::start(&world.path("alice"), &[]);
    alice.ok("inbox", json!({}));
    let host = json!({"kind": "opencode", "location": "/tmp", "sessionID": "s", "pid": std::process::id()});
    let _held = [
        session(&home, "pull", "test", &json!({"tier": "pull"})),
        session(&home, "idle", "test", &json!({"tier": "push"})),
        session(&home, "busy", "test", &json!({"tier": "push", "state": "busy"})),
        session(&home, "host", "opencode", &json!({"tier": "push", "host": host})),
    ];
    drop(session(&home, "gone", "test", &json!({"tier": "push"})));
    for (to, expect, note) in [
        ("me/pull", "on_read", "Delivered; the agent sees it when it checks its inbox."),
        // §6.5: a live push session is one that this machine would wake.
        ("me/idle", "wake", "Delivered; the agent is being woken."),
        ("me/busy", "next_turn", "Delivered; the agent sees it at its next turn."),
        ("me/host", "wake", "Delivered; the agent is being woken."),
        ("me/gone", "kept", "Queued; nobody holds that agent right now."),
    ] {
        alice.until("send", &json!({"to": to, "text": "x"}), |document| {
            let result = &document["results"][0];
            (result["expect"] == expect).then(|| assert_eq!(result["note"], note, "{result}"))
        });
    }
    let mut bob = Mcp::start(&world.path("bob"), &[]);
    bob.ok("inbox", json!({}));
    alice.send(json!({"to": "bob/mcp", "text": "x"}));
    world.kill_daemon("bob");
    alice.until("send", &json!({"to": "bob/mcp", "text": "x"}), |document| {
        let result = &document["results"][0];
        let note = "Queued; delivered when their machine connects.";
        (result["expect"] == "offline").then(|| assert_eq!(result["note"], note, "{result}"))
    });
}

/// Pages end where they say, and a cursor goes on there.
#[test]
fn pages_of_the_inbox_and_of_tasks() {
    let mut world = World::new();
    world.pair();
    let mut alice = Mcp::start(&world.path("alice"), &[]);
    let mut other = Mcp::start(&world.path("alice"), &["--name", "other"]);
    other.ok("inbox", json!({}));
    for text in ["one", "two", "three"] {
        alice.send(json!({"to": "me/other", "text": text, "ask": true}));
    }
    let page = other
        .until("inbox", &json!({"limit": 2}), |document| (document["unread"] == 3).then(|| document.clone()));
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let rest = other.ok("inbox", json!({"limit": 2, "cursor": page["cursor"]}));
    assert_eq!((rest["items"].as_array().unwrap().len(), rest.get("cursor")), (1, None));
    let text = |item: &Value| item["preview"].as_str().unwrap().to_owned();
    assert!(
        text(&page["items"][0]).contains("three") && text(&rest["items"][0]).contains("one"),
        "newest first"
    );
    let page = alice.ok("tasks", json!({"limit": 2, "role": "mine"}));
    assert_eq!((page["tasks"].as_array().unwrap().len(), &page["total"]), (2, &json!(3)));
    let rest = alice.ok("tasks", json!({"limit": 2, "role": "mine", "cursor": page["cursor"]}));
    assert_eq!((rest["tasks"].as_array().unwrap().len(), rest.get("cursor")), (1, None));
    let with = alice.ok("tasks", json!({"with": "me/other", "state": "open"}));
    assert_eq!(with["total"], 3);
    assert!(with["tasks"].as_array().unwrap().iter().all(|task| task.get("consent").is_none()), "{with}");
    let asked = other.ok("tasks", json!({"role": "asked"}));
    assert_eq!(asked["tasks"][0]["consent"], "self", "{asked}");
}
