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
  description = "Step 1: plan. Step 2: enforce."
  type        = string
  default     = "plan"
}

variable "package_path" {
  description = "The function's zip, as `make package OUT=folder` builds it."
  type        = string
}

variable "architecture" {
  description = "The zip's architecture, as its name says."
  type        = string
  default     = "arm64"
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
