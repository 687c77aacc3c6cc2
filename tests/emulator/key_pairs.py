"""Key pairs: deleted by name or by id; deleting one that is gone succeeds, as it does in AWS."""

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses.key_pairs import KeyPairs


def delete_key_pair(response: KeyPairs) -> ActionResult:
    name, key_pair_id = response._get_param("KeyName"), response._get_param("KeyPairId")
    if not name and not key_pair_id:
        raise EC2ClientError(
            "MissingParameter", "The request must contain the parameter KeyName or KeyPairId"
        )
    response.error_on_dryrun()
    backend = response.ec2_backend
    if key_pair_id:
        name = next(
            (key.key_name for key in backend.key_pairs.values() if key.id == key_pair_id), None
        )
    key_pair = backend.delete_key_pair(name)
    if key_pair:
        backend.tags.pop(key_pair.id, None)
    return ActionResult({"Return": True, "KeyPairId": key_pair.id if key_pair else key_pair_id})


def install() -> None:
    KeyPairs.delete_key_pair = delete_key_pair
