/** A server that wants a token, on a port of its own. */
import { createServiceImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { onTestFinished } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { refuse } from "../../src/errors.ts";
import { serve } from "./serve.ts";

/** Serves the key service until the test has finished. The token "ada" is of a user; there is no other. */
export async function serveGuarded(): Promise<number> {
  const { server, port } = await serve({
    services: [createServiceImplSpec<typeof KmsService>(KmsService, {} as ServiceImpl<typeof KmsService>)],
    access: {
      mode: "token",
      authenticate: async (authorization) => {
        if (authorization === "ada") {
          return { role: "user", subject: "ada", issuedAt: new Date(0), expiresAt: new Date(0) };
        }
        if (authorization === null) throw refuse("TOKEN_MISSING", "there is no token");
        throw refuse("TOKEN_SIGNATURE_INVALID", "the token is not ours");
      },
    },
  });
  onTestFinished(() => {
    server.destroy();
    return server.close();
  });
  return port;
}
