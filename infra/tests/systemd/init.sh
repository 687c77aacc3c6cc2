#!/bin/bash
# The first process of a machine made of namespaces alone: a real systemd with journald and no unit
# but those that a test writes to /run/systemd/system.
set -euo pipefail

mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/lock /run/systemd/system
umount -R /sys/fs/cgroup 2>/dev/null || umount -l /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /etc/systemd/system
mount -t tmpfs tmpfs /var/log
hostname drain-test

cat >/run/systemd/system/drain-test.target <<UNIT
[Unit]
DefaultDependencies=no
Wants=systemd-journald.service
UNIT

export container=drain-test
exec /lib/systemd/systemd --system --unit=drain-test.target --log-target=console --log-level=warning --show-status=0
