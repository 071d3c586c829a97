package configcd

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Sum returns the SHA-256 of the CD that Write would write, in hexadecimal.
func Sum(o Options) (string, error) {
	image, err := o.image()
	if err != nil {
		return "", fmt.Errorf("hash the configuration CD: %w", err)
	}
	hash := sha256.New()
	if _, err := image.WriteTo(hash); err != nil {
		return "", fmt.Errorf("hash the configuration CD: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
