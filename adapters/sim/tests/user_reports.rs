//! Holds `docs/user-reports.md` to the tree.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The numbers of the collection: every other one of a larger set.
fn numbers() -> BTreeSet<u32> {
    (1..=67).step_by(2).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The texts of a line between backticks.
fn quoted(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// Every source file of the tree.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "py") {
            found.push(path);
        }
    }
}

/// The number a test is named after.
fn number_of(test: &str) -> u32 {
    test.trim_start_matches("report_").split('_').next().unwrap().parse().unwrap()
}

/// The names of the tests in a file that are named after a number.
fn tests_of(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("fn ")
            .or_else(|| line.strip_prefix("def "))
            .or_else(|| line.strip_prefix("async fn "))
    });
    let names = lines.filter_map(|line| line.split(['(', '<']).next());
    names.filter(|name| name.starts_with("report_")).map(str::to_owned).collect()
}

#[test]
fn every_report_has_its_test_and_every_test_its_line() {
    let page = std::fs::read_to_string(root().join("docs/user-reports.md")).unwrap();
    let mut listed: BTreeMap<u32, BTreeSet<(String, String)>> = BTreeMap::new();
    // What is named besides, for the patterns.
    let mut patterns = BTreeSet::new();
    for line in page.lines() {
        if line.starts_with("| ") {
            patterns
                .extend(quoted(line).chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())));
        }
        let Some(number) = line.trim_start_matches("| ").split(' ').next().and_then(|cell| cell.parse().ok())
        else {
            continue;
        };
        let names = quoted(line);
        assert!(!names.is_empty() && names.len().is_multiple_of(2), "{line}");
        for pair in names.chunks(2) {
            assert_eq!(number_of(pair[1]), number, "{line}");
            listed.entry(number).or_default().insert((pair[0].to_owned(), pair[1].to_owned()));
        }
    }
    let all: BTreeSet<u32> = listed.keys().copied().collect();
    let missing: Vec<_> = numbers().difference(&all).copied().collect();
    assert!(missing.is_empty(), "the page does not have {missing:?}");
    assert!(all.iter().all(|number| number % 2 == 1 && *number <= 67), "{all:?}");

    let mut files = Vec::new();
    sources(&root(), &mut files);
    let mut there = BTreeSet::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let file = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        there.extend(tests_of(&text).into_iter().map(|test| (file.clone(), test)));
    }
    for (file, test) in &patterns {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&format!("fn {test}(")), "{file} has no {test}");
    }
    let named: BTreeSet<(String, String)> = listed.into_values().flatten().collect();
    assert!(there.len() >= numbers().len());
    let lost: Vec<_> = named.difference(&there).collect();
    assert!(lost.is_empty(), "the page names tests that do not exist: {lost:?}");
    let unnamed: Vec<_> = there.difference(&named).collect();
    assert!(unnamed.is_empty(), "the page does not name: {unnamed:?}");
}
