import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { type CertificateRequest, readCertificateRequest } from "../read-certificate-request.ts";

/** Reads a certificate request with its own provider. */
export async function readRequest(file: Uint8Array): Promise<CertificateRequest> {
  const provider = await createCryptoProvider("openssl");
  try {
    return await readCertificateRequest(provider, file);
  } finally {
    await provider.close();
  }
}
