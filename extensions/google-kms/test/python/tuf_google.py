"""Signs TUF metadata with securesystemslib's Google Cloud KMS signer, and verifies it with python-tuf.

The only argument is the server's address, "127.0.0.1:port". Prints one line of JSON per algorithm.
"""

import json
import sys

import grpc
from google.cloud import kms
from google.cloud.kms_v1.services.key_management_service import transports
from securesystemslib.signer import GCPSigner, _gcp_signer
from tuf.api.exceptions import UnsignedMetadataError
from tuf.api.metadata import Metadata, Root

ALGORITHMS = ["PQ_SIGN_ML_DSA_44", "PQ_SIGN_ML_DSA_65", "PQ_SIGN_ML_DSA_87", "EC_SIGN_P256_SHA256"]
LOCATION = "projects/tuf/locations/global"


def connect(authority):
    channel = grpc.insecure_channel(authority)
    return kms.KeyManagementServiceClient(transport=transports.KeyManagementServiceGrpcTransport(channel=channel))


def create_version(client, algorithm):
    key = client.create_crypto_key(
        request={
            "parent": f"{LOCATION}/keyRings/root",
            "crypto_key_id": algorithm.lower(),
            "crypto_key": {"purpose": "ASYMMETRIC_SIGN", "version_template": {"algorithm": algorithm}},
        }
    )
    return f"{key.name}/cryptoKeyVersions/1"


def sign_root(version):
    """Creates a root signed by one key, and returns whether python-tuf accepts it, unchanged and changed."""
    uri, public_key = GCPSigner.import_(version)
    signer = GCPSigner.from_priv_key_uri(uri, public_key)
    root = Root()
    for role in root.roles:
        root.add_key(public_key, role)
    metadata = Metadata(root)
    metadata.sign(signer)
    parsed = Metadata[Root].from_bytes(metadata.to_bytes())
    parsed.signed.verify_delegate(Root.type, parsed.signed_bytes, parsed.signatures)
    parsed.signed.version += 1
    try:
        parsed.signed.verify_delegate(Root.type, Metadata(parsed.signed).signed_bytes, parsed.signatures)
    except UnsignedMetadataError:
        return {"scheme": public_key.scheme, "accepted": True, "changedRefused": True}
    return {"scheme": public_key.scheme, "accepted": True, "changedRefused": False}


def main():
    client = connect(sys.argv[1])
    # The signer creates its own client, for Google's address.
    _gcp_signer.kms.KeyManagementServiceClient = lambda: client
    client.create_key_ring(request={"parent": LOCATION, "key_ring_id": "root"})
    for algorithm in ALGORITHMS:
        print(json.dumps({"algorithm": algorithm, **sign_root(create_version(client, algorithm))}))


main()
