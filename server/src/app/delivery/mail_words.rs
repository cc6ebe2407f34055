//! What the mails of alerts and reports say, in each language.
//!
//! ```text
//! en   Firing for 122 tenants, resolved for 1 tenant: Too many errors      Condition: above 1,000
//! de   Ausgelöst für 122 Mandanten, beendet für 1 Mandanten: …             Bedingung: über 1.000
//! fr   Déclenchée pour 122 clients, terminée pour 1 client : …             Condition : supérieur à 1 000
//! ja   発生 122 テナント、解消 1 テナント: …                               条件: 1,000 より大きい
//! ```
//!
//! Names of rules, widgets and tenants are texts of users, and times are in UTC as everywhere (`2026-11-20 10:17 UTC`).

use crate::{base::locale::Locale, store::Operator};

/// Sentences and labels of mails.
pub struct MailWords {
    /// The state of a rule that fires, and of one that does not any more.
    pub firing: &'static str,
    pub resolved: &'static str,
    /// The states of tenants, in a list.
    pub firing_in_list: &'static str,
    pub resolved_in_list: &'static str,
    /// What has happened.
    pub holds: &'static str,
    pub holds_no_more: &'static str,
    pub holds_for_some: &'static str,
    /// An end that is no recovery, with its reason.
    pub ended: fn(&str) -> String,
    /// Why a rule ends whose dashboard, or whose widget, was deleted.
    pub dashboard_deleted: &'static str,
    pub widget_deleted: &'static str,
    /// State, and how many tenants: `Firing for 2 tenants, resolved for 1 tenant`.
    pub counts: fn(usize, usize) -> String,
    /// Between the state and the name of the rule.
    pub colon: &'static str,
    /// Labels of facts.
    pub condition: &'static str,
    pub value: &'static str,
    pub window: &'static str,
    pub tenant: &'static str,
    pub widget: &'static str,
    pub fired_at: &'static str,
    pub resolved_at: &'static str,
    /// A widget on its dashboard.
    pub on_dashboard: fn(&str, &str) -> String,
    /// From, to, and how many minutes.
    pub window_of: fn(&str, &str, i64) -> String,
    /// A comparison with a threshold.
    pub compared: Comparisons,
    /// A comparison with a threshold, of a change in percent.
    pub changed: fn(Operator, &str) -> String,
    /// The name of a rule in a message that only tests it.
    pub test_of: fn(&str) -> String,
    /// The condition that nothing is sent.
    pub no_events: &'static str,
    /// Tenants that are not listed.
    pub more: fn(usize) -> String,
    /// The button of an alert's mail.
    pub open_alert: &'static str,
    /// Before and behind the name of the attached file.
    pub attached: (&'static str, &'static str),
    /// Dashboard and tenant of a report.
    pub about: fn(&str, &str) -> String,
    /// Why the address gets this mail, of an alert and of a report.
    pub why_alert: &'static str,
    pub why_report: &'static str,
    /// The link that ends them.
    pub stop: &'static str,
}

/// How a value is compared: with `gt`, `gte`, `lt`, `lte`, `eq`, `neq`. `#` is the value, as in `above #`.
pub struct Comparisons([&'static str; 6]);

impl Comparisons {
    /// A comparison with a value that is written already: `above 1,000`.
    pub fn with(&self, operator: Operator, value: &str) -> String {
        let Self([gt, gte, lt, lte, eq, neq]) = self;
        let pattern = match operator {
            Operator::Gt => gt,
            Operator::Gte => gte,
            Operator::Lt => lt,
            Operator::Lte => lte,
            Operator::Eq => eq,
            Operator::Neq => neq,
        };
        pattern.replace('#', value)
    }
}

/// The words of a language.
pub fn mail_words(locale: Locale) -> &'static MailWords {
    match locale {
        Locale::En => &ENGLISH,
        Locale::De => &GERMAN,
        Locale::Fr => &FRENCH,
        Locale::Ja => &JAPANESE,
    }
}

/// Both counts with what they count, those that are not zero.
fn counts(firing: Option<String>, resolved: Option<String>, comma: &str) -> String {
    let parts: Vec<String> = [firing, resolved].into_iter().flatten().collect();
    let text = parts.join(comma);
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + chars.as_str()
}

/// A text for a count that is not zero.
fn some(count: usize, text: impl Fn(usize) -> String) -> Option<String> {
    (count > 0).then(|| text(count))
}

const IN_ENGLISH: Comparisons =
    Comparisons(["above #", "at least #", "below #", "at most #", "equal to #", "other than #"]);
const IN_GERMAN: Comparisons =
    Comparisons(["über #", "mindestens #", "unter #", "höchstens #", "gleich #", "nicht gleich #"]);
const IN_FRENCH: Comparisons = Comparisons([
    "supérieur à #",
    "au moins #",
    "inférieur à #",
    "au plus #",
    "égal à #",
    "différent de #",
]);
/// Of a change, which is feminine.
const CHANGES_IN_FRENCH: Comparisons = Comparisons([
    "supérieure à #",
    "d’au moins #",
    "inférieure à #",
    "d’au plus #",
    "égale à #",
    "différente de #",
]);
const IN_JAPANESE: Comparisons =
    Comparisons(["# より大きい", "# 以上", "# より小さい", "# 以下", "# に等しい", "# 以外"]);

const ENGLISH: MailWords = MailWords {
    firing: "Firing",
    resolved: "Resolved",
    firing_in_list: "firing",
    resolved_in_list: "resolved",
    holds: "Its condition holds.",
    holds_no_more: "Its condition does not hold any more.",
    holds_for_some: "Its condition holds for some tenants, and for others not any more.",
    ended: |reason| format!("It ended because {reason}. The rule is switched off."),
    dashboard_deleted: "the dashboard was deleted",
    widget_deleted: "the widget was deleted",
    counts: |firing, resolved| {
        let of = |count: usize| format!("{count} tenant{}", if count == 1 { "" } else { "s" });
        counts(
            some(firing, |count| format!("firing for {}", of(count))),
            some(resolved, |count| format!("resolved for {}", of(count))),
            ", ",
        )
    },
    colon: ": ",
    condition: "Condition",
    value: "Value",
    window: "Window",
    tenant: "Tenant",
    widget: "Widget",
    fired_at: "Fired at",
    resolved_at: "Resolved at",
    on_dashboard: |widget, dashboard| format!("{widget} on {dashboard}"),
    window_of: |from, to, minutes| {
        format!("{from} to {to} ({minutes} minute{})", if minutes == 1 { "" } else { "s" })
    },
    compared: IN_ENGLISH,
    changed: |operator, value| {
        format!("change {} against the window before", IN_ENGLISH.with(operator, value))
    },
    test_of: |rule| format!("Test of {rule}"),
    no_events: "no events",
    more: |count| format!("and {count} more"),
    open_alert: "Open the alert",
    attached: ("The report is attached as ", "."),
    about: |dashboard, tenant| format!("{dashboard}, for {tenant}"),
    why_alert: "You get this mail because your address stands in the alert rule. Whoever manages the rule can remove it.",
    why_report: "You get this mail because your address stands in a scheduled report. Whoever manages it can remove it.",
    stop: "Stop these mails",
};

const GERMAN: MailWords = MailWords {
    firing: "Ausgelöst",
    resolved: "Beendet",
    firing_in_list: "ausgelöst",
    resolved_in_list: "beendet",
    holds: "Die Bedingung ist erfüllt.",
    holds_no_more: "Die Bedingung ist nicht mehr erfüllt.",
    holds_for_some: "Die Bedingung ist für einige Mandanten erfüllt, für andere nicht mehr.",
    ended: |reason| format!("Beendet, weil {reason}. Die Regel ist abgeschaltet."),
    dashboard_deleted: "das Dashboard gelöscht wurde",
    widget_deleted: "das Widget gelöscht wurde",
    counts: |firing, resolved| {
        let of = |count: usize| format!("{count} Mandanten");
        counts(
            some(firing, |count| format!("ausgelöst für {}", of(count))),
            some(resolved, |count| format!("beendet für {}", of(count))),
            ", ",
        )
    },
    colon: ": ",
    condition: "Bedingung",
    value: "Wert",
    window: "Zeitfenster",
    tenant: "Mandant",
    widget: "Widget",
    fired_at: "Ausgelöst am",
    resolved_at: "Beendet am",
    on_dashboard: |widget, dashboard| format!("{widget} auf {dashboard}"),
    window_of: |from, to, minutes| {
        format!("{from} bis {to} ({minutes} Minute{})", if minutes == 1 { "" } else { "n" })
    },
    compared: IN_GERMAN,
    changed: |operator, value| {
        format!("Änderung {} gegenüber dem Zeitfenster davor", IN_GERMAN.with(operator, value))
    },
    test_of: |rule| format!("Test von {rule}"),
    no_events: "keine Ereignisse",
    more: |count| format!("und {count} weitere"),
    open_alert: "Alarm öffnen",
    attached: ("Der Bericht ist angehängt: ", "."),
    about: |dashboard, tenant| format!("{dashboard}, für {tenant}"),
    why_alert: "Sie erhalten diese Mail, weil Ihre Adresse in der Alarmregel steht. Wer die Regel verwaltet, kann sie entfernen.",
    why_report: "Sie erhalten diese Mail, weil Ihre Adresse in einem geplanten Bericht steht. Wer ihn verwaltet, kann sie entfernen.",
    stop: "Diese Mails abbestellen",
};

const FRENCH: MailWords = MailWords {
    firing: "Déclenchée",
    resolved: "Terminée",
    firing_in_list: "déclenchée",
    resolved_in_list: "terminée",
    holds: "La condition est remplie.",
    holds_no_more: "La condition n’est plus remplie.",
    holds_for_some: "La condition est remplie pour certains clients, et ne l’est plus pour d’autres.",
    ended: |reason| format!("Terminée parce que {reason}. La règle est désactivée."),
    dashboard_deleted: "le tableau de bord a été supprimé",
    widget_deleted: "le widget a été supprimé",
    counts: |firing, resolved| {
        let of = |count: usize| format!("{count} client{}", if count == 1 { "" } else { "s" });
        counts(
            some(firing, |count| format!("déclenchée pour {}", of(count))),
            some(resolved, |count| format!("terminée pour {}", of(count))),
            ", ",
        )
    },
    colon: "\u{a0}: ",
    condition: "Condition",
    value: "Valeur",
    window: "Période",
    tenant: "Client",
    widget: "Widget",
    fired_at: "Déclenchée le",
    resolved_at: "Terminée le",
    on_dashboard: |widget, dashboard| format!("{widget} sur {dashboard}"),
    window_of: |from, to, minutes| {
        format!("du {from} au {to} ({minutes} minute{})", if minutes == 1 { "" } else { "s" })
    },
    compared: IN_FRENCH,
    changed: |operator, value| {
        let change = CHANGES_IN_FRENCH.with(operator, value);
        format!("évolution {change} par rapport à la période précédente")
    },
    test_of: |rule| format!("Test de {rule}"),
    no_events: "aucun événement",
    more: |count| format!("et {count} de plus"),
    open_alert: "Ouvrir l’alerte",
    attached: ("Le rapport est joint\u{a0}: ", "."),
    about: |dashboard, tenant| format!("{dashboard}, pour {tenant}"),
    why_alert: "Vous recevez ce message parce que votre adresse figure dans la règle d’alerte. La personne qui gère la règle peut la retirer.",
    why_report: "Vous recevez ce message parce que votre adresse figure dans un rapport planifié. La personne qui le gère peut la retirer.",
    stop: "Ne plus recevoir ces messages",
};

const JAPANESE: MailWords = MailWords {
    firing: "発生",
    resolved: "解消",
    firing_in_list: "発生",
    resolved_in_list: "解消",
    holds: "条件を満たしています。",
    holds_no_more: "条件を満たさなくなりました。",
    holds_for_some: "一部のテナントで条件を満たし、ほかのテナントでは満たさなくなりました。",
    ended: |reason| format!("{reason}ため終了しました。ルールは無効になっています。"),
    dashboard_deleted: "ダッシュボードが削除された",
    widget_deleted: "ウィジェットが削除された",
    counts: |firing, resolved| {
        counts(
            some(firing, |count| format!("発生 {count} テナント")),
            some(resolved, |count| format!("解消 {count} テナント")),
            "、",
        )
    },
    colon: ": ",
    condition: "条件",
    value: "値",
    window: "期間",
    tenant: "テナント",
    widget: "ウィジェット",
    fired_at: "発生時刻",
    resolved_at: "解消時刻",
    on_dashboard: |widget, dashboard| format!("{dashboard} の {widget}"),
    window_of: |from, to, minutes| format!("{from} から {to}（{minutes} 分間）"),
    compared: IN_JAPANESE,
    changed: |operator, value| {
        format!("前の期間からの変化が {}", IN_JAPANESE.with(operator, value))
    },
    test_of: |rule| format!("{rule} のテスト"),
    no_events: "イベントなし",
    more: |count| format!("ほか {count} 件"),
    open_alert: "アラートを開く",
    attached: ("レポートを添付しました: ", ""),
    about: |dashboard, tenant| format!("{dashboard}、{tenant} 向け"),
    why_alert: "このメールは、アラートルールにあなたのアドレスが登録されているため送信されました。ルールの管理者が削除できます。",
    why_report: "このメールは、定期レポートにあなたのアドレスが登録されているため送信されました。レポートの管理者が削除できます。",
    stop: "このメールの配信を停止する",
};
