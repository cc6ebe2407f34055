//! A sheet as one long table: `widget_id,widget_title,bucket,group,metric,value`.
//!
//! UTF-8 with a byte order mark, as spreadsheets want it; text that a spreadsheet would run as a formula
//! gets an apostrophe before it.
//!
//! ```text
//! widget_id,widget_title,bucket,group,metric,value
//! requests,Requests,,,count,1820
//! over_time,Requests over time,2026-11-20T00:00:00.000Z,,count,412
//! by_model,Cost by model,,gpt-4o,sum(cost_usd),12.5
//! by_model,Cost by model,,,sum(cost_usd),
//! ```
//!
//! Lines end in CR LF. The last line is a group without a name and a value that is missing: both fields are
//! empty. A card that failed, and one of kind `text`, adds no line. Values of the window before are left out.

use super::model::{Answer, Card, Sheet};
use crate::base::instant;

const HEADS: [&str; 6] = ["widget_id", "widget_title", "bucket", "group", "metric", "value"];

/// The sheet as CSV. A table of three measures has three lines for each row, one for each measure.
///
/// Errors: none that is expected; what the writer says.
pub fn csv(of: &Sheet) -> Result<Vec<u8>, String> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer("\u{feff}".as_bytes().to_vec());
    writer.write_record(HEADS).map_err(|error| error.to_string())?;
    for card in &of.cards {
        let Ok(answer) = &card.answer else { continue };
        for row in rows(card, answer) {
            writer.write_record(row).map_err(|error| error.to_string())?;
        }
    }
    writer.into_inner().map_err(|error| error.to_string())
}

/// A funnel whose query names no metric counts users: its lines say `count_unique`.
fn rows<'a>(card: &'a Card, answer: &'a Answer) -> impl Iterator<Item = [String; 6]> + 'a {
    let own = [(card.metric().unwrap_or("count_unique"), card.query.numeric_prop.as_deref())];
    let measures = answer.measures.iter();
    let measures =
        measures.map(|measure| (measure.metric.as_str(), measure.numeric_prop.as_deref()));
    let mut names: Vec<String> = measures.map(named).collect();
    if names.is_empty() {
        names.extend(own.map(named));
    }
    answer.rows.iter().flat_map(move |row| {
        let values = if row.values.is_empty() { vec![row.value] } else { row.values.clone() };
        let bucket = row.bucket.map(instant::format).unwrap_or_default();
        let group = row.group.clone().flatten().unwrap_or_default();
        let line = |(name, value): (&String, Option<f64>)| {
            let value = value.map(|value| value.to_string()).unwrap_or_default();
            [text(&card.id), text(&card.title), bucket.clone(), text(&group), name.clone(), value]
        };
        names.iter().zip(values).map(line).collect::<Vec<_>>()
    })
}

/// Name of a metric in the column `metric`: `count`, or `sum(cost_usd)` with its numeric property.
fn named((metric, number): (&str, Option<&str>)) -> String {
    number.map_or_else(|| metric.to_owned(), |number| format!("{metric}({number})"))
}

/// Text that stays text in a spreadsheet.
/// `=1+1` becomes `'=1+1`, and `-5 items` becomes `'-5 items`; `a=1` stays. The full-width signs count too, which
/// some spreadsheets read like `=`. Numbers are not text: a value of −5 is written as `-5`.
fn text(text: &str) -> String {
    let runs = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    if runs { format!("'{text}") } else { text.to_owned() }
}
