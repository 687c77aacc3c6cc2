# lifecycle-reaper beside cattle-ops/gitlab-runner/aws (written for version 9 and AWS provider 6).
#
# That module brings, and can't be told not to bring: its own termination hook `<environment>-terminate-instances`
# without a target (so EventBridge gets the action), `monitor_runner.sh` on the manager, which stops the runner
# with SIGQUIT and then completes every termination hook of the group, and a Python function that reaps after
# "EC2 Instance Terminate Successful". So here the drain is observed, not driven: our function keeps that hook alive
# with heartbeats while jobs run, and reaps. No SSM is needed for it.
#
# Two steps, each an apply of its own; docs/adoption.md says what to look at in between:
#   1. this file as it is: reaper_mode = "plan", their module works as it did
#   2. reaper_mode = "enforce": ours reaps, and theirs is silenced by the same apply
# The way back is reaper_mode = "plan", and from there to take module.lifecycle_reaper out and apply.

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0, < 7.0"
    }
  }
}

module "runner" {
  source  = "cattle-ops/gitlab-runner/aws"
  version = "~> 9.5"

  environment = var.environment
  vpc_id      = var.vpc_id
  subnet_id   = var.subnet_id

  runner_gitlab = {
    url                                           = var.gitlab_url
    preregistered_runner_token_ssm_parameter_name = var.runner_token_parameter
  }

  runner_instance = {
    name = "${var.environment}-manager"
    # Only for drain = "ssm": attaches AmazonSSMManagedInstanceCore, which the agent of the image needs.
    ssm_access = false
  }

  # How long their hook waits without a heartbeat. An hour lets the module below be away so long; its heartbeats do
  # the rest. Null is the module's own default (the deprecated registration's maximum_timeout + 5 minutes, which is 5
  # minutes where that is not set): put your value in its place if you have one.
  runner_terminate_ec2_lifecycle_timeout_duration = var.reaper_mode == "enforce" ? 3600 : null

  # Their function has no switch. `operator.is_` is a function of Python's own library that takes the event, does
  # nothing and answers false; null brings their reaping back. Whoever reaps, there is always exactly one.
  runner_terminate_ec2_lambda_handler = var.reaper_mode == "enforce" ? "operator.is_" : null
}

module "lifecycle_reaper" {
  source = "../.."

  auto_scaling_groups = [module.runner.runner_as_group_name]
  mode                = var.reaper_mode
  executor_name       = substr(var.environment, 0, 16) # or runner_worker_docker_machine_instance.name_prefix where that is set
  architecture        = var.architecture
  package             = { path = var.package_path }

  create_lifecycle_hook = false
  lifecycle_hook_name   = "${var.environment}-terminate-instances" # or runner_terminate_ec2_lifecycle_hook_name in its place
  lifecycle_hook_target = "eventbridge"
  drain                 = "observe"
  drain_timeout_seconds = 7200

  cancel_untagged_spot_requests         = true # docker-machine's requests have no tags
  untagged_worker_instance_profile_arns = var.worker_instance_profile_arns

  name_prefix     = "${var.environment}-"
  alarm_topic_arn = var.alarm_topic_arn
}
