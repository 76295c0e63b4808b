//! `datetime`: dates, times, durations and fixed offsets.
//!
//! A local time is one of UTC: there is no other zone than a fixed offset.

use super::numbers::{c_int, half_even, integer, number, small};
use super::{PyError, PyResult, class, format, raise, tuple, type_error, unsupported, value_error};
use crate::{Data, Name, Num};
use regex::RegexBuilder;
use std::cmp::Ordering;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// Days of a duration at most.
const MAX_DAYS: i64 = 999_999_999;
/// The day 1970-01-01, where 0001-01-01 is day 1.
const EPOCH: i64 = 719_163;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A value of the module `datetime`. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Days, where 0001-01-01 is day 1.
    Date(i64),
    /// Microseconds since the beginning of day 0 on its own clock, and the offset of that from UTC.
    DateTime(i64, Option<i64>),
    /// Time of a day.
    Time(i64),
    /// Duration.
    Delta(i128),
    /// Offset from UTC.
    Zone(i64),
}
use Moment::{Date, DateTime, Delta, Time, Zone};

impl Moment {
    /// The kind of a value: its class, and whether it has an offset from UTC. Two kinds have no
    /// order.
    pub(super) fn kind(self) -> (&'static str, bool) {
        (self.class(), matches!(self, DateTime(_, Some(_))))
    }

    pub(super) fn class(self) -> &'static str {
        match self {
            Date(_) => "date",
            DateTime(..) => "datetime",
            Time(_) => "time",
            Delta(_) => "timedelta",
            Zone(_) => "timezone",
        }
    }
}

/// Reads the payload of a tag of this module.
pub(super) fn moment(tag: &str, payload: &Data) -> Option<Moment> {
    let whole = |d: &Data| match d {
        Data::Num(n) => n.to_i64(),
        _ => None,
    };
    Some(match (tag, payload) {
        ("date", d) => Date(whole(d)?),
        ("datetime", Data::List(parts)) => match &parts[..] {
            [at, Data::Null] => DateTime(whole(at)?, None),
            [at, offset] => DateTime(whole(at)?, Some(whole(offset)?)),
            _ => return None,
        },
        ("time", d) => Time(whole(d)?),
        ("timedelta", Data::Num(n)) => Delta(n.to_string().parse().ok()?),
        ("timezone", d) => Zone(whole(d)?),
        _ => return None,
    })
}

/// The value as data.
pub(super) fn data(m: Moment) -> Data {
    let num = |n: i64| Data::Num(Num::from(n));
    let payload = match m {
        Date(n) | Time(n) | Zone(n) => num(n),
        DateTime(at, offset) => Data::list([num(at), offset.map_or(Data::Null, num)]),
        Delta(n) => Data::Num(n.to_string().parse().unwrap_or(Num::ZERO)),
    };
    Data::Tag(m.class().into(), payload.into())
}

fn of(d: &Data) -> Option<Moment> {
    match d {
        Data::Tag(tag, payload) => moment(tag, payload),
        _ => None,
    }
}

// ── the calendar ──

fn leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days before a year.
fn before(year: i64) -> i64 {
    let y = year - 1;
    y * 365 + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400)
}

fn day_number(year: i64, month: i64, day: i64) -> i64 {
    before(year) + (1..month).map(|m| days_in(year, m)).sum::<i64>() + day
}

/// The number of the day of an ISO text.
pub(super) fn day_of_iso(s: &str) -> Option<i64> {
    date_of(s)?.ok()
}

/// A day as an ISO text, if it is in the years 1 to 9999.
pub(super) fn iso_day(number: i64) -> Option<String> {
    if !(1..=day_number(9999, 12, 31)).contains(&number) {
        return None;
    }
    let (year, month, day) = civil(number);
    Some(format!("{year:04}-{month:02}-{day:02}"))
}

/// Year, month and day.
fn civil(number: i64) -> (i64, i64, i64) {
    let mut year = (number * 400).div_euclid(146_097) + 1;
    while before(year) >= number {
        year -= 1;
    }
    while before(year + 1) < number {
        year += 1;
    }
    let (mut rest, mut month) = (number - before(year), 1);
    while rest > days_in(year, month) {
        rest -= days_in(year, month);
        month += 1;
    }
    (year, month, rest)
}

fn day(year: i64, month: i64, day: i64) -> PyResult<i64> {
    if !(1..=9999).contains(&year) {
        return value_error(format!("year {year} is out of range"));
    }
    if !(1..=12).contains(&month) {
        return value_error("month must be in 1..12");
    }
    if !(1..=days_in(year, month)).contains(&day) {
        return value_error("day is out of range for month");
    }
    Ok(day_number(year, month, day))
}

fn clock(hour: i64, minute: i64, second: i64, micro: i64) -> PyResult<i64> {
    for (name, value, most) in
        [("hour", hour, 23), ("minute", minute, 59), ("second", second, 59), ("microsecond", micro, 999_999)]
    {
        if !(0..=most).contains(&value) {
            return value_error(format!("{name} must be in 0..{most}"));
        }
    }
    Ok(((hour * 60 + minute) * 60 + second) * SECOND + micro)
}

/// A point in time within the calendar.
fn within(at: i128, offset: Option<i64>) -> PyResult<Moment> {
    let (first, last) = (i128::from(DAY), i128::from(before(10_000) + 1) * i128::from(DAY));
    if at < first || at >= last {
        return raise("OverflowError", "date value out of range");
    }
    Ok(DateTime(i64::try_from(at).unwrap_or(0), offset))
}

fn delta(micros: i128) -> PyResult<Moment> {
    let days = micros.div_euclid(i128::from(DAY));
    if days.abs() > i128::from(MAX_DAYS) {
        return raise("OverflowError", format!("days={days}; must have magnitude <= 999999999"));
    }
    Ok(Delta(micros))
}

fn exact(n: i128) -> Num {
    n.to_string().parse().unwrap_or(Num::ZERO)
}

fn integral(n: &Num) -> PyResult<i128> {
    half_even(n)?
        .to_string()
        .parse()
        .map_err(|_| PyError::Raise("OverflowError", "Python int too large to convert to C int".into()))
}

// ── arguments ──

/// Arguments by the names of their parameters.
struct Given<'a>(Vec<(&'static str, Option<&'a Data>)>);

impl<'a> Given<'a> {
    fn read(
        name: &str,
        params: &[&'static str],
        args: &'a [Data],
        kw: &'a [(Name, Data)],
    ) -> PyResult<Given<'a>> {
        if args.len() > params.len() {
            return type_error(format!(
                "{name}() takes at most {} arguments ({} given)",
                params.len(),
                args.len()
            ));
        }
        if let Some((n, _)) = kw.iter().find(|(n, _)| !params.contains(&&**n)) {
            return type_error(format!("{name}() got an unexpected keyword argument '{n}'"));
        }
        let mut all = Vec::new();
        for (i, p) in params.iter().enumerate() {
            let named = kw.iter().find(|(n, _)| &**n == *p).map(|(_, d)| d);
            if args.get(i).is_some() && named.is_some() {
                return type_error(format!("argument for {name}() given by name ('{p}') and position"));
            }
            all.push((*p, args.get(i).or(named)));
        }
        Ok(Given(all))
    }

    fn get(&self, name: &str) -> Option<&'a Data> {
        self.0.iter().find(|(n, _)| *n == name).and_then(|(_, d)| *d)
    }

    fn whole(&self, name: &str, default: Option<i64>) -> PyResult<i64> {
        match (self.get(name), default) {
            (Some(d), _) => c_int(d),
            (None, Some(n)) => Ok(n),
            (None, None) => type_error(format!("function missing required argument '{name}'")),
        }
    }

    fn offset(&self, name: &str, default: Option<i64>) -> PyResult<Option<i64>> {
        match self.get(name) {
            None => Ok(default),
            Some(Data::Null) => Ok(None),
            Some(d) => match of(d) {
                Some(Zone(n)) => Ok(Some(n)),
                _ => type_error(format!(
                    "tzinfo argument must be None or of a tzinfo subclass, not type '{}'",
                    class(d)
                )),
            },
        }
    }
}

fn text<'a>(d: Option<&'a Data>, what: &str) -> PyResult<&'a str> {
    match d {
        Some(Data::Str(s)) => Ok(s),
        _ => type_error(format!("{what}: argument must be str")),
    }
}

const DATE_PARTS: [&str; 3] = ["year", "month", "day"];
const TIME_PARTS: [&str; 5] = ["hour", "minute", "second", "microsecond", "tzinfo"];
const ALL_PARTS: [&str; 8] = ["year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo"];

/// A function of the module, such as `datetime.fromisoformat`.
pub(super) fn call(name: &str, args: &[Data], kw: &[(Name, Data)]) -> PyResult {
    let made = match name {
        "date" => {
            let g = Given::read(name, &DATE_PARTS, args, kw)?;
            Date(day(g.whole("year", None)?, g.whole("month", None)?, g.whole("day", None)?)?)
        }
        "datetime" => {
            let g = Given::read(name, &ALL_PARTS, args, kw)?;
            let days = day(g.whole("year", None)?, g.whole("month", None)?, g.whole("day", None)?)?;
            let of_day = clock(
                g.whole("hour", Some(0))?,
                g.whole("minute", Some(0))?,
                g.whole("second", Some(0))?,
                g.whole("microsecond", Some(0))?,
            )?;
            DateTime(days * DAY + of_day, g.offset("tzinfo", None)?)
        }
        "time" => {
            let g = Given::read(name, &TIME_PARTS, args, kw)?;
            if g.offset("tzinfo", None)?.is_some() {
                return unsupported("a time of a day with an offset");
            }
            Time(clock(
                g.whole("hour", Some(0))?,
                g.whole("minute", Some(0))?,
                g.whole("second", Some(0))?,
                g.whole("microsecond", Some(0))?,
            )?)
        }
        "timedelta" => {
            const UNITS: [(&str, i64); 7] = [
                ("days", DAY),
                ("seconds", SECOND),
                ("microseconds", 1),
                ("milliseconds", 1_000),
                ("minutes", 60 * SECOND),
                ("hours", 3_600 * SECOND),
                ("weeks", 7 * DAY),
            ];
            let g = Given::read(name, &UNITS.map(|(n, _)| n), args, kw)?;
            let mut total = Num::ZERO;
            for (unit, micros) in UNITS {
                let Some(d) = g.get(unit) else { continue };
                let Some(n) = number(d) else {
                    return type_error(format!(
                        "unsupported type for timedelta {unit} component: {}",
                        class(d)
                    ));
                };
                total = total.add(&n.mul(&Num::from(micros))?)?;
            }
            delta(integral(&total)?)?
        }
        "timezone" => {
            let g = Given::read(name, &["offset", "name"], args, kw)?;
            match g.get("offset").and_then(of) {
                Some(Delta(n)) if n.abs() < i128::from(DAY) => Zone(i64::try_from(n).unwrap_or(0)),
                Some(Delta(_)) => {
                    return value_error(
                        "offset must be a timedelta strictly between -timedelta(hours=24) and timedelta(hours=24).",
                    );
                }
                _ => return type_error("timezone() argument 1 must be datetime.timedelta"),
            }
        }
        "datetime.fromisoformat" | "date.fromisoformat" | "time.fromisoformat" => {
            let s = text(args.first(), "fromisoformat")?;
            let kind = name.split('.').next().unwrap_or("");
            match from_iso(s, kind) {
                Some(m) => m?,
                None => {
                    return value_error(format!("Invalid isoformat string: {}", format::repr(&Data::str(s))));
                }
            }
        }
        "datetime.strptime" => {
            let [s, pattern] = args else {
                return type_error(format!("strptime expected 2 arguments, got {}", args.len()));
            };
            strptime(text(Some(s), "strptime")?, text(Some(pattern), "strptime")?)?
        }
        "datetime.combine" => {
            let g = Given::read("combine", &["date", "time", "tzinfo"], args, kw)?;
            match (g.get("date").and_then(of), g.get("time").and_then(of)) {
                (Some(Date(n)), Some(Time(t))) => DateTime(n * DAY + t, g.offset("tzinfo", None)?),
                (Some(DateTime(at, _)), Some(Time(t))) => {
                    DateTime(at.div_euclid(DAY) * DAY + t, g.offset("tzinfo", None)?)
                }
                _ => return type_error("combine() takes a datetime.date and a datetime.time"),
            }
        }
        "datetime.fromtimestamp" | "datetime.utcfromtimestamp" | "date.fromtimestamp" => {
            let g = Given::read("fromtimestamp", &["timestamp", "tz"], args, kw)?;
            let Some(n) = g.get("timestamp").and_then(number) else {
                return type_error("a timestamp must be a number");
            };
            let offset = g.offset("tz", None)?;
            let micros = integral(&n.mul(&Num::from(SECOND))?)?;
            let local = micros + i128::from(EPOCH) * i128::from(DAY) + i128::from(offset.unwrap_or(0));
            match (name, within(local, offset)?) {
                ("date.fromtimestamp", DateTime(at, _)) => Date(at.div_euclid(DAY)),
                (_, m) => m,
            }
        }
        "date.fromordinal" | "datetime.fromordinal" => {
            let n = args.first().map_or(Ok(0), small)?;
            if n < 1 || n > before(10_000) {
                return value_error("ordinal must be >= 1");
            }
            if name.starts_with("datetime") { DateTime(n * DAY, None) } else { Date(n) }
        }
        _ => return unsupported(format!("`datetime.{name}`")),
    };
    Ok(data(made))
}

/// The current time, from the seconds since 1970 that the run was told: `datetime`, `date` or `utc`.
pub(super) fn now(kind: &str, seconds: &Data) -> Data {
    let at = number(seconds).and_then(|n| n.to_i64()).unwrap_or(0);
    let at = at.clamp(-62_135_596_800, 253_402_300_799) * SECOND + EPOCH * DAY;
    data(match kind {
        "date" => Date(at.div_euclid(DAY)),
        "utc" => DateTime(at, Some(0)),
        _ => DateTime(at, None),
    })
}

// ── parts and methods ──

fn parts(m: Moment) -> (i64, i64, i64, i64) {
    let (days, of_day) = match m {
        Date(n) => (n, 0),
        DateTime(at, _) => (at.div_euclid(DAY), at.rem_euclid(DAY)),
        Time(t) => (1, t),
        Delta(_) | Zone(_) => (1, 0),
    };
    let (y, mo, d) = civil(days);
    (y, mo, d, of_day)
}

/// An attribute.
pub(super) fn attribute(m: Moment, name: &str) -> Option<Data> {
    let (year, month, day, of_day) = parts(m);
    let num = |n: i64| Some(Data::Num(Num::from(n)));
    let is_day = matches!(m, Date(_) | DateTime(..));
    let is_time = matches!(m, Time(_) | DateTime(..));
    match (name, m) {
        ("year", _) if is_day => num(year),
        ("month", _) if is_day => num(month),
        ("day", _) if is_day => num(day),
        ("hour", _) if is_time => num(of_day / (3_600 * SECOND)),
        ("minute", _) if is_time => num(of_day / (60 * SECOND) % 60),
        ("second", _) if is_time => num(of_day / SECOND % 60),
        ("microsecond", _) if is_time => num(of_day % SECOND),
        ("tzinfo", DateTime(_, offset)) => Some(offset.map_or(Data::Null, |o| data(Zone(o)))),
        ("tzinfo", Time(_)) => Some(Data::Null),
        ("days", Delta(n)) => Some(Data::Num(exact(n.div_euclid(i128::from(DAY))))),
        ("seconds", Delta(n)) => Some(Data::Num(exact(n.rem_euclid(i128::from(DAY)) / i128::from(SECOND)))),
        ("microseconds", Delta(n)) => Some(Data::Num(exact(n.rem_euclid(i128::from(SECOND))))),
        _ => None,
    }
}

/// Returns true if a value has the method.
pub(super) fn has(m: Moment, name: &str) -> bool {
    let of_day = ["isoformat", "strftime", "replace", "weekday", "isoweekday", "isocalendar", "toordinal"];
    let of_both = ["date", "time", "timestamp", "astimezone", "utcoffset", "tzname"];
    match m {
        Date(_) => of_day.contains(&name),
        DateTime(..) => of_day.contains(&name) || of_both.contains(&name),
        Time(_) => matches!(name, "isoformat" | "strftime" | "replace"),
        Delta(_) => name == "total_seconds",
        Zone(_) => matches!(name, "utcoffset" | "tzname"),
    }
}

/// A method without arguments of a value that has it.
pub(super) fn method_of(d: &Data, name: &str) -> PyResult {
    match of(d) {
        Some(m) => method(m, name, &[], &[]),
        None => Err(PyError::Unknown),
    }
}

/// A method.
pub(super) fn method(m: Moment, name: &str, args: &[Data], kw: &[(Name, Data)]) -> PyResult {
    let (year, month, day_of, of_day) = parts(m);
    let num = |n: i64| Data::Num(Num::from(n));
    let weekday = |n: i64| (n + 6).rem_euclid(7);
    let day_of_value = |m: Moment| match m {
        Date(n) => n,
        DateTime(at, _) => at.div_euclid(DAY),
        _ => 1,
    };
    let none = |args: &[Data]| match args {
        [] if kw.is_empty() => Ok(()),
        _ => type_error(format!("{name}() takes no arguments ({} given)", args.len() + kw.len())),
    };
    match (name, m) {
        ("isoformat", Date(_)) => {
            none(args)?;
            Ok(Data::str(iso(m, 'T', "auto")?))
        }
        ("isoformat", DateTime(..) | Time(_)) => {
            let names: &[&'static str] =
                if matches!(m, Time(_)) { &["timespec"] } else { &["sep", "timespec"] };
            let g = Given::read(name, names, args, kw)?;
            let sep = match g.get("sep") {
                Some(d) => text(Some(d), "isoformat")?,
                None => "T",
            };
            let timespec = match g.get("timespec") {
                Some(d) => text(Some(d), "isoformat")?,
                None => "auto",
            };
            let mut chars = sep.chars();
            let (Some(sep), None) = (chars.next(), chars.next()) else {
                return type_error("isoformat() argument 1 must be a unicode character");
            };
            Ok(Data::str(iso(m, sep, timespec)?))
        }
        ("strftime", Date(_) | DateTime(..) | Time(_)) => {
            let g = Given::read(name, &["format"], args, kw)?;
            Ok(Data::str(strftime(m, text(g.get("format"), "strftime")?)?))
        }
        ("replace", Date(_)) => {
            let g = Given::read(name, &DATE_PARTS, args, kw)?;
            let n = day(
                g.whole("year", Some(year))?,
                g.whole("month", Some(month))?,
                g.whole("day", Some(day_of))?,
            )?;
            Ok(data(Date(n)))
        }
        ("replace", DateTime(..) | Time(_)) => {
            let names: &[&'static str] = if matches!(m, Time(_)) { &TIME_PARTS } else { &ALL_PARTS };
            let g = Given::read(name, names, args, kw)?;
            let n = day(
                g.whole("year", Some(year))?,
                g.whole("month", Some(month))?,
                g.whole("day", Some(day_of))?,
            )?;
            let t = clock(
                g.whole("hour", Some(of_day / (3_600 * SECOND)))?,
                g.whole("minute", Some(of_day / (60 * SECOND) % 60))?,
                g.whole("second", Some(of_day / SECOND % 60))?,
                g.whole("microsecond", Some(of_day % SECOND))?,
            )?;
            let before = if let DateTime(_, offset) = m { offset } else { None };
            let offset = g.offset("tzinfo", before)?;
            match m {
                Time(_) if offset.is_some() => unsupported("a time of a day with an offset"),
                Time(_) => Ok(data(Time(t))),
                _ => Ok(data(DateTime(n * DAY + t, offset))),
            }
        }
        ("weekday", Date(_) | DateTime(..)) => {
            none(args)?;
            Ok(num(weekday(day_of_value(m))))
        }
        ("isoweekday", Date(_) | DateTime(..)) => {
            none(args)?;
            Ok(num(weekday(day_of_value(m)) + 1))
        }
        ("toordinal", Date(_) | DateTime(..)) => {
            none(args)?;
            Ok(num(day_of_value(m)))
        }
        ("isocalendar", Date(_) | DateTime(..)) => {
            none(args)?;
            let (y, week, day) = iso_week(day_of_value(m));
            Ok(tuple(vec![num(y), num(week), num(day)]))
        }
        ("date", DateTime(at, _)) => {
            none(args)?;
            Ok(data(Date(at.div_euclid(DAY))))
        }
        ("time", DateTime(at, _)) => {
            none(args)?;
            Ok(data(Time(at.rem_euclid(DAY))))
        }
        ("timestamp", DateTime(at, offset)) => {
            none(args)?;
            let micros = Num::from(at - EPOCH * DAY - offset.unwrap_or(0));
            Ok(Data::Num(micros.div(&Num::from(SECOND))?))
        }
        ("astimezone", DateTime(at, offset)) => {
            let to = Given::read(name, &["tz"], args, kw)?.offset("tz", Some(0))?.unwrap_or(0);
            let utc = i128::from(at) - i128::from(offset.unwrap_or(0));
            Ok(data(within(utc + i128::from(to), Some(to))?))
        }
        ("utcoffset", DateTime(_, offset)) => {
            none(args)?;
            Ok(offset.map_or(Data::Null, |o| data(Delta(i128::from(o)))))
        }
        ("utcoffset", Zone(offset)) => Ok(data(Delta(i128::from(offset)))),
        ("tzname", DateTime(_, offset)) => {
            none(args)?;
            Ok(offset.map_or(Data::Null, |o| Data::str(zone_name(o))))
        }
        ("tzname", Zone(offset)) => Ok(Data::str(zone_name(offset))),
        ("total_seconds", Delta(n)) => {
            none(args)?;
            Ok(Data::Num(exact(n).div(&Num::from(SECOND))?))
        }
        _ => raise("AttributeError", format!("'{}' object has no attribute '{name}'", m.class())),
    }
}

fn iso_week(number: i64) -> (i64, i64, i64) {
    let weekday = (number + 6).rem_euclid(7);
    // The week belongs to the year of its Thursday.
    let thursday = number - weekday + 3;
    let (year, ..) = civil(thursday);
    ((year), (thursday - day_number(year, 1, 1)) / 7 + 1, weekday + 1)
}

// ── texts ──

/// `+02:00`
fn offset_text(offset: i64) -> String {
    let (sign, n) = if offset < 0 { ('-', -offset) } else { ('+', offset) };
    let mut out = format!("{sign}{:02}:{:02}", n / (3_600 * SECOND), n / (60 * SECOND) % 60);
    if n % (60 * SECOND) != 0 {
        out += &format!(":{:02}", n / SECOND % 60);
        if n % SECOND != 0 {
            out += &format!(".{:06}", n % SECOND);
        }
    }
    out
}

fn zone_name(offset: i64) -> String {
    if offset == 0 { "UTC".into() } else { format!("UTC{}", offset_text(offset)) }
}

fn iso(m: Moment, sep: char, timespec: &str) -> PyResult<String> {
    let (y, mo, d, t) = parts(m);
    let date = format!("{y:04}-{mo:02}-{d:02}");
    let (h, mi, s, us) = (t / (3_600 * SECOND), t / (60 * SECOND) % 60, t / SECOND % 60, t % SECOND);
    let clock = match timespec {
        "auto" if us == 0 => format!("{h:02}:{mi:02}:{s:02}"),
        "auto" | "microseconds" => format!("{h:02}:{mi:02}:{s:02}.{us:06}"),
        "milliseconds" => format!("{h:02}:{mi:02}:{s:02}.{:03}", us / 1000),
        "seconds" => format!("{h:02}:{mi:02}:{s:02}"),
        "minutes" => format!("{h:02}:{mi:02}"),
        "hours" => format!("{h:02}"),
        _ => return value_error("Unknown timespec value"),
    };
    Ok(match m {
        Date(_) => date,
        Time(_) => clock,
        DateTime(_, offset) => {
            format!("{date}{sep}{clock}{}", offset.map_or_else(String::new, offset_text))
        }
        Delta(_) | Zone(_) => String::new(),
    })
}

/// `str(x)`.
pub(super) fn str(m: Moment) -> String {
    match m {
        Date(_) | DateTime(..) | Time(_) => iso(m, ' ', "auto").unwrap_or_default(),
        Zone(offset) => zone_name(offset),
        Delta(n) => {
            let (days, rest) = (n.div_euclid(i128::from(DAY)), n.rem_euclid(i128::from(DAY)) as i64);
            let plural = if days.abs() == 1 { "" } else { "s" };
            let days = if days == 0 { String::new() } else { format!("{days} day{plural}, ") };
            let micros = if rest % SECOND == 0 { String::new() } else { format!(".{:06}", rest % SECOND) };
            let (h, mi, s) = (rest / (3_600 * SECOND), rest / (60 * SECOND) % 60, rest / SECOND % 60);
            format!("{days}{h}:{mi:02}:{s:02}{micros}")
        }
    }
}

/// `repr(x)`.
pub(super) fn repr(m: Moment) -> String {
    let (y, mo, d, t) = parts(m);
    let (h, mi, s, us) = (t / (3_600 * SECOND), t / (60 * SECOND) % 60, t / SECOND % 60, t % SECOND);
    let clock = match (s, us) {
        (0, 0) => format!("{h}, {mi}"),
        (_, 0) => format!("{h}, {mi}, {s}"),
        _ => format!("{h}, {mi}, {s}, {us}"),
    };
    match m {
        Date(_) => format!("datetime.date({y}, {mo}, {d})"),
        Time(_) => format!("datetime.time({clock})"),
        DateTime(_, offset) => {
            let zone = offset.map_or_else(String::new, |o| format!(", tzinfo={}", repr(Zone(o))));
            format!("datetime.datetime({y}, {mo}, {d}, {clock}{zone})")
        }
        Zone(0) => "datetime.timezone.utc".into(),
        Zone(offset) => format!("datetime.timezone({})", repr(Delta(i128::from(offset)))),
        Delta(n) => {
            let (days, rest) = (n.div_euclid(i128::from(DAY)), n.rem_euclid(i128::from(DAY)) as i64);
            let mut parts = Vec::new();
            for (name, value) in [
                ("days", days),
                ("seconds", i128::from(rest / SECOND)),
                ("microseconds", i128::from(rest % SECOND)),
            ] {
                if value != 0 {
                    parts.push(format!("{name}={value}"));
                }
            }
            let all = if parts.is_empty() { "0".into() } else { parts.join(", ") };
            format!("datetime.timedelta({all})")
        }
    }
}

/// `x.strftime(format)`.
pub(super) fn strftime(m: Moment, pattern: &str) -> PyResult<String> {
    let m = if let Time(t) = m { DateTime(day_number(1900, 1, 1) * DAY + t, None) } else { m };
    let (y, mo, d, t) = parts(m);
    let number = match m {
        Date(n) => n,
        DateTime(at, _) => at.div_euclid(DAY),
        _ => return type_error("strftime needs a date or a time"),
    };
    let (h, mi, s, us) = (t / (3_600 * SECOND), t / (60 * SECOND) % 60, t / SECOND % 60, t % SECOND);
    let weekday = (number + 6).rem_euclid(7);
    let month = MONTHS[(mo - 1).rem_euclid(12) as usize];
    let of_week = WEEKDAYS[weekday as usize];
    let hour12 = if h % 12 == 0 { 12 } else { h % 12 };
    let of_year = number - day_number(y, 1, 1) + 1;
    let offset = if let DateTime(_, offset) = m { offset } else { None };
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut code = chars.next();
        // `%-d` leaves out the leading zero.
        let short = code == Some('-');
        if short {
            code = chars.next();
        }
        let two = |n: i64| if short { n.to_string() } else { format!("{n:02}") };
        let text = match code {
            Some('Y') => y.to_string(),
            Some('y') => two(y % 100),
            Some('m') => two(mo),
            Some('d') => two(d),
            Some('e') => format!("{d:2}"),
            Some('H') => two(h),
            Some('I') => two(hour12),
            Some('M') => two(mi),
            Some('S') => two(s),
            Some('f') => format!("{us:06}"),
            Some('j') => {
                if short {
                    of_year.to_string()
                } else {
                    format!("{of_year:03}")
                }
            }
            Some('B') => month.into(),
            Some('b' | 'h') => month[..3].into(),
            Some('A') => of_week.into(),
            Some('a') => of_week[..3].into(),
            Some('p') => if h < 12 { "AM" } else { "PM" }.into(),
            Some('w') => ((weekday + 1) % 7).to_string(),
            Some('u') => (weekday + 1).to_string(),
            Some('U') => two((of_year + 6 - (weekday + 1) % 7) / 7),
            Some('W') => two((of_year + 6 - weekday) / 7),
            Some('V') => two(iso_week(number).1),
            Some('G') => iso_week(number).0.to_string(),
            Some('F') => format!("{y}-{mo:02}-{d:02}"),
            Some('T' | 'X') => format!("{h:02}:{mi:02}:{s:02}"),
            Some('R') => format!("{h:02}:{mi:02}"),
            Some('D' | 'x') => format!("{mo:02}/{d:02}/{:02}", y % 100),
            Some('c') => format!("{} {} {d:2} {h:02}:{mi:02}:{s:02} {y}", &of_week[..3], &month[..3]),
            Some('z') => offset.map_or_else(String::new, |o| offset_text(o).replace(':', "")),
            Some('Z') => offset.map_or_else(String::new, zone_name),
            Some('n') => "\n".into(),
            Some('t') => "\t".into(),
            Some('%') => "%".into(),
            other => {
                return unsupported(format!(
                    "`%{}` in `strftime`",
                    other.map_or(String::new(), String::from)
                ));
            }
        };
        out += &text;
    }
    Ok(out)
}

/// The value that `datetime.strptime` reads.
fn strptime(s: &str, pattern: &str) -> PyResult<Moment> {
    let mut regex = String::from(r"\A(?:");
    let mut codes = Vec::new();
    let mut chars = pattern.chars().peekable();
    let names = |all: &[&str], short: bool| {
        all.iter().map(|n| if short { &n[..3] } else { *n }).collect::<Vec<_>>().join("|")
    };
    while let Some(c) = chars.next() {
        if c.is_whitespace() {
            while chars.peek().is_some_and(|c| c.is_whitespace()) {
                chars.next();
            }
            regex += r"\s+";
            continue;
        }
        if c != '%' {
            regex += &regex::escape(&c.to_string());
            continue;
        }
        let Some(code) = chars.next() else {
            return value_error(format!("stray % in format '{pattern}'"));
        };
        let part = match code {
            'Y' => r"\d{4}".into(),
            'm' => "1[0-2]|0[1-9]|[1-9]".into(),
            'd' => r"3[01]|[12]\d|0[1-9]|[1-9]| [1-9]".into(),
            'H' => r"2[0-3]|[01]\d|\d".into(),
            'I' => "1[0-2]|0[1-9]|[1-9]".into(),
            'M' => r"[0-5]\d|\d".into(),
            'S' => r"6[01]|[0-5]\d|\d".into(),
            'f' => r"\d{1,6}".into(),
            'y' => r"\d{2}".into(),
            'j' => r"36[0-6]|3[0-5]\d|[12]\d\d|0[1-9]\d|00[1-9]|[1-9]\d|0[1-9]|[1-9]".into(),
            'B' => names(&MONTHS, false),
            'b' => names(&MONTHS, true),
            'A' => names(&WEEKDAYS, false),
            'a' => names(&WEEKDAYS, true),
            'p' => "am|pm".into(),
            'z' => r"[+-]\d\d:?[0-5]\d(?::?[0-5]\d(?:\.\d{1,6})?)?|Z".into(),
            '%' => {
                regex.push('%');
                continue;
            }
            c if c.is_ascii_alphabetic() => return unsupported(format!("`%{c}` in `strptime`")),
            c => return value_error(format!("'{c}' is a bad directive in format '{pattern}'")),
        };
        regex += &format!("({part})");
        codes.push(code);
    }
    regex.push(')');
    let Ok(regex) = RegexBuilder::new(&regex).case_insensitive(true).build() else {
        return unsupported(format!("the format `{pattern}`"));
    };
    let shown = format::repr(&Data::str(s));
    let Some(found) = regex.captures(s) else {
        return value_error(format!("time data {shown} does not match format '{pattern}'"));
    };
    let end = found.get(0).map_or(0, |m| m.end());
    if end < s.len() {
        return value_error(format!("unconverted data remains: {}", &s[end..]));
    }
    let (mut year, mut month, mut day_of, mut of_year) = (None, None, None, None);
    let (mut hour, mut hour12, mut minute, mut second, mut micro) = (0, None, 0, 0, 0);
    let (mut afternoon, mut offset) = (false, None);
    for (i, code) in codes.iter().enumerate() {
        let part = found.get(i + 1).map_or("", |m| m.as_str());
        let n = || part.trim().parse::<i64>().unwrap_or(0);
        let position = |all: &[&str], short: bool| {
            all.iter()
                .position(|a| (if short { &a[..3] } else { *a }).eq_ignore_ascii_case(part))
                .map_or(1, |p| p as i64 + 1)
        };
        match code {
            'Y' => year = Some(n()),
            'y' => year = Some(if n() <= 68 { 2000 + n() } else { 1900 + n() }),
            'm' => month = Some(n()),
            'B' => month = Some(position(&MONTHS, false)),
            'b' => month = Some(position(&MONTHS, true)),
            'd' => day_of = Some(n()),
            'j' => of_year = Some(n()),
            'H' => hour = n(),
            'I' => hour12 = Some(n()),
            'M' => minute = n(),
            'S' => second = n(),
            'f' => micro = format!("{part:0<6}").parse().unwrap_or(0),
            'p' => afternoon = part.eq_ignore_ascii_case("pm"),
            'z' => offset = Some(zone_of(part).unwrap_or(0)),
            _ => {}
        }
    }
    if let Some(h) = hour12 {
        hour = h % 12 + if afternoon { 12 } else { 0 };
    }
    let year_or = year.unwrap_or(1900);
    let number = match (month, day_of, of_year) {
        (None, None, Some(n)) => day(year_or, 1, 1)? + n - 1,
        (mo, d, _) => day(year_or, mo.unwrap_or(1), d.unwrap_or(1))?,
    };
    Ok(DateTime(number * DAY + clock(hour, minute, second, micro)?, offset))
}

/// `Z`, `+02:00`, `+0200` or `+02`, with seconds.
fn zone_of(s: &str) -> Option<i64> {
    if s == "Z" || s == "z" {
        return Some(0);
    }
    let sign = match s.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    Some(sign * clock_of(&s[1..])?)
}

/// `10`, `10:30`, `10:30:15.5` or the same without colons.
fn clock_of(s: &str) -> Option<i64> {
    let (whole, fraction) = match s.split_once(['.', ',']) {
        Some((w, f)) => (w, Some(f)),
        None => (s, None),
    };
    let digits: Vec<&str> = if whole.contains(':') {
        whole.split(':').collect()
    } else {
        if !whole.is_ascii() || !whole.len().is_multiple_of(2) {
            return None;
        }
        (0..whole.len()).step_by(2).map(|i| &whole[i..i + 2]).collect()
    };
    if digits.is_empty() || digits.len() > 3 || digits.iter().any(|d| d.len() != 2) {
        return None;
    }
    let mut parts = [0; 3];
    for (part, d) in parts.iter_mut().zip(&digits) {
        if !d.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *part = d.parse().ok()?;
    }
    let micro = match fraction {
        None => 0,
        Some(f) if digits.len() == 3 && !f.is_empty() && f.bytes().all(|b| b.is_ascii_digit()) => {
            let six: String = f.chars().chain("000000".chars()).take(6).collect();
            six.parse().ok()?
        }
        Some(_) => return None,
    };
    clock(parts[0], parts[1], parts[2], micro).ok()
}

fn date_of(s: &str) -> Option<PyResult<i64>> {
    if !s.is_ascii() {
        return None;
    }
    let number = |s: &str| s.bytes().all(|b| b.is_ascii_digit()).then(|| s.parse::<i64>().ok())?;
    let bytes = s.as_bytes();
    let (y, m, d) = match bytes.len() {
        10 if bytes[4] == b'-' && bytes[7] == b'-' => (&s[..4], &s[5..7], &s[8..]),
        8 if bytes.iter().all(u8::is_ascii_digit) => (&s[..4], &s[4..6], &s[6..]),
        _ => return None,
    };
    Some(day(number(y)?, number(m)?, number(d)?))
}

/// The value of an ISO text; `None` if it is none.
fn from_iso(s: &str, kind: &str) -> Option<PyResult<Moment>> {
    if s.contains('W') {
        return Some(unsupported("a week in an ISO date"));
    }
    match kind {
        "date" => Some(date_of(s)?.map(Date)),
        "time" => {
            let s = s.strip_prefix('T').unwrap_or(s);
            if s.contains(['+', '-', 'Z']) {
                return Some(unsupported("a time of a day with an offset"));
            }
            Some(Ok(Time(clock_of(s)?)))
        }
        _ => {
            let length = if s.as_bytes().get(4) == Some(&b'-') { 10 } else { 8 };
            let (date, rest) = (s.get(..length)?, s.get(length..)?);
            let number = match date_of(date)? {
                Ok(n) => n,
                Err(e) => return Some(Err(e)),
            };
            let mut chars = rest.chars();
            if chars.next().is_none() {
                return Some(Ok(DateTime(number * DAY, None)));
            }
            let rest = chars.as_str();
            let at = rest.find(['+', '-', 'Z']);
            let (clock, zone) = match at {
                Some(at) => (&rest[..at], Some(zone_of(&rest[at..])?)),
                None => (rest, None),
            };
            Some(Ok(DateTime(number * DAY + clock_of(clock)?, zone)))
        }
    }
}

// ── comparison and arithmetic ──

fn utc(at: i64, offset: Option<i64>) -> i128 {
    i128::from(at) - i128::from(offset.unwrap_or(0))
}

pub(super) fn equal(a: Moment, b: Moment) -> bool {
    match (a, b) {
        (DateTime(x, p), DateTime(y, q)) => p.is_some() == q.is_some() && utc(x, p) == utc(y, q),
        _ => a == b,
    }
}

pub(super) fn compare(a: Moment, b: Moment, op: &str) -> PyResult<Ordering> {
    match (a, b) {
        (DateTime(_, p), DateTime(_, q)) if p.is_some() != q.is_some() => {
            type_error("can't compare offset-naive and offset-aware datetimes")
        }
        (DateTime(x, p), DateTime(y, q)) => Ok(utc(x, p).cmp(&utc(y, q))),
        (Date(x), Date(y)) | (Time(x), Time(y)) => Ok(x.cmp(&y)),
        (Delta(x), Delta(y)) => Ok(x.cmp(&y)),
        (Date(_), DateTime(..)) => type_error("can't compare datetime.datetime to datetime.date"),
        (DateTime(..), Date(_)) => type_error("can't compare datetime.datetime to datetime.date"),
        _ => type_error(format!(
            "'{op}' not supported between instances of 'datetime.{}' and 'datetime.{}'",
            a.class(),
            b.class()
        )),
    }
}

/// An operator with a value of this module on either side; `None` if it has none of these types.
pub(super) fn binary(op: &str, a: &Data, b: &Data) -> Option<PyResult> {
    let (x, y) = (of(a), of(b));
    let done = |m: PyResult<Moment>| Some(m.map(data));
    let exactly = |n: PyResult<i128>| done(n.and_then(delta));
    match (op, x, y) {
        ("add", Some(DateTime(at, offset)), Some(Delta(n)))
        | ("add", Some(Delta(n)), Some(DateTime(at, offset))) => done(within(i128::from(at) + n, offset)),
        ("sub", Some(DateTime(at, offset)), Some(Delta(n))) => done(within(i128::from(at) - n, offset)),
        ("add" | "sub", Some(Date(days)), Some(Delta(n))) | ("add", Some(Delta(n)), Some(Date(days))) => {
            let moved = n.div_euclid(i128::from(DAY));
            let moved = if op == "sub" { -moved } else { moved };
            let at = (i128::from(days) + moved) * i128::from(DAY);
            done(within(at, None).map(|m| if let DateTime(at, _) = m { Date(at / DAY) } else { m }))
        }
        ("sub", Some(DateTime(p, zp)), Some(DateTime(q, zq))) => {
            if zp.is_some() != zq.is_some() {
                return Some(type_error("can't subtract offset-naive and offset-aware datetimes"));
            }
            exactly(Ok(utc(p, zp) - utc(q, zq)))
        }
        ("sub", Some(Date(p)), Some(Date(q))) => exactly(Ok(i128::from(p - q) * i128::from(DAY))),
        ("add", Some(Delta(p)), Some(Delta(q))) => exactly(Ok(p + q)),
        ("sub", Some(Delta(p)), Some(Delta(q))) => exactly(Ok(p - q)),
        ("div" | "floordiv" | "mod", Some(Delta(_)), Some(Delta(0))) => {
            Some(raise("ZeroDivisionError", "integer division or modulo by zero"))
        }
        ("div", Some(Delta(p)), Some(Delta(q))) => {
            Some(exact(p).div(&exact(q)).map(Data::Num).map_err(PyError::from))
        }
        ("floordiv", Some(Delta(p)), Some(Delta(q))) => {
            Some(exact(p).div(&exact(q)).map(|n| Data::Num(n.floor())).map_err(PyError::from))
        }
        ("mod", Some(Delta(p)), Some(Delta(q))) => {
            let r = p.rem_euclid(q);
            // The sign is that of the divisor.
            exactly(Ok(if r != 0 && q < 0 { r + q } else { r }))
        }
        ("mul", Some(Delta(p)), None) | ("mul", None, Some(Delta(p))) => {
            let n = number(if x.is_some() { b } else { a })?;
            exactly(exact(p).mul(&n).map_err(PyError::from).and_then(|n| integral(&n)))
        }
        ("div", Some(Delta(p)), None) => {
            let n = number(b)?;
            exactly(exact(p).div(&n).map_err(PyError::from).and_then(|n| integral(&n)))
        }
        ("floordiv", Some(Delta(p)), None) => {
            number(b)?;
            let n = integer(b);
            exactly(n.and_then(|n| integral(&exact(p).div(&n)?.floor())))
        }
        _ => None,
    }
}

/// A unary operator or `abs` of a duration.
pub(super) fn unary(op: &str, m: Moment) -> Option<PyResult> {
    let Delta(n) = m else { return None };
    Some(
        delta(match op {
            "neg" => -n,
            "pos" => n,
            "abs" => n.abs(),
            _ => return None,
        })
        .map(data),
    )
}
