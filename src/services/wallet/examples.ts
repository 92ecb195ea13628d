/** Example requests for the API description. */
import { answered, base64, example, someBytes, someId } from "../../calls/example.ts";

const data = base64("pay 100 to bob");

export const examples = [
  example("wallet.WalletService.CreateWallet", "create-wallet", "Creates a wallet.", { label: "savings" }),
  example("wallet.WalletService.SignTransaction", "sign-transaction", "Signs a payment.", {
    walletId: answered("create-wallet", "walletId", someId("wallet")),
    data,
  }),
  example("wallet.WalletService.VerifyTransaction", "verify-transaction", "Verifies the payment.", {
    data,
    signature: answered("sign-transaction", "signature", someBytes),
    publicKey: answered("sign-transaction", "publicKey", someBytes),
  }),
  example("wallet.WalletService.ListWallets", "list-wallets", "Lists wallets.", { pageSize: 10 }),
  example("wallet.WalletService.GetHealth", "get-wallet-health", "Checks the health of the service."),
];
