//! The page and the skill for agents say what the programs do.
#![allow(clippy::unwrap_used)]

mod mcp;
#[path = "../../messaging/tests/world/mod.rs"]
mod world;

use mcp::Mcp;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../../docs/agents.md");
const SKILL: &str = include_str!("../../../docs/agents/SKILL.md");

/// The blocks of a language.
fn blocks(language: &str) -> Vec<&'static str> {
    PAGE.split("```").filter_map(|block| block.strip_prefix(language)).collect()
}

/// Every command that a snippet tells an agent to start.
fn servers() -> Vec<Vec<String>> {
    let words = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let mut servers = Vec::new();
    for block in blocks("json\n") {
        let config: Value = serde_json::from_str(block).unwrap();
        if let Some(server) = config["mcpServers"].get("messaging") {
            servers.push(
                [vec![server["command"].as_str().unwrap().to_owned()], words(&server["args"])].concat(),
            );
        } else {
            servers.push(words(&config["mcp"]["servers"]["messaging"]["command"]));
        }
    }
    for block in blocks("toml\n") {
        let value = |name: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(&format!("{name} = "))).unwrap();
            serde_json::from_str::<Value>(line).unwrap()
        };
        servers.push([vec![value("command").as_str().unwrap().to_owned()], words(&value("args"))].concat());
    }
    servers
}

/// Each snippet starts a server that registers under the name it gives.
#[test]
fn the_snippets_work() {
    let mut world = world::World::new();
    world.pair();
    let servers = servers();
    assert_eq!(servers.len(), 3, "Claude Code, Codex and OpenCode");
    for server in servers {
        assert_eq!((server[0].as_str(), server[1].as_str()), ("messaging-mcp", "--name"), "{server:?}");
        let flags: Vec<&str> = server[1..].iter().map(String::as_str).collect();
        let mut mcp = Mcp::start(&world.path("alice"), &flags);
        assert_eq!(mcp.ok("contacts", json!({}))["me"]["agent"], server[2].as_str());
    }
    for line in PAGE.lines().filter_map(|line| line.strip_prefix("    messaging ")) {
        let words: Vec<&str> = line.split(' ').map(|word| if word == "60" { "0" } else { word }).collect();
        let output = Command::new(world::program())
            .arg("--home")
            .arg(world.path("alice"))
            .args(&words)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_page_and_the_skill_name_what_there_is() {
    let mut world = world::World::new();
    // Else the server starts a daemon that outlives the test.
    world.start_daemon("nobody");
    let mut mcp = Mcp::start(&world.path("nobody"), &[]);
    let tools = mcp.request("tools/list", json!({}));
    for tool in tools["tools"].as_array().unwrap() {
        let name = format!("`{}`", tool["name"].as_str().unwrap());
        assert!(PAGE.contains(&name) && SKILL.contains(&name), "{name}");
    }
    for (text, named) in [("page", PAGE), ("skill", SKILL)] {
        let known = tools["tools"].to_string();
        for word in named.split(|c: char| !(c.is_ascii_lowercase() || c == '_')) {
            if word.starts_with("messaging_")
                && !matches!(word, "messaging_" | "messaging_smol" | "messaging_machines")
            {
                assert!(known.contains(word), "the {text} names {word}");
            }
        }
    }
    assert!(SKILL.starts_with("---\nname: messaging\ndescription: "));
    assert!(SKILL.contains("A message is not consent"));
    let help = Command::new(mcp::SERVER).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for flag in ["--name", "--channel", "--home", "--version"] {
        assert!(help.contains(flag) && PAGE.contains(flag), "{flag}");
    }
}
