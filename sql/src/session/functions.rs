//! The functions that statements may call: a list, so that a new version of the library adds none.
//!
//! Left out: whatever makes much of little (`repeat`, `lpad`, `range`, arrays), tells of the machine (`version`,
//! `random`, `uuid`), or belongs to other tables.

use std::sync::Arc;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};

use super::calendar::quick;

const SCALARS: &[&str] = &[
    // Numbers.
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "cot",
    "degrees",
    "exp",
    "factorial",
    "floor",
    "gcd",
    "isnan",
    "iszero",
    "lcm",
    "ln",
    "log",
    "log10",
    "log2",
    "nanvl",
    "pi",
    "power",
    "radians",
    "round",
    "signum",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    // Texts.
    "ascii",
    "bit_length",
    "btrim",
    "character_length",
    "chr",
    "concat",
    "concat_ws",
    "contains",
    "ends_with",
    "find_in_set",
    "initcap",
    "left",
    "levenshtein",
    "lower",
    "ltrim",
    "octet_length",
    "overlay",
    "regexp_count",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
    "replace",
    "reverse",
    "right",
    "rtrim",
    "split_part",
    "starts_with",
    "strpos",
    "substr",
    "substr_index",
    "to_hex",
    "translate",
    "upper",
    // Times.
    "current_date",
    "current_time",
    "date_bin",
    "date_part",
    "date_trunc",
    "from_unixtime",
    "make_date",
    "now",
    "to_char",
    "to_date",
    "to_local_time",
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
    "to_unixtime",
    // Choices.
    "coalesce",
    "greatest",
    "least",
    "nullif",
    "nvl",
    "nvl2",
    "arrow_typeof",
    // Parts of maps and lists.
    "get_field",
    "map_extract",
    "map_keys",
    "map_values",
    "array_element",
    "array_length",
    "array_has",
    "array_to_string",
    "cardinality",
    // Others.
    "named_struct",
    "make_time",
    "regexp_instr",
];

const AGGREGATES: &[&str] = &[
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "median",
    "stddev",
    "stddev_pop",
    "var",
    "var_pop",
    "corr",
    "covar_pop",
    "covar_samp",
    "approx_distinct",
    "approx_median",
    "approx_percentile_cont",
    "approx_percentile_cont_with_weight",
    "percentile_cont",
    "array_agg",
    "string_agg",
    "bool_and",
    "bool_or",
    "bit_and",
    "bit_or",
    "bit_xor",
    "first_value",
    "last_value",
    "nth_value",
    "grouping",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
];

const WINDOWS: &[&str] = &[
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "nth_value",
];

fn offered<T>(all: Vec<Arc<T>>, names: &[&str], name: impl Fn(&T) -> String) -> Vec<Arc<T>> {
    all.into_iter().filter(|function| names.contains(&&*name(function))).collect()
}

/// Functions of single values.
pub fn scalars() -> Vec<Arc<ScalarUDF>> {
    let mut all = datafusion::functions::all_default_functions();
    all.extend(datafusion::functions_nested::all_default_nested_functions());
    let all = offered(all, SCALARS, |function| function.name().to_owned());
    all.into_iter().map(quick).collect()
}

/// Functions of many values.
pub fn aggregates() -> Vec<Arc<AggregateUDF>> {
    let all = datafusion::functions_aggregate::all_default_aggregate_functions();
    offered(all, AGGREGATES, |function| function.name().to_owned())
}

/// Functions of rows around a row.
pub fn windows() -> Vec<Arc<WindowUDF>> {
    let all = datafusion::functions_window::all_default_window_functions();
    offered(all, WINDOWS, |function| function.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_a_function() {
        let names: Vec<String> = scalars().iter().map(|f| f.name().to_owned()).collect();
        let missing = |names: &[String], list: &[&'static str]| -> Vec<&'static str> {
            list.iter().copied().filter(|name| !names.iter().any(|other| other == name)).collect()
        };
        assert_eq!(missing(&names, SCALARS), Vec::<&str>::new());
        let names: Vec<String> = aggregates().iter().map(|f| f.name().to_owned()).collect();
        assert_eq!(missing(&names, AGGREGATES), Vec::<&str>::new());
        let names: Vec<String> = windows().iter().map(|f| f.name().to_owned()).collect();
        assert_eq!(missing(&names, WINDOWS), Vec::<&str>::new());
    }
}
