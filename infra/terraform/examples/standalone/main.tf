# A group of GitLab Runner managers with lifecycle-reaper beside it, from nothing.
#
# The termination hook is written into the group itself (initial_lifecycle_hook) and speaks to the module's
# queue. So the group depends on the module, and not the other way round: `terraform destroy` takes the group
# first, its last managers drain, and only then go the queue, the function and the hook's role.

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0, < 7.0"
    }
  }
}

data "aws_partition" "current" {}

locals {
  group = "${var.environment}-managers"
  hook  = "${var.environment}-terminate"
}

module "lifecycle_reaper" {
  source = "../.."

  auto_scaling_groups = [local.group]
  mode                = var.mode
  executor_name       = var.environment
  architecture        = var.architecture
  package             = { path = var.package_path }

  create_lifecycle_hook = false
  lifecycle_hook_name   = local.hook
  lifecycle_hook_target = "queue"
  drain_timeout_seconds = 7200

  # docker-machine tags its workers last and its spot requests never: let the function clean those up too
  untagged_worker_instance_profile_arns = [aws_iam_instance_profile.worker.arn]
  cancel_untagged_spot_requests         = true

  name_prefix     = "${var.environment}-"
  alarm_topic_arn = var.alarm_topic_arn
}

resource "aws_autoscaling_group" "managers" {
  name                = local.group
  min_size            = 1
  max_size            = 2
  vpc_zone_identifier = var.subnet_ids

  launch_template {
    id      = aws_launch_template.manager.id
    version = aws_launch_template.manager.latest_version
  }

  # In plan mode nobody would complete the hook: the group has none until the mode is enforce.
  dynamic "initial_lifecycle_hook" {
    for_each = var.mode == "enforce" ? [local.hook] : []
    content {
      name                    = initial_lifecycle_hook.value
      lifecycle_transition    = "autoscaling:EC2_INSTANCE_TERMINATING"
      default_result          = "CONTINUE"
      heartbeat_timeout       = module.lifecycle_reaper.heartbeat_timeout_seconds
      notification_target_arn = module.lifecycle_reaper.work_queue_arn
      role_arn                = module.lifecycle_reaper.hook_role_arn
    }
  }

  timeouts {
    delete = "150m" # longer than the drain timeout: destroying the group waits for its managers
  }
}

resource "aws_launch_template" "manager" {
  name_prefix   = "${local.group}-"
  image_id      = var.image_id
  instance_type = "t3.small"

  iam_instance_profile {
    arn = aws_iam_instance_profile.manager.arn
  }

  metadata_options {
    http_tokens = "required"
  }

  # Where the runner is installed and configured is up to the image. On the first page of its config.toml:
  # MachineName = "<environment>-%s", so that workers and keys carry the executor name.
  user_data = base64encode(<<-SCRIPT
    #!/bin/bash
    /opt/lifecycle-reaper/instance/install ${local.group}
  SCRIPT
  )
}

data "aws_iam_policy_document" "ec2" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "manager" {
  name               = "${local.group}-manager"
  assume_role_policy = data.aws_iam_policy_document.ec2.json
}

resource "aws_iam_instance_profile" "manager" {
  name = "${local.group}-manager"
  role = aws_iam_role.manager.name
}

# The SSM agent's rights: without them the drain document can't reach the manager.
resource "aws_iam_role_policy_attachment" "ssm" {
  role       = aws_iam_role.manager.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"
}

# The manager's own Elastic IP.
resource "aws_iam_role_policy" "address" {
  name   = "address"
  role   = aws_iam_role.manager.id
  policy = file("${path.module}/../../../instance/address-policy.json")
}

resource "aws_iam_role" "worker" {
  name               = "${local.group}-worker"
  assume_role_policy = data.aws_iam_policy_document.ec2.json
}

resource "aws_iam_instance_profile" "worker" {
  name = "${local.group}-worker"
  role = aws_iam_role.worker.name
}
