//! What drawings say beside the data, in each language of a report.
//!
//! Where the embed says the same, the words are its own (`web/lang/de.js`), which `web/test/golden.json` checks.
//!
//! ```text
//! field          en                       de                          fr                               ja
//! other          Other                    Andere                      Autres                           その他
//! top_of         Top 50 of 120            50 von 120                  50 premiers sur 120              120 件中 上位 50 件
//! versus         vs previous 7 days       ggü. 7 Tage zuvor           par rapport à 7 jours avant      前の7 日比
//! ```

use super::number::NBSP;
use crate::base::locale::Locale;

/// Sentences, labels, and how values are put into them.
pub struct Words {
    /// A chart without data: heading and sentence.
    pub nothing: [&'static str; 2],
    /// A number without events.
    pub no_events: &'static str,
    /// The heading over the reason why a chart has no data.
    pub chart_failed: &'static str,
    /// A number that has no data.
    pub number_failed: &'static str,
    /// The reason where it is a fault of the server.
    pub unanswered: &'static str,
    /// Groups beyond those that are shown.
    pub other: &'static str,
    /// Events without the property.
    pub none: &'static str,
    /// A change from zero.
    pub fresh: &'static str,
    /// Heads of the columns of a table.
    pub time: &'static str,
    /// The column of groups whose property has no name.
    pub group: &'static str,
    /// The column of values.
    pub value: &'static str,
    /// The column of values of the window before.
    pub previous: &'static str,
    /// The column of parts of the total.
    pub share: &'static str,
    /// Below a funnel.
    pub steps: &'static str,
    /// Below a chart whose axis begins elsewhere than at zero.
    pub cut_axis: &'static str,
    /// Beside the title of a table's further pages.
    pub continued: &'static str,
    /// The label of an alert's threshold.
    pub threshold: &'static str,
    /// One and several hours, days, weeks, months.
    pub lengths: [(&'static str, &'static str); 4],
    /// Between a number and its unit of time.
    pub length_space: char,
    /// `Week of Nov 20, 2026`, of a day.
    pub week_of: fn(&str) -> String,
    /// `Top 50 of 120`.
    pub top_of: fn(&str, &str) -> String,
    /// `and 3 more`, below a list.
    pub more: fn(usize) -> String,
    /// `+3 more`, beside a legend.
    pub more_series: fn(usize) -> String,
    /// `2 columns not shown`.
    pub columns_hidden: fn(usize) -> String,
    /// `vs previous 7 days`, of a period, or `vs the dates before`.
    pub versus: fn(Option<&str>) -> String,
    /// The same in a mail, where there is room: `vs the previous 7 days`.
    pub versus_in_full: fn(Option<&str>) -> String,
    /// A change from zero, in a mail: `none in the previous 7 days`, or 0 of what is not counted.
    pub none_before: fn(Option<&str>, bool) -> String,
    /// A large change in a mail: whether up, the percentage, and against which window.
    pub large_change: fn(bool, &str, &str) -> String,
    /// The period of a sheet: `Last 7 days`.
    pub last: fn(&str) -> String,
    /// When a sheet was made.
    pub made: fn(&str) -> String,
    /// Below the title of an alert's chart: from, to, and minutes of each value.
    pub values_between: fn(&str, &str, u32) -> String,
}

/// The words of a language.
pub fn words(locale: Locale) -> &'static Words {
    match locale {
        Locale::En => &ENGLISH,
        Locale::De => &GERMAN,
        Locale::Fr => &FRENCH,
        Locale::Ja => &JAPANESE,
    }
}

/// `1 day` without its number: `the previous day`.
fn without_one(period: &str) -> &str {
    period.strip_prefix("1 ").unwrap_or(period)
}

fn versus_german(period: Option<&str>) -> String {
    match period {
        Some(period) => format!("ggü. {period} zuvor"),
        None => "ggü. der Zeit davor".to_owned(),
    }
}

fn versus_french(period: Option<&str>) -> String {
    match period {
        Some(period) => format!("par rapport à {period} avant"),
        None => "par rapport aux dates d’avant".to_owned(),
    }
}

fn versus_japanese(period: Option<&str>) -> String {
    match period {
        Some(period) => format!("前の{period}比"),
        None => "直前の期間比".to_owned(),
    }
}

const ENGLISH: Words = Words {
    nothing: ["Nothing in this period", "No events match."],
    no_events: "No events in this period",
    chart_failed: "This chart couldn’t load",
    number_failed: "Couldn’t load.",
    unanswered: "The server could not answer it.",
    other: "Other",
    none: "(none)",
    fresh: "New",
    time: "Time",
    group: "Group",
    value: "Value",
    previous: "Previous",
    share: "Share",
    steps: "Independent steps",
    cut_axis: "Axis doesn’t start at zero",
    continued: "(continued)",
    threshold: "Threshold",
    lengths: [("hour", "hours"), ("day", "days"), ("week", "weeks"), ("month", "months")],
    length_space: ' ',
    week_of: |day| format!("Week of {day}"),
    top_of: |shown, all| format!("Top {shown} of {all}"),
    more: |count| format!("and {count} more"),
    more_series: |count| format!("+{count} more"),
    columns_hidden: |count| {
        format!("{count} column{} not shown", if count == 1 { "" } else { "s" })
    },
    versus: |period| match period {
        Some(period) => format!("vs previous {}", without_one(period)),
        None => "vs the dates before".to_owned(),
    },
    versus_in_full: |period| match period {
        Some(period) => format!("vs the previous {}", without_one(period)),
        None => "vs the dates before".to_owned(),
    },
    none_before: |period, is_count| {
        let none = if is_count { "none" } else { "0" };
        match period {
            Some(period) => format!("{none} in the previous {}", without_one(period)),
            None => format!("{none} in the dates before"),
        }
    },
    large_change: |is_up, percent, versus| {
        format!("more than {percent} {} {versus}", if is_up { "up" } else { "down" })
    },
    last: |period| format!("Last {}", without_one(period)),
    made: |time| format!("Made {time}"),
    values_between: |from, to, minutes| {
        let s = if minutes == 1 { "" } else { "s" };
        format!("{from} to {to}, each value of {minutes} minute{s}")
    },
};

const GERMAN: Words = Words {
    nothing: ["Nichts in diesem Zeitraum", "Keine passenden Ereignisse."],
    no_events: "Keine Ereignisse in diesem Zeitraum",
    chart_failed: "Dieses Diagramm konnte nicht geladen werden",
    number_failed: "Nicht geladen.",
    unanswered: "Der Server konnte die Daten nicht liefern.",
    other: "Andere",
    none: "(keine Angabe)",
    fresh: "Neu",
    time: "Zeit",
    group: "Gruppe",
    value: "Wert",
    previous: "Zuvor",
    share: "Anteil",
    steps: "Unabhängige Schritte",
    cut_axis: "Die Achse beginnt nicht bei null",
    continued: "(Fortsetzung)",
    threshold: "Schwelle",
    lengths: [("Stunde", "Stunden"), ("Tag", "Tage"), ("Woche", "Wochen"), ("Monat", "Monate")],
    length_space: ' ',
    week_of: |day| format!("Woche ab {day}"),
    top_of: |shown, all| format!("{shown} von {all}"),
    more: |count| format!("und {count} weitere"),
    more_series: |count| format!("+{count} weitere"),
    columns_hidden: |count| {
        format!("{count} Spalte{} nicht gezeigt", if count == 1 { "" } else { "n" })
    },
    versus: versus_german,
    versus_in_full: versus_german,
    none_before: |_, is_count| {
        format!("{} im Zeitraum davor", if is_count { "keine" } else { "0" })
    },
    large_change: |is_up, percent, versus| {
        format!("um mehr als {percent} {}, {versus}", if is_up { "gestiegen" } else { "gefallen" })
    },
    last: |period| format!("Zeitraum: {period}"),
    made: |time| format!("Erstellt {time}"),
    values_between: |from, to, minutes| {
        let n = if minutes == 1 { "" } else { "n" };
        format!("{from} bis {to}, jeder Wert über {minutes} Minute{n}")
    },
};

const FRENCH: Words = Words {
    nothing: ["Rien sur cette période", "Aucun événement correspondant."],
    no_events: "Aucun événement sur cette période",
    chart_failed: "Ce graphique n’a pas pu être chargé",
    number_failed: "Échec du chargement.",
    unanswered: "Le serveur n’a pas pu fournir les données.",
    other: "Autres",
    none: "(aucune)",
    fresh: "Nouveau",
    time: "Date",
    group: "Groupe",
    value: "Valeur",
    previous: "Précédent",
    share: "Part",
    steps: "Étapes indépendantes",
    cut_axis: "L’axe ne commence pas à zéro",
    continued: "(suite)",
    threshold: "Seuil",
    lengths: [("heure", "heures"), ("jour", "jours"), ("semaine", "semaines"), ("mois", "mois")],
    length_space: NBSP,
    week_of: |day| format!("Semaine du {day}"),
    top_of: |shown, all| format!("{shown} premiers sur {all}"),
    more: |count| format!("et {count} de plus"),
    more_series: |count| format!("+{count} de plus"),
    columns_hidden: |count| {
        let s = if count == 1 { "" } else { "s" };
        format!("{count} colonne{s} non affichée{s}")
    },
    versus: versus_french,
    versus_in_full: versus_french,
    none_before: |_, is_count| {
        format!("{} sur la période précédente", if is_count { "aucun" } else { "0" })
    },
    large_change: |is_up, percent, versus| {
        format!("plus de {percent} de {}, {versus}", if is_up { "hausse" } else { "baisse" })
    },
    last: |period| format!("Période{NBSP}: {period}"),
    made: |time| format!("Établi le {time}"),
    values_between: |from, to, minutes| {
        let s = if minutes == 1 { "" } else { "s" };
        format!("du {from} au {to}, chaque valeur sur {minutes} minute{s}")
    },
};

const JAPANESE: Words = Words {
    nothing: ["この期間のデータはありません", "一致するイベントはありません。"],
    no_events: "この期間のイベントはありません",
    chart_failed: "グラフを読み込めませんでした",
    number_failed: "読み込めませんでした。",
    unanswered: "サーバーがデータを返せませんでした。",
    other: "その他",
    none: "（なし）",
    fresh: "新規",
    time: "時間",
    group: "グループ",
    value: "値",
    previous: "前期間",
    share: "割合",
    steps: "各ステップは独立",
    cut_axis: "軸はゼロから始まりません",
    continued: "（続き）",
    threshold: "しきい値",
    lengths: [("時間", "時間"), ("日", "日"), ("週間", "週間"), ("か月", "か月")],
    length_space: ' ',
    week_of: |day| format!("{day} の週"),
    top_of: |shown, all| format!("{all} 件中 上位 {shown} 件"),
    more: |count| format!("ほか {count} 件"),
    more_series: |count| format!("ほか {count} 件"),
    columns_hidden: |count| format!("{count} 列は非表示"),
    versus: versus_japanese,
    versus_in_full: versus_japanese,
    none_before: |_, _| "前の期間は 0".to_owned(),
    large_change: |is_up, percent, versus| {
        format!("{versus} {percent} を超える{}", if is_up { "増加" } else { "減少" })
    },
    last: |period| format!("過去{period}"),
    made: |time| format!("{time} 作成"),
    values_between: |from, to, minutes| format!("{from} から {to}、各値は {minutes} 分間"),
};
