//! Verbs about chats.

use argh::{ArgsInfo, FromArgs};

/// find lines in your chats
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "search",
    example = "messaging search \"release notes\"\nmessaging search deploy --in channel:eng"
)]
pub(crate) struct Search {
    /// words that must all occur
    #[argh(positional)]
    pub(crate) query: String,
    /// only in dm:<person> or channel:<name>
    #[argh(option, arg_name = "conversation")]
    pub(crate) r#in: Option<String>,
}

/// your conversations with people and channels
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "chats", example = "messaging chats")]
pub(crate) struct Chats {}

/// chat with a person or a channel, line by line; mark a conversation read; or follow all changes
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "chat",
    example = "messaging chat bob\nmessaging chat \"#eng\"\nmessaging chat mark-read dm:bob"
)]
pub(crate) struct Chat {
    #[argh(subcommand)]
    pub(crate) verb: ChatVerb,
}

#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand)]
pub(crate) enum ChatVerb {
    With(ChatWith),
    MarkRead(ChatMarkRead),
    Follow(ChatFollow),
}

/// the same as `messaging chat <person|#channel>`: history, then new lines as they come; what you type is sent
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "with",
    example = "messaging chat bob\nmessaging chat \"#eng\" --history 100\nmessaging chat me",
    note = "In the chat, /help lists what else you can type. The end of input or Ctrl-C leaves."
)]
pub(crate) struct ChatWith {
    /// a person, #channel or me
    #[argh(positional)]
    pub(crate) to: String,
    /// how many earlier lines to show (default 20)
    #[argh(option, default = "20", arg_name = "n")]
    pub(crate) history: u64,
}

/// mark a conversation read
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "mark-read",
    example = "messaging chat mark-read dm:bob\nmessaging chat mark-read channel:eng --up-to 120"
)]
pub(crate) struct ChatMarkRead {
    /// dm:<person> or channel:<name>
    #[argh(positional)]
    pub(crate) room: String,
    /// up to this place (default: all of it)
    #[argh(option, arg_name = "n")]
    pub(crate) up_to: Option<u64>,
}

/// print changes as they happen, one line each
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "follow",
    example = "messaging chat follow\nmessaging chat follow --since 120 --json"
)]
pub(crate) struct ChatFollow {
    /// start after this change number
    #[argh(option, arg_name = "n")]
    pub(crate) since: Option<u64>,
}

/// create a channel, invite people to it, remove them, or leave it
#[derive(ArgsInfo, FromArgs)]
#[argh(
    subcommand,
    name = "channel",
    example = "messaging channel create eng bob carol\nmessaging channel leave eng"
)]
pub(crate) struct Channel {
    #[argh(subcommand)]
    pub(crate) verb: ChannelVerb,
}

#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand)]
pub(crate) enum ChannelVerb {
    Create(ChannelCreate),
    Invite(ChannelInvite),
    Remove(ChannelRemove),
    Leave(ChannelLeave),
}

/// create a channel with these people
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "create", example = "messaging channel create eng bob carol")]
pub(crate) struct ChannelCreate {
    /// the channel's name
    #[argh(positional)]
    pub(crate) name: String,
    /// who is in it besides you
    #[argh(positional)]
    pub(crate) persons: Vec<String>,
}

/// bring people into a channel
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "invite", example = "messaging channel invite eng dave")]
pub(crate) struct ChannelInvite {
    /// the channel's name
    #[argh(positional)]
    pub(crate) name: String,
    /// who
    #[argh(positional)]
    pub(crate) persons: Vec<String>,
}

/// remove people from a channel
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "remove", example = "messaging channel remove eng dave")]
pub(crate) struct ChannelRemove {
    /// the channel's name
    #[argh(positional)]
    pub(crate) name: String,
    /// who
    #[argh(positional)]
    pub(crate) persons: Vec<String>,
}

/// leave a channel
#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand, name = "leave", example = "messaging channel leave eng")]
pub(crate) struct ChannelLeave {
    /// the channel's name
    #[argh(positional)]
    pub(crate) name: String,
}
