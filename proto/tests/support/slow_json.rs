//! A second reading of the wire grammar: slow, obvious, written from the rules alone. It works on a list of
//! UTF-16 units, recurses, and shares nothing with the crate.

/// A value with strings as UTF-16 units and numbers as their text.
#[derive(Clone, Debug, PartialEq)]
pub enum Slow {
    Null,
    Bool(bool),
    Number(String),
    Text(Vec<u16>),
    Array(Vec<Slow>),
    Object(Vec<(Vec<u16>, Slow)>),
}

/// Why a text is refused: the rule of the contract's table, to see in a failure.
pub type Rule = &'static str;

pub fn parse(bytes: &[u8], max_bytes: usize) -> Result<Slow, Rule> {
    if bytes.len() > max_bytes {
        return Err("W1");
    }
    let units = decode_utf8(bytes)?;
    if units.first() == Some(&0xfeff) {
        return Err("W3");
    }
    let mut reader = Reader { units, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    if reader.at == reader.units.len() { Ok(value) } else { Err("W4") }
}

/// W2, from the definition: each form has its range, and nothing else is a character.
fn decode_utf8(bytes: &[u8]) -> Result<Vec<u16>, Rule> {
    let mut units = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let lead = u32::from(bytes[at]);
        let (len, least, bits) = match lead {
            0x00..=0x7f => (1, 0, lead),
            0xc0..=0xdf => (2, 0x80, lead & 0x1f),
            0xe0..=0xef => (3, 0x800, lead & 0x0f),
            0xf0..=0xf7 => (4, 0x1_0000, lead & 0x07),
            _ => return Err("W2"),
        };
        let mut point = bits;
        for next in 1..len {
            match bytes.get(at + next) {
                Some(byte) if byte & 0xc0 == 0x80 => point = point << 6 | u32::from(byte & 0x3f),
                _ => return Err("W2"),
            }
        }
        if point < least || point > 0x10_ffff || (0xd800..0xe000).contains(&point) {
            return Err("W2");
        }
        if point < 0x1_0000 {
            units.push(u16::try_from(point).unwrap());
        } else {
            let rest = point - 0x1_0000;
            units.push(u16::try_from(0xd800 + (rest >> 10)).unwrap());
            units.push(u16::try_from(0xdc00 + (rest & 0x3ff)).unwrap());
        }
        at += len;
    }
    Ok(units)
}

struct Reader {
    units: Vec<u16>,
    at: usize,
}

impl Reader {
    fn next(&self) -> Option<char> {
        self.units.get(self.at).map(|unit| char::from_u32(u32::from(*unit)).unwrap_or('\u{fffd}'))
    }

    fn take(&mut self) -> Option<char> {
        let next = self.next();
        self.at += 1;
        next
    }

    fn space(&mut self) {
        while matches!(self.next(), Some(' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, around: usize) -> Result<Slow, Rule> {
        self.space();
        match self.next() {
            Some('{') => self.object(around + 1),
            Some('[') => self.array(around + 1),
            Some('"') => Ok(Slow::Text(self.string()?)),
            Some('t') => self.word("true", Slow::Bool(true)),
            Some('f') => self.word("false", Slow::Bool(false)),
            Some('n') => self.word("null", Slow::Null),
            Some('-' | '0'..='9') => self.number(),
            _ => Err("W4"),
        }
    }

    fn word(&mut self, word: &str, value: Slow) -> Result<Slow, Rule> {
        for letter in word.chars() {
            if self.take() != Some(letter) {
                return Err("W5");
            }
        }
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Slow, Rule> {
        if depth > 32 {
            return Err("W10");
        }
        self.take();
        let mut items = Vec::new();
        self.space();
        if self.next() == Some(']') {
            self.take();
            return Ok(Slow::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            self.space();
            match self.take() {
                Some(',') => {}
                Some(']') => return Ok(Slow::Array(items)),
                _ => return Err("W5"),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Slow, Rule> {
        if depth > 32 {
            return Err("W10");
        }
        self.take();
        let mut members: Vec<(Vec<u16>, Slow)> = Vec::new();
        self.space();
        if self.next() == Some('}') {
            self.take();
            return Ok(Slow::Object(members));
        }
        loop {
            self.space();
            if self.next() != Some('"') {
                return Err("W5");
            }
            let name = self.string()?;
            self.space();
            if self.take() != Some(':') {
                return Err("W5");
            }
            let value = self.value(depth)?;
            if members.iter().any(|(other, _)| *other == name) {
                return Err("W9");
            }
            members.push((name, value));
            self.space();
            match self.take() {
                Some(',') => {}
                Some('}') => return Ok(Slow::Object(members)),
                _ => return Err("W5"),
            }
        }
    }

    fn string(&mut self) -> Result<Vec<u16>, Rule> {
        self.take();
        let mut units = Vec::new();
        loop {
            let unit = *self.units.get(self.at).ok_or("W7")?;
            self.at += 1;
            match unit {
                0x22 => return Ok(units),
                0x5c => self.escape(&mut units)?,
                0x00..=0x1f => return Err("W7"),
                _ => units.push(unit),
            }
        }
    }

    fn escape(&mut self, units: &mut Vec<u16>) -> Result<(), Rule> {
        let unit = match self.take() {
            Some('"') => 0x22,
            Some('\\') => 0x5c,
            Some('/') => 0x2f,
            Some('b') => 0x08,
            Some('f') => 0x0c,
            Some('n') => 0x0a,
            Some('r') => 0x0d,
            Some('t') => 0x09,
            Some('u') => {
                let unit = self.hex4()?;
                if (0xdc00..0xe000).contains(&unit) {
                    return Err("W8");
                }
                if (0xd800..0xdc00).contains(&unit) {
                    if self.take() != Some('\\') || self.take() != Some('u') {
                        return Err("W8");
                    }
                    let low = self.hex4()?;
                    if !(0xdc00..0xe000).contains(&low) {
                        return Err("W8");
                    }
                    units.push(unit);
                    low
                } else {
                    unit
                }
            }
            _ => return Err("W7"),
        };
        units.push(unit);
        Ok(())
    }

    fn hex4(&mut self) -> Result<u16, Rule> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.take().and_then(|letter| letter.to_digit(16)).ok_or("W7")?;
            unit = unit * 16 + u16::try_from(digit).unwrap();
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<Slow, Rule> {
        let mut text = String::new();
        if self.next() == Some('-') {
            text.extend(self.take());
        }
        if self.next() == Some('0') {
            text.extend(self.take());
        } else {
            self.digits(&mut text)?;
        }
        if self.next() == Some('.') {
            text.extend(self.take());
            self.digits(&mut text)?;
        }
        if matches!(self.next(), Some('e' | 'E')) {
            text.extend(self.take());
            if matches!(self.next(), Some('+' | '-')) {
                text.extend(self.take());
            }
            self.digits(&mut text)?;
        }
        Ok(Slow::Number(text))
    }

    fn digits(&mut self, text: &mut String) -> Result<(), Rule> {
        if !matches!(self.next(), Some('0'..='9')) {
            return Err("W6");
        }
        while matches!(self.next(), Some('0'..='9')) {
            text.extend(self.take());
        }
        Ok(())
    }
}

/// Canonical text, from RFC 8785 and the contract's table; the number text comes from the caller's formatter
/// of ECMAScript numbers.
pub fn canonical(value: &Slow, number: &dyn Fn(f64) -> String, around: usize) -> Result<String, Rule> {
    match value {
        Slow::Null => Ok("null".to_owned()),
        Slow::Bool(flag) => Ok(flag.to_string()),
        Slow::Number(text) => {
            let value: f64 = text.parse().unwrap();
            if value.is_infinite() {
                return Err("J1");
            }
            if value.trunc() == value && value.abs() > 9_007_199_254_740_991.0 {
                return Err("J2");
            }
            Ok(number(value))
        }
        Slow::Text(units) => Ok(quoted(units)),
        Slow::Array(items) => {
            if around == 32 {
                return Err("J4");
            }
            let items: Result<Vec<_>, _> =
                items.iter().map(|item| canonical(item, number, around + 1)).collect();
            Ok(format!("[{}]", items?.join(",")))
        }
        Slow::Object(members) => {
            if around == 32 {
                return Err("J4");
            }
            let mut members = members.clone();
            members.sort_by(|(one, _), (two, _)| one.cmp(two));
            let mut texts = Vec::new();
            for (name, value) in &members {
                texts.push(format!("{}:{}", quoted(name), canonical(value, number, around + 1)?));
            }
            Ok(format!("{{{}}}", texts.join(",")))
        }
    }
}

fn quoted(units: &[u16]) -> String {
    let mut text = String::from("\"");
    for letter in String::from_utf16(units).unwrap().chars() {
        match letter {
            '"' => text += "\\\"",
            '\\' => text += "\\\\",
            '\u{8}' => text += "\\b",
            '\t' => text += "\\t",
            '\n' => text += "\\n",
            '\u{c}' => text += "\\f",
            '\r' => text += "\\r",
            '\u{0}'..='\u{1f}' => text += &format!("\\u{:04x}", u32::from(letter)),
            other => text.push(other),
        }
    }
    text + "\""
}

/// Fails when the crate and this reading do not agree on these bytes: accepted or not, the value, whether it
/// is I-JSON, and its canonical text.
pub fn assert_agrees(bytes: &[u8]) {
    use messaging_proto::json::{Value, canonicalize, parse_wire};

    fn same(slow: &Slow, value: &Value) -> bool {
        let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
        match (slow, value) {
            (Slow::Null, Value::Null) => true,
            (Slow::Bool(one), Value::Bool(two)) => one == two,
            (Slow::Number(text), Value::Number(two)) => {
                text.parse::<f64>().unwrap().to_bits() == two.to_bits()
            }
            (Slow::Text(one), Value::String(two)) => *one == units(two),
            (Slow::Array(one), Value::Array(two)) => {
                one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same(one, two))
            }
            (Slow::Object(one), Value::Object(two)) => {
                one.len() == two.len()
                    && one
                        .iter()
                        .zip(two.iter())
                        .all(|((one, slow), (two, value))| *one == units(two) && same(slow, value))
            }
            _ => false,
        }
    }

    match (parse(bytes, usize::MAX), parse_wire(bytes, usize::MAX)) {
        (Ok(slow), Ok(value)) => {
            assert!(same(&slow, &value), "the values differ");
            let number = |number| canonicalize(&Value::Number(number)).unwrap();
            assert_eq!(canonical(&slow, &number, 0).ok(), canonicalize(&value).ok());
        }
        (Err(_), Err(_)) => {}
        (Err(rule), Ok(_)) => panic!("accepted against {rule}"),
        (Ok(_), Err(_)) => panic!("refused for nothing"),
    }
}
