# The function, its log, and how the work queue feeds it.

locals {
  # Exactly the variables that the function knows; one that is not set is left out, never empty.
  environment = { for variable, value in {
    AUTO_SCALING_GROUPS   = join(",", var.auto_scaling_groups)
    LIFECYCLE_HOOKS       = local.hook_name
    EXECUTOR_NAME         = var.executor_name
    RUNNER_TOKENS         = length(var.runner_tokens) > 0 ? join(",", var.runner_tokens) : null
    WORKER_GROUPS         = length(var.worker_groups) > 0 ? join(",", [for manager, worker in var.worker_groups : "${manager}=${worker}"]) : null
    MODE                  = var.mode
    DRAIN                 = var.drain
    DRAIN_DOCUMENT        = var.drain == "ssm" ? local.document_name : null
    DRAIN_TIMEOUT_SECONDS = tostring(var.drain_timeout_seconds)
    GRACE_SECONDS         = tostring(var.grace_seconds)
    WORKER_GRACE_SECONDS  = tostring(var.worker_grace_seconds)
    PARENT_TAG            = var.parent_tag
    OWNER_TAG             = var.owner_tag
    EIP_TAG               = var.eip_tag
    KEEP_TAG              = var.keep_tag
    MAX_DELETIONS         = tostring(var.max_deletions)
    MAX_RECEIVE_COUNT     = tostring(local.max_receive_count)
    WORK_QUEUE_URL        = aws_sqs_queue.work.url
    DEAD_LETTER_QUEUE_URL = aws_sqs_queue.dead_letters.url
    REAP                  = join(",", var.reap)
    LOG_LEVEL             = var.log_level
  } : variable => value if value != null }
}

resource "aws_cloudwatch_log_group" "function" {
  name              = local.log_group_name
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_lambda_function" "reaper" {
  function_name     = local.name
  description       = "Drains GitLab Runner managers that their group terminates, and reaps what they leave"
  runtime           = "provided.al2023"
  handler           = "bootstrap"
  architectures     = [var.architecture]
  filename          = var.package.path
  s3_bucket         = var.package.s3_bucket
  s3_key            = var.package.s3_key
  s3_object_version = var.package.s3_object_version
  source_code_hash  = var.package.path == null ? var.package.hash : filebase64sha256(var.package.path)
  memory_size       = var.memory_size
  timeout           = var.function_timeout_seconds
  role              = aws_iam_role.function.arn
  kms_key_arn       = var.kms_key_arn
  tags              = var.tags

  environment {
    variables = local.environment
  }

  logging_config {
    log_format = "JSON"
    log_group  = aws_cloudwatch_log_group.function.name
  }

  tracing_config {
    mode = var.xray_tracing ? "Active" : "PassThrough"
  }

  dynamic "vpc_config" {
    for_each = var.vpc_config[*]
    content {
      subnet_ids         = vpc_config.value.subnet_ids
      security_group_ids = vpc_config.value.security_group_ids
    }
  }

  # A function that can't read its key, write its log or reach its network would start with an error.
  depends_on = [aws_iam_role_policy.run]
}

resource "aws_lambda_event_source_mapping" "work" {
  event_source_arn        = aws_sqs_queue.work.arn
  function_name           = aws_lambda_function.reaper.arn
  batch_size              = 10
  function_response_types = ["ReportBatchItemFailures"]
  tags                    = var.tags

  scaling_config {
    maximum_concurrency = var.maximum_concurrency
  }
}

# A sweep that failed is tried twice more, then shown to a person; the next sweep looks again anyway.
resource "aws_lambda_function_event_invoke_config" "direct" {
  function_name                = aws_lambda_function.reaper.function_name
  maximum_retry_attempts       = 2
  maximum_event_age_in_seconds = 3600

  destination_config {
    on_failure {
      destination = aws_sqs_queue.dead_letters.arn
    }
  }

  depends_on = [aws_iam_role_policy.run]
}
