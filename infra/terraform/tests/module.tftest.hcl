# What the module creates, and what it refuses. infra/tests compares it whole with the SAM template; here
# stand the promises that must hold by themselves.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { region = "eu-central-1" }
  }
}

variables {
  auto_scaling_groups = ["ci-linux-asg"]
  package             = { s3_bucket = "code", s3_key = "bootstrap.zip", hash = "c2hh" }
}

run "plan_mode_changes_nothing" {
  command = apply

  assert {
    condition     = length(aws_autoscaling_lifecycle_hook.terminate) == 0
    error_message = "in plan mode nothing would complete a hook"
  }
  assert {
    condition     = length(aws_iam_role_policy.act) == 0
    error_message = "in plan mode nothing may be deleted"
  }
  assert {
    condition     = aws_lambda_function.reaper.environment[0].variables["MODE"] == "plan"
    error_message = "plan is the default"
  }
}

run "function" {
  command = apply

  assert {
    condition     = aws_lambda_function.reaper.runtime == "provided.al2023" && aws_lambda_function.reaper.handler == "bootstrap" && one(aws_lambda_function.reaper.architectures) == "arm64"
    error_message = "a bootstrap for provided.al2023 on arm64"
  }
  assert {
    condition     = contains(aws_lambda_event_source_mapping.work.function_response_types, "ReportBatchItemFailures")
    error_message = "without partial replies failed messages are deleted"
  }
  assert {
    condition     = aws_sqs_queue.work.visibility_timeout_seconds >= 6 * aws_lambda_function.reaper.timeout
    error_message = "a batch that timed out is handed out again while it runs"
  }
  assert {
    condition     = aws_sqs_queue.work.sqs_managed_sse_enabled && aws_sqs_queue.dead_letters.sqs_managed_sse_enabled
    error_message = "queues are encrypted"
  }
  assert {
    condition     = aws_sqs_queue.dead_letters.message_retention_seconds == 1209600 && aws_sqs_queue.work.message_retention_seconds == 345600
    error_message = "14 days for dead letters, 4 for work"
  }
  assert {
    condition     = length(aws_lambda_function.reaper.vpc_config) == 0 && aws_lambda_function.reaper.tracing_config[0].mode == "PassThrough"
    error_message = "no network and no tracing unless asked for"
  }
  assert {
    condition     = !contains(keys(aws_lambda_function.reaper.environment[0].variables), "EXECUTOR_NAME")
    error_message = "what is not set is left out, never empty"
  }
}

run "enforce_creates_the_hook" {
  command = apply
  variables {
    mode                = "enforce"
    auto_scaling_groups = ["ci-linux-asg", "ci-arm-asg"]
  }

  assert {
    condition     = toset(keys(aws_autoscaling_lifecycle_hook.terminate)) == toset(["ci-linux-asg", "ci-arm-asg"])
    error_message = "a hook for each group"
  }
  assert {
    condition     = alltrue([for hook in aws_autoscaling_lifecycle_hook.terminate : hook.default_result == "CONTINUE" && hook.lifecycle_transition == "autoscaling:EC2_INSTANCE_TERMINATING"])
    error_message = "a hook that is forgotten must not keep an instance"
  }
  assert {
    condition     = alltrue([for hook in aws_autoscaling_lifecycle_hook.terminate : hook.heartbeat_timeout == 3600])
    error_message = "heartbeat timeout of a two-hour drain"
  }
  assert {
    condition     = !contains(keys(aws_cloudwatch_event_rule.work), "lifecycle")
    error_message = "the hook speaks to the queue itself"
  }
}

run "longest_drain" {
  command = apply
  variables {
    mode                  = "enforce"
    drain_timeout_seconds = 172800
  }

  assert {
    condition     = min(172800, 100 * aws_autoscaling_lifecycle_hook.terminate["ci-linux-asg"].heartbeat_timeout) >= 172800
    error_message = "48 hours can be reached"
  }
  assert {
    condition     = tonumber(aws_lambda_function.reaper.environment[0].variables["MAX_RECEIVE_COUNT"]) == 626
    error_message = "MAX_RECEIVE_COUNT is the queue's own"
  }
}

run "hook_of_another" {
  command = apply
  variables {
    mode                  = "enforce"
    create_lifecycle_hook = false
    lifecycle_hook_name   = "ci-terminate-instances"
    drain                 = "observe"
  }

  assert {
    condition     = length(aws_autoscaling_lifecycle_hook.terminate) == 0 && length(aws_iam_role.hook) == 0
    error_message = "the hook exists already"
  }
  assert {
    condition     = contains(keys(aws_cloudwatch_event_rule.work), "lifecycle")
    error_message = "it speaks to EventBridge"
  }
  assert {
    condition     = aws_lambda_function.reaper.environment[0].variables["LIFECYCLE_HOOKS"] == "ci-terminate-instances"
    error_message = "the function knows its name"
  }
  assert {
    condition     = length(aws_ssm_document.drain) == 0
    error_message = "observing needs no document"
  }
}

run "hook_inside_the_group" {
  command = apply
  variables {
    mode                  = "enforce"
    create_lifecycle_hook = false
    lifecycle_hook_name   = "inline"
    lifecycle_hook_target = "queue"
  }

  assert {
    condition     = length(aws_iam_role.hook) == 1 && !contains(keys(aws_cloudwatch_event_rule.work), "lifecycle")
    error_message = "the group's own hook gets a role and the queue"
  }
}

run "own_key" {
  command = apply
  variables {
    kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/11111111-2222-3333-4444-555555555555"
  }

  assert {
    condition     = aws_sqs_queue.work.kms_master_key_id == var.kms_key_arn && aws_sqs_queue.dead_letters.kms_master_key_id == var.kms_key_arn
    error_message = "queues under the key"
  }
  assert {
    condition     = aws_cloudwatch_log_group.function.kms_key_id == var.kms_key_arn && aws_lambda_function.reaper.kms_key_arn == var.kms_key_arn
    error_message = "log and environment under the key"
  }
}

run "network_and_traces" {
  command = apply
  variables {
    vpc_config   = { subnet_ids = ["subnet-1"], security_group_ids = ["sg-1"] }
    xray_tracing = true
  }

  assert {
    condition     = length(aws_lambda_function.reaper.vpc_config) == 1 && aws_lambda_function.reaper.tracing_config[0].mode == "Active"
    error_message = "in the VPC, traced"
  }
}

run "everything_has_a_boundary_and_a_prefix" {
  command = apply
  variables {
    mode                     = "enforce"
    permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
    name_prefix              = "team-"
  }

  assert {
    condition     = aws_iam_role.function.permissions_boundary == var.permissions_boundary_arn && aws_iam_role.hook[0].permissions_boundary == var.permissions_boundary_arn
    error_message = "both roles are bounded"
  }
  assert {
    condition     = aws_lambda_function.reaper.function_name == "team-lifecycle-reaper" && startswith(aws_iam_role.function.name, "team-") && endswith(aws_iam_role.function.name, "eu-central-1")
    error_message = "names of one deployment, of one Region"
  }
}

run "local_package" {
  command = apply
  variables {
    package = { path = "./tests/module.tftest.hcl" } # any file: only its hash counts here
  }

  assert {
    condition     = aws_lambda_function.reaper.source_code_hash == filebase64sha256("./tests/module.tftest.hcl")
    error_message = "a changed zip is deployed"
  }
}

run "refuses_a_blank_executor" {
  command = plan
  variables { executor_name = "" }
  expect_failures = [var.executor_name]
}

run "refuses_a_wildcard_executor" {
  command = plan
  variables { executor_name = "*" }
  expect_failures = [var.executor_name]
}

run "refuses_no_group" {
  command = plan
  variables { auto_scaling_groups = [] }
  expect_failures = [var.auto_scaling_groups]
}

run "refuses_a_pattern_of_groups" {
  command = plan
  variables { auto_scaling_groups = ["ci-*"] }
  expect_failures = [var.auto_scaling_groups]
}

run "refuses_other_modes" {
  command = plan
  variables { mode = "delete" }
  expect_failures = [var.mode]
}

run "refuses_a_drain_beyond_48_hours" {
  command = plan
  variables { drain_timeout_seconds = 172801 }
  expect_failures = [var.drain_timeout_seconds]
}

run "refuses_an_existing_hook_without_a_name" {
  command = plan
  variables { create_lifecycle_hook = false }
  expect_failures = [var.lifecycle_hook_name]
}

run "refuses_unknown_kinds" {
  command = plan
  variables { reap = ["volumes"] }
  expect_failures = [var.reap]
}

run "refuses_two_packages" {
  command = plan
  variables { package = { path = "a.zip", s3_bucket = "b", s3_key = "k", hash = "h" } }
  expect_failures = [var.package]
}

run "refuses_half_an_eip_tag" {
  command = plan
  variables { eip_tag = "Environment" }
  expect_failures = [var.eip_tag]
}

run "refuses_other_architectures" {
  command = plan
  variables { architecture = "mips" }
  expect_failures = [var.architecture]
}

run "refuses_other_log_levels" {
  command = plan
  variables { log_level = "verbose" }
  expect_failures = [var.log_level]
}

run "refuses_long_names" {
  command = plan
  variables { name_prefix = "a-prefix-that-would-not-leave-room-for-anything-" }
  expect_failures = [var.name_prefix]
}
