"""Calls the server at argv[1] with a client that openapi-python-client generated; prints the results as JSON."""
import base64
import json
import sys

from generated import Client
from generated.api.blockchain_blockchain_service import (
    blockchain_blockchain_service_add_block as add_block,
    blockchain_blockchain_service_register_node as register_node,
)
from generated.api.kms_kms_service import (
    kms_kms_service_create_key as create_key,
    kms_kms_service_decapsulate as decapsulate,
    kms_kms_service_encapsulate as encapsulate,
    kms_kms_service_get_audit_log as get_audit_log,
    kms_kms_service_get_key as get_key,
    kms_kms_service_list_keys as list_keys,
    kms_kms_service_sign as sign,
    kms_kms_service_verify as verify,
)
from generated.api.oauth_authorization_service import (
    oauth_authorization_service_introspect_token as introspect_token,
    oauth_authorization_service_issue_token as issue_token,
)
from generated.models import (
    BlockchainAddBlockRequest,
    BlockchainRegisterNodeRequest,
    KmsCreateKeyRequest,
    KmsDecapsulateRequest,
    KmsEncapsulateRequest,
    KmsSignRequest,
    KmsVerifyRequest,
    OauthIntrospectTokenRequestForm,
    OauthIssueTokenRequestForm,
)

client = Client(base_url=sys.argv[1], timeout=60)
data = base64.b64encode(bytes(range(256))).decode()

made = create_key.sync(client=client, body=KmsCreateKeyRequest(alias="mine", usage=None)).result
signed = sign.sync(client=client, body=KmsSignRequest(key_id=made.key_id, data=data, context="")).result
verified = verify.sync(
    client=client, body=KmsVerifyRequest(key_id=made.key_id, data=data, signature=signed.signature)
).result
forged = verify.sync(
    client=client, body=KmsVerifyRequest(key_id=made.key_id, data="AAAA", signature=signed.signature)
).result
kem = KmsCreateKeyRequest.from_dict({"alias": "inbox", "algorithm": "ML-KEM-768"})
kem_key_id = create_key.sync(client=client, body=kem, idempotency_key="once").result.key_id
sent = encapsulate.sync(client=client, body=KmsEncapsulateRequest(key_id=kem_key_id)).result
received = decapsulate.sync(
    client=client, body=KmsDecapsulateRequest(key_id=kem_key_id, ciphertext=sent.ciphertext)
).result
listed = list_keys.sync(client=client, page_size=1)
entries = get_audit_log.sync(client=client, key_id=made.key_id).audit_log
missing = get_key.sync_detailed("key of/no-one?", client=client)
register_node.sync(client=client, body=BlockchainRegisterNodeRequest(name="node"))
block = add_block.sync(client=client, body=BlockchainAddBlockRequest(data=data)).block

credentials = {"client_id": "orders", "client_secret": sys.argv[2]}
wanted = {"grant_type": "client_credentials", "scope": "kms.sign", **credentials}
issued = issue_token.sync_detailed(
    client=client, body=OauthIssueTokenRequestForm.from_dict(wanted), x_request_id="story-1"
)
issued_token = {"token": issued.parsed.access_token, **credentials}
seen = introspect_token.sync(client=client, body=OauthIntrospectTokenRequestForm.from_dict(issued_token))
unknown = issue_token.sync(
    client=client, body=OauthIssueTokenRequestForm.from_dict({**wanted, "client_secret": "wrong"})
)

print(
    json.dumps(
        {
            "algorithm": made.algorithm,
            "signatureBytes": len(base64.b64decode(signed.signature)),
            "valid": verified.valid,
            "forged": forged.valid,
            "sameSecret": sent.shared_secret == received.shared_secret,
            "listed": [len(listed.keys), listed.total_size, listed.next_page_token != ""],
            "sequences": [repr(entry.sequence) for entry in entries],
            "missing": [missing.status_code, missing.parsed.code.value, missing.parsed.details[0].reason],
            "blockIndex": repr(block.index),
            "token": [seen.active, seen.scope, seen.client_id],
            "tokenRequestId": issued.headers["x-request-id"],
            "tokenRefused": unknown.error,
            "sameBytes": base64.b64decode(block.data) == bytes(range(256)),
        }
    )
)
