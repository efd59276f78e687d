//! One small change somewhere in a value.

use super::Draw;
use crate::json::{Object, Value};

/// The value with one drawn change, anywhere in it. It may come out as it was.
#[must_use]
pub fn edited(value: &Value, draw: &mut Draw<'_>) -> Value {
    match value {
        Value::Object(object) if draw.below(8) > 1 && !object.is_empty() => {
            let at = draw.below(object.len());
            if draw.below(8) == 0 {
                let kept = object.iter().enumerate().filter(|(index, _)| *index != at).map(own);
                return kept.collect::<Object>().into();
            }
            object
                .iter()
                .enumerate()
                .map(|(index, (name, member))| {
                    let member = if index == at { edited(member, draw) } else { member.clone() };
                    (name.to_owned(), member)
                })
                .collect::<Object>()
                .into()
        }
        Value::Object(object) if draw.below(2) == 0 => {
            let mut object = object.clone();
            object.set(draw.text(), draw.value(3));
            object.into()
        }
        Value::Array(items) if draw.below(4) > 0 && !items.is_empty() => {
            let mut items = items.clone();
            let at = draw.below(items.len());
            match draw.below(4) {
                0 => drop(items.remove(at)),
                1 => {
                    let again = items.get(at).cloned().unwrap_or(Value::Null);
                    items.resize(items.len() + draw.below(200), again);
                }
                _ => {
                    if let Some(item) = items.get_mut(at) {
                        *item = edited(item, draw);
                    }
                }
            }
            Value::Array(items)
        }
        Value::String(text) if draw.below(4) > 0 => Value::String(edited_text(text, draw)),
        Value::Number(number) if draw.below(4) > 0 => {
            Value::Number(number + [1.0, -1.0, 0.5, 1e15, -1e13, 3e5][draw.below(6)])
        }
        _ => draw.value(3),
    }
}

fn own((_, (name, member)): (usize, (&str, &Value))) -> (String, Value) {
    (name.to_owned(), member.clone())
}

/// One character changed, dropped, doubled, or many added.
fn edited_text(text: &str, draw: &mut Draw<'_>) -> String {
    let letters: Vec<char> = text.chars().collect();
    let at = draw.below(letters.len().max(1));
    let (before, after) = letters.split_at(at.min(letters.len()));
    let (letter, after) = after.split_first().map_or(('a', after), |(letter, after)| (*letter, after));
    let middle: String = match draw.below(6) {
        0 => String::new(),
        1 => [letter, letter].iter().collect(),
        2 => std::iter::repeat_n(letter, draw.below(256)).collect(),
        3 => letter.to_ascii_uppercase().to_string(),
        4 => char::from(draw.byte()).to_string(),
        _ => draw.text(),
    };
    before.iter().collect::<String>() + &middle + &after.iter().collect::<String>()
}
