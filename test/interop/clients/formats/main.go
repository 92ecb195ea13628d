// Verifies files with third-party libraries: sigstore's Go library and veraison/go-cose.
//
// It takes a format (raw, dsse or cose) and the names of a public key in PEM, a file, and its signature.
package main

import (
	"bytes"
	"crypto"
	"crypto/mldsa"
	"fmt"
	"os"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/veraison/go-cose"
)

// coseVerifier lets go-cose verify with Go's own ML-DSA; go-cose does not implement RFC 9964.
type coseVerifier struct {
	algorithm cose.Algorithm
	publicKey *mldsa.PublicKey
}

func (v coseVerifier) Algorithm() cose.Algorithm { return v.algorithm }

func (v coseVerifier) Verify(content, signature []byte) error {
	return mldsa.Verify(v.publicKey, content, signature, nil)
}

// RFC 9964, section 5.
var coseAlgorithms = map[int]cose.Algorithm{1312: -48, 1952: -49, 2592: -50}

func verifyCose(publicKey crypto.PublicKey, content, signed []byte) error {
	key, ok := publicKey.(*mldsa.PublicKey)
	if !ok {
		return fmt.Errorf("not an ML-DSA key: %T", publicKey)
	}
	verifier := coseVerifier{coseAlgorithms[len(key.Bytes())], key}
	var message cose.Sign1Message
	if err := message.UnmarshalCBOR(signed); err != nil {
		return err
	}
	if message.Payload == nil {
		message.Payload = content
	}
	if !bytes.Equal(message.Payload, content) {
		return fmt.Errorf("the message content differs")
	}
	return message.Verify(nil, verifier)
}

func verify(format, keyFile, contentFile, signatureFile string) error {
	files := make([][]byte, 3)
	for i, name := range []string{keyFile, contentFile, signatureFile} {
		var err error
		if files[i], err = os.ReadFile(name); err != nil {
			return err
		}
	}
	publicKey, err := cryptoutils.UnmarshalPEMToPublicKey(files[0])
	if err != nil {
		return err
	}
	if format == "cose" {
		return verifyCose(publicKey, files[1], files[2])
	}
	verifier, err := signature.LoadVerifier(publicKey, crypto.SHA256)
	if err != nil {
		return err
	}
	if format == "dsse" {
		return dsse.WrapVerifier(verifier).VerifySignature(bytes.NewReader(files[2]), nil)
	}
	return verifier.VerifySignature(bytes.NewReader(files[2]), bytes.NewReader(files[1]))
}

func main() {
	if err := verify(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Println("refused:", err)
		os.Exit(1)
	}
	fmt.Println("verified")
}
