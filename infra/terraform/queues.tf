# Two queues: work that waits for its next pass, and what needs a person.

resource "aws_sqs_queue" "dead_letters" {
  name                              = "${local.name}-dead-letters"
  message_retention_seconds         = 1209600 # 14 days: a message keeps the age it had on the work queue
  sqs_managed_sse_enabled           = var.kms_key_arn == null ? true : null
  kms_master_key_id                 = var.kms_key_arn
  kms_data_key_reuse_period_seconds = var.kms_key_arn == null ? null : 3600
  tags                              = var.tags
}

resource "aws_sqs_queue" "work" {
  name                              = "${local.name}-work"
  message_retention_seconds         = 345600 # 4 days: beyond the longest drain
  visibility_timeout_seconds        = local.visibility_timeout_seconds
  sqs_managed_sse_enabled           = var.kms_key_arn == null ? true : null
  kms_master_key_id                 = var.kms_key_arn
  kms_data_key_reuse_period_seconds = var.kms_key_arn == null ? null : 3600
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letters.arn
    maxReceiveCount     = local.max_receive_count
  })
  tags = var.tags
}

resource "aws_sqs_queue_redrive_allow_policy" "dead_letters" {
  queue_url = aws_sqs_queue.dead_letters.id
  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.work.arn]
  })
}

locals {
  rule_arn = "arn:${local.partition}:events:${local.region}:${local.account}:rule/${local.name}"

  # EventBridge puts events on the work queue, and on the dead-letter queue what it could not deliver.
  queue_policies = {
    for queue in [
      { key = "work", arn = local.work_queue_arn, rules = sort(keys(local.event_patterns)) },
      { key = "dead_letters", arn = local.dead_letter_queue_arn, rules = sort(concat(keys(local.event_patterns), ["sweep"])) },
      ] : queue.key => {
      Version = "2012-10-17"
      Statement = [
        {
          Sid       = "EventBridgeSends"
          Effect    = "Allow"
          Principal = { Service = "events.amazonaws.com" }
          Action    = "sqs:SendMessage"
          Resource  = queue.arn
          Condition = { ArnEquals = { "aws:SourceArn" = [for rule in queue.rules : "${local.rule_arn}-${rule}"] } }
        },
        {
          Sid       = "OnlyOverTls"
          Effect    = "Deny"
          Principal = "*"
          Action    = "sqs:*"
          Resource  = queue.arn
          Condition = { Bool = { "aws:SecureTransport" = "false" } }
        },
      ]
    }
  }
}

resource "aws_sqs_queue_policy" "work" {
  queue_url = aws_sqs_queue.work.id
  policy    = jsonencode(local.queue_policies.work)
}

resource "aws_sqs_queue_policy" "dead_letters" {
  queue_url = aws_sqs_queue.dead_letters.id
  policy    = jsonencode(local.queue_policies.dead_letters)
}
