//! Verbs about the team and this machine's keys.

use argh::{ArgsInfo, FromArgs};

/// found a team, bring machines in, and administer it
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "team",
    example = "messaging team create --relay wss://relay.example --name Blue --person alice --label laptop\nmessaging team invite bob\nmessaging team join messaging1.… --label desk\nmessaging team info"
)]
pub(crate) struct Team {
    #[argh(subcommand)]
    pub(crate) verb: TeamVerb,
}

#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand)]
pub(crate) enum TeamVerb {
    Create(TeamCreate),
    Prepare(TeamPrepare),
    Invite(TeamInvite),
    Revoke(TeamRevoke),
    Join(TeamJoin),
    Pair(TeamPair),
    Add(TeamAdd),
    Claim(TeamClaim),
    PairCancel(TeamPairCancel),
    Info(TeamInfo),
    Remove(TeamRemove),
    Role(TeamRole),
}

/// found a team at a relay; you become its admin
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "create",
    example = "messaging team create --relay wss://relay.example --name Blue --person alice --label laptop"
)]
pub(crate) struct TeamCreate {
    /// the relay: wss://host, or ws:// on this machine
    #[argh(option, arg_name = "url")]
    pub(crate) relay: String,
    /// what the team is called
    #[argh(option)]
    pub(crate) name: String,
    /// your name in the team: a to z, 0 to 9 and -
    #[argh(option, arg_name = "name")]
    pub(crate) person: String,
    /// this machine's name
    #[argh(option, arg_name = "name")]
    pub(crate) label: String,
}

/// make this machine's keys now, and print its id for a relay that lists who may found a team
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "prepare", example = "messaging team prepare")]
pub(crate) struct TeamPrepare {}

/// make a ticket that lets one machine join as this person
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "invite", example = "messaging team invite bob --ttl 24")]
pub(crate) struct TeamInvite {
    /// the person the machine belongs to
    #[argh(positional)]
    pub(crate) person: String,
    /// hours until the ticket expires, 1 to 168 (default 168)
    #[argh(option, default = "168", arg_name = "hours")]
    pub(crate) ttl: u64,
}

/// make a ticket useless
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "revoke", example = "messaging team revoke 01M7Q5F6K8FS28ZVG7YPT2PQY9")]
pub(crate) struct TeamRevoke {
    /// the invite's id
    #[argh(positional)]
    pub(crate) invite: String,
}

/// join a team with a ticket
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "join",
    example = "messaging team join messaging1.… --label desk\nmessaging team join - --label desk < ticket.txt"
)]
pub(crate) struct TeamJoin {
    /// the ticket, or - to read it from standard input
    #[argh(positional)]
    pub(crate) ticket: String,
    /// this machine's name (default: its host name)
    #[argh(option, arg_name = "name")]
    pub(crate) label: Option<String>,
}

/// join without a ticket: make this machine's keys and print the card that an admin adds
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "pair", example = "messaging team pair messaging-team.… --person bob --label desk")]
pub(crate) struct TeamPair {
    /// the team card (`messaging team info` prints it)
    #[argh(positional)]
    pub(crate) card: String,
    /// the person this machine belongs to
    #[argh(option, arg_name = "name")]
    pub(crate) person: String,
    /// this machine's name
    #[argh(option, arg_name = "name")]
    pub(crate) label: String,
}

/// add a machine by the card it printed
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "add", example = "messaging team add messaging-admit.…")]
pub(crate) struct TeamAdd {
    /// the admit card that `messaging team pair` printed
    #[argh(positional)]
    pub(crate) card: String,
}

/// join with the keys that an admin added
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "claim", example = "messaging team claim")]
pub(crate) struct TeamClaim {}

/// forget pending keys
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "pair-cancel", example = "messaging team pair-cancel")]
pub(crate) struct TeamPairCancel {}

/// the team, its machines and its invites
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "info", example = "messaging team info")]
pub(crate) struct TeamInfo {}

/// remove a machine from the team for good
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "remove",
    example = "messaging team remove bob@desk\nmessaging team remove bob@desk --yes"
)]
pub(crate) struct TeamRemove {
    /// a machine id, or person@label
    #[argh(positional)]
    pub(crate) machine: String,
    /// do not ask (without a terminal nobody is asked)
    #[argh(switch)]
    pub(crate) yes: bool,
}

/// make a machine's role admin or member
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "role", example = "messaging team role bob@desk admin")]
pub(crate) struct TeamRole {
    /// a machine id, or person@label
    #[argh(positional)]
    pub(crate) machine: String,
    /// admin or member
    #[argh(positional)]
    pub(crate) role: String,
}

/// this machine's keys
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "identity", example = "messaging identity show\nmessaging identity rotate-enc")]
pub(crate) struct Identity {
    #[argh(subcommand)]
    pub(crate) verb: IdentityVerb,
}

#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand)]
pub(crate) enum IdentityVerb {
    Show(IdentityShow),
    RotateEnc(IdentityRotateEnc),
    Migrate(IdentityMigrate),
    Replace(IdentityReplace),
}

/// this machine's id and membership
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "show", example = "messaging identity show")]
pub(crate) struct IdentityShow {}

/// replace the encryption key; the old one opens mail on its way for a week
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "rotate-enc", example = "messaging identity rotate-enc")]
pub(crate) struct IdentityRotateEnc {}

/// move the private keys between identity.json and the system's keychain (the daemon must be stopped)
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "migrate", example = "messaging identity migrate --to file")]
pub(crate) struct IdentityMigrate {
    /// file or keychain
    #[argh(option, arg_name = "store")]
    pub(crate) to: String,
    /// have the keychain ask on every read
    #[argh(switch)]
    pub(crate) prompt: bool,
}

/// replace this machine's keys after they were lost (only with a hosted directory, which this build does not have)
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "replace", example = "messaging identity replace")]
pub(crate) struct IdentityReplace {}
