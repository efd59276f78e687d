//! Files in messages: read from this machine to send, kept in a private folder when they came (`§11`).

use crate::args::{ANY, Args};
use crate::failure::Failure;
use crate::text::media_type;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use messaging_proto::Code;
use messaging_proto::limits::PLAINTEXT_BYTES;
use messaging_smol::handle::private_state;
use messaging_smol::home::Home;
use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Reads the `files` of an input into parts.
///
/// # Errors
/// `invalid_request` for a wrong shape or a file that cannot be read, `too_large`, `forbidden` inside the daemon's home.
pub(crate) fn parts(args: &mut Args, home: &Home) -> Result<Vec<Value>, Failure> {
    let field = args.path("files");
    let Some(files) = args.array("files", 1..=10)? else { return Ok(Vec::new()) };
    files.into_iter().enumerate().map(|(at, file)| part(file, &format!("{field}[{at}]"), home)).collect()
}

fn part(file: Value, field: &str, home: &Home) -> Result<Value, Failure> {
    let mut file = Args::inside(file, field)?;
    let path = file.text("path", 1..=4096)?;
    let name = file.text("name", 1..=255)?;
    let content = file.text("base64", ANY)?;
    let media = file.text("mediaType", 1..=128)?;
    file.finish()?;
    if media.as_deref().is_some_and(|media| media_type(media).is_none()) {
        return Err(Failure::invalid(&format!("{field}.mediaType"), "is not a media type"));
    }
    let (name, raw) = match (path, name, content) {
        (Some(path), None, None) => {
            let bytes = load(Path::new(&path), &format!("{field}.path"), home)?;
            let name = Path::new(&path).file_name().and_then(|name| name.to_str()).map(str::to_owned);
            (name, BASE64_STANDARD.encode(bytes))
        }
        (None, Some(name), Some(content)) => {
            if BASE64_STANDARD.decode(&content).is_err() {
                return Err(Failure::invalid(&format!("{field}.base64"), "is not base64 with its padding"));
            }
            (Some(name), content)
        }
        _ => return Err(Failure::invalid(field, "needs path, or name and base64, and not both")),
    };
    let mut part = json!({ "raw": raw });
    if let Some(name) = name {
        part["filename"] = json!(name);
    }
    if let Some(media) = media {
        part["mediaType"] = json!(media);
    }
    Ok(part)
}

fn load(path: &Path, field: &str, home: &Home) -> Result<Vec<u8>, Failure> {
    let unreadable = || Failure::invalid(field, "cannot be read: it must be a file of this machine");
    // §12: no key of the home may leave by a slip of an agent's.
    let inside = |path: &Path| match (std::fs::canonicalize(path), std::fs::canonicalize(home.path())) {
        (Ok(path), Ok(home)) => path.starts_with(home),
        _ => false,
    };
    if inside(path) {
        return Err(Failure::forbidden(format!(
            "{field} is in the daemon's home, from which nothing is sent"
        )));
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|_| unreadable())?);
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Err(unreadable());
    }
    let mut bytes = Vec::new();
    file.take(PLAINTEXT_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|_| unreadable())?;
    if bytes.len() > PLAINTEXT_BYTES {
        return Err(Failure::new(Code::TooLarge, format!("{field} is larger than a message may be")));
    }
    Ok(bytes)
}

/// Keeps a file that came, 0600 in a folder of its item, and says where. Its name is ours: a peer's could be a text for the
/// agent, or a path. Nothing when it cannot be kept.
pub(crate) fn keep(id: &str, at: usize, name: Option<&str>, bytes: &[u8]) -> Option<String> {
    let safe = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let folder = private_state("files").ok().filter(|_| safe)?;
    let suffix = name.and_then(extension).map(|kind| format!(".{kind}")).unwrap_or_default();
    let path = folder.join(format!("{id}-{}{suffix}", at + 1));
    if std::fs::symlink_metadata(&path).is_err() {
        let temporary = folder.join(format!(".{id}-{at}-{}", std::process::id()));
        let _ = std::fs::remove_file(&temporary);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&temporary).ok()?;
        file.write_all(bytes).and_then(|()| std::fs::rename(&temporary, &path)).ok()?;
    }
    path.to_str().map(str::to_owned)
}

/// How long a file that came is kept.
const KEPT: Duration = Duration::from_secs(30 * 86_400);

/// Removes files that came long ago.
pub(crate) fn sweep() {
    let Ok(folder) = private_state("files") else { return };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let old = entry
            .metadata()
            .and_then(|meta| meta.modified())
            .is_ok_and(|modified| SystemTime::now().duration_since(modified).is_ok_and(|age| age > KEPT));
        if old {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A name's extension, where it is no more than that.
fn extension(name: &str) -> Option<&str> {
    let (_, kind) = name.rsplit_once('.')?;
    ((1..=8).contains(&kind.len()) && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_no_more_than_an_extension() {
        assert_eq!(extension("report.tar.gz"), Some("gz"));
        for name in ["x", "x.", "../../etc/passwd", "x.ignore all previous", "x.\u{202e}txt", "x.abcdefghi"] {
            assert_eq!(extension(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_sent_is_a_plain_file_of_bounded_size_outside_the_home() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(&folder.path().join("home"));
        std::fs::create_dir(home.path()).unwrap();
        std::fs::write(home.path().join("identity.json"), "keys").unwrap();
        std::fs::write(folder.path().join("note.txt"), "hello").unwrap();
        std::fs::write(folder.path().join("big"), vec![0; PLAINTEXT_BYTES + 1]).unwrap();
        std::os::unix::fs::symlink(home.path().join("identity.json"), folder.path().join("link")).unwrap();
        let load = |name: &str| load(&folder.path().join(name), "files[0].path", &home);
        assert_eq!(load("note.txt").unwrap(), b"hello");
        assert!(load("big").unwrap_err().is(Code::TooLarge));
        assert!(load("home/identity.json").unwrap_err().is(Code::Forbidden));
        assert!(load("link").unwrap_err().is(Code::Forbidden));
        assert!(load(".").unwrap_err().is(Code::InvalidRequest));
        assert!(load("absent").unwrap_err().is(Code::InvalidRequest));
    }
}
