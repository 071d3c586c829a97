package firstboot

import (
	"crypto/rsa"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/vm/answer"
)

// SealBits is the length of the key with which a guest seals its new password. A password that is sealed with a longer
// key would not fit into a mark.
const SealBits = 2048

// sealExponent is the public exponent that password.ps1 has.
const sealExponent = 65537

// checkSeal returns an error for a key that password.ps1 cannot use.
func checkSeal(key *rsa.PublicKey) error {
	if key != nil && (key.N.BitLen() != SealBits || key.E != sealExponent) {
		return fmt.Errorf("the key of the password has %d bits and the exponent %d; use %d bits and %d",
			key.N.BitLen(), key.E, SealBits, sealExponent)
	}
	return nil
}

// Unseal returns the password that a guest has sealed, from the text of a mark of state Sealed. A guest can seal
// anything, so the error never contains the text, and the password is checked.
func Unseal(key *rsa.PrivateKey, text string) (answer.Password, error) {
	sealed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return answer.Password{}, errors.New("the sealed password is no base64")
	}
	plain, err := rsa.DecryptOAEP(sha1.New(), nil, key, sealed, nil) // the hash of RSACryptoServiceProvider
	if err != nil {
		return answer.Password{}, errors.New("the sealed password is of another key")
	}
	password := answer.NewPassword(string(plain))
	return password, password.Check()
}
