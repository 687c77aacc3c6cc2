"""Both templates, rendered to the resources that they create, in CloudFormation's words."""

from deployments import BASE, DEPLOYMENTS, canonical, full_name
from from_sam import Evaluator, from_sam, sam_parameters, sam_resources, translated
from from_terraform import RenderError, from_terraform, terraform_states
from tools import INFRA

__all__ = [
    "BASE",
    "DEPLOYMENTS",
    "INFRA",
    "Evaluator",
    "RenderError",
    "canonical",
    "from_sam",
    "from_terraform",
    "full_name",
    "sam_parameters",
    "sam_resources",
    "terraform_states",
    "translated",
]
