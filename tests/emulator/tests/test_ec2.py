"""EC2 answers as AWS does where the reaper depends on it."""

import time

import pytest
from botocore.exceptions import ClientError
from conftest import wait_until
from emulator import seeding
from emulator.settings import SETTINGS

KEY = "runner-abc-prod-1700000000-{n:08x}"
PARENT = "i-0123456789abcdef0"


def described(ec2, **arguments):
    reservations = ec2.describe_instances(**arguments)["Reservations"]
    return [instance for reservation in reservations for instance in reservation["Instances"]]


def code(failure):
    return failure.value.response["Error"]["Code"]


def test_ten_thousand_instances_are_seeded_and_paged_in_seconds(ec2):
    began = time.process_time()
    seeding.seed(
        {
            "instances": [
                {
                    "count": 10_000,
                    "key_name": KEY,
                    "tags": {"gitlab-runner-parent-id": PARENT},
                    "age": 9000,
                }
            ]
        }
    )
    assert time.process_time() - began < 5
    pages = ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 1000})
    sizes = [
        sum(len(reservation["Instances"]) for reservation in page["Reservations"]) for page in pages
    ]
    assert sizes == [1000] * 10
    began = time.process_time()
    wanted = [{"Name": "tag:gitlab-runner-parent-id", "Values": [PARENT]}]
    assert len(described(ec2, Filters=wanted, MaxResults=1000)) == 1000
    assert time.process_time() - began < 5


def test_pages_count_instances_not_reservations(ec2):
    ec2.run_instances(ImageId="ami-12c6146b", MinCount=12, MaxCount=12, InstanceType="t3.micro")
    page = ec2.describe_instances(MaxResults=5)
    assert [len(reservation["Instances"]) for reservation in page["Reservations"]] == [5]
    rest = ec2.describe_instances(MaxResults=1000, NextToken=page["NextToken"])
    assert [len(reservation["Instances"]) for reservation in rest["Reservations"]] == [7]
    assert "NextToken" not in rest


def test_bad_paging_is_refused(ec2):
    instance = seeding.instance()
    with pytest.raises(ClientError) as failure:
        ec2.describe_instances(InstanceIds=[instance], MaxResults=5)
    assert code(failure) == "InvalidParameterCombination"
    with pytest.raises(ClientError) as failure:
        ec2.describe_instances(NextToken="bm90IG91cnM=")
    assert code(failure) == "InvalidNextToken"


def test_an_empty_page_may_come_before_the_first_one(ec2):
    seeding.seed({"instances": [{"count": 3}]})
    SETTINGS.change({"empty_pages": True, "page_size": 2})
    pages = list(ec2.get_paginator("describe_instances").paginate())
    assert [sum(len(r["Instances"]) for r in page["Reservations"]) for page in pages] == [0, 2, 1]


def test_filters_know_wildcards_and_refuse_what_they_dont_know(ec2):
    ours = seeding.instance(key_name="runner-a-prod-1")
    star = seeding.instance(key_name="runner-*-x")
    assert [
        i["InstanceId"]
        for i in described(ec2, Filters=[{"Name": "key-name", "Values": ["runner-?-prod-*"]}])
    ] == [ours]
    assert [
        i["InstanceId"]
        for i in described(ec2, Filters=[{"Name": "key-name", "Values": [r"runner-\*-x"]}])
    ] == [star]
    assert described(ec2, Filters=[{"Name": "instance-id", "Values": ["i-gone"]}]) == []
    with pytest.raises(ClientError) as failure:
        described(ec2, Filters=[{"Name": "no-such", "Values": ["1"]}])
    assert code(failure) == "InvalidParameterValue"


def test_times_are_as_set(ec2):
    instance = seeding.instance(age=3600, attached_age=7200)
    (shown,) = described(ec2, InstanceIds=[instance])
    attached = shown["NetworkInterfaces"][0]["Attachment"]["AttachTime"]
    assert abs((shown["LaunchTime"] - attached).total_seconds() - 3600) < 2
    seeding.set_times(
        {instance: {"launch_time": "2026-01-02T03:04:05Z", "attach_time": "2026-01-01T00:00:00Z"}}
    )
    (shown,) = described(ec2, InstanceIds=[instance])
    assert shown["LaunchTime"].isoformat() == "2026-01-02T03:04:05+00:00"


def test_instances_end_in_two_steps_and_stay_visible_for_a_while(ec2):
    instance = seeding.instance()
    SETTINGS.change({"shutting_down": 0.3, "terminated_visible": 0.5})
    (change,) = ec2.terminate_instances(InstanceIds=[instance])["TerminatingInstances"]
    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == (
        "running",
        "shutting-down",
    )
    assert described(ec2, InstanceIds=[instance])[0]["State"]["Name"] == "shutting-down"
    wait_until(lambda: described(ec2)[0]["State"]["Name"] == "terminated", what="terminated")
    wait_until(lambda: described(ec2) == [], what="the instance to be forgotten")


def test_terminating_is_all_or_nothing_for_bad_ids(ec2):
    instance = seeding.instance()
    for bad, expected in (
        ("i-0aaaaaaaaaaaaaaaa", "InvalidInstanceID.NotFound"),
        ("i-xyz", "InvalidInstanceID.Malformed"),
    ):
        with pytest.raises(ClientError) as failure:
            ec2.terminate_instances(InstanceIds=[instance, bad])
        assert code(failure) == expected
    assert described(ec2)[0]["State"]["Name"] == "running"
    with pytest.raises(ClientError) as failure:
        ec2.terminate_instances(InstanceIds=[instance], DryRun=True)
    assert code(failure) == "DryRunOperation"
    assert described(ec2)[0]["State"]["Name"] == "running"


def test_a_protected_instance_spares_its_zone_only(ec2):
    protected = seeding.instance(protected=True, zone="eu-central-1a")
    beside = seeding.instance(zone="eu-central-1a")
    elsewhere = seeding.instance(zone="eu-central-1b")
    with pytest.raises(ClientError) as failure:
        ec2.terminate_instances(InstanceIds=[beside, elsewhere, protected])
    assert code(failure) == "OperationNotPermitted"
    states = {i["InstanceId"]: i["State"]["Name"] for i in described(ec2)}
    assert states == {protected: "running", beside: "running", elsewhere: "shutting-down"}


def test_spot_requests_have_ages_states_and_filters(ec2):
    worker = seeding.instance(key_name="runner-a-prod-1")
    active = seeding.spot_request("runner-a-prod-1", "active", age=600, instance_id=worker)
    waiting = seeding.spot_request("runner-a-prod-2", age=60)

    def listed(**condition):
        filters = [
            {"Name": name.replace("_", "-").replace("key-name", "launch.key-name"), "Values": [v]}
            for name, v in condition.items()
        ]
        return ec2.describe_spot_instance_requests(Filters=filters)["SpotInstanceRequests"]

    assert {r["SpotInstanceRequestId"]: r.get("InstanceId") for r in listed()} == {
        active: worker,
        waiting: None,
    }
    assert [r["SpotInstanceRequestId"] for r in listed(key_name="runner-a-prod-2")] == [waiting]
    assert [r["SpotInstanceRequestId"] for r in listed(instance_id=worker)] == [active]
    ages = {r["SpotInstanceRequestId"]: r["CreateTime"] for r in listed()}
    assert abs((ages[waiting] - ages[active]).total_seconds() - 540) < 2
    assert described(ec2, InstanceIds=[worker])[0]["SpotInstanceRequestId"] == active

    with pytest.raises(ClientError) as failure:
        ec2.cancel_spot_instance_requests(SpotInstanceRequestIds=[waiting, "sir-00000000"])
    assert code(failure) == "InvalidSpotInstanceRequestID.NotFound"
    assert [r["SpotInstanceRequestId"] for r in listed(state="open")] == [waiting]
    ec2.cancel_spot_instance_requests(SpotInstanceRequestIds=[waiting])
    assert [r["State"] for r in listed(key_name="runner-a-prod-2")] == ["cancelled"]
    ec2.terminate_instances(InstanceIds=[worker])
    assert [r["State"] for r in listed(instance_id=worker)] == ["closed"]


def test_new_spot_requests_stay_open_without_capacity(ec2):
    wanted = {
        "InstanceCount": 1,
        "LaunchSpecification": {
            "ImageId": "ami-12c6146b",
            "InstanceType": "t3.micro",
            "KeyName": "k",
        },
    }
    (request,) = ec2.request_spot_instances(**wanted)["SpotInstanceRequests"]
    assert request["State"] == "active"
    SETTINGS.spot_capacity = False
    (request,) = ec2.request_spot_instances(**wanted)["SpotInstanceRequests"]
    assert (request["State"], request.get("InstanceId")) == ("open", None)
    assert time.time() - request["CreateTime"].timestamp() < 5


def test_spot_requests_are_paged(ec2):
    seeding.seed({"spot_requests": [{"count": 12, "key_name": KEY}]})
    pages = ec2.get_paginator("describe_spot_instance_requests").paginate(
        PaginationConfig={"PageSize": 5}
    )
    assert [len(page["SpotInstanceRequests"]) for page in pages] == [5, 5, 2]


def test_key_pairs_go_by_id_and_by_name(ec2):
    began = time.time()
    ids = seeding.seed({"key_pairs": [{"count": 4000, "name": KEY, "age": 86400}]})["key_pairs"]
    assert time.time() - began < 5
    ec2.delete_key_pair(KeyPairId=ids[0])
    name = ec2.describe_key_pairs(Filters=[{"Name": "key-pair-id", "Values": [ids[1]]}])[
        "KeyPairs"
    ][0]["KeyName"]
    ec2.delete_key_pair(KeyName=name)
    ec2.delete_key_pair(KeyPairId=ids[0])
    left = ec2.describe_key_pairs()["KeyPairs"]
    assert {key["KeyPairId"] for key in left} == set(ids[2:])
    assert time.time() - left[0]["CreateTime"].timestamp() > 86000


def test_addresses_are_in_use_until_their_instance_ends(ec2):
    worker = seeding.instance()
    address = seeding.address({"lifecycle-reaper:owner": PARENT}, worker)
    with pytest.raises(ClientError) as failure:
        ec2.release_address(AllocationId=address)
    assert code(failure) == "InvalidIPAddress.InUse"
    ec2.terminate_instances(InstanceIds=[worker])
    wait_until(
        lambda: "AssociationId" not in ec2.describe_addresses()["Addresses"][0],
        what="the address to be free",
    )
    (shown,) = ec2.describe_addresses()["Addresses"]
    assert "InstanceId" not in shown
    assert shown["Tags"] == [{"Key": "lifecycle-reaper:owner", "Value": PARENT}]
    ec2.release_address(AllocationId=address, NetworkBorderGroup=shown["NetworkBorderGroup"])
    with pytest.raises(ClientError) as failure:
        ec2.release_address(AllocationId=address)
    assert code(failure) == "InvalidAllocationID.NotFound"


def test_tags_of_addresses_can_be_set_and_removed(ec2):
    address = seeding.address()
    ec2.create_tags(
        Resources=[address], Tags=[{"Key": "lifecycle-reaper:unassociated-since", "Value": "1"}]
    )
    assert ec2.describe_addresses()["Addresses"][0]["Tags"]
    ec2.delete_tags(Resources=[address], Tags=[{"Key": "lifecycle-reaper:unassociated-since"}])
    assert ec2.describe_addresses()["Addresses"][0].get("Tags", []) == []


def test_fleets_are_listed_in_pages_and_deleted_one_result_each(ec2):
    fleets = seeding.seed(
        {"fleets": [{"count": 3, "age": 60, "tags": {"gitlab-runner-parent-id": PARENT}}]}
    )["fleets"]
    pages = list(ec2.get_paginator("describe_fleets").paginate(PaginationConfig={"PageSize": 2}))
    assert [len(page["Fleets"]) for page in pages] == [2, 1]
    assert pages[0]["Fleets"][0]["Tags"] == [{"Key": "gitlab-runner-parent-id", "Value": PARENT}]
    worker = seeding.instance(tags={"aws:ec2:fleet-id": fleets[0]})
    answer = ec2.delete_fleets(FleetIds=[*fleets, "fleet-0"], TerminateInstances=False)
    assert [d["CurrentFleetState"] for d in answer["SuccessfulFleetDeletions"]] == [
        "deleted_running",
        "deleted",
        "deleted",
    ]
    assert [d["Error"]["Code"] for d in answer["UnsuccessfulFleetDeletions"]] == [
        "fleetIdDoesNotExist"
    ]
    assert described(ec2, InstanceIds=[worker])[0]["State"]["Name"] == "running"


def test_an_instant_fleet_is_listed_by_its_id_only_and_goes_with_its_instances(ec2):
    fleet = seeding.fleet(type="instant")
    worker = seeding.instance(tags={"aws:ec2:fleet-id": fleet})
    assert ec2.describe_fleets()["Fleets"] == []
    assert ec2.describe_fleets(FleetIds=[fleet])["Fleets"][0]["Type"] == "instant"
    with pytest.raises(ClientError) as failure:
        ec2.delete_fleets(FleetIds=[fleet], TerminateInstances=False)
    assert code(failure) == "NoTerminateInstancesNotSupported"
    ec2.delete_fleets(FleetIds=[fleet], TerminateInstances=True)
    assert described(ec2, InstanceIds=[worker])[0]["State"]["Name"] == "shutting-down"


def test_spot_fleet_requests_are_cancelled_with_or_without_their_instances(ec2):
    request = seeding.spot_fleet_request("fleet-key", age=60)
    worker = seeding.instance(tags={"aws:ec2spot:fleet-request-id": request})
    (shown,) = ec2.describe_spot_fleet_requests()["SpotFleetRequestConfigs"]
    assert (
        shown["SpotFleetRequestState"],
        shown["SpotFleetRequestConfig"]["LaunchSpecifications"][0]["KeyName"],
    ) == ("active", "fleet-key")
    answer = ec2.cancel_spot_fleet_requests(
        SpotFleetRequestIds=[request, "sfr-0"], TerminateInstances=False
    )
    assert [c["CurrentSpotFleetRequestState"] for c in answer["SuccessfulFleetRequests"]] == [
        "cancelled_running"
    ]
    assert [c["Error"]["Code"] for c in answer["UnsuccessfulFleetRequests"]] == [
        "fleetRequestIdDoesNotExist"
    ]
    assert described(ec2, InstanceIds=[worker])[0]["State"]["Name"] == "running"
