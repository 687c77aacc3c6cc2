# What to watch.

variable "auto_scaling_groups" {
  description = "Exact names of the managed Auto Scaling groups. All groups that share an executor name belong in one deployment."
  type        = list(string)

  validation {
    condition     = length(var.auto_scaling_groups) > 0 && alltrue([for group in var.auto_scaling_groups : can(regex("^[^,*?[:space:]][^,*?]*$", group))])
    error_message = "Name at least one group, each by its exact name, without ',', '*' or '?'."
  }
}

variable "mode" {
  description = "`plan` reads, reports and changes nothing; `enforce` drains and deletes. Only `enforce` creates the lifecycle hook and the permissions that delete."
  type        = string
  default     = "plan"

  validation {
    condition     = contains(["plan", "enforce"], var.mode)
    error_message = "mode is plan or enforce."
  }
}

variable "executor_name" {
  description = "The name part of worker, key pair and spot request names (`runner-<token>-<executor name>-…`). Without it key pairs and spot requests are judged by tags and instances alone."
  type        = string
  default     = null

  validation {
    condition     = var.executor_name == null || can(regex("^[A-Za-z0-9._-]+$", var.executor_name))
    error_message = "executor_name holds letters, digits, '.', '_' and '-'; it is never blank and has no '*' or '?'."
  }
}

variable "runner_tokens" {
  description = "Short runner tokens that contain '-'."
  type        = list(string)
  default     = []
}

variable "worker_groups" {
  description = "For docker-autoscaler managers: manager group name => the group that its workers live in."
  type        = map(string)
  default     = {}
}

variable "reap" {
  description = "Kinds of resources to reap. `fleets` is off unless named."
  type        = list(string)
  default     = ["workers", "spot-requests", "key-pairs", "addresses"]

  validation {
    condition     = length(var.reap) > 0 && alltrue([for kind in var.reap : contains(["workers", "spot-requests", "key-pairs", "addresses", "fleets"], kind)])
    error_message = "reap holds some of workers, spot-requests, key-pairs, addresses, fleets."
  }
}

variable "grace_seconds" {
  description = "Nothing younger is touched where 'gone' rests on absence or on time."
  type        = number
  default     = 900

  validation {
    condition     = var.grace_seconds >= 60 && var.grace_seconds <= 604800
    error_message = "grace_seconds is 60 to 604800."
  }
}

variable "worker_grace_seconds" {
  description = "How long workers of a manager that died undrained may go on with their jobs."
  type        = number
  default     = 0

  validation {
    condition     = var.worker_grace_seconds >= 0 && var.worker_grace_seconds <= 3600
    error_message = "worker_grace_seconds is 0 to 3600."
  }
}

variable "max_deletions" {
  description = "Most deletions of one kind in one pass."
  type        = number
  default     = 100

  validation {
    condition     = var.max_deletions >= 1 && var.max_deletions <= 10000
    error_message = "max_deletions is 1 to 10000."
  }
}

variable "parent_tag" {
  description = "Tag on workers that names their manager."
  type        = string
  default     = "gitlab-runner-parent-id"
}

variable "owner_tag" {
  description = "Tag on addresses (and, where set, spot requests) that names their manager."
  type        = string
  default     = "lifecycle-reaper:owner"
}

variable "keep_tag" {
  description = "Tag that protects whatever carries it, in the function and in its policy."
  type        = string
  default     = "lifecycle-reaper:keep"
}

variable "eip_tag" {
  description = "`key=value`: Elastic IPs with exactly this tag are ours too. Never name a tag of addresses that Terraform or a person manages."
  type        = string
  default     = null

  validation {
    condition     = var.eip_tag == null || can(regex("^[^=*?]+=[^*?]+$", var.eip_tag))
    error_message = "eip_tag is key=value, both given, without '*' or '?'."
  }
}

variable "untagged_worker_instance_profile_arns" {
  description = "Lets the function terminate workers that have no parent tag (docker-machine tags last), if they run with one of these instance profiles. Empty: it may not."
  type        = list(string)
  default     = []
}

variable "cancel_untagged_spot_requests" {
  description = "Lets the function cancel spot requests that have no owner tag. docker-machine does not tag its requests, and nothing narrower than the account and Region can be said of them in IAM."
  type        = bool
  default     = false
}

# The drain.

variable "drain" {
  description = "`ssm` drains by the document of this module; `observe` waits for something on the instance to complete the hook; `off` releases at once."
  type        = string
  default     = "ssm"

  validation {
    condition     = contains(["ssm", "observe", "off"], var.drain)
    error_message = "drain is ssm, observe or off."
  }
}

variable "drain_timeout_seconds" {
  description = "The longest drain; the hook's heartbeat timeout and the queue's receive count follow from it."
  type        = number
  default     = 7200

  validation {
    condition     = var.drain_timeout_seconds >= 60 && var.drain_timeout_seconds <= 172800
    error_message = "drain_timeout_seconds is 60 to 172800 (48 hours, the longest that AWS lets a hook wait)."
  }
}

variable "create_lifecycle_hook" {
  description = "Create the termination hook of each group (only with mode = enforce). Set to false for groups that have one, and name it."
  type        = bool
  default     = true
}

variable "lifecycle_hook_name" {
  description = "Name of the termination hook: of the one to create, or of the one that exists (several names: comma separated)."
  type        = string
  default     = null

  validation {
    condition     = var.create_lifecycle_hook || var.drain == "off" || try(length(trimspace(var.lifecycle_hook_name)) > 0, false)
    error_message = "With create_lifecycle_hook = false, lifecycle_hook_name names the hook that exists (or set drain = off)."
  }
}

variable "lifecycle_hook_target" {
  description = "Where a hook that this module does not create sends its messages: `eventbridge` (a hook without a target) or `queue` (this module's work queue, by the outputs work_queue_arn and hook_role_arn)."
  type        = string
  default     = "eventbridge"

  validation {
    condition     = contains(["eventbridge", "queue"], var.lifecycle_hook_target)
    error_message = "lifecycle_hook_target is eventbridge or queue."
  }
}

variable "runner_unit" {
  description = "The systemd unit of the runner manager."
  type        = string
  default     = "gitlab-runner.service"
}

variable "unregister_runner" {
  description = "After a graceful stop, take the one manager off GitLab's list (glrt- tokens only)."
  type        = bool
  default     = false
}

variable "stop_command" {
  description = "Another way to drain, for managers that are no systemd unit; see infra/ssm/drain.yaml. `none`: stop the unit."
  type        = string
  default     = "none"
}

# The function.

variable "package" {
  description = "The function's zip: a local `path`, or `s3_bucket` and `s3_key` (and `s3_object_version`) with the base64 SHA-256 of the zip as `hash`."
  type = object({
    path              = optional(string)
    s3_bucket         = optional(string)
    s3_key            = optional(string)
    s3_object_version = optional(string)
    hash              = optional(string)
  })

  validation {
    condition     = (var.package.path != null) != (var.package.s3_bucket != null && var.package.s3_key != null && var.package.hash != null)
    error_message = "package has either a path, or s3_bucket, s3_key and hash."
  }
}

variable "architecture" {
  description = "The zip's architecture."
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "architecture is arm64 or x86_64."
  }
}

variable "memory_size" {
  description = "Megabytes; also sets the share of a CPU."
  type        = number
  default     = 128
}

variable "function_timeout_seconds" {
  description = "The longest pass; the queue's visibility timeout is six times as long."
  type        = number
  default     = 120

  validation {
    condition     = var.function_timeout_seconds >= 30 && var.function_timeout_seconds <= 900
    error_message = "function_timeout_seconds is 30 to 900."
  }
}

variable "maximum_concurrency" {
  description = "Most passes at once from the queue."
  type        = number
  default     = 5

  validation {
    condition     = var.maximum_concurrency >= 2 && var.maximum_concurrency <= 1000
    error_message = "maximum_concurrency is 2 to 1000."
  }
}

variable "log_level" {
  description = "error, warn, info or debug."
  type        = string
  default     = "info"

  validation {
    condition     = contains(["error", "warn", "info", "debug"], var.log_level)
    error_message = "log_level is error, warn, info or debug."
  }
}

variable "log_retention_days" {
  description = "How long CloudWatch keeps the log."
  type        = number
  default     = 30
}

variable "xray_tracing" {
  description = "Trace every pass with X-Ray."
  type        = bool
  default     = false
}

variable "vpc_config" {
  description = "Run in these subnets; they need a way to the AWS APIs."
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
  default = null
}

# When it looks, and whom it tells.

variable "sweep_schedule" {
  description = "How often to look at everything."
  type        = string
  default     = "rate(15 minutes)"
}

variable "spot_interruption_warnings" {
  description = "Also listen to spot interruption warnings, so that the drain of a spot manager begins with the notice. The rule can't name a group: every warning of the Region invokes the function."
  type        = bool
  default     = false
}

variable "sweep_alarm_hours" {
  description = "Alarm when no sweep ended for so long."
  type        = number
  default     = 3

  validation {
    condition     = var.sweep_alarm_hours >= 1 && var.sweep_alarm_hours <= 24
    error_message = "sweep_alarm_hours is 1 to 24."
  }
}

variable "alarm_topic_arn" {
  description = "SNS topic that alarms notify; none: they only change colour."
  type        = string
  default     = null
}

# Names, keys, tags.

variable "name" {
  description = "Name of the function, and beginning of every other name."
  type        = string
  default     = "lifecycle-reaper"
}

variable "name_prefix" {
  description = "Put before the name: one deployment for each prefix."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^[A-Za-z0-9-]{1,40}$", "${var.name_prefix}${var.name}"))
    error_message = "name_prefix and name together are 1 to 40 letters, digits and '-'."
  }
}

variable "kms_key_arn" {
  description = "Key for queues, log and environment. Its key policy needs the statements of the output kms_key_policy_statements."
  type        = string
  default     = null
}

variable "permissions_boundary_arn" {
  description = "Permissions boundary of the roles."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags for everything that this module creates."
  type        = map(string)
  default     = {}
}
