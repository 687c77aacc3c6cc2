# The drain document, with this deployment's choices as its only values.

locals {
  drain = yamldecode(file("${path.module}/../ssm/drain.yaml"))
  drain_choices = {
    UnitName    = { default = var.runner_unit }
    Unregister  = { default = tostring(var.unregister_runner) }
    StopCommand = { default = var.stop_command, allowedValues = [var.stop_command] }
  }
  drain_document = merge(local.drain, {
    parameters = { for name, parameter in local.drain.parameters : name => merge(parameter, lookup(local.drain_choices, name, {})) }
  })
}

resource "aws_ssm_document" "drain" {
  count = var.drain == "ssm" ? 1 : 0

  name            = local.document_name
  document_type   = "Command"
  document_format = "JSON"
  content         = jsonencode(local.drain_document)
  tags            = var.tags
}
