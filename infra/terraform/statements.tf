# Least privilege: one statement for each kind and call, with the narrowest resource and condition that
# AWS supports for it. infra/iam/cases.json proves each of them, and infra/iam/operations.json says
# which call of the code needs which.

locals {
  group_arns   = [for group in var.auto_scaling_groups : "arn:${local.partition}:autoscaling:${local.region}:${local.account}:autoScalingGroup:*:autoScalingGroupName/${group}"]
  document_arn = "arn:${local.partition}:ssm:${local.region}:${local.account}:document/${local.document_name}"
  log_arn      = "arn:${local.partition}:logs:${local.region}:${local.account}:log-group:${local.log_group_name}"
  key_names    = var.executor_name == null ? "runner-*" : "runner-*-${var.executor_name}-*"
  eip_tag      = regex("^(?P<key>[^=]*)=(?P<value>.*)$", coalesce(var.eip_tag, "="))

  # Conditions that several statements share.
  in_region   = { StringEquals = { "aws:RequestedRegion" = local.region } }
  has_parent  = { StringLike = { "ec2:ResourceTag/${var.parent_tag}" = "i-*" } }
  has_owner   = { StringLike = { "ec2:ResourceTag/${var.owner_tag}" = "i-*" } }
  has_eip_tag = { StringEquals = { "ec2:ResourceTag/${local.eip_tag.key}" = local.eip_tag.value } }
  mark_only = {
    "ForAllValues:StringEquals" = { "aws:TagKeys" = ["lifecycle-reaper:unassociated-since"] }
    Null                        = { "aws:TagKeys" = "false" }
  }

  # Every statement with whether this deployment wants it; the policies hold those that it wants.
  policies = { for policy, statements in {
    run     = local.run_statements
    observe = local.observe_statements
    act     = concat(local.drain_statements, local.reap_statements, local.fleet_statements, local.guard_statements)
    hook    = local.hook_statements
    } : policy => {
    Version   = "2012-10-17"
    Statement = [for statement in statements : { for key, value in statement : key => value if key != "when" } if try(statement.when, true)]
  } }
}

locals {
  network_actions = [
    "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets",
    "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses",
  ]

  run_statements = [
    {
      Sid      = "WriteLog"
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
      Resource = "${local.log_arn}:log-stream:*"
    },
    {
      # receiving, deleting and reading attributes is the event source mapping's part
      Sid      = "WorkQueue"
      Effect   = "Allow"
      Action   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ChangeMessageVisibility", "sqs:SendMessage"]
      Resource = local.work_queue_arn
    },
    {
      Sid      = "DeadLetters"
      Effect   = "Allow"
      Action   = ["sqs:SendMessage"]
      Resource = local.dead_letter_queue_arn
    },
    {
      when     = var.kms_key_arn != null
      Sid      = "Key"
      Effect   = "Allow"
      Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
      Resource = var.kms_key_arn
    },
    {
      when     = var.xray_tracing
      Sid      = "Traces"
      Effect   = "Allow"
      Action   = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
      Resource = "*"
    },
    {
      when     = var.vpc_config != null
      Sid      = "Network"
      Effect   = "Allow"
      Action   = local.network_actions
      Resource = "*"
    },
    {
      # Lambda attaches the function to the network with the function's role; the code has no use for it
      when      = var.vpc_config != null
      Sid       = "NetworkIsLambdasAlone"
      Effect    = "Deny"
      Action    = local.network_actions
      Resource  = "*"
      Condition = { ArnEquals = { "lambda:SourceFunctionArn" = local.function_arn } }
    },
  ]

  # Reads have no narrower resource than "*".
  observe_statements = [for read in [
    { sid = "ReadInstances", actions = ["ec2:DescribeInstances"] },
    { sid = "ReadSpotRequests", actions = ["ec2:DescribeSpotInstanceRequests"] },
    { sid = "ReadKeyPairs", actions = ["ec2:DescribeKeyPairs"] },
    { sid = "ReadAddresses", actions = ["ec2:DescribeAddresses"] },
    { sid = "ReadGroups", actions = ["autoscaling:DescribeAutoScalingInstances", "autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeLifecycleHooks", "autoscaling:DescribeScalingActivities"] },
    { sid = "ReadCommands", actions = ["ssm:ListCommands", "ssm:GetCommandInvocation"], when = var.drain == "ssm" },
    { sid = "ReadFleets", actions = ["ec2:DescribeFleets", "ec2:DescribeSpotFleetRequests"], when = contains(var.reap, "fleets") },
    ] : {
    when = try(read.when, true), Sid = read.sid, Effect = "Allow", Action = read.actions, Resource = "*", Condition = local.in_region
  }]

  drain_statements = [
    {
      when     = local.hook_name != null
      Sid      = "HooksOfOurGroups"
      Effect   = "Allow"
      Action   = ["autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat"]
      Resource = local.group_arns
    },
    {
      when     = var.drain == "ssm"
      Sid      = "SendOurDocument"
      Effect   = "Allow"
      Action   = ["ssm:SendCommand"]
      Resource = local.document_arn
    },
    {
      when      = var.drain == "ssm"
      Sid       = "SendToOurGroups"
      Effect    = "Allow"
      Action    = ["ssm:SendCommand"]
      Resource  = "${local.ec2}:instance/*"
      Condition = { StringEquals = { "ssm:resourceTag/aws:autoscaling:groupName" = var.auto_scaling_groups } }
    },
  ]

  reap_statements = [
    {
      when      = contains(var.reap, "workers")
      Sid       = "TerminateWorkers"
      Effect    = "Allow"
      Action    = ["ec2:TerminateInstances"]
      Resource  = "${local.ec2}:instance/*"
      Condition = local.has_parent
    },
    {
      when     = contains(var.reap, "workers") && length(var.untagged_worker_instance_profile_arns) > 0
      Sid      = "TerminateUntaggedWorkers"
      Effect   = "Allow"
      Action   = ["ec2:TerminateInstances"]
      Resource = "${local.ec2}:instance/*"
      Condition = {
        ArnEquals = { "ec2:InstanceProfile" = var.untagged_worker_instance_profile_arns }
        Null      = { "ec2:ResourceTag/${var.parent_tag}" = "true" }
      }
    },
    {
      when      = contains(var.reap, "spot-requests")
      Sid       = "CancelOwnedSpotRequests"
      Effect    = "Allow"
      Action    = ["ec2:CancelSpotInstanceRequests"]
      Resource  = "${local.ec2}:spot-instances-request/*"
      Condition = local.has_owner
    },
    {
      when      = contains(var.reap, "spot-requests") && var.cancel_untagged_spot_requests
      Sid       = "CancelUntaggedSpotRequests"
      Effect    = "Allow"
      Action    = ["ec2:CancelSpotInstanceRequests"]
      Resource  = "${local.ec2}:spot-instances-request/*"
      Condition = { Null = { "ec2:ResourceTag/${var.owner_tag}" = "true" } }
    },
    {
      when      = contains(var.reap, "key-pairs")
      Sid       = "DeleteRunnerKeyPairs"
      Effect    = "Allow"
      Action    = ["ec2:DeleteKeyPair"]
      Resource  = "${local.ec2}:key-pair/*"
      Condition = { StringLike = { "ec2:KeyPairName" = local.key_names } }
    },
    {
      when      = contains(var.reap, "addresses")
      Sid       = "ReleaseOwnedAddresses"
      Effect    = "Allow"
      Action    = ["ec2:ReleaseAddress"]
      Resource  = "${local.ec2}:elastic-ip/*"
      Condition = local.has_owner
    },
    {
      when      = contains(var.reap, "addresses")
      Sid       = "MarkOwnedAddresses"
      Effect    = "Allow"
      Action    = ["ec2:CreateTags", "ec2:DeleteTags"]
      Resource  = "${local.ec2}:elastic-ip/*"
      Condition = merge(local.has_owner, local.mark_only)
    },
    {
      when      = contains(var.reap, "addresses") && var.eip_tag != null
      Sid       = "ReleaseTaggedAddresses"
      Effect    = "Allow"
      Action    = ["ec2:ReleaseAddress"]
      Resource  = "${local.ec2}:elastic-ip/*"
      Condition = local.has_eip_tag
    },
    {
      when      = contains(var.reap, "addresses") && var.eip_tag != null
      Sid       = "MarkTaggedAddresses"
      Effect    = "Allow"
      Action    = ["ec2:CreateTags", "ec2:DeleteTags"]
      Resource  = "${local.ec2}:elastic-ip/*"
      Condition = merge(local.has_eip_tag, local.mark_only)
    },
  ]

  fleet_statements = [for fleet in [
    { sid = "DeleteFleetsOfParents", action = "ec2:DeleteFleets", resource = "fleet", condition = local.has_parent },
    { sid = "DeleteOwnedFleets", action = "ec2:DeleteFleets", resource = "fleet", condition = local.has_owner },
    { sid = "CancelSpotFleetsOfParents", action = "ec2:CancelSpotFleetRequests", resource = "spot-fleet-request", condition = local.has_parent },
    { sid = "CancelOwnedSpotFleets", action = "ec2:CancelSpotFleetRequests", resource = "spot-fleet-request", condition = local.has_owner },
    ] : {
    when      = contains(var.reap, "fleets")
    Sid       = fleet.sid
    Effect    = "Allow"
    Action    = [fleet.action]
    Resource  = "${local.ec2}:${fleet.resource}/*"
    Condition = fleet.condition
  }]

  # Promises that hold whatever the code decides.
  guard_statements = [
    {
      Sid    = "KeepTagProtects"
      Effect = "Deny"
      Action = [
        "ec2:TerminateInstances", "ec2:CancelSpotInstanceRequests", "ec2:DeleteKeyPair", "ec2:ReleaseAddress",
        "ec2:DeleteFleets", "ec2:CancelSpotFleetRequests",
      ]
      Resource  = "*"
      Condition = { Null = { "ec2:ResourceTag/${var.keep_tag}" = "false" } }
    },
    {
      Sid       = "ManagersAreNoWorkers"
      Effect    = "Deny"
      Action    = ["ec2:TerminateInstances"]
      Resource  = "*"
      Condition = { StringEquals = { "ec2:ResourceTag/aws:autoscaling:groupName" = var.auto_scaling_groups } }
    },
  ]

  hook_statements = [
    {
      Sid      = "Notify"
      Effect   = "Allow"
      Action   = ["sqs:SendMessage"]
      Resource = local.work_queue_arn
    },
    {
      when     = var.kms_key_arn != null
      Sid      = "Key"
      Effect   = "Allow"
      Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
      Resource = var.kms_key_arn
    },
  ]

  # For the key's own policy, which this module does not own.
  kms_key_policy_statements = [
    {
      Sid       = "EventBridgeWritesToTheQueues"
      Effect    = "Allow"
      Principal = { Service = "events.amazonaws.com" }
      Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
      Resource  = "*"
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    },
    {
      Sid       = "CloudWatchLogsEncryptsTheLog"
      Effect    = "Allow"
      Principal = { Service = "logs.${local.region}.amazonaws.com" }
      Action    = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
      Resource  = "*"
      Condition = { ArnEquals = { "kms:EncryptionContext:aws:logs:arn" = local.log_arn } }
    },
    {
      Sid       = "OurRolesUseIt"
      Effect    = "Allow"
      Principal = { AWS = concat([aws_iam_role.function.arn], aws_iam_role.hook[*].arn) }
      Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
      Resource  = "*"
    },
  ]
}
