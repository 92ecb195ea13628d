"""Checks the vectors beside this file with only hashlib and pyca cryptography (50 or newer).

Recomputes every value of every case from its input, as README.md of the extension specifies it.
Prints one line a file. Exits with 1 if a value differs or a verdict is wrong.

usage: python check.py [FOLDER]
"""

import hashlib
import hmac
import json
import pathlib
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import mldsa, mlkem
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def encode(label, fields):
    return label + b"\x01" + b"".join(len(field).to_bytes(4, "big") + field for field in fields)


def public_key_of(key):
    private = {"ML-KEM-1024": mlkem.MLKEM1024PrivateKey, "ML-DSA-65": mldsa.MLDSA65PrivateKey}[key["algorithm"]]
    return private.from_seed_bytes(bytes.fromhex(key["seed"])).public_key().public_bytes_raw()


def decapsulate(key, ciphertext):
    return mlkem.MLKEM1024PrivateKey.from_seed_bytes(bytes.fromhex(key["seed"])).decapsulate(ciphertext)


def verifies(key, message, signature, context):
    try:
        public_key = mldsa.MLDSA65PublicKey.from_public_bytes(bytes.fromhex(key["publicKey"]))
        public_key.verify(signature, message, context)
        return True
    except InvalidSignature:
        return False


def check_agreement(case, keys):
    given, between, result = case["input"], case["intermediate"], case["result"]
    bytes_of = {name: bytes.fromhex(value) for name, value in given.items() if isinstance(value, str)
                and name not in ("identityKey", "ephemeralKey", "registeredKey", "tunnelId")}
    ephemeral, registered = keys[given["ephemeralKey"]], keys[given["registeredKey"]]
    transcript = encode(b"qsp-wireguard-agreement", [
        given["tunnelId"].encode(),
        given["epoch"].to_bytes(8, "big"),
        bytes_of["gatewayWireguardPublicKey"],
        bytes_of["peerWireguardPublicKey"],
        bytes_of["nonce"],
        public_key_of(ephemeral),
        public_key_of(registered),
        bytes_of["ephemeralCiphertext"],
        bytes_of["registeredCiphertext"],
    ])
    digest = hashlib.sha256(transcript).digest()
    context = b"qsp-wireguard-agreement-v1"
    yield "transcript", transcript.hex(), between["transcript"]
    yield "transcriptHash", digest.hex(), between["transcriptHash"]
    yield "context", context.hex(), between["context"]
    secrets = (decapsulate(ephemeral, bytes_of["ephemeralCiphertext"]),
               decapsulate(registered, bytes_of["registeredCiphertext"]))
    okm = HKDF(hashes.SHA256(), 96, None, digest).derive(secrets[0] + secrets[1])
    confirmations = [hmac.digest(okm[at:at + 32], digest, "sha256").hex() for at in (32, 64)]
    is_signed = verifies(keys[given["identityKey"]], transcript, bytes.fromhex(result["signature"]), context)
    is_confirmed = [result["peerConfirmation"], result["gatewayConfirmation"]] == confirmations
    yield "valid", is_signed and is_confirmed, case["valid"]
    if case["valid"]:
        yield "ephemeralSecret", secrets[0].hex(), between["ephemeralSecret"]
        yield "registeredSecret", secrets[1].hex(), between["registeredSecret"]
        yield "presharedKey", okm[:32].hex(), result["presharedKey"]


def check_statement(case, keys):
    given, between = case["input"], case["intermediate"]
    message = encode(b"qsp-wireguard-tunnel", [
        given["tunnelId"].encode(),
        bytes.fromhex(given["nonce"]),
        given["lastEpoch"].to_bytes(8, "big"),
        given["serverTimeMs"].to_bytes(8, "big"),
        bytes.fromhex(given["gatewayWireguardPublicKey"]),
        bytes.fromhex(given["peerWireguardPublicKey"]),
        public_key_of(keys[given["registeredKey"]]),
        given["gatewayEndpoint"].encode(),
        given["gatewayAddress"].encode(),
        given["assignedIp"].encode(),
    ])
    context = b"qsp-wireguard-tunnel-v1"
    yield "signedBytes", message.hex(), between["signedBytes"]
    yield "context", context.hex(), between["context"]
    signature = bytes.fromhex(case["result"]["signature"])
    yield "valid", verifies(keys[given["identityKey"]], message, signature, context), case["valid"]


CHECKS = {"agreement": check_agreement, "tunnel-statement": check_statement}


def main(folder):
    faults = 0
    for path in sorted(folder.glob("*.json")):
        vectors = json.loads(path.read_text())
        keys, found = vectors["keys"], 0
        for name, key in keys.items():
            if public_key_of(key).hex() != key["publicKey"]:
                print(f"{path.name}: public key of {name} differs", file=sys.stderr)
                found += 1
        for case in vectors["cases"]:
            for label, expected, actual in CHECKS[vectors["name"]](case, keys):
                if expected != actual:
                    print(f"{path.name}: {case['name']}: {label} differs", file=sys.stderr)
                    found += 1
        print(f"{vectors['name']}: {len(vectors['cases'])} cases, {found} faults")
        faults += found
    return 1 if faults else 0


if __name__ == "__main__":
    here = pathlib.Path(__file__).resolve().parent
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here))
