# What a person is woken for. Each alarm has its paragraph in the runbook.

locals {
  of_function = { FunctionName = local.name }

  alarms = {
    dead-letters = {
      text       = "Something needs a person: a message that could not be read, or work that failed for good."
      namespace  = "AWS/SQS", metric = "ApproximateNumberOfMessagesVisible", statistic = "Maximum", period = 300, periods = 1
      dimensions = { QueueName = aws_sqs_queue.dead_letters.name }
    }
    errors = {
      text       = "The function ended with an error or was cut off."
      namespace  = "AWS/Lambda", metric = "Errors", statistic = "Sum", period = 300, periods = 1
      dimensions = local.of_function
    }
    throttles = {
      text       = "Lambda refused to run the function: the account's concurrency is used up."
      namespace  = "AWS/Lambda", metric = "Throttles", statistic = "Sum", period = 300, periods = 1
      dimensions = local.of_function
    }
    recursion = {
      text       = "Lambda took a chain of calls for a loop and dropped it."
      namespace  = "AWS/Lambda", metric = "RecursiveInvocationsDropped", statistic = "Sum", period = 300, periods = 1
      dimensions = local.of_function
    }
    no-sweeps = {
      text       = "No sweep ended for hours: the function is dead, or its schedule is off."
      namespace  = "LifecycleReaper", metric = "Sweeps", statistic = "Sum", period = 3600, periods = var.sweep_alarm_hours
      dimensions = local.of_function
    }
    deadline-releases = {
      text       = "A hook was released at its deadline: jobs may have been cut."
      namespace  = "LifecycleReaper", metric = "DeadlineReleases", statistic = "Sum", period = 300, periods = 1
      dimensions = local.of_function
    }
    oldest-task = {
      text       = "A task is older than the drain timeout allows."
      namespace  = "LifecycleReaper", metric = "OldestTaskSeconds", statistic = "Maximum", period = 300, periods = 1
      dimensions = local.of_function
    }
    # These two are sent by each sweep. Half an hour holds two of them, so that what lasts doesn't ring and end in turn.
    to-mend = {
      text       = "AWS refuses a call, and only a person can change that: a permission or a setting is missing."
      namespace  = "LifecycleReaper", metric = "FaultsToMend", statistic = "Sum", period = 1800, periods = 1
      dimensions = local.of_function
    }
    hook-missing = {
      text       = "A manager waits in a hook that the function doesn't know, and nobody completes it."
      namespace  = "LifecycleReaper", metric = "WaitingWithoutHook", statistic = "Sum", period = 1800, periods = 1
      dimensions = local.of_function
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = local.alarms

  alarm_name          = "${local.name}-${each.key}"
  alarm_description   = each.value.text
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = each.value.statistic
  period              = each.value.period
  evaluation_periods  = each.value.periods
  comparison_operator = each.key == "no-sweeps" ? "LessThanThreshold" : "GreaterThanThreshold"
  threshold           = each.key == "no-sweeps" ? 1 : each.key == "oldest-task" ? local.oldest_task_alarm_seconds : 0
  treat_missing_data  = each.key == "no-sweeps" ? "breaching" : "notBreaching"
  alarm_actions       = var.alarm_topic_arn[*]
  ok_actions          = var.alarm_topic_arn[*]
  tags                = var.tags
}

resource "aws_cloudwatch_dashboard" "this" {
  dashboard_name = "${local.name}-${local.region}"
  dashboard_body = templatefile("${path.module}/../dashboard.json", {
    name              = local.name
    region            = local.region
    work_queue        = aws_sqs_queue.work.name
    dead_letter_queue = aws_sqs_queue.dead_letters.name
    log_group         = local.log_group_name
    oldest_task_alarm = local.oldest_task_alarm_seconds
  })
}
