variable "environment" {
  description = "Beginning of every name, and the executor name."
  type        = string
}

variable "mode" {
  description = "Begin with plan, read what it would do, then enforce."
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

variable "image_id" {
  description = "An image with GitLab Runner, the SSM agent, the AWS CLI and infra/instance under /opt/lifecycle-reaper."
  type        = string
}

variable "subnet_ids" {
  description = "Where managers run."
  type        = list(string)
}

variable "alarm_topic_arn" {
  description = "Whom alarms tell."
  type        = string
  default     = null
}
