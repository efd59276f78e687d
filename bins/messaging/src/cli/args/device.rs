//! Verbs that only a hosted realm has: a roster's daemon answers them with `invalid_state`.

use argh::{ArgsInfo, FromArgs};

/// a person's machines with a hosted directory, which this build does not have (a team's machines: `messaging team`)
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "device", example = "messaging device status\nmessaging device list")]
pub(crate) struct Device {
    #[argh(subcommand)]
    pub(crate) verb: DeviceVerb,
}

#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand)]
pub(crate) enum DeviceVerb {
    Status(DeviceStatus),
    List(DeviceList),
    Link(DeviceLink),
    Approve(DeviceApprove),
    Remove(DeviceRemove),
    Login(DeviceLogin),
    LoginCancel(DeviceLoginCancel),
}

/// this machine's id and whose it is (works in a team too)
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "status", example = "messaging device status")]
pub(crate) struct DeviceStatus {}

/// your machines
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "list", example = "messaging device list")]
pub(crate) struct DeviceList {}

/// make a link that another machine of yours approves
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "link", example = "messaging device link")]
pub(crate) struct DeviceLink {}

/// approve a machine by its link
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "approve", example = "messaging device approve messaging-link.… --sas 123456")]
pub(crate) struct DeviceApprove {
    /// the link the other machine shows
    #[argh(positional)]
    pub(crate) link: String,
    /// the six digits the other machine shows
    #[argh(option, arg_name = "digits")]
    pub(crate) sas: Option<String>,
}

/// remove one of your machines
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "remove",
    example = "messaging device remove 2Vt0Yd1mXK3q5yH8uJ4cP7rS9wZ6aBfEgLiNoQkTvUx"
)]
pub(crate) struct DeviceRemove {
    /// the machine's id
    #[argh(positional)]
    pub(crate) device: String,
}

/// sign in through the browser
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "login", example = "messaging device login")]
pub(crate) struct DeviceLogin {}

/// stop a sign-in that waits
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "login-cancel", example = "messaging device login-cancel")]
pub(crate) struct DeviceLoginCancel {}

/// erase yourself from the directory (only with a hosted directory, which this build does not have)
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "erase", example = "messaging erase")]
pub(crate) struct Erase {}

/// the version of this program
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "version", example = "messaging version\nmessaging version --json")]
pub(crate) struct Version {}
