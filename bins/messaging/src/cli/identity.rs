//! `identity …`: this machine's keys.

use super::args::{IdentityMigrate, IdentityVerb};
use super::device;
use super::failure::Failure;
use super::output::{self, STRONG};
use super::shell::Shell;
use super::value::{Read, object, string};
use messaging_smol::client::{Client, Options};

pub(super) fn run(shell: &mut Shell, verb: IdentityVerb) -> Result<(), Failure> {
    match verb {
        IdentityVerb::Show(_) => {
            let device = shell.call("device.status", object([]))?;
            shell.out.result(&device, || match device.maybe("device") {
                Some(id) => {
                    let member = match device.maybe("person") {
                        Some(person) => format!(
                            "{STRONG}{}@{}{STRONG:#}, {}",
                            output::clean(person),
                            output::clean(device.text("label")),
                            match device.text("binding") {
                                "bound" => "a member of the team",
                                "removed" => "removed from the team",
                                other => other,
                            }
                        ),
                        None => "This machine is in no team yet.".to_owned(),
                    };
                    format!("{member}\nMachine  {id}")
                }
                None => "This machine has no keys yet.".to_owned(),
            });
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

/// This build keeps keys in the file alone, so moving them there is done already, and moving them elsewhere is refused.
fn migrate(shell: &Shell, args: &IdentityMigrate) -> Result<(), Failure> {
    let home = shell.home()?;
    if Client::probe(&Options::admin(home.clone())).is_ok() {
        return Err(Failure::new("invalid_state", "the daemon runs, and holds the keys")
            .with_remedy("run `messaging daemon stop`, then this again."));
    }
    match (args.to.as_str(), args.prompt) {
        ("file", false) => {}
        ("file", true) => return Err(Failure::usage("--prompt is for the keychain")),
        ("keychain", _) => {
            return Err(Failure::new(
                "invalid_state",
                "this build has no keychain; the keys stay in identity.json",
            )
            .with_remedy("protect the home folder: see docs/security.md, `Keys`."));
        }
        _ => return Err(Failure::usage("--to takes file or keychain")),
    }
    if !home.path().join("identity.json").exists() {
        return Err(Failure::new("no_identity", "this home has no keys yet"));
    }
    shell.out.result(&object([("store", string("file"))]), || {
        "The keys are in identity.json, as before.".to_owned()
    });
    Ok(())
}
