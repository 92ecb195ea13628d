"""Prints the canonical JSON of values, as securesystemslib encodes it, and the ID of a key.

Arguments: a JSON list of values, and optionally a key as in metadata.
"""

import json
import sys

from cryptography.hazmat.primitives.serialization import load_pem_public_key
from securesystemslib.formats import encode_canonical
from securesystemslib.signer import SSlibKey

values = json.loads(sys.argv[1])
found = {"encoded": [encode_canonical(value).encode().hex() for value in values]}
if len(sys.argv) > 2:
    key = json.loads(sys.argv[2])
    read = SSlibKey.from_crypto(load_pem_public_key(key["keyval"]["public"].encode()))
    found["keyId"] = read.keyid
    found["isEqual"] = read.to_dict() == key
print(json.dumps(found))
