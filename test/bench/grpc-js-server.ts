/** Health.Check on @grpc/grpc-js, as a baseline: `node grpc-js-server.ts`. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import {
  HealthCheckRequestSchema,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
} from "#gen/grpc/health/v1/health_pb.ts";

const server = new grpc.Server();
server.addService(
  {
    check: {
      path: "/grpc.health.v1.Health/Check",
      requestStream: false,
      responseStream: false,
      requestDeserialize: (bytes: Buffer) => fromBinary(HealthCheckRequestSchema, bytes),
      requestSerialize: () => Buffer.alloc(0),
      responseDeserialize: () => undefined,
      responseSerialize: (message: HealthCheckResponse) =>
        Buffer.from(toBinary(HealthCheckResponseSchema, message)),
    },
  },
  {
    check: (_call: unknown, answer: (error: null, message: unknown) => void) =>
      answer(null, create(HealthCheckResponseSchema, { status: HealthCheckResponse_ServingStatus.SERVING })),
  },
);
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  process.send?.({ port });
});
process.on("message", (message) => {
  if (message === "stop") process.exit(0);
});
