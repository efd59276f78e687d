//! `identity …`: this machine's keys.

use super::args::{IdentityMigrate, IdentityVerb};
use super::device;
use super::failure::Failure;
use super::output::{self, STRONG};
use super::shell::Shell;
use super::value::{Read, object, string};
use messaging_smol::client::{Client, Options};
use serde_json::Value;

pub(super) fn run(shell: &mut Shell, verb: IdentityVerb) -> Result<(), Failure> {
    match verb {
        IdentityVerb::Show(_) => {
            let device = shell.call("device.status", object([]))?;
            shell.out.result(&device, || describe(&device));
        }
        IdentityVerb::RotateEnc(_) => {
            let result = shell.call("identity.rotateEnc", object([]))?;
            shell.out.result(&result, || {
                format!(
                    "The encryption key is now {}. The old one opens mail on its way until {}.",
                    result.text("enc"),
                    output::when(result.int("until").unwrap_or_default())
                )
            });
        }
        IdentityVerb::Migrate(args) => migrate(shell, &args)?,
        IdentityVerb::Replace(_) => device::replace(shell)?,
    }
    Ok(())
}

/// Whose machine it is, from `device.status`.
pub(super) fn describe(device: &Value) -> String {
    let Some(id) = device.maybe("device") else { return "This machine has no keys yet.".to_owned() };
    let member = match (device.maybe("person"), device.text("binding")) {
        (Some(person), binding) => format!(
            "{STRONG}{}@{}{STRONG:#}, {}",
            output::clean(person),
            output::clean(device.text("label")),
            if binding == "removed" { "removed from the team" } else { "a member of the team" }
        ),
        (None, "removed") => "This machine was removed from its team.".to_owned(),
        (None, _) => "This machine is in no team yet.".to_owned(),
    };
    format!("{member}\nMachine  {id}")
}

/// This build keeps keys in the file alone, so moving them there is done already, and moving them elsewhere is refused.
fn migrate(shell: &Shell, args: &IdentityMigrate) -> Result<(), Failure> {
    if !matches!(args.to.as_str(), "file" | "keychain") {
        return Err(Failure::usage("--to takes file or keychain"));
    }
    let home = shell.home()?;
    if Client::probe(&Options::admin(home.clone())).is_ok() {
        return Err(Failure::new("invalid_state", "the daemon runs, and holds the keys")
            .with_remedy("run `messaging daemon stop`, then this again."));
    }
    match (args.to.as_str(), args.prompt) {
        ("file", true) => return Err(Failure::usage("--prompt is for the keychain")),
        ("keychain", _) => {
            return Err(Failure::new(
                "invalid_state",
                "this build has no keychain; the keys stay in identity.json",
            )
            .with_remedy("protect the home folder: see docs/security.md, `Keys`."));
        }
        _ => {}
    }
    if !home.path().join("identity.json").exists() {
        return Err(Failure::new("no_identity", "this home has no keys yet"));
    }
    shell.out.result(&object([("store", string("file"))]), || {
        "The keys are in identity.json, as before.".to_owned()
    });
    Ok(())
}
