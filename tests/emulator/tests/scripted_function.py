"""A function for the trigger's own tests: it does what the bodies of its records say, through the Runtime API."""

import json
import os
import sys
import time
import urllib.request

API = f"http://{os.environ['AWS_LAMBDA_RUNTIME_API']}/2018-06-01/runtime/"


def post(path: str, value: object) -> None:
    body = value if isinstance(value, str) else json.dumps(value)
    urllib.request.urlopen(urllib.request.Request(API + path, body.encode()), timeout=10).read()


while True:
    with urllib.request.urlopen(API + "invocation/next") as response:
        invocation = response.headers["Lambda-Runtime-Aws-Request-Id"]
        deadline = int(response.headers["Lambda-Runtime-Deadline-Ms"]) / 1000
        arn = response.headers["Lambda-Runtime-Invoked-Function-Arn"]
        event = json.load(response)
    records = event.get("Records", [])
    print(f"records={len(records)} left={deadline - time.time():.1f} arn={arn}", flush=True)
    orders = {record["messageId"]: record["body"] for record in records} or {
        "": event.get("order", "")
    }
    if "exit" in orders.values():
        sys.exit(3)
    if "hang" in orders.values():
        time.sleep(60)
    if "raise" in orders.values():
        post(f"invocation/{invocation}/error", {"errorType": "Boom", "errorMessage": "as ordered"})
        continue
    if "garble" in orders.values():
        post(f"invocation/{invocation}/response", "not json")
        continue
    failed = [message_id for message_id, order in orders.items() if order == "again"]
    failed += ["no-such-id"] if "unknown" in orders.values() else []
    post(
        f"invocation/{invocation}/response",
        {"batchItemFailures": [{"itemIdentifier": failure} for failure in failed]},
    )
