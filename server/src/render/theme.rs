//! Colours and measures of what the server draws: those of `web/shared/tokens.css` in light, with mixed
//! colours worked out.

/// The page.
pub const PAGE: &str = "#f7f7f5";
/// A card.
pub const CARD: &str = "#ffffff";
/// The edge of a card.
pub const BORDER: &str = "#e6e5e1";
/// Edges that must be seen.
pub const BORDER_STRONG: &str = "#8a8d96";
/// Text.
pub const TEXT: &str = "#17181c";
/// Text that stands back.
pub const TEXT_2: &str = "#424347";
/// Text that stands further back.
pub const MUTED: &str = "#6b6e78";
/// A change for the better.
pub const GOOD: &str = "#0b7a55";
/// A change for the worse.
pub const BAD: &str = "#c02b2b";
/// Lines of the grid.
pub const GRID: &str = "#eaeaea";
/// The line at zero.
pub const AXIS: &str = "#cbcbcc";
/// A track that something fills.
pub const FILL: &str = "#e7e7e8";
/// A bar behind text.
pub const SOFT: &str = "#e0e9fc";
/// What is left of many groups.
pub const OTHER: &str = "#a7a8aa";

/// Colours of series, in their order.
pub const COLORS: [&str; 8] =
    ["#315ed9", "#d07f0e", "#03a490", "#b72d56", "#a482d4", "#025278", "#4d7102", "#7f1221"];

/// The colour of a series.
pub fn color_of(at: usize) -> &'static str {
    COLORS[at % COLORS.len()]
}

/// Width of a column of the grid.
pub const COLUMN: f64 = 82.0;
/// Height of a row of the grid.
pub const ROW: f64 = 44.0;
/// Between two cards.
pub const GAP: f64 = 16.0;
/// Width of twelve columns.
pub const WIDTH: f64 = 12.0 * COLUMN + 11.0 * GAP;
/// Around the page of a picture.
pub const MARGIN: f64 = 20.0;
