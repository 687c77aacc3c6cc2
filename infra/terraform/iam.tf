# The roles. What the function may do stands in statements.tf, one statement for each kind and call.

locals {
  trust = { for role, statement in {
    function = { Principal = { Service = "lambda.amazonaws.com" } }
    hook = {
      Principal = { Service = "autoscaling.amazonaws.com" }
      Condition = {
        StringEquals = { "aws:SourceAccount" = local.account }
        ArnLike      = { "aws:SourceArn" = local.group_arns }
      }
    }
    } : role => {
    Version   = "2012-10-17"
    Statement = [merge({ Effect = "Allow", Action = "sts:AssumeRole" }, statement)]
  } }
}

resource "aws_iam_role" "function" {
  name                 = "${local.name}-${local.region}"
  description          = "What lifecycle-reaper may do"
  assume_role_policy   = jsonencode(local.trust.function)
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.tags
}

# What it needs to run at all: log, queues, key, network, traces.
resource "aws_iam_role_policy" "run" {
  name   = "run"
  role   = aws_iam_role.function.id
  policy = jsonencode(local.policies.run)
}

# What it may look at.
resource "aws_iam_role_policy" "observe" {
  name   = "observe"
  role   = aws_iam_role.function.id
  policy = jsonencode(local.policies.observe)
}

# What it may do. Without it, in plan mode, nothing can be deleted whatever the code says.
resource "aws_iam_role_policy" "act" {
  count = local.enforce ? 1 : 0

  name   = "act"
  role   = aws_iam_role.function.id
  policy = jsonencode(local.policies.act)
}

# Auto Scaling's own role: it puts the hook's messages on the work queue.
resource "aws_iam_role" "hook" {
  count = local.hook_role ? 1 : 0

  name                 = "${local.name}-${local.region}-hook"
  description          = "Lets Auto Scaling put lifecycle messages on lifecycle-reaper's queue"
  assume_role_policy   = jsonencode(local.trust.hook)
  permissions_boundary = var.permissions_boundary_arn
  tags                 = var.tags
}

resource "aws_iam_role_policy" "hook" {
  count = local.hook_role ? 1 : 0

  name   = "notify"
  role   = aws_iam_role.hook[0].id
  policy = jsonencode(local.policies.hook)
}
