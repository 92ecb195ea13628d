/** `qsp kms csr`: a certificate request for a key of the server. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { exitCodes, usageError } from "./exit-codes.ts";
import { bytes } from "./output.ts";
import type { Verb } from "./verb.ts";

const { method } = KmsService;

export const kmsCsrVerbs: readonly Verb[] = [
  {
    name: "kms csr",
    operands: ["KEY"],
    options: {
      subject: {
        value: "NAME",
        meaning: "Subject (RFC 4514), the most specific part first; \\ before a comma in a value",
      },
      dns: { value: "NAME", meaning: "Host name; may occur several times", isMany: true },
      ip: { value: "ADDRESS", meaning: "IP address; may occur several times", isMany: true },
      email: { value: "ADDRESS", meaning: "Email address; may occur several times", isMany: true },
      uri: { value: "URI", meaning: "Absolute URI; may occur several times", isMany: true },
      out: {
        value: "FILE",
        meaning: "File for the request (PEM); default: standard output",
        file: "writes",
      },
    },
    meaning: "Creates a certificate request (PKCS#10, RFC 2986) for a key that signs, with these names.",
    example: 'qsp kms csr "$KEY" --subject CN=release,O=Example --out release.csr',
    async run({ operands: [keyId = ""], files, options, output, server }) {
      if (!["subject", "dns", "ip", "email", "uri"].some((name) => options.flag(name)))
        throw usageError("a request needs a name; use --subject, --dns, --ip, --email or --uri");
      const answer = await server.ask(method.createCsr, {
        keyId,
        subject: options.text("subject") ?? "",
        dnsNames: [...options.all("dns")],
        ipAddresses: [...options.all("ip")],
        emails: [...options.all("email")],
        uris: [...options.all("uri")],
      });
      const { csr, csrPem = "", algorithm } = answer.result ?? {};
      const file = files.write("out", csrPem);
      output.answer(method.createCsr.output, answer, () =>
        file === undefined
          ? csrPem.trimEnd()
          : `${file}: request of ${bytes(csr?.length ?? 0)}, ${algorithm}`,
      );
      return exitCodes.done;
    },
  },
];
