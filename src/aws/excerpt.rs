//! What the SDK gets to parse of an answer in XML: all of it or nothing, and no more than the function reads.
//!
//! The SDK stops parsing where a text stops making sense, and takes that for the end. Half a page would be a short page,
//! and what it doesn't show would count as gone. So each answer is first walked from tag to tag. The walk pays for
//! itself: of the 4 kB that describe one instance it leaves out the elements that [`place`] doesn't name, before the
//! SDK spends ten times as long on them. What stays, stays byte for byte.

use memchr::{memchr, memchr2_iter};
use std::{borrow::Cow, fmt};

/// Why a text is not the whole answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotWhole {
    /// It ends while this element is open.
    EndsInside(String),
    /// It closes an element that isn't open, or not the last one that was opened.
    ClosesAmiss(String),
    /// Its outermost element is not the answer's, or there is none.
    Foreign(String),
    /// It isn't as plain as AWS's answers are, from here on.
    NotPlain(String),
}

impl fmt::Display for NotWhole {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndsInside(name) => write!(out, "the answer ends inside <{name}>"),
            Self::ClosesAmiss(name) => {
                write!(out, "the answer closes <{name}> where it isn't open")
            }
            Self::Foreign(name) if name.is_empty() => write!(out, "the answer is empty"),
            Self::Foreign(name) => write!(out, "<{name}> is not the answer to this call"),
            Self::NotPlain(text) => write!(out, "the answer is not plain XML at {text:?}"),
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
///
/// It must be plainer than XML: a declaration at the start, elements, text, attributes in double quotes. AWS sends nothing
/// else, and the rest has too many ways to make the SDK stop.
pub fn excerpt<'a>(xml: &'a [u8], roots: &[&str]) -> Result<Cow<'a, [u8]>, NotWhole> {
    let mut excerpt = Excerpt {
        xml,
        roots,
        open: vec![],
        is_answer: false,
        kept: vec![],
        from: 0,
    };
    let mut at = declaration(xml);
    while let Some((start, tag)) = next_tag(xml, at)? {
        excerpt.pass(xml.get(at..start).unwrap_or_default())?;
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
    excerpt.pass(xml.get(at..).unwrap_or_default())?;
    excerpt.end()
}

/// An excerpt in the making.
struct Excerpt<'a, 'r> {
    xml: &'a [u8],
    roots: &'r [&'r str],
    /// The elements that are open where the walk has come to.
    open: Vec<(&'a [u8], Place)>,
    is_answer: bool,
    kept: Vec<u8>,
    /// What stands before this byte is kept or left out already.
    from: usize,
}

impl<'a> Excerpt<'a, '_> {
    fn outer(&self) -> Option<Place> {
        self.open.last().map(|(_, place)| *place)
    }

    /// The text to the byte `end` that is neither kept nor left out yet.
    fn text_to(&self, end: usize) -> &'a [u8] {
        self.xml.get(self.from..end).unwrap_or_default()
    }

    /// A text between two tags, which must be in an element.
    fn pass(&self, text: &[u8]) -> Result<(), NotWhole> {
        if self.open.is_empty() && !text.trim_ascii().is_empty() {
            return Err(NotWhole::NotPlain(shown(text)));
        }
        Ok(())
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
        if place != Place::LeftOut && !name.iter().all(u8::is_ascii_alphanumeric) {
            return Err(NotWhole::NotPlain(shown(name)));
        }
        if place == Place::LeftOut && outer != Some(Place::LeftOut) {
            self.kept.extend_from_slice(self.text_to(start));
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

    fn end(mut self) -> Result<Cow<'a, [u8]>, NotWhole> {
        if let Some((name, _)) = self.open.last() {
            return Err(NotWhole::EndsInside(shown(name)));
        }
        if !self.is_answer {
            return Err(NotWhole::Foreign(String::new()));
        }
        let text = self.text_to(self.xml.len());
        let kept = if self.from == 0 {
            Cow::Borrowed(text)
        } else {
            self.kept.extend_from_slice(text);
            Cow::Owned(self.kept)
        };
        match forbidden(&kept).and_then(|at| kept.get(at..)) {
            Some(odd) => Err(NotWhole::NotPlain(shown(odd))),
            None => Ok(kept),
        }
    }
}

/// How many bytes the declaration takes with which a document may begin.
fn declaration(xml: &[u8]) -> usize {
    let is_declared = xml.starts_with(b"<?xml ");
    let end = memchr(b'>', xml).filter(|_| is_declared);
    end.map_or(0, |end| end + 1)
}

/// The first tag at or after the byte `at`: where its `<` stands, and what is between that and its `>`.
fn next_tag(xml: &[u8], at: usize) -> Result<Option<(usize, &[u8])>, NotWhole> {
    let text = xml.get(at..).unwrap_or_default();
    let Some(before) = memchr(b'<', text) else {
        return Ok(None);
    };
    let tag = text.get(before + 1..).unwrap_or_default();
    match memchr(b'>', tag).and_then(|length| tag.get(..length)) {
        Some(inside) => Ok(Some((at + before, inside))),
        None => Err(NotWhole::EndsInside(shown(tag))),
    }
}

/// The name in a tag that opens an element.
fn name(tag: &[u8]) -> Result<&[u8], NotWhole> {
    let name = match tag.trim_ascii_end() {
        [.., b'"'] => before_attributes(tag),
        name => Some(name),
    };
    name.filter(|name| name.first().is_some_and(u8::is_ascii_alphabetic))
        .ok_or_else(|| NotWhole::NotPlain(shown(tag)))
}

fn before_attributes(tag: &[u8]) -> Option<&[u8]> {
    let (name, attributes) = tag.split_at(tag.iter().position(u8::is_ascii_whitespace)?);
    are_attributes(attributes).then_some(name)
}

/// Whether this is ` name="value"`, any number of times, and nothing else.
fn are_attributes(text: &[u8]) -> bool {
    let mut parts = text.split(|byte| *byte == b'"');
    loop {
        match (parts.next(), parts.next()) {
            (Some(end), None) => return end.trim_ascii().is_empty(),
            (Some([space, name @ .., b'=']), Some(value)) => {
                let is_name =
                    |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_alphabetic);
                let is_attribute = space.is_ascii_whitespace()
                    && name
                        .trim_ascii_start()
                        .splitn(2, |byte| *byte == b':')
                        .all(is_name)
                    && !value.iter().any(|byte| b"<&".contains(byte));
                if !is_attribute {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// Where a character stands that XML forbids, or `]]>`, which it forbids in a text.
fn forbidden(xml: &[u8]) -> Option<usize> {
    let begins = |at: &usize| {
        let text = xml.get(*at..).unwrap_or_default();
        ["]]>", "\u{FFFE}", "\u{FFFF}"]
            .iter()
            .any(|odd| text.starts_with(odd.as_bytes()))
    };
    xml.iter()
        .position(|byte| *byte < b' ' && !b"\t\n\r".contains(byte))
        .or_else(|| memchr2_iter(b']', 0xEF, xml).find(begins))
}

/// The beginning of `text`, for an error.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(40).collect()
}
