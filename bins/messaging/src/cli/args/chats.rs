//! Verbs about chats.

use argh::FromArgs;

/// find lines in your chats
#[derive(FromArgs)]
#[argh(subcommand, name = "search")]
pub(crate) struct Search {
    /// words that must all occur
    #[argh(positional)]
    pub(crate) query: String,
    /// only in dm:<person> or channel:<name>
    #[argh(option)]
    pub(crate) r#in: Option<String>,
}

/// your conversations with people and channels
#[derive(FromArgs)]
#[argh(subcommand, name = "chats")]
pub(crate) struct Chats {}

/// mark a conversation read, or follow new lines
#[derive(FromArgs)]
#[argh(subcommand, name = "chat")]
pub(crate) struct Chat {
    #[argh(subcommand)]
    pub(crate) verb: ChatVerb,
}

#[derive(FromArgs)]
#[argh(subcommand)]
pub(crate) enum ChatVerb {
    MarkRead(ChatMarkRead),
    Follow(ChatFollow),
}

/// mark a conversation read
#[derive(FromArgs)]
#[argh(subcommand, name = "mark-read")]
pub(crate) struct ChatMarkRead {
    /// dm:<person> or channel:<name>
    #[argh(positional)]
    pub(crate) room: String,
    /// up to this place (default: all of it)
    #[argh(option)]
    pub(crate) up_to: Option<u64>,
}

/// print changes as they happen, one line each
#[derive(FromArgs)]
#[argh(subcommand, name = "follow")]
pub(crate) struct ChatFollow {
    /// start after this change number
    #[argh(option)]
    pub(crate) since: Option<u64>,
}

/// create, extend, leave or prune a channel
#[derive(FromArgs)]
#[argh(
    subcommand,
    name = "channel",
    example = "messaging channel create eng bob carol\nmessaging channel leave eng"
)]
pub(crate) struct Channel {
    #[argh(subcommand)]
    pub(crate) verb: ChannelVerb,
}

#[derive(FromArgs)]
#[argh(subcommand)]
pub(crate) enum ChannelVerb {
    Create(ChannelCreate),
    Invite(ChannelInvite),
    Remove(ChannelRemove),
    Leave(ChannelLeave),
}

/// create a channel with these people
#[derive(FromArgs)]
#[argh(subcommand, name = "create")]
pub(crate) struct ChannelCreate {
    /// the channel's name
    #[argh(positional)]
    pub(crate) name: String,
    /// who is in it besides you
    #[argh(positional)]
    pub(crate) persons: Vec<String>,
}

/// bring people into a channel
#[derive(FromArgs)]
#[argh(subcommand, name = "invite")]
pub(crate) struct ChannelInvite {
    /// the channel's name
    #[argh(positional)]
    pub(crate) name: String,
    /// who
    #[argh(positional)]
    pub(crate) persons: Vec<String>,
}

/// remove people from a channel
#[derive(FromArgs)]
#[argh(subcommand, name = "remove")]
pub(crate) struct ChannelRemove {
    /// the channel's name
    #[argh(positional)]
    pub(crate) name: String,
    /// who
    #[argh(positional)]
    pub(crate) persons: Vec<String>,
}

/// leave a channel
#[derive(FromArgs)]
#[argh(subcommand, name = "leave")]
pub(crate) struct ChannelLeave {
    /// the channel's name
    #[argh(positional)]
    pub(crate) name: String,
}
