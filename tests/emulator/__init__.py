"""A local AWS for lifecycle-reaper: moto in one process, with the behaviour that the reaper depends on put right.

server.py           the account as an HTTP server; calls.py logs, faults.py breaks, control.py steers
instances.py  spot_requests.py  fleets.py  key_pairs.py  addresses.py   EC2
groups.py  lifecycle_hooks.py                                           Auto Scaling
commands.py                                                             SSM Run Command
queues.py                                                               SQS
event_bus.py        what EventBridge would be told
filters.py  paging.py  settings.py  timeline.py  backends.py        what those share
seeding.py          resources of any age and state, thousands at once
function.py  runtime_api.py  trigger.py                             Lambda: the function, its event sources
"""
