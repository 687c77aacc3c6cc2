"""The control API: JSON under /_emulator/ to see and change what no AWS call could. README.md lists the paths."""

import json
import time
import urllib.parse
from typing import Any

from . import backends, commands, fleets, lifecycle_hooks, seeding
from .event_bus import BUS
from .settings import SETTINGS
from .timeline import LOCK, TIMELINE

PREFIX = "/_emulator/"


def answer(front: Any, environ: dict) -> tuple[str, Any]:
    path = environ["PATH_INFO"].removeprefix(PREFIX).strip("/")
    method = environ["REQUEST_METHOD"]
    query = dict(urllib.parse.parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    try:
        body = json.loads(
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)) or "null"
        )
        if route := WAITING_ROUTES.get((method, path)):
            return "200 OK", route(front, body, query)
        if route := ROUTES.get((method, path)):
            with LOCK:
                TIMELINE.run_due()
                return "200 OK", route(front, body, query)
        known = sorted(f"{m} {PREFIX}{p}" for m, p in ROUTES | WAITING_ROUTES)
        return "404 Not Found", {"error": f"no {method} {PREFIX}{path}", "known": known}
    except (ValueError, TypeError, KeyError, LookupError) as wrong:
        return "400 Bad Request", {"error": f"{type(wrong).__name__}: {wrong}"}


def reset(front: Any) -> None:
    backends.reset()
    TIMELINE.clear()
    BUS.clear()
    SETTINGS.reset()
    front.calls.clear()
    front.faults.clear()


def get_calls(front: Any, _body: Any, query: dict) -> Any:
    since = int(query.get("since", 0))
    if "counts" in query:
        return front.calls.counts(since)
    return [call.shown() for call in front.calls.since(since)]


def done(action: Any) -> dict:
    return {"done": True} if action is None else action


def plan_faults(front: Any, body: list[dict], _query: dict) -> Any:
    for fault in body:
        front.faults.plan(fault)
    return front.faults.shown()


def change_settings(_front: Any, body: dict, _query: dict) -> Any:
    SETTINGS.change(body)
    return vars(SETTINGS)


def write_scripts(_front: Any, body: dict[str, list[dict]], _query: dict) -> Any:
    for instance_id, outcomes in body.items():
        commands.script(instance_id, outcomes)
    return sorted(body)


def set_agents(_front: Any, body: dict[str, str], _query: dict) -> Any:
    for instance_id, state in body.items():
        commands.set_agent(instance_id, state)
    return body


def state(_front: Any, _body: Any, _query: dict) -> dict:
    """Everything there is, in words short enough to read."""
    ec2, autoscaling, sqs = backends.ec2(), backends.autoscaling(), backends.sqs()
    return {
        "instances": {i.id: i.state for r in ec2.reservations.values() for i in r.instances},
        "key_pairs": {key.id: key.key_name for key in ec2.key_pairs.values()},
        "spot_requests": {
            request.id: request.state for request in ec2.spot_instance_requests.values()
        },
        "fleets": {fleet.id: fleet.state for fleet in fleets.known(ec2).values()},
        "addresses": {a.allocation_id: a.association_id for a in ec2.addresses},
        "groups": {
            name: {
                "desired": group.desired_capacity,
                "instances": {m.instance_id: m.lifecycle_state for m in group.instance_states},
            }
            for name, group in autoscaling.autoscaling_groups.items()
        },
        "lifecycle_actions": [
            {
                "group": action.group_name,
                "hook": action.hook.name,
                "instance": action.instance_id,
                "heartbeats": action.heartbeats,
                "seconds_left": round(action.expires_at - time.time(), 1),
            }
            for action in lifecycle_hooks.actions(autoscaling)
        ],
        "commands": [
            {"id": c.id, "instance": c.instance_id, "document": c.document, "status": c.status()[0]}
            for c in commands.log(backends.ssm())
        ],
        "queues": {name: queue_state(queue) for name, queue in sqs.queues.items()},
    }


def queue_state(queue: Any) -> list[dict]:
    now = time.time()
    return [
        {
            "id": message.id,
            "receive_count": message.approximate_receive_count,
            "visible_in": max(
                0.0, round(max(message.visible_at, message.delayed_until) / 1000 - now, 1)
            ),
            "body": message.body[:300],
        }
        for message in queue._messages
    ]


def invoke(front: Any, event: Any, query: dict) -> Any:
    """Invokes the function directly, waiting for the reply unless `?async`."""
    deployment = deployed(front)
    if "async" in query:
        return done(deployment.direct.invoke(event))
    return deployment.function.invoke(json.dumps(event)).shown()


def invocations(front: Any, _body: Any, _query: dict) -> Any:
    return [invocation.shown() for invocation in deployed(front).function.invocations]


def deployed(front: Any) -> Any:
    if front.deployment is None:
        raise LookupError("no function is deployed: start the emulator with -- COMMAND")
    return front.deployment


WAITING_ROUTES = {("POST", "invoke"): invoke, ("GET", "invocations"): invocations}
"""These take their time, and the function needs the account meanwhile: they don't hold the lock."""

ROUTES = {
    ("GET", "state"): state,
    ("GET", "calls"): get_calls,
    ("DELETE", "calls"): lambda front, _body, _query: done(front.calls.clear()),
    ("GET", "events"): lambda _front, _body, _query: list(BUS.published),
    ("GET", "faults"): lambda front, _body, _query: front.faults.shown(),
    ("POST", "faults"): plan_faults,
    ("DELETE", "faults"): lambda front, _body, _query: done(front.faults.clear()),
    ("POST", "seed"): lambda _front, body, _query: seeding.seed(body),
    ("POST", "commands"): write_scripts,
    ("POST", "agents"): set_agents,
    ("POST", "settings"): change_settings,
    ("POST", "times"): lambda _front, body, _query: done(seeding.set_times(body)),
    ("POST", "reset"): lambda front, _body, _query: done(reset(front)),
}
