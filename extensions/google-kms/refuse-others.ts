/** Rejects calls that this server does not implement. */
import type { DescService } from "@bufbuild/protobuf";
import { createServiceImplSpec, type ServiceImpl, type ServiceImplSpec } from "@connectrpc/connect";
import { callUnsupported } from "../../src/errors.ts";

/** Implements part of a service. All other calls fail with CALL_UNSUPPORTED. */
export function refuseOthers<Service extends DescService>(
  service: Service,
  supported: Partial<ServiceImpl<Service>>,
): ServiceImplSpec {
  const { methods } = service;
  const others = methods.filter(({ localName }) => !(localName in supported));
  const refusals = Object.fromEntries(
    others.map(({ localName, name, parent }) => [
      localName,
      () => {
        throw callUnsupported(`${parent.typeName}/${name}`);
      },
    ]),
  );
  // A handler that throws matches any handler type.
  return createServiceImplSpec(service, { ...supported, ...refusals } as ServiceImpl<Service>);
}
