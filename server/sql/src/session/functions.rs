//! The functions that statements may call: a list, so that a new version of the library adds none.
//!
//! Left out: whatever makes much of little (`repeat`, `range`, arrays), tells of the machine (`version`,
//! `random`, `uuid`), or belongs to other tables.
//!
//! ```text
//! split_part('a/b/c', '/', 2), levenshtein('kitten', 'sitting'), regexp_count('banana', 'a')      b, 3, 3
//! date_bin(INTERVAL '15 minutes', TIMESTAMP '2026-11-13 07:22:00')                                2026-11-13T07:15:00.000Z
//! coalesce(NULL, 'x'), greatest(1, 3, 2), nullif(1, 1)                                            x, 3, null
//! map_keys(string_props), cardinality(string_props)                                               ["model","plan"], 2
//! repeat('x', 1000000000)                                                                         Invalid function 'repeat'.
//! ```
//!
//! Some are not the library's own: `date_part`, `date_trunc`, `round`, `trunc` and `ceil` have quick or mended cases (`calendar.rs`), `percentile_cont` is
//! exact (`aggregate/percentiles.rs`), `timezone` reads clocks as PostgreSQL does (`time_zones.rs`), lists in an order are sorted at the end (`OrderedLists`).
//! Aliases of a function are offered with it: `substring` with `substr`, `pow` with `power`.

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion_functions::{core, datetime, math, regex, string, unicode};
use datafusion_functions_nested as functions_nested;

use super::{
    calendar::quick, cast_names::cast_value, regressions::with_groups, time_zones::timezone,
};
use crate::{
    aggregate::{OrderedLists, percentile_cont},
    gate::{AGGREGATES, WINDOWS},
};

/// Those of the library's functions that are on a list of names, whatever else the library has.
fn offered<T>(all: Vec<Arc<T>>, names: &[&str], name: impl Fn(&T) -> String) -> Vec<Arc<T>> {
    all.into_iter().filter(|function| names.contains(&&*name(function))).collect()
}

/// Functions of single values.
///
/// Each by its own name, and not the library's list with a filter: a function that nothing refers to is not in the
/// binary.
pub fn scalars() -> Vec<Arc<ScalarUDF>> {
    let settings = ConfigOptions::default();
    let all = [
        // Numbers.
        math::abs(),
        math::acos(),
        math::acosh(),
        math::asin(),
        math::asinh(),
        math::atan(),
        math::atan2(),
        math::atanh(),
        math::cbrt(),
        math::ceil(),
        math::cos(),
        math::cosh(),
        math::cot(),
        math::degrees(),
        math::exp(),
        math::factorial(),
        math::floor(),
        math::gcd(),
        math::isnan(),
        math::iszero(),
        math::lcm(),
        math::ln(),
        math::log(),
        math::log10(),
        math::log2(),
        math::nanvl(),
        math::pi(),
        math::power(),
        math::radians(),
        math::round(),
        math::signum(),
        math::sin(),
        math::sinh(),
        math::sqrt(),
        math::tan(),
        math::tanh(),
        math::trunc(),
        // Texts.
        string::ascii(),
        string::bit_length(),
        string::btrim(),
        unicode::character_length(),
        string::chr(),
        string::concat(),
        string::concat_ws(),
        string::contains(),
        string::ends_with(),
        unicode::find_in_set(),
        unicode::initcap(),
        unicode::left(),
        string::levenshtein(),
        string::lower(),
        unicode::lpad(),
        string::ltrim(),
        string::octet_length(),
        core::overlay(),
        regex::regexp_count(),
        regex::regexp_like(),
        regex::regexp_match(),
        regex::regexp_replace(),
        string::replace(),
        unicode::reverse(),
        unicode::right(),
        unicode::rpad(),
        string::rtrim(),
        string::split_part(),
        string::starts_with(),
        unicode::strpos(),
        unicode::substr(),
        unicode::substr_index(),
        string::to_hex(),
        unicode::translate(),
        string::upper(),
        // Times.
        datetime::current_date(),
        datetime::current_time(),
        datetime::date_bin(),
        datetime::date_part(),
        datetime::date_trunc(),
        datetime::from_unixtime(),
        datetime::make_date(),
        datetime::now(&settings),
        datetime::to_char(),
        datetime::to_date(),
        datetime::to_local_time(),
        datetime::to_timestamp(&settings),
        datetime::to_timestamp_micros(&settings),
        datetime::to_timestamp_millis(&settings),
        datetime::to_timestamp_nanos(&settings),
        datetime::to_timestamp_seconds(&settings),
        datetime::to_unixtime(),
        timezone(),
        // Choices.
        cast_value(),
        core::coalesce(),
        core::greatest(),
        core::least(),
        core::nullif(),
        core::nvl(),
        core::nvl2(),
        core::arrow_typeof(),
        // Parts of maps and lists.
        core::get_field(),
        functions_nested::map_extract::map_extract_udf(),
        functions_nested::map_keys::map_keys_udf(),
        functions_nested::map_values::map_values_udf(),
        functions_nested::extract::array_element_udf(),
        functions_nested::length::array_length_udf(),
        functions_nested::array_has::array_has_udf(),
        functions_nested::string::array_to_string_udf(),
        functions_nested::cardinality::cardinality_udf(),
        // Others.
        core::named_struct(),
        datetime::make_time(),
        regex::regexp_instr(),
    ];
    all.into_iter().map(quick).collect()
}

/// Functions of many values.
///
/// By the names of the gate's list ([`AGGREGATES`]), with ours in the place of the library's where there is one.
pub fn aggregates() -> Vec<Arc<AggregateUDF>> {
    let all = datafusion_functions_aggregate::all_default_aggregate_functions();
    let mut offered = offered(all, AGGREGATES, |function| function.name().to_owned());
    for function in &mut offered {
        match function.name() {
            "percentile_cont" => *function = Arc::new(percentile_cont()),
            "string_agg" | "array_agg" => {
                *function = Arc::new(OrderedLists::of((**function).clone()));
            }
            _ => {
                if let Some(with_groups) = with_groups(function) {
                    *function = Arc::new(with_groups);
                }
            }
        }
    }
    offered
}

/// Functions of rows around a row.
/// By the names of [`WINDOWS`]. An aggregate with `OVER` is found among the aggregates.
pub fn windows() -> Vec<Arc<WindowUDF>> {
    let all = datafusion_functions_window::all_default_window_functions();
    offered(all, WINDOWS, |function| function.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::ALIASES;

    #[test]
    fn each_name_is_a_function() {
        let missing = |names: &[String], list: &[&'static str]| -> Vec<&'static str> {
            list.iter().copied().filter(|name| !names.iter().any(|other| other == name)).collect()
        };
        let names: Vec<String> = aggregates().iter().map(|f| f.name().to_owned()).collect();
        assert_eq!(missing(&names, AGGREGATES), Vec::<&str>::new());
        // `every` is written as `bool_and` before functions are looked up.
        for function in aggregates() {
            for alias in function.aliases() {
                assert!(ALIASES.contains(&&**alias), "{alias} of {}", function.name());
            }
        }
        let names: Vec<String> = windows().iter().map(|f| f.name().to_owned()).collect();
        assert_eq!(missing(&names, WINDOWS), Vec::<&str>::new());
    }
}
