"""A world of the stub: so many managers with so many workers and keys, rendered once as the pages that EC2 and Auto Scaling answer.

The instances carry what EC2 really sends of each, because a page's size is what parsing and memory are measured by.
"""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

GROUP, EXECUTOR = "ci-linux-asg", "ci-linux"
PAGE = 500


@dataclass
class World:
    managers: int = 0
    workers: int = 0
    keys: int = 0
    strangers: int = 0
    """Instances that are nobody of ours."""

    first_manager_is_gone: bool = False
    now: float = field(default_factory=time.time)

    @property
    def instances(self) -> int:
        return self.managers + self.workers + self.strangers

    def manager_id(self, number: int) -> str:
        return f"i-0a{number:015x}"

    def pages(self) -> dict[tuple[str, str], bytes]:
        """Every answer by operation and page token."""
        answers = {
            ("DescribeAutoScalingGroups", ""): groups(self),
            ("DescribeKeyPairs", ""): ec2("DescribeKeyPairs", "keySet", [self.key(n) for n in range(self.keys)]),
        }
        items = [self.instance(n) for n in range(self.instances)]
        for start in range(0, max(len(items), 1), PAGE):
            token = f"p{start}" if start else ""
            following = f"p{start + PAGE}" if start + PAGE < len(items) else ""
            answers["DescribeInstances", token] = ec2("DescribeInstances", "reservationSet", items[start : start + PAGE], following)
        return answers

    def born(self, number: int) -> datetime:
        return datetime.fromtimestamp(self.now, UTC) - timedelta(hours=3, seconds=number % 3600)

    def key_name(self, number: int) -> str:
        return f"runner-abcdefgh-{EXECUTOR}-{int(self.born(number).timestamp())}-{number:08x}"

    def key(self, number: int) -> str:
        stamp = self.born(number).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        return (
            f"<item><keyPairId>key-0{number:016x}</keyPairId><keyType>rsa</keyType><createTime>{stamp}</createTime>"
            f"<keyName>{self.key_name(number)}</keyName>"
            f"<keyFingerprint>1f:51:ae:28:bf:89:e9:d8:1f:25:5d:37:2d:7d:b8:ca:9f:f5:{number % 256:02x}:c9</keyFingerprint></item>"
        )

    def instance(self, number: int) -> str:
        """Managers come first, then workers dealt out to them in turn, then strangers."""
        worker = number - self.managers
        if worker < 0:
            tags = {"Name": "manager", "aws:autoscaling:groupName": GROUP}
            is_gone = number == 0 and self.first_manager_is_gone
            return instance_item(self, number, self.manager_id(number), tags, "", is_gone)
        if worker < self.workers:
            tags = {"Name": self.key_name(worker), "gitlab-runner-parent-id": self.manager_id(worker % max(self.managers, 1))}
            return instance_item(self, number, f"i-0b{worker:015x}", tags, self.key_name(worker), False)
        return instance_item(self, number, f"i-0c{worker:015x}", {"Name": "web", "team": "another"}, "web-key", False)


def ec2(operation: str, container: str, items: list[str], following: str = "") -> bytes:
    token = f"<nextToken>{following}</nextToken>" if following else ""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{operation}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
        f"<requestId>8f7724cf-496f-496e-8fe3-000000000000</requestId><{container}>{''.join(items)}</{container}>{token}</{operation}Response>"
    ).encode()


def groups(world: World) -> bytes:
    first = 1 if world.first_manager_is_gone else 0
    members = "".join(
        f"<member><InstanceId>{world.manager_id(n)}</InstanceId><AvailabilityZone>eu-central-1a</AvailabilityZone>"
        "<LifecycleState>InService</LifecycleState><HealthStatus>Healthy</HealthStatus><ProtectedFromScaleIn>false</ProtectedFromScaleIn>"
        "<InstanceType>m6i.large</InstanceType></member>"
        for n in range(first, world.managers)
    )
    return (
        '<DescribeAutoScalingGroupsResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><DescribeAutoScalingGroupsResult>'
        f"<AutoScalingGroups><member><AutoScalingGroupName>{GROUP}</AutoScalingGroupName><MinSize>0</MinSize><MaxSize>1000</MaxSize>"
        "<DesiredCapacity>100</DesiredCapacity><DefaultCooldown>300</DefaultCooldown><HealthCheckType>EC2</HealthCheckType>"
        f"<CreatedTime>2025-01-01T00:00:00Z</CreatedTime><Instances>{members}</Instances></member></AutoScalingGroups>"
        "</DescribeAutoScalingGroupsResult><ResponseMetadata><RequestId>8f7724cf</RequestId></ResponseMetadata></DescribeAutoScalingGroupsResponse>"
    ).encode()


def instance_item(world: World, number: int, instance_id: str, tags: dict[str, str], key: str, is_gone: bool) -> str:
    stamp = world.born(number).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    ended = datetime.fromtimestamp(world.now, UTC).strftime("%Y-%m-%d %H:%M:%S")
    state, reason = ("<code>48</code><name>terminated</name>", f"User initiated ({ended} GMT)") if is_gone else ("<code>16</code><name>running</name>", "")
    tag_set = "".join(f"<item><key>{k}</key><value>{v}</value></item>" for k, v in tags.items())
    key_name = f"<keyName>{key}</keyName>" if key else ""
    a, b, unit = number // 250 % 250, number % 250, f"0{number:016x}"
    return (
        f"<item><reservationId>r-{unit}</reservationId><ownerId>123456789012</ownerId><groupSet/><instancesSet><item><instanceId>{instance_id}</instanceId>"
        f"<imageId>ami-0123456789abcdef0</imageId><instanceState>{state}</instanceState><privateDnsName>ip-10-0-{a}-{b}.eu-central-1.compute.internal</privateDnsName>"
        f"<dnsName>ec2-3-120-{a}-{b}.eu-central-1.compute.amazonaws.com</dnsName><reason>{reason}</reason>{key_name}<amiLaunchIndex>0</amiLaunchIndex><productCodes/>"
        f"<instanceType>m6i.large</instanceType><launchTime>{stamp}</launchTime><placement><availabilityZoneId>euc1-az2</availabilityZoneId>"
        "<availabilityZone>eu-central-1a</availabilityZone><groupName/><tenancy>default</tenancy></placement><monitoring><state>disabled</state></monitoring>"
        f"<subnetId>subnet-0123456789abcdef0</subnetId><vpcId>vpc-0123456789abcdef0</vpcId><privateIpAddress>10.0.{a}.{b}</privateIpAddress>"
        f"<ipAddress>3.120.{a}.{b}</ipAddress><sourceDestCheck>true</sourceDestCheck><groupSet><item><groupId>sg-0123456789abcdef0</groupId>"
        "<groupName>workers</groupName></item></groupSet><architecture>x86_64</architecture><rootDeviceType>ebs</rootDeviceType>"
        "<rootDeviceName>/dev/xvda</rootDeviceName><blockDeviceMapping><item><deviceName>/dev/xvda</deviceName><ebs>"
        f"<volumeId>vol-{unit}</volumeId><status>attached</status><attachTime>{stamp}</attachTime><deleteOnTermination>true</deleteOnTermination>"
        f"</ebs></item></blockDeviceMapping><virtualizationType>hvm</virtualizationType><clientToken>fleet-{unit}</clientToken><tagSet>{tag_set}</tagSet>"
        f"<hypervisor>xen</hypervisor><networkInterfaceSet><item><networkInterfaceId>eni-{unit}</networkInterfaceId><subnetId>subnet-0123456789abcdef0</subnetId>"
        f"<vpcId>vpc-0123456789abcdef0</vpcId><description/><ownerId>123456789012</ownerId><status>in-use</status><macAddress>02:00:00:00:{a:02x}:{b:02x}</macAddress>"
        f"<privateIpAddress>10.0.{a}.{b}</privateIpAddress><privateDnsName>ip-10-0-{a}-{b}.eu-central-1.compute.internal</privateDnsName>"
        "<sourceDestCheck>true</sourceDestCheck><groupSet><item><groupId>sg-0123456789abcdef0</groupId><groupName>workers</groupName></item></groupSet>"
        f"<attachment><attachmentId>eni-attach-{unit}</attachmentId><deviceIndex>0</deviceIndex><status>attached</status><attachTime>{stamp}</attachTime>"
        "<deleteOnTermination>true</deleteOnTermination><networkCardIndex>0</networkCardIndex></attachment><association>"
        f"<publicIp>3.120.{a}.{b}</publicIp><publicDnsName>ec2-3-120-{a}-{b}.eu-central-1.compute.amazonaws.com</publicDnsName><ipOwnerId>amazon</ipOwnerId>"
        f"</association><privateIpAddressesSet><item><privateIpAddress>10.0.{a}.{b}</privateIpAddress>"
        f"<privateDnsName>ip-10-0-{a}-{b}.eu-central-1.compute.internal</privateDnsName><primary>true</primary></item></privateIpAddressesSet>"
        "<ipv6AddressesSet/><interfaceType>interface</interfaceType></item></networkInterfaceSet><ebsOptimized>true</ebsOptimized><enaSupport>true</enaSupport>"
        "<iamInstanceProfile><arn>arn:aws:iam::123456789012:instance-profile/worker</arn><id>AIPA0123456789ABCDEF0</id></iamInstanceProfile>"
        "<cpuOptions><coreCount>1</coreCount><threadsPerCore>2</threadsPerCore></cpuOptions><capacityReservationSpecification>"
        "<capacityReservationPreference>open</capacityReservationPreference></capacityReservationSpecification><hibernationOptions><configured>false</configured>"
        "</hibernationOptions><metadataOptions><state>applied</state><httpTokens>required</httpTokens><httpPutResponseHopLimit>2</httpPutResponseHopLimit>"
        "<httpEndpoint>enabled</httpEndpoint><httpProtocolIpv6>disabled</httpProtocolIpv6><instanceMetadataTags>disabled</instanceMetadataTags></metadataOptions>"
        f"<enclaveOptions><enabled>false</enabled></enclaveOptions><platformDetails>Linux/UNIX</platformDetails><usageOperation>RunInstances</usageOperation>"
        f"<usageOperationUpdateTime>{stamp}</usageOperationUpdateTime><privateDnsNameOptions><hostnameType>ip-name</hostnameType>"
        "<enableResourceNameDnsARecord>false</enableResourceNameDnsARecord></privateDnsNameOptions><maintenanceOptions><autoRecovery>default</autoRecovery>"
        "</maintenanceOptions></item></instancesSet></item>"
    )
