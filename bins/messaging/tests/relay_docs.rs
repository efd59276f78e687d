//! The operator's guide, the unit and the image say what the relay does: their flags, variables, events and metrics exist,
//! and none is missing.

#![allow(clippy::unwrap_used)]

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const RELAY: &str = env!("CARGO_BIN_EXE_messaging-relay");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn guide() -> String {
    read("docs/relay.md")
}

/// The flags of `--help`: as they are shown, and what is said of them.
fn flags() -> BTreeMap<String, String> {
    let output = Command::new(RELAY).arg("--help").output().unwrap();
    let line = Regex::new(r"(?m)^  --([^ ]+(?: <[^>]+>(?::<[^>]+>)?| [^ ]+)?) {2,}(.*)$").unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let flags: BTreeMap<String, String> =
        line.captures_iter(&text).map(|found| (found[1].trim().to_owned(), found[2].to_owned())).collect();
    assert!(flags.len() > 30, "{text}");
    flags
}

fn names() -> BTreeSet<String> {
    flags().keys().map(|flag| flag.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn the_flags_table_is_the_flags() {
    let row = Regex::new(r"(?m)^\| `--([^`]+)` \| ([^|]*(?:\\\|[^|]*)*) \| `(MESSAGING_RELAY_[A-Z_]+)` \|")
        .unwrap();
    let guide = guide();
    let mut rows = BTreeMap::new();
    for found in row.captures_iter(&guide) {
        rows.insert(found[1].replace("\\|", "|"), (found[2].trim().to_owned(), found[3].to_owned()));
    }
    for (flag, help) in flags() {
        let name = flag.split(' ').next().unwrap();
        if ["help", "version", "json"].contains(&name) {
            continue;
        }
        let (default, variable) =
            rows.remove(&flag).unwrap_or_else(|| panic!("--{flag} is not in the table"));
        assert_eq!(variable, format!("MESSAGING_RELAY_{}", name.to_ascii_uppercase().replace('-', "_")));
        match help.rsplit_once("(default") {
            Some((_, said)) => {
                let said =
                    said.trim_start_matches(':').trim().trim_end_matches(|c| c != ')').trim_end_matches(')');
                let plain = default.replace('\\', "");
                assert!(said.starts_with(&plain), "--{flag}: {said}, not {plain}");
            }
            None => assert_eq!(default, "none", "--{flag}"),
        }
    }
    assert!(rows.is_empty(), "no such flags: {rows:?}");
}

/// Every `messaging-relay --…` that a text tells people to run, and every variable it sets, is one the relay takes.
#[test]
fn commands_and_variables_are_known() {
    let names = names();
    let flag = Regex::new(r" --([a-z-]+)").unwrap();
    let variable = Regex::new(r"MESSAGING_RELAY_([A-Z_]+)").unwrap();
    let mut commands = 0;
    for path in [
        "docs/relay.md",
        "README.md",
        "packaging/systemd/messaging-relay.service",
        "packaging/docker/Dockerfile",
    ] {
        let text = read(path);
        for line in text.lines().filter(|line| {
            let line = line.trim_start().trim_start_matches("ExecStart=/usr/local/bin/");
            line.starts_with("messaging-relay --") || line.starts_with("messaging relay --")
        }) {
            commands += 1;
            for found in flag.captures_iter(line) {
                assert!(names.contains(&found[1]), "{path}: {line}");
            }
        }
        for found in variable.captures_iter(&text) {
            let name = found[1].trim_end_matches('_').to_ascii_lowercase().replace('_', "-");
            assert!(name.is_empty() || names.contains(&name), "{path}: {}", &found[0]);
        }
    }
    assert!(commands >= 5, "{commands}");
}

/// The image: built from source as it is locked, run by nobody, with nothing to write to but its one volume.
#[test]
fn the_image_is_built_from_source_and_runs_as_nobody() {
    let text = read("packaging/docker/Dockerfile");
    let (build, image) = text.split_once("\nFROM debian:").unwrap();
    assert!(
        build.contains("\nCOPY . .\n") && build.contains("cargo build --locked --release "),
        "from this source"
    );
    assert!(build.contains("-p messaging --bin messaging-relay "));
    let instruction = |name: &str| -> Vec<&str> {
        image.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).collect()
    };
    assert_eq!(instruction("COPY"), ["--from=build /out/ /"], "nothing but what was built");
    assert_eq!(instruction("USER"), ["65532:65532"]);
    assert_eq!(instruction("VOLUME"), [r#"["/data"]"#]);
    assert_eq!(
        instruction("ENTRYPOINT"),
        [r#"["/usr/local/bin/messaging-relay"]"#],
        "no shell, so that it gets the signal"
    );
    assert_eq!(instruction("STOPSIGNAL"), ["SIGTERM"]);
    assert!(instruction("RUN").is_empty() && image.contains("MESSAGING_RELAY_DB=/data/relay.db"));
    for run in [text.as_str(), &guide()] {
        assert!(run.contains(
            "docker run -d --name relay --read-only --cap-drop ALL --security-opt no-new-privileges"
        ));
    }
}

/// What Docker sends of this repository is what the build needs: every member of the workspace, with its sources, and the
/// settings of a release. Two of them once were not sent, and the image could not be built.
#[test]
fn the_image_is_sent_all_it_is_built_from() {
    let context = tempfile::tempdir().unwrap();
    let rules = read("packaging/docker/Dockerfile.dockerignore");
    assert!(rules.lines().next() == Some("**") && rules.lines().last() == Some("**/target"), "{rules}");
    for rule in rules.lines().filter_map(|line| line.strip_prefix('!')) {
        match rule.strip_suffix('*') {
            Some(start) => {
                for entry in std::fs::read_dir(root()).unwrap() {
                    let name = entry.unwrap().file_name().into_string().unwrap();
                    if name.starts_with(start) {
                        copy(&root().join(&name), &context.path().join(&name));
                    }
                }
            }
            None => copy(&root().join(rule), &context.path().join(rule)),
        }
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--no-deps"])
        .args(["--config", "packaging/release.toml"])
        .current_dir(context.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let relay = |package: &serde_json::Value| {
        let targets = package["targets"].as_array().unwrap();
        targets.iter().any(|target| target["name"] == "messaging-relay")
    };
    assert!(said["packages"].as_array().unwrap().iter().any(relay));
}

/// A file, or a folder without what was built in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    if !from.is_dir() {
        std::fs::copy(from, to).unwrap();
        return;
    }
    for entry in std::fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        if name != "target" {
            copy(&from.join(&name), &to.join(&name));
        }
    }
}

/// What a shell runs in the guide parses, and what of it concerns files of the repository finds them.
#[test]
fn the_shell_of_the_guide_parses() {
    let block = Regex::new(r"(?s)```sh\n(.*?)```").unwrap();
    let guide = guide();
    let mut blocks = 0;
    for found in block.captures_iter(&guide) {
        blocks += 1;
        let status = Command::new("sh").args(["-n", "-c", &found[1]]).stdin(Stdio::null()).status().unwrap();
        assert!(status.success(), "{}", &found[1]);
    }
    assert!(blocks >= 8, "{blocks}");
    let file = Regex::new(r"packaging/[A-Za-z0-9_./-]+[A-Za-z0-9]").unwrap();
    for found in file.find_iter(&guide) {
        assert!(root().join(found.as_str()).exists(), "{}", found.as_str());
    }
}

/// Text between backquotes at the start of the rows of a table.
fn first_cells(guide: &str, pattern: &str) -> BTreeSet<String> {
    let row = Regex::new(&format!(r"(?m)^\| ((?:`{pattern}`(?:, )?)+) \|")).unwrap();
    let word = Regex::new(&format!("`({pattern})`")).unwrap();
    row.captures_iter(guide)
        .flat_map(|row| {
            word.captures_iter(row.get(1).unwrap().as_str())
                .map(|word| word[1].to_owned())
                .collect::<Vec<_>>()
        })
        .collect()
}

fn sources(folder: &str, into: &mut String) {
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && name != "tests" {
            sources(&format!("{folder}/{name}"), into);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            into.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn the_tables_of_events_and_metrics_are_complete() {
    let mut source = String::new();
    sources("adapters/smol/src/relay", &mut source);
    sources("adapters/smol/src/driver", &mut source);
    sources("adapters/smol/src/capture", &mut source);
    let guide = guide();
    let logged = Regex::new(r#"log[ \n]*\.(?:error|warn|info)\([ \n]*"([a-z_.]+)""#).unwrap();
    let events: BTreeSet<String> = logged.captures_iter(&source).map(|found| found[1].to_owned()).collect();
    assert!(events.len() > 12, "{events:?}");
    assert_eq!(first_cells(&guide, r"[a-z]+\.[a-z_]+"), events);
    let metric = Regex::new(r#""((?:relay|process)_[a-z_]+)""#).unwrap();
    let metrics: BTreeSet<String> = metric
        .captures_iter(&source)
        .map(|found| found[1].to_owned())
        .filter(|name| !["_bucket", "_sum", "_count"].iter().any(|end| name.ends_with(end)))
        .collect();
    assert!(metrics.len() > 25, "{metrics:?}");
    assert_eq!(first_cells(&guide, "(?:relay|process)_[a-z_]+"), metrics);
}
