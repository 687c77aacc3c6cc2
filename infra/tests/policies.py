"""Every policy that infra/ holds, and the requests that infra/iam/cases.json asks them."""

import json

from rendered import DEPLOYMENTS, full_name
from tools import ACCOUNT, CACHE, INFRA, REGION, run

OF_ROLES = {"function": "", "hook-role": "-hook"}
OF_QUEUES = {"work-queue": "-work", "dead-letter-queue": "-dead-letters"}


def of_deployment(resources, variables):
    """name -> documents of one deployment, from its resources in CloudFormation's words."""
    name = full_name(variables)
    found = {}
    for (kind, key), properties in resources.items():
        for policy, suffix in OF_ROLES.items():
            if (kind, key) == ("AWS::IAM::Role", f"{name}-{REGION}{suffix}"):
                found[policy] = list(properties["Policies"].values())
        for policy, suffix in OF_QUEUES.items():
            if kind == "AWS::SQS::QueuePolicy" and key.endswith(f"/{name}{suffix}"):
                found[policy] = [properties["PolicyDocument"]]
    return found


def standing_alone():
    """Policies that are files of their own."""
    return {
        "plan-user": [json.loads((INFRA / "iam" / "plan-policy.json").read_text())],
        "instance": [json.loads((INFRA / "instance" / "address-policy.json").read_text())],
    }


def fill(node, name):
    """The placeholders of cases.json, for the deployment of that name."""
    if isinstance(node, dict):
        return {key: fill(value, name) for key, value in node.items()}
    if isinstance(node, list):
        return [fill(value, name) for value in node]
    for placeholder, value in {
        "{ec2}": "arn:aws:ec2:{region}:{account}",
        "{region}": REGION,
        "{account}": ACCOUNT,
        "{name}": name,
    }.items():
        node = node.replace(placeholder, value)
    return node


def requests(policy, deployment):
    """(why, request) of each case for this policy of this deployment."""
    name = full_name(DEPLOYMENTS.get(deployment, {}))
    for group in json.loads((INFRA / "iam" / "cases.json").read_text())["groups"]:
        if group["policy"] != policy or deployment not in group.get(
            "deployments", ["enforce", "everything"]
        ):
            continue
        role = f"arn:aws:iam::{ACCOUNT}:role/{name}-{REGION}" + OF_ROLES.get(policy, "")
        for expected in ("allow", "deny"):
            for case in group[expected]:
                action = case.get("action", group["action"])
                request = {
                    "expected": expected,
                    "principal": group.get("principal", role),
                    "action": action,
                    "resource": fill(case.get("resource", group["resource"]), name),
                    "context": fill(case.get("context", {}), name),
                }
                yield f"{group['about']}: {action}, {case['why']}", request


def simulate(policy, questions, stop_at_first=False):
    """For each (documents, requests), the answers: allow or deny; with stop_at_first up to the first unexpected one."""
    asked = [
        {
            ("resourcePolicy" if policy in OF_QUEUES else "policies"): documents[0]
            if policy in OF_QUEUES and documents
            else documents,
            "cases": cases,
            "stopAtFirst": stop_at_first,
        }
        for documents, cases in questions
    ]
    done = run(
        "node", "simulate.mjs", cwd=CACHE / "simulator", stdin=json.dumps(asked), timeout=600
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    broken = [answer for row in answers for answer in row if answer not in ("allow", "deny")]
    assert not broken, "\n".join(sorted(set(broken)))
    return answers


def as_list(value):
    return value if isinstance(value, list) else [value]


def weakened(statement):
    """(what was done, the statement or None) for every way to drop, narrow or widen one statement."""
    yield "removed", None
    actions = as_list(statement["Action"])
    if len(actions) > 1:
        for action in actions:
            yield (
                f"without {action}",
                {**statement, "Action": [one for one in actions if one != action]},
            )
    if statement["Effect"] == "Allow":
        for service in sorted({action.split(":")[0] for action in actions}):
            yield f"with {service}:*", {**statement, "Action": [*actions, f"{service}:*"]}
        if statement["Resource"] != "*":
            yield "on every resource", {**statement, "Resource": "*"}
    for operator, keys in statement.get("Condition", {}).items():
        for key, values in keys.items():
            rest = {name: value for name, value in keys.items() if name != key}
            condition = {**statement["Condition"], operator: rest}
            if not rest:
                del condition[operator]
            yield f"without {operator} {key}", {**statement, "Condition": condition}
            if (
                "StringLike" in operator
                or "StringEquals" in operator
                and not operator.startswith("ForAll")
            ):
                yield (
                    f"with any {key}",
                    {
                        **statement,
                        "Condition": {
                            **condition,
                            "StringLike": {**condition.get("StringLike", {}), key: "*"},
                        },
                    },
                )
            if isinstance(values, list) and len(values) > 1:
                for value in values:
                    less = {**keys, key: [one for one in values if one != value]}
                    yield (
                        f"without {key} {value}",
                        {**statement, "Condition": {**statement["Condition"], operator: less}},
                    )
    if isinstance(statement["Resource"], list):
        for resource in statement["Resource"]:
            yield (
                f"without {resource}",
                {
                    **statement,
                    "Resource": [one for one in statement["Resource"] if one != resource],
                },
            )


def mutants(documents):
    """(name, documents, actions of the statement) with one statement weakened."""
    for number, document in enumerate(documents):
        for place, statement in enumerate(document["Statement"]):
            for what, other in weakened(statement):
                statements = [
                    one
                    for one in (
                        *document["Statement"][:place],
                        other,
                        *document["Statement"][place + 1 :],
                    )
                    if one
                ]
                changed = [
                    *documents[:number],
                    {**document, "Statement": statements},
                    *documents[number + 1 :],
                ]
                yield (
                    f"{statement['Sid']} {what}",
                    [one for one in changed if one["Statement"]],
                    as_list(statement["Action"]),
                )
