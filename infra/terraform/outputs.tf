output "function_name" {
  description = "For `make deploy`, `aws lambda invoke` and the like."
  value       = aws_lambda_function.reaper.function_name
}

output "function_arn" {
  description = "The function."
  value       = aws_lambda_function.reaper.arn
}

output "role_arn" {
  description = "The function's role."
  value       = aws_iam_role.function.arn
}

output "work_queue_arn" {
  description = "Target for a hook that this module does not create."
  value       = aws_sqs_queue.work.arn
}

output "hook_role_arn" {
  description = "Role with which Auto Scaling writes to the work queue; null where no hook needs it."
  value       = one(aws_iam_role.hook[*].arn)
}

output "lifecycle_hook_name" {
  description = "The hook's name, created here or not."
  value       = local.hook_name
}

output "heartbeat_timeout_seconds" {
  description = "What the hook's heartbeat timeout has to be for the configured drain."
  value       = local.heartbeat_timeout_seconds
}

output "dead_letter_queue_url" {
  description = "Where to look when the alarm says so."
  value       = aws_sqs_queue.dead_letters.url
}

output "drain_document_name" {
  description = "The SSM document that drains; null unless drain = ssm."
  value       = one(aws_ssm_document.drain[*].name)
}

output "kms_key_policy_statements" {
  description = "What the policy of kms_key_arn has to allow, as JSON; null without a key."
  value       = var.kms_key_arn == null ? null : jsonencode(local.kms_key_policy_statements)
}
