//! `messaging ui`: the person's full-screen view.
//!
//! [`state`] decides, without a terminal and without a daemon: an event goes in, actions come out. [`draw`] turns a state into a
//! screen. [`load`] carries actions out and turns what the daemon answers into events, every text of a peer made inert. This
//! file ties them to a terminal.

mod draw;
mod keys;
mod load;
mod state;
#[cfg(test)]
mod tests;

use crate::cli::{Failure, Shell, before_end, can_ask, object};
use ratatui::crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event as Input};
use ratatui::crossterm::execute;
use state::{Action, Event, State};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How soon a change elsewhere shows.
const POLL: Duration = Duration::from_millis(100);
/// Changes come in bursts: the lists are read again at most this often.
const CALM: Duration = Duration::from_millis(400);
/// And at least this often, so that ages and clocks move.
const STALE: Duration = Duration::from_secs(15);
/// How soon a daemon that is gone is looked for again.
const AGAIN: Duration = Duration::from_secs(2);
/// A question is answered by what comes after this much silence, once it is on the screen.
const SILENCE: Duration = Duration::from_millis(150);

pub(crate) fn run(shell: &mut Shell) -> Result<(), Failure> {
    if !can_ask() || !crate::cli::on_terminal() {
        return Err(Failure::usage("the full-screen view needs a terminal")
            .with_remedy("use `messaging status` and `messaging chat`."));
    }
    shell.autostart()?;
    subscribe(shell)?;
    // `init` puts the terminal back on a panic too.
    let mut terminal = ratatui::init();
    take_pastes_whole();
    before_end(|| {
        let _ = execute!(std::io::stdout(), DisableBracketedPaste);
        ratatui::restore();
    });
    // Nor is what was typed before for this view.
    crate::cli::forget_typed();
    let result = go(shell, &mut terminal);
    let _ = execute!(std::io::stdout(), DisableBracketedPaste);
    ratatui::restore();
    // What was typed for this view is not for the shell.
    crate::cli::forget_typed();
    result
}

/// Asks the terminal to mark pasted text, and to stop that on a panic too. Without the marks a pasted text would be keys,
/// and keys give consent.
fn take_pastes_whole() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let _ = execute!(std::io::stdout(), DisableBracketedPaste);
        hook(info);
    }));
    let _ = execute!(std::io::stdout(), EnableBracketedPaste);
}

/// Drops what was typed and pasted before a question could be seen, until nothing comes for a moment. Whether to go on:
/// Ctrl-C leaves from here too.
fn forget_waiting() -> bool {
    while let Ok(true) = event::poll(SILENCE) {
        match event::read() {
            Ok(Input::Key(key)) if keys::read(key) == Some(keys::Key::Leave) => return false,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    true
}

/// Asks for every event a person is told of. A daemon without notices has none to tell.
fn subscribe(shell: &mut Shell) -> Result<(), Failure> {
    shell.call("conv.subscribe", object([]))?;
    match shell.call("notice.subscribe", object([])) {
        Ok(_) => Ok(()),
        Err(failure) if failure.code == "not_found" => Ok(()),
        Err(failure) => Err(failure),
    }
}

fn go(shell: &mut Shell, terminal: &mut ratatui::DefaultTerminal) -> Result<(), Failure> {
    let mut state = State::default();
    let mut work: VecDeque<Action> = VecDeque::from([Action::Reload]);
    let mut loaded = Instant::now();
    let mut stale = false;
    loop {
        while let Some(action) = work.pop_front() {
            match action {
                Action::Quit => return Ok(()),
                Action::Reconnect => {
                    shell.reconnect();
                    match subscribe(shell) {
                        Ok(()) => work.push_back(Action::Reload),
                        Err(failure) => work.extend(state.step(Event::Lost(load::words(&failure)))),
                    }
                }
                action => {
                    if matches!(action, Action::Reload) {
                        loaded = Instant::now();
                        stale = false;
                    }
                    for event in load::perform(shell, &action) {
                        work.extend(state.step(event));
                    }
                }
            }
        }
        let mut above = 0;
        let drawn = terminal.draw(|frame| above = draw::draw(frame, &state));
        if drawn.is_err() {
            return Err(Failure::new("internal", "the terminal cannot be drawn on"));
        }
        state.reach(above);
        if state.is_unseen() {
            if !forget_waiting() {
                return Ok(());
            }
            state.listen();
            // Again, with the keys that answer it.
            continue;
        }
        match event::poll(POLL) {
            Ok(true) => match event::read() {
                Ok(Input::Key(key)) => {
                    if let Some(key) = keys::read(key) {
                        work.extend(state.step(Event::Key(key)));
                    }
                }
                Ok(Input::Paste(text)) => work.extend(state.step(Event::Paste(text))),
                Ok(_) => {}
                Err(_) => return Ok(()),
            },
            Ok(false) => {}
            Err(_) => return Ok(()),
        }
        loop {
            match shell.event(Some(Duration::ZERO)) {
                Ok(Some(_)) => stale = true,
                Ok(None) => break,
                Err(failure) => {
                    work.extend(state.step(Event::Lost(load::words(&failure))));
                    break;
                }
            }
        }
        let since = loaded.elapsed();
        if state.is_lost() && since > AGAIN {
            loaded = Instant::now();
            work.push_back(Action::Reconnect);
        }
        if !state.is_lost() && ((stale && since > CALM) || since > STALE) {
            work.push_back(Action::Reload);
        }
    }
}
