//! The table of credential formats (contract ipc §10), in the order in which they are looked for.

use super::matcher::Piece::{AnyCase, Maybe, OneOfAnyCase, Run, Text};
use super::matcher::{Row, Set, Shape, Tail, Token};

const ALNUM: Set = |byte| byte.is_ascii_alphanumeric();
const UPPER_DIGIT: Set = |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit();
const WORD: Set = |byte| byte.is_ascii_alphanumeric() || byte == b'_';
const DASHED: Set = |byte| byte.is_ascii_alphanumeric() || byte == b'-';
const B64URL: Set = |byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
const B64: Set = |byte| byte.is_ascii_alphanumeric() || byte == b'/' || byte == b'+';
const B64_PADDED: Set = |byte| B64(byte) || byte == b'=';
const BEARER: Set = |byte| byte.is_ascii_alphanumeric() || b"._~+/-".contains(&byte);
const LOWER: Set = |byte| byte.is_ascii_lowercase();
const QUOTE: Set = |byte| byte == b'"' || byte == b'\'';
const BLANK: Set = |byte| byte == b' ' || byte == b'\t';
const ASSIGN: Set = |byte| byte == b':' || byte == b'=';
const JOIN: Set = |byte| byte == b'_' || byte == b'-';

/// What a token starts from, before its parts are set.
const TOKEN: Token = Token {
    alone: true,
    any_case: false,
    starts: &[],
    rest: &[],
    tail: Tail { set: ALNUM, min: 0, max: 0 },
    mix: 0,
    ended_by_other_than: None,
    example: None,
};

const fn tail(set: Set, min: usize, max: usize) -> Tail {
    Tail { set, min, max }
}

const fn token(kind: &'static str, token: Token) -> Row {
    Row { kind, shape: Shape::Token(token) }
}

/// The rows. A kind may have several.
pub(super) const ROWS: &[Row] = &[
    Row { kind: "private-key", shape: Shape::Pem },
    token("anthropic-api-key", Token { starts: &["sk-ant-"], tail: tail(B64URL, 32, 512), mix: 3, ..TOKEN }),
    token(
        "openai-api-key",
        Token {
            starts: &["sk-proj-", "sk-svcacct-", "sk-admin-"],
            tail: tail(B64URL, 32, 512),
            mix: 3,
            ..TOKEN
        },
    ),
    token("openai-api-key", Token { starts: &["sk-"], tail: tail(ALNUM, 32, 512), mix: 3, ..TOKEN }),
    token(
        "github-token",
        Token {
            starts: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
            tail: tail(ALNUM, 36, 512),
            mix: 2,
            ..TOKEN
        },
    ),
    token("github-token", Token { starts: &["github_pat_"], tail: tail(WORD, 40, 512), mix: 2, ..TOKEN }),
    token(
        "aws-access-key-id",
        Token {
            starts: &["AKIA", "ASIA"],
            tail: tail(UPPER_DIGIT, 16, 16),
            mix: 2,
            ended_by_other_than: Some(ALNUM),
            // §8.7 the provider's published examples are no credentials.
            example: Some("EXAMPLE"),
            ..TOKEN
        },
    ),
    token(
        "aws-secret-access-key",
        Token {
            alone: false,
            any_case: true,
            starts: &["aws"],
            rest: &[
                Maybe(JOIN),
                AnyCase("secret"),
                Maybe(JOIN),
                OneOfAnyCase(&["access_key", "access-key", "accesskey", "key"]),
                Maybe(QUOTE),
                Run(BLANK, 0, 8),
                Run(ASSIGN, 1, 1),
                Run(BLANK, 0, 8),
                Maybe(QUOTE),
            ],
            tail: tail(B64, 40, 40),
            mix: 2,
            ended_by_other_than: Some(B64_PADDED),
            example: Some("EXAMPLEKEY"),
        },
    ),
    token(
        "google-api-key",
        Token {
            starts: &["AIza"],
            tail: tail(B64URL, 35, 35),
            mix: 3,
            ended_by_other_than: Some(B64URL),
            ..TOKEN
        },
    ),
    token(
        "slack-token",
        Token {
            starts: &["xox"],
            rest: &[Run(LOWER, 1, 1), Text("-")],
            tail: tail(DASHED, 20, 512),
            mix: 2,
            ..TOKEN
        },
    ),
    token("slack-token", Token { starts: &["xapp-"], tail: tail(DASHED, 20, 512), mix: 2, ..TOKEN }),
    token(
        "slack-webhook",
        Token {
            alone: false,
            starts: &["https://hooks.slack.com/services/T"],
            rest: &[Run(UPPER_DIGIT, 6, 14), Text("/B"), Run(UPPER_DIGIT, 6, 14), Text("/")],
            tail: tail(ALNUM, 20, 512),
            mix: 2,
            ..TOKEN
        },
    ),
    token(
        "stripe-live-key",
        Token { starts: &["sk_live_", "rk_live_"], tail: tail(ALNUM, 20, 512), mix: 2, ..TOKEN },
    ),
    token(
        "npm-token",
        Token {
            starts: &["npm_"],
            tail: tail(ALNUM, 36, 36),
            mix: 2,
            ended_by_other_than: Some(ALNUM),
            ..TOKEN
        },
    ),
    token(
        "jwt",
        Token {
            starts: &["eyJ"],
            rest: &[Run(B64URL, 8, 2048), Text(".eyJ"), Run(B64URL, 8, 2048), Text(".")],
            tail: tail(B64URL, 20, 512),
            mix: 2,
            ..TOKEN
        },
    ),
    token(
        "bearer-token",
        Token {
            alone: false,
            any_case: true,
            starts: &["authorization"],
            rest: &[
                Maybe(QUOTE),
                Run(BLANK, 0, 8),
                Run(ASSIGN, 1, 1),
                Run(BLANK, 0, 8),
                Maybe(QUOTE),
                AnyCase("bearer"),
                Run(BLANK, 1, 8),
            ],
            tail: tail(BEARER, 20, 512),
            mix: 2,
            ..TOKEN
        },
    ),
    token("invite-ticket", Token { starts: &["messaging1.eyJ"], tail: tail(B64URL, 20, 512), ..TOKEN }),
];
