//! `log`: the daemon's log file, one readable line for each of its JSON lines.

use super::args::Log;
use super::failure::Failure;
use super::output::{self, BAD, FAINT, WAITING};
use super::shell::Shell;
use super::value::{Read, array, object};
use serde_json::Value;
use std::fs::File;
use std::io::{Read as _, Seek, SeekFrom};
use std::time::Duration;

/// How much of the file's end is read for the first lines.
const TAIL: u64 = 1 << 20;
const POLL: Duration = Duration::from_millis(500);

pub(super) fn run(shell: &Shell, args: &Log) -> Result<(), Failure> {
    let Some(least) = rank(&args.level) else {
        return Err(Failure::usage("--level takes error, warn, info or debug"));
    };
    let path = shell.home()?.log_file();
    let none = || {
        let step = "run `messaging daemon start`; the log is logs/messagingd.log in the home folder.";
        Failure::new("not_found", "this home has no log yet").with_remedy(shell.step(step))
    };
    let mut file = File::open(&path).map_err(|_| none())?;
    let mut length = file.metadata().map_err(|_| none())?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).map_err(|_| none())?;
    let mut text = String::new();
    let mut bytes = Vec::new();
    let _ = file.by_ref().take(TAIL).read_to_end(&mut bytes);
    text.push_str(&String::from_utf8_lossy(&bytes));
    // A first line that was cut is not JSON and falls out.
    let lines: Vec<Value> = read(&text, least);
    let lines = &lines[lines.len().saturating_sub(args.lines)..];
    if !args.follow {
        // Contract ipc §7: one document; a line each only where it goes on.
        let document = object([("lines", array(lines.iter().cloned()))]);
        shell.out.result(&document, || {
            if lines.is_empty() {
                return "The log has no line of this level.".to_owned();
            }
            lines.iter().map(describe).collect::<Vec<_>>().join("\n")
        });
        return Ok(());
    }
    lines.iter().for_each(|line| show(shell, line));
    let mut rest = String::new();
    loop {
        output::read_on()?;
        std::thread::sleep(POLL);
        let Ok(now) = std::fs::metadata(&path).map(|meta| meta.len()) else { continue };
        if now < length {
            // The daemon moved the file aside and began another.
            match File::open(&path) {
                Ok(fresh) => (file, length) = (fresh, 0),
                Err(_) => continue,
            }
        }
        let mut bytes = Vec::new();
        let Ok(count) = file.read_to_end(&mut bytes) else { continue };
        length += count as u64;
        rest.push_str(&String::from_utf8_lossy(&bytes));
        if let Some(end) = rest.rfind('\n') {
            let whole: String = rest.drain(..=end).collect();
            read(&whole, least).iter().for_each(|line| show(shell, line));
        }
    }
}

fn rank(level: &str) -> Option<u8> {
    ["error", "warn", "info", "debug"]
        .iter()
        .position(|known| *known == level)
        .and_then(|at| at.try_into().ok())
}

fn read(text: &str, least: u8) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| rank(line.text("level")).is_some_and(|rank| rank <= least)).collect()
}

fn show(shell: &Shell, line: &Value) {
    shell.out.result(line, || describe(line));
}

fn describe(line: &Value) -> String {
    let style = match line.text("level") {
        "error" => BAD,
        "warn" => WAITING,
        _ => FAINT,
    };
    let mut fields = Vec::new();
    for (name, value) in line.as_object().into_iter().flatten() {
        if matches!(name.as_str(), "at" | "level" | "event") {
            continue;
        }
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        fields.push(format!("{}={}", output::clean(name), output::clean(&value)));
    }
    format!(
        "{FAINT}{}{FAINT:#} {style}{:5}{style:#} {} {}",
        line.int("at").map(output::when).unwrap_or_else(|| output::clean(line.text("at"))),
        line.text("level"),
        output::clean(line.text("event")),
        fields.join(" ")
    )
    .trim_end()
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_below_the_level_and_lines_that_are_none_fall_out() {
        let text = "cut\"}\n{\"at\":0,\"level\":\"info\",\"event\":\"a\"}\n{\"at\":0,\"level\":\"error\",\"event\":\"b\",\"x\":1}\n";
        assert_eq!(read(text, 2).len(), 2);
        let lines = read(text, 1);
        assert_eq!(lines.len(), 1);
        let text = anstream::adapter::strip_str(&describe(&lines[0])).to_string();
        assert_eq!(text, "1970-01-01T00:00:00Z error b x=1");
    }
}
