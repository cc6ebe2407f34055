//! The order of an output's rows, computed once and followed by every column.
//!
//! ```text
//! A (older)   10 20 30         spans   A 0..1, B 0..1, A 1..2, B 1..2, A 2..3
//! B           15 20            times   10     15      20      20      30
//!
//! A           10 20            inputs that follow each other in time: A 0..2, B 0..2, without comparing
//! B           20 30
//! ```
//!
//! With an erased user in rows 1 and 2 of A, the piece A 0..3 becomes A 0..1 before anything is ordered, and A 1..3 is listed
//! as dropped.

use super::{
    cursors::IntCursor,
    plan::{Piece, SeriesPlan},
};
use crate::{
    error::Result,
    segment::{RunDirectory, Segment},
};

/// Rows of one output in order. Each column is read along `spans`, so all columns have their rows in the same order.
#[derive(Default)]
pub struct Order {
    /// The rows as ranges of the inputs.
    pub spans: Vec<Piece>,
    /// Timestamp of each row, in milliseconds since 1970; already decoded, so the column of times is written from here.
    pub times: Vec<i64>,
    /// Run directory of the output, without series that lost all rows.
    pub runs: RunDirectory,
    /// Rows that were left out because of their user, as ranges of the inputs.
    pub dropped: Vec<Piece>,
}

/// Rows of a series that follow each other in one input, with their times; rows before `at` are in the order already.
struct Stream {
    piece: Piece,
    times: Vec<i64>,
    at: usize,
}

/// Orders the rows of an output: by series as planned, then by time, then by age of their input.
///
/// In memory are the times of one series of each input, besides those of the output.
/// Errors: `Corrupt` when times or users of an input are damaged.
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
            // Rows of an erased user are taken out before the times are read.
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
        // A series that lost all rows has no run.
        if order.times.len() > start {
            order.runs.push(plan.key.clone(), &order.times[start..]);
        }
    }
    Ok(order)
}

/// User codes of an input, and the last looked-up user with the code: a look-up reads all users
/// of the tenant. Without a code the tenant has no row of the user in this input.
#[derive(Default)]
struct UserCursor<'a> {
    codes: IntCursor<'a>,
    known: Option<((usize, u128), Option<i64>)>,
}

/// The ranges of a piece without the rows of a user, which are added to `order.dropped`.
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

/// Merges sorted streams; among equal times the earlier stream comes first. Moves as many rows at once as one stream leads by, so
/// inputs that overlap little give few spans.
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

/// The stream whose next row is earliest, but for `except`; of equal ones the first. `None` when all others are used up.
fn earliest(streams: &[Stream], except: Option<usize>) -> Option<usize> {
    streams
        .iter()
        .enumerate()
        .filter(|(at, stream)| Some(*at) != except && stream.at < stream.times.len())
        .min_by_key(|(at, stream)| (stream.times[stream.at], *at))
        .map(|(at, _)| at)
}

/// Appends rows, joined to the last span where they follow it in their input.
fn push_span(spans: &mut Vec<Piece>, span: Piece) {
    match spans.last_mut() {
        Some(last) if last.input == span.input && last.start + last.rows == span.start => {
            last.rows += span.rows;
        }
        _ => spans.push(span),
    }
}
