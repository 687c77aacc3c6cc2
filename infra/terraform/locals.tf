data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  name      = "${var.name_prefix}${var.name}"
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.region
  account   = data.aws_caller_identity.current.account_id
  # service:region:account of an ARN's beginning, for the services that policies name
  ec2 = "arn:${local.partition}:ec2:${local.region}:${local.account}"
  sqs = "arn:${local.partition}:sqs:${local.region}:${local.account}"

  work_queue_arn        = "${local.sqs}:${local.name}-work"
  dead_letter_queue_arn = "${local.sqs}:${local.name}-dead-letters"
  function_arn          = "arn:${local.partition}:lambda:${local.region}:${local.account}:function:${local.name}"
  log_group_name        = "/aws/lambda/${local.name}"
  document_name         = "${local.name}-drain"
  hook_name             = try(coalesce(var.lifecycle_hook_name), var.create_lifecycle_hook ? "${local.name}-terminate" : null)

  enforce      = var.mode == "enforce"
  create_hook  = var.create_lifecycle_hook && local.enforce
  hook_role    = local.create_hook || (!var.create_lifecycle_hook && var.lifecycle_hook_target == "queue")
  hook_by_rule = !var.create_lifecycle_hook && var.lifecycle_hook_target == "eventbridge" && local.hook_name != null
}

# The arithmetic. infra/sam/template.yaml has its results as a mapping; the parity test compares them.
locals {
  # Long enough that an outage of 40 minutes cuts no job, never longer than half a short drain. The hook's
  # global timeout (the smaller of 48 hours and 100 heartbeats) is then always beyond the drain timeout.
  heartbeat_timeout_seconds = min(3600, max(300, ceil(var.drain_timeout_seconds / 2)))

  # A long drain is looked at about every 12 minutes; twice as often as that, and fifty more for short
  # waits at the beginning, for reaping afterwards and for throttled deliveries, which count too.
  max_receive_count = 50 + ceil(var.drain_timeout_seconds / 300)

  # What Lambda asks for, so that a batch that timed out is not handed out again while it still runs.
  visibility_timeout_seconds = 6 * var.function_timeout_seconds

  # A task that outlived its drain by half an hour should have been released and reaped long ago.
  oldest_task_alarm_seconds = var.drain_timeout_seconds + 1800
}
