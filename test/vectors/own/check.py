"""Checks the vectors of our own formats with only hashlib and pyca cryptography (50 or newer).

usage: python check.py [FOLDER]

Recomputes every value of every case from its input, as docs/formats.md specifies it, and verifies every signature.
Prints one line a file. Exits with 1 if a value differs or a signature is not as valid as the case says.
"""

import base64
import hashlib
import hmac
import json
import pathlib
import sys
from datetime import datetime, timezone

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, mldsa, mlkem, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ML_DSA = {
    "ML-DSA-44": (mldsa.MLDSA44PrivateKey, mldsa.MLDSA44PublicKey),
    "ML-DSA-65": (mldsa.MLDSA65PrivateKey, mldsa.MLDSA65PublicKey),
    "ML-DSA-87": (mldsa.MLDSA87PrivateKey, mldsa.MLDSA87PublicKey),
}

ML_KEM = {"ML-KEM-768": mlkem.MLKEM768PrivateKey, "ML-KEM-1024": mlkem.MLKEM1024PrivateKey}


def x_wing_halves(seed):
    """draft-connolly-cfrg-xwing-kem, section 5.2."""
    expanded = hashlib.shake_256(seed).digest(96)
    return (
        mlkem.MLKEM768PrivateKey.from_seed_bytes(expanded[:64]),
        x25519.X25519PrivateKey.from_private_bytes(expanded[64:]),
    )


def decapsulate(key, ciphertext):
    seed = bytes.fromhex(key["seed"])
    if key["algorithm"] in ML_KEM:
        return ML_KEM[key["algorithm"]].from_seed_bytes(seed).decapsulate(ciphertext)
    inner, outer = x_wing_halves(seed)
    point = ciphertext[1088:]
    agreed = outer.exchange(x25519.X25519PublicKey.from_public_bytes(point))
    parts = inner.decapsulate(ciphertext[:1088]) + agreed + point + outer.public_key().public_bytes_raw()
    return hashlib.sha3_256(parts + bytes.fromhex("5c2e2f2f5e5c")).digest()


def sha256(data):
    return hashlib.sha256(data).digest()


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def canonical_json(members):
    """Canonicalizes (RFC 8785) an object of strings and integers with ASCII member names."""
    return json.dumps(members, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def milliseconds(time):
    moment = datetime.strptime(time, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86400 + since.seconds) * 1000 + since.microseconds // 1000


def public_key_of(key):
    """Returns the raw public key for the seed of a key."""
    seed = bytes.fromhex(key["seed"])
    if key["algorithm"] == "ECDSA-P256":
        private = ec.derive_private_key(int.from_bytes(seed, "big"), ec.SECP256R1())
        return private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    if key["algorithm"] == "X-Wing":
        return b"".join(half.public_key().public_bytes_raw() for half in x_wing_halves(seed))
    if key["algorithm"] in ML_KEM:
        return ML_KEM[key["algorithm"]].from_seed_bytes(seed).public_key().public_bytes_raw()
    return ML_DSA[key["algorithm"]][0].from_seed_bytes(seed).public_key().public_bytes_raw()


def verifies(key, message, signature, context=None):
    raw = bytes.fromhex(key["publicKey"])
    try:
        if key["algorithm"] == "ECDSA-P256":
            point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw)
            point.verify(signature, message, ec.ECDSA(hashes.SHA256()))
        else:
            ML_DSA[key["algorithm"]][1].from_public_bytes(raw).verify(signature, message, context)
        return True
    except (InvalidSignature, ValueError):
        return False


def address_of(key):
    return "0x" + sha256(bytes.fromhex(key["publicKey"]))[:20].hex()


def json_intermediate(members):
    text = canonical_json(members)
    return {"canonicalJson": text, "hashedBytes": text.encode().hex()}


# Each check yields triples: a label, the expected value, and the value in the case.


def check_audit_entry(case, _keys):
    intermediate = json_intermediate(case["input"])
    yield "intermediate", intermediate, case["intermediate"]
    yield "valid", True, case["valid"]
    yield "entryHash", sha256(intermediate["canonicalJson"].encode()).hex(), case["result"]["entryHash"]


def check_checkpoint(case, keys):
    given, result = case["input"], case["result"]
    members = {name: given[name] for name in ("entryHash", "sequence", "signedAt")}
    statement = canonical_json({**members, "purpose": "audit checkpoint"})
    yield "signedBytes", statement.encode().hex(), case["intermediate"]["signedBytes"]
    yield "statement", statement, result["statement"]
    signature = bytes.fromhex(result["signature"])
    yield "valid", verifies(keys[given["key"]], statement.encode(), signature), case["valid"]


def check_block(case, keys):
    given, result = case["input"], case["result"]
    parts = {
        "index": given["index"].to_bytes(8, "big").hex(),
        "prevHash": given["prevHash"],
        "timestampMs": milliseconds(given["timestamp"]).to_bytes(8, "big").hex(),
        "validatorAddress": given["validatorAddress"][2:],
    }
    hashed = "".join(parts.values()) + given["data"]
    yield "intermediate", {**parts, "hashedBytes": hashed}, case["intermediate"]
    block_hash = sha256(bytes.fromhex(hashed))
    yield "blockHash", block_hash.hex(), result["blockHash"]
    signature = bytes.fromhex(result["signature"])
    if given["key"] is None:
        yield "genesis", (0, "0" * 64, b"genesis", b""), (
            given["index"], given["prevHash"], bytes.fromhex(given["data"]), signature)
        yield "valid", True, case["valid"]
        return
    key = keys[given["key"]]
    yield "validatorAddress", address_of(key), given["validatorAddress"]
    yield "valid", verifies(key, block_hash, signature), case["valid"]


def check_proposal(case, keys):
    given, result = dict(case["input"]), case["result"]
    key = keys[given.pop("key")]
    data = base64.b64encode(bytes.fromhex(given.pop("data"))).decode()
    intermediate = json_intermediate({**given, "data": data, "purpose": "defi proposal"})
    yield "intermediate", intermediate, case["intermediate"]
    signing_hash = sha256(bytes.fromhex(intermediate["hashedBytes"]))
    yield "signingHash", signing_hash.hex(), result["signingHash"]
    yield "signer", address_of(key), result["signer"]
    yield "valid", verifies(key, signing_hash, bytes.fromhex(result["signature"])), case["valid"]


def opens(session_key, packet):
    try:
        return AESGCM(session_key).decrypt(packet[:12], packet[12:], None)
    except InvalidTag:
        return None


def session_keys(secret, key_form, transcript):
    """Returns the keys of a VPN session and their salt, under the names in the vectors."""
    salt = {"SHARED": b"", "PER_DIRECTION": sha256(transcript.encode())}[key_form]

    def derive(use):
        info = b"quantum-safe-playground vpn " + use
        return HKDF(hashes.SHA256(), 32, salt or None, info).derive(secret)

    if key_form == "SHARED":
        packet_keys, confirmation_key = (secret, secret), derive(b"key confirmation")
    else:
        packet_keys = (derive(b"peer to gateway"), derive(b"gateway to peer"))
        confirmation_key = derive(b"key confirmation per direction")
    return {
        "salt": salt,
        "peerToGatewayKey": packet_keys[0],
        "gatewayToPeerKey": packet_keys[1],
        "confirmationKey": confirmation_key,
    }


def check_handshake(case, keys):
    given, result = case["input"], case["result"]
    ciphertext = bytes.fromhex(given["ciphertext"])
    peer_hash = sha256(bytes.fromhex(keys[given["peerKey"]]["publicKey"])).hex()
    transcript = f"{given['tunnelId']}:{base64.b64encode(ciphertext).decode()}:{peer_hash}"
    yield "transcript", transcript, result["transcript"]
    identity = keys[given["identityKey"]]
    yield "signature", verifies(identity, transcript.encode(), bytes.fromhex(result["signature"])), True
    seed = bytes.fromhex(keys[given["recipientKey"]]["seed"])
    secret = mlkem.MLKEM1024PrivateKey.from_seed_bytes(seed).decapsulate(ciphertext)
    yield "sharedSecret", secret.hex(), result["sharedSecret"]
    keys_of_session = session_keys(secret, given["keyForm"], transcript)
    yield "intermediate", {
        "peerKeyHash": peer_hash,
        **{name: key.hex() for name, key in keys_of_session.items()},
    }, case["intermediate"]
    confirmation = hmac.digest(keys_of_session["confirmationKey"], transcript.encode(), "sha256").hex()
    yield "valid", confirmation == result["keyConfirmation"], case["valid"]
    for packet in result["packets"]:
        sealing_key = {"peer": "peerToGatewayKey", "gateway": "gatewayToPeerKey"}[packet["from"]]
        key = keys_of_session[sealing_key]
        plaintext = opens(key, bytes.fromhex(packet["packet"]))
        expected = bytes.fromhex(packet["plaintext"]) if packet["valid"] else None
        yield "packet", plaintext, expected
        if packet["valid"]:
            sealed = AESGCM(key).encrypt(bytes.fromhex(packet["iv"]), bytes.fromhex(packet["plaintext"]), None)
            yield "sealed packet", packet["iv"] + sealed.hex(), packet["packet"]


def check_gateway_key(case, keys):
    given, signature = case["input"], bytes.fromhex(case["result"]["kemPublicKeySignature"])
    context = b"quantum-safe-playground vpn kem key"
    yield "context", context.hex(), given["context"]
    message = bytes.fromhex(keys[given["kemKey"]]["publicKey"])
    yield "signedBytes", message.hex(), case["intermediate"]["signedBytes"]
    yield "valid", verifies(keys[given["identityKey"]], message, signature, context), case["valid"]


def check_telemetry(case, keys):
    given = case["input"]
    if given["kind"] == "challenge":
        message, context = bytes.fromhex(given["challenge"]), b"qsp-iot-challenge-v1"
    elif given["sequence"] is None:
        message, context = bytes.fromhex(given["telemetry"]), b"qsp-iot-reading-v1"
    else:
        message = given["sequence"].to_bytes(8, "big") + bytes.fromhex(given["telemetry"])
        context = b"qsp-iot-numbered-reading-v1"
    if not given["signingContexts"]:
        context = b""
    yield "intermediate", {"signedBytes": message.hex(), "context": context.hex()}, case["intermediate"]
    signature = bytes.fromhex(case["result"]["signature"])
    yield "valid", verifies(keys[given["key"]], message, signature, context), case["valid"]


def check_firmware(case, keys):
    given, result = case["input"], case["result"]
    digest = sha256(bytes.fromhex(given["firmware"]))
    yield "signedBytes", digest.hex(), case["intermediate"]["signedBytes"]
    yield "firmwareHash", digest.hex(), result["firmwareHash"]
    yield "valid", verifies(keys[given["key"]], digest, bytes.fromhex(result["signature"])), case["valid"]


def check_composite(case, keys):
    given, result = case["input"], case["result"]
    label = b"COMPSIG-MLDSA65-ECDSA-P256-SHA512"
    context = bytes.fromhex(given["context"])
    pre_hash = hashlib.sha512(bytes.fromhex(given["message"])).digest()
    message = b"CompositeAlgorithmSignatures2025" + label + bytes([len(context)]) + context + pre_hash
    yield "intermediate", {"preHash": pre_hash.hex(), "representative": message.hex()}, case["intermediate"]
    mldsa_key, ecdsa_key = keys[given["mldsaKey"]], keys[given["ecdsaKey"]]
    raw = bytes.fromhex(mldsa_key["publicKey"] + ecdsa_key["publicKey"])
    yield "compositePublicKey", raw.hex(), result["compositePublicKey"]
    der = bytes.fromhex("308207f2300a06082b0601050507062d038207e200") + raw
    lines = result["compositePublicKeyPem"].splitlines()
    yield "compositePublicKeyPem", der, base64.b64decode("".join(lines[1:-1]))
    yield "PEM label", ("-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----"), (lines[0], lines[-1])
    signature = bytes.fromhex(result["compositeSignature"])
    mldsa_valid = verifies(mldsa_key, message, signature[:3309], label)
    ecdsa_valid = verifies(ecdsa_key, message, signature[3309:])
    yield "mldsaValid", mldsa_valid, result["mldsaValid"]
    yield "ecdsaValid", ecdsa_valid, result["ecdsaValid"]
    yield "valid", mldsa_valid and ecdsa_valid, case["valid"]


def hpke_keys(kem_id, secret, info):
    """RFC 9180, sections 4 and 5.1: base mode, HKDF-SHA256, AES-256-GCM."""
    suite = b"HPKE" + kem_id + b"\x00\x01\x00\x02"

    def extract(salt, label, ikm):
        return hmac.digest(salt, b"HPKE-v1" + suite + label + ikm, "sha256")

    context = b"\x00" + extract(b"", b"psk_id_hash", b"") + extract(b"", b"info_hash", info)
    prk = extract(secret, b"secret", b"")

    def expand(label, length):
        labeled = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + context
        return hmac.digest(prk, labeled + b"\x01", "sha256")[:length]

    return expand(b"key", 32), expand(b"base_nonce", 12)


def check_encryption(case, keys):
    given, between = case["input"], case["intermediate"]
    key = keys[given["key"]]
    kem_id, enc_bytes = {
        "X-Wing": (b"\x64\x7a", 1120),
        "ML-KEM-768": (b"\x00\x41", 1088),
        "ML-KEM-1024": (b"\x00\x42", 1568),
    }[key["algorithm"]]
    ciphertext = bytes.fromhex(case["result"]["ciphertext"])
    head = b"\x01" + bytes.fromhex(given["keyId"][4:].replace("-", ""))
    yield "head", head.hex(), ciphertext[:17].hex()
    info = b"qsp-kms-encrypt-v1" + head
    yield "info", info.hex(), between["info"]
    secret = decapsulate(key, ciphertext[17 : 17 + enc_bytes])
    yield "sharedSecret", secret.hex(), between["sharedSecret"]
    aead_key, nonce = hpke_keys(kem_id, secret, info)
    if case["valid"]:
        yield "aeadKey", aead_key.hex(), between["aeadKey"]
        yield "nonce", nonce.hex(), between["nonce"]
    try:
        aad = bytes.fromhex(given["associatedData"])
        plaintext = AESGCM(aead_key).decrypt(nonce, ciphertext[17 + enc_bytes :], aad).hex()
    except InvalidTag:
        plaintext = None
    yield "plaintext", plaintext, given["plaintext"] if case["valid"] else None


def field_product(a, b):
    """GF(2^8) modulo x^8 + x^4 + x^3 + x + 1."""
    product = 0
    for bit in range(8):
        if b >> bit & 1:
            product ^= a << bit
    for bit in range(14, 7, -1):
        if product >> bit & 1:
            product ^= 0x11B << (bit - 8)
    return product


def field_inverse(a):
    inverse = 1
    for _ in range(254):
        inverse = field_product(inverse, a)
    return inverse


def combine_shares(points):
    """The value at 0 of the polynomials through points (x, 32 values)."""
    secret = bytearray(32)
    for x, values in points:
        basis = 1
        for other, _ in points:
            if other != x:
                basis = field_product(basis, field_product(other, field_inverse(other ^ x)))
        for at, value in enumerate(values):
            secret[at] ^= field_product(basis, value)
    return bytes(secret)


def read_share(text):
    digits = "".join(text.split())
    number = 0
    for digit in digits:
        number = number << 5 | "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(digit)
    share = number.to_bytes(50, "big")
    if sha256(b"qsp master key share" + share[:46])[:4] != share[46:]:
        raise ValueError("the checksum does not match")
    return share


def check_key_share(case, _keys):
    between = case["intermediate"]
    try:
        shares = [read_share(text) for text in case["input"]["shares"].split("\n\n")]
    except ValueError:
        yield "valid", False, case["valid"]
        return
    for share in shares:
        yield "head", share[:1].hex(), "01"
        yield "enough shares", len(shares) >= share[1], True
        yield "setId", share[3:7].hex(), between["setId"]
        yield "fingerprint", share[7:13].hex(), between["masterKeyId"][:12]
    key = combine_shares([(share[45], share[13:45]) for share in shares])
    key_id = sha256(b"qsp master key id" + key).hex()[:32]
    yield "valid", key_id == between["masterKeyId"], case["valid"]
    if case["valid"]:
        yield "masterKey", key.hex(), case["result"]["masterKey"]


def jwk_of(key):
    pub = base64url(bytes.fromhex(key["publicKey"]))
    return canonical_json({"alg": key["algorithm"], "kty": "AKP", "pub": pub})


def check_public_key(case, keys):
    key = keys[case["input"]["key"]]
    yield "intermediate", {
        "publicKeyHash": sha256(bytes.fromhex(key["publicKey"])).hex(),
        "canonicalJwk": jwk_of(key),
    }, case["intermediate"]
    key_id = base64url(sha256(jwk_of(key).encode()))
    yield "valid", True, case["valid"]
    yield "result", {"address": address_of(key), "keyId": key_id}, case["result"]


def check_metadata(case, keys):
    given, result = dict(case["input"]), case["result"]
    key = keys[given.pop("key")]
    intermediate = json_intermediate(given)
    yield "intermediate", intermediate, case["intermediate"]
    metadata_hash = sha256(bytes.fromhex(intermediate["hashedBytes"]))
    yield "metadataHash", metadata_hash.hex(), result["metadataHash"]
    yield "creatorAddress", address_of(key), result["creatorAddress"]
    yield "valid", verifies(key, metadata_hash, bytes.fromhex(result["creatorSignature"])), case["valid"]


def check_token(case, keys):
    given, between = case["input"], case["intermediate"]
    key, header, payload = keys[given["key"]], given["header"], given["payload"]
    yield "headerJson", header, json.loads(between["headerJson"])
    yield "payloadJson", payload, json.loads(between["payloadJson"])
    parts = [base64url(between[name].encode()) for name in ("headerJson", "payloadJson")]
    yield "signingInput", ".".join(parts), between["signingInput"]
    signing_input, _, signature = case["result"]["token"].rpartition(".")
    yield "token", signing_input, between["signingInput"]
    raw = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
    yield "signature", verifies(key, signing_input.encode(), raw), True
    foreign = {"crit", "b64", "jwk", "jku", "x5u", "x5c", "x5t", "x5t#S256"} & header.keys()
    accepted = (
        header["alg"] == "ML-DSA-65"
        and header["typ"] == "JWT"
        and header["kid"] == base64url(sha256(jwk_of(key).encode()))
        and not foreign
        and payload["iat"] - 5 <= given["now"] < payload["exp"]
    )
    yield "valid", accepted, case["valid"]


CHECKS = {
    "audit-entry": check_audit_entry,
    "block": check_block,
    "checkpoint": check_checkpoint,
    "composite": check_composite,
    "encryption": check_encryption,
    "firmware": check_firmware,
    "gateway-key": check_gateway_key,
    "handshake": check_handshake,
    "key-share": check_key_share,
    "metadata": check_metadata,
    "proposal": check_proposal,
    "public-key": check_public_key,
    "telemetry": check_telemetry,
    "token": check_token,
}


def check_file(path):
    vectors = json.loads(path.read_text(encoding="utf-8"))
    assert vectors["format"] == "qsp-vectors/1", path.name
    assert vectors["cases"], f"{path.name} has no cases"
    faults = []
    for name, key in vectors["keys"].items():
        if public_key_of(key).hex() != key["publicKey"]:
            faults.append(f"key {name}: the seed yields a different public key")
    for case in vectors["cases"]:
        try:
            for what, expected, actual in CHECKS[vectors["name"]](case, vectors["keys"]):
                if expected != actual:
                    faults.append(f"{case['name']}: {what} is {actual!r:.200}, must be {expected!r:.200}")
        except (KeyError, TypeError, ValueError) as error:
            faults.append(f"{case['name']}: {error!r:.200}")
    print(f"{vectors['name']}: {len(vectors['cases'])} cases, {len(faults)} faults")
    return faults


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    paths = sorted(folder.glob("*.json"))
    found = {path.stem for path in paths}
    faults = [f"{name}.json is missing" for name in sorted(CHECKS.keys() - found)]
    faults += [f"{path.name}: {fault}" for path in paths for fault in check_file(path)]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
