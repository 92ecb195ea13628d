"""Verifies and signs DSSE envelopes with securesystemslib.

Its own ML-DSA keys follow TUF and sign with a prefix (TAP 21) instead of the plain DSSE encoding. The keys here therefore
use plain ML-DSA from pyca/cryptography, through securesystemslib's interfaces for custom keys and signers.

    dsse.py verify PUBLIC_KEY ENVELOPE
    dsse.py sign PUBLIC_KEY_OUT FILE ENVELOPE_OUT
"""

import json
import sys
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import Key, Signature, Signer


def encode(public_key, encoding):
    return public_key.public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)


class PlainKey(Key):
    """A key without an identifier. The library skips signatures whose keyid differs from the key's."""

    def __init__(self, public_key, keyid=""):
        self.public_key = public_key
        super().__init__(keyid, "plain-ml-dsa", "plain-ml-dsa", {"public": encode(public_key, Encoding.PEM).decode()})

    @classmethod
    def from_dict(cls, keyid, key_dict):
        raise NotImplementedError

    def to_dict(self):
        raise NotImplementedError

    def verify_signature(self, signature, data):
        try:
            self.public_key.verify(bytes.fromhex(signature.signature), data)
        except InvalidSignature as error:
            raise VerificationError("not valid") from error


class PlainSigner(Signer):
    def __init__(self, private_key):
        self.private_key = private_key
        self.key = PlainKey(private_key.public_key(), "release")

    @property
    def public_key(self):
        return self.key

    @classmethod
    def from_priv_key_uri(cls, priv_key_uri, public_key, secrets_handler=None):
        raise NotImplementedError

    def sign(self, payload):
        return Signature(self.key.keyid, self.private_key.sign(payload).hex())


def verify(public_key, envelope):
    key = PlainKey(load_pem_public_key(Path(public_key).read_bytes()))
    found = Envelope.from_dict(json.loads(Path(envelope).read_text()))
    try:
        found.verify([key], 1)
    except VerificationError:
        return {"valid": False}
    return {"valid": True, "payloadType": found.payload_type, "payload": found.payload.decode()}


def sign(public_key, file, envelope):
    signer = PlainSigner(MLDSA65PrivateKey.generate())
    made = Envelope(Path(file).read_bytes(), "text/plain", {})
    made.sign(signer)
    Path(public_key).write_bytes(encode(signer.private_key.public_key(), Encoding.PEM))
    Path(envelope).write_text(json.dumps(made.to_dict()))
    return {}


if __name__ == "__main__":
    print(json.dumps({"verify": verify, "sign": sign}[sys.argv[1]](*sys.argv[2:])))
