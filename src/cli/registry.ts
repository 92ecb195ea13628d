/** All calls of the project, from the descriptors that its protos were compiled to. */
import { createRegistry, type DescMethod, getOption, type Registry } from "@bufbuild/protobuf";
import { file_blockchain_blockchain_service } from "#gen/blockchain/blockchain_service_pb.ts";
import { file_dapp_dapp_service } from "#gen/dapp/dapp_service_pb.ts";
import { file_defi_defi_service } from "#gen/defi/defi_service_pb.ts";
import { http } from "#gen/google/api/annotations_pb.ts";
import { file_google_rpc_error_details } from "#gen/google/rpc/error_details_pb.ts";
import { file_grpc_health_v1_health } from "#gen/grpc/health/v1/health_pb.ts";
import { file_iot_iot_service } from "#gen/iot/iot_service_pb.ts";
import { file_kms_kms_service } from "#gen/kms/kms_service_pb.ts";
import { file_nft_nft_service } from "#gen/nft/nft_service_pb.ts";
import { file_pqc_pqc_service } from "#gen/pqc/pqc_service_pb.ts";
import { file_pqc_token_service } from "#gen/pqc/token_service_pb.ts";
import { file_vpn_vpn_service } from "#gen/vpn/vpn_service_pb.ts";
import { file_wallet_wallet_service } from "#gen/wallet/wallet_service_pb.ts";

/** Every message and service. */
export const registry: Registry = createRegistry(
  file_pqc_pqc_service,
  file_pqc_token_service,
  file_kms_kms_service,
  file_iot_iot_service,
  file_vpn_vpn_service,
  file_dapp_dapp_service,
  file_wallet_wallet_service,
  file_defi_defi_service,
  file_blockchain_blockchain_service,
  file_nft_nft_service,
  file_grpc_health_v1_health,
  file_google_rpc_error_details,
);

/** Every call, in the order of the protos. */
export function listMethods(): DescMethod[] {
  return [...registry].flatMap((desc) => (desc.kind === "service" ? desc.methods : []));
}

/** "kms.KmsService/CreateKey". */
export function nameOf(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** "POST /api/kms/create-key"; undefined for what REST does not have. */
export function restOf(method: DescMethod): string | undefined {
  const { pattern } = getOption(method, http);
  if (pattern.case === undefined || pattern.case === "custom") return undefined;
  return `${pattern.case.toUpperCase()} ${pattern.value}`;
}
