/** Serves the protos, so that clients in any language can generate stubs from a running server. */
import type { DescFile } from "@bufbuild/protobuf";
import type { FastifyInstance } from "fastify";
import {
  type Content,
  memoize,
  prepareCompressed,
  prepareContent,
  sendContent,
} from "../http/static-content.ts";

/** The files that the pages serve. */
interface Served {
  /** Every file that reflection describes, imports first. */
  readonly files: readonly DescFile[];
}

/**
 * Adds GET /protos.binpb, one FileDescriptorSet with all imports, and GET /protos.tar.gz, the sources under
 * their import paths. The first request creates them.
 */
export async function protoPages(app: FastifyInstance, { files }: Served): Promise<void> {
  serve(app, "protos.binpb", async () => {
    const { serializeDescriptors } = await import("./sources.ts");
    return prepareContent("application/x-protobuf", serializeDescriptors(files));
  });
  serve(app, "protos.tar.gz", async () => {
    const [{ listSources }, { packTarGz }] = await Promise.all([import("./sources.ts"), import("./tar.ts")]);
    // RFC 6713, section 3.
    return prepareCompressed("application/gzip", packTarGz(await listSources(files)));
  });
}

function serve(app: FastifyInstance, name: string, make: () => Promise<Content>): void {
  const getContent = memoize(make);
  app.get(`/${name}`, async (request, reply) => {
    const content = await getContent();
    reply.header("cache-control", "no-cache").header("content-disposition", `attachment; filename="${name}"`);
    return sendContent(request, reply, content);
  });
}
