import type { Client } from "@connectrpc/connect";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import type { KmsService } from "#gen/kms/kms_service_pb.ts";
import { readPages } from "../answers.ts";

/** Reads the audit log of a key, or all of it; oldest first. */
export async function readAudit(kms: Client<typeof KmsService>, keyId = ""): Promise<AuditEntry[]> {
  const { rows } = await readPages(
    (pageToken) => kms.getAuditLog({ keyId, pageToken }),
    ({ auditLog }) => auditLog,
  );
  return rows;
}
