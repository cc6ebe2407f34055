//! How amounts of money are written: the symbol of a currency in a language, its side, and its decimal places.
//!
//! Source: CLDR 48 as a browser engine has it, `Intl.NumberFormat` with `style: "currency"`.
//!
//! ```text
//! code   en           de           fr            ja
//! USD    $12.50       12,50 $      12,50 $US     $12.50
//! CHF    CHF 12.50    12,50 CHF    12,50 CHF     CHF 12.50
//! JPY    ¥13          13 ¥         13 JPY        ￥13
//! ```

use super::number::NBSP;
use crate::base::locale::Locale;

/// Symbols that English, German and Japanese have in common.
const SYMBOLS: [(&str, &str); 20] = [
    ("USD", "$"),
    ("EUR", "€"),
    ("GBP", "£"),
    ("JPY", "¥"),
    ("INR", "₹"),
    ("CNY", "CN¥"),
    ("KRW", "₩"),
    ("BRL", "R$"),
    ("CAD", "CA$"),
    ("AUD", "A$"),
    ("MXN", "MX$"),
    ("NZD", "NZ$"),
    ("HKD", "HK$"),
    ("TWD", "NT$"),
    ("ILS", "₪"),
    ("VND", "₫"),
    ("XAF", "FCFA"),
    ("XOF", "F\u{202f}CFA"),
    ("XCD", "EC$"),
    ("XPF", "CFPF"),
];
const ENGLISH: [(&str, &str); 2] = [("PHP", "₱"), ("XCG", "Cg.")];
const GERMAN: [(&str, &str); 3] = [("AUD", "AU$"), ("THB", "฿"), ("XCG", "Cg.")];
const JAPANESE: [(&str, &str); 3] = [("JPY", "￥"), ("CNY", "元"), ("XCG", "Cg")];
/// French names the country of a dollar or a pound, and shares few symbols with the others.
const FRENCH: [(&str, &str); 33] = [
    ("USD", "$US"),
    ("EUR", "€"),
    ("GBP", "£GB"),
    ("INR", "₹"),
    ("KRW", "₩"),
    ("BRL", "R$"),
    ("CAD", "$CA"),
    ("AUD", "$AU"),
    ("MXN", "$MX"),
    ("NZD", "$NZ"),
    ("ILS", "₪"),
    ("VND", "₫"),
    ("ARS", "$AR"),
    ("BMD", "$BM"),
    ("BND", "$BN"),
    ("BZD", "$BZ"),
    ("CLP", "$CL"),
    ("COP", "$CO"),
    ("FJD", "$FJ"),
    ("FKP", "£FK"),
    ("GIP", "£GI"),
    ("LBP", "£LB"),
    ("NAD", "$NA"),
    ("SBD", "$SB"),
    ("SGD", "$SG"),
    ("SRD", "$SR"),
    ("TTD", "$TT"),
    ("UYU", "$UY"),
    ("WST", "$WS"),
    ("XAF", "FCFA"),
    ("XOF", "F\u{202f}CFA"),
    ("XCG", "Cg."),
    ("XPF", "FCFP"),
];
/// Currencies without a smaller unit, and those with a thousandth.
const WHOLE: [&str; 33] = [
    "AFN", "ALL", "BIF", "CLP", "COP", "DJF", "GNF", "HUF", "IDR", "IQD", "IRR", "ISK", "JPY",
    "KMF", "KPW", "KRW", "LAK", "LBP", "MGA", "MMK", "PKR", "PYG", "RWF", "SLL", "SOS", "SYP",
    "UGX", "VND", "VUV", "XAF", "XOF", "XPF", "YER",
];
const THOUSANDTHS: [&str; 6] = ["BHD", "JOD", "KWD", "LYD", "OMR", "TND"];

/// A currency as a language writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Currency {
    symbol: String,
    /// Decimal places that it is written with.
    pub places: usize,
    locale: Locale,
}

impl Currency {
    /// The currency with this ISO 4217 code, in any case. A code without a symbol is written out.
    pub fn of(code: &str, locale: Locale) -> Self {
        let code = code.to_ascii_uppercase();
        let (own, common): (&[_], &[_]) = match locale {
            Locale::En => (&ENGLISH, &SYMBOLS),
            Locale::De => (&GERMAN, &SYMBOLS),
            Locale::Fr => (&FRENCH, &[]),
            Locale::Ja => (&JAPANESE, &SYMBOLS),
        };
        let known = own.iter().chain(common).find(|(known, _)| *known == code);
        let places = match code.as_str() {
            whole if WHOLE.contains(&whole) => 0,
            small if THOUSANDTHS.contains(&small) => 3,
            _ => 2,
        };
        let symbol = known.map(|(_, symbol)| (*symbol).to_owned());
        Self { symbol: symbol.unwrap_or(code), places, locale }
    }

    /// An amount that is written already: `$12` and `CHF 12`, where a code or a word needs a space, and `12 €`.
    pub fn around(&self, amount: &str) -> String {
        let symbol = &self.symbol;
        match self.locale {
            Locale::De | Locale::Fr => format!("{amount}{NBSP}{symbol}"),
            Locale::En | Locale::Ja if symbol.ends_with(char::is_alphabetic) => {
                format!("{symbol}{NBSP}{amount}")
            }
            Locale::En | Locale::Ja => format!("{symbol}{amount}"),
        }
    }
}
