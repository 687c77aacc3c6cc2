variable "environment" {
  description = "As in the runner module; it can't begin with runner-."
  type        = string
}

variable "worker_instance_profile_arns" {
  description = "Instance profiles of the docker-machine workers: lets the function terminate workers whose tags were never set."
  type        = list(string)
  default     = []
}

variable "reaper_mode" {
  description = "Steps 1 and 2: plan, then enforce."
  type        = string
  default     = "plan"
}

variable "old_function" {
  description = "Step 3: off silences the runner module's own function."
  type        = string
  default     = "on"

  validation {
    condition     = contains(["on", "off"], var.old_function) && (var.old_function == "on" || var.reaper_mode == "enforce")
    error_message = "old_function is on or off, and off only with reaper_mode = enforce: otherwise nobody reaps."
  }
}

variable "package_path" {
  description = "The function's zip, as `make package` builds it."
  type        = string
}

variable "vpc_id" {
  description = "As in the runner module."
  type        = string
}

variable "subnet_id" {
  description = "As in the runner module."
  type        = string
}

variable "gitlab_url" {
  description = "As in the runner module."
  type        = string
}

variable "runner_token_parameter" {
  description = "SSM parameter that holds the runner's glrt- token."
  type        = string
}

variable "alarm_topic_arn" {
  description = "Whom alarms tell."
  type        = string
  default     = null
}
