//! `read --save`: the files of a message, under names that are safe whatever their sender called them.

use super::failure::Failure;
use super::output;
use super::value::Read;
use messaging_proto::b64;
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Most bytes of a name.
const NAME_BYTES: usize = 100;
/// How many files of one name a folder takes.
const SAME_NAME: usize = 1_000;

/// Writes every file among the parts into `folder`, readable by its owner alone and over nothing that is there.
pub(super) fn files(parts: &[Value], folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !folder.is_dir() {
        return Err(Failure::usage(format!("{} is no folder", output::clean(&folder.display().to_string())))
            .with_remedy("name a folder that exists with --save."));
    }
    let mut saved = Vec::new();
    for part in parts {
        let bytes = match (part.maybe("raw"), part.maybe("text"), part.maybe("filename")) {
            (Some(raw), ..) => b64::decode(raw)
                .ok_or_else(|| Failure::new("internal", "a file of the message is not base64"))?,
            (None, Some(text), Some(_)) => text.as_bytes().to_vec(),
            _ => continue,
        };
        saved.push(write(folder, &safe(part.maybe("filename").unwrap_or_default()), &bytes)?);
    }
    if saved.is_empty() {
        return Err(
            Failure::new("not_found", "the message holds no files").with_remedy("read it without --save.")
        );
    }
    Ok(saved)
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
    let cannot = || {
        Failure::new("internal", "a file cannot be written there")
            .with_remedy("make room, or name a folder of your own with --save.")
    };
    for number in 1..=SAME_NAME {
        let path = folder.join(numbered(name, number));
        // `create_new` follows no link and opens nothing that is there.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|_| cannot())?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => return Err(cannot()),
        }
    }
    Err(cannot())
}

/// `name`, and from the second file of that name on with a number before its ending.
fn numbered(name: &str, number: usize) -> String {
    match (number, name.rsplit_once('.')) {
        (1, _) => name.to_owned(),
        (_, Some((stem, ending))) => format!("{stem}-{number}.{ending}"),
        (_, None) => format!("{name}-{number}"),
    }
}

/// A name that stays in its folder, is seen, is no option and hides nothing: its last part, of letters, digits and a few
/// marks.
fn safe(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut kept = String::new();
    for letter in last.chars() {
        let letter = if letter.is_alphanumeric() || "._-+".contains(letter) { letter } else { '_' };
        if kept.len() + letter.len_utf8() > NAME_BYTES {
            break;
        }
        kept.push(letter);
    }
    let kept = kept.trim_start_matches(['.', '-', '_']).trim_end_matches('.');
    if kept.is_empty() { "file".to_owned() } else { kept.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn no_name_leaves_its_folder_or_hides() {
        for (name, kept) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("/etc/cron.d/x", "x"),
            (".bashrc", "bashrc"),
            ("-rf", "rf"),
            ("..", "file"),
            ("", "file"),
            ("a\u{202e}gpj.exe", "a_gpj.exe"),
            ("a\nb\u{0}c\u{1b}[2J", "a_b_c__2J"),
            ("été 日本.txt", "été_日本.txt"),
        ] {
            assert_eq!(safe(name), kept, "{name:?}");
        }
        assert!(safe(&"日".repeat(200)).len() <= NAME_BYTES);
    }

    #[test]
    fn nothing_that_is_there_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        std::fs::write(&outside, "mine").unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::os::unix::fs::symlink(&outside, inner.join("a.txt")).unwrap();
        let parts = [
            json!({"text": "a word"}),
            json!({"raw": "AAE=", "filename": "a.txt"}),
            json!({"text": "v1", "filename": "../a.txt"}),
        ];
        let saved = files(&parts, &inner).unwrap();
        assert_eq!(saved, [inner.join("a-2.txt"), inner.join("a-3.txt")]);
        assert_eq!(std::fs::read(&saved[0]).unwrap(), [0, 1]);
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine");
        assert_eq!(std::fs::metadata(&saved[0]).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(files(&parts[..1], &inner).unwrap_err().code, "not_found");
        assert_eq!(files(&parts, &folder.path().join("none")).unwrap_err().code, "usage");
    }
}
