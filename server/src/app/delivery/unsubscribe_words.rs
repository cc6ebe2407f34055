//! What the page says that stops the mails of a rule, in the language of its mails.
//!
//! ```text
//! en   Stop these mails?              The alert Too many errors sends mails to ops@acme.example.     [Stop mails to this address]
//! de   Diese Mails abbestellen?       Der Alarm Too many errors schickt Mails an ops@acme.example.   [Mails an diese Adresse abbestellen]
//! ```
//!
//! A link that is not valid names no rule, so that page is English.

use super::unsubscribe::{MailSource, MailSubscription};
use crate::base::locale::Locale;

/// A sentence around the names of a rule and of an address: before, between and behind them.
pub type Sentence = [&'static str; 3];

/// Sentences of the page.
pub struct UnsubscribeWords {
    /// Head of the page that asks, and of the one that says that it is done.
    pub ask: &'static str,
    pub done: &'static str,
    /// Text of the button that stops them.
    pub button: &'static str,
    /// What an alert and a report send, and what they do not send any more.
    sends: [Sentence; 2],
    sends_no_more: [Sentence; 2],
    /// How mails may come again.
    pub again: &'static str,
}

impl UnsubscribeWords {
    /// What a rule sends to an address, or does not send any more.
    pub fn sentence(&self, found: &MailSubscription) -> Sentence {
        let [alert, report] = if found.is_active { self.sends } else { self.sends_no_more };
        match found.source {
            MailSource::Alert => alert,
            MailSource::Report => report,
        }
    }
}

/// The words of a language.
pub fn unsubscribe_words(locale: Locale) -> &'static UnsubscribeWords {
    match locale {
        Locale::En => &ENGLISH,
        Locale::De => &GERMAN,
        Locale::Fr => &FRENCH,
        Locale::Ja => &JAPANESE,
    }
}

const ENGLISH: UnsubscribeWords = UnsubscribeWords {
    ask: "Stop these mails?",
    done: "No more mails",
    button: "Stop mails to this address",
    sends: [["The alert ", " sends mails to ", "."], ["The report ", " sends mails to ", "."]],
    sends_no_more: [
        ["The alert ", " sends no mails to ", "."],
        ["The report ", " sends no mails to ", "."],
    ],
    again: "Whoever manages it can add the address again.",
};

const GERMAN: UnsubscribeWords = UnsubscribeWords {
    ask: "Diese Mails abbestellen?",
    done: "Keine Mails mehr",
    button: "Mails an diese Adresse abbestellen",
    sends: [["Der Alarm ", " schickt Mails an ", "."], ["Der Bericht ", " geht an ", "."]],
    sends_no_more: [
        ["Der Alarm ", " schickt keine Mails mehr an ", "."],
        ["Der Bericht ", " geht nicht mehr an ", "."],
    ],
    again: "Wer ihn verwaltet, kann die Adresse wieder hinzufügen.",
};

const FRENCH: UnsubscribeWords = UnsubscribeWords {
    ask: "Ne plus recevoir ces messages\u{a0}?",
    done: "Plus aucun message",
    button: "Ne plus envoyer de messages à cette adresse",
    sends: [["L’alerte ", " envoie des messages à ", "."], ["Le rapport ", " est envoyé à ", "."]],
    sends_no_more: [
        ["L’alerte ", " n’envoie plus de messages à ", "."],
        ["Le rapport ", " n’est plus envoyé à ", "."],
    ],
    again: "Son gestionnaire peut ajouter l’adresse de nouveau.",
};

const JAPANESE: UnsubscribeWords = UnsubscribeWords {
    ask: "メールの配信を停止しますか？",
    done: "配信を停止しました",
    button: "このアドレスへの配信を停止する",
    sends: [
        ["アラート「", "」のメールが ", " に送信されています。"],
        ["レポート「", "」のメールが ", " に送信されています。"],
    ],
    sends_no_more: [
        ["アラート「", "」のメールは ", " に送信されません。"],
        ["レポート「", "」のメールは ", " に送信されません。"],
    ],
    again: "管理者がアドレスを再び追加できます。",
};
