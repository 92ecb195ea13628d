"""Reads CSRs and certificates with pyca/cryptography, and prints the findings as JSON.

Standard input: {"requests": [{"csr": PEM, "subject": text}], "certificates": [{"certificate": PEM, "ca": PEM}]}.
"""

import json
import sys

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

KINDS = {x509.DNSName: "dns", x509.IPAddress: "ip", x509.RFC822Name: "email", x509.UniformResourceIdentifier: "uri"}


def list_names(extensions):
    try:
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return {"names": [], "critical": None}
    return {"names": [f"{KINDS[type(name)]}:{name.value}" for name in names.value], "critical": names.critical}


def describe_request(given):
    request = x509.load_pem_x509_csr(given["csr"].encode())
    try:
        signed = request.is_signature_valid
    except UnsupportedAlgorithm:
        signed = "unsupported"
    wanted = x509.Name.from_rfc4514_string(given["subject"])
    return {
        "signed": signed,
        "algorithm": request.signature_algorithm_oid.dotted_string,
        "sameSubject": request.subject.public_bytes() == wanted.public_bytes(),
        "extensions": [extension.oid.dotted_string for extension in request.extensions],
        "attributes": len(list(request.attributes)),
        **list_names(request.extensions),
    }


def describe_certificate(given):
    certificate = x509.load_pem_x509_certificate(given["certificate"].encode())
    ca = x509.load_pem_x509_certificate(given["ca"].encode())
    try:
        certificate.verify_directly_issued_by(ca)
        issued = True
    except (InvalidSignature, ValueError):
        issued = False
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    uses = ["digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"]
    return {
        "issued": issued,
        "subject": certificate.subject.rfc4514_string(),
        "ca": certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca,
        "uses": [use for use in [*uses, "key_cert_sign", "crl_sign"] if getattr(usage, use)],
        "purposes": [
            oid.dotted_string for oid in certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        ],
        "extensions": [extension.oid.dotted_string for extension in certificate.extensions],
        **list_names(certificate.extensions),
    }


given = json.load(sys.stdin)
found = {
    "requests": [describe_request(one) for one in given["requests"]],
    "certificates": [describe_certificate(one) for one in given["certificates"]],
}
print(json.dumps(found))
