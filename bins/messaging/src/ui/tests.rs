//! The view without a terminal: what keys do, and whole screens of 80 columns and 24 lines.
//!
//! `UPDATE_GOLDEN=1` writes the screens in `golden/` anew; look at them before committing.

use super::draw::draw;
use super::keys::Key;
use super::state::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::path::Path;

fn item(key: &str, text: &str, tag: &str, tone: Tone) -> Item {
    Item { key: key.into(), text: text.into(), tag: tag.into(), tone }
}

fn keys(state: &mut State, text: &str) -> Vec<Action> {
    text.chars().flat_map(|letter| state.step(Event::Key(Key::Char(letter)))).collect()
}

/// A view with something in every list.
fn full() -> State {
    let mut state = State::default();
    let summary = Summary {
        me: "alice@laptop".into(),
        team: "Blue".into(),
        relay: "connected".into(),
        at: "15:02:11".into(),
        alarm: None,
    };
    state.step(Event::Summary(summary));
    let mut chats =
        vec![item("dm:bob", "bob", "2", Tone::Waiting), item("channel:eng", "#eng", "4 min", Tone::Plain)];
    chats.extend((0..30).map(|at| item(&format!("dm:p{at}"), &format!("person-{at}"), "2 d", Tone::Plain)));
    assert_eq!(state.step(Event::List(Tab::Chats, chats)), [Action::Open(Tab::Chats, "dm:bob".into())]);
    let lines = vec![
        Row::said(Tone::Plain, "14:58 ✓ alice: ", "Lunch at noon?"),
        Row::said(
            Tone::Plain,
            "14:59   bob: ",
            "Yes, the usual place, and could you bring the printed notes of the last three releases with you, please?\n15:00 ✓ alice: no, I will not",
        ),
        Row::said(Tone::Waiting, "15:01 · alice: ", "日本語も大丈夫です \u{202E}"),
    ];
    state.step(Event::Detail(Tab::Chats, Detail { key: "dm:bob".into(), lines, seq: 9 }));
    let agents =
        vec![item("planner", "planner", "idle 0", Tone::Plain), item("cli", "cli", "idle 1", Tone::Plain)];
    assert!(state.step(Event::List(Tab::Agents, agents)).is_empty(), "not the list in sight");
    state.step(Event::List(
        Tab::Requests,
        vec![item("01R", "message bob/builder@desk", "3 min", Tone::Waiting)],
    ));
    state.step(Event::List(
        Tab::Tasks,
        vec![item("01T", "Run the migration on staging", "working", Tone::Plain)],
    ));
    state.step(Event::List(
        Tab::Team,
        vec![
            item("alice@laptop", "alice@laptop", "this", Tone::Plain),
            item("bob@desk", "bob@desk", "member", Tone::Plain),
        ],
    ));
    state
}

fn screen_of(state: &State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| _ = draw(frame, state)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..width {
            let symbol = buffer[(x, y)].symbol();
            // The cell after a wide character is its second half.
            if skip > 0 {
                skip -= 1;
                continue;
            }
            skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn check(name: &str, state: &State) {
    let screen = screen_of(state, 80, 24);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ui/golden").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &screen).unwrap();
    }
    assert_eq!(screen, std::fs::read_to_string(&path).unwrap_or_default(), "the screen {name}");
}

#[test]
fn screens_are_as_they_were() {
    check("loading", &State::default());
    let mut state = full();
    check("chats", &state);
    keys(&mut state, "?");
    check("help", &state);
    keys(&mut state, "x");
    keys(&mut state, "wHello, bob");
    check("writing", &state);
    state.step(Event::Key(Key::Back));
    assert_eq!(keys(&mut state, "3"), [Action::Open(Tab::Requests, "01R".into())]);
    let lines = vec![
        Row::own(Tone::Strong, "message from bob/builder@desk"),
        Row::said(Tone::Plain, "", "Is the build green?"),
    ];
    state.step(Event::Detail(Tab::Requests, Detail { key: "01R".into(), lines, seq: 0 }));
    check("requests", &state);
    let answer = Action::Answer { id: "01R".into(), answer: "once" };
    state.step(Event::Ask("Your agent planner gets this request from bob; it runs guarded.".into(), answer));
    state.listen();
    check("asking", &state);
    keys(&mut state, "n5");
    check("notices-empty", &state);
    let mut summary = state.summary.clone();
    summary.relay = "offline".into();
    state.step(Event::Summary(summary));
    check("notices-unknowable", &state);
    state.step(Event::Lost("daemon_unavailable: the daemon closed the connection".into()));
    check("lost", &state);
}

#[test]
fn every_size_draws_and_a_small_one_says_so() {
    let state = full();
    for (width, height) in [(1, 1), (20, 5), (59, 24), (60, 12), (80, 11), (200, 60)] {
        let screen = screen_of(&state, width, height);
        assert_eq!(screen.lines().count(), usize::from(height));
    }
    assert!(screen_of(&state, 70, 8).contains("needs 80 columns"));
}

#[test]
fn an_answer_needs_a_preview_and_a_yes() {
    let mut state = full();
    keys(&mut state, "3");
    assert_eq!(keys(&mut state, "a"), [Action::Preview { id: "01R".into(), answer: "always" }]);
    let answer = Action::Answer { id: "01R".into(), answer: "always" };
    state.step(Event::Ask("sentence".into(), answer.clone()));
    state.listen();
    assert!(keys(&mut state, "qxo1").is_empty(), "nothing but an answer");
    assert_eq!(keys(&mut state, "y"), std::slice::from_ref(&answer));
    state.step(Event::Ask("sentence".into(), answer));
    assert!(state.step(Event::Key(Key::Back)).is_empty());
    assert!(keys(&mut state, "y").is_empty(), "it was dropped");
}

#[test]
fn writing_takes_every_letter_and_sends_once() {
    let mut state = full();
    assert!(keys(&mut state, "wqr?1").is_empty());
    state.step(Event::Key(Key::Erase));
    let sent = state.step(Event::Key(Key::Enter));
    assert_eq!(sent, [Action::Write { room: "dm:bob".into(), text: "qr?".into() }]);
    assert_eq!(state.over, Over::Nothing);
    assert!(keys(&mut state, "w  ").is_empty());
    assert!(state.step(Event::Key(Key::Enter)).is_empty(), "nothing to send");
    keys(&mut state, "w");
    assert_eq!(state.step(Event::Key(Key::Leave)), [Action::Quit], "Ctrl-C leaves from anywhere");
}

#[test]
fn the_selection_stays_on_its_item_and_old_answers_are_dropped() {
    let mut state = full();
    assert_eq!(state.step(Event::Key(Key::Down)), [Action::Open(Tab::Chats, "channel:eng".into())]);
    let before = state.detail.clone();
    state.step(Event::Detail(Tab::Chats, Detail { key: "dm:bob".into(), lines: Vec::new(), seq: 1 }));
    assert_eq!(state.detail, before, "an answer for another item");
    let list = vec![
        item("dm:new", "new", "", Tone::Plain),
        item("dm:bob", "bob", "", Tone::Plain),
        item("channel:eng", "#eng", "", Tone::Plain),
    ];
    assert_eq!(state.step(Event::List(Tab::Chats, list)), [Action::Open(Tab::Chats, "channel:eng".into())]);
    assert_eq!(state.selected(), 2);
    assert!(state.step(Event::List(Tab::Chats, Vec::new())).is_empty());
    assert_eq!((state.selected(), &state.detail), (0, &Detail::default()));
    assert!(state.step(Event::Key(Key::Enter)).is_empty());
    assert!(keys(&mut state, "w").is_empty());
    assert_eq!(state.over, Over::Nothing, "nobody to write to");
}

#[test]
fn tabs_wrap_around_and_enter_marks_read() {
    let mut state = full();
    assert_eq!(state.step(Event::Key(Key::Enter)), [Action::MarkRead { room: "dm:bob".into(), up_to: 9 }]);
    state.step(Event::Key(Key::Previous));
    assert_eq!(state.tab, Tab::Team);
    state.step(Event::Key(Key::Next));
    assert_eq!(state.tab, Tab::Chats);
    keys(&mut state, "4");
    keys(&mut state, "c");
    state.listen();
    assert_eq!(keys(&mut state, "y"), [Action::Cancel { task: "01T".into() }]);
    keys(&mut state, "5");
    assert_eq!(keys(&mut state, "m"), [Action::Seen { ids: Vec::new() }]);
    assert_eq!(keys(&mut state, "q"), [Action::Quit]);
}

/// Whatever is pasted is text: no line of it is sent by itself and no letter of it is a command.
#[test]
fn pasted_text_is_never_keys() {
    let evil = "first line\r\n3ayes you may\nq\u{1b}[A\ty";
    let paste = |state: &mut State| state.step(Event::Paste(evil.to_owned()));
    let mut state = full();
    for tab in ["1", "2", "3", "4", "5", "6"] {
        keys(&mut state, tab);
        let before = state.tab;
        assert!(paste(&mut state).is_empty(), "in the list {tab}");
        assert_eq!((state.tab, &state.over), (before, &Over::Nothing));
        assert!(state.word.1.contains("dropped"));
    }
    keys(&mut state, "3a");
    let answer = Action::Answer { id: "01R".into(), answer: "always" };
    state.step(Event::Ask("sentence".into(), answer.clone()));
    assert!(paste(&mut state).is_empty());
    assert_eq!(state.over, Over::Asking { sentence: "sentence".into(), action: answer });
    keys(&mut state, "n?");
    assert!(paste(&mut state).is_empty());
    assert_eq!(state.over, Over::Help);
    keys(&mut state, "x1w> ");
    assert!(paste(&mut state).is_empty());
    let text = "> first line 3ayes you may q [A y".to_owned();
    assert_eq!(state.step(Event::Key(Key::Enter)), [Action::Write { room: "dm:bob".into(), text }]);
}

/// A question is not answered before it says how, and it says so when what was typed before is gone.
#[test]
fn an_unseen_question_takes_no_yes() {
    let mut state = full();
    let cancel = Action::Cancel { task: "01T".into() };
    keys(&mut state, "4");
    assert!(keys(&mut state, "cyyy").is_empty());
    assert!(state.is_unseen());
    assert!(!screen_of(&state, 80, 24).contains("y yes"));
    state.listen();
    assert!(screen_of(&state, 80, 24).contains("y yes"));
    assert_eq!(keys(&mut state, "y"), [cancel]);
    // The next question is unseen again.
    state.step(Event::Ask("sentence".into(), Action::Reload));
    assert!(keys(&mut state, "y").is_empty());
    assert!(state.is_unseen());
}

/// A word longer than the pane is shown in full, and all of what is long can be looked at.
#[test]
fn long_words_and_long_texts_are_within_reach() {
    let mut state = full();
    let url = format!("https://example.org/{}/end", "x".repeat(140));
    let text = format!("first\n{}{url}", "18:53 ✓ alice: yes, approved\n".repeat(60));
    let lines = vec![Row::said(Tone::Plain, "14:59   bob: ", text)];
    state.step(Event::Detail(Tab::Chats, Detail { key: "dm:bob".into(), lines, seq: 9 }));
    let pane = |state: &State| -> Vec<String> {
        let screen = screen_of(state, 80, 24);
        screen.lines().map(|line| line.chars().skip(30).collect::<String>().trim().to_owned()).collect()
    };
    let end = pane(&state);
    let shown: String = end.iter().filter_map(|row| row.strip_prefix("│ ")).collect();
    assert!(shown.ends_with(&url), "{end:?}");
    let mut above = 0;
    for _ in 0..20 {
        state.step(Event::Key(Key::PageUp));
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| above = draw(frame, &state)).unwrap();
        state.reach(above);
    }
    assert!(pane(&state).iter().any(|row| row == "14:59   bob: first"), "{:?}", pane(&state));
    assert!(pane(&state).iter().all(|row| !row.starts_with("18:53")), "{:?}", pane(&state));
    state.step(Event::Key(Key::PageDown));
    assert!(pane(&state).iter().all(|row| row != "14:59   bob: first"), "one key moves it");
}

/// What was written and could not be sent is still there, and what was lost is forgotten once it is back.
#[test]
fn a_lost_daemon_takes_no_text_along() {
    let mut state = full();
    keys(&mut state, "wHello");
    let sent = state.step(Event::Key(Key::Enter));
    assert_eq!(sent, [Action::Write { room: "dm:bob".into(), text: "Hello".into() }]);
    state.step(Event::Lost("daemon_unavailable: gone".into()));
    state.step(Event::Unsent("dm:bob".into(), "Hello".into()));
    assert!(screen_of(&state, 80, 24).contains("To bob: Hello"));
    let mut summary = state.summary.clone();
    summary.team = "A team with a name of many words".into();
    summary.relay = "connecting".into();
    state.step(Event::Summary(summary));
    let screen = screen_of(&state, 80, 24);
    assert!(!screen.contains("gone") && screen.contains("Connected again."), "{screen}");
    let head = screen.lines().next().unwrap();
    assert!(head.contains("  relay connecting"), "{head}");
    assert_eq!(state.step(Event::Key(Key::Enter)), sent, "one more key sends it");
}
