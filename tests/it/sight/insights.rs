//! As much of CloudWatch Logs Insights' language as docs/logs.md uses: `fields`, `filter`, `stats … by`, `sort`, `limit`.
//!
//! Anything else is an error, so that a query can't pass by not being understood. A field that no line has is an error
//! too: Logs Insights shows nothing for it, which looks like good news.

use super::capture::Line;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A line, or a group of lines, as fields.
pub type Row = BTreeMap<String, Value>;

/// Runs `query` over `lines`.
pub fn run(query: &str, lines: &[&Line]) -> Result<Vec<Row>, String> {
    let mut rows: Vec<Row> = lines.iter().map(|line| row(line)).collect();
    let mut known: BTreeSet<String> = rows.iter().flat_map(|row| row.keys().cloned()).collect();
    for command in query.split('|') {
        let tokens = tokens(command)?;
        let mut reader = Reader {
            tokens: &tokens,
            at: 0,
            known: &known,
        };
        match reader.word()?.as_str() {
            "fields" | "display" => reader
                .names()?
                .iter()
                .try_for_each(|name| reader.check(name))?,
            "filter" => {
                let condition = reader.either()?;
                rows.retain(|row| condition.holds(row));
            }
            "stats" => {
                rows = reader.stats(&rows)?;
                known = rows
                    .iter()
                    .flat_map(|row| row.keys().cloned())
                    .chain(reader.stats_names())
                    .collect();
                continue;
            }
            "sort" => {
                let name = reader.word()?;
                reader.check(&name)?;
                rows.sort_by(|a, b| order(a.get(&name), b.get(&name)));
                match reader.optional().as_deref() {
                    None | Some("asc") => {}
                    Some("desc") => rows.reverse(),
                    Some(other) => return Err(format!("sort {other}")),
                }
            }
            "limit" => rows.truncate(reader.word()?.parse().map_err(|_| "limit what?")?),
            other => return Err(format!("the command {other} is not known here")),
        }
        reader.end()?;
    }
    Ok(rows)
}

/// Logs Insights finds a JSON line's fields by itself, with dots and numbers for what is inside.
fn row(line: &Line) -> Row {
    fn flatten(prefix: &str, value: &Value, row: &mut Row) {
        let inside = |name: &dyn std::fmt::Display| {
            if prefix.is_empty() {
                name.to_string()
            } else {
                format!("{prefix}.{name}")
            }
        };
        match value {
            Value::Object(members) => members
                .iter()
                .for_each(|(name, v)| flatten(&inside(name), v, row)),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(n, v)| flatten(&inside(&n), v, row)),
            _ => drop(row.insert(prefix.to_owned(), value.clone())),
        }
    }
    let mut row = Row::new();
    flatten("", &line.json, &mut row);
    row.insert("@message".into(), json!(line.raw));
    let timestamp = line
        .json
        .get("timestamp")
        .cloned()
        .unwrap_or_else(|| line.json["_aws"]["Timestamp"].clone());
    row.insert("@timestamp".into(), timestamp);
    row
}

fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

fn order(a: Option<&Value>, b: Option<&Value>) -> std::cmp::Ordering {
    match (a.and_then(Value::as_f64), b.and_then(Value::as_f64)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => text(a).cmp(&text(b)),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Quoted(String),
    Sign(char),
}

fn tokens(command: &str) -> Result<Vec<Token>, String> {
    let mut tokens = vec![];
    let mut rest = command.trim();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '@' | '-');
        let length = match first {
            '"' | '/' => {
                let end = rest[1..].find(first).ok_or("a quote is not closed")?;
                tokens.push(Token::Quoted(rest[1..=end].to_owned()));
                end + 2
            }
            c if is_word(c) => {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..end].to_owned()));
                end
            }
            sign => {
                tokens.push(Token::Sign(sign));
                sign.len_utf8()
            }
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// A condition on one row.
enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Present(String),
    Like(String, String),
    Equals(String, Vec<String>, bool),
    Above(String, f64, bool),
}

impl Condition {
    fn holds(&self, row: &Row) -> bool {
        let field = |name: &String| text(row.get(name));
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(row)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(row)),
            Self::Present(name) => field(name).is_some(),
            Self::Like(name, part) => {
                field(name).is_some_and(|value| match part.strip_prefix('^') {
                    Some(begin) => value.starts_with(begin),
                    None => value.contains(part.as_str()),
                })
            }
            Self::Equals(name, values, wanted) => {
                field(name).is_some_and(|value| values.contains(&value)) == *wanted
            }
            Self::Above(name, bound, wanted) => row
                .get(name)
                .and_then(Value::as_f64)
                .is_some_and(|value| (value > *bound) == *wanted),
        }
    }
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    known: &'a BTreeSet<String>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<Token> {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned()
    }

    fn optional(&mut self) -> Option<String> {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => {
                self.at += 1;
                Some(word.clone())
            }
            _ => None,
        }
    }

    fn word(&mut self) -> Result<String, String> {
        self.optional()
            .ok_or_else(|| format!("no word at {:?}", self.tokens.get(self.at)))
    }

    fn skips(&mut self, token: &Token) -> bool {
        let is = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(is);
        is
    }

    fn sign(&mut self, sign: char) -> Result<(), String> {
        if self.skips(&Token::Sign(sign)) {
            Ok(())
        } else {
            Err(format!("no {sign} at {:?}", self.tokens.get(self.at)))
        }
    }

    fn end(&self) -> Result<(), String> {
        self.tokens
            .get(self.at)
            .map_or(Ok(()), |token| Err(format!("{token:?} is not understood")))
    }

    fn check(&self, name: &str) -> Result<(), String> {
        if self.known.contains(name) {
            Ok(())
        } else {
            Err(format!("no line has the field {name}"))
        }
    }

    fn names(&mut self) -> Result<Vec<String>, String> {
        let mut names = vec![self.word()?];
        while self.skips(&Token::Sign(',')) {
            names.push(self.word()?);
        }
        Ok(names)
    }

    fn either(&mut self) -> Result<Condition, String> {
        let mut parts = vec![self.both()?];
        while self.skips(&Token::Word("or".into())) {
            parts.push(self.both()?);
        }
        Ok(Condition::Any(parts))
    }

    fn both(&mut self) -> Result<Condition, String> {
        let mut parts = vec![self.one()?];
        while self.skips(&Token::Word("and".into())) {
            parts.push(self.one()?);
        }
        Ok(Condition::All(parts))
    }

    fn one(&mut self) -> Result<Condition, String> {
        if self.skips(&Token::Sign('(')) {
            let inner = self.either()?;
            self.sign(')')?;
            return Ok(inner);
        }
        let name = self.word()?;
        if name == "ispresent" {
            self.sign('(')?;
            let name = self.word()?;
            self.sign(')')?;
            self.check(&name)?;
            return Ok(Condition::Present(name));
        }
        self.check(&name)?;
        match self.next() {
            Some(Token::Word(word)) if word == "like" => Ok(Condition::Like(name, self.literal()?)),
            Some(Token::Word(word)) if word == "in" => {
                self.sign('[')?;
                let mut values = vec![self.literal()?];
                while self.skips(&Token::Sign(',')) {
                    values.push(self.literal()?);
                }
                self.sign(']')?;
                Ok(Condition::Equals(name, values, true))
            }
            Some(Token::Sign('=')) => Ok(Condition::Equals(name, vec![self.literal()?], true)),
            Some(Token::Sign('!')) => {
                self.sign('=')?;
                Ok(Condition::Equals(name, vec![self.literal()?], false))
            }
            Some(Token::Sign(sign @ ('>' | '<'))) => {
                let bound = self
                    .literal()?
                    .parse()
                    .map_err(|_| format!("{name} {sign} what?"))?;
                Ok(Condition::Above(name, bound, sign == '>'))
            }
            other => Err(format!("{other:?} after {name}")),
        }
    }

    fn literal(&mut self) -> Result<String, String> {
        match self.next() {
            Some(Token::Quoted(text) | Token::Word(text)) => Ok(text),
            other => Err(format!("{other:?} is no value")),
        }
    }

    /// `function(field) as name, … by field, …`
    fn stats(&mut self, rows: &[Row]) -> Result<Vec<Row>, String> {
        let mut columns = vec![];
        loop {
            let function = self.word()?;
            self.sign('(')?;
            let field = if self.skips(&Token::Sign('*')) {
                None
            } else {
                Some(self.word()?)
            };
            self.sign(')')?;
            field.iter().try_for_each(|name| self.check(name))?;
            if !self.skips(&Token::Word("as".into())) {
                return Err(format!("{function} has no name: write `as`"));
            }
            columns.push((function, field, self.word()?));
            if !self.skips(&Token::Sign(',')) {
                break;
            }
        }
        let by = if self.skips(&Token::Word("by".into())) {
            self.groups()?
        } else {
            vec![]
        };
        self.end()?;
        let mut groups = BTreeMap::<Vec<Option<String>>, Vec<&Row>>::new();
        for row in rows {
            groups
                .entry(by.iter().map(|name| text(row.get(name))).collect())
                .or_default()
                .push(row);
        }
        groups
            .into_iter()
            .map(|(key, rows)| {
                let mut result: Row = by
                    .iter()
                    .cloned()
                    .zip(key.into_iter().map(|k| json!(k)))
                    .collect();
                for (function, field, name) in &columns {
                    result.insert(
                        name.clone(),
                        json!(aggregate(function, field.as_deref(), &rows)?),
                    );
                }
                Ok(result)
            })
            .collect()
    }

    /// The names that the last `stats` gave, so that a later command may use them even where no row is left.
    fn stats_names(&self) -> Vec<String> {
        let mut names = vec![];
        for pair in self.tokens.windows(2) {
            if let [Token::Word(word), Token::Word(name)] = pair
                && matches!(word.as_str(), "as" | "by")
            {
                names.push(name.clone());
            }
        }
        names
    }

    fn groups(&mut self) -> Result<Vec<String>, String> {
        let mut names = vec![];
        loop {
            let name = self.word()?;
            if name == "bin" {
                // All captured lines lie in few minutes: a bin puts them together, which nothing here depends on.
                self.sign('(')?;
                self.word()?;
                self.sign(')')?;
            } else {
                self.check(&name)?;
                names.push(name);
            }
            if !self.skips(&Token::Sign(',')) {
                return Ok(names);
            }
        }
    }
}

fn aggregate(function: &str, field: Option<&str>, rows: &[&Row]) -> Result<Value, String> {
    let present: Vec<&Value> = rows
        .iter()
        .filter_map(|row| field.map_or(Some(&Value::Bool(true)), |name| row.get(name)))
        .collect();
    let numbers = || present.iter().filter_map(|value| value.as_f64());
    Ok(match function {
        "count" => json!(present.len()),
        "count_distinct" => json!(
            present
                .iter()
                .map(ToString::to_string)
                .collect::<BTreeSet<_>>()
                .len()
        ),
        "sum" => json!(numbers().sum::<f64>()),
        "max" => json!(numbers().reduce(f64::max)),
        "avg" => json!(numbers().sum::<f64>() / numbers().count().max(1) as f64),
        "latest" => present.last().map_or(Value::Null, |value| (*value).clone()),
        other => return Err(format!("the function {other} is not known here")),
    })
}
