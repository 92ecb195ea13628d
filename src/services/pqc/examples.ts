/** Example requests for the API description. */
import { answered, base64, example, someBytes } from "../../calls/example.ts";

const hello = base64("hello");
const token = answered("issue-token", "token", "eyJhbGciOiJNTC1EU0EtNjUiLCJ0eXAiOiJKV1QifQ.e30.c2ln");

export const examples = [
  example("pqc.PqcService.SignData", "sign-data", "Signs the word hello.", {
    data: hello,
    algorithm: "ML-DSA-65",
  }),
  example("pqc.PqcService.VerifySignature", "verify-signature", "Verifies the signature of SignData.", {
    data: hello,
    signature: answered("sign-data", "signature", someBytes),
    publicKey: answered("sign-data", "publicKey", someBytes),
  }),
  example(
    "pqc.PqcService.ExchangeKeys",
    "exchange-keys",
    "Generates a one-time key pair and a shared secret.",
    { algorithm: "ML-KEM-768" },
  ),
  example("pqc.PqcService.GetAlgorithmInfo", "get-algorithms", "Lists the signature algorithms.", {
    category: "SIGNATURE",
  }),
  example("pqc.PqcService.IssueToken", "issue-grpc-token", "Issues a token for ada.", { username: "ada" }),
  example("pqc.PqcService.GetJwks", "get-grpc-jwks", "Gets the keys that verify tokens."),
  example("pqc.PqcService.GetHealth", "get-pqc-health", "Checks the health of the service."),
  example("pqc.PqcService.GetConnection", "get-connection", "Describes the caller's connection."),
  example("pqc.PqcService.RecordHandshake", "record-handshake", "Records a hybrid handshake.", {
    group: "X25519MLKEM768",
    certificate: "ECDSA-P256",
  }),
  example("pqc.TokenService.Hello", "hello", "Requests a greeting."),
  example("pqc.TokenService.GetHealth", "get-token-health", "Checks the health of the service."),
  example("pqc.TokenService.IssueToken", "issue-token", "Issues a token for ada.", { username: "ada" }),
  example("pqc.TokenService.VerifyToken", "verify-token", "Checks a token.", { token }),
  example("pqc.TokenService.VerifyToken", "verify-token-signature", "Checks a signature instead.", {
    data: hello,
    signature: answered("sign-data", "signature", someBytes),
    publicKey: answered("sign-data", "publicKey", someBytes),
  }),
  example("pqc.TokenService.GetJwks", "get-jwks", "Gets the keys that verify tokens."),
  example("pqc.TokenService.GetSecureData", "get-secure-data", "Reads the protected data.", {}, token),
  example("pqc.IdentityLogService.GetIdentityLog", "get-identity-log", "Lists log-ins and user changes."),
  example(
    "pqc.IdentityLogService.WatchIdentityLog",
    "watch-identity-log",
    "Streams the log, starting with the first entry.",
    { afterSequence: 0 },
  ),
  example("pqc.IdentityLogService.VerifyIdentityLog", "verify-identity-log", "Verifies the identity log."),
  example("pqc.TokenService.GetCryptoInfo", "get-crypto-info", "Lists all algorithms.", {}, token),
];
