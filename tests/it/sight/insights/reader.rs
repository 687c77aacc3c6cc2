//! Reads a command of a query, word by word.

use super::{Condition, Expression, Row, aggregate, text};
use chrono::{DateTime, Utc};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(String),
    Quoted(String),
    Sign(char),
}

pub(super) fn tokens(command: &str) -> Result<Vec<Token>, String> {
    let mut tokens = vec![];
    let mut rest = command.trim();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '@');
        // Between slashes stands a pattern after `like`, and elsewhere they divide.
        let is_quote = first == '"' || (first == '/' && tokens.last().is_some_and(is_like));
        let length = match first {
            _ if is_quote => {
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

fn is_like(token: &Token) -> bool {
    *token == Token::Word("like".into())
}

pub(super) struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    known: &'a BTreeSet<String>,
    now: DateTime<Utc>,
}

impl<'a> Reader<'a> {
    pub(super) fn of(tokens: &'a [Token], known: &'a BTreeSet<String>, now: DateTime<Utc>) -> Self {
        Self {
            tokens,
            at: 0,
            known,
            now,
        }
    }
}

impl Reader<'_> {
    fn next(&mut self) -> Option<Token> {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned()
    }

    pub(super) fn optional(&mut self) -> Option<String> {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => {
                self.at += 1;
                Some(word.clone())
            }
            _ => None,
        }
    }

    pub(super) fn word(&mut self) -> Result<String, String> {
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

    pub(super) fn end(&self) -> Result<(), String> {
        self.tokens
            .get(self.at)
            .map_or(Ok(()), |token| Err(format!("{token:?} is not understood")))
    }

    pub(super) fn check(&self, name: &str) -> Result<(), String> {
        if self.known.contains(name) {
            Ok(())
        } else {
            Err(format!("no line has the field {name}"))
        }
    }

    /// `field, expression as name, …`: what is new of it.
    pub(super) fn columns(&mut self) -> Result<Vec<(String, Expression)>, String> {
        let mut new = vec![];
        loop {
            let expression = self.sum()?;
            if self.skips(&Token::Word("as".into())) {
                new.push((self.word()?, expression));
            } else if !matches!(expression, Expression::Field(_)) {
                return Err("an expression has no name: write `as`".into());
            }
            if !self.skips(&Token::Sign(',')) {
                return Ok(new);
            }
        }
    }

    fn sum(&mut self) -> Result<Expression, String> {
        self.chain(&['+', '-'], Self::product)
    }

    fn product(&mut self) -> Result<Expression, String> {
        self.chain(&['*', '/'], Self::operand)
    }

    fn chain(
        &mut self,
        signs: &[char],
        part: fn(&mut Self) -> Result<Expression, String>,
    ) -> Result<Expression, String> {
        let mut whole = part(self)?;
        while let Some(sign) = signs.iter().find(|sign| self.skips(&Token::Sign(**sign))) {
            whole = Expression::Of(Box::new(whole), *sign, Box::new(part(self)?));
        }
        Ok(whole)
    }

    fn operand(&mut self) -> Result<Expression, String> {
        if self.skips(&Token::Sign('(')) {
            let inner = self.sum()?;
            self.sign(')')?;
            return Ok(inner);
        }
        let word = self.word()?;
        if let Ok(number) = word.parse() {
            return Ok(Expression::Number(number));
        }
        if !self.skips(&Token::Sign('(')) {
            self.check(&word)?;
            return Ok(Expression::Field(word));
        }
        let expression = match word.as_str() {
            "now" => Expression::Number(self.now.timestamp() as f64),
            "toMillis" => {
                let name = self.word()?;
                self.check(&name)?;
                Expression::Millis(name)
            }
            "coalesce" => {
                let mut parts = vec![self.sum()?];
                while self.skips(&Token::Sign(',')) {
                    parts.push(self.sum()?);
                }
                Expression::FirstOf(parts)
            }
            other => return Err(format!("the function {other} is not known here")),
        };
        self.sign(')')?;
        Ok(expression)
    }

    pub(super) fn either(&mut self) -> Result<Condition, String> {
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
            Some(Token::Sign('>')) => Ok(Condition::Above(name, self.sum()?)),
            Some(Token::Sign('<')) => Ok(Condition::Below(name, self.sum()?)),
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
    pub(super) fn stats(&mut self, rows: &[Row]) -> Result<Vec<Row>, String> {
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
    pub(super) fn stats_names(&self) -> Vec<String> {
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
