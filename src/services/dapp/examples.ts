/** Example requests for the API description. */
import { answered, base64, example, someBytes } from "../../calls/example.ts";

const data = base64("hello");

export const examples = [
  example("dapp.DappService.DeployContract", "deploy-contract", "Deploys a contract.", {
    code: "contract Greeter { }",
    name: "Greeter",
  }),
  example("dapp.DappService.DualSign", "dual-sign", "Signs with both algorithms.", { data }),
  example("dapp.DappService.DualVerify", "dual-verify", "Verifies both signatures.", {
    data,
    ecdsaSignature: answered("dual-sign", "ecdsaSignature", someBytes),
    mldsaSignature: answered("dual-sign", "mldsaSignature", someBytes),
    ecdsaPublicKey: answered("dual-sign", "ecdsaPublicKey", someBytes),
    mldsaPublicKey: answered("dual-sign", "mldsaPublicKey", someBytes),
  }),
  example("dapp.DappService.DualVerify", "dual-verify-composite", "Verifies the composite signature.", {
    data,
    compositeSignature: answered("dual-sign", "compositeSignature", someBytes),
    compositePublicKey: answered("dual-sign", "compositePublicKey", someBytes),
  }),
  example("dapp.DappService.ListContracts", "list-contracts", "Lists contracts.", { pageSize: 10 }),
  example("dapp.DappService.GetHealth", "get-dapp-health", "Checks the health of the service."),
];
