//! What the view shows and what a key does, without a terminal and without a daemon.

use super::keys::Key;

/// One of the six lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tab {
    Chats,
    Agents,
    Requests,
    Tasks,
    Notices,
    Team,
}

impl Tab {
    pub(super) const ALL: [Self; 6] =
        [Self::Chats, Self::Agents, Self::Requests, Self::Tasks, Self::Notices, Self::Team];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Chats => "Chats",
            Self::Agents => "Agents",
            Self::Requests => "Requests",
            Self::Tasks => "Tasks",
            Self::Notices => "Notices",
            Self::Team => "Team",
        }
    }

    /// What an empty list says.
    pub(super) const fn empty(self) -> &'static str {
        match self {
            Self::Chats => "No conversations yet",
            Self::Agents => "No agents here",
            Self::Requests => "Nothing waits for you",
            Self::Tasks => "No tasks",
            Self::Notices => "Nothing new",
            Self::Team => "No team yet",
        }
    }

    /// Its keys, besides those of every list.
    pub(super) const fn keys(self) -> &'static str {
        match self {
            Self::Chats => "Enter read  w write",
            Self::Requests => "o once  a always  d decline  b block",
            Self::Tasks => "c cancel",
            Self::Notices => "m mark seen",
            Self::Agents | Self::Team => "",
        }
    }

    const fn at(self) -> usize {
        self as usize
    }
}

/// How a text is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Plain,
    Strong,
    Faint,
    Good,
    Waiting,
    Bad,
}

/// A row of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Item {
    /// What identifies it to the daemon.
    pub(super) key: String,
    pub(super) text: String,
    /// At the right, such as a count or an age.
    pub(super) tag: String,
    pub(super) tone: Tone,
}

/// A word of ours.
pub(super) type Said = (Tone, String);

/// A line of the right-hand side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) tone: Tone,
    /// What we say.
    pub(super) lead: String,
    /// What somebody else wrote, after it.
    pub(super) text: Option<String>,
}

impl Row {
    /// A line of ours.
    pub(super) fn own(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, lead: text.into(), text: None }
    }

    /// Somebody else's text after our lead.
    pub(super) fn said(tone: Tone, lead: impl Into<String>, text: impl Into<String>) -> Self {
        Self { tone, lead: lead.into(), text: Some(text.into()) }
    }
}

/// The right-hand side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Detail {
    /// Of which item.
    pub(super) key: String,
    pub(super) lines: Vec<Row>,
    /// The last line's place, for read marks.
    pub(super) seq: u64,
}

/// The line at the top.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) me: String,
    pub(super) team: String,
    pub(super) relay: String,
    /// When the lists were read, as `HH:MM:SS`.
    pub(super) at: String,
    pub(super) alarm: Option<String>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Key(Key),
    /// Text pasted into the terminal: never keys.
    Paste(String),
    Summary(Summary),
    List(Tab, Vec<Item>),
    Detail(Tab, Detail),
    /// The sentence of a preview: what goes on when the person says yes.
    Ask(String, Action),
    /// A short word of success.
    Done(String),
    /// A refusal in words.
    Failed(String),
    /// A line that was not sent: its room and its text.
    Unsent(String, String),
    /// The daemon is gone.
    Lost(String),
}

/// What is to be done in the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Read every list.
    Reload,
    /// Read the right-hand side of an item.
    Open(Tab, String),
    MarkRead {
        room: String,
        up_to: u64,
    },
    Write {
        room: String,
        text: String,
    },
    Preview {
        id: String,
        answer: &'static str,
    },
    Answer {
        id: String,
        answer: &'static str,
    },
    Cancel {
        task: String,
    },
    Seen {
        ids: Vec<String>,
    },
    Reconnect,
    Quit,
}

/// What is over the lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Over {
    #[default]
    Nothing,
    Help,
    /// A line being written to a room.
    Writing {
        room: String,
        text: String,
    },
    /// A question: y or n.
    Asking {
        sentence: String,
        action: Action,
    },
}

/// The whole view.
#[derive(Debug)]
pub(super) struct State {
    pub(super) tab: Tab,
    pub(super) summary: Summary,
    lists: [Vec<Item>; 6],
    selected: [usize; 6],
    pub(super) detail: Detail,
    /// Lines the right-hand side is moved up from its end.
    pub(super) scroll: usize,
    pub(super) over: Over,
    pub(super) word: Said,
    lost: bool,
    /// The question on the screen may be answered.
    listening: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            tab: Tab::Chats,
            summary: Summary::default(),
            lists: Default::default(),
            selected: [0; 6],
            detail: Detail::default(),
            scroll: 0,
            over: Over::Nothing,
            word: (Tone::Faint, String::new()),
            lost: false,
            listening: false,
        }
    }
}

impl State {
    pub(super) fn items(&self, tab: Tab) -> &[Item] {
        &self.lists[tab.at()]
    }

    pub(super) fn selected(&self) -> usize {
        self.selected[self.tab.at()]
    }

    pub(super) const fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether a question was put that nobody can have seen yet: what was typed before cannot be its answer.
    pub(super) const fn is_unseen(&self) -> bool {
        matches!(self.over, Over::Asking { .. }) && !self.listening
    }

    /// The question is on the screen, and what was typed before it is gone.
    pub(super) const fn listen(&mut self) {
        self.listening = true;
    }

    /// How far up the right-hand side goes, known once it is drawn.
    pub(super) fn reach(&mut self, rows: usize) {
        self.scroll = self.scroll.min(rows);
    }

    fn current(&self) -> Option<&Item> {
        self.items(self.tab).get(self.selected())
    }

    /// Takes an event; what is to be done.
    pub(super) fn step(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Key(key) => return self.key(key),
            Event::Paste(text) => self.paste(&text),
            Event::Summary(summary) => {
                self.summary = summary;
                if std::mem::take(&mut self.lost) {
                    self.word = (Tone::Good, "Connected again.".to_owned());
                }
            }
            Event::List(tab, items) => return self.list(tab, items),
            Event::Detail(tab, detail) => {
                // An answer for what is no longer looked at is old.
                if tab == self.tab && self.current().is_some_and(|item| item.key == detail.key) {
                    self.detail = detail;
                }
            }
            Event::Ask(sentence, action) => self.ask(sentence, action),
            Event::Done(word) => self.word = (Tone::Good, word),
            Event::Failed(words) => self.word = (Tone::Bad, words),
            // What was typed stays: it goes out, or is dropped, by another key.
            Event::Unsent(room, text) if self.over == Over::Nothing => {
                self.over = Over::Writing { room, text };
            }
            Event::Unsent(..) => {}
            Event::Lost(words) => {
                self.lost = true;
                self.word = (Tone::Bad, format!("{words} (r: try again)"));
            }
        }
        Vec::new()
    }

    /// A list read anew; the selection stays on its item.
    fn list(&mut self, tab: Tab, items: Vec<Item>) -> Vec<Action> {
        let at = tab.at();
        let key = self.lists[at].get(self.selected[at]).map(|item| item.key.clone());
        let same = key.and_then(|key| items.iter().position(|item| item.key == key));
        self.selected[at] = same.unwrap_or(self.selected[at]).min(items.len().saturating_sub(1));
        self.lists[at] = items;
        if tab == self.tab { self.open() } else { Vec::new() }
    }

    /// Reads the right-hand side of the selected item.
    fn open(&mut self) -> Vec<Action> {
        match self.current() {
            Some(item) => vec![Action::Open(self.tab, item.key.clone())],
            None => {
                self.detail = Detail::default();
                Vec::new()
            }
        }
    }

    fn key(&mut self, key: Key) -> Vec<Action> {
        if key == Key::Leave {
            return vec![Action::Quit];
        }
        match std::mem::take(&mut self.over) {
            Over::Nothing => self.command(key),
            Over::Help => Vec::new(),
            Over::Writing { room, text } => self.write(key, room, text),
            Over::Asking { sentence, action } => match key {
                Key::Char('y' | 'Y') if self.listening => vec![action],
                Key::Char('n' | 'N') | Key::Back => {
                    self.word = (Tone::Faint, "Nothing was changed.".to_owned());
                    Vec::new()
                }
                _ => {
                    self.over = Over::Asking { sentence, action };
                    Vec::new()
                }
            },
        }
    }

    fn ask(&mut self, sentence: String, action: Action) {
        self.listening = false;
        self.over = Over::Asking { sentence, action };
    }

    /// Pasted text is text: it goes into the line being written, as one line, and nowhere else.
    fn paste(&mut self, pasted: &str) {
        match &mut self.over {
            Over::Writing { text, .. } => {
                let one = pasted.replace("\r\n", "\n");
                text.extend(one.chars().map(|letter| if letter.is_control() { ' ' } else { letter }));
            }
            _ => self.word = (Tone::Waiting, "What was pasted was dropped; w writes a line.".to_owned()),
        }
    }

    fn write(&mut self, key: Key, room: String, mut text: String) -> Vec<Action> {
        match key {
            Key::Back => return Vec::new(),
            Key::Enter if text.trim().is_empty() => return Vec::new(),
            Key::Enter => return vec![Action::Write { room, text }],
            Key::Erase => {
                text.pop();
            }
            Key::Char(character) => text.push(character),
            _ => {}
        }
        self.over = Over::Writing { room, text };
        Vec::new()
    }

    fn command(&mut self, key: Key) -> Vec<Action> {
        let chosen = self.current().map(|item| item.key.clone());
        match key {
            Key::Char('q') | Key::Back => return vec![Action::Quit],
            Key::Char('?') => self.over = Over::Help,
            Key::Char('r') if self.lost => return vec![Action::Reconnect],
            Key::Char('r') => return vec![Action::Reload],
            Key::Char(digit @ '1'..='6') => return self.go(Tab::ALL[digit as usize - '1' as usize]),
            Key::Next => return self.go(Tab::ALL[(self.tab.at() + 1) % 6]),
            Key::Previous => return self.go(Tab::ALL[(self.tab.at() + 5) % 6]),
            Key::Up | Key::Char('k') => return self.select(self.selected().saturating_sub(1)),
            Key::Down | Key::Char('j') => return self.select(self.selected() + 1),
            Key::PageUp => self.scroll += 10,
            Key::PageDown => self.scroll = self.scroll.saturating_sub(10),
            Key::Enter if self.tab == Tab::Chats => {
                self.scroll = 0;
                let seq = self.detail.seq;
                return chosen.map(|room| Action::MarkRead { room, up_to: seq }).into_iter().collect();
            }
            Key::Char('w') if self.tab == Tab::Chats => {
                if let Some(room) = chosen {
                    self.over = Over::Writing { room, text: String::new() };
                }
            }
            Key::Char(letter) if self.tab == Tab::Requests => {
                let answer = match letter {
                    'o' => "once",
                    'a' => "always",
                    'd' => "decline",
                    'b' => "block",
                    _ => return Vec::new(),
                };
                return chosen.map(|id| Action::Preview { id, answer }).into_iter().collect();
            }
            Key::Char('c') if self.tab == Tab::Tasks => {
                if let Some(task) = chosen {
                    let sentence = "The one who works on the task is asked to stop.".to_owned();
                    self.ask(sentence, Action::Cancel { task });
                }
            }
            Key::Char('m') if self.tab == Tab::Notices => {
                let ids = self.items(Tab::Notices).iter().map(|item| item.key.clone()).collect();
                return vec![Action::Seen { ids }];
            }
            _ => {}
        }
        Vec::new()
    }

    fn go(&mut self, tab: Tab) -> Vec<Action> {
        self.tab = tab;
        self.scroll = 0;
        self.detail = Detail::default();
        self.word = (Tone::Faint, String::new());
        self.open()
    }

    fn select(&mut self, at: usize) -> Vec<Action> {
        let last = self.items(self.tab).len().saturating_sub(1);
        self.selected[self.tab.at()] = at.min(last);
        self.scroll = 0;
        self.open()
    }
}
