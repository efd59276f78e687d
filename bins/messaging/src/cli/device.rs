//! Verbs that only a hosted realm has. This build serves rosters: its daemon refuses each of them.

use super::args::{Contact, DeviceVerb};
use super::failure::Failure;
use super::output;
use super::shell::Shell;
use super::value::{object, string};
use serde_json::Value;

pub(super) fn run(shell: &mut Shell, verb: &DeviceVerb) -> Result<(), Failure> {
    match verb {
        DeviceVerb::Status(_) => {
            let device = shell.call("device.status", object([]))?;
            shell.out.result(&device, || super::identity::describe(&device));
            Ok(())
        }
        DeviceVerb::List(_) => hosted(shell, "device.list", object([])),
        DeviceVerb::Link(_) => hosted(shell, "device.link", object([])),
        // Without the code it is looked at: what the request asks for, and its code.
        DeviceVerb::Approve(args) => match &args.sas {
            Some(sas) => {
                hosted(shell, "device.approve", object([("link", string(&args.link)), ("sas", string(sas))]))
            }
            None => hosted(shell, "device.approve.preview", object([("link", string(&args.link))])),
        },
        DeviceVerb::Remove(args) => {
            hosted(shell, "device.remove", object([("device", string(&args.device))]))
        }
        DeviceVerb::Login(_) => hosted(shell, "device.login", object([])),
        DeviceVerb::LoginCancel(_) => hosted(shell, "device.login.cancel", object([])),
    }
}

pub(super) fn erase(shell: &mut Shell) -> Result<(), Failure> {
    hosted(shell, "directory.erase", object([]))
}

pub(super) fn replace(shell: &mut Shell) -> Result<(), Failure> {
    hosted(shell, "identity.replace", object([]))
}

pub(super) fn contact(shell: &mut Shell, args: &Contact) -> Result<(), Failure> {
    hosted(shell, "contact.request", object([("email", string(&args.email)), ("text", string(&args.text))]))
}

/// Calls the method; a refusal says which verbs a team has instead.
fn hosted(shell: &mut Shell, method: &str, params: Value) -> Result<(), Failure> {
    let result = shell.call(method, params).map_err(|mut failure| match failure.code.as_str() {
        "invalid_state" => {
            "only a home with a hosted directory has this".clone_into(&mut failure.text);
            failure.with_remedy("use `messaging team`: it manages the machines of a team.")
        }
        "invalid_request" if method == "contact.request" => {
            failure.with_remedy("in a team, everybody is a member: see `messaging people`.")
        }
        _ => failure,
    })?;
    shell.out.result(&result, || fields(&result));
    Ok(())
}

/// The members of a result, one a line.
fn fields(value: &Value) -> String {
    let members = value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let members = members.map(|(name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{name:8} {}", output::clean(&text))
    });
    members.collect::<Vec<_>>().join("\n")
}
