/** Entry point `quantum-safe-playground/client`, for other programs and for browsers. */
export { type ClientOptions, type Clients, createClients, type TransportInput } from "./create-clients.ts";
export { type EncryptionAlgorithm, type EncryptionInput, encryptForKey } from "./encrypt.ts";
export { type Services, services } from "./services.ts";
export {
  type AuditPosition,
  type AuditVerdict,
  auditStart,
  hashAuditEntry,
  verifyAuditCheckpoint,
  verifyAuditEntries,
} from "./verify-audit.ts";
export { type SignatureInput, verifySignature } from "./verify-signature.ts";
