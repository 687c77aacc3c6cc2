# The termination hook of each group. It speaks to the work queue directly: unlike EventBridge, Auto
# Scaling does not call that best effort. Only in enforce mode: in plan mode nothing would complete it.

resource "aws_autoscaling_lifecycle_hook" "terminate" {
  for_each = local.create_hook ? toset(var.auto_scaling_groups) : toset([])

  name                    = local.hook_name
  autoscaling_group_name  = each.value
  lifecycle_transition    = "autoscaling:EC2_INSTANCE_TERMINATING"
  default_result          = "CONTINUE"
  heartbeat_timeout       = local.heartbeat_timeout_seconds
  notification_target_arn = aws_sqs_queue.work.arn
  role_arn                = aws_iam_role.hook[0].arn

  # Auto Scaling tries the target at once, and a hook is of use only to a function that can act.
  depends_on = [aws_iam_role_policy.hook, aws_iam_role_policy.act, aws_lambda_event_source_mapping.work]
}
