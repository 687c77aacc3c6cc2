"""Commands go the way their script says."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError
from conftest import wait_until
from emulator import commands, outcomes, seeding
from emulator.event_bus import BUS


@pytest.fixture
def manager(ssm):
    ssm.create_document(
        Name="drain", Content='{"schemaVersion": "2.2", "mainSteps": []}', DocumentType="Command"
    )
    return seeding.instance()


def send(ssm, instance_id, document="drain"):
    arguments = {"Comment": "a test", "Parameters": {"WaitSeconds": ["300"]}, "TimeoutSeconds": 60}
    return ssm.send_command(DocumentName=document, InstanceIds=[instance_id], **arguments)[
        "Command"
    ]["CommandId"]


def look(ssm, command, instance_id):
    found = ssm.get_command_invocation(CommandId=command, InstanceId=instance_id)
    return found["Status"], found["StandardOutputContent"].split(" unit=")[0], found["ResponseCode"]


@pytest.mark.parametrize("answer", outcomes.ANSWERS)
def test_a_command_is_pending_then_in_progress_then_answers(ssm, manager, answer):
    commands.script(manager, [{"answer": answer, "pending": 0.3, "running": 0.3}])
    command = send(ssm, manager)
    assert look(ssm, command, manager) == ("Pending", "", -1)
    wait_until(lambda: look(ssm, command, manager)[0] == "InProgress", 2, "delivery")
    wait_until(lambda: look(ssm, command, manager)[0] == "Success", 2, "the answer")
    assert look(ssm, command, manager) == ("Success", f"lifecycle-reaper: {answer}", 0)


def test_each_command_uses_up_one_outcome_and_the_last_one_stays(ssm, manager):
    commands.script(
        manager,
        [{"status": "Failed", "stderr": "boom"}, {"status": "TimedOut"}, {"answer": "busy"}],
    )
    seen = [look(ssm, send(ssm, manager), manager)[0] for _ in range(4)]
    assert seen == ["Failed", "TimedOut", "Success", "Success"]


def test_an_undelivered_command_is_pending_and_found_by_document_and_time_only(ssm, manager):
    commands.set_agent(manager, "lost")
    command = send(ssm, manager)
    assert look(ssm, command, manager)[0] == "Pending"
    assert ssm.list_commands(InstanceId=manager)["Commands"] == []
    assert [found["InstanceIds"] for found in ssm.list_commands()["Commands"]] == [[manager]]
    assert (
        ssm.describe_instance_information()["InstanceInformationList"][0]["PingStatus"]
        == "ConnectionLost"
    )
    commands.log(commands.backends.ssm())[0].sent_at -= 61
    found = ssm.get_command_invocation(CommandId=command, InstanceId=manager)
    assert (found["Status"], found["StatusDetails"]) == ("TimedOut", "DeliveryTimedOut")


def test_what_cant_be_sent_is_refused(ssm, manager):
    def refusal(instance_id, document="drain"):
        with pytest.raises(ClientError) as failure:
            send(ssm, instance_id, document)
        return failure.value.response["Error"]["Code"]

    assert refusal(manager, "no-such-document") == "InvalidDocument"
    assert refusal(seeding.instance(state="stopped")) == "InvalidInstanceId"
    commands.script(manager, [{"refuse": "UnsupportedPlatformType"}])
    assert refusal(manager) == "UnsupportedPlatformType"
    commands.set_agent(manager, "dead")
    assert refusal(manager) == "InvalidInstanceId"
    assert ssm.describe_instance_information()["InstanceInformationList"] == []


def test_a_command_may_not_be_visible_yet(ssm, manager):
    commands.script(manager, [{"answer": "stopped", "hidden": 0.5}])
    command = send(ssm, manager)
    with pytest.raises(ClientError, match="InvocationDoesNotExist"):
        look(ssm, command, manager)
    time.sleep(0.6)
    assert look(ssm, command, manager)[0] == "Success"


def test_commands_are_listed_newest_first_by_document_and_time(ssm, manager):
    ssm.create_document(
        Name="other", Content='{"schemaVersion": "2.2", "mainSteps": []}', DocumentType="Command"
    )
    first, second, _ = send(ssm, manager), send(ssm, manager), send(ssm, manager, "other")

    def listed(after, **arguments):
        moment = (datetime.now(UTC) + timedelta(seconds=after)).strftime("%Y-%m-%dT%H:%M:%SZ")
        filters = [
            {"key": "DocumentName", "value": "drain"},
            {"key": "InvokedAfter", "value": moment},
        ]
        return ssm.list_commands(Filters=filters, **arguments)

    assert [found["CommandId"] for found in listed(-60)["Commands"]] == [second, first]
    assert listed(+60)["Commands"] == []
    page = listed(-60, MaxResults=1)
    assert [found["CommandId"] for found in page["Commands"]] == [second]
    assert "NextToken" in page


def test_the_end_of_a_command_is_an_event(ssm, manager):
    commands.script(manager, [{"answer": "stopped", "running": 0.2}])
    command = send(ssm, manager)
    ends = lambda: [e for e in BUS.published if e["source"] == "aws.ssm"]  # noqa: E731
    (event,) = wait_until(ends, what="the event")
    assert event["detail"]["command-id"] == command
    assert event["detail"]["status"] == "Success"


def test_a_typing_error_in_a_script_is_refused():
    with pytest.raises(ValueError, match="never answers 'stoped'"):
        commands.script("*", [{"answer": "stoped"}])
