//! The order of an output's rows, computed once and followed by every column.

use super::{
    cursors::IntCursor,
    plan::{Piece, SeriesPlan},
};
use crate::{
    error::Result,
    segment::{RunDirectory, Segment},
};

/// Rows of one output in order.
#[derive(Default)]
pub struct Order {
    /// The rows as ranges of the inputs.
    pub spans: Vec<Piece>,
    /// Timestamp of each row, in milliseconds since 1970.
    pub times: Vec<i64>,
    /// Run directory of the output, without series that lost all rows.
    pub runs: RunDirectory,
    /// Rows that were left out because of their user.
    pub dropped: Vec<Piece>,
}

/// Rows of a series that follow each other in one input.
struct Stream {
    piece: Piece,
    times: Vec<i64>,
    at: usize,
}

/// Orders the rows of an output: by series as planned, then by time, then by age of their input.
pub fn order(inputs: &[&Segment], series: &[SeriesPlan<'_>]) -> Result<Order> {
    let mut order = Order::default();
    let mut times: Vec<IntCursor<'_>> = inputs.iter().map(|_| IntCursor::default()).collect();
    let mut users: Vec<UserCursor<'_>> = inputs.iter().map(|_| UserCursor::default()).collect();
    for plan in series {
        let start = order.times.len();
        let mut streams = Vec::new();
        for &piece in &plan.pieces {
            let input = usize::from(piece.input);
            let segment = inputs[input];
            let kept = match plan.without_user {
                None => vec![piece],
                Some(user) => without_user(segment, user, piece, &mut users[input], &mut order)?,
            };
            for piece in kept {
                let mut here = Vec::with_capacity(piece.rows as usize);
                times[input].read(
                    piece,
                    |block| segment.times(block),
                    |values| here.extend_from_slice(values),
                )?;
                streams.push(Stream { piece, times: here, at: 0 });
            }
        }
        merge(streams, &mut order);
        if order.times.len() > start {
            order.runs.push(plan.key.clone(), &order.times[start..]);
        }
    }
    Ok(order)
}

/// User codes of an input, and the last looked-up user with the code: a look-up reads all users
/// of the tenant.
#[derive(Default)]
struct UserCursor<'a> {
    codes: IntCursor<'a>,
    known: Option<((usize, u128), Option<i64>)>,
}

/// The ranges of a piece without the rows of a user.
fn without_user<'a>(
    segment: &'a Segment,
    user: u128,
    piece: Piece,
    users: &mut UserCursor<'a>,
    order: &mut Order,
) -> Result<Vec<Piece>> {
    let tenant = segment.tenants().of_row(piece.start);
    let code = match users.known {
        Some((known, code)) if known == (tenant, user) => code,
        _ => users.known.insert(((tenant, user), segment.user_code(tenant, user)?)).1,
    };
    let Some(code) = code else { return Ok(vec![piece]) };
    let mut kept: Vec<Piece> = Vec::new();
    let mut row = piece.start;
    users.codes.read(
        piece,
        |block| segment.user_codes(block),
        |codes| {
            for &here in codes {
                let list = if here == code { &mut order.dropped } else { &mut kept };
                match list.last_mut() {
                    Some(last) if last.input == piece.input && last.start + last.rows == row => {
                        last.rows += 1;
                    }
                    _ => list.push(Piece { input: piece.input, start: row, rows: 1 }),
                }
                row += 1;
            }
        },
    )?;
    Ok(kept)
}

/// Merges sorted streams; among equal times the earlier stream comes first.
fn merge(mut streams: Vec<Stream>, order: &mut Order) {
    streams.retain(|stream| !stream.times.is_empty());
    // Inputs that follow each other in time need no comparing.
    if streams.is_sorted_by(|a, b| a.times.last() <= b.times.first()) {
        for stream in streams {
            push_span(&mut order.spans, stream.piece);
            order.times.extend_from_slice(&stream.times);
        }
        return;
    }
    while let Some(first) = earliest(&streams, None) {
        // How far this stream leads: up to the next of any other.
        let limit = earliest(&streams, Some(first));
        let bound = limit.map(|at| (streams[at].times[streams[at].at], at));
        let stream = &mut streams[first];
        let rest = &stream.times[stream.at..];
        let leads = match bound {
            None => rest.len(),
            Some((time, other)) => rest
                .iter()
                .take_while(|&&here| here < time || here == time && first < other)
                .count(),
        };
        let start = stream.piece.start + stream.at as u32;
        push_span(&mut order.spans, Piece { input: stream.piece.input, start, rows: leads as u32 });
        order.times.extend_from_slice(&rest[..leads]);
        stream.at += leads;
    }
}

/// The stream whose next row is earliest, but for `except`.
fn earliest(streams: &[Stream], except: Option<usize>) -> Option<usize> {
    streams
        .iter()
        .enumerate()
        .filter(|(at, stream)| Some(*at) != except && stream.at < stream.times.len())
        .min_by_key(|(at, stream)| (stream.times[stream.at], *at))
        .map(|(at, _)| at)
}

fn push_span(spans: &mut Vec<Piece>, span: Piece) {
    match spans.last_mut() {
        Some(last) if last.input == span.input && last.start + last.rows == span.start => {
            last.rows += span.rows;
        }
        _ => spans.push(span),
    }
}
