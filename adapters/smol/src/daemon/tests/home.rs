//! Whatever was there before, and whatever the umask (user reports 49 and 51).

use super::*;
use messaging_proto::Code;
use rustix::fs::Mode;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::{Arc, Barrier};

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

fn refused(home: &Home) -> (Code, String) {
    match try_start(home, &Log::kept(), &Faults::default()) {
        Err(StartError::Failed { code, text }) => (code, text),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("started"),
    }
}

#[test]
fn a_new_home_is_private_whatever_the_umask() {
    for umask in [0o000, 0o002, 0o022, 0o077, 0o777] {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(&dir.path().join("deep/er/home"));
        std::fs::create_dir(dir.path().join("deep")).unwrap();
        rustix::process::umask(Mode::from_raw_mode(umask));
        let world = start(&home);
        let client = world.client();
        client.call("save", json!({"text": "{}"})).unwrap();
        assert_eq!(event(&client), json!({"saved": true}));
        for (path, wanted) in [
            (home.path().to_owned(), 0o700),
            (home.run(), 0o700),
            (home.logs(), 0o700),
            (home.agent_socket(), 0o600),
            (home.admin_socket(), 0o600),
            (home.store(), 0o600),
            (home.lock_file(), 0o600),
            (home.pid_file(), 0o600),
            (home.path().join("config.json"), 0o600),
        ] {
            assert_eq!(mode(&path), wanted, "umask {umask:03o}: {}", path.display());
        }
        world.stop();
        // And it starts again in what it made.
        start(&home).stop();
    }
}

#[test]
fn foreign_laxness_is_refused_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    start(&home).stop();
    let set =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    set(&home.run(), 0o770);
    let (code, text) = refused(&home);
    assert!(code == Code::Forbidden && text.contains("chmod go-w"), "{text}");
    set(&home.run(), 0o755);
    set(home.path(), 0o777);
    assert_eq!(refused(&home).0, Code::Forbidden);
    set(home.path(), 0o755);
    start(&home).stop();
    assert_eq!((mode(home.path()), mode(&home.run())), (0o700, 0o700), "readable by others is tightened");
    // A group-writable parent is the parent's affair: what counts is who owns the home.
    set(dir.path(), 0o770);
    start(&home).stop();
    set(dir.path(), 0o700);
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(home.path(), &link).unwrap();
    let (code, text) = refused(&Home::new(&link));
    assert!(code == Code::Forbidden && text.contains("symbolic link"), "{text}");
}

#[test]
fn what_a_crash_left_is_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    start(&home).stop();
    // Sockets nobody listens on, and a lock file with the pid of somebody else's process.
    for path in [home.agent_socket(), home.admin_socket()] {
        drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    }
    std::fs::write(home.pid_file(), "1\n").unwrap();
    let world = start(&home);
    assert_eq!(home.locked_by(), Some(std::process::id()));
    assert_eq!(world.client().call("echo", json!({"a": 1})).unwrap(), json!({"a": 1}));
    world.connect(Tier::Agent);
    world.stop();
    assert!(!home.agent_socket().exists() && !home.admin_socket().exists() && !home.pid_file().exists());
}

#[test]
fn ten_at_once_are_one() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let barrier = Arc::new(Barrier::new(10));
    let starts: Vec<_> = (0..10)
        .map(|_| {
            let (home, barrier) = (home.clone(), Arc::clone(&barrier));
            std::thread::spawn(move || {
                barrier.wait();
                try_start(&home, &Log::kept(), &Faults::default()).map_err(|error| error.to_string())
            })
        })
        .collect();
    let (started, refused): (Vec<_>, Vec<_>) =
        starts.into_iter().map(|start| start.join().unwrap()).partition(Result::is_ok);
    assert_eq!(started.len(), 1);
    for error in refused.into_iter().filter_map(Result::err) {
        assert!(error.starts_with("invalid_state: another messagingd runs"), "{error}");
    }
    let client = Client::connect(&Options { owner: Owner::me(), ..Options::admin(home) }).unwrap();
    assert_eq!(client.call("echo", json!({})).unwrap(), json!({}), "the one that runs answers");
    for daemon in started.into_iter().flatten() {
        daemon.ask_to_stop();
        daemon.finish().unwrap();
    }
}

#[test]
fn a_store_that_is_not_ours_is_refused_before_anything_else_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    start(&home).stop();
    std::fs::write(home.store(), b"SQLite format 3\0").unwrap();
    std::fs::write(home.path().join("config.json"), "not even JSON").unwrap();
    match try_start(&home, &Log::kept(), &Faults::default()) {
        Err(StartError::Refused(reason)) => assert_eq!(reason.as_str(), "pre-reset"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("started"),
    }
    assert_eq!(std::fs::read(home.store()).unwrap(), b"SQLite format 3\0");
}

#[test]
fn files_that_cannot_be_read_stop_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    start(&home).stop();
    let config = home.path().join("config.json");
    std::fs::write(&config, r#"{"person":"Not A Person"}"#).unwrap();
    let (code, text) = refused(&home);
    assert!(code == Code::InvalidRequest && text.contains("person") && !text.contains("Not A"), "{text}");
    std::fs::write(&config, r#"{"person":"alice","later":1}"#).unwrap();
    let world = start(&home);
    assert!(world.log.names().contains(&"config.unknown".to_owned()));
    assert_eq!(world.client().call("person", json!({})).unwrap(), "alice");
    world.stop();
    std::fs::write(home.path().join("identity.json"), "{}").unwrap();
    let (code, text) = refused(&home);
    assert!(code == Code::InvalidRequest && text.contains("identity.json"), "{text}");
}
