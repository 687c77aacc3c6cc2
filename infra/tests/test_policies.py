"""Least privilege, proved: what every policy allows and denies, and that each statement is needed as it is."""

import json

import pytest

import policies
import rendered
from tools import CACHE, INFRA

ASKED = [("function", "plan"), ("function", "enforce"), ("function", "everything")]
ASKED += [("hook-role", "enforce"), ("hook-role", "everything"), ("hook-role", "hook-to-queue")]
ASKED += [
    (queue, deployment)
    for queue in policies.OF_QUEUES
    for deployment in ("plan", "enforce", "everything", "existing-hook")
]
ASKED.remove(("dead-letter-queue", "everything"))


@pytest.fixture(scope="module")
def simulator(needs):
    if not (CACHE / "simulator" / "node_modules").is_dir():
        needs(
            "the policy simulator (npm package @cloud-copilot/iam-simulate; infra/check installs it where npm is)"
        )


@pytest.fixture(scope="session")
def documents(states):
    """(template, deployment) -> policies, of both templates and of the files that stand alone."""
    found = {("file", "-"): policies.standing_alone()}
    for deployment, variables in rendered.DEPLOYMENTS.items():
        terraform = rendered.from_terraform(states[deployment][0])
        sam = rendered.from_sam(rendered.sam_resources(variables)[0])
        found["terraform", deployment] = policies.of_deployment(terraform, variables)
        found["sam", deployment] = policies.of_deployment(sam, variables)
    return found


def wrong_answers(policy, deployment, documents):
    """What the cases find wrong with these documents."""
    cases = list(policies.requests(policy, deployment))
    assert cases, f"no case for {policy} of {deployment}"
    (answers,) = policies.simulate(policy, [(documents, [request for _, request in cases])])
    return [
        f"{why}: wanted {one['expected']}, got {got}"
        for (why, one), got in zip(cases, answers, strict=True)
        if got != one["expected"]
    ]


def noticed(policy, deployment, mutants):
    """The names of the mutants that a case finds."""
    requests = [request for _, request in policies.requests(policy, deployment)]
    # the likeliest cases first: one that notices is enough
    sorted_for = lambda actions: sorted(
        requests,
        key=lambda one: (
            one["action"] not in actions,
            one["action"].split(":")[0] != actions[0].split(":")[0],
        ),
    )
    questions = [(documents, sorted_for(actions)) for _, documents, actions in mutants]
    rows = policies.simulate(policy, questions, stop_at_first=True)
    return {
        name
        for (name, _, _), (_, asked), row in zip(mutants, questions, rows, strict=True)
        if row[-1] != asked[len(row) - 1]["expected"]
    }


@pytest.mark.parametrize("template", ["terraform", "sam"])
@pytest.mark.parametrize(("policy", "deployment"), ASKED)
def test_cases(simulator, documents, template, policy, deployment):
    wrong = wrong_answers(policy, deployment, documents[template, deployment][policy])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("policy", ["plan-user", "instance"])
def test_cases_of_files(simulator, documents, policy):
    wrong = wrong_answers(policy, "-", documents["file", "-"][policy])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("policy", "deployments"),
    [
        ("function", ["enforce", "everything"]),
        ("hook-role", ["everything"]),
        ("work-queue", ["everything"]),
        ("dead-letter-queue", ["enforce"]),
        ("plan-user", ["-"]),
        ("instance", ["-"]),
    ],
)
def test_no_statement_can_be_dropped_or_widened_unseen(simulator, documents, policy, deployments):
    found, tried = set(), set()
    for deployment in deployments:
        whole = documents["file" if deployment == "-" else "terraform", deployment][policy]
        changed = list(policies.mutants(whole))
        tried |= {name for name, _, _ in changed}
        found |= noticed(policy, deployment, changed)
    assert len(tried) > 5
    unseen = tried - found - EQUIVALENT
    assert not unseen, "no case notices: " + "; ".join(sorted(unseen))


# Changes that give nobody anything: no other call has tag keys, or a creating action, about an address.
EQUIVALENT = {
    "MarkOwnedAddresses with ec2:*",
    "MarkTaggedAddresses with ec2:*",
    "TagOnlyWhatIsBeingAllocated with ec2:*",
}


def test_every_call_is_allowed_and_nothing_else(documents):
    operations = json.loads((INFRA / "iam" / "operations.json").read_text())
    called = {(one["sid"], one["action"]) for one in operations["operations"]}
    not_called = {(one["sid"], one["action"]) for one in operations["not_called"]}
    required = {
        (one["sid"], one["action"]) for one in operations["operations"] if not one["optional"]
    }
    for template in ("terraform", "sam"):
        allowed = {
            d: granted(documents[template, d]["function"]) for d in ("enforce", "everything")
        }
        assert allowed["everything"] == called | not_called
        assert required <= allowed["enforce"] <= called | not_called
        optional = {
            (one["sid"], one["action"]) for one in operations["operations"] if one["optional"]
        }
        assert not optional & allowed["enforce"]


def granted(documents):
    return {
        (s["Sid"], action)
        for document in documents
        for s in document["Statement"]
        if s["Effect"] == "Allow"
        for action in policies.as_list(s["Action"])
    }


def test_the_plan_policy_reads_what_the_code_reads(documents):
    operations = json.loads((INFRA / "iam" / "operations.json").read_text())
    reads = {
        one["action"]
        for one in operations["operations"]
        if one["operation"].startswith(("Describe", "List", "Get"))
    }
    reads |= {one["action"] for one in operations["command_line"]}
    assert {action for _, action in granted(documents["file", "-"]["plan-user"])} == reads


def test_policies_fit_into_a_role(documents):
    """All inline policies of a role together: at most 10,240 characters, blanks left out."""
    for (_, deployment), found in documents.items():
        for policy in policies.OF_ROLES:
            size = sum(
                len(json.dumps(document, separators=(",", ":")))
                for document in found.get(policy, [])
            )
            assert size <= 9000, f"{policy} of {deployment}: {size}"
