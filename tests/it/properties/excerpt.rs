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
const CUT: [(&str, &str); 7] = [
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
];
const OF_AN_ATTACHMENT: (&str, &str) = (
    "/reservationSet/item/instancesSet/item/networkInterfaceSet/item/attachment",
    "attachTime deviceIndex",
);

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
                let rule = CUT
                    .iter()
                    .chain([&OF_AN_ATTACHMENT])
                    .find(|(at, _)| *at == path);
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
    let mut out = format!("<{ROOT} xmlns=\"http://a/>/\">");
    inside_of("", inside, is_cut, &mut out);
    out + "</" + ROOT + ">"
}

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let text = prop::sample::select(vec![
        "",
        "1",
        " > ",
        "a &lt; b",
        "\n",
        "<!-- </item> -->",
        "<![CDATA[<item>]]>",
    ]);
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

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn an_excerpt_keeps_what_the_slow_way_keeps(inside in prop_oneof![nodes(), instances()]) {
        let kept = excerpt(page(&inside, false).as_bytes(), &[ROOT]).expect("whole");
        prop_assert_eq!(String::from_utf8(kept).expect("text"), page(&inside, true));
    }

    #[test]
    fn half_an_answer_is_none(inside in instances(), at in any::<prop::sample::Index>()) {
        let whole = page(&inside, false);
        prop_assert!(excerpt(&whole.as_bytes()[..at.index(whole.len())], &[ROOT]).is_err());
    }

    #[test]
    fn any_bytes_are_read_to_an_end(inside in instances(), at in any::<prop::sample::Index>(), byte in any::<u8>(), junk in any::<Vec<u8>>()) {
        let mut bytes = page(&inside, false).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = excerpt(&bytes, &[ROOT]);
        let _ = excerpt(&junk, &[ROOT]);
    }
}
