//! The credential table against a second, slow reading of it: each row as the regular expression it is in the
//! contract, tried at every place. Boundaries and mixes, which such expressions lack, are checked by hand.
#![allow(missing_docs, clippy::unwrap_used)]

use messaging_proto::json::{Object, Value};
use messaging_proto::secret::{Field, find, kind_of};
use proptest::prelude::*;
use regex::bytes::{Regex, RegexBuilder};
use std::sync::LazyLock;

struct Row {
    kind: &'static str,
    mix: usize,
    alone: bool,
    regex: Regex,
    not_then: Option<Regex>,
    example: &'static str,
}

/// kind, mix, alone, pattern with one group for the tail, what must not follow, how a published example ends.
type Spec = (&'static str, usize, bool, &'static str, &'static str, &'static str);

const SPECS: &[Spec] = &[
    (
        "private-key",
        0,
        false,
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----L{1,4}(?:[A-Za-z][A-Za-z-]{0,31}: V{0,200}L{1,4}){0,8}((?:[A-Za-z0-9+/=]L{0,2}){40})",
        "",
        "",
    ),
    ("anthropic-api-key", 3, true, r"sk-ant-([A-Za-z0-9_-]{32,512})", "", ""),
    ("openai-api-key", 3, true, r"sk-(?:proj|svcacct|admin)-([A-Za-z0-9_-]{32,512})", "", ""),
    ("openai-api-key", 3, true, r"sk-([A-Za-z0-9]{32,512})", "", ""),
    ("github-token", 2, true, r"gh[pousr]_([A-Za-z0-9]{36,512})", "", ""),
    ("github-token", 2, true, r"github_pat_([A-Za-z0-9_]{40,512})", "", ""),
    ("aws-access-key-id", 2, true, r"(?:AKIA|ASIA)([A-Z0-9]{16})", "[A-Za-z0-9]", "EXAMPLE"),
    (
        "aws-secret-access-key",
        2,
        false,
        r#"(?i:aws[_-]?secret[_-]?(?:access[_-]?)?key)["']?[ \t]{0,8}[:=][ \t]{0,8}["']?([A-Za-z0-9/+]{40})"#,
        "[A-Za-z0-9/+=]",
        "EXAMPLEKEY",
    ),
    ("google-api-key", 3, true, r"AIza([A-Za-z0-9_-]{35})", "[A-Za-z0-9_-]", ""),
    ("slack-token", 2, true, r"xox[a-z]-([A-Za-z0-9-]{20,512})", "", ""),
    ("slack-token", 2, true, r"xapp-([A-Za-z0-9-]{20,512})", "", ""),
    (
        "slack-webhook",
        2,
        false,
        r"https://hooks\.slack\.com/services/T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/([A-Za-z0-9]{20,512})",
        "",
        "",
    ),
    ("stripe-live-key", 2, true, r"[sr]k_live_([A-Za-z0-9]{20,512})", "", ""),
    ("npm-token", 2, true, r"npm_([A-Za-z0-9]{36})", "[A-Za-z0-9]", ""),
    ("jwt", 2, true, r"eyJ[A-Za-z0-9_-]{8,2048}\.eyJ[A-Za-z0-9_-]{8,2048}\.([A-Za-z0-9_-]{20,512})", "", ""),
    (
        "bearer-token",
        2,
        false,
        r#"(?i:authorization)["']?[ \t]{0,8}[:=][ \t]{0,8}["']?(?i:bearer)[ \t]{1,8}([A-Za-z0-9._~+/-]{20,512}=*)"#,
        "",
        "",
    ),
    ("invite-ticket", 0, true, r"messaging1\.(eyJ[A-Za-z0-9_-]{20,512})", "", ""),
];

/// The line break of the contract, and the value of an attribute, one character at a time.
const BREAK: &str = r"(?:[ \t]{0,16}(?:\r\n|\n|\r|\\r\\n|\\n|\\r)[ \t]{0,16})";
const VALUE: &str = r"(?u:[^\r\n\\])";

fn compiled(pattern: &str) -> Regex {
    let pattern = pattern.replace("L{", &format!("{BREAK}{{")).replace("V{", &format!("{VALUE}{{"));
    RegexBuilder::new(&pattern).unicode(false).size_limit(1 << 28).build().unwrap()
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let row = |(kind, mix, alone, pattern, then, example): &Spec| Row {
        kind,
        mix: *mix,
        alone: *alone,
        regex: compiled(&format!("^{pattern}")),
        not_then: (!then.is_empty()).then(|| compiled(&format!("^{then}"))),
        example,
    };
    SPECS.iter().map(row).collect()
});

fn slowly(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    let at = |row: &Row, start: usize| {
        let before = start.checked_sub(1).map(|at| bytes[at]);
        if row.alone && before.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
            return false;
        }
        let Some(found) = row.regex.captures(&bytes[start..]) else { return false };
        let (whole, tail) = (found.get(0).unwrap(), found.get(1).unwrap().as_bytes());
        let then = &bytes[start + whole.end()..];
        let classes = [u8::is_ascii_digit, u8::is_ascii_lowercase, u8::is_ascii_uppercase];
        let mixed = classes.iter().filter(|class| tail.iter().any(class)).count();
        mixed >= row.mix
            && !row.not_then.as_ref().is_some_and(|not| not.is_match(then))
            && (row.example.is_empty() || !tail.ends_with(row.example.as_bytes()))
    };
    ROWS.iter().find(|row| (0..=bytes.len()).any(|start| at(row, start))).map(|row| row.kind)
}

/// What a row of the table matches, and what it only just does not: every bound one wider on either side.
const NEAR: &[&str] = &[
    "[-_A ]?sk-ant-[A-Za-z0-9_-]{31,33}",
    "[-_A ]?sk-(proj|svcacct|admin|other)-[A-Za-z0-9_-]{31,33}",
    "[-_A ]?sk-[A-Za-z0-9]{31,33}",
    "[-_A ]?gh[pousrx]_[A-Za-z0-9]{35,37}",
    "[-_A ]?github_pat_[A-Za-z0-9_]{39,41}",
    "[-_A ]?(AKIA|ASIA|AXIA)[A-Z0-9]{15,17}[A-Za-z.]?",
    "AKIA[A-Z0-9]{9}(EXAMPLE|EXAMPLF)",
    "(aws|AWS|Aws)[_-]{0,2}(secret|SECRET)[_-]{0,2}(access[_-]{0,2}|Access)?(key|KEY|Key)[\"']?[ \t]{0,2}[:=]{1,2}[ \t]{0,9}[\"']?[A-Za-z0-9/+]{39,41}=?",
    "aws_secret_access_key=[A-Za-z0-9/+]{30}(EXAMPLEKEY|EXAMPLEKEz)",
    "[-_A ]?AIza[A-Za-z0-9_-]{34,36}[.-]?",
    "[-_A ]?xox[a-z]?-[A-Za-z0-9-]{19,21}",
    "[-_A ]?xapp-[A-Za-z0-9-]{19,21}",
    "https://hooks[.]slack[.]com/services/T[A-Z0-9]{5,15}/B[A-Z0-9]{5,15}/[A-Za-z0-9]{19,21}",
    "[-_A ]?[srp]k_live_[A-Za-z0-9]{19,21}",
    "[-_A ]?npm_[A-Za-z0-9]{35,37}[.]?",
    "[-_A ]?eyJ[A-Za-z0-9_-]{7,9}[.]eyJ[A-Za-z0-9_-]{7,9}[.][A-Za-z0-9_-]{19,21}",
    "(authorization|Authorization|AUTHORIZATION)[\"']?[ \t]{0,9}[:=][ \t]{0,9}[\"']?(bearer|Bearer|BEARER|basic)[ \t]{0,9}[A-Za-z0-9._~+/-]{19,21}={0,2}",
    "[-_A ]?messaging1[.](eyJ|eyj)[A-Za-z0-9_-]{19,21}",
    "[-_A ]?(sk-|ghp_|AKIA|AIza|npm_|xoxb-|sk_live_)(x{36}|[a-z]{36}|[A-Z]{16}|[0-9]{35})",
    "[a-z ]{0,20}",
    "\\PC{0,3}",
];

const NEAR_PEM: &[&str] = &[
    "-----BEGIN ([A-Z0-9]{1,3} ){0,5}PRIVATE KEY( BLOCK)?-----",
    "-----BEGIN ([A-Z0-9]{19,21} ){0,2}PRIVATE KEY-----",
    "([ ]{0,2}(\r\n|\n|\r|\\\\r\\\\n|\\\\n|\\\\r)[ \t]{0,2}){0,5}",
    "[ ]{15,17}\n[ ]{15,17}",
    "\n[ \t]{31,33}\n",
    "([A-Za-z-]{1,4}: [a-zü ]{0,9}(\n|\\\\n)){0,3}",
    "([A-Za-z]{1,2}: [a-z]{0,2}\n){7,9}",
    "[A-Za-z-]{31,33}: x\n",
    "Comment: [a-zü]{199,201}[ ]{0,17}\n",
    "[A-Za-z0-9+/=]{39,41}",
    "([A-Za-z0-9+/=]{7}[ ]?(\n|\r\n|\\\\n){0,3}){5,7}",
    "[A-Za-z0-9+/=]{1,20}",
];

fn near(patterns: &'static [&'static str]) -> impl Strategy<Value = String> {
    let each = patterns.iter().map(|pattern| prop::string::string_regex(pattern).unwrap().boxed());
    prop::strategy::Union::new(each)
}

/// The text, perhaps with one character dropped or doubled.
fn nudged(text: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (text, any::<prop::sample::Index>(), 0..4_u8).prop_map(|(text, at, how)| {
        let letters = text.chars().collect::<Vec<_>>();
        let at = if letters.is_empty() { 0 } else { at.index(letters.len()) };
        let each = letters.iter().enumerate().flat_map(|(index, letter)| {
            let times = if index != at { 1 } else { [0, 2, 1, 1][usize::from(how)] };
            std::iter::repeat_n(*letter, times)
        });
        each.collect()
    })
}

fn tokens() -> impl Strategy<Value = String> {
    nudged(prop::collection::vec(near(NEAR), 1..4).prop_map(|pieces| pieces.concat()))
}

fn blocks() -> impl Strategy<Value = String> {
    let head = near(&NEAR_PEM[..2]);
    let breaks = near(&NEAR_PEM[2..5]);
    let attributes = prop_oneof![3 => Just(String::new()), 2 => near(&NEAR_PEM[5..9])];
    let material = near(&NEAR_PEM[9..11]);
    let whole = (head, breaks, attributes, material).prop_map(|(a, b, c, d)| a + &b + &c + &d);
    let any = prop::collection::vec(near(NEAR_PEM), 1..8).prop_map(|pieces| pieces.concat());
    nudged(prop_oneof![3 => whole, 1 => any])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn tokens_are_found_as_the_table_says(text in tokens()) {
        prop_assert_eq!(kind_of(&text), slowly(&text));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn private_keys_are_found_as_the_table_says(text in blocks()) {
        prop_assert_eq!(kind_of(&text), slowly(&text));
    }
}

/// The longest tails and segments, which drawn texts are too short for.
#[test]
fn long_runs_are_found_as_the_table_says() {
    let segment = |len: usize| "aB3-".repeat(len.div_ceil(4))[..len].to_owned();
    for len in [2047, 2048, 2049, 5000] {
        for other in [8, 2048, 2049] {
            let jwt = format!("eyJ{}.eyJ{}.{}", segment(len), segment(other), segment(20));
            assert_eq!(kind_of(&jwt), slowly(&jwt), "{len} {other}");
            // Another start inside the first segment, near enough to its end.
            let inner =
                format!("eyJ{}-eyJ{}.eyJ{}.{}", segment(len), segment(40), segment(other), segment(20));
            assert_eq!(kind_of(&inner), slowly(&inner), "{len} {other}");
        }
    }
    // The tail is cut at its bound, so what is behind it does not help it to mix.
    for (tail, digits) in [(511, 1), (512, 1), (513, 1)] {
        let text = format!("ghp_{}{}", "a".repeat(tail), "1".repeat(digits));
        assert_eq!(kind_of(&text), slowly(&text), "{tail}");
    }
    let words = "PRIVATE ".repeat(5);
    for head in [format!("-----BEGIN {words}KEY-----\n"), format!("-----BEGIN {}KEY-----\n", &words[8..])] {
        let text = format!("{head}{}", "A".repeat(40));
        assert_eq!(kind_of(&text), slowly(&text), "{head}");
    }
}

#[test]
fn params_are_read_in_order_and_only_where_something_is_sent() {
    let object = |members: Vec<(&str, Value)>| -> Value {
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Object>().into()
    };
    let (npm, github) = (format!("npm_{}", "aB3".repeat(12)), format!("ghp_{}", "aB3".repeat(12)));
    let data = object(vec![(&npm, Value::text(&*github))]);
    let params = object(vec![("parts", Value::Array(vec![Value::Null, object(vec![("data", data)])]))]);
    let found = find("msg.send", &params).unwrap();
    assert_eq!((found.field, found.kind), (Field::Part(1), "npm-token"), "a name before its value");
    assert_eq!(find("conv.read", &params), None);
    assert_eq!(find("msg.send", &Value::Null), None);
    // A name no method has is a caller's text, so it is not repeated.
    let odd = object(vec![(&github, Value::Null)]);
    assert_eq!(
        find("msg.send", &odd).unwrap().to_string(),
        "params holds a credential (github-token); nothing was sent"
    );
    let deep = object(vec![(
        "odd",
        object(vec![("raw", Value::text("Z2hwX2FCM2FCM2FCM2FCM2FCM2FCM2FCM2FCM2FCM2FCM2FCM2FCMw"))]),
    )]);
    assert_eq!(find("task.update", &deep).unwrap().field, Field::Other, "base64 without its padding");
    let text = object(vec![("parts", Value::text(&*npm))]);
    assert_eq!(find("msg.send", &text).unwrap().field, Field::Param("parts"));
}
