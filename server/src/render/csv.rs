//! A sheet as one long table: `widget_id,widget_title,bucket,group,metric,value`.
//!
//! UTF-8 with a byte order mark, as spreadsheets want it; text that a spreadsheet would run as a formula
//! gets an apostrophe before it.

use super::model::{Answer, Card, Sheet};
use crate::base::instant;

const HEADS: [&str; 6] = ["widget_id", "widget_title", "bucket", "group", "metric", "value"];

/// The sheet as CSV.
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

fn named((metric, number): (&str, Option<&str>)) -> String {
    number.map_or_else(|| metric.to_owned(), |number| format!("{metric}({number})"))
}

/// Text that stays text in a spreadsheet.
fn text(text: &str) -> String {
    let runs = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    if runs { format!("'{text}") } else { text.to_owned() }
}
