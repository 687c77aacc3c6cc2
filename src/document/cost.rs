//! What orphans cost a month: only what has one price everywhere is counted; the rest is no guess.

use crate::{
    plan::ReapPlan,
    reap::{Judgement, Verdict},
};
use serde::{Deserialize, Serialize};

/// What the orphans cost a month.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MonthlyCost {
    /// Orphaned addresses of Amazon's pool.
    pub idle_addresses: usize,
    /// Their price, in US dollars.
    pub usd: f64,
    /// How it was counted.
    pub basis: String,
}

/// Since 2024-02-01 every public IPv4 address of Amazon's pool costs $0.005 an hour, in use or idle; addresses that a
/// customer brought cost nothing. <https://aws.amazon.com/blogs/aws/new-aws-public-ipv4-address-charge-public-ip-insights/>,
/// <https://aws.amazon.com/vpc/pricing/>. A month is 730 hours, so this is 365 cents.
const CENTS_PER_ADDRESS_AND_MONTH: usize = 365;
/// Only orphans that are public addresses of Amazon's pool, and not in China, where prices are in another currency.
pub(super) fn monthly_cost(plan: &ReapPlan, region: Option<&str>) -> MonthlyCost {
    let is_idle = |judgement: &Judgement| {
        judgement.verdict == Verdict::Orphan && judgement.resource.from_amazon_pool
    };
    let idle = plan
        .judged
        .iter()
        .filter(|(_, judgement)| is_idle(judgement))
        .count();
    if region.is_none_or(|region| region.starts_with("cn-")) {
        return MonthlyCost {
            basis: "no price is certain in this Region".into(),
            ..MonthlyCost::default()
        };
    }
    MonthlyCost {
        idle_addresses: idle,
        usd: (idle * CENTS_PER_ADDRESS_AND_MONTH) as f64 / 100.0,
        basis: "$0.005 an hour for each idle public IPv4 address, 730 hours a month; nothing else is counted".into(),
    }
}
