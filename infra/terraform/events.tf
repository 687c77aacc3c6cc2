# What wakes the function: EventBridge puts events on the work queue; the sweep calls it directly, so
# that a queue or a mapping that stands still can't stop the safety net as well.

locals {
  event_patterns = { for name, rule in {
    terminations = {
      source      = ["aws.autoscaling"]
      detail-type = ["EC2 Instance Terminate Successful", "EC2 Instance Terminate Unsuccessful"]
      detail      = { AutoScalingGroupName = var.auto_scaling_groups }
    }
    lifecycle = {
      when        = local.hook_by_rule # where the hook has no target of its own
      source      = ["aws.autoscaling"]
      detail-type = ["EC2 Instance-terminate Lifecycle Action"]
      detail      = { AutoScalingGroupName = var.auto_scaling_groups }
    }
    drain-commands = {
      when        = var.drain == "ssm" # the jobs ended: no need to wait for the next delivery
      source      = ["aws.ssm"]
      detail-type = ["EC2 Command Invocation Status-change Notification"]
      detail      = { document-name = [local.document_name], status = ["Success", "Failed", "TimedOut", "Cancelled"] }
    }
    spot-warnings = {
      when        = var.spot_interruption_warnings
      source      = ["aws.ec2"]
      detail-type = ["EC2 Spot Instance Interruption Warning"]
    }
  } : name => { for key, value in rule : key => value if key != "when" } if try(rule.when, true) }
}

resource "aws_cloudwatch_event_rule" "work" {
  for_each = local.event_patterns

  name          = "${local.name}-${each.key}"
  event_pattern = jsonencode(each.value)
  tags          = var.tags
}

resource "aws_cloudwatch_event_target" "work" {
  for_each = local.event_patterns

  rule      = aws_cloudwatch_event_rule.work[each.key].name
  target_id = "work-queue"
  arn       = aws_sqs_queue.work.arn

  dead_letter_config {
    arn = aws_sqs_queue.dead_letters.arn
  }
}

resource "aws_cloudwatch_event_rule" "sweep" {
  name                = "${local.name}-sweep"
  schedule_expression = var.sweep_schedule
  tags                = var.tags
}

resource "aws_cloudwatch_event_target" "sweep" {
  rule      = aws_cloudwatch_event_rule.sweep.name
  target_id = "function"
  arn       = aws_lambda_function.reaper.arn

  dead_letter_config {
    arn = aws_sqs_queue.dead_letters.arn
  }
}

resource "aws_lambda_permission" "sweep" {
  statement_id  = "Sweep"
  function_name = aws_lambda_function.reaper.function_name
  action        = "lambda:InvokeFunction"
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.sweep.arn
}
