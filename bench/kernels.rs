//! How far the engine stays, reading rows, from loops over the same rows as arrays in memory.
//!
//! ```text
//! python3 bench/peers/queries.py …            makes rows.tsv and a data directory
//! taskset -c 0 cargo bench -p inlay-bench --bench kernels -- rows.tsv DATA_DIRECTORY
//! ```
//!
//! Both answer five questions about the most frequent event of the largest tenant; the answers are compared. The loops
//! read arrays of two to eight bytes a value, which were made before; the engine finds, unpacks and checks its blocks.

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![expect(clippy::print_stdout, reason = "a bench prints")]
#![expect(clippy::disallowed_methods, reason = "rows come from a file that is not of the engine")]

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    hint::black_box,
    io::{BufRead as _, BufReader},
    path::Path,
    time::Instant,
};

use inlay_engine::{
    Answer, Engine, Granularity, Metric, Namespace, Options, Query, TextFilter, Value,
};

const DAY_MS: i64 = 86_400_000;
/// Property that no rollup is about.
const FREE: &str = "country";
const NUMBER: &str = "latency_ms";
const ROUNDS: usize = 40;

/// The rows of one series as arrays.
struct Arrays {
    days: Vec<u16>,
    countries: Vec<u16>,
    users: Vec<u32>,
    numbers: Vec<f64>,
    /// Milliseconds since 1970 of the first day.
    start_ms: i64,
    day_count: usize,
    country_names: Vec<String>,
    user_count: usize,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [rows, directory] = &words[..] else {
        println!("kernels ROWS_FILE DATA_DIRECTORY");
        return;
    };
    let (tenant, event) = largest(Path::new(rows));
    let arrays = read(Path::new(rows), &tenant, &event);
    println!("{} rows of {event} of {tenant}, {} days", arrays.days.len(), arrays.day_count);
    let engine = Engine::open_directory(
        Path::new(directory),
        Options { background: false, ..Options::default() },
    )
    .unwrap();
    let country = fifth(&arrays);
    let end_ms = arrays.start_ms + arrays.day_count as i64 * DAY_MS;
    let query = |metric, by_day: bool, filtered: bool, group: bool| Query {
        tenant: Some(tenant.clone()),
        metric,
        number: Some(NUMBER.to_owned()),
        granularity: by_day.then_some(Granularity::Day),
        group_by: group.then(|| FREE.to_owned()),
        groups_max: 1_000,
        texts: filtered
            .then(|| TextFilter {
                name: FREE.to_owned(),
                any_of: vec![arrays.country_names[usize::from(country)].clone()],
            })
            .into_iter()
            .collect(),
        ..Query::count(Namespace(1), &event, arrays.start_ms..end_ms)
    };
    let compare = |name: &str, query: &Query, kernel: &dyn Fn() -> f64| {
        let ask = || engine.query_rows(query, &|| false).unwrap();
        let (loop_sum, loop_us) = fastest(kernel);
        let (engine_sum, engine_us) = fastest(&|| sum(&ask()));
        let is_equal = (loop_sum - engine_sum).abs() <= 1e-9 * loop_sum.abs();
        let verdict = if is_equal { "equal" } else { "DIFFERENT" };
        let times = engine_us / loop_us;
        println!("{name:24} {loop_us:9.1} µs {engine_us:9.1} µs {times:6.1} {verdict}");
    };
    compare("filtered count", &query(Metric::Count, false, true, false), &|| {
        arrays.countries.iter().filter(|code| **code == country).count() as f64
    });
    compare("count by group and day", &query(Metric::Count, true, false, true), &|| {
        let mut counts = vec![0u32; arrays.country_names.len() * arrays.day_count];
        for (day, code) in arrays.days.iter().zip(&arrays.countries) {
            counts[usize::from(*code) * arrays.day_count + usize::from(*day)] += 1;
        }
        counts.iter().map(|count| f64::from(*count)).sum()
    });
    compare("exact distinct", &query(Metric::Distinct, false, false, false), &|| {
        let mut bits = vec![0u64; arrays.user_count / 64 + 1];
        for user in &arrays.users {
            bits[*user as usize / 64] |= 1 << (user % 64);
        }
        bits.iter().map(|word| f64::from(word.count_ones())).sum()
    });
    compare("sum by day", &query(Metric::Sum, true, false, false), &|| {
        let mut sums = vec![0.0; arrays.day_count];
        for (day, number) in arrays.days.iter().zip(&arrays.numbers) {
            sums[usize::from(*day)] += number;
        }
        sums.iter().sum()
    });
    compare("p95 by day", &query(Metric::Percentile(95), true, false, false), &|| {
        let mut days = vec![Vec::new(); arrays.day_count];
        for (day, number) in arrays.days.iter().zip(&arrays.numbers) {
            days[usize::from(*day)].push(*number);
        }
        days.iter_mut().map(|numbers| percentile(numbers)).sum()
    });
}

/// The 95th percentile, interpolated between ranks.
fn percentile(numbers: &mut [f64]) -> f64 {
    let Some(last) = numbers.len().checked_sub(1) else { return 0.0 };
    let rank = 0.95 * last as f64;
    let (_, low, above) = numbers.select_nth_unstable_by(rank as usize, f64::total_cmp);
    let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(*low);
    *low + (high - *low) * rank.fract()
}

/// The answer, and the shortest time in microseconds.
fn fastest(of: &dyn Fn() -> f64) -> (f64, f64) {
    let mut best = f64::INFINITY;
    let mut answer = 0.0;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        answer = black_box(of());
        best = best.min(started.elapsed().as_nanos() as f64 / 1e3);
    }
    (answer, best)
}

fn sum(answer: &Answer) -> f64 {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    answer.values.iter().flatten().map(number).sum()
}

/// Lines as columns, without the header.
fn each_line(path: &Path, mut visit: impl FnMut(&HashMap<String, usize>, &[&str])) {
    let mut lines = BufReader::new(File::open(path).unwrap()).lines();
    let header = lines.next().unwrap().unwrap();
    let columns = header.split('\t').zip(0..).map(|(name, at)| (name.to_owned(), at)).collect();
    for line in lines {
        let line = line.unwrap();
        let values: Vec<&str> = line.split('\t').collect();
        visit(&columns, &values);
    }
}

/// The tenant with most rows, and his most frequent event.
fn largest(path: &Path) -> (String, String) {
    let mut counts: HashMap<(String, String), u64> = HashMap::new();
    each_line(path, |_, values| {
        *counts.entry((values[0].to_owned(), values[1].to_owned())).or_default() += 1;
    });
    counts.into_iter().max_by_key(|(_, count)| *count).unwrap().0
}

fn read(path: &Path, tenant: &str, event: &str) -> Arrays {
    let (mut times, mut countries, mut users, mut numbers) = (vec![], vec![], vec![], vec![]);
    let (mut country_codes, mut user_codes) = (HashMap::new(), HashMap::new());
    let mut country_names = Vec::new();
    let mut ids = HashSet::new();
    each_line(path, |columns, values| {
        // Duplicates are not stored.
        let is_asked = values[0] == tenant && values[1] == event;
        if !is_asked || !ids.insert(values[columns["event_id"]].to_owned()) {
            return;
        }
        times.push(values[columns["time_ms"]].parse::<i64>().unwrap());
        let next = country_codes.len() as u16;
        let country = values[columns[FREE]];
        countries.push(*country_codes.entry(country.to_owned()).or_insert_with(|| {
            country_names.push(country.to_owned());
            next
        }));
        let next = user_codes.len() as u32;
        users.push(*user_codes.entry(values[columns["user_id"]].to_owned()).or_insert(next));
        numbers.push(values[columns[NUMBER]].parse().unwrap_or(0.0));
    });
    let first_day = times.iter().min().unwrap().div_euclid(DAY_MS);
    let last_day = times.iter().max().unwrap().div_euclid(DAY_MS);
    let day = |time: &i64| (time.div_euclid(DAY_MS) - first_day) as u16;
    // In the order of time, as the engine has them.
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|&row| times[row]);
    Arrays {
        days: order.iter().map(|&row| day(&times[row])).collect(),
        countries: order.iter().map(|&row| countries[row]).collect(),
        users: order.iter().map(|&row| users[row]).collect(),
        numbers: order.iter().map(|&row| numbers[row]).collect(),
        start_ms: first_day * DAY_MS,
        day_count: (last_day - first_day + 1) as usize,
        country_names,
        user_count: user_codes.len(),
    }
}

/// The country with the fifth most rows.
fn fifth(arrays: &Arrays) -> u16 {
    let mut counts: Vec<(usize, u16)> =
        (0..).map(|code| (0, code)).take(arrays.country_names.len()).collect();
    arrays.countries.iter().for_each(|code| counts[usize::from(*code)].0 += 1);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts[4.min(counts.len() - 1)].1
}
