//! Excerpts of answers: what is kept is what another, slower way of cutting keeps, and no text is too odd.

use super::cases;
use lifecycle_reaper::aws::excerpt;
use proptest::prelude::*;

const ROOT: &str = "DescribeInstancesResponse";
const NAMES: [&str; 14] = [
    "reservationSet",
    "instancesSet",
    "item",
    "item",
    "item",
    "instanceState",
    "name",
    "networkInterfaceSet",
    "attachment",
    "attachTime",
    "tagSet",
    "instanceId",
    "reason",
    "imageId",
];
/// The paths at whose ends only some elements are read.
const CUT: [(&str, &str); 8] = [
    ("/reservationSet", "item"),
    ("/reservationSet/item", "instancesSet"),
    ("/reservationSet/item/instancesSet", "item"),
    (
        "/reservationSet/item/instancesSet/item",
        "instanceId instanceState keyName launchTime networkInterfaceSet platform reason spotInstanceRequestId tagSet",
    ),
    (
        "/reservationSet/item/instancesSet/item/instanceState",
        "name",
    ),
    (
        "/reservationSet/item/instancesSet/item/networkInterfaceSet",
        "item",
    ),
    (
        "/reservationSet/item/instancesSet/item/networkInterfaceSet/item",
        "attachment",
    ),
    (
        "/reservationSet/item/instancesSet/item/networkInterfaceSet/item/attachment",
        "attachTime deviceIndex",
    ),
];

#[derive(Clone, Debug)]
enum Node {
    Text(String),
    Element(&'static str, Vec<Node>),
}

impl Node {
    /// This node at `path` as XML; of what lies inside only what is read, if `is_cut`.
    fn write(&self, path: &str, is_cut: bool, out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(text),
            Self::Element(name, inside) => {
                let rule = CUT.iter().find(|(at, _)| *at == path);
                if is_cut && rule.is_some_and(|(_, read)| !read.split(' ').any(|r| r == *name)) {
                    return;
                }
                match inside.as_slice() {
                    [] => *out += &format!("<{name}/>"),
                    inside => {
                        *out += &format!("<{name}>");
                        inside_of(&format!("{path}/{name}"), inside, is_cut, out);
                        *out += &format!("</{name}>");
                    }
                }
            }
        }
    }
}

fn inside_of(path: &str, inside: &[Node], is_cut: bool, out: &mut String) {
    inside.iter().for_each(|node| node.write(path, is_cut, out));
}

fn page(inside: &[Node], is_cut: bool) -> String {
    let mut out = format!("<{ROOT} xmlns=\"http://a/\">");
    inside_of("", inside, is_cut, &mut out);
    out + "</" + ROOT + ">"
}

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let text = prop::sample::select(vec!["", "1", " > ", "a &lt; b", "\n"]);
    let leaf = prop_oneof![
        text.prop_map(|text| Node::Text(text.into())),
        prop::sample::select(&NAMES[..]).prop_map(|name| Node::Element(name, vec![])),
    ];
    let node = leaf.prop_recursive(9, 64, 4, |inner| {
        (
            prop::sample::select(&NAMES[..]),
            prop::collection::vec(inner, 0..4),
        )
            .prop_map(|(name, inside)| Node::Element(name, inside))
    });
    prop::collection::vec(node, 0..4)
}

/// Instances, so that what is drawn stands where it matters, too.
fn instances() -> impl Strategy<Value = Vec<Node>> {
    (nodes(), nodes()).prop_map(|(instance, attachment)| {
        let wrap = |name, inside| Node::Element(name, inside);
        let interface = wrap(
            "networkInterfaceSet",
            vec![wrap("item", vec![wrap("attachment", attachment)])],
        );
        let inside = instance.into_iter().chain([interface]).collect();
        let reservation = wrap(
            "item",
            vec![wrap("instancesSet", vec![wrap("item", inside)])],
        );
        vec![wrap("reservationSet", vec![reservation])]
    })
}

/// What a parser may stumble over.
fn odd() -> impl Strategy<Value = Vec<u8>> {
    let known = [
        "<!-- a -- b -->",
        "<!---->",
        "<?xml version=\"1.0\"?>",
        "<? x ?>",
        "<?x?>",
        "]]>",
        "]]",
        ">",
        "<",
        "&",
        "\"",
        "'",
        "=",
        "/",
        "<a b='c'>",
        "<a b=c/>",
        "<a b=\"&c;\"/>",
        "<a b=\"c\"/>",
        "<a b:c=\"\"/>",
        "<a :b=\"\"/>",
        "<a b:=\"\"/>",
        "<a\n b=\"\"/>",
        "<a b =\"\"/>",
        "<a\tb=\"\" \u{b}c=\"\"/>",
        "<a b=\"c\" b=\"c\"></a>",
        "<a:b:c/>",
        "<_/>",
        "<a/>",
        " ",
        "\n",
        "<![CDATA[",
        "<!DOCTYPE a>",
        "\u{0}",
        "\u{1}",
        "\u{7F}",
        "\u{85}",
        "\u{FFFE}",
        "\u{FFFF}",
        "\u{FEFF}",
        "\u{10FFFF}",
        "é",
    ];
    prop_oneof![
        8 => prop::sample::select(known.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 1..3),
    ]
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn an_excerpt_keeps_what_the_slow_way_keeps(inside in prop_oneof![nodes(), instances()]) {
        let whole = page(&inside, false);
        let kept = excerpt(whole.as_bytes(), &[ROOT]).expect("whole");
        prop_assert_eq!(String::from_utf8(kept.into_owned()).expect("text"), page(&inside, true));
    }

    #[test]
    fn half_an_answer_is_none(inside in instances(), at in any::<prop::sample::Index>()) {
        let whole = page(&inside, false);
        prop_assert!(excerpt(&whole.as_bytes()[..at.index(whole.len())], &[ROOT]).is_err());
    }

    /// The SDK takes the first error of its parser for the end of the answer.
    #[test]
    fn what_is_believed_can_be_parsed_to_its_end(inside in instances(), places in prop::collection::vec((any::<prop::sample::Index>(), odd()), 1..3)) {
        let mut text = page(&inside, false).into_bytes();
        for (at, odd) in places {
            let at = at.index(text.len());
            text.splice(at..at, odd);
        }
        if let Some(kept) = excerpt(&text, &[ROOT]).ok().and_then(|kept| String::from_utf8(kept.into_owned()).ok()) {
            let errors: Vec<_> = xmlparser::Tokenizer::from(kept.as_str()).filter_map(Result::err).collect();
            prop_assert!(errors.is_empty(), "{:?} in {}", errors, kept);
        }
    }

    #[test]
    fn any_bytes_are_read_to_an_end(junk in any::<Vec<u8>>()) {
        prop_assert!(excerpt(&junk, &[ROOT]).is_err());
    }
}
