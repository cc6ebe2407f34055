//! Ingest: from the bytes of a request to events in the engine.
//!
//! A batch is taken event by event: what is valid is stored, what is not is listed with its field.
//! Strings are borrowed from the body wherever JSON allows it.
//!
//! ```text
//! POST /v1/events {"events": [{"tenant_id": "acme", "event_name": "api_call", "timestamp": "2026-11-20T10:17:36.789Z", "event_id": "e_81",
//!                              "user_id": "u_7", "string_props": {"model": "gpt-large"}, "numeric_props": {"latency_ms": 12.5}},
//!                             {"tenant_id": "acme", "event_name": "api_call", "timestamp": "yesterday"}]}
//! 200 {"accepted": 1, "status": "partial", "duplicates": 0, "rejected": 1,
//!      "errors": [{"index": 1, "event_id": null, "field": "timestamp", "code": "invalid_field",
//!                  "message": "timestamp is not an ISO 8601 date-time or date"}]}
//!
//! the same again                              "accepted": 1, "duplicates": 1        e_81 counts once
//! no event of it is valid                     400 "no event is valid; the first: …", field events[0].timestamp
//! 1,001 events                                400 too_many_events, field events: nothing is stored
//! "numeric_props": {"a": "1"}                 field numeric_props.a, invalid_field
//! "timestamp": "9999-01-01T00:00:00Z"         "timestamp lies more than 24 hours ahead"
//! ```

use std::{borrow::Cow, fmt};

use inlay_engine::{Batch, Event};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::{
    app::request::{callers::Caller, context::App},
    base::{instant, json as base_json},
    error::{ApiError, Code, Result},
    store::{Environment, OrgTxn},
};

/// Events of one request, at most.
pub const EVENTS_MAX: usize = 1_000;
/// Bytes of one event as JSON, at most.
const EVENT_BYTES_MAX: usize = 64 * 1_024;
/// Properties of one event, strings and numbers together, at most.
const PROPERTIES_MAX: usize = 100;
/// Bytes of a property's name, at most.
const KEY_BYTES_MAX: usize = 128;
/// Bytes of a string property, at most.
const VALUE_BYTES_MAX: usize = 4_096;
/// Bytes of an id or an event name, at most.
const ID_BYTES_MAX: usize = 256;
/// An event may be this far ahead of our clock: clocks differ, but not by days.
const AHEAD_MS_MAX: i64 = 24 * 3_600_000;

/// Result of an ingest request.
///
/// `{accepted: 998, duplicates: 1, rejected: [2 of them]}` of a thousand events: 997 are new.
pub struct Accepted {
    /// Events that are stored now or were known already.
    pub accepted: usize,
    /// Accepted events that were known already by their id and count once.
    pub duplicates: usize,
    /// Events that failed their checks, in the order of the request.
    pub rejected: Vec<RejectedEvent>,
}

/// An event that was not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedEvent {
    /// Position in the request, from 0.
    pub index: usize,
    /// Id of the event; `None` when it has none or cannot be read.
    pub event_id: Option<String>,
    /// Path of the faulty field; `None` for the event as a whole.
    pub field: Option<String>,
    /// Why, for programs.
    pub code: Code,
    /// Why, for people.
    pub message: String,
}

// Unparsed texts, so that each event can be refused alone.
/// Events to store; each is checked alone. With `application/x-ndjson` the body is one event a line.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Events)]
pub struct Envelope<'a> {
    #[serde(borrow)]
    #[schema(min_items = 1, max_items = 1000, value_type = Vec<RawEvent<'_>>)]
    events: Vec<&'a RawValue>,
}

// As its sender writes it. Unknown fields are refused: a misspelt `user_Id` would lose data in silence.
/// An event of one of your customers.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Event)]
pub struct RawEvent<'a> {
    /// Id of the customer that the event belongs to.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 256, example = "acme")]
    tenant_id: Text<'a>,
    /// Name of the action that happened.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 256, example = "api_call")]
    event_name: Text<'a>,
    /// ISO 8601; now without it.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "2026-11-20T10:17:36.789Z")]
    timestamp: Option<Text<'a>>,
    /// Sent again, it counts once.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, max_length = 256, example = "e_81")]
    event_id: Option<Text<'a>>,
    /// The customer's user.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, max_length = 256, example = "u_7")]
    user_id: Option<Text<'a>>,
    /// String properties of the event.
    #[serde(borrow, default)]
    #[schema(value_type = Option<BTreeMap<String, String>>, example = json!({"model": "gpt-large", "status": "ok"}))]
    string_props: Pairs<'a, Text<'a>>,
    /// Numeric properties of the event.
    #[serde(borrow, default)]
    #[schema(value_type = Option<BTreeMap<String, f64>>, example = json!({"latency_ms": 12.5}))]
    numeric_props: Pairs<'a, f64>,
}

/// A string, borrowed unless it holds escapes.
///
/// `"api_call"` is a slice of the body; `"\u0065ins"` is copied, since its bytes are not those of the body.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// An object as a list of pairs: no hashing, and a name that comes twice is seen.
///
/// `{"a": "x", "a": "y"}` are two pairs, and the event is refused: `string_props.a comes twice`. Null is an empty object.
struct Pairs<'a, V>(Vec<(Text<'a>, V)>);

impl<V> Default for Pairs<'_, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de: 'a, 'a, V: Deserialize<'de>> Deserialize<'de> for Pairs<'a, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<'a, V>(std::marker::PhantomData<(&'a (), V)>);
        impl<'de: 'a, 'a, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<'a, V> {
            type Value = Pairs<'a, V>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Pairs::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_any(PairsVisitor(std::marker::PhantomData))
    }
}

/// A refusal of one event: field, code, message.
type EventRefusal = (Option<String>, Code, String);

/// A refusal that names the field.
fn refuse(field: impl Into<String>, code: Code, message: impl Into<String>) -> EventRefusal {
    (Some(field.into()), code, message.into())
}

impl App {
    /// Stores the events of a body: JSON, or one event a line.
    ///
    /// Errors: 400 when the body is not readable or holds no valid event, 402 when the plan's month
    /// is used up, 503 when the store cannot take writes.
    ///
    /// An event without a timestamp is one of now; without an id it counts each time that it is sent, unless the request has an idempotency
    /// key: then it gets an id of the key, the body and its position.
    pub fn ingest(&self, caller: &Caller, body: &[u8], is_ndjson: bool) -> Result<Accepted> {
        let text = std::str::from_utf8(body)
            .map_err(|_| ApiError::new(Code::InvalidJson, "the body is not UTF-8"))?;
        let now = self.now_ms();
        let namespace = caller.environment.namespace();
        // `horizon_ms` is the least integer where everything is retained; no event is from before 1970.
        let window = AcceptedTimes { now, oldest: self.engine.horizon_ms(namespace).max(0) };
        // Of the events as they are, however they were compressed on the way.
        let digest = self.named.as_deref().map_or_else(Vec::new, |_| Sha256::digest(body).to_vec());
        let own_id = |index| self.named.as_deref().map(|named| named.event_id(&digest, index));
        let intake = || Intake {
            window,
            own_id: &own_id,
            count: 0,
            batch: self.engine.batch(namespace),
            rejected: Vec::new(),
        };
        let mut taken = intake();
        let add = |json, event| taken.add_parsed(json, event);
        let is_plain = !is_ndjson && each_event(text, add).is_some();
        if !is_plain {
            // Something is wrong, or written in another way: event by event, each with its own error.
            taken = intake();
            taken.add_all(&if is_ndjson { split_lines(text)? } else { split_json(text)? })?;
        }
        let Intake { batch, rejected, .. } = taken;
        if batch.is_empty() {
            let first = &rejected[0];
            let field = first.field.as_ref().map_or_else(String::new, |field| format!(".{field}"));
            return Err(ApiError {
                field: Some(format!("events[0]{field}")),
                ..ApiError::new(
                    first.code,
                    format!("no event is valid; the first: {}", first.message),
                )
            });
        }
        let taken = batch.len();
        let ingested = self.store_batch(&caller.org, &caller.environment, batch)?;
        let duplicates = taken - ingested.new as usize;
        Ok(Accepted { accepted: taken, duplicates, rejected })
    }

    /// Stores a batch and counts it, in one log record.
    ///
    /// `new` events of the batch count for the plan; those that were known by their id do not.
    ///
    /// Errors: 401 and 403 when the caller has lost the right while the body arrived; 402.
    pub fn store_batch(
        &self,
        org: &str,
        environment: &Environment,
        batch: Batch,
    ) -> Result<inlay_engine::Ingested> {
        self.engine.ingest(batch, |txn, ingested| {
            self.check_acting(txn)?;
            let mut records = OrgTxn::new(txn, org);
            self.count_events(&mut records, org, environment, u64::from(ingested.new))
        })
    }
}

/// The events of a request, as they are checked one after the other.
struct Intake<'a> {
    window: AcceptedTimes,
    /// The id of an event without one, by its position, where the request has a name.
    own_id: &'a dyn Fn(usize) -> Option<String>,
    count: usize,
    batch: Batch,
    rejected: Vec<RejectedEvent>,
}

impl Intake<'_> {
    /// Takes events of which each may be refused alone.
    ///
    /// Errors: `events must not be empty`; `too_many_events`.
    fn add_all(&mut self, events: &[&RawValue]) -> Result<()> {
        if events.is_empty() {
            return Err(ApiError::field(Code::InvalidField, "events", "events must not be empty"));
        }
        if events.len() > EVENTS_MAX {
            let message =
                format!("a request holds at most {EVENTS_MAX} events, this one {}", events.len());
            return Err(ApiError::field(Code::TooManyEvents, "events", message));
        }
        for raw in events {
            self.add(raw.get(), parse_event(raw.get()));
        }
        Ok(())
    }

    /// Takes an event that was parsed already. `None` beyond a thousand: the slow path says so with the whole number.
    fn add_parsed(&mut self, json: &str, event: RawEvent<'_>) -> Option<()> {
        (self.count < EVENTS_MAX).then(|| self.add(json, check_length(json).map(|()| event)))
    }

    /// Takes one event, or lists it with its index and the reason.
    fn add(&mut self, json: &str, event: Result<RawEvent<'_>, EventRefusal>) {
        let index = self.count;
        self.count += 1;
        let own_id = (self.own_id)(index);
        let added = event.and_then(|event| add_event(event, self.window, own_id, &mut self.batch));
        if let Err((field, code, message)) = added {
            let event_id = event_id_of(json);
            self.rejected.push(RejectedEvent { index, event_id, field, code, message });
        }
    }
}

/// Calls `each` with the text of every event of a body and the parsed event. Each byte is read once. `None` where the body
/// has not the plain form `{"events": [{…}, …]}`, an event cannot be read or `each` takes no more; it may have been called
/// by then.
///
/// A second `events`, a field beside it, or anything else that is not exactly this form is left to the slow path, which is right for all
/// bodies.
fn each_event<'a>(
    text: &'a str,
    mut each: impl FnMut(&'a str, RawEvent<'a>) -> Option<()>,
) -> Option<()> {
    let after = |text: &'a str, token: &str| skip_spaces(text).strip_prefix(token);
    let mut rest = ["{", "\"events\"", ":", "["].into_iter().try_fold(text, after)?;
    loop {
        // An object: of a list the library would take the fields by their order.
        rest = Some(skip_spaces(rest)).filter(|rest| rest.starts_with('{'))?;
        let mut events = serde_json::Deserializer::from_str(rest).into_iter();
        let event = events.next()?.ok()?;
        let (json, others) = rest.split_at_checked(events.byte_offset())?;
        each(json, event)?;
        match after(others, ",") {
            Some(others) => rest = others,
            None => {
                let end = ["]", "}"].into_iter().try_fold(others, after)?;
                return skip_spaces(end).is_empty().then_some(());
            }
        }
    }
}

/// A text without the spaces of JSON before it.
fn skip_spaces(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

/// The events of a body as texts.
///
/// Errors: `invalid_json`; a field beside `events`; `events` that is missing or no list.
fn split_json(text: &str) -> Result<Vec<&RawValue>> {
    if text.trim_start().starts_with('[') {
        let message = "the body must be an object with the field events";
        return Err(ApiError::field(Code::InvalidField, "events", message));
    }
    serde_json::from_str::<Envelope<'_>>(text).map(|envelope| envelope.events).map_err(|error| {
        let message = error.to_string();
        if error.is_data() {
            let (code, field) = match message.split('`').nth(1) {
                Some(field) if message.starts_with("unknown field") => (Code::UnknownField, field),
                _ if message.starts_with("missing field") => (Code::MissingField, "events"),
                _ => (Code::InvalidField, "events"),
            };
            return ApiError::field(code, field, message.clone());
        }
        ApiError::new(Code::InvalidJson, format!("the body is not valid JSON: {message}"))
    })
}

/// The events of a body with one event a line; empty lines are passed over.
///
/// Errors: `invalid_json`, `line 3 is not valid JSON: …`, counted without the empty ones.
fn split_lines(text: &str) -> Result<Vec<&RawValue>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).enumerate();
    lines
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| {
                let message = format!("line {} is not valid JSON: {error}", index + 1);
                ApiError::new(Code::InvalidJson, message)
            })
        })
        .collect()
}

/// Errors: `an event has at most 65536 bytes`.
fn check_length(json: &str) -> Result<(), EventRefusal> {
    match json.len() > EVENT_BYTES_MAX {
        true => {
            let message = format!("an event has at most {EVENT_BYTES_MAX} bytes");
            Err((None, Code::OutOfRange, message))
        }
        false => Ok(()),
    }
}

/// One event as it is written. Errors: what is wrong, with the path of the field.
fn parse_event(json: &str) -> Result<RawEvent<'_>, EventRefusal> {
    check_length(json)?;
    if !json.starts_with('{') {
        return Err((None, Code::InvalidField, "an event must be an object".to_owned()));
    }
    serde_json::from_str(json).map_err(|_| explain(json))
}

/// Checks one event, and appends it to the batch; `own_id` is that of an event without one.
fn add_event(
    event: RawEvent<'_>,
    window: AcceptedTimes,
    own_id: Option<String>,
    batch: &mut Batch,
) -> Result<(), EventRefusal> {
    let timestamp_ms = match &event.timestamp {
        None => window.now,
        Some(Text(text)) => parse_timestamp(text, window)?,
    };
    // Optional ids may be empty, which means that there is none, but not too long.
    let id = |field, text: &Option<Text<'_>>| -> Result<(), EventRefusal> {
        text.as_ref().map_or(Ok(()), |Text(text)| check_text(field, text, ID_BYTES_MAX))
    };
    required("tenant_id", &event.tenant_id.0)?;
    required("event_name", &event.event_name.0)?;
    id("event_id", &event.event_id)?;
    id("user_id", &event.user_id)?;
    let (strings, numbers) = (&event.string_props.0, &event.numeric_props.0);
    if strings.len() + numbers.len() > PROPERTIES_MAX {
        let message = format!("an event has at most {PROPERTIES_MAX} properties");
        return Err(refuse("string_props", Code::OutOfRange, message));
    }
    check_keys("string_props", strings)?;
    check_keys("numeric_props", numbers)?;
    for (Text(name), Text(value)) in strings {
        check_text(format_args!("string_props.{name}"), value, VALUE_BYTES_MAX)?;
    }
    let strings: Vec<(&str, &str)> =
        strings.iter().map(|(name, value)| (&*name.0, &*value.0)).collect();
    let numbers: Vec<(&str, f64)> =
        numbers.iter().map(|(name, value)| (&*name.0, *value)).collect();
    let event_id = optional(&event.event_id).or(own_id.as_deref());
    let user_id = optional(&event.user_id);
    let event = Event {
        tenant: &event.tenant_id.0,
        name: &event.event_name.0,
        timestamp_ms,
        event_id,
        user_id,
    };
    batch.push(&event, &strings, &numbers).map_err(|error| match error {
        inlay_engine::Error::Invalid { field, detail } => {
            refuse(field, Code::OutOfRange, format!("{field} {detail}"))
        }
        other => refuse("event", Code::InvalidField, other.to_string()),
    })
}

/// When an event may have happened.
///
/// With a retention of 90 days `oldest` is midnight UTC, 90 days ago; 0 without one.
#[derive(Clone, Copy)]
struct AcceptedTimes {
    now: i64,
    /// First millisecond that is still kept.
    oldest: i64,
}

/// Milliseconds since 1970 of the timestamp of an event: `2026-11-20T10:17:36.789Z`, `2026-11-20T11:17:36+01:00` or `2026-11-20`.
///
/// Errors: text that is none of these; an instant before 1970, before the retention, or more than 24 hours ahead.
fn parse_timestamp(text: &str, window: AcceptedTimes) -> Result<i64, EventRefusal> {
    let ms = instant::parse(text).ok_or_else(|| {
        refuse("timestamp", Code::InvalidField, "timestamp is not an ISO 8601 date-time or date")
    })?;
    let out_of_range = |message: String| Err(refuse("timestamp", Code::OutOfRange, message));
    if ms > window.now.saturating_add(AHEAD_MS_MAX) {
        return out_of_range("timestamp lies more than 24 hours ahead".to_owned());
    }
    if ms < 0 {
        return out_of_range("timestamp lies before 1970".to_owned());
    }
    if ms < window.oldest {
        let oldest = instant::format(window.oldest);
        return out_of_range(format!("timestamp lies before {oldest}, beyond the retention"));
    }
    Ok(ms)
}

/// An empty text stands for none.
fn optional<'a>(text: &'a Option<Text<'_>>) -> Option<&'a str> {
    text.as_ref().map(|text| &*text.0).filter(|text| !text.is_empty())
}

/// Errors: `tenant_id must not be empty`, or what is wrong with the text.
fn required(field: &str, text: &str) -> Result<(), EventRefusal> {
    if text.is_empty() {
        return Err(refuse(field, Code::InvalidField, format!("{field} must not be empty")));
    }
    check_text(field, text, ID_BYTES_MAX)
}

/// The field's name is made only where something is wrong: this is asked for every text of every event.
fn check_text(field: impl fmt::Display, text: &str, bytes_max: usize) -> Result<(), EventRefusal> {
    let (code, message) = if text.len() > bytes_max {
        (Code::OutOfRange, format!("{field} has at most {bytes_max} bytes"))
    } else if text.as_bytes().contains(&0) {
        (Code::InvalidField, format!("{field} must not contain U+0000"))
    } else {
        return Ok(());
    };
    Err(refuse(field.to_string(), code, message))
}

/// Checks the names of properties: not empty, not too long, each once.
fn check_keys<V>(field: &str, pairs: &[(Text<'_>, V)]) -> Result<(), EventRefusal> {
    for (at, (Text(name), _)) in pairs.iter().enumerate() {
        if name.is_empty() {
            return Err(refuse(
                field,
                Code::InvalidField,
                format!("{field} has a property without a name"),
            ));
        }
        check_text(format_args!("{field}.{name}"), name, KEY_BYTES_MAX)?;
        if pairs.iter().take(at).any(|(Text(other), _)| other == name) {
            return Err(refuse(
                format!("{field}.{name}"),
                Code::InvalidField,
                format!("{field}.{name} comes twice"),
            ));
        }
    }
    Ok(())
}

/// Why an event does not parse: done again, slowly, with the path to the field.
fn explain(json: &str) -> EventRefusal {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    match serde_path_to_error::deserialize::<_, RawEvent<'_>>(&mut deserializer) {
        Ok(_) => (None, Code::InvalidField, "the event is not valid".to_owned()),
        Err(error) => {
            let (field, code, message) = base_json::explain(&error);
            (field, code, message)
        }
    }
}

/// The id of an event that was refused, if one can be read.
fn event_id_of(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Id {
        event_id: Option<String>,
    }
    serde_json::from_str::<Id>(json).ok()?.event_id
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a body that are read at once, by name and text.
    fn plain(body: &str) -> Option<Vec<(String, &str)>> {
        let mut events = Vec::new();
        let push = |json, event: RawEvent<'_>| {
            events.push((event.event_name.0.into_owned(), json));
            Some(())
        };
        each_event(body, push)?;
        Some(events)
    }

    #[test]
    fn a_body_in_the_plain_form_is_read_at_once() {
        let [one, two] = [
            r#"{"tenant_id": "t", "event_name": "\u0065ins"}"#,
            r#"{"event_name":"]}","tenant_id":"t","string_props":{"a":"}"},"numeric_props":null}"#,
        ];
        let expected = vec![("eins".to_owned(), one), ("]}".to_owned(), two)];
        for body in [
            format!(r#"{{"events":[{one},{two}]}}"#),
            format!(" {{\r\n\t\"events\" :\n[ {one} , {two} ]\n}}\n"),
        ] {
            assert_eq!(plain(&body).as_ref(), Some(&expected), "{body}");
            let one_by_one: Vec<_> = split_json(&body).unwrap();
            let texts: Vec<&str> = one_by_one.iter().map(|raw| raw.get()).collect();
            assert_eq!(texts, [one, two]);
        }
    }

    #[test]
    fn every_other_body_is_left_to_the_slow_way() {
        let event = r#"{"tenant_id":"t","event_name":"e"}"#;
        for body in [
            String::new(),
            "{}".to_owned(),
            format!("[{event}]"),
            r#"{"events":[]}"#.to_owned(),
            r#"{"events":[["t","e"]]}"#.to_owned(),
            r#"{"events":[{"tenant_id":"t"}]}"#.to_owned(),
            r#"{"events":[{"tenant_id":"t","event_name":"e","x":1}]}"#.to_owned(),
            format!(r#"{{"events":[{event}"#),
            format!(r#"{{"events":[{event},]}}"#),
            format!(r#"{{"events":[{event}{event}]}}"#),
            format!(r#"{{"events":[{event}],"more":1}}"#),
            format!(r#"{{"events":[{event}],"events":[{event}]}}"#),
            format!(r#"{{"events":[{event}]}}}}"#),
            format!(r#"{{"more":1,"events":[{event}]}}"#),
        ] {
            assert_eq!(plain(&body), None, "{body}");
        }
    }
}
