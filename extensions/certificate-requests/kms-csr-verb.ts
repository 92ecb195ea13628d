/** `qsp kms csr`. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { unaryVerb } from "../../src/cli/call-verbs.ts";
import { outputFile } from "../../src/cli/command-line/options.ts";
import { usageError } from "../../src/cli/exit-codes.ts";
import { bytes } from "../../src/cli/output/output.ts";
import type { Verb } from "../../src/cli/verb.ts";

export const kmsCsrVerbs: readonly Verb[] = [
  unaryVerb(KmsService.method.createCsr, {
    line: "kms csr KEY",
    options: {
      subject: {
        value: "NAME",
        meaning: "Subject (RFC 4514), most specific part first; escape a comma in a value with \\",
      },
      dns: { value: "NAME", meaning: "Host name; repeatable", isMany: true },
      ip: { value: "ADDRESS", meaning: "IP address; repeatable", isMany: true },
      email: { value: "ADDRESS", meaning: "Email address; repeatable", isMany: true },
      uri: { value: "URI", meaning: "Absolute URI; repeatable", isMany: true },
      out: outputFile("File for the request (PEM); default: standard output"),
    },
    meaning: "Creates a certificate request (CSR, PKCS#10, RFC 2986) for a signing key, with these names.",
    example: 'qsp kms csr "$KEY" --subject CN=release,O=Example --out release.csr',
    ask({ operands: [keyId = ""], options }) {
      if (!["subject", "dns", "ip", "email", "uri"].some((name) => options.flag(name)))
        throw usageError("a request needs a name; use --subject, --dns, --ip, --email or --uri");
      return {
        keyId,
        subject: options.text("subject") ?? "",
        dnsNames: [...options.all("dns")],
        ipAddresses: [...options.all("ip")],
        emails: [...options.all("email")],
        uris: [...options.all("uri")],
      };
    },
    writes: { out: ({ result }) => result?.csrPem ?? "" },
    say: ({ result: { csr, csrPem, algorithm } = {} }, _, { out }) =>
      out === undefined
        ? (csrPem ?? "").trimEnd()
        : `${out}: request of ${bytes(csr?.length ?? 0)}, ${algorithm}`,
  }),
];

/** Adds `kms csr` to the verbs of the key service. */
export function addCsrVerb(verbs: readonly Verb[]): readonly Verb[] {
  const index = verbs.findIndex(({ name }) => name === "kms public-keys");
  return verbs.toSpliced(index + 1, 0, ...kmsCsrVerbs);
}
