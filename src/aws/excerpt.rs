//! What the SDK gets to parse of an answer in XML: all of it or nothing, and no more than the function reads.
//!
//! The SDK stops parsing where a text stops making sense, and takes that for the end. Half a page would be a short page,
//! and what it doesn't show would count as gone. So each answer is first walked from tag to tag. The walk pays for
//! itself: of the 4 kB that describe one instance it leaves out the elements that [`place`] doesn't name, before the
//! SDK spends ten times as long on them. What stays, stays byte for byte.

use memchr::{memchr, memchr3};
use std::fmt;

/// Why a text is not the whole answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotWhole {
    /// It ends while this element is open.
    EndsInside(String),
    /// It closes an element that isn't open, or not the last one that was opened.
    ClosesAmiss(String),
    /// Its outermost element is not the answer's, or there is none.
    Foreign(String),
    /// No tag can begin like this.
    NoTag(String),
}

impl fmt::Display for NotWhole {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndsInside(name) => write!(out, "the answer ends inside <{name}>"),
            Self::ClosesAmiss(name) => {
                write!(out, "the answer closes <{name}> where it isn't open")
            }
            Self::Foreign(name) => write!(out, "<{name}> is not the answer to this call"),
            Self::NoTag(text) => write!(out, "the answer is not XML at {text:?}"),
        }
    }
}

impl std::error::Error for NotWhole {}

/// What an element is to the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Listing,
    Reservations,
    Reservation,
    Instances,
    Instance,
    State,
    Interfaces,
    Interface,
    Attachment,
    /// Kept, with all that is in it.
    Kept,
    LeftOut,
}

/// What the element `name` is inside `outer`. Whatever `ec2::instance` reads of an instance must be named here.
///
/// Only the listing of instances is cut: the others are short, and their fields few.
fn place(outer: Option<Place>, name: &[u8]) -> Place {
    use Place::*;
    match (outer, name) {
        (None, b"DescribeInstancesResponse") => Listing,
        (Some(Listing), b"reservationSet") => Reservations,
        (Some(Reservations), b"item") => Reservation,
        (Some(Reservation), b"instancesSet") => Instances,
        (Some(Instances), b"item") => Instance,
        (Some(Instance), b"instanceState") => State,
        (Some(Instance), b"networkInterfaceSet") => Interfaces,
        (Some(Interfaces), b"item") => Interface,
        (Some(Interface), b"attachment") => Attachment,
        (Some(Instance), b"instanceId" | b"launchTime" | b"reason" | b"tagSet") => Kept,
        (Some(Instance), b"keyName" | b"platform" | b"spotInstanceRequestId") => Kept,
        (Some(State), b"name") => Kept,
        (Some(Attachment), b"attachTime" | b"deviceIndex") => Kept,
        (None | Some(Listing | Kept), _) => Kept,
        _ => LeftOut,
    }
}

/// The answer `xml`, whose outermost element must be one of `roots`, without what the function doesn't read.
pub fn excerpt(xml: &[u8], roots: &[&str]) -> Result<Vec<u8>, NotWhole> {
    let mut excerpt = Excerpt {
        xml,
        roots,
        open: vec![],
        is_answer: false,
        kept: Vec::with_capacity(xml.len() / 4),
        from: 0,
    };
    let mut at = 0;
    while let Some((start, tag)) = next_tag(xml, at)? {
        at = start + tag.len() + 2;
        match tag {
            [b'/', name @ ..] => excerpt.leave(name.trim_ascii_end(), at)?,
            [inside @ .., b'/'] => {
                let name = name(inside)?;
                excerpt.enter(name, start)?;
                excerpt.leave(name, at)?;
            }
            inside => excerpt.enter(name(inside)?, start)?,
        }
    }
    excerpt.end()
}

/// An excerpt in the making.
struct Excerpt<'a> {
    xml: &'a [u8],
    roots: &'a [&'a str],
    /// The elements that are open where the walk has come to.
    open: Vec<(&'a [u8], Place)>,
    is_answer: bool,
    kept: Vec<u8>,
    /// What stands before this byte is kept or left out already.
    from: usize,
}

impl<'a> Excerpt<'a> {
    fn outer(&self) -> Option<Place> {
        self.open.last().map(|(_, place)| *place)
    }

    fn keep_to(&mut self, end: usize) {
        self.kept
            .extend_from_slice(self.xml.get(self.from..end).unwrap_or_default());
    }

    /// The element `name` opens with a tag that starts at the byte `start`.
    fn enter(&mut self, name: &'a [u8], start: usize) -> Result<(), NotWhole> {
        let outer = self.outer();
        if outer.is_none() {
            if self.is_answer || !self.roots.iter().any(|root| root.as_bytes() == name) {
                return Err(NotWhole::Foreign(shown(name)));
            }
            self.is_answer = true;
        }
        let place = place(outer, name);
        if place == Place::LeftOut && outer != Some(Place::LeftOut) {
            self.keep_to(start);
        }
        self.open.push((name, place));
        Ok(())
    }

    /// The element `name` closes with a tag that ends before the byte `end`.
    fn leave(&mut self, name: &[u8], end: usize) -> Result<(), NotWhole> {
        let Some((_, place)) = self.open.pop().filter(|(open, _)| *open == name) else {
            return Err(NotWhole::ClosesAmiss(shown(name)));
        };
        if place == Place::LeftOut && self.outer() != Some(Place::LeftOut) {
            self.from = end;
        }
        Ok(())
    }

    fn end(mut self) -> Result<Vec<u8>, NotWhole> {
        match self.open.last() {
            Some((name, _)) => Err(NotWhole::EndsInside(shown(name))),
            None if !self.is_answer => Err(NotWhole::Foreign(String::new())),
            None => {
                self.keep_to(self.xml.len());
                Ok(self.kept)
            }
        }
    }
}

/// The first tag at or after the byte `at`: where its `<` stands, and what is between that and its `>`.
/// Comments, CDATA and instructions are passed over.
fn next_tag(xml: &[u8], mut at: usize) -> Result<Option<(usize, &[u8])>, NotWhole> {
    loop {
        let text = xml.get(at..).unwrap_or_default();
        let Some(before) = memchr(b'<', text) else {
            return Ok(None);
        };
        let start = at + before;
        let tag = text.get(before + 1..).unwrap_or_default();
        let is_markup = matches!(tag.first(), Some(b'!' | b'?'));
        let length = if is_markup { markup(tag)? } else { length(tag) };
        let Some(inside) = length.and_then(|length| tag.get(..length)) else {
            return Err(NotWhole::EndsInside(shown(tag)));
        };
        if !is_markup {
            return Ok(Some((start, inside)));
        }
        at = start + inside.len() + 2;
    }
}

/// The name in a tag, before its attributes.
fn name(tag: &[u8]) -> Result<&[u8], NotWhole> {
    let name = match memchr(b'=', tag) {
        Some(_) => tag.split(u8::is_ascii_whitespace).next().unwrap_or(tag),
        None => tag.trim_ascii_end(),
    };
    match name.first() {
        Some(first) if first.is_ascii_alphabetic() => Ok(name),
        _ => Err(NotWhole::NoTag(shown(tag))),
    }
}

/// How many bytes it is to the `>` of a tag; one in quotes is part of an attribute.
fn length(tag: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr3(b'>', b'"', b'\'', tag.get(at..)?)?;
        match tag.get(at)? {
            b'>' => return Some(at),
            quote => at += memchr(*quote, tag.get(at + 1..)?)? + 2,
        }
    }
}

/// How many bytes it is to the last `>` of what begins like a tag and is none.
fn markup(text: &[u8]) -> Result<Option<usize>, NotWhole> {
    let kinds = [("?", "?>"), ("!--", "-->"), ("![CDATA[", "]]>")];
    let kind = kinds
        .into_iter()
        .find(|(begin, _)| text.starts_with(begin.as_bytes()));
    // A document type could define what other text means; no service of AWS's sends one.
    let Some((begin, end)) = kind else {
        return Err(NotWhole::NoTag(shown(text)));
    };
    let inside = text.get(begin.len()..).unwrap_or_default();
    let closed = inside
        .windows(end.len())
        .position(|bytes| bytes == end.as_bytes());
    Ok(closed.map(|closed| begin.len() + closed + end.len() - 1))
}

/// The beginning of `text`, for an error.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(40).collect()
}
