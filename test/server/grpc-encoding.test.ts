/** A message in a compression that the server does not know (grpc/grpc, doc/compression.md). */
import { describe, expect, it } from "vitest";
import { serveProbe } from "./probe.ts";
import { connectHttp2, envelope, grpcStatusOf, request } from "./raw.ts";

describe.each(["application/grpc", "application/grpc-web+proto"])(
  "an unknown grpc-encoding of %s",
  (type) => {
    it.each(["Ask", "Watch"])("is refused with the ones that the server knows: %s", async (method) => {
      const { url } = await serveProbe();
      const headers = {
        ":path": `/probing.Probe/${method}`,
        "content-type": type,
        "grpc-encoding": "snappy",
      };
      const answer = await request(connectHttp2(url), headers, envelope("", 1));
      expect(grpcStatusOf(answer)).toEqual({ status: 12, reason: "ENCODING_UNSUPPORTED" });
      expect({ ...answer.headers, ...answer.trailers }["grpc-accept-encoding"]).toBe("gzip,br");
    });
  },
);
