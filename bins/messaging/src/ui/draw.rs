//! A state as a screen.

use super::state::{Detail, Item, Over, Said, State, Tab, Tone};
use crate::cli::{cut, said_in, wrap};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Wrap};
use unicode_width::UnicodeWidthStr;

/// Below this there is no room for a list and what is in it.
const LEAST: (u16, u16) = (60, 12);
/// Most rows of what is said at the bottom.
const WORD: u16 = 4;
/// How wide the list is.
const LIST: u16 = 30;

const HELP: &[(&str, &str)] = &[
    ("1-6, Tab, arrows", "the lists: chats, agents, requests, tasks, notices, team"),
    ("up, down, j, k", "choose an item; the right-hand side shows it"),
    ("PageUp, PageDown", "move the right-hand side"),
    ("Enter", "chats: mark it read"),
    ("w", "chats: write a line; Enter sends it, Esc drops it"),
    ("o a d b", "requests: let it through once, always, decline, block"),
    ("c", "tasks: ask to stop"),
    ("m", "notices: mark all seen"),
    ("r", "read everything anew; after a lost daemon: connect again"),
    ("q, Esc, Ctrl-C", "leave"),
];

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
        Tone::Faint => Style::new().add_modifier(Modifier::DIM),
        Tone::Good => Style::new().fg(Color::Green),
        Tone::Waiting => Style::new().fg(Color::Yellow),
        Tone::Bad => Style::new().fg(Color::Red),
    }
}

/// Draws the whole screen. How many rows of the right-hand side are above what is shown of its end.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State) -> usize {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        frame.render_widget(Paragraph::new("This view needs 80 columns and 24 lines. q leaves."), area);
        return 0;
    }
    let (tone, words) = &state.word;
    let words = wrap(words, usize::from(area.width));
    // As many rows as it needs: it may be an error, whose next step is at its end.
    let rows = u16::try_from(words.split('\n').count()).unwrap_or(WORD).min(WORD);
    let [top, tabs, body, hint, word] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(5),
        Constraint::Length(1),
        Constraint::Length(rows),
    ])
    .areas(area);
    frame.render_widget(heading(state, top.width), top);
    frame.render_widget(tab_line(state), tabs);
    let [left, right] = Layout::horizontal([Constraint::Length(LIST), Constraint::Min(20)]).areas(body);
    list(frame, state, left);
    let above = detail(frame, state, right);
    let keys = format!("{}  ? help  q leave", state.tab.keys());
    frame.render_widget(Line::styled(keys.trim_start().to_owned(), style(Tone::Faint)), hint);
    frame.render_widget(Paragraph::new(words).style(style(*tone)), word);
    over(frame, state, area, hint);
    above
}

fn heading(state: &State, width: u16) -> Line<'static> {
    let summary = &state.summary;
    let who = if summary.team.is_empty() {
        "no team".to_owned()
    } else {
        format!("{}  {}", summary.me, summary.team)
    };
    let connected = summary.relay == "connected";
    let tone = if connected { Tone::Good } else { Tone::Waiting };
    // What cannot be known is not shown as if it were nothing.
    let known = if connected { "" } else { ", may be incomplete" };
    let end = match (&summary.alarm, state.is_lost()) {
        (_, true) => (Tone::Bad, "no daemon".to_owned()),
        (Some(alarm), _) => (Tone::Bad, format!("ALARM {alarm}: run messaging doctor")),
        (None, _) if summary.relay.is_empty() => (Tone::Faint, "loading".to_owned()),
        (None, _) => (tone, format!("relay {}  as of {}{known}", summary.relay, summary.at)),
    };
    let left = format!("Messaging  {}", cut(&who, 30));
    let end = (end.0, cut(&end.1, usize::from(width).saturating_sub(left.width() + 2)));
    let gap = usize::from(width).saturating_sub(left.width() + end.1.width());
    Line::from(vec![
        Span::styled(left, style(Tone::Strong)),
        Span::raw(" ".repeat(gap)),
        Span::styled(end.1, style(end.0)),
    ])
}

fn tab_line(state: &State) -> Line<'static> {
    let mut spans = Vec::new();
    for (at, tab) in Tab::ALL.into_iter().enumerate() {
        let count = state.items(tab).iter().filter(|item| item.tone == Tone::Waiting).count();
        let text = match count {
            0 => format!(" {} {} ", at + 1, tab.title()),
            count => format!(" {} {} ({count}) ", at + 1, tab.title()),
        };
        let chosen = tab == state.tab;
        let look = if chosen {
            Style::new().add_modifier(Modifier::REVERSED)
        } else if count > 0 {
            style(Tone::Waiting)
        } else {
            Style::new()
        };
        spans.push(Span::styled(text, look));
    }
    Line::from(spans)
}

fn list(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let block = Block::new().borders(Borders::RIGHT | Borders::TOP);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let items = state.items(state.tab);
    if items.is_empty() {
        let tone = if state.summary.relay == "connected" { Tone::Faint } else { Tone::Waiting };
        let known = if state.summary.relay == "connected" { "" } else { ", as far as is known here" };
        let words = format!("{}{known}.", state.tab.empty());
        frame.render_widget(Paragraph::new(words).style(style(tone)).wrap(Wrap { trim: true }), inner);
        return;
    }
    let rows = usize::from(inner.height);
    let first = state.selected().saturating_sub(rows.saturating_sub(1));
    let lines: Vec<Line<'_>> = items
        .iter()
        .enumerate()
        .skip(first)
        .take(rows)
        .map(|(at, item)| row(item, usize::from(inner.width), at == state.selected()))
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

fn row(item: &Item, width: usize, chosen: bool) -> Line<'static> {
    let room = width.saturating_sub(item.tag.width() + 4);
    let text = cut(&item.text, room);
    let mark = if chosen { "> " } else { "  " };
    let gap = width.saturating_sub(mark.len() + text.width() + item.tag.width() + 1);
    let mut look = style(item.tone);
    if chosen {
        look = look.add_modifier(Modifier::BOLD);
    }
    Line::styled(format!("{mark}{text}{}{} ", " ".repeat(gap), item.tag), look)
}

fn detail(frame: &mut Frame<'_>, state: &State, area: Rect) -> usize {
    let block = Block::new().borders(Borders::TOP);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let lines = wrapped(&state.detail, usize::from(inner.width).saturating_sub(1));
    let rows = usize::from(inner.height);
    // The end is what is new; a list that fits begins at the top.
    let last = lines.len().saturating_sub(rows);
    let first = last.saturating_sub(state.scroll);
    let shown: Vec<Line<'_>> = lines
        .into_iter()
        .skip(first)
        .take(rows)
        .map(|(tone, text)| Line::styled(format!(" {text}"), style(tone)))
        .collect();
    frame.render_widget(Paragraph::new(shown), inner);
    last
}

/// The lines broken to a width.
fn wrapped(detail: &Detail, width: usize) -> Vec<Said> {
    let width = width.max(10);
    let mut lines = Vec::new();
    for row in &detail.lines {
        let shown = match &row.text {
            Some(text) => said_in(&row.lead, text, Some(width)),
            None => wrap(&row.lead, width),
        };
        lines.extend(shown.split('\n').map(|line| (row.tone, line.to_owned())));
    }
    lines
}

fn over(frame: &mut Frame<'_>, state: &State, area: Rect, hint: Rect) {
    match &state.over {
        Over::Nothing => {}
        Over::Writing { room, text } => {
            let label = format!("To {}: ", super::load::room_name(room));
            let room_left = usize::from(hint.width).saturating_sub(label.width() + 1);
            // The end of what is written stays in sight.
            let mut tail = text.as_str();
            while tail.width() > room_left {
                let mut rest = tail.chars();
                rest.next();
                tail = rest.as_str();
            }
            let line = Line::from(vec![
                Span::styled(label.clone(), style(Tone::Strong)),
                Span::raw(tail.to_owned()),
            ]);
            frame.render_widget(Clear, hint);
            frame.render_widget(line, hint);
            let column =
                hint.x.saturating_add(u16::try_from(label.width() + tail.width()).unwrap_or(hint.width));
            frame.set_cursor_position((column.min(hint.right().saturating_sub(1)), hint.y));
        }
        Over::Asking { sentence, .. } => {
            let answers = if state.is_unseen() { "" } else { "y yes   n no" };
            let lines =
                vec![Line::raw(sentence.clone()), Line::raw(""), Line::styled(answers, style(Tone::Strong))];
            dialog(frame, area, "Go on?", lines, 60);
        }
        Over::Help => {
            let lines = HELP
                .iter()
                .map(|(keys, what)| {
                    Line::from(vec![
                        Span::styled(format!("{keys:17} "), style(Tone::Strong)),
                        Span::raw(*what),
                    ])
                })
                .collect();
            dialog(frame, area, "Keys", lines, 78);
        }
    }
}

/// A box in the middle.
fn dialog(frame: &mut Frame<'_>, area: Rect, title: &'static str, lines: Vec<Line<'_>>, width: u16) {
    let width = width.min(area.width);
    let inside = usize::from(width.saturating_sub(4)).max(1);
    let rows: usize = lines.iter().map(|line| line.width().div_ceil(inside).max(1)).sum();
    let height = u16::try_from(rows + 3).unwrap_or(area.height).min(area.height);
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let block = Block::bordered().title(title);
    let inner = block.inner(place);
    frame.render_widget(block, place);
    let padded = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), padded);
}
