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

use crate::cli::{Failure, Shell, can_ask, object};
use ratatui::crossterm::event::{self, Event as Input};
use state::{Action, Event, State};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How soon a change elsewhere shows.
const POLL: Duration = Duration::from_millis(100);
/// Changes come in bursts: the lists are read again at most this often.
const CALM: Duration = Duration::from_millis(400);
/// And at least this often, so that ages and clocks move.
const STALE: Duration = Duration::from_secs(15);

pub(crate) fn run(shell: &mut Shell) -> Result<(), Failure> {
    if !can_ask() || !crate::cli::on_terminal() {
        return Err(Failure::usage("the full-screen view needs a terminal")
            .with_remedy("use `messaging status` and `messaging chat`."));
    }
    shell.autostart()?;
    subscribe(shell)?;
    // `init` puts the terminal back on a panic too.
    let mut terminal = ratatui::init();
    let result = go(shell, &mut terminal);
    ratatui::restore();
    result
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
                        Err(failure) => work.extend(state.step(Event::Failed(load::words(&failure)))),
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
        let drawn = terminal.draw(|frame| draw::draw(frame, &state));
        if drawn.is_err() {
            return Err(Failure::new("internal", "the terminal cannot be drawn on"));
        }
        match event::poll(POLL) {
            Ok(true) => match event::read() {
                Ok(Input::Key(key)) => {
                    if let Some(key) = keys::read(key) {
                        work.extend(state.step(Event::Key(key)));
                    }
                }
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
        if !state.is_lost() && ((stale && since > CALM) || since > STALE) {
            work.push_back(Action::Reload);
        }
    }
}
