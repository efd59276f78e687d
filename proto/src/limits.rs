//! Every constant of the protocol, named as the specification names it. Units are last in each name.

/// `jsonDepth`.
pub const JSON_DEPTH: usize = 32;
/// `clockSkewMs`.
pub const CLOCK_SKEW_MS: u64 = 300_000;
/// `ttlMs`.
pub const TTL_MS: u64 = 604_800_000;
/// `frameBytes`.
pub const FRAME_BYTES: usize = 1_048_576;
/// `preAuthFrameBytes`.
pub const PRE_AUTH_FRAME_BYTES: usize = 32_768;
/// `plaintextBytes`.
pub const PLAINTEXT_BYTES: usize = 262_144;
/// `headerBytes`.
pub const HEADER_BYTES: usize = 8_192;
/// `ticketBytes`.
pub const TICKET_BYTES: usize = 4_096;
/// `retainedKeys`.
pub const RETAINED_KEYS: usize = 8;
/// `rosterPageEntries`.
pub const ROSTER_PAGE_ENTRIES: usize = 256;
/// `rosterEntryBytes`.
pub const ROSTER_ENTRY_BYTES: usize = 16_384;
/// `presenceIntervalMs`.
pub const PRESENCE_INTERVAL_MS: u64 = 2_000;
/// `presenceBurst`.
pub const PRESENCE_BURST: usize = 5;
/// `presenceBytes`.
pub const PRESENCE_BYTES: usize = 65_536;
/// `queuePerSender`.
pub const QUEUE_PER_SENDER: usize = 1_000;
/// `relayFramesPerMinute`.
pub const RELAY_FRAMES_PER_MINUTE: usize = 600;
/// `relayBytesPerMinute`.
pub const RELAY_BYTES_PER_MINUTE: usize = 33_554_432;
/// `inboundPerMachinePerMinute`.
pub const INBOUND_PER_MACHINE_PER_MINUTE: usize = 60;
/// `loopGuard.max`: envelopes from one sender address to one session in a window.
pub const LOOP_GUARD_MAX: u32 = 40;
/// `loopGuard.windowMs`: the sliding window, in milliseconds.
pub const LOOP_GUARD_WINDOW_MS: u64 = 600_000;
/// `taskFollowUps`.
pub const TASK_FOLLOW_UPS: usize = 20;
/// `delegationDepth`.
pub const DELEGATION_DEPTH: usize = 4;
/// `delegationBytes`.
pub const DELEGATION_BYTES: usize = 8_192;
/// `delegationScopes`.
pub const DELEGATION_SCOPES: usize = 16;
/// `chatChars`.
pub const CHAT_CHARS: usize = 8_000;
/// `channelPersons`.
pub const CHANNEL_PERSONS: usize = 32;
/// `requestChars`.
pub const REQUEST_CHARS: usize = 500;
/// `requestsPerDay`.
pub const REQUESTS_PER_DAY: usize = 20;
/// `grantBytes`.
pub const GRANT_BYTES: usize = 4_096;
/// `cardBytes`.
pub const CARD_BYTES: usize = 2_048;
/// `grantsPerPerson`.
pub const GRANTS_PER_PERSON: usize = 2_000;
/// `trustMaxMs`.
pub const TRUST_MAX_MS: u64 = 7_776_000_000;
/// `trustDefaultMs`.
pub const TRUST_DEFAULT_MS: u64 = 2_592_000_000;
/// `heldPerSender`.
pub const HELD_PER_SENDER: usize = 20;
/// `heldTotal`.
pub const HELD_TOTAL: usize = 200;
/// `a2hPerHour`.
pub const A2H_PER_HOUR: usize = 30;
/// `a2hPerDay`.
pub const A2H_PER_DAY: usize = 100;
/// `devicesPerPerson`.
pub const DEVICES_PER_PERSON: usize = 10;
/// `logEntryBytes`.
pub const LOG_ENTRY_BYTES: usize = 16_384;
/// `keysStatementBytes`.
pub const KEYS_STATEMENT_BYTES: usize = 1_024;
/// `linkTtlMs`.
pub const LINK_TTL_MS: u64 = 600_000;
/// `dirLookupPersons`.
pub const DIR_LOOKUP_PERSONS: usize = 64;
/// `dirSearchResults`.
pub const DIR_SEARCH_RESULTS: usize = 25;
/// `watchPersons`.
pub const WATCH_PERSONS: usize = 500;
/// `epochMinMs`.
pub const EPOCH_MIN_MS: u64 = 5_000;
/// `epochHeartbeatMs`.
pub const EPOCH_HEARTBEAT_MS: u64 = 600_000;
/// `dirFreshFirstMs`.
pub const DIR_FRESH_FIRST_MS: u64 = 600_000;
/// `dirFreshMs`.
pub const DIR_FRESH_MS: u64 = 86_400_000;
/// `selfMonitorMs`.
pub const SELF_MONITOR_MS: u64 = 3_600_000;
/// `attestAfterMs`.
pub const ATTEST_AFTER_MS: u64 = 2_592_000_000;
/// `deletionPollMs`.
pub const DELETION_POLL_MS: u64 = 21_600_000;
/// `dormantDays`.
pub const DORMANT_DAYS: usize = 180;
/// `unsolicitedPerPairPerDay`.
pub const UNSOLICITED_PER_PAIR_PER_DAY: usize = 20;
/// `unsolicitedTargetsPerDay`.
pub const UNSOLICITED_TARGETS_PER_DAY: usize = 50;
/// `convParticipants`.
pub const CONV_PARTICIPANTS: usize = 1_000;
/// `groupParticipants`.
pub const GROUP_PARTICIPANTS: usize = 50;
/// `convOpParticipants`.
pub const CONV_OP_PARTICIPANTS: usize = 100;
/// `convEventBytes`.
pub const CONV_EVENT_BYTES: usize = 262_144;
/// `convPlaintextBytes`.
pub const CONV_PLAINTEXT_BYTES: usize = 65_536;
/// `lineChars`.
pub const LINE_CHARS: usize = 40_000;
/// `mentions`.
pub const MENTIONS: usize = 50;
/// `files`.
pub const FILES: usize = 10;
/// `agentMentions`.
pub const AGENT_MENTIONS: usize = 5;
/// `blobBytes`.
pub const BLOB_BYTES: usize = 26_214_400;
/// `reactionsPerEvent`.
pub const REACTIONS_PER_EVENT: usize = 50;
/// `pins`.
pub const PINS: usize = 100;
/// `retainDaysDefault`.
pub const RETAIN_DAYS_DEFAULT: usize = 90;
/// `retainDaysMax`.
pub const RETAIN_DAYS_MAX: usize = 365;
/// `skippedKeys`.
pub const SKIPPED_KEYS: usize = 1_000;
/// `chainMessages`.
pub const CHAIN_MESSAGES: usize = 500;
/// `chainMaxMs`.
pub const CHAIN_MAX_MS: u64 = 604_800_000;
/// `rekeyScheduleMs`.
pub const REKEY_SCHEDULE_MS: u64 = 2_592_000_000;
/// `keyShares`.
pub const KEY_SHARES: usize = 512;
/// `keySharesPerEvent`.
pub const KEY_SHARES_PER_EVENT: usize = 500;
/// `wakeHints`.
pub const WAKE_HINTS: usize = 5;
/// `contextRules`.
pub const CONTEXT_RULES: usize = 500;
